//! Runs workloads on NBD exports by the wall clock.
//!
//! [`run()`] turns the same [`Workload`](weir_workload::Workload) as the
//! simulator does, over connections to a server; [`run_with_fio`]
//! hands the same jobs to the real fio. Both report what they saw as a
//! [`RunReport`](weir_report::run::RunReport), as the simulator does. An [`OltpRun`] is
//! a database in place of jobs.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@run`] | a workload on a server, driven here |
//! | [`fio`] | the same workload, driven by fio |
//! | [`oltp`] | a database on a server, with real pages, a real log, and recovery |

#![forbid(unsafe_code)]

mod error;
pub mod fio;
pub mod oltp;
pub mod run;

pub use error::RunnerError;
pub use fio::run_with_fio;
pub use oltp::{OltpOptions, OltpRun, OltpRunError, ServedFile, ServiceTimes};
pub use run::{RunOptions, run};
