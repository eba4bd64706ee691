//! The billing counter of on-demand bursting.
//!
//! A disk that bursts on demand is billed for each second in which it did more
//! than its target: the operations above it, or the bytes above it in units of
//! one operation, whichever are more. Seconds are those of the driver's clock; a
//! request belongs to the one in which the disk's gate let it pass.

use crate::spec::{DiskLimits, Limit};
use core::num::NonZeroU64;
use weir_units::Instant;
use weir_units::time::NANOS_PER_SEC;

/// The current second of a volume that bursts on demand.
#[derive(Debug)]
pub(super) struct AboveTarget {
    target_operations: u64,
    target_bytes: u64,
    io_unit: Option<NonZeroU64>,
    second: u64,
    operations: u64,
    bytes: u64,
    counted: u64,
}

impl AboveTarget {
    /// Starts the counter of a volume; `None` if it does not burst on demand.
    pub(super) fn of(limits: &DiskLimits) -> Option<Self> {
        let sides = [limits.gate.iops, limits.gate.bytes];
        if !sides.iter().flatten().any(Limit::is_on_demand) {
            return None;
        }
        let [target_operations, target_bytes] =
            sides.map(|limit| limit.map_or(u64::MAX, |limit| limit.rate.get()));
        let io_unit = limits.io_unit;
        let (second, operations, bytes, counted) = (0, 0, 0, 0);
        Some(Self { target_operations, target_bytes, io_unit, second, operations, bytes, counted })
    }

    /// A request passed the disk's gate at `at`; returns the transactions that this adds.
    pub(super) fn passed(&mut self, at: Instant, operations: u32, bytes: u32) -> u64 {
        let second = at.nanos() / NANOS_PER_SEC;
        if second != self.second {
            (self.second, self.operations, self.bytes, self.counted) = (second, 0, 0, 0);
        }
        self.operations += u64::from(operations);
        self.bytes += u64::from(bytes);
        let bytes = self.bytes.saturating_sub(self.target_bytes);
        let of_bytes = self.io_unit.map_or(0, |unit| bytes / unit);
        let above = self.operations.saturating_sub(self.target_operations).max(of_bytes);
        let new = above - self.counted;
        self.counted = above;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::GateLimits;

    fn disk(iops: u64, bytes: u64) -> DiskLimits {
        let limit = |rate: u64, peak| {
            let rate = NonZeroU64::new(rate).expect("above zero");
            Limit { rate, burst: None, reserve: None }
                .with_on_demand(NonZeroU64::new(peak).expect("above zero"))
        };
        let gate =
            GateLimits { iops: Some(limit(iops, 30_000)), bytes: Some(limit(bytes, 1_000 << 20)) };
        DiskLimits { gate, io_unit: NonZeroU64::new(256 << 10), merges: false }
    }

    /// Returns the transactions of seconds, with the operations and bytes that pass in each.
    fn check(seconds: &[(u64, u32)], expect: u64) {
        let mut above = AboveTarget::of(&disk(5_000, 200 << 20)).expect("on demand");
        let mut counted = 0;
        for (second, (operations, bytes)) in (0..).zip(seconds) {
            for n in 0..*operations {
                let within = n * NANOS_PER_SEC / operations;
                let at = Instant::from_nanos(second * NANOS_PER_SEC + within);
                counted += above.passed(at, bytes.div_ceil(256 << 10), *bytes);
            }
        }
        assert_eq!(counted, expect, "{seconds:?}");
    }

    #[test]
    fn a_second_counts_the_operations_or_the_bytes_above_the_target() {
        check(&[(5_000, 8 << 10)], 0);
        check(&[(7_500, 8 << 10)], 2_500);
        // 300 MiB/s is 100 MiB/s above, which are 400 operations of 256 KiB.
        check(&[(4_800, 64 << 10)], 400);
        // Both are above: the larger counts. 10,000 x 32 KiB are 312.5 MiB.
        check(&[(10_000, 32 << 10)], 5_000);
        // A quiet second does not pay for a busy one.
        check(&[(0, 0), (7_500, 8 << 10), (100, 8 << 10), (5_001, 8 << 10)], 2_501);
    }

    #[test]
    fn other_disks_are_not_counted() {
        let credits = Limit { rate: NonZeroU64::MIN, burst: None, reserve: None }
            .with_burst(NonZeroU64::MAX, weir_units::Span::from_secs(1_800));
        let gate = GateLimits { iops: Some(credits), bytes: None };
        assert!(AboveTarget::of(&DiskLimits { gate, io_unit: None, merges: false }).is_none());
        assert!(AboveTarget::of(&DiskLimits::default()).is_none());
    }
}
