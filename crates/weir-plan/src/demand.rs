//! Load at each limit on the path of a request.
//!
//! A request reaches a limit whole, or in the pieces into which a stripe splits it. Each piece
//! counts as `ceil(bytes / I/O unit)` operations. A limit has a rate of operations and one of
//! bytes, and carries a load that exceeds neither. Requests pass the two rates one after the other,
//! and a request that waits for bytes does not delay the operations of those behind it. Mixed small
//! and large requests therefore use a limit as they would separately.
//!
//! A need has two peaks, which may be at different times: the peak of operations, and the peak of
//! throughput if that exceeds the bytes of the operations. The peak of throughput comes in the
//! largest requests that count as one operation.
//!
//! Operations derived from a throughput stay an exact fraction until the pieces of their requests
//! are counted; then they are rounded up once. A limit on bytes is compared with the throughput as
//! stated.

use crate::need::{Need, RoleNeed};
use crate::share::WHOLE;
use std::ops::AddAssign;
use weir_catalog::{CacheMode, CacheOp, HostCache};
use weir_units::Bytes;

/// The request size assumed for a need's throughput where no limit splits requests. Other clouds
/// split at this size, so plans stay comparable.
pub const LARGEST: Bytes = Bytes::kib(256);

/// The alignment of requests.
const SECTOR: u64 = 512;

/// Rates of a limit, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    /// I/O operations, as the limit counts them.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
}

/// One of the two peaks of a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    /// The peak of operations.
    Operations,
    /// The peak of throughput.
    Throughput,
}

impl Peak {
    /// Returns the peaks of a need.
    #[must_use]
    pub fn of_need(need: &Need) -> &'static [Self] {
        match need.roles.iter().any(has_more_throughput) {
            true => &[Self::Operations, Self::Throughput],
            false => &[Self::Operations],
        }
    }
}

/// Returns whether a role's throughput exceeds the bytes of its operations.
#[must_use]
pub fn has_more_throughput(need: &RoleNeed) -> bool {
    need.throughput > need.iops.saturating_mul(need.request)
}

/// Load at a limit, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// I/O operations, as the limit counts them.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Flow {
    /// Returns the highest rate of each kind over several peaks.
    #[must_use]
    pub fn most<'f>(peaks: impl IntoIterator<Item = &'f Self>) -> Self {
        peaks.into_iter().fold(Self::default(), |most, own| Self {
            operations: most.operations.max(own.operations),
            bytes: most.bytes.max(own.bytes),
        })
    }

    /// Returns a share of the load in millionths, rounded up.
    #[must_use]
    pub fn part(&self, share: u64) -> Self {
        let of = |n: u64| {
            let part = (u128::from(n) * u128::from(share)).div_ceil(u128::from(WHOLE));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        Self { operations: of(self.operations), bytes: of(self.bytes) }
    }

    /// Returns whether there is no load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the smallest number of equal limits that carry the load together.
    #[must_use]
    pub fn fewest(&self, limits: Limits) -> u64 {
        let of = |asked: u64, each: u64| asked.div_ceil(each.max(1));
        of(self.operations, limits.operations).max(of(self.bytes, limits.bytes))
    }

    /// Returns whether `count` equal limits carry the load together.
    #[must_use]
    pub fn fits(&self, limits: Limits, count: u64) -> bool {
        self.fewest(limits) <= count
    }
}

