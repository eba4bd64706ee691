//! What is asked of a plan for a backup.

use super::ground::Base;
use weir_catalog::{Catalog, Edition, PriceBook};
use weir_units::{Bytes, Span};
use weir_workload::oltp::Description;

/// The effect of compression, and its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compression {
    /// The compressed size as a share of the original.
    pub ratio: f64,
    /// Bytes that a processor compresses in a second.
    pub rate: Bytes,
    /// Processors that compress at once.
    pub threads: u32,
}

/// Databases that run while the backup does.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The databases.
    pub databases: &'a [Description],
    /// The most that the backup may cost them in throughput and in response time, in millionths.
    pub max_slowdown: u64,
}

/// A backup, and the window that it is to fit.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The editions that layouts are resolved against.
    pub catalog: &'a Catalog,
    /// What there is to buy.
    pub edition: &'a Edition,
    /// What it costs.
    pub prices: Option<&'a PriceBook<'a>>,
    /// The sources at their machine.
    pub base: Base,
    /// Files, volumes or stripes that are read.
    pub sources: Vec<String>,
    /// Readers of each source.
    pub readers: u32,
    /// Bytes to back up.
    pub size: Bytes,
    /// The time that the backup may take.
    pub within: Span,
    /// The time from its start to the first transfer.
    pub setup: Span,
    /// Compression, if the backup is compressed.
    pub compression: Option<Compression>,
    /// Families of disks to choose from; if empty, those that are no slower than the edition's own
    /// choice.
    pub families: Vec<String>,
    /// The most target disks.
    pub max_disks: Option<u64>,
    /// Latency of the targets' medium, instead of the edition's.
    pub latency: Option<Span>,
    /// Databases beside it.
    pub beside: Option<Beside<'a>>,
}
