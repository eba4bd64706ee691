//! What is wrong with a need, or with what it is to be met from.

use weir_catalog::CatalogError;
use weir_layout::LayoutError;
use weir_sim::OltpSimError;
use weir_workload::backup::BackupError;

/// The one error of this crate. That a need cannot be met is no error but an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A need file that is not TOML, or has a key or a value that is not known.
    #[error("{file}{}: {message}", .at.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default())]
    Syntax {
        /// The file.
        file: String,
        /// Line and column, both from 1.
        at: Option<(usize, usize)>,
        /// What is wrong there.
        message: String,
    },
    /// A need that contradicts itself or says too little.
    #[error("{what}: {reason}")]
    Need {
        /// The role or key.
        what: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A name or price that is not in the catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A layout that cannot be resolved.
    #[error(transparent)]
    Layout(Box<LayoutError>),
    /// A backup that does not fit its layout.
    #[error("planning the backup: {0}")]
    Backup(#[from] BackupError),
    /// A database beside the backup that does not fit its layout.
    #[error("{0}")]
    Simulation(Box<OltpSimError>),
    /// The edition has nothing of what may be used.
    #[error("{edition} has {what}")]
    Nothing {
        /// The edition.
        edition: String,
        /// What it lacks, and what it has.
        what: String,
    },
}

impl From<LayoutError> for PlanError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(Box::new(error))
    }
}

impl From<OltpSimError> for PlanError {
    fn from(error: OltpSimError) -> Self {
        Self::Simulation(Box::new(error))
    }
}

impl PlanError {
    pub(crate) fn need(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Need { what: what.into(), reason: reason.into() }
    }
}
