//! Reasons why a server ended.

use std::io;
use std::path::PathBuf;

/// A reason why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A folder that cannot be used.
    #[error("--root {}: {reason}", .path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A failure of the system.
    #[error("{context}: {source}")]
    System {
        /// The activity.
        context: &'static str,
        /// The failure.
        source: io::Error,
    },
    /// A failure of the protocol.
    #[error("the client did not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

impl ServeError {
    /// Returns whether the settings are wrong.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Root { .. })
    }
}
