//! Pairs of limits, and what may exceed them for a while.

use weir_units::{BytesPerSec, Iops, Span};

/// Operations and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Operations per second, counted in the edition's I/O unit.
    pub iops: Iops,
    /// Bytes per second.
    pub throughput: BytesPerSec,
}

/// Limits that all disks of a family on a machine share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// The limits of reads and writes together, or of reads only if writes have separate limits.
    pub limits: Limits,
    /// The limits of writes, if they are separate.
    pub writes: Option<Limits>,
}

/// Unused time of every limit of disks and machines that may be spent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// The time at the limit that a full reserve holds. It is full at the start.
    pub holds: Span,
    /// The idle time that fills it from empty.
    pub refill: Span,
}

/// Limits above the base that hold for a while or for money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// The resource that pays for it.
    pub kind: BurstKind,
    /// Operations per second while it lasts.
    pub iops: Iops,
    /// Bytes per second while it lasts.
    pub throughput: BytesPerSec,
}

/// The resource that pays for a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstKind {
    /// Credit saved while under the base, in two buckets: operations and bytes.
    Credit {
        /// Duration of a burst at the maximum from a full bucket, which holds `(burst - base) x
        /// duration`.
        duration: Span,
    },
    /// Money: it lasts as long as it is switched on.
    OnDemand,
}