impl AddAssign<&Self> for Flow {
    fn add_assign(&mut self, other: &Self) {
        self.operations = self.operations.saturating_add(other.operations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Load at each limit of a machine, at one peak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// At the disks.
    pub disk: Flow,
    /// At the uncached limit of the machine.
    pub uncached: Flow,
    /// At the cached limit of the machine.
    pub cached: Flow,
}

impl AddAssign<&Self> for Demand {
    fn add_assign(&mut self, other: &Self) {
        self.disk += &other.disk;
        self.uncached += &other.uncached;
        self.cached += &other.cached;
    }
}

/// Returns a role's load on its disks at a peak. `stripe` is the stripe unit of those disks.
/// Without an I/O unit, each piece of a request counts as one operation.
#[must_use]
pub fn flow(need: &RoleNeed, peak: Peak, io_unit: Option<Bytes>, stripe: Option<Bytes>) -> Flow {
    let counted = io_unit.unwrap_or(LARGEST).get().max(1);
    if peak == Peak::Throughput && has_more_throughput(need) {
        let once = stripe.map_or(counted, |unit| unit.get().min(counted));
        return Flow { operations: need.throughput.div_ceil(once), bytes: need.throughput };
    }
    // Exact fractions (numerator, denominator) of requests per second and pieces per request.
    let requests = match need.is_derived {
        true => (need.throughput, need.request.max(1)),
        false => (need.iops, 1),
    };
    let pieces = match stripe.map(Bytes::get) {
        None => (1, 1),
        Some(unit) if unit.is_multiple_of(need.request) => (1, 1),
        Some(unit) if need.request.is_multiple_of(unit) => (need.request / unit, 1),
        // A request that is not aligned to the unit starts at every sector equally often. This is
        // the average number of units that it touches.
        Some(unit) => (unit + need.request.saturating_sub(SECTOR), unit),
    };
    let longest = stripe.map_or(need.request, |unit| unit.get().min(need.request));
    let each = if io_unit.is_some() { longest.div_ceil(counted) } else { 1 };
    let product = |all: [u64; 3]| all.into_iter().map(u128::from).product::<u128>();
    let operations =
        product([requests.0, pieces.0, each]).div_ceil(product([requests.1, pieces.1, 1]));
    Flow {
        operations: u64::try_from(operations).unwrap_or(u64::MAX),
        bytes: need.throughput.min(need.iops.saturating_mul(need.request)),
    }
}

/// Splits a load by limit, for a cache mode and a hit ratio of the reads in millionths.
#[must_use]
pub fn by_cap(
    asked: Flow,
    reads: u64,
    mode: CacheMode,
    hits: u64,
    cache: Option<&HostCache>,
) -> Demand {
    let Some(cache) = cache else {
        return Demand { disk: asked, uncached: asked, cached: Flow::default() };
    };
    let hits = if mode == CacheMode::None { 0 } else { reads * hits / WHOLE };
    let parts = [
        (CacheOp::ReadHit, hits),
        (CacheOp::ReadMiss, reads - hits),
        (CacheOp::Write, WHOLE - reads),
        // A read-write cache writes its dirty blocks back later.
        (CacheOp::Flush, if mode == CacheMode::ReadWrite { WHOLE - reads } else { 0 }),
    ];
    // Shares of one limit are summed before they are rounded.
    let (mut disk, mut uncached, mut cached) = (0, 0, 0);
    for (op, share) in parts {
        if let Some(counts) = cache.counts(mode, op) {
            disk += if counts.disk { share } else { 0 };
            uncached += if counts.uncached { share } else { 0 };
            cached += if counts.cached { share } else { 0 };
        }
    }
    Demand { disk: asked.part(disk), uncached: asked.part(uncached), cached: asked.part(cached) }
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
            is_derived: false,
            request,
            throughput: throughput.max(iops * request),
            reads: 700_000,
            latency: None,
            working_set: None,
        }
    }

    #[test]
    fn operations_are_counted_as_limits_count_them() {
        let check = |need: &RoleNeed, peak: Peak, stripe: Option<u64>, operations: u64| {
            let flow = flow(need, peak, Some(Bytes::kib(256)), stripe.map(Bytes::kib));
            assert_eq!(flow.operations, operations, "{need:?} {stripe:?}");
        };
        let operations = Peak::Operations;
        check(&need(100, 8 << 10, 0), operations, None, 100);
        check(&need(100, 1 << 20, 0), operations, None, 400);
        check(&need(100, 257 << 10, 0), operations, None, 200);
        check(&need(100, 8 << 10, 0), operations, Some(64), 100);
        check(&need(100, 1 << 20, 0), operations, Some(64), 1_600);
        check(&need(100, 1 << 20, 0), operations, Some(256), 400);
        // 12 KiB in units of 64 KiB cross a boundary from 23 of 128 sectors; 96 KiB cross one
        // always and a second one from 63.
        check(&need(100, 12 << 10, 0), operations, None, 100);
        check(&need(128, 12 << 10, 0), operations, Some(64), 128 + 23);
        check(&need(128, 96 << 10, 0), operations, Some(64), 2 * 128 + 63);
        check(&need(100, 8 << 10, 100 << 20), operations, None, 100);
        check(&need(100, 8 << 10, 100 << 20), Peak::Throughput, None, 400);
        check(&need(100, 8 << 10, 100 << 20), Peak::Throughput, Some(64), 1_600);
        check(&need(100, 8 << 10, 0), Peak::Throughput, Some(64), 100);
    }

