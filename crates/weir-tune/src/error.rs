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
    /// A budget for a layout without prices.
    #[error("--budget: the edition of the layout has no prices; leave it out")]
    NoPrices,
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
    /// No volume or stripe is obviously that of a role.
    #[error("{layout}: has no file for the {role} of the load; {}", where_to_add(.role, .exports, *.is_instance))]
    NoPlace {
        /// The layout.
        layout: String,
        /// The role.
        role: &'static str,
        /// The volumes and stripes.
        exports: String,
        /// True if the host is a managed instance, whose files are volumes.
        is_instance: bool,
    },
    /// The volume or stripe of a role is full.
    #[error(
        "{layout}: {export} has no room for the {role} of the load; make it larger or its other files smaller, \
         or add a [[file]] with role = \"{role}\" on another volume"
    )]
    NoRoom {
        /// The layout.
        layout: String,
        /// The role.
        role: &'static str,
        /// The volume or stripe.
        export: String,
    },
    /// The running system cannot be measured.
    #[error("{0}")]
    System(String),
    /// The load does nothing.
    #[error("the load has no requests; give it a rate above 0")]
    NoLoad,
}

/// Returns what to add to a layout for a role.
fn where_to_add(role: &str, exports: &str, is_instance: bool) -> String {
    match is_instance {
        true => {
            format!("add a [[file]] with role = \"{role}\", or leave the {role} out of the load")
        }
        false => format!(
            "add a [[file]] with role = \"{role}\", size and on = NAME, where NAME is one of {exports}"
        ),
    }
}
