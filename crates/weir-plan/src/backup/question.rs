//! Questions to the backup planner.

use super::ground::Base;
use weir_catalog::{Catalog, Edition, PriceBook};
use weir_oltp::Description;
use weir_units::{Bytes, BytesPerSec, Span};

/// The effect of compression, and its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compression {
    /// The compressed size as a share of the original.
    pub ratio: f64,
    /// Bytes that one processor compresses per second.
    pub rate: Bytes,
    /// Number of processors that compress in parallel.
    pub threads: u32,
}

/// Databases that run while the backup does.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The databases.
    pub databases: &'a [Description],
    /// The maximum slowdown in throughput and in response time, in millionths.
    pub max_slowdown: u64,
}

/// A backup and its window.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The editions, which resolve layouts.
    pub catalog: &'a Catalog,
    /// The edition to buy from.
    pub edition: &'a Edition,
    /// The prices.
    pub prices: Option<&'a PriceBook<'a>>,
    /// The sources at their machine.
    pub base: Base,
    /// Files, volumes or stripes that are read.
    pub sources: Vec<String>,
    /// Readers of each source.
    pub readers: u32,
    /// Bytes to back up.
    pub size: Bytes,
    /// The window: the maximum duration.
    pub within: Span,
    /// The time from its start to the first transfer.
    pub setup: Span,
    /// Compression, if the backup is compressed.
    pub compression: Option<Compression>,
    /// Disk families to consider; if empty, those that are no slower than the edition's default
    /// family.
    pub families: Vec<String>,
    /// Maximum number of target disks.
    pub max_disks: Option<u64>,
    /// Highest rate at which the sources are read together. Without it, a backup beside databases is
    /// limited where it would slow them down too much otherwise.
    pub limit: Option<BytesPerSec>,
    /// Latency of the targets' medium, instead of the edition's.
    pub latency: Option<Span>,
    /// Databases that run beside the backup.
    pub beside: Option<Beside<'a>>,
}
