//! The targets by name.

use super::{fio, import, layout, observation, oltp};
use std::fmt;
use std::path::PathBuf;

/// Something that takes bytes from strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// What an NBD server reads: a handshake with requests, or requests alone.
    NbdServer,
    /// What an NBD client reads: a handshake with replies, or replies alone.
    NbdClient,
    /// A layout file, and the engine made of it.
    Layout,
    /// A fio job file, and the I/O made of it.
    Fio,
    /// An OLTP description, and the I/O of the database made of it.
    Oltp,
    /// The file of an observation.
    Observation,
    /// A request to the service of page blobs.
    BlobRequest,
    /// What another system says, of whatever kind.
    Import,
    /// The stripes of a backup.
    Backup,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 9] = [
        Self::NbdServer,
        Self::NbdClient,
        Self::Layout,
        Self::Fio,
        Self::Oltp,
        Self::Observation,
        Self::BlobRequest,
        Self::Import,
        Self::Backup,
    ];

    /// Its name: of its folders, and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NbdServer => "nbd-server",
            Self::NbdClient => "nbd-client",
            Self::Layout => "layout",
            Self::Fio => "fio",
            Self::Oltp => "oltp",
            Self::Observation => "observation",
            Self::BlobRequest => "blob-request",
            Self::Import => "import",
            Self::Backup => "backup",
        }
    }

    /// Whether its inputs are lines of text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Layout | Self::Fio | Self::Oltp | Self::BlobRequest | Self::Import)
    }

    /// Its committed inputs.
    #[must_use]
    pub fn corpus(self) -> PathBuf {
        crate::root().join("fuzz/corpus").join(self.name())
    }

    /// Its tokens, in the format that libFuzzer reads.
    #[must_use]
    pub fn dictionary(self) -> PathBuf {
        crate::root().join("fuzz/dict").join(self.name()).with_extension("dict")
    }

    /// Where inputs that break something are put.
    #[must_use]
    pub fn artifacts(self) -> PathBuf {
        crate::root().join("fuzz/artifacts").join(self.name())
    }

    /// Hands it `data`.
    ///
    /// # Panics
    /// If something that must hold for any input does not.
    pub fn run(self, data: &[u8]) {
        match self {
            Self::NbdServer => weir_proto::fuzz::server_bytes(data),
            Self::NbdClient => weir_proto::fuzz::client_bytes(data),
            Self::Layout => layout::run(data),
            Self::Fio => fio::run(data),
            Self::Oltp => oltp::run(data),
            Self::Observation => observation::run(data),
            Self::BlobRequest => weir_blob::fuzz::request_bytes(data),
            Self::Import => import::run(data),
            Self::Backup => weir_backup::fuzz::stripe_bytes(data),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
