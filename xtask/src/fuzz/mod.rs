//! Fuzz targets, and a small fuzzer that needs no nightly compiler.
//!
//! A [`Target`] takes any bytes and panics if an invariant is broken. Two programs feed it: `cargo
//! fuzz`, which is guided by coverage and runs for hours, and [`smoke`], which mutates a committed
//! corpus, reproducibly by seed, in every test run.
//!
//! | module | holds |
//! |---|---|
//! | [`target`] | the targets by name |
//! | `layout`, `fio`, `oltp`, `observation`, `import`, `need`, `prices`, `sweep`, `control` | invariants of these files and requests |
//! | `plans` | plans for needs of any kind, from a small edition |
//! | [`corpus`] | the committed inputs, and the dictionaries |
//! | `seeds` | NBD conversations and small backups as seeds |
//! | [`mutate`] | mutations of inputs |
//! | [`smoke`] | the loop, its watchdog, and its reports |
//! | `trap` | caught panics with their location |

mod control;
pub mod corpus;
mod fio;
mod import;
mod layout;
pub mod mutate;
mod need;
mod observation;
mod oltp;
mod plans;
mod prices;
mod seeds;
pub mod smoke;
mod sweep;
pub mod target;
mod trap;

pub use target::Target;
