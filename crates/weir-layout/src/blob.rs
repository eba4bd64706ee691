//! Page blobs: address, volumes and accounts.

use crate::file::WellKnownKey;
use crate::new_volume::NewVolume;
use std::path::PathBuf;
use weir_units::Span;

/// The address that `UseDevelopmentStorage=true` selects.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:10000";

/// Settings of page blobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Host and port.
    pub listen: String,
    /// Host of the volumes.
    pub host: String,
    /// Maximum wait of a request before it is rejected; `None` for no maximum.
    pub most_wait: Option<Span>,
    /// Maximum number of in-flight requests of one blob.
    pub queue: usize,
    /// Keys of each volume, without name and size.
    pub volume: NewVolume,
    /// Clients that may use the well-known account.
    pub well_known: WellKnownKey,
    /// Further accounts.
    pub accounts: Vec<BlobAccount>,
    /// Certificate chain and private key, PEM files, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// An account with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobAccount {
    /// Name.
    pub name: String,
    /// The key.
    pub key: BlobKey,
}

/// A key in Base64, or the environment variable that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum BlobKey {
    Is(String),
    InEnvironment(String),
}

/// Returns whether a text is a host and a port.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
