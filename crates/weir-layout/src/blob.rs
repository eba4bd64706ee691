//! Page blobs: where they are served and what their volumes are.

use crate::file::WellKnownKey;
use crate::new_volume::NewVolume;
use std::path::PathBuf;
use weir_units::Span;

/// Where clients look for the emulator that `UseDevelopmentStorage=true` means.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:10000";

/// How page blobs are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Host and port.
    pub listen: String,
    /// The host that their volumes are on.
    pub host: String,
    /// For how long a request may wait before it is refused; for ever if not said.
    pub most_wait: Option<Span>,
    /// How many requests of one blob may be under way.
    pub queue: usize,
    /// What each volume is, apart from its name and size.
    pub volume: NewVolume,
    /// Who may use the well-known account.
    pub well_known: WellKnownKey,
    /// Further accounts.
    pub accounts: Vec<BlobAccount>,
    /// Certificate chain and private key, PEM files, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// An account, and where its key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobAccount {
    /// Its name.
    pub name: String,
    /// Its key in Base64, or the environment variable that has it.
    pub key: BlobKey,
}

/// A key in Base64, or the environment variable that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum BlobKey {
    Is(String),
    InEnvironment(String),
}

/// Whether this is a host and a port.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
