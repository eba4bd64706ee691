//! What a load asks of the caps on its way.
//!
//! A request comes to a cap whole, or in the pieces that a stripe cuts it into; each piece counts
//! `ceil(bytes / I/O unit)` operations. A cap has a rate of operations and one of bytes, saves
//! nothing up, and is taken by a piece for the longer of the two:
//!
//! ```text
//! taken   sum over pieces a second of max(operations / IOPS, bytes / throughput)  <=  1
//! ```
//!
//! For requests alike that is the plain comparison with both rates. Where large and small ones
//! pass together it is less than either rate says: while a large one waits for bytes, operations go
//! unused.
//!
//! A need has two peaks, which need not be at one time: that of its operations, and that of its
//! throughput where this is more than the operations bring; then it comes in the largest requests
//! that count once.

use crate::need::{Need, RoleNeed, WHOLE};
use std::ops::AddAssign;
use weir_catalog::{CacheMode, CacheOp, HostCache};
use weir_units::Bytes;

/// The largest requests of a need's throughput where no cap splits them: what other clouds split in,
/// so that plans for either compare.
pub const LARGEST: Bytes = Bytes::kib(256);

/// Operations and bytes per second: what a cap lets through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    /// Operations as caps count them.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The peak of a need that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    /// Of its operations.
    Operations,
    /// Of its throughput.
    Throughput,
}

impl Peak {
    /// Those that a need has.
    #[must_use]
    pub fn of(need: &Need) -> &'static [Self] {
        match need.roles.iter().any(has_more_throughput) {
            true => &[Self::Operations, Self::Throughput],
            false => &[Self::Operations],
        }
    }
}

/// Whether the throughput of a role is more than its operations bring.
#[must_use]
pub fn has_more_throughput(need: &RoleNeed) -> bool {
    need.throughput > need.iops.saturating_mul(need.request)
}

/// Pieces alike that come to a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// A second.
    pub rate: u64,
    /// Operations of each.
    pub operations: u64,
    /// Bytes of each.
    pub bytes: u64,
}

/// All pieces that come to a cap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow(Vec<Pieces>);

impl Flow {
    /// Of pieces alike.
    #[must_use]
    pub fn of(pieces: Pieces) -> Self {
        let mut flow = Self::default();
        flow.push(pieces);
        flow
    }

    fn push(&mut self, pieces: Pieces) {
        if pieces.rate == 0 {
            return;
        }
        let alike =
            |own: &&mut Pieces| (own.operations, own.bytes) == (pieces.operations, pieces.bytes);
        match self.0.iter_mut().find(alike) {
            Some(own) => own.rate = own.rate.saturating_add(pieces.rate),
            None => self.0.push(pieces),
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all pieces are alike.
    #[must_use]
    pub fn is_alike(&self) -> bool {
        self.0.len() <= 1
    }

    /// Operations a second.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, own| sum.saturating_add(own.rate.saturating_mul(own.operations)))
    }

    /// Bytes a second.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, own| sum.saturating_add(own.rate.saturating_mul(own.bytes)))
    }

    /// For how much of the time it takes a cap, in millionths, rounded up; more than all of it if
    /// the cap does not carry it.
    #[must_use]
    pub fn taken(&self, limits: Limits) -> u64 {
        // No limit at all is one that nothing comes near.
        let operations = u128::from(limits.operations.clamp(1, 1 << 40));
        let bytes = u128::from(limits.bytes.clamp(1, 1 << 60));
        // Each piece in parts of 1 / (operations x bytes) of a second.
        let of = |own: &Pieces| {
            let by_operations = u128::from(own.operations).saturating_mul(bytes);
            let by_bytes = u128::from(own.bytes).saturating_mul(operations);
            by_operations.max(by_bytes).saturating_mul(u128::from(own.rate))
        };
        let sum = self.0.iter().map(of).fold(0, u128::saturating_add);
        let whole = operations * bytes;
        // Seconds whole and what is left, so that nothing overflows on the way.
        let part = (sum % whole * u128::from(WHOLE)).div_ceil(whole);
        let parts = (sum / whole).saturating_mul(u128::from(WHOLE)).saturating_add(part);
        u64::try_from(parts).unwrap_or(u64::MAX)
    }

