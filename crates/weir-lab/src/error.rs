//! Errors that prevent a lab from running.

use weir_layout::LayoutError;
use weir_oltp::OltpError;
use weir_pipeline::BackupError;
use weir_runner::RunnerError;
use weir_server::ServerError;
use weir_sim::{OltpSimError, SimError};
use weir_units::Bytes;
use weir_workload::{FioError, PlaceError};

/// An error that prevents a lab from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// An unknown lab.
    #[error("there is no lab {name:?}{}; there are: {}", did_you_mean(.near), .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Similar names.
        near: Vec<String>,
        /// The known names.
        known: Vec<String>,
    },
    /// The file size for wall time is smaller than one block.
    #[error("--size {size}: lab {lab:?} has blocks of {least}; give at least that")]
    TooSmall {
        /// The lab.
        lab: String,
        /// The requested size.
        size: Bytes,
        /// The smallest size that works.
        least: Bytes,
    },
    /// Invalid files of a lab.
    #[error("lab {lab}: {reason}")]
    Lab {
        /// The lab.
        lab: String,
        /// The error.
        reason: String,
    },
    /// The layout of a lab is invalid.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// The job files of a lab are invalid.
    #[error("{0}")]
    Jobs(#[from] FioError),
    /// The databases of a lab are invalid.
    #[error("{0}")]
    Oltp(#[from] OltpError),
    /// The backups of a lab are invalid.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// The jobs of a lab do not fit its layout.
    #[error("{0}")]
    Place(#[from] PlaceError),
    /// The need of a lab cannot be planned.
    #[error("{0}")]
    Plan(Box<weir_plan::PlanError>),
    /// The layout of a lab cannot be tuned.
    #[error("{0}")]
    Tune(Box<weir_tune::TuneError>),
    /// The simulation failed.
    #[error("{0}")]
    Sim(#[from] SimError),
    /// The server failed.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// The runner failed.
    #[error("{0}")]
    Runner(#[from] RunnerError),
    /// A backup in wall time failed.
    #[error("{0}")]
    Archive(Box<weir_backup::BackupError>),
    /// A connection of a backup failed.
    #[error("{0}")]
    Client(#[from] weir_client::ClientError),
    /// A source of a backup could not be filled.
    #[error("cannot write to {export}: {errno}")]
    Fill {
        /// The export.
        export: String,
        /// The reason.
        errno: String,
    },
    /// The run was interrupted.
    #[error("interrupted; nothing is left running")]
    Interrupted,
    /// A temporary folder could not be created.
    #[error("cannot create a temporary folder: {0}")]
    Temp(std::io::Error),
}

impl LabError {
    /// Returns whether the request is wrong, rather than its execution.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::TooSmall { .. }
                | Self::Runner(RunnerError::NotWithFio { .. })
        )
    }
}

fn did_you_mean(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

impl From<OltpSimError> for LabError {
    fn from(error: OltpSimError) -> Self {
        match error {
            OltpSimError::Database(error) => Self::Oltp(error),
            OltpSimError::Backup(error) => Self::Backup(error),
        }
    }
}

impl From<weir_tune::TuneError> for LabError {
    fn from(error: weir_tune::TuneError) -> Self {
        Self::Tune(Box::new(error))
    }
}

impl From<weir_plan::PlanError> for LabError {
    fn from(error: weir_plan::PlanError) -> Self {
        Self::Plan(Box::new(error))
    }
}
