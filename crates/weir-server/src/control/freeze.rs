//! Requests about a freeze, and their answers.
//!
//! ```text
//! freeze  --> number, exports as NAME@NUMBER      the views stay as long as
//! changed --> ranges, from where to ask next      the conversation that made
//! read    --> nothing is kept for a range         them
//! release --> whether later differentials build on it
//! ```

use serde::{Deserialize, Serialize};

/// The kind of backup that a freeze is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// All bytes; once completed, later differentials build on it.
    Full,
    /// The bytes that changed since the last completed full backup.
    Differential,
    /// All bytes, and later differentials do not build on it.
    CopyOnly,
}

/// The answer to [`Request::Freeze`](super::Request::Freeze).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeAnswer {
    /// The number of the freeze.
    pub freeze: u64,
    /// The pause of the hosts in nanoseconds, in which they answered no requests.
    pub pause_ns: u64,
    /// The instant of the views, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The views, in the order in which they were asked for.
    pub exports: Vec<FrozenExport>,
}

/// An export as it was at the freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenExport {
    /// The export.
    pub name: String,
    /// The read-only export that shows it as it was: `NAME@NUMBER`.
    pub frozen: String,
    /// Its size in bytes.
    pub size: u64,
    /// True if its changes are known since `base`, or since it was made if there is no base.
    /// After a crash of the server they are not.
    pub tracked: bool,
    /// The last completed full backup, if changes since then are known.
    pub base: Option<String>,
}

/// The answer to [`Request::Changed`](super::Request::Changed).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedAnswer {
    /// Ranges of the export that may differ from the base: offset and length in bytes,
    /// ascending, not adjacent.
    pub ranges: Vec<(u64, u64)>,
    /// The offset at which to ask for the next ranges; `None` after the last.
    pub next: Option<u64>,
}

/// The answer to [`Request::Release`](super::Request::Release).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAnswer {
    /// The number of the freeze.
    pub freeze: u64,
    /// Exports whose later differentials build on this backup.
    pub base_of: Vec<String>,
    /// The most that was kept of old contents while the freeze lasted, in bytes.
    pub kept_bytes: u64,
}
