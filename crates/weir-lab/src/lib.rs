//! Published experiments rerun, their figures beside Weir's.
//!
//! A lab is a folder of `labs/`: layouts, job files and the published figures with
//! their place and tolerance. No figure of a lab stands in code. It is run on the
//! virtual clock, as printed, and on the wall clock, scaled down, on volumes that
//! are really served.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@file`] | the shape of `lab.toml` |
//! | [`mod@figure`] | its figures, one by one or in columns |
//! | [`mod@run`] | running labs, and judging what they give |
//! | `work` | what a run does: `bench` has fio jobs, `oltp` databases, `backups` backups in wall time, `planned` a need |
//! | `metric` | reading a figure from what came of a run |
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
mod planned;
pub mod run;
mod work;

pub use error::LabError;
pub use file::{Lab, all, find};
pub use run::{Clocks, Driver, Options, run};
