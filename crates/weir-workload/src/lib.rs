//! fio job files as sans-IO workloads.
//!
//! [`fio::parse`] reads a job file into typed data ([`JobFile`] of [`JobSpec`]), and a [`Workload`]
//! turns placed jobs into a stream of [`Issue`]s. The crate reads no clock, opens no file and
//! starts no thread: callers pass the time as `now` and get deadlines. The same seed with the same
//! completions gives the same I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`fio`] | the ini format, fio's numbers and units, what each option means here |
//! | [`job`] | [`JobFile`] and [`JobSpec`]: what a job file says, typed |
//! | [`workload`] | [`Workload`]: all processes of a run; who may issue, and when |
//! | [`mod@place`] | which device and region a job's files are |
//! | [`series`] | how a run went over time |
//! | [`tally`] | what the processes saw: counts, bytes, latencies |
//! | `process` | one clone of one job: pacing, think time, passes, its end |
//! | `plan`, `file` | where the next I/O goes and how long it is |
//! | `permutation`, `block_map`, `sampler`, `pace` | the arithmetic under those |
//! | [`error`] | [`FioError`] |

#![forbid(unsafe_code)]

mod block_map;
pub mod error;
mod file;
pub mod fio;
pub mod job;
mod pace;
mod permutation;
pub mod place;
mod plan;
mod process;
mod sampler;
pub mod series;
pub mod tally;
pub mod workload;

pub use error::{FioError, Place, PlacementError, ValueError};
pub use fio::{Isolated, Source};
pub use job::{JobFile, JobSpec};
pub use place::{Device, PlaceError, place};
pub use series::Series;
pub use tally::Tally;
pub use workload::{Issue, Op, Placed, ProcessState, Region, Workload};
