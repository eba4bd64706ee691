//! Errors of the planner.

use weir_catalog::CatalogError;
use weir_layout::LayoutError;
use weir_pipeline::BackupError;
use weir_sim::OltpSimError;

/// The error type of this crate. An infeasible need is an answer, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A need file that is not TOML, or has an unknown key or value.
    #[error("{file}{}: {message}", .at.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default())]
    Syntax {
        /// The file.
        file: String,
        /// Line and column, both from 1.
        at: Option<(usize, usize)>,
        /// The error.
        message: String,
    },
    /// A contradictory or incomplete need.
    #[error("{what}: {reason}")]
    Need {
        /// The role or key.
        what: String,
        /// The error and its remedy.
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
    /// The edition lacks what the question asks for.
    #[error("{edition} has {what}")]
    Nothing {
        /// The edition.
        edition: String,
        /// The missing item, and the items that it has.
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
