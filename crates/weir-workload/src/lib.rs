//! fio job files and recorded traces as sans-IO workloads.
//!
//! [`fio::parse`] reads a job file into typed data ([`JobFile`] of [`JobSpec`]), and a [`Workload`]
//! turns placed jobs into a stream of [`Issue`]s. A [`Replay`](replay::Replay) does the same with
//! the requests of traces. The crate reads no clock, opens no file and starts no thread: callers pass the time as `now` and get deadlines. The same seed with the same
//! completions gives the same I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`fio`] | the ini format, fio's numbers and units, and the table of options |
//! | [`job`] | [`JobFile`] and [`JobSpec`]: the contents of a job file |
//! | [`workload`] | [`Workload`]: all processes of a run |
//! | [`replay`] | [`Replay`](replay::Replay): recorded requests, issued again |
//! | [`mod@place`] | the devices and regions of a job's files |
//! | [`io`], [`position`] | operations and regions; positions in job files |
//! | [`series`] | counters of a run over time |
//! | [`tally`] | counts, bytes and latencies of the processes |
//! | `process` | one clone of one job: pacing, think time, passes, its end |
//! | `plan`, `file` | operation, offset and length of the next I/O |
//! | `permutation`, `block_map`, `sampler`, `pace` | their arithmetic |
//! | [`error`] | [`FioError`] |

#![forbid(unsafe_code)]

mod block_map;
pub mod error;
mod file;
pub mod fio;
pub mod io;
pub mod job;
mod pace;
mod permutation;
pub mod place;
mod plan;
pub mod position;
mod process;
pub mod replay;
mod sampler;
pub mod series;
pub mod tally;
pub mod workload;

pub use error::{FioError, PlacementError, ValueError};
pub use fio::{Isolated, Source};
pub use io::{Op, Region};
pub use job::{JobFile, JobSpec};
pub use place::{Device, PlaceError, place};
pub use position::Position;
pub use series::Series;
pub use tally::Tally;
pub use workload::{Issue, Placed, ProcessState, Workload};
