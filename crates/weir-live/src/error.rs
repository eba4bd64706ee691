//! Errors of polling. No message contains a login or a password.

use std::io;
use std::path::PathBuf;
use weir_import::ImportError;
use weir_observe::WriteError;

/// A system that cannot be polled, or an observation that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The URL, its options or the credentials are wrong.
    #[error("--{system}: {reason}")]
    Input {
        /// The option that names the system.
        system: &'static str,
        /// The fault and its remedy.
        reason: String,
    },
    /// A file with a password or a token cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file with a password or a token has an empty first line.
    #[error("{}: its first line is empty", .path.display())]
    EmptySecret {
        /// The file.
        path: PathBuf,
    },
    /// A system refuses to answer, and trying again is of no use.
    #[error("{system}: {reason}")]
    Refused {
        /// The name of the system.
        system: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// A system does not answer.
    #[error("{system}: {reason}")]
    Lost {
        /// The name of the system.
        system: String,
        /// The cause.
        reason: String,
    },
    /// An answer cannot be read.
    #[error("{system}: {source}")]
    Answer {
        /// The name of the system.
        system: String,
        /// The cause.
        source: ImportError,
    },
    /// The observation cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A client cannot be started.
    #[error("starting the client: {0}")]
    Client(#[source] io::Error),
}

impl LiveError {
    /// True if the user's input is at fault, and not the system.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Input { .. }
            | Self::Secret { .. }
            | Self::EmptySecret { .. }
            | Self::Refused { .. } => true,
            Self::Answer { source, .. } => source.is_input(),
            Self::Lost { .. } | Self::Write(_) | Self::Client(_) => false,
        }
    }
}
