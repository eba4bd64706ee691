//! Errors of the page blob endpoint.

use crate::fault::Fault;
use crate::journal::JournalError;
use std::io;
use std::path::{Path, PathBuf};

/// Errors of the page blob endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// Listening on the address failed.
    #[error("listening for blob requests at {address}: {source}{}", advice(.source))]
    Listen {
        /// The configured address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// A certificate or key is invalid, or cannot be created.
    #[error("certificate or key {}: {reason}", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// The account's name or key is invalid.
    #[error("{0}")]
    Account(String),
    /// The journal of blobs cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal of blobs is damaged or missing.
    #[error("{}: {reason}", .path.display())]
    Damaged {
        /// The service's folder.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// A system call failed.
    #[error("{context}: {source}")]
    System {
        /// The attempted operation.
        context: String,
        /// The system's error.
        source: io::Error,
    },
    /// Recovery at the start failed.
    #[error("recovery of the blobs failed: {0}")]
    Recover(Fault),
}

impl BlobError {
    /// Returns whether the configuration is at fault, rather than the machine.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Certificate { .. } | Self::Account(_))
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::System { context: path.display().to_string(), source }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process uses this address: stop it, or choose another address"
        }
        io::ErrorKind::PermissionDenied => "; choose a port that this user may use",
        _ => "",
    }
}
