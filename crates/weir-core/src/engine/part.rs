//! The unit that passes the gates, and its owner.

use super::types::{DeviceId, Op};
use crate::waits::Waits;
use crate::writeback::WriteBack;
use weir_units::{Instant, Span};

/// The gates that a part still has to pass; the lowest bit is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route(pub(super) u8);

impl Route {
    pub(super) const LOG: u8 = 1;
    pub(super) const DISK: u8 = 1 << 1;
    pub(super) const UNCACHED_IOPS: u8 = 1 << 2;
    pub(super) const UNCACHED_BYTES: u8 = 1 << 3;
    pub(super) const CACHED_IOPS: u8 = 1 << 4;
    pub(super) const CACHED_BYTES: u8 = 1 << 5;
    pub(super) const UNCACHED: u8 = Self::UNCACHED_IOPS | Self::UNCACHED_BYTES;
    pub(super) const CACHED: u8 = Self::CACHED_IOPS | Self::CACHED_BYTES;
}

/// The owner of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A request of its own.
    Request { tag: u64, device: DeviceId },
    /// One column's share of a striped request.
    Stripe { parent: usize },
    /// The cache, writing back.
    WriteBack(WriteBack),
}

/// A request, or what one volume gets of it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) volume: usize,
    pub(crate) operations: u32,
    pub(crate) bytes: u32,
    /// Arrival at its current gate.
    pub(crate) at_gate: Instant,
    pub(crate) waits: Waits,
    /// The next part in the queue.
    pub(crate) next: Option<usize>,
    pub(crate) start_tag: u64,
    pub(super) op: Op,
    pub(super) route: Route,
    /// The host cache serves or takes it alone.
    pub(super) hit: bool,
    /// A write to a ReadWrite volume that is too large for the cache.
    pub(super) passes_cache: bool,
    pub(super) owner: Owner,
    pub(super) offset: u64,
    /// Bytes of the range; `bytes` is what the gates and the medium count of it.
    pub(super) len: u64,
    pub(super) arrived: Instant,
    pub(super) medium: Span,
    pub(super) serial: u64,
}

/// A striped request that is not whole yet.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) tag: u64,
    pub(super) device: DeviceId,
    pub(super) op: Op,
    pub(super) len: u64,
    pub(super) arrived: Instant,
    pub(super) parts_left: u64,
    pub(super) hit: bool,
}