    /// The fewest caps alike that carry it together.
    #[must_use]
    pub fn fewest(&self, limits: Limits) -> u64 {
        self.taken(limits).div_ceil(WHOLE)
    }

    /// Whether `count` caps alike carry it together.
    #[must_use]
    pub fn fits(&self, limits: Limits, count: u64) -> bool {
        self.taken(limits) <= count.saturating_mul(WHOLE)
    }
}

impl AddAssign<&Self> for Flow {
    fn add_assign(&mut self, other: &Self) {
        other.0.iter().for_each(|pieces| self.push(*pieces));
    }
}

/// What a load asks of the caps on its way, at one peak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// Of its disks.
    pub disk: Flow,
    /// Of the machine, for remote disks.
    pub uncached: Flow,
    /// Of the machine, for cache and local disk.
    pub cached: Flow,
}

impl AddAssign<&Self> for Demand {
    fn add_assign(&mut self, other: &Self) {
        self.disk += &other.disk;
        self.uncached += &other.uncached;
        self.cached += &other.cached;
    }
}

/// The requests of a role at a peak, as they come to disks. `stripe` is the unit of the stripe
/// that they are on; without an I/O unit each counts once.
#[must_use]
pub fn pieces(
    need: &RoleNeed,
    peak: Peak,
    io_unit: Option<Bytes>,
    stripe: Option<Bytes>,
) -> Pieces {
    let is_split = io_unit.is_some();
    let io_unit = io_unit.unwrap_or(LARGEST).get().max(1);
    if peak == Peak::Throughput && has_more_throughput(need) {
        let once = stripe.map_or(io_unit, |unit| unit.get().min(io_unit));
        return Pieces { rate: need.throughput.div_ceil(once), operations: 1, bytes: once };
    }
    let cut = match stripe.map(Bytes::get) {
        None => 1,
        Some(unit) if need.request <= unit && unit.is_multiple_of(need.request) => 1,
        // Where requests of a size that does not fit begin nobody knows: one border more.
        Some(unit) => need.request.div_ceil(unit) + u64::from(!need.request.is_multiple_of(unit)),
    };
    let longest = stripe.map_or(need.request, |unit| unit.get().min(need.request));
    Pieces {
        rate: need.iops.saturating_mul(cut),
        operations: if is_split { longest.div_ceil(io_unit) } else { 1 },
        bytes: need.request.div_ceil(cut),
    }
}

