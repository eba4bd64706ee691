//! Errors of reading and writing files.

use crate::header::ContentsError;
use std::io;

/// The reason why an observation cannot be read. Damage after the header is no error: the file is
/// read up to there, see [`Ending`](super::Ending).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An I/O error.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// A file of another format.
    #[error(
        "this is not an observation: it does not begin with \"weirobs\"; weir sim --observe FILE writes one"
    )]
    NotAnObservation,
    /// A later version of the format.
    #[error("this is an observation of version {found}, and this weir reads version 1")]
    Version {
        /// The file's first bytes.
        found: String,
    },
    /// A damaged header.
    #[error("the header of the observation is damaged: {reason}; nothing can be read without it")]
    Header {
        /// Description of the damage.
        reason: String,
    },
}

/// The reason why an observation cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An I/O error.
    #[error("writing failed: {0}")]
    Io(#[from] io::Error),
    /// Inconsistent entities and series.
    #[error("{0}")]
    Contents(#[from] ContentsError),
    /// A sample whose length differs from the number of series.
    #[error("a sample has {values} values and there are {series} series; give one for each")]
    SampleLength {
        /// Number of values.
        values: usize,
        /// Number of series.
        series: usize,
    },
    /// A sample that is not later than the previous one.
    #[error(
        "a sample at {at_ns} ns follows one at {before_ns} ns; the times of samples must \
             increase"
    )]
    Backwards {
        /// Its time.
        at_ns: u64,
        /// Time of the previous sample.
        before_ns: u64,
    },
    /// A payload that exceeds the limit of a frame.
    #[error("a header or chunk of {bytes} bytes is more than a frame holds, 256 MiB")]
    TooLarge {
        /// Size of the payload.
        bytes: usize,
    },
}
