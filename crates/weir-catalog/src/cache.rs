//! The host cache: which limits an I/O counts against, by mode and outcome.

use crate::provenance::Provenance;
use serde::Deserialize;
use std::fmt;
use weir_units::Bytes;

/// How the host caches a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// Not at all.
    None,
    /// Reads may be served by the host; writes go to both.
    ReadOnly,
    /// Writes are done once the host has them.
    ReadWrite,
}

/// What happens at the cache. Without one every read is a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOp {
    /// A read that the cache serves.
    ReadHit,
    /// A read that it does not.
    ReadMiss,
    /// A write.
    Write,
    /// What a read-write cache writes to the disk later.
    Flush,
}

impl CacheMode {
    /// As an edition writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    /// The disk's.
    pub disk: bool,
    /// The machine's for remote disks.
    pub uncached: bool,
    /// The machine's for cache and local disk.
    pub cached: bool,
}

/// A row of the accounting table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheRow {
    /// The disk's cache mode.
    pub mode: CacheMode,
    /// What happens.
    pub op: CacheOp,
    /// What it counts against.
    pub counts: Counts,
    /// Source, date, remarks.
    pub provenance: Provenance,
}

/// A mode that the documents recommend for a use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Recommended {
    /// The use, like `log files`.
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
    /// The mode of an operating-system disk that nobody set.
    pub os_disk_default: CacheMode,
    /// The mode of a data disk that nobody set.
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
    /// The modes and what can happen in each: what an accounting table must answer.
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

    /// What `op` counts against in `mode`; `None` for what cannot happen there
    /// (see [`HostCache::CASES`]).
    #[must_use]
    pub fn counts(&self, mode: CacheMode, op: CacheOp) -> Option<Counts> {
        self.rows.iter().find(|row| row.mode == mode && row.op == op).map(|row| row.counts)
    }

    /// Whether a disk of this family and size can be cached.
    #[must_use]
    pub fn can_cache(&self, family: &str, size: Bytes) -> bool {
        !self.uncacheable.iter().any(|f| f == family)
            && self.max_disk_exclusive.is_none_or(|max| size < max)
    }
}
