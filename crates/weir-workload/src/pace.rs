//! Exact rate limits of one direction.
//!
//! As in fio, an I/O is due when everything before it would have ended at the rate: the first one
//! at once, others at `start + bytes / rate`. Lost time is caught up, since due times depend on the
//! issued bytes and not on their times. `rate_iops` counts an I/O as its bytes over the smallest
//! block, so it is the byte rate `iops * block`. The sum consists of whole nanoseconds and a
//! fraction with the rate as its denominator, so nothing is rounded. A jittered I/O is due later,
//! at a random time in its interval.

use crate::job::RateProcess;
use weir_random::Rng;
use weir_units::Instant;
use weir_units::time::NANOS_PER_SEC;

/// The due time of the next I/O of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// Bytes per second; at most 2^62, so that fractions add without overflow.
    rate: u64,
    /// The due time of the next I/O in whole nanoseconds ...
    due: u64,
    /// ... and the fraction of the next nanosecond, in 1 / rate.
    fraction: u64,
    /// The cost of a block of `block` bytes, computed once.
    block: u32,
    cost: (u64, u64),
    process: RateProcess,
    /// How much later than `due` the next I/O goes, if its time is jittered.
    delay: u64,
}

impl Pace {
    /// Limits to `rate` bytes per second from `start`. Most I/Os have `block` bytes.
    pub(crate) fn new(rate: u64, block: u32, start: Instant) -> Self {
        assert!(rate > 0 && rate <= 1 << 62, "rates are checked when they are read");
        let (due, cost) = (start.nanos(), cost(block, rate));
        Self { rate, due, fraction: 0, block, cost, process: RateProcess::Linear, delay: 0 }
    }

    /// Draws the times by `process`.
    pub(crate) fn by(self, process: RateProcess) -> Self {
        Self { process, ..self }
    }

    /// Restarts at `start`.
    pub(crate) fn restart(&mut self, start: Instant, rng: &mut Rng) {
        self.due = start.nanos();
        self.fraction = 0;
        self.jitter(rng);
    }

    /// Draws the time of the next I/O within its interval. The last eighth is left out: at a few I/Os per
    /// second, the last one of a run would otherwise often complete after its end.
    #[inline]
    fn jitter(&mut self, rng: &mut Rng) {
        if self.process == RateProcess::Jittered {
            let interval = self.cost.0;
            self.delay = rng.below(interval - interval / 8);
        }
    }

    /// Returns the earliest time of the next I/O.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        let due = self.due.saturating_add(u64::from(self.fraction > 0));
        Instant::from_nanos(due.saturating_add(self.delay))
    }

    /// Charges an I/O of `len` bytes.
    #[inline]
    pub(crate) fn charge(&mut self, len: u32, rng: &mut Rng) {
        let (nanos, fraction) = if len == self.block { self.cost } else { cost(len, self.rate) };
        if self.process == RateProcess::Poisson {
            self.due = self.due.saturating_add(rng.exponential(nanos));
            return;
        }
        self.due = self.due.saturating_add(nanos);
        self.fraction += fraction;
        if self.fraction >= self.rate {
            self.fraction -= self.rate;
            self.due = self.due.saturating_add(1);
        }
        self.jitter(rng);
    }
}

