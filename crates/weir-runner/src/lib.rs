//! Runs workloads on NBD exports by the wall clock.
//!
//! [`run()`] turns the same [`Workload`](weir_workload::Workload) as the
//! simulator does, over connections to a server; [`run_with_fio`]
//! hands the same jobs to the real fio. Both report what they saw as a
//! [`RunReport`](weir_report::run::RunReport), as the simulator does.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@run`] | a workload on a server, driven here |
//! | [`fio`] | the same workload, driven by fio |
//! | [`client`] | one connection to an export |

#![forbid(unsafe_code)]

pub mod client;
mod error;
pub mod fio;
pub mod run;

pub use error::RunnerError;
pub use fio::run_with_fio;
pub use run::{RunOptions, run};
