//! Why a lab cannot be run.

use weir_layout::LayoutError;
use weir_runner::RunnerError;
use weir_server::ServerError;
use weir_sim::{OltpSimError, SimError};
use weir_units::Bytes;
use weir_workload::backup::BackupError;
use weir_workload::oltp::OltpError;
use weir_workload::{FioError, PlaceError};

/// Why a lab cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No such lab.
    #[error("there is no lab {name:?}{}; there are: {}", did_you_mean(.near), .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// What may have been meant.
        near: Vec<String>,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Files in which not one block has room.
    #[error("--size {size}: lab {lab:?} has blocks of {least}; give at least as much")]
    TooSmall {
        /// The lab.
        lab: String,
        /// The size that was asked for.
        size: Bytes,
        /// The least that does.
        least: Bytes,
    },
    /// A lab's own files are wrong.
    #[error("lab {lab}: {reason}")]
    Lab {
        /// The lab.
        lab: String,
        /// What is wrong.
        reason: String,
    },
    /// Its layout.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// Its job files.
    #[error("{0}")]
    Jobs(#[from] FioError),
    /// Its databases.
    #[error("{0}")]
    Oltp(#[from] OltpError),
    /// Its backups.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// Where its jobs go.
    #[error("{0}")]
    Place(#[from] PlaceError),
    /// What it plans.
    #[error("{0}")]
    Plan(Box<weir_plan::PlanError>),
    /// The simulation.
    #[error("{0}")]
    Sim(#[from] SimError),
    /// The server.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// The runner.
    #[error("{0}")]
    Runner(#[from] RunnerError),
    /// A backup in wall time.
    #[error("{0}")]
    Archive(Box<weir_backup::BackupError>),
    /// A connection of a backup.
    #[error("{0}")]
    Client(#[from] weir_client::ClientError),
    /// A source of a backup cannot be filled.
    #[error("cannot write to {export}: {errno}")]
    Fill {
        /// The export.
        export: String,
        /// The reason.
        errno: String,
    },
    /// Someone wanted it to end.
    #[error("interrupted; nothing is left running")]
    Interrupted,
    /// A temporary folder cannot be made.
    #[error("cannot make a temporary folder: {0}")]
    Temp(std::io::Error),
}

impl LabError {
    /// Whether what was asked for is wrong, and not what happened while it was done.
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

impl From<weir_plan::PlanError> for LabError {
    fn from(error: weir_plan::PlanError) -> Self {
        Self::Plan(Box::new(error))
    }
}
