//! Reproductions of published experiments, compared with their figures.
//!
//! A lab is a folder of `labs/`: layouts, job files and the published figures with their source and
//! tolerance. Code contains no figures. Labs run in virtual time at the published size, and in wall
//! time at a smaller size, on volumes that are served.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@file`] | the shape of `lab.toml` |
//! | [`mod@figure`] | its figures, one by one or in columns |
//! | [`options`] | options of runs |
//! | [`mod@run`] | running labs, and comparing their figures |
//! | `work` | the runs: `bench` has fio jobs, `oltp` databases, `backups` backups in wall time,
//! `planned` a need |
//! | `metric` | metrics of a run |
//! | `error` | [`LabError`] |

#![forbid(unsafe_code)]

mod backups;
mod bench;
mod error;
pub mod figure;
pub mod file;
mod metric;
mod notes;
mod oltp;
pub mod options;
mod planned;
pub mod run;
mod tuned;
mod work;

pub use error::LabError;
pub use file::{Lab, all, find};
pub use options::{Clocks, Driver, Options};
pub use run::run;
