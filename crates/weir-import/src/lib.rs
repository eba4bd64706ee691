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

/// The reason why an input cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The input is of no known kind.
    #[error("unknown kind of input: {found}; {}", nearest_words(.nearest))]
    UnknownKind {
        /// Description of the input.
        found: String,
        /// The nearest kinds, the nearest first.
        nearest: Vec<Nearest>,
    },
    /// The input does not fit its kind.
    #[error("{}{reason}", place(*.line))]
    Malformed {
        /// The line at fault, if it is known.
        line: Option<u64>,
        /// Expected and actual content.
        reason: String,
    },
    /// Another kind of input begins here; one of the two would be lost.
    #[error(
        "line {line}: from here on this looks like {begins}; the part before was read as {before}: split the file{}",
        because(.reason)
    )]
    TwoKinds {
        /// The first line of the second kind.
        line: u64,
        /// Kind of the second part.
        begins: String,
        /// Kind of the first part.
        before: String,
        /// The reason why the line cannot be read, if there is one.
        reason: Option<String>,
    },
    /// The input has no samples.
    #[error("it has no samples: {reason}")]
    Empty {
        /// Expected content.
        reason: String,
    },
    /// Inputs without a common time.
    #[error("{0}")]
    Times(String),
    /// The observation cannot be written.
    #[error("{0}")]
    Write(#[from] weir_observe::WriteError),
}

fn nearest_words(nearest: &[Nearest]) -> String {
    let all = "`weir observe kinds` lists what is read";
    if nearest.is_empty() {
        return format!("it resembles no kind; {all}");
    }
    let named: Vec<_> = nearest.iter().map(Nearest::to_string).collect();
    format!(
        "the nearest kinds are {}; {all}, and --as KIND reads it as one of them",
        named.join(", ")
    )
}

fn place(line: Option<u64>) -> String {
    line.map_or_else(String::new, |number| format!("line {number}: "))
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"))
}

impl ImportError {
    /// Creates an error in a line.
    pub(crate) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self::Malformed { line: Some(line), reason: reason.into() }
    }

    /// Returns whether the input is at fault, and not the system.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Write(_) => false,
            _ => true,
        }
    }

    /// Creates an error in the whole input.
    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Self::Malformed { line: None, reason: reason.into() }
    }
}
