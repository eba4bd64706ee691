//! Errors as the user sees them, and their exit codes.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use weir_blob::BlobError;
use weir_catalog::CatalogError;
use weir_compare::CompareError;
use weir_diagnose::DiagnoseError;
use weir_export::ExportError;
use weir_fleet::FleetError;
use weir_import::ImportError;
use weir_import::recorded::RecordedError;
use weir_lab::LabError;
use weir_layout::LayoutError;
use weir_live::LiveError;
use weir_mount::MountError;
use weir_observe::{ReadError, WriteError};
use weir_oltp::OltpError;
use weir_pipeline::BackupError;
use weir_plan::PlanError;
use weir_plan::proof::ProofError;
use weir_plan::verify::VerifyError;
use weir_report::causes::add_causes;
use weir_report::chart::DrawError;
use weir_runner::{OltpRunError, RunnerError};
use weir_server::ServerError;
use weir_sim::{OltpSimError, ReplaySimError, SimError};
use weir_sweep::SweepError;
use weir_top::TopError;
use weir_trace::TraceError;
use weir_tune::TuneError;
use weir_web::WebError;
use weir_workload::{FioError, PlaceError};

/// Exit code of a negative answer.
pub(crate) const NO: u8 = 1;
/// Exit code of wrong input or usage.
pub(crate) const USAGE: u8 = 2;
/// Exit code of a failure while running.
pub(crate) const FAILED: u8 = 3;

