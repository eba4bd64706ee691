//! Importers: counters, logs, results and traces of other programs become observations.
//!
//! ```text
//!  bytes --> text: encoding, lines --> a reader for the kind --> sheet: entities, series, values
//!                                                                 |
//!                    several inputs, by their times  -->  merge  -+-> Writer
//! ```
//!
//! A reader finds its columns by their names, in any order, takes units from headers, and lists
//! the columns that it did not use. It streams: its memory does not grow with the input. Missing
//! values stay missing. Impossible input (a counter that goes back, a cut line, a repeated time)
//! is reported in a note.
//!
//! | module | holds |
//! |---|---|
//! | `ahead` | reading and decompression in a thread of its own |
//! | `compressed` | inputs compressed with gzip, xz or zstd |
//! | [`text`] | encodings and lines |
//! | [`number`] | numbers in various notations |
//! | [`table`] | tables: delimited, with columns of fixed width, in Markdown |
//! | `results`, `rows` | result sets of databases, and the choice of their reader |
//! | `values` | consecutive JSON values |
//! | `timing`, `window` | the times of rows, and values in the order of their times |
//! | `in_turn` | a lookup that expects the same names in the same order again |
//! | `watched` | the point at which an input changes to another kind |
//! | [`sheet`] | the entities, series and values that a reader fills |
//! | `presence` | entities that are missing from some samples |
//! | `join` | several sheets side by side in one observation |
//! | [`merge`] | from sheets to an observation |
//! | [`kind`] | the kinds of input, and their detection |
//! | `near` | the kinds nearest to an unknown input |
//! | [`live`] | observation of running systems |
//! | [`linux`] | iostat, vmstat, sar and the like |
//! | [`windows`] | performance counters of Windows |
//! | [`sql`] | SQL Server and Azure SQL |
//! | [`postgres`] | PostgreSQL |
//! | `backup` | logs and histories of backups and restores |
//! | [`mod@bench`] | results of benchmarks |
//! | [`trace`] | block traces |
//! | [`cloud`] | metrics of clouds |

#![forbid(unsafe_code)]

mod ahead;
mod backup;
pub mod bench;
pub mod cloud;
mod compressed;
mod in_turn;
mod join;
pub mod kind;
pub mod linux;
pub mod live;
pub mod merge;
mod near;
pub mod number;
pub mod postgres;
mod presence;
mod results;
mod rows;
pub mod sheet;
pub mod sql;
pub mod table;
pub mod text;
mod timing;
pub mod trace;
mod values;
mod watched;
mod window;
pub mod windows;

pub use backup::BackupMedia;
pub use kind::Kind;
pub use merge::{Input, Options, Summary, import};
pub use near::Nearest;
pub use results::RowSet;
pub(crate) use rows::AskedRows;
pub use sheet::{At, ReadSamples, Sheet};

use std::io;
use thiserror::Error;

/// Why an input cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system does not give it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is of no kind that is known.
    #[error("it is nothing that is known here: {found}; {}", nearest_words(.nearest))]
    UnknownKind {
        /// What is there.
        found: String,
        /// The kinds that it is nearest to, the nearest first.
        nearest: Vec<Nearest>,
    },
    /// It is none of the kind that it is said to be, or that its beginning promises.
    #[error("{}{reason}", place(*.line))]
    Malformed {
        /// Where, if it is in a line.
        line: Option<u64>,
        /// What was expected and what is there.
        reason: String,
    },
    /// Where another kind of input begins: one of them would be lost.
    #[error(
        "line {line}: from here on this looks like {begins}; what comes before was read as {before}: split the file{}",
        because(.reason)
    )]
    TwoKinds {
        /// Where the second begins.
        line: u64,
        /// What it looks like.
        begins: String,
        /// What the first is.
        before: String,
        /// What was wrong with the line, if it could not be read.
        reason: Option<String>,
    },
    /// There is no sample in it.
    #[error("there is nothing in it: {reason}")]
    Empty {
        /// What was expected.
        reason: String,
    },
    /// Inputs that cannot be put side by side.
    #[error("{0}")]
    Times(String),
    /// The observation cannot be written.
    #[error("{0}")]
    Write(#[from] weir_observe::WriteError),
}

fn nearest_words(nearest: &[Nearest]) -> String {
    let all = "`weir observe kinds` lists what is read";
    if nearest.is_empty() {
        return format!("it is near to no kind; {all}");
    }
    let named: Vec<_> = nearest.iter().map(Nearest::to_string).collect();
    format!("nearest are {}; {all}, and --as KIND reads it as one of them", named.join(", "))
}

fn place(line: Option<u64>) -> String {
    line.map_or_else(String::new, |number| format!("line {number}: "))
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"))
}

impl ImportError {
    /// What is wrong with a line.
    pub(crate) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self::Malformed { line: Some(line), reason: reason.into() }
    }

    /// Whether the input is at fault, and not the system.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Write(_) => false,
            _ => true,
        }
    }

    /// What is wrong with the whole.
    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Self::Malformed { line: None, reason: reason.into() }
    }
}
