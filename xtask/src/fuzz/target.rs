//! The fuzz targets, by name.

use super::{control, fio, import, layout, need, observation, oltp, prices, sweep};
use std::fmt;
use std::path::PathBuf;

/// A component that parses untrusted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The input of an NBD server: a handshake with requests, or requests only.
    NbdServer,
    /// The input of an NBD client: a handshake with replies, or replies only.
    NbdClient,
    /// A layout file and its engine.
    Layout,
    /// A fio job file and its I/O.
    Fio,
    /// An OLTP description and the I/O of its database.
    Oltp,
    /// An observation file.
    Observation,
    /// A request to the page blob service.
    BlobRequest,
    /// The output of another tool, of any kind.
    Import,
    /// The stripes of a backup.
    Backup,
    /// The label of a raw volume with backups.
    BackupLabel,
    /// A page of a list of blobs.
    BlobList,
    /// A request trace.
    Trace,
    /// A need file and its plan.
    Need,
    /// A price list, an edition, or a download of a cloud.
    Prices,
    /// A sweep file.
    Sweep,
    /// A request to the control socket.
    Control,
    /// A call of an assistant.
    Mcp,
    /// Metadata of a volume on disk.
    Volume,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 18] = [
        Self::NbdServer,
        Self::NbdClient,
        Self::Layout,
        Self::Fio,
        Self::Oltp,
        Self::Observation,
        Self::BlobRequest,
        Self::Import,
        Self::Backup,
        Self::BackupLabel,
        Self::BlobList,
        Self::Trace,
        Self::Need,
        Self::Prices,
        Self::Sweep,
        Self::Control,
        Self::Mcp,
        Self::Volume,
    ];

    /// Returns the name, which is that of its folders and on the command line.
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
            Self::BackupLabel => "backup-label",
            Self::BlobList => "blob-list",
            Self::Trace => "trace",
            Self::Need => "need",
            Self::Prices => "prices",
            Self::Sweep => "sweep",
            Self::Control => "control",
            Self::Mcp => "mcp",
            Self::Volume => "volume",
        }
    }

    /// Returns whether inputs are lines of text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Layout
                | Self::Fio
                | Self::Oltp
                | Self::BlobRequest
                | Self::Import
                | Self::BlobList
                | Self::Need
                | Self::Prices
                | Self::Sweep
                | Self::Control
                | Self::Mcp
        )
    }

    /// Returns the folder of committed inputs.
    #[must_use]
    pub fn corpus(self) -> PathBuf {
        crate::root().join("fuzz/corpus").join(self.name())
    }

    /// Returns the dictionary, in libFuzzer's format.
    #[must_use]
    pub fn dictionary(self) -> PathBuf {
        crate::root().join("fuzz/dict").join(self.name()).with_extension("dict")
    }

    /// Returns the folder for inputs that cause findings.
    #[must_use]
    pub fn artifacts(self) -> PathBuf {
        crate::root().join("fuzz/artifacts").join(self.name())
    }

    /// Runs the target on `data`.
    ///
    /// # Panics
    ///
    /// If an invariant is broken.
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
            Self::BackupLabel => weir_backup::fuzz::label_bytes(data),
            Self::BlobList => weir_backup::fuzz::blob_list_bytes(data),
            Self::Trace => weir_trace::fuzz::trace_bytes(data),
            Self::Need => need::run(data),
            Self::Prices => prices::run(data),
            Self::Sweep => sweep::run(data),
            Self::Control => control::run(data),
            Self::Mcp => weir_mcp::fuzz::call_bytes(data),
            Self::Volume => weir_store::fuzz::volume_bytes(data),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
