//! Reasons why a layout cannot be measured.

use weir_catalog::CatalogError;
use weir_layout::LayoutError;
use weir_plan::verify::VerifyError;
use weir_sim::{OltpSimError, SimError};
use weir_workload::PlaceError;

/// A layout or load that cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The layout is invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The edition or region is unknown.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The need does not run on the layout.
    #[error(transparent)]
    Need(#[from] VerifyError),
    /// A job does not fit the layout.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The jobs cannot run.
    #[error(transparent)]
    Jobs(#[from] SimError),
    /// The databases or backups do not fit the layout.
    #[error(transparent)]
    Databases(#[from] OltpSimError),
    /// The goal is about a metric that the load does not have.
    #[error("--goal {metric}: {reason}")]
    Goal {
        /// The metric.
        metric: &'static str,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// The load does nothing.
    #[error("the load has no requests; give it a rate above 0")]
    NoLoad,
}
