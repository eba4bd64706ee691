//! Databases as sans-IO workloads.
//!
//! A [`Database`] is a closed loop of users over a buffer pool, a log and checkpoints. The driver polls
//! I/O ([`Database::poll_io`]), reports completions ([`Database::handle_completion`]) and waits for
//! deadlines. The same state machine therefore runs in virtual and in wall time.
//!
//! ```text
//!   think --> compute --> pages --> commit --> think
//!                           |          |
//!                           v          v
//!                     buffer pool     log   (group commit)
//!                           |
//!                       checkpoint          (adjacent dirty pages in one write)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`description`] | the file `oltp.toml` |
//! | [`error`], `limits` | its faults, and limits of its values |
//! | [`model`] | the checked numbers of a run |
//! | [`database`] | the state machine |
//! | [`waits`] | waits of transactions, with SQL Server's names |
//! | `pages` | the buffer pool |
//! | [`placement`] | the placement of pages in files |
//! | `space` | space for new pages, and growth of files |
//! | `table` | a value for each page |
//! | [`log`] | the log writer, and the layout of a log file |
//! | [`tally`] | the results of a run |
//! | [`files`] | the I/O of a file |
//! | `unhardened` | pages that wait for the log |
//! | `checkpoint` | writes of dirty pages |
//! | `cores` | the schedulers |
//! | `tempdb` | row versions and temporary tables |

#![forbid(unsafe_code)]

mod checkpoint;
mod cores;
pub mod database;
pub mod description;
pub mod error;
pub mod files;
mod limits;
pub mod log;
pub mod model;
mod pages;
pub mod placement;
mod space;
mod table;
pub mod tally;
mod tempdb;
mod unhardened;
pub mod waits;

pub use database::{Commit, Content, Counters, Database, FileGrowth, FileIo, FileOp, RedoPoint};
pub use description::{Description, FileAbout};
pub use error::{OltpError, OltpFault};
pub use files::{FileTally, OpTally};
pub use model::Model;
pub use placement::Placement;
pub use table::Table;
pub use tally::LoadTally;
pub use waits::Wait;
