//! The unit that passes the gates, and its owner.

use super::route::{Route, Routed};
use super::types::{DeviceId, Op, Totals};
use crate::gate::{Link, Passes};
use crate::waits::{Cap, Waits};
use crate::writeback::WriteBack;
use weir_units::{Instant, Span};

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
pub(super) struct Part {
    pub(super) volume: usize,
    pub(super) operations: u32,
    pub(super) bytes: u32,
    /// Arrival at its current gate.
    pub(super) at_gate: Instant,
    pub(super) waits: Waits,
    pub(super) link: Link,
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

impl Part {
    /// Counts it as a request, or a column's part of one, that is done.
    pub(super) fn count(&self, totals: &mut Totals) {
        totals.count(self.op, self.len);
        if self.hit {
            totals.hits += u64::from(self.op == Op::Read);
        } else {
            totals.counted += u64::from(self.operations);
        }
        totals.waits += self.waits;
        totals.medium += self.medium;
    }

    /// Counts it as a write-back that is done.
    pub(super) fn count_write_back(&self, totals: &mut Totals) {
        totals.writebacks += 1;
        totals.written_back += self.len;
        totals.counted += u64::from(self.operations);
        totals.writeback_waits += self.waits;
        totals.writeback_medium += self.medium;
    }
}

impl Passes for Part {
    fn volume(&self) -> usize {
        self.volume
    }

    fn operations(&self) -> u32 {
        self.operations
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn at_gate(&self) -> Instant {
        self.at_gate
    }

    fn set_at_gate(&mut self, at: Instant) {
        self.at_gate = at;
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    fn charge(&mut self, cap: Cap, wait: Span) {
        self.waits.charge(cap, wait);
    }
}

impl Routed for Part {
    fn route_mut(&mut self) -> &mut Route {
        &mut self.route
    }
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
    /// The end of the part that is done last so far, and its serial number: of those that are done
    /// at one time, the last one of the range counts, however the alarms are ordered.
    pub(super) last: (Instant, u64),
    /// The waits of that part.
    pub(super) waits: Waits,
    /// The latency of its medium.
    pub(super) medium: Span,
}