/// An error with its exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read {} as a {what}: it is not UTF-8 text", .path.display())]
    NotText { path: PathBuf, what: &'static str },
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    /// An orderly end after a signal.
    #[error("interrupted; nothing is left running")]
    Ended(i32),
    #[error("{0}")]
    Server(#[from] ServerError),
    #[error("{0}")]
    Blob(#[from] BlobError),
    #[error("{0}")]
    Mount(#[from] MountError),
    #[error("{0}")]
    Web(#[from] WebError),
    #[error("{0}")]
    Top(#[from] TopError),
    #[error("{0}")]
    Jobs(#[from] FioError),
    #[error("{0}")]
    Oltp(#[from] OltpError),
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// A backup that cannot be made, read or restored.
    #[error("{0}")]
    Stripes(#[from] weir_backup::BackupError),
    #[error("{0}")]
    Place(#[from] PlaceError),
    #[error("{0}")]
    Sim(#[from] SimError),
    #[error("{0}")]
    Replay(#[from] ReplaySimError),
    /// A trace that cannot be read further.
    #[error("{0}")]
    Replayed(TraceError),
    #[error("{}: {source}", .path.display())]
    Trace { path: PathBuf, source: weir_trace::ReadError },
    #[error("cannot record to {}: {source}", .path.display())]
    Record { path: PathBuf, source: weir_trace::WriteError },
    #[error("{0}")]
    Run(#[from] RunnerError),
    #[error("{0}")]
    Lab(#[from] LabError),
    #[error("{}: {source}", .path.display())]
    Observation { path: PathBuf, source: ReadError },
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error("{name}: {source}")]
    Import { name: String, source: ImportError },
    #[error("cannot observe to {}: {source}", .path.display())]
    Observe { path: PathBuf, source: WriteError },
    #[error("cannot write {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write {}: the folder {} does not exist; make it first", .path.display(), .folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("{0}")]
    Diagnose(DiagnoseError),
    #[error("{0}")]
    Compare(#[from] CompareError),
    #[cfg(feature = "mcp")]
    #[error("{0}")]
    Mcp(weir_mcp::ServeError),
    #[error("{0}")]
    Plan(#[from] PlanError),
    #[error("{0}")]
    Tune(Box<TuneError>),
    #[error("{0}")]
    Sweep(#[from] SweepError),
    #[error("{0}")]
    Fleet(#[from] FleetError),
    #[cfg(not(feature = "parquet"))]
    #[error(
        "{}: this build of weir lacks Parquet; build it with: cargo build --release --features parquet",
        .path.display()
    )]
    NoParquet { path: PathBuf },
    #[cfg(feature = "parquet")]
    #[error("cannot write {}: {source}", .path.display())]
    Parquet { path: PathBuf, source: weir_parquet::TableError },
    #[error("{0}")]
    Export(#[from] ExportError),
    #[error("{0}")]
    Verify(#[from] VerifyError),
    #[error("{0}")]
    Draw(#[from] DrawError),
    /// Arguments that contradict each other or the input.
    #[error("{0}")]
    Refused(String),
    #[error("{context}: {source}")]
    System { context: &'static str, source: io::Error },
    #[error("{context}: {source}")]
    Folder { context: String, source: io::Error },
}

impl From<TuneError> for CliError {
    fn from(error: TuneError) -> Self {
        Self::Tune(Box::new(error))
    }
}

impl From<OltpSimError> for CliError {
    fn from(error: OltpSimError) -> Self {
        match error {
            OltpSimError::Database(error) => Self::Oltp(error),
            OltpSimError::Backup(error) => Self::Backup(error),
        }
    }
}

impl From<ProofError> for CliError {
    fn from(error: ProofError) -> Self {
        match error {
            ProofError::Plan(error) => Self::Plan(error),
            ProofError::Verify(error) => Self::Verify(error),
        }
    }
}

impl From<OltpRunError> for CliError {
    fn from(error: OltpRunError) -> Self {
        match error {
            OltpRunError::Description(error) => Self::Oltp(error),
            OltpRunError::Runner(error) => Self::Run(error),
        }
    }
}

impl From<RecordedError> for CliError {
    fn from(error: RecordedError) -> Self {
        match error {
            RecordedError::Read { path, source } => Self::Read { path, source },
            RecordedError::Trace { path, source } => Self::Trace { path, source },
            RecordedError::Import { name, source } => Self::Import { name, source },
        }
    }
}

impl CliError {
    /// Describes a failed write to `path`. A file is often written under a temporary name first,
    /// which would mean nothing to the user.
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let missing = folder.filter(|own| source.kind() == ErrorKind::NotFound && !own.exists());
        if let Some(folder) = missing.map(Path::to_owned) {
            return Self::NoFolder { path, folder };
        }
        // tempfile appends its own path to the message.
        let text = source.to_string();
        let source = match text.split_once(" at path \"") {
            Some((what, _)) => io::Error::new(source.kind(), what),
            None => source,
        };
        Self::Write { path, source }
    }

    /// Returns the message, with the causes that it does not contain.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        if let Self::Mount(error) = self
            && let Some(hint) = error.hint()
        {
            text = format!("{text}; {hint}");
        }
        add_causes(text, self)
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Tune(error) if matches!(**error, TuneError::System(_)) => FAILED,
            Self::Read { .. }
            | Self::NotText { .. }
            | Self::Layout(_)
            | Self::Catalog(_)
            | Self::Jobs(_)
            | Self::Oltp(_)
            | Self::Backup(_)
            | Self::Place(_)
            | Self::Sim(_)
            | Self::Replay(_)
            | Self::Replayed(_)
            | Self::Trace { .. }
            | Self::Observation { .. }
            | Self::Diagnose(_)
            | Self::Compare(_)
            | Self::Plan(_)
            | Self::Tune(_)
            | Self::Export(_)
            | Self::Verify(_)
            | Self::Web(WebError::Remote { .. })
            | Self::Refused(_) => USAGE,
            Self::Import { source, .. } if source.is_input() => USAGE,
            Self::Import { .. } => FAILED,
            Self::Record { .. }
            | Self::Observe { .. }
            | Self::Write { .. }
            | Self::NoFolder { .. }
            | Self::Draw(_) => FAILED,
            #[cfg(feature = "mcp")]
            Self::Mcp(error) if error.is_input() => USAGE,
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => FAILED,
            #[cfg(not(feature = "parquet"))]
            Self::NoParquet { .. } => USAGE,
            Self::Sweep(error) if error.is_input() => USAGE,
            Self::Sweep(_) => FAILED,
            Self::Fleet(error) if error.is_input() => USAGE,
            Self::Fleet(_) => FAILED,
            #[cfg(feature = "parquet")]
            Self::Parquet { .. } => FAILED,
            Self::Live(error) if error.is_input() => USAGE,
            Self::Live(_) => FAILED,
            Self::Stripes(error) if error.is_verdict() => NO,
            Self::Stripes(error) if error.is_input() => USAGE,
            Self::Stripes(_) => FAILED,
            Self::Run(error) if error.is_verdict() => NO,
            Self::Run(error) if error.is_input() => USAGE,
            Self::Run(_) => FAILED,
            // The convention of shells for a process that a signal ended.
            Self::Ended(signal) => u8::try_from(128 + signal).unwrap_or(FAILED),
            Self::Lab(error) if error.is_usage() => USAGE,
            Self::Lab(_) => FAILED,
            Self::Server(error) | Self::Top(TopError::Server(error)) if error.is_input() => USAGE,
            Self::Blob(error) if error.is_input() => USAGE,
            Self::Mount(error) if error.is_input() => USAGE,
            Self::Server(_)
            | Self::Mount(_)
            | Self::Blob(_)
            | Self::Web(_)
            | Self::Top(_)
            | Self::System { .. }
            | Self::Folder { .. } => FAILED,
        }
    }
}
