//! What can go wrong, as the user sees it, and its exit code.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use weir_catalog::CatalogError;
use weir_lab::LabError;
use weir_layout::LayoutError;
use weir_server::ServerError;
use weir_sim::SimError;
use weir_workload::{FioError, PlaceError};

/// The answer is no.
pub(crate) const NO: u8 = 1;
/// The input or the usage is wrong.
pub(crate) const USAGE: u8 = 2;
/// Something failed while running.
pub(crate) const FAILED: u8 = 3;

/// An error with its exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no {what}: it is not text in UTF-8", .path.display())]
    NotText { path: PathBuf, what: &'static str },
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    #[error("{0}")]
    Server(#[from] ServerError),
    #[error("{0}")]
    Jobs(#[from] FioError),
    #[error("{0}")]
    Place(#[from] PlaceError),
    #[error("{0}")]
    Sim(#[from] SimError),
    #[error("{0}")]
    Lab(#[from] LabError),
    /// A sentence of a check of the arguments.
    #[error("{0}")]
    Refused(String),
    #[error("{context}: {source}")]
    System { context: &'static str, source: io::Error },
}

impl CliError {
    /// The message, with the causes that it does not say itself.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = error.source();
        }
        text
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Read { .. }
            | Self::NotText { .. }
            | Self::Layout(_)
            | Self::Catalog(_)
            | Self::Jobs(_)
            | Self::Place(_)
            | Self::Sim(_)
            | Self::Refused(_) => USAGE,
            Self::Lab(error) if error.is_usage() => USAGE,
            Self::Lab(_) => FAILED,
            Self::Server(error) if error.is_input() => USAGE,
            Self::Server(_) | Self::System { .. } => FAILED,
        }
    }
}
