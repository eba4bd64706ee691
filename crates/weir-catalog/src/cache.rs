//! The host cache: which limits an I/O counts against, by mode and outcome.

use crate::provenance::Provenance;
use serde::Deserialize;
use std::fmt;
use weir_units::Bytes;
pub use weir_units::CacheMode;

/// An event at the cache. Without a cache every read is a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOp {
    /// A read served by the cache.
    ReadHit,
    /// A read served by the disk.
    ReadMiss,
    /// A write.
    Write,
    /// A delayed write from a read-write cache to the disk.
    Flush,
}

impl fmt::Display for CacheOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadHit => "read-hit",
            Self::ReadMiss => "read-miss",
            Self::Write => "write",
            Self::Flush => "flush",
        })
    }
}

/// The limits that an I/O counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The disk's limits.
    pub disk: bool,
    /// The machine's uncached limits, for remote disks.
    pub uncached: bool,
    /// The machine's cached limits, for cache and local disk.
    pub cached: bool,
}

/// A row of the accounting table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheRow {
    /// Cache mode of the disk.
    pub mode: CacheMode,
    /// The event.
    pub op: CacheOp,
    /// The limits that it counts against.
    pub counts: Counts,
    /// Source, date, remarks.
    pub provenance: Provenance,
}

/// A mode that the documents recommend for a use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Recommended {
    /// The use, for example `log files`.
    pub r#for: String,
    /// The mode.
    pub mode: CacheMode,
}

/// The host cache of an edition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostCache {
    /// Disks of this size and larger cannot be cached.
    pub max_disk_exclusive: Option<Bytes>,
    /// Default mode of an operating system disk.
    pub os_disk_default: CacheMode,
    /// Default mode of a data disk.
    pub data_disk_default: CacheMode,
    /// Families that cannot be cached.
    pub uncacheable: Vec<String>,
    /// Modes recommended by use.
    pub recommended: Vec<Recommended>,
    /// The accounting table; complete.
    pub rows: Vec<CacheRow>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl HostCache {
    /// All combinations of mode and event, which an accounting table must cover.
    pub const CASES: [(CacheMode, CacheOp); 9] = [
        (CacheMode::None, CacheOp::ReadMiss),
        (CacheMode::None, CacheOp::Write),
        (CacheMode::ReadOnly, CacheOp::ReadHit),
        (CacheMode::ReadOnly, CacheOp::ReadMiss),
        (CacheMode::ReadOnly, CacheOp::Write),
        (CacheMode::ReadWrite, CacheOp::ReadHit),
        (CacheMode::ReadWrite, CacheOp::ReadMiss),
        (CacheMode::ReadWrite, CacheOp::Write),
        (CacheMode::ReadWrite, CacheOp::Flush),
    ];

    /// Returns the limits that `op` counts against in `mode`. `None` for combinations outside
    /// [`HostCache::CASES`].
    #[must_use]
    pub fn counts(&self, mode: CacheMode, op: CacheOp) -> Option<Counts> {
        self.rows.iter().find(|row| row.mode == mode && row.op == op).map(|row| row.counts)
    }

    /// Returns whether a disk of this family and size can be cached.
    #[must_use]
    pub fn can_cache(&self, family: &str, size: Bytes) -> bool {
        !self.uncacheable.iter().any(|f| f == family)
            && self.max_disk_exclusive.is_none_or(|max| size < max)
    }
}
