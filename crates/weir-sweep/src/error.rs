//! Reasons why there is no sweep.

use std::io;
use std::path::PathBuf;

/// A reason why there is no sweep, or no results of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A sweep file with wrong keys.
    #[error("{file}{}: {reason}", at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}")))]
    File {
        /// The sweep file.
        file: String,
        /// Line and column, both from 1.
        at: Option<(usize, usize)>,
        /// The reason.
        reason: String,
    },
    /// A parameter that is wrong or changes nothing.
    #[error("{file}: parameter {parameter:?}: {reason}")]
    Parameter {
        /// The sweep file.
        file: String,
        /// The parameter.
        parameter: String,
        /// The reason.
        reason: String,
    },
    /// A value that a file does not accept.
    #[error("{file}: parameter {parameter:?}, value {value:?}: {reason}")]
    Value {
        /// The sweep file.
        file: String,
        /// The parameter.
        parameter: String,
        /// The value.
        value: String,
        /// The reason.
        reason: String,
    },
    /// A layout or workload that is wrong before any parameter changes it.
    #[error("{0}")]
    Base(String),
    /// A trace that cannot be read, or was changed during the sweep.
    #[error("{0}; completed points are kept")]
    Trace(String),
    /// A sweep without a valid point.
    #[error("{file}: none of the {points} points can be simulated; point {point}: {reason}")]
    NoValidPoint {
        /// The sweep file.
        file: String,
        /// Number of points.
        points: u64,
        /// The first of them.
        point: u64,
        /// Its reason.
        reason: String,
    },
    /// A shard that has no points.
    #[error("shard {shard}: the sweep has {points} points only; use at most as many shards")]
    EmptyShard {
        /// The shard.
        shard: String,
        /// Number of points.
        points: u64,
    },
    /// A file that holds no results of a sweep, or damaged ones.
    #[error("{file}: {reason}")]
    Results {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A journal that does not continue this sweep.
    #[error("{}: {reason}", .path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Shards that are no whole.
    #[error("the shards cannot be merged: {0}")]
    Merge(String),
    /// A column that does not exist or does not fit.
    #[error("{what} {name:?}: {reason}{}", weir_units::did_you_mean(.near))]
    Column {
        /// The option, for example `--of`.
        what: &'static str,
        /// The name.
        name: String,
        /// The reason.
        reason: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// A file that cannot be written or read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl SweepError {
    /// Returns whether the input is wrong; otherwise something failed.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }

    /// Describes a failure to write or read `path`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
