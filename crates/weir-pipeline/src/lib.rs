//! Backups as sans-IO workloads: the pipeline of SQL Server's BACKUP on the places of a layout.
//!
//! | module | holds |
//! |---|---|
//! | [`description`] | `backup.toml`, read and placed on a layout |
//! | [`buffers`] | the number of buffers |
//! | [`internals`] | the lines of SQL Server's log under trace flag 3213 and others |
//! | [`encodings`] | encodings in virtual time |
//! | [`pipeline`] | the state machine: readers, buffers, compression and writers |
//! | [`tally`] | counts of a backup, for both clocks |
//! | [`error`] | faults of a description |

#![forbid(unsafe_code)]

pub mod buffers;
pub mod description;
pub mod encodings;
pub mod error;
pub mod internals;
pub mod pipeline;
pub mod tally;
pub mod text;

pub use buffers::Buffers;
pub use description::{Description, PlaceAbout};
pub use encodings::Encodings;
pub use error::{BackupError, BackupFault};
pub use internals::Internals;
pub use pipeline::{Encode, Pipeline, Plan, Source, Totals, Transfer, printed_rate};
pub use tally::BackupTally;
pub use text::{CompressionText, DescriptionText};
