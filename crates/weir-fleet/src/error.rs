//! Reasons why there is no diagnosis of a fleet, or no table.

use std::io;
use std::path::PathBuf;
use weir_sweep::SweepError;

/// A reason why there is no diagnosis of a fleet, or no table of an observation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A folder without observations.
    #[error(
        "{}: there is no observation (*.weirobs, or day=*/*.parquet); weir observe export writes Parquet",
        .0.display()
    )]
    Empty(PathBuf),
    /// A fleet that cannot be diagnosed as it is.
    #[error("{}: {reason}", .path.display())]
    Fleet {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A shard that has no observations.
    #[error("shard {shard}: the fleet has {count} observations only; use at most as many shards")]
    EmptyShard {
        /// The shard.
        shard: String,
        /// Number of observations.
        count: u64,
    },
    /// A file that holds no results, or damaged ones.
    #[error("{file}: {reason}")]
    Results {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// Results that do not add up to a fleet.
    #[error("the results cannot be merged: {0}")]
    Merge(String),
    /// A table that is no observation.
    #[error("{}: {reason}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An input that cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A journal that does not continue this fleet.
    #[error("{0}")]
    Journal(#[from] SweepError),
}

impl FleetError {
    /// Returns whether the input is wrong; otherwise something failed.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_input(),
            Self::Io { .. } => false,
            _ => true,
        }
    }

    /// Describes a failure to read the input `path`.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }

    /// Describes a failure to write `path`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Describes a table that cannot be read.
    #[cfg(feature = "parquet")]
    pub(crate) fn table(path: impl Into<PathBuf>) -> impl FnOnce(weir_parquet::TableError) -> Self {
        let path = path.into();
        move |error| match error {
            weir_parquet::TableError::Io(source) => Self::Read { path, source },
            error => Self::Table { path, reason: error.to_string() },
        }
    }
}
