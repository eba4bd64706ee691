//! Sweeps: one simulation for each point of a grid, or of a seeded sample, over parameters of a
//! layout, its workload and its catalog edition.
//!
//! ```text
//!   sweep file --> Sweep --> Design --> point --> Base --> layout, workload --> measure --> row
//!                                                                                            |
//!   report <-- sensitivity <-- Results <-- merge of shards <-- CSV, Parquet <-- Journal <----+
//! ```
//!
//! A point is a number. Its values follow from the [`Design`](design::Design) alone, so processes on
//! several machines divide the points without talking to each other ([`Shard`]). Rows are texts from
//! the journal on: results do not depend on the order in which points complete, or on
//! interruptions. `docs/SWEEP.md` describes the files.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@file`] | the keys of a sweep file |
//! | [`value`] | values of parameters, and ranges of them |
//! | [`design`] | grid and sample: the values at each point; shards |
//! | `edit` | changes of single keys in a TOML file |
//! | [`base`] | the files that parameters change, and the inputs of a point |
//! | [`replay`] | traces as the workload, and options of their replay |
//! | `surroundings` | the environment and includes of job files, read once |
//! | [`sweep`] | a sweep file with its base, checked |
//! | `measure` | the simulation of a point and its metrics |
//! | [`run`](mod@run) | the points on all cores |
//! | [`results`] | columns and rows |
//! | [`csv`](mod@csv) | results as CSV |
//! | [`log`] | a file of lines that one process appends to |
//! | [`journal`] | completed points of an unfinished sweep |
//! | [`merge`](mod@merge) | shards put together |
//! | [`sensitivity`] | the parameter that moves a metric most |
//! | [`error`] | reasons why there is no sweep |

#![forbid(unsafe_code)]

pub mod base;
pub mod csv;
pub mod design;
mod edit;
pub mod error;
pub mod file;
pub mod journal;
pub mod log;
mod measure;
pub mod merge;
pub mod replay;
pub mod results;
pub mod run;
pub mod sensitivity;
mod surroundings;
pub mod sweep;
pub mod value;

pub use base::{Inputs, Load, NamedText};
pub use design::Shard;
pub use error::SweepError;
pub use file::SweepFile;
pub use journal::Journal;
pub use log::Log;
pub use merge::merge;
pub use replay::{Part, TraceInputs, Traces, content_hash};
pub use results::Results;
pub use run::{in_parallel, run};
pub use sweep::Sweep;
