//! A database engine as its storage sees it.
//!
//! A [`Database`] is a closed loop of users over a buffer pool, a log and
//! checkpoints. Like every workload it is sans-IO: it asks for I/O
//! ([`Database::poll_io`]), is told of completions
//! ([`Database::handle_completion`]), and says when it wants to be called next. So
//! the same one runs in virtual and in wall time.
//!
//! ```text
//!   think --> compute --> pages --> commit --> think
//!                           |          |
//!                           v          v
//!                     buffer pool     log   (group commit)
//!                           |
//!                       checkpoint          (dirty neighbours in one write)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`description`] | the file `oltp.toml` |
//! | [`error`] | what can be wrong with it |
//! | [`model`] | what a run is made from |
//! | [`database`] | the state machine |
//! | [`waits`] | what transactions wait for, by SQL Server's names |
//! | `pages` | the buffer pool |
//! | [`placement`] | which page is where in which file |
//! | `space` | where new pages go, and which file grows |
//! | `table` | a value for each page |
//! | [`log`] | the log writer, and what a log file looks like |
//! | [`tally`] | what a run has come to |
//! | [`files`] | what a file went through |
//! | `unhardened` | pages that must wait for the log |
//! | `checkpoint` | the sweeps that write what is dirty |
//! | `cores` | the schedulers |
//! | `tempdb` | row versions and temporary tables |

mod checkpoint;
mod cores;
pub mod database;
pub mod description;
pub mod error;
pub mod files;
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
