//! What is fuzzed, and a small fuzzer that needs no nightly compiler.
//!
//! A [`Target`] takes any bytes and panics if a promise is broken. Two things feed
//! it: `cargo fuzz`, which learns from coverage and runs for hours, and
//! [`smoke`], which knows nothing but mutates a committed corpus fast, the same
//! way for the same seed, in every run of the tests' machine.
//!
//! | module | holds |
//! |---|---|
//! | [`target`] | the targets by name |
//! | `layout`, `fio`, `oltp`, `observation`, `import` | what must hold for files of these kinds |
//! | [`corpus`] | the committed inputs, and the dictionaries |
//! | `seeds` | NBD conversations and small backups, to generate inputs from |
//! | [`mutate`] | one input made from others |
//! | [`smoke`] | the loop, its watchdog, and what it says of a finding |
//! | `trap` | panics caught with their place |

pub mod corpus;
mod fio;
mod import;
mod layout;
pub mod mutate;
mod observation;
mod oltp;
mod rng;
mod seeds;
pub mod smoke;
pub mod target;
mod trap;

pub use target::Target;