/// Returns `len / rate` in whole nanoseconds and a remainder over `rate`. A 32-bit length times
/// 10^9 is below 2^62.
fn cost(len: u32, rate: u64) -> (u64, u64) {
    let product = u64::from(len) * NANOS_PER_SEC;
    (product / rate, product % rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_random::Rng;

    fn rng() -> Rng {
        Rng::new(&[7])
    }

    #[test]
    fn poisson_holds_the_rate_with_times_that_differ() {
        let mut pace = Pace::new(500 * 4096, 4096, Instant::ZERO).by(RateProcess::Poisson);
        let (mut rng, mut gaps) = (rng(), Vec::new());
        for _ in 0..50_000 {
            let before = pace.due();
            pace.charge(4096, &mut rng);
            gaps.push((pace.due() - before).nanos());
        }
        // 2 ms on average; a part of exp(-1) is longer than the mean.
        assert!(pace.due().nanos().abs_diff(100_000_000_000) < 2_000_000_000, "{:?}", pace.due());
        let longer = gaps.iter().filter(|gap| **gap > 2_000_000).count();
        assert!(longer.abs_diff(18_394) < 400, "{longer}");
    }

    #[test]
    fn jittered_has_one_random_time_in_each_interval() {
        // Seven of eight parts of an interval of 2 ms are used alike.
        let mut pace = Pace::new(500 * 4096, 4096, Instant::ZERO).by(RateProcess::Jittered);
        let (mut rng, mut eighths) = (rng(), [0; 8]);
        pace.restart(Instant::ZERO, &mut rng);
        for interval in 0..70_000_u64 {
            let due = pace.due().nanos();
            assert_eq!(due / 2_000_000, interval);
            eighths[usize::try_from(due % 2_000_000 / 250_000).expect("small")] += 1;
            pace.charge(4096, &mut rng);
        }
        let [used @ .., last] = eighths;
        assert!(used.iter().all(|own: &u64| own.abs_diff(10_000) < 400), "{eighths:?}");
        assert_eq!(last, 0);
        let end = pace.due();
        pace.restart(Instant::ZERO, &mut rng);
        assert!(pace.due() < end && pace.due().nanos() < 2_000_000);
    }

    proptest! {
        /// The k-th I/O goes at the first nanosecond that is not before
        /// start + bytes / rate, computed here in one piece with 128 bits.
        #[test]
        fn every_due_time_is_exact(
            rate in 1_u64..=1 << 40,
            block in 1_u32..=1 << 22,
            start in 0_u64..1 << 40,
            lens in prop::collection::vec(prop_oneof![Just(None), (1_u32..=1 << 22).prop_map(Some)], 1..200),
        ) {
            let mut pace = Pace::new(rate, block, Instant::from_nanos(start));
            let mut bytes = 0_u128;
            for len in lens {
                let exact = u128::from(start) + (bytes * 1_000_000_000).div_ceil(u128::from(rate));
                let expect = u64::try_from(exact).unwrap_or(u64::MAX);
                prop_assert_eq!(pace.due().nanos(), expect);
                pace.charge(len.unwrap_or(block), &mut rng());
                bytes += u128::from(len.unwrap_or(block));
            }
        }

        /// A jittered I/O comes in the interval that begins at its due time without jitter.
        #[test]
        fn a_jittered_time_is_within_its_interval(
            rate in 1_u64..=1 << 40,
            block in 1_u32..=1 << 22,
            start in 0_u64..1 << 40,
        ) {
            let begin = Instant::from_nanos(start);
            let mut even = Pace::new(rate, block, begin);
            let mut pace = Pace::new(rate, block, begin).by(RateProcess::Jittered);
            let (mut own, mut other) = (rng(), rng());
            pace.restart(begin, &mut own);
            let interval = cost(block, rate).0;
            for _ in 0..100 {
                let late = pace.due().since(even.due()).nanos();
                prop_assert!(pace.due() >= even.due() && late <= interval);
                pace.charge(block, &mut own);
                even.charge(block, &mut other);
            }
            prop_assert_eq!(other.next_u64(), rng().next_u64(), "an even pace draws nothing");
        }
    }

    #[test]
    fn a_year_of_a_rate_that_does_not_divide_a_second_has_not_drifted() {
        let mut pace = Pace::new(3 * 4096, 4096, Instant::ZERO);
        for _ in 0..3 * 1_000_000 {
            pace.charge(4096, &mut rng());
        }
        assert_eq!(pace.due().nanos(), 1_000_000 * NANOS_PER_SEC);
    }

    #[test]
    fn the_largest_rate_and_block_do_not_overflow() {
        let mut pace = Pace::new(1 << 62, 1 << 30, Instant::ZERO);
        pace.charge(u32::MAX, &mut rng());
        pace.charge(1 << 30, &mut rng());
        assert_eq!(pace.due().nanos(), 2);
        let mut slow = Pace::new(1, u32::MAX, Instant::ZERO);
        (0..100).for_each(|_| slow.charge(u32::MAX, &mut rng()));
        assert_eq!(slow.due(), Instant::FAR);
    }
}
