//! The control socket: one JSON request a line, one JSON answer a line.

mod conversation;
mod freeze;
mod recording;
mod socket;

pub use conversation::Conversation;
pub use freeze::{ChangedAnswer, FreezeAnswer, FrozenExport, Purpose, ReleaseAnswer};
pub use recording::Recorded;
pub(crate) use socket::ControlSocket;

use crate::error::ServerError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use weir_layout::hot_plug::NewVolume;
use weir_units::{Bytes, BytesPerSec, Iops, Share};

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reads all counters ([`weir_report::status::Status`]).
    Status,
    /// Resizes a volume; its tier and limits follow at once.
    Resize {
        /// The volume.
        volume: String,
        /// Its size.
        size: Bytes,
    },
    /// Creates a volume.
    Create {
        /// Its host, where there are several.
        host: Option<String>,
        /// Its description.
        volume: NewVolume,
    },
    /// Deletes a volume with its bytes; its clients are disconnected.
    Delete {
        /// The volume.
        volume: String,
        /// True to refuse it if clients are connected to the volume, or if it holds data.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        if_unused: bool,
    },
    /// Changes the cache mode of a volume.
    SetCache {
        /// The volume.
        volume: String,
        /// none, read-only or read-write.
        mode: String,
    },
    /// Gives a volume the limits of a tier; its size does not change.
    SetTier {
        /// The volume.
        volume: String,
        /// The tier.
        tier: String,
    },
    /// Changes the provisioned rates of a volume, or its own limits. A rate that is not given stays.
    SetRates {
        /// The volume.
        volume: String,
        /// Operations per second.
        iops: Option<Iops>,
        /// Bytes per second.
        throughput: Option<BytesPerSec>,
    },
    /// Fills the burst credits of a volume.
    SetCredits {
        /// The volume.
        volume: String,
        /// The part of a full bucket.
        credits: Share,
    },
    /// Fills the burst credits of a host.
    SetHostCredits {
        /// The host.
        host: String,
        /// The part of a full bucket.
        credits: Share,
    },
    /// Crashes a host: its clients are disconnected, its cache is cold, and dirty blocks of a
    /// read-write cache are lost.
    Crash {
        /// The host.
        host: String,
    },
    /// Puts a range into the host cache, as a warm-up would.
    Warm {
        /// The export.
        export: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Freezes exports at one instant ([`FreezeAnswer`]). The views are there until they are
    /// released or this conversation ends.
    Freeze {
        /// The exports; all of them if empty.
        exports: Vec<String>,
        /// The kind of backup.
        purpose: Purpose,
        /// The id of the backup.
        backup: String,
    },
    /// The ranges of a frozen export that may differ from its base ([`ChangedAnswer`]).
    Changed {
        /// The number of the freeze.
        freeze: u64,
        /// The export, by its own name.
        export: String,
        /// The first byte to look at.
        from: u64,
    },
    /// A range of a frozen export has been read and is not read again: its old contents need
    /// not be kept any longer. To say so is optional and saves space.
    ReadDone {
        /// The number of the freeze.
        freeze: u64,
        /// The export, by its own name.
        export: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Records the requests to exports. After the answer, the server sends a trace
    /// ([`weir_trace::Writer`]) until the client shuts down its side of the connection, and then
    /// the end of the trace.
    Record {
        /// The exports; all of them if empty.
        exports: Vec<String>,
    },
    /// Ends a freeze ([`ReleaseAnswer`]).
    Release {
        /// The number of the freeze.
        freeze: u64,
        /// True if the backup is complete. Later differentials build on a complete full backup.
        completed: bool,
    },
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The result.
    Ok(Value),
    /// The reason of a refusal, and a request that would be accepted.
    Refused(String),
    /// The reason of a failure on the way.
    Failed(String),
}

/// Returns the default path of this user's control socket: in the user's runtime
/// folder, else in a folder of this user alone among the temporary files.
#[must_use]
pub fn default_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir).join("weir.sock"),
        _ => shared_folder().join("control.sock"),
    }
}

/// Returns the folder of the default path where the system gives this user none.
fn shared_folder() -> PathBuf {
    std::env::temp_dir().join(format!("weir-{}", rustix::process::getuid().as_raw()))
}

/// Asks the server at `path`.
///
/// # Errors
///
/// [`ServerError::Control`] if none answers; [`ServerError::Refused`] and
/// [`ServerError::Failed`] with the server's own sentence.
pub fn ask(path: &Path, request: &Request) -> Result<Value, ServerError> {
    Conversation::open(path)?.ask(request)
}