    #[test]
    fn bytes_are_those_of_the_stated_throughput() {
        let check = |iops: u64, throughput: u64, peak: Peak, operations: u64| {
            let own = RoleNeed { throughput, ..need(iops, 64 << 10, 0) };
            let expect = Flow { operations, bytes: throughput };
            for stripe in [None, Some(Bytes::kib(64)), Some(Bytes::kib(256))] {
                assert_eq!(flow(&own, peak, Some(Bytes::kib(256)), stripe), expect, "{stripe:?}");
            }
        };
        // 2,929.7 requests of 64 KiB a second are 2,930 operations, and still 192 MB/s.
        check(2_930, 192_000_000, Peak::Operations, 2_930);
        // One byte more than 2,930 requests carry is a peak of its own.
        let more = RoleNeed { throughput: 2_930 * 65_536 + 1, ..need(2_930, 64 << 10, 0) };
        let peak = flow(&more, Peak::Throughput, Some(Bytes::kib(256)), None);
        assert_eq!(peak, Flow { operations: 733, bytes: more.throughput });
    }

    #[test]
    fn operations_of_a_throughput_are_rounded_once() {
        let check = |throughput: u64, unit: Option<u64>, operations: u64| {
            let iops = throughput.div_ceil(1 << 20);
            let own = RoleNeed { throughput, is_derived: true, ..need(iops, 1 << 20, 0) };
            let flow = flow(&own, Peak::Operations, Some(Bytes::kib(256)), unit.map(Bytes::kib));
            assert_eq!(flow, Flow { operations, bytes: throughput }, "{unit:?}");
        };
        // 93.75 requests of 1 MiB are 1,500 pieces of 64 KiB, and 375 operations of 256 KiB.
        check(98_304_000, Some(64), 1_500);
        check(98_304_000, Some(256), 375);
        check(98_304_000, None, 375);
        check(98_304_001, Some(64), 1_501);
        let half = RoleNeed { throughput: 98_304_000, is_derived: true, ..need(94, 1 << 20, 0) }
            .scaled(WHOLE / 2);
        assert_eq!((half.iops, half.throughput), (47, 49_152_000));
    }

    #[test]
    fn a_limit_carries_a_load_within_both_of_its_rates() {
        let limits = Limits { operations: 1_000, bytes: 100 << 20 };
        let mut both = Flow { operations: 800, bytes: 3_200 << 10 };
        both += &Flow { operations: 200, bytes: 50 << 20 };
        assert_eq!(both, Flow { operations: 1_000, bytes: (50 << 20) + (3_200 << 10) });
        assert!(both.fits(limits, 1));
        both += &Flow { operations: 1, bytes: 0 };
        assert!(!both.fits(limits, 1));
        assert_eq!(both.fewest(limits), 2);
        let bytes = Flow { operations: 0, bytes: (200 << 20) + 1 };
        assert_eq!(bytes.fewest(limits), 3);
        assert_eq!(Flow::most([&both, &bytes]), Flow { operations: 1_001, bytes: bytes.bytes });
        let endless = Flow { operations: u64::MAX, bytes: u64::MAX };
        assert_eq!(endless.fewest(limits), u64::MAX / 1_000 + 1);
    }

    #[test]
    fn hits_count_at_the_limits_of_the_accounting_table() {
        let catalog = Catalog::builtin();
        let cache = catalog.edition("azure-now").unwrap().host_cache();
        let all = Flow { operations: 1_000, bytes: 8_000 };
        let at = |mode, hits| {
            let demand = by_cap(all, 700_000, mode, hits, cache);
            [demand.disk, demand.uncached, demand.cached].map(|flow| flow.operations)
        };
        assert_eq!(at(CacheMode::None, WHOLE), [1_000, 1_000, 0]);
        // Writes count at both limits, so the cached limit can be the lower one.
        assert_eq!(at(CacheMode::ReadOnly, WHOLE), [300, 300, 1_000]);
        assert_eq!(at(CacheMode::ReadOnly, WHOLE / 2), [650, 650, 1_000]);
    }
}
