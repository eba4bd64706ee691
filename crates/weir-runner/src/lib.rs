//! Runs workloads on NBD exports in wall time.
//!
//! [`run()`] drives the same [`Workload`](weir_workload::Workload) as the simulator, over
//! connections to a server; [`run_with_fio`] runs the same jobs with the real fio. Both return a
//! [`RunReport`](weir_report::run::RunReport), as the simulator does. An [`OltpRun`] drives a
//! database instead of jobs.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@run`] | a workload on a server, driven here |
//! | [`fio`] | the same workload, driven by fio |
//! | [`replay`] | recorded traces on a server |
//! | [`oltp`] | a database on a server, with real pages, a real log, and recovery |

#![forbid(unsafe_code)]

mod error;
pub mod fio;
pub mod oltp;
pub mod replay;
pub mod run;

pub use error::RunnerError;
pub use fio::run_with_fio;
pub use oltp::{OltpOptions, OltpRun, OltpRunError, ServedFile, ServiceTimes};
pub use replay::{ReplayRun, ReplayRunOptions};
pub use run::{RunOptions, run};
