//! The diagnosis of a fleet: one row for each observation in a folder, and a summary of all.
//!
//! ```text
//!   folder --> Fleet --> observation --> diagnosis --> Row --> Journal --> results --+
//!                                                                                    |
//!                              report <-- Summary <-- rows in order <-- merge <------+
//! ```
//!
//! An observation has a number, its place in the order of servers, days and paths. Processes on several
//! machines therefore divide a fleet without talking to each other. Rows are written as they complete,
//! and read again in order. The memory is that of the observations in work, and about a hundred bytes
//! for each name.
//!
//! | module | holds |
//! |---|---|
//! | [`fleet`] | the observations of a folder, and the identity of a fleet |
//! | [`opened`] | an observation to be read |
//! | [`mod@row`] | the diagnosis of an observation as a row |
//! | [`histogram`] | latencies as text that can be added up |
//! | [`journal`] | completed rows of an unfinished fleet |
//! | [`results`] | rows as CSV |
//! | [`merge`] | results of shards, put together |
//! | [`summary`] | the report of all rows |
//! | [`json`] | the report with its rows as JSON |
//! | [`partition`] | names of servers and days in a tree of Parquet |
//! | `table` | observations in Parquet (with the feature `parquet`) |
//! | [`example`] | a synthetic fleet, for tests and benchmarks |
//! | [`error`] | reasons why there is no diagnosis |

#![forbid(unsafe_code)]

pub mod error;
pub mod example;
pub mod fleet;
pub mod histogram;
pub mod journal;
pub mod json;
pub mod merge;
pub mod opened;
pub mod partition;
pub mod results;
pub mod row;
pub mod summary;
#[cfg(feature = "parquet")]
pub mod table;

pub use error::FleetError;
pub use fleet::{Fleet, Options};
pub use journal::Journal;
pub use merge::Merged;
pub use results::Results;
pub use row::Row;
pub use summary::Summary;
