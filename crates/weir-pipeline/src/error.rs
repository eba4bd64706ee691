//! Faults of a backup's description. A message names the position, the value, and the remedy.

use std::fmt;
use weir_units::Bytes;

/// The reason that a description of a backup cannot be used. Printed as
/// `backup.toml:3:1: stripes = 0: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupError {
    /// The name that the caller gave.
    pub file: String,
    /// Line and column, both from 1; columns count characters.
    pub at: Option<(usize, usize)>,
    /// The fault.
    pub fault: Box<BackupFault>,
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for BackupError {}

/// A fault of a description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackupFault {
    /// Invalid TOML, an unknown key, or a value of the wrong type.
    #[error("{message}")]
    Syntax {
        /// The reader's message.
        message: String,
    },
    /// A number outside its range.
    #[error("{key} = {value}: give {allowed}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The values it may have.
        allowed: String,
    },
    /// A transfer that is not in whole units.
    #[error("max_transfer_size = {value} is not a multiple of {unit}")]
    Transfer {
        /// The size.
        value: Bytes,
        /// The unit of transfers.
        unit: Bytes,
    },
    /// No source or no target.
    #[error("{key} = []: name files, volumes or stripes of the layout")]
    Empty {
        /// `sources` or `to`.
        key: &'static str,
    },
    /// A place that is not in the layout.
    #[error(
        "{key} = {name:?} is not in the layout{}; there are: {known}",
        weir_units::did_you_mean(near)
    )]
    Missing {
        /// `sources` or `to`.
        key: &'static str,
        /// The name.
        name: String,
        /// The closest known name.
        near: Option<String>,
        /// All names.
        known: String,
    },
    /// A place that is named twice.
    #[error("{key}: {name:?} is named twice; for several stripes on one target, give stripes")]
    Twice {
        /// `sources` or `to`.
        key: &'static str,
        /// The name.
        name: String,
    },
    /// A place that would be overwritten while it is read.
    #[error("{name:?} is a source and a target; write to another place")]
    SourceIsTarget {
        /// The place.
        name: String,
    },
    /// A target without a stripe.
    #[error("{name:?} gets none of the {stripes} stripes; give more stripes or fewer targets")]
    Unused {
        /// The target.
        name: String,
        /// The stripes.
        stripes: usize,
    },
    /// A size larger than the sources.
    #[error("size = {size} must be more than zero and at most the size of the sources, {sources}")]
    Size {
        /// The stated size.
        size: Bytes,
        /// The sources' size.
        sources: Bytes,
    },
    /// A target without room.
    #[error(
        "{name:?} of {size} is too small for its stripes, which may take {needs}; name more targets or a larger one"
    )]
    Room {
        /// The target.
        name: String,
        /// Its size.
        size: Bytes,
        /// The bytes that its stripes may take.
        needs: Bytes,
    },
}

impl BackupFault {
    /// Makes the fault of an unknown name.
    pub(crate) fn missing<'a>(
        key: &'static str,
        name: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let near = weir_units::nearest(name, names.clone()).map(str::to_owned);
        let known = names.collect::<Vec<_>>().join(", ");
        Self::Missing { key, name: name.to_owned(), near, known }
    }
}
