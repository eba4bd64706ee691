//! Observation of running systems.
//!
//! This module opens no connection: a client sends the queries defined here and passes on the
//! answers unchanged. The answers go through the same readers as imported files, so an observation
//! is the same, live or from files.
//!
//! ```text
//!   client: answer, time --> Feed (a reader's sheet) --> Recorder --> Writer
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `feed` | from an answer to values |
//! | `recorder` | from values of several systems to an observation |
//! | [`postgres`], [`sqlserver`] | the queries for database servers |

mod feed;
pub mod postgres;
mod recorder;
pub mod sqlserver;

pub use crate::results::RowSet;
pub use feed::{Answer, Feed};
pub use recorder::{Recorder, Told};
