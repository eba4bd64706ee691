//! What can go wrong with a file.

use crate::header::ContentsError;
use std::io;

/// Why an observation cannot be read. What is wrong behind the header is no error: what
/// is before it is read, see [`Ending`](super::Ending).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system says no.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// Something else.
    #[error(
        "this is no observation: it does not begin with \"weirobs\"; weir sim --observe FILE writes one"
    )]
    NotAnObservation,
    /// One of another version.
    #[error("this is an observation of version {found}, and this weir reads version 1")]
    Version {
        /// What it says.
        found: String,
    },
    /// The header is not whole.
    #[error("the header of the observation is damaged: {reason}; nothing can be read without it")]
    Header {
        /// What is wrong.
        reason: String,
    },
}

/// Why an observation cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system says no.
    #[error("writing failed: {0}")]
    Io(#[from] io::Error),
    /// Entities and series that do not go together.
    #[error("{0}")]
    Contents(#[from] ContentsError),
    /// A sample of another length than there are series.
    #[error("a sample has {values} values and there are {series} series; give one for each")]
    SampleLength {
        /// Values given.
        values: usize,
        /// Series declared.
        series: usize,
    },
    /// A sample that is not later than the one before.
    #[error("a sample at {at_ns} ns follows one at {before_ns} ns; samples go forward in time")]
    Backwards {
        /// Its time.
        at_ns: u64,
        /// The time of the one before.
        before_ns: u64,
    },
    /// More than a frame holds.
    #[error("a header or chunk of {bytes} bytes is more than a frame holds, 256 MiB")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
}