/// What `pieces` ask where disks are cached so and the cache serves `hits` of the `reads`, in
/// millionths.
#[must_use]
pub fn by_cap(
    pieces: Pieces,
    reads: u64,
    mode: CacheMode,
    hits: u64,
    cache: Option<&HostCache>,
) -> Demand {
    let Some(cache) = cache else {
        let flow = Flow::of(pieces);
        return Demand { disk: flow.clone(), uncached: flow, cached: Flow::default() };
    };
    let hits = if mode == CacheMode::None { 0 } else { reads * hits / WHOLE };
    let parts = [
        (CacheOp::ReadHit, hits),
        (CacheOp::ReadMiss, reads - hits),
        (CacheOp::Write, WHOLE - reads),
        // What a read-write cache has taken it writes out later.
        (CacheOp::Flush, if mode == CacheMode::ReadWrite { WHOLE - reads } else { 0 }),
    ];
    // Shares that go to one cap are summed before they are rounded.
    let (mut disk, mut uncached, mut cached) = (0, 0, 0);
    for (op, share) in parts {
        if let Some(counts) = cache.counts(mode, op) {
            disk += if counts.disk { share } else { 0 };
            uncached += if counts.uncached { share } else { 0 };
            cached += if counts.cached { share } else { 0 };
        }
    }
    let part = |share: u64| {
        let rate = (u128::from(pieces.rate) * u128::from(share)).div_ceil(u128::from(WHOLE));
        Flow::of(Pieces { rate: u64::try_from(rate).unwrap_or(u64::MAX), ..pieces })
    };
    Demand { disk: part(disk), uncached: part(uncached), cached: part(cached) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_layout::Role;

    fn need(iops: u64, request: u64, throughput: u64) -> RoleNeed {
        RoleNeed {
            role: Role::Data,
            size: Bytes::gib(100),
            iops,
            request,
            throughput: throughput.max(iops * request),
            reads: 700_000,
            latency: None,
            working_set: None,
        }
    }

    #[test]
    fn operations_are_counted_as_caps_count_them() {
        let check = |need: &RoleNeed, peak: Peak, stripe: Option<u64>, operations: u64| {
            let pieces = pieces(need, peak, Some(Bytes::kib(256)), stripe.map(Bytes::kib));
            assert_eq!(Flow::of(pieces).operations(), operations, "{need:?} {stripe:?}");
        };
        let operations = Peak::Operations;
        check(&need(100, 8 << 10, 0), operations, None, 100);
        check(&need(100, 1 << 20, 0), operations, None, 400);
        check(&need(100, 257 << 10, 0), operations, None, 200);
        check(&need(100, 8 << 10, 0), operations, Some(64), 100);
        check(&need(100, 1 << 20, 0), operations, Some(64), 1_600);
        check(&need(100, 1 << 20, 0), operations, Some(256), 400);
        // 12 KiB in units of 64 KiB cross a border now and then.
        check(&need(100, 12 << 10, 0), operations, Some(64), 200);
        check(&need(100, 8 << 10, 100 << 20), operations, None, 100);
        check(&need(100, 8 << 10, 100 << 20), Peak::Throughput, None, 400);
        check(&need(100, 8 << 10, 100 << 20), Peak::Throughput, Some(64), 1_600);
        check(&need(100, 8 << 10, 0), Peak::Throughput, Some(64), 100);
    }

    #[test]
    fn a_cap_is_taken_for_the_longer_of_operations_and_bytes() {
        let limits = Limits { operations: 1_000, bytes: 100 << 20 };
        let small = Pieces { rate: 500, operations: 1, bytes: 4 << 10 };
        let large = Pieces { rate: 50, operations: 4, bytes: 1 << 20 };
        assert_eq!(Flow::of(small).taken(limits), 500_000);
        assert_eq!(Flow::of(large).taken(limits), 500_000);
        let mut both = Flow::of(small);
        both += &Flow::of(large);
        assert_eq!(both.taken(limits), WHOLE);
        assert!(both.fits(limits, 1));
        // Either rate has room for it, together they have not.
        both += &Flow::of(Pieces { rate: 1, ..small });
        assert!(both.operations() < 1_000 && both.bytes() < 100 << 20);
        assert!(!both.fits(limits, 1));
        assert_eq!(both.fewest(limits), 2);
        let endless = Pieces { rate: u64::MAX, operations: u64::MAX, bytes: u64::MAX };
        assert_eq!(Flow::of(endless).taken(limits), u64::MAX);
    }

    #[test]
    fn hits_count_where_the_table_says() {
        let catalog = Catalog::builtin();
        let cache = catalog.edition("azure-now").unwrap().host_cache();
        let all = Pieces { rate: 1_000, operations: 1, bytes: 8 };
        let at = |mode, hits| {
            let demand = by_cap(all, 700_000, mode, hits, cache);
            [demand.disk, demand.uncached, demand.cached].map(|flow| flow.operations())
        };
        assert_eq!(at(CacheMode::None, WHOLE), [1_000, 1_000, 0]);
        // Writes go to both; that is how a cache can be the lower cap.
        assert_eq!(at(CacheMode::ReadOnly, WHOLE), [300, 300, 1_000]);
        assert_eq!(at(CacheMode::ReadOnly, WHOLE / 2), [650, 650, 1_000]);
    }
}
