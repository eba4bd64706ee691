//! Observing real systems while they run.
//!
//! Nothing here asks anybody: a client asks, with the questions that stand here, and hands over
//! what it was told, as the system wrote it. It goes through the same readers as files that are
//! imported, so an observation is the same, live or from files.
//!
//! ```text
//!   client: answer, when --> Feed (a reader's sheet) --> Recorder --> Writer
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `feed` | from what a system said to values |
//! | `recorder` | from values of several systems to an observation |
//! | [`postgres`] | what PostgreSQL is asked |
//!
//! What SQL Server is asked is [`SCRIPT`](crate::import::sql::SCRIPT).

mod feed;
pub mod postgres;
mod recorder;

pub use crate::import::RowSet;
pub use feed::{Answer, Feed};
pub use recorder::{Recorder, Told};
