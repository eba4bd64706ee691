//! One rate, exact.
//!
//! A meter keeps the time from which its budget is whole again. Admitting a cost
//! moves that time by `cost / rate` seconds; the quotient is kept in nanoseconds
//! and the remainder beside it, so that after any number of admissions the meter
//! stands where exact fractions would put it. Only the admission itself is
//! rounded, up to the next nanosecond, and that rounding is not carried on.
//!
//! ```text
//!   admitted     next (one cost later)          rate 3/s, cost 1
//!      |------------------|------------------|------------------|
//!      0          333,333,333 1/3    666,666,666 2/3     1,000,000,000
//! ```
//!
//! Idle time is not saved up: a meter without tolerance never admits two costs
//! closer than the first one's `cost / rate`. With a *tolerance* it is a bucket of
//! credits: it may run ahead of its rate by that much time, which is how a
//! bursting disk spends the credits that it earned below its target.
//!
//! A *reserve* is a bucket beside the rate that fills more slowly than the rate
//! leaves unused. It holds time: an admission that comes before the rate allows it
//! takes the difference from the reserve, so that the rate itself never runs ahead.
//! From an idle start, a saturated meter admits `1 + holds / T` times its rate in `T`.

use crate::spec::Reserve;
use core::num::NonZeroU64;
use weir_units::time::NANOS_PER_SEC;
use weir_units::{Instant, Share};

/// The largest cost a meter takes at once (a quarter of 2^64 nanoseconds' worth
/// at a rate of one per second, so that the arithmetic stays within 64 bits).
pub const MAX_COST: u64 = 1 << 32;

/// Together with [`MAX_COST`] this keeps the arithmetic within 64 bits.
const MAX_RATE: NonZeroU64 = NonZeroU64::MIN.saturating_add((1 << 62) - 1);

/// A rate with what is left of its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    rate: NonZeroU64,
    /// Capacity of the bucket ...
    credits: u64,
    /// ... and the nanoseconds that it may run ahead by them, rounded down; with a reserve,
    /// the rest of it.
    tolerance: u64,
    reserve: Option<Refill>,
    /// Nanoseconds at which all that was admitted is paid for ...
    free: u64,
    /// ... plus this many `1 / rate` parts of a nanosecond.
    remainder: u64,
}

/// The way in which a reserve fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refill {
    /// Nanoseconds of the rate that a whole reserve holds ...
    holds: u64,
    /// ... and the idle nanoseconds that fill it from empty.
    takes: NonZeroU64,
    /// The rest of earnings beyond whole nanoseconds, in parts of `1 / takes`.
    part: u64,
}

impl Refill {
    /// Returns the reserve after `idle` nanoseconds.
    fn earn(&mut self, left: u64, idle: u64) -> u64 {
        let earned = u128::from(idle) * u128::from(self.holds) + u128::from(self.part);
        let takes = u128::from(self.takes.get());
        let room = self.holds - left;
        match u64::try_from(earned / takes) {
            Ok(whole) if whole < room => {
                // A remainder is below its divisor, which has 64 bits.
                self.part = u64::try_from(earned % takes).unwrap_or(0);
                left + whole
            }
            _ => {
                self.part = 0;
                self.holds
            }
        }
    }
}

impl Meter {
    /// A meter of `rate` per second, whole from the start. A rate above 2^62, which
    /// nothing reaches, counts as 2^62.
    #[must_use]
    pub const fn new(rate: NonZeroU64) -> Self {
        let rate = if rate.get() > MAX_RATE.get() { MAX_RATE } else { rate };
        Self { rate, credits: 0, tolerance: 0, reserve: None, free: 0, remainder: 0 }
    }

    /// A full bucket of `credits` that earns `rate` per second.
    ///
    /// Together with a meter of a higher rate before it, this is credit bursting:
    /// the bucket earns target minus use while use is below the target and spends
    /// use minus target while it is above. `credits` beyond 2^62 nanoseconds of
    /// the rate are cut there.
    #[must_use]
    pub(crate) fn with_credits(rate: NonZeroU64, credits: u64) -> Self {
        const MOST: u64 = u64::MAX / 4;
        let meter = Self::new(rate);
        let (second, rate) = (u128::from(NANOS_PER_SEC), u128::from(meter.rate.get()));
        match u64::try_from(u128::from(credits) * second / rate) {
            Ok(tolerance) if tolerance <= MOST => Self { credits, tolerance, ..meter },
            _ => {
                let credits = u64::try_from(u128::from(MOST) * rate / second);
                Self { credits: credits.unwrap_or(u64::MAX), tolerance: MOST, ..meter }
            }
        }
    }

    /// The same without credits, with a reserve that is whole at the start.
    #[must_use]
    pub fn with_reserve(self, reserve: Option<Reserve>) -> Self {
        const MOST: u64 = u64::MAX / 4;
        let Some(Reserve { holds, refill }) = reserve else { return self };
        let Some(takes) = NonZeroU64::new(refill.nanos()) else { return self };
        let holds = holds.nanos().min(MOST);
        let refill = Refill { holds, takes, part: 0 };
        Self { credits: 0, tolerance: holds, reserve: Some(refill), ..self }
    }

    /// The rate, per second.
    #[must_use]
    pub const fn rate(&self) -> NonZeroU64 {
        self.rate
    }

    /// Returns when a cost that arrives at `at` is admitted: then, or when the budget allows
    /// it.
    #[must_use]
    pub fn admits_at(&self, at: Instant) -> Instant {
        let whole = self.free.saturating_add(u64::from(self.remainder > 0));
        at.max(Instant::from_nanos(whole.saturating_sub(self.tolerance)))
    }

    /// Charges `cost`, admitted at `at`, which must not be before
    /// [`admits_at`](Self::admits_at) says.
    ///
    /// # Panics
    ///
    /// In debug builds, if `cost` is larger than [`MAX_COST`].
    pub fn charge(&mut self, at: Instant, cost: u64) {
        debug_assert!(cost <= MAX_COST, "a cost of {cost} does not fit the arithmetic");
        let whole = self.free.saturating_add(u64::from(self.remainder > 0));
        if at.nanos() > whole {
            if let Some(reserve) = &mut self.reserve {
                self.tolerance = reserve.earn(self.tolerance, at.nanos() - whole);
            }
            self.free = at.nanos();
            self.remainder = 0;
        } else if self.reserve.is_some() {
            let ahead = self.free.saturating_sub(at.nanos());
            self.tolerance = self.tolerance.saturating_sub(ahead);
            self.free -= ahead;
        }
        let due = cost * NANOS_PER_SEC + self.remainder;
        // Saturates after 584 years.
        self.free = self.free.saturating_add(due / self.rate);
        self.remainder = due % self.rate;
    }

    /// Returns the contents of the bucket at `now`; zero for a meter without credits.
    #[must_use]
    pub fn credits(&self, now: Instant) -> u64 {
        let used = self.free.saturating_sub(now.nanos()).min(self.tolerance);
        let spent = u128::from(used) * u128::from(self.rate.get());
        let spent = u64::try_from(spent.div_ceil(u128::from(NANOS_PER_SEC)));
        spent.map_or(0, |spent| self.credits.saturating_sub(spent))
    }

    /// Returns the capacity of the bucket; zero for a meter without credits.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.credits
    }

    /// Sets the contents of the bucket at `now`, whatever was owed. A meter without credits stays
    /// as it is.
    pub(crate) fn fill(&mut self, now: Instant, share: Share) {
        if self.credits == 0 {
            return;
        }
        let spent = u128::from(self.credits - share.part_of(self.credits));
        // The rest of a nanosecond that the tolerance lacks would be a wait.
        let most = u128::from(self.tolerance) * u128::from(self.rate.get());
        let spent = (spent * u128::from(NANOS_PER_SEC)).min(most);
        let rate = u128::from(self.rate.get());
        let fits = |n: u128| u64::try_from(n).unwrap_or(u64::MAX / 4);
        self.free = now.nanos().saturating_add(fits(spent / rate));
        self.remainder = fits(spent % rate);
    }

    /// Takes over the state of `old`, at this meter's rate. Costs admitted ahead of the rate
    /// and not covered by credits stay owed, as the same number of operations or bytes. Spent
    /// credits stay spent as far as this bucket reaches; they never become a wait. A reserve
    /// keeps what is left of it, with what it earned up to now, and starts whole where there was none.
    pub(crate) fn inherit(&mut self, old: &Self, now: Instant) {
        let ahead = old.free.saturating_sub(now.nanos());
        let [credit, own_credit] =
            [old, self].map(|meter| if meter.reserve.is_some() { 0 } else { meter.tolerance });
        if let (Some(own), Some(mut reserve)) = (&mut self.reserve, old.reserve) {
            let whole = old.free.saturating_add(u64::from(old.remainder > 0));
            let left = match now.nanos() > whole {
                true => reserve.earn(old.tolerance, now.nanos() - whole),
                false => old.tolerance,
            };
            self.tolerance = self.tolerance.min(left);
            let is_partial = own.takes == reserve.takes && self.tolerance < own.holds;
            own.part = if is_partial { reserve.part } else { 0 };
        }
        let spent = ahead.min(credit);
        let units = |nanos: u64, rate: NonZeroU64| u128::from(nanos) * u128::from(rate.get());
        // The part of a nanosecond is of the debt, where there is one.
        let part = if ahead > credit { u128::from(old.remainder) } else { 0 };
        let owed = units(ahead - spent, old.rate) + part;
        let spent = units(spent, old.rate).min(units(own_credit, self.rate));
        let rate = u128::from(self.rate.get());
        let fits = |n: u128| u64::try_from(n).unwrap_or(u64::MAX / 4);
        self.free = now.nanos().saturating_add(fits((owed + spent) / rate));
        self.remainder = fits((owed + spent) % rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Span;

    fn rate(n: u64) -> NonZeroU64 {
        NonZeroU64::new(n).expect("a rate above zero")
    }

    /// Admission times of `n` costs that are all waiting at zero.
    fn saturated(mut meter: Meter, costs: &[u64]) -> alloc::vec::Vec<u64> {
        let mut now = Instant::ZERO;
        costs
            .iter()
            .map(|&cost| {
                now = meter.admits_at(now);
                meter.charge(now, cost);
                now.nanos()
            })
            .collect()
    }

    #[test]
    fn a_third_of_a_second_does_not_drift() {
        let times = saturated(Meter::new(rate(3)), &[1; 3_000_001]);
        assert_eq!(times[1], 333_333_334);
        assert_eq!(times[2], 666_666_667);
        assert_eq!(times[3], 1_000_000_000);
        assert_eq!(times[3_000_000], 1_000_000 * NANOS_PER_SEC);
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut meter = Meter::new(rate(1_000));
        meter.charge(Instant::ZERO, 1);
        let late = Instant::from_nanos(NANOS_PER_SEC);
        assert_eq!(meter.admits_at(late), late);
        meter.charge(late, 1);
        assert_eq!(meter.admits_at(late), late + Span::from_millis(1));
    }

    #[test]
    fn a_full_bucket_lasts_its_minutes_at_the_maximum() {
        // A 500 IOPS disk that bursts to 3,500: (3,500 - 500) x 1,800 s of credits.
        let credits = 3_000 * 1_800;
        let mut burst = Meter::new(rate(3_500));
        let mut bucket = Meter::with_credits(rate(500), credits);
        assert_eq!(bucket.credits(Instant::ZERO), credits);
        let mut now = Instant::ZERO;
        let mut admitted_in_burst = 0_u64;
        loop {
            let peak = burst.admits_at(now);
            let at = bucket.admits_at(peak);
            if at > peak {
                break;
            }
            burst.charge(at, 1);
            bucket.charge(at, 1);
            now = at;
            admitted_in_burst += 1;
        }
        let seconds = now.nanos() / NANOS_PER_SEC;
        assert!((1_800..=1_801).contains(&seconds), "the burst lasted {seconds} s");
        assert!((6_300_000..=6_303_500).contains(&admitted_in_burst), "{admitted_in_burst}");
        assert_eq!(bucket.credits(now), 0);
        // Half a minute of rest earns half a minute of the target.
        let earned = bucket.credits(now + Span::from_secs(30));
        assert!(earned.abs_diff(30 * 500) <= 1, "{earned}");
    }

    #[test]
    fn a_bucket_can_be_filled_to_any_part() {
        let share = |text: &str| text.parse::<Share>().expect("a share");
        let now = Instant::from_nanos(7 * NANOS_PER_SEC);
        for (rate_, credits) in
            [(2_300, 2_160_000), (150_000_000, 36_000_000_001), (500, 5_400_000)]
        {
            let mut bucket = Meter::with_credits(rate(rate_), credits);
            for (text, left) in [("50 %", credits / 2), ("0 %", 0), ("100 %", credits)] {
                bucket.fill(now, share(text));
                assert_eq!(bucket.credits(now), left, "{text} of {credits}");
                // Credits never become a wait.
                assert_eq!(bucket.admits_at(now), now, "{text} of {credits}");
            }
        }
        // An empty bucket of a P10: the n-th operation passes with n / 500 s.
        let mut bucket = Meter::with_credits(rate(500), 5_400_000);
        bucket.fill(Instant::ZERO, Share::NONE);
        let times = saturated(bucket, &[1; 1_001]);
        assert_eq!(times[..3], [0, 2_000_000, 4_000_000]);
        assert_eq!(times[1_000], 2 * NANOS_PER_SEC);
        // Without credits there is nothing to fill.
        let mut plain = Meter::new(rate(500));
        plain.charge(Instant::ZERO, 50);
        let before = plain.clone();
        plain.fill(now, Share::NONE);
        assert_eq!(plain, before);
    }

    #[test]
    fn an_untouched_bucket_is_full() {
        // 2,160,000 operations of a P20 are no whole number of nanoseconds at its target.
        for (rate_, credits) in [(2_300, 2_160_000), (150_000_000, 36_000_000_001), (3, 1), (7, 0)]
        {
            let mut bucket = Meter::with_credits(rate(rate_), credits);
            assert_eq!(bucket.credits(Instant::ZERO), credits);
            if credits > 0 {
                bucket.charge(Instant::ZERO, 1);
                assert_eq!(bucket.credits(Instant::ZERO), credits - 1);
            }
        }
        // No more than the arithmetic holds: 2^62 nanoseconds of the rate.
        let most = (1_u64 << 62) / NANOS_PER_SEC;
        for (rate_, credits, expect) in
            [(1, u64::MAX, most), (1, 10_000_000_000, most), (1_000, u64::MAX, 4_611_686_018_427)]
        {
            let mut cut = Meter::with_credits(rate(rate_), credits);
            assert_eq!((cut.credits(Instant::ZERO), cut.capacity()), (expect, expect));
            cut.charge(Instant::ZERO, 10);
            assert_eq!(cut.credits(Instant::ZERO), expect - 10);
            assert_eq!(cut.admits_at(Instant::ZERO), Instant::ZERO);
        }
    }

    #[test]
    fn a_new_rate_keeps_the_debt() {
        let mut old = Meter::new(rate(100));
        old.charge(Instant::ZERO, 50);
        let mut new = Meter::new(rate(1_000));
        new.inherit(&old, Instant::from_nanos(NANOS_PER_SEC / 4));
        // 25 operations were still owed: 25 ms at the new rate.
        assert_eq!(new.admits_at(Instant::ZERO), Instant::from_nanos(275_000_000));
    }

    /// Notices a debt that wraps or is forgiven where the new rate is very low.
    #[test]
    fn a_debt_longer_than_the_clock_is_cut_to_146_years() {
        let mut old = Meter::new(rate(1 << 32));
        for _ in 0..20 {
            old.charge(Instant::ZERO, MAX_COST);
        }
        let mut new = Meter::new(rate(1));
        new.inherit(&old, Instant::ZERO);
        assert_eq!(new.admits_at(Instant::ZERO), Instant::from_nanos(u64::MAX / 4));
    }

    #[test]
    fn spent_credits_are_no_debt() {
        // A P20 that has spent 20 s of its burst becomes a P30, which has none.
        let drained = |rate_: u64, peak: u64, seconds: u64| {
            let mut bucket = Meter::with_credits(rate(rate_), (peak - rate_) * 1_800);
            bucket.charge(Instant::ZERO, peak * seconds);
            bucket
        };
        let now = Instant::ZERO + Span::from_secs(20);
        let p20 = drained(2_300, 3_500, 20);
        let mut p30 = Meter::new(rate(5_000));
        p30.inherit(&p20, now);
        assert_eq!(p30.admits_at(now), now);
        // A P4 that has spent all becomes a P20: an empty bucket, not a closed one.
        let end = Instant::ZERO + Span::from_secs(1_800);
        let p4 = drained(120, 3_500, 1_800);
        assert_eq!(p4.credits(end), 0);
        let mut p20 = Meter::with_credits(rate(2_300), 1_200 * 1_800);
        p20.inherit(&p4, end);
        assert_eq!(p20.credits(end), 0);
        assert_eq!(p20.admits_at(end), end);
        // And what is owed beyond all credits stays owed.
        let mut beyond = drained(120, 3_500, 1_800);
        beyond.charge(end, 600);
        let mut new = Meter::new(rate(1_000));
        new.inherit(&beyond, end);
        assert_eq!(new.admits_at(end), end + Span::from_millis(600));
    }

    fn reserve(holds: u64, refill: u64) -> Option<Reserve> {
        Some(Reserve { holds: Span::from_nanos(holds), refill: Span::from_nanos(refill) })
    }

    #[test]
    fn a_reserve_of_a_second_is_spent_once_and_fills_slowly() {
        let second = reserve(NANOS_PER_SEC, 80 * NANOS_PER_SEC);
        let mut meter = Meter::new(rate(4_000)).with_reserve(second);
        // Counts the admissions of a run of ten seconds that never waits for requests.
        let mut run = |start: Instant| {
            let (end, mut now, mut admitted) = (start + Span::from_secs(10), start, 0_u64);
            loop {
                now = meter.admits_at(now);
                if now >= end {
                    return admitted;
                }
                meter.charge(now, 1);
                admitted += 1;
            }
        };
        // 1 + 1/10 from idle; 35 s later 35/80 of the reserve is there again, 80 s later all.
        assert_eq!(run(Instant::ZERO), 44_000);
        assert_eq!(run(Instant::ZERO + Span::from_secs(45)), 41_750);
        assert_eq!(run(Instant::ZERO + Span::from_secs(135)), 44_000);
    }

    #[test]
    fn a_reserve_takes_the_place_of_credits() {
        let meter = Meter::with_credits(rate(500), 1_000).with_reserve(reserve(10, 10));
        assert_eq!((meter.capacity(), meter.tolerance), (0, 10));
    }

    #[test]
    fn a_full_reserve_saves_up_no_part_of_a_nanosecond() {
        let takes = NonZeroU64::new(4).expect("above zero");
        let mut refill = Refill { holds: 10, takes, part: 0 };
        // Of 7 1/2 ns that are earned, 7 fill it; a nanosecond then earns 2 1/2.
        assert_eq!([refill.earn(3, 3), refill.earn(0, 1)], [10, 2]);
    }

    #[test]
    fn a_new_reserve_keeps_a_part_of_a_nanosecond_in_its_own_unit_unless_it_is_full() {
        let check = |per_sec: u64, costs: &[u64], now: u64, (holds, refill), expect: (u64, u64)| {
            let mut old = Meter::new(rate(per_sec)).with_reserve(reserve(30, 70));
            costs.iter().for_each(|cost| old.charge(Instant::ZERO, *cost));
            let mut new = Meter::new(rate(per_sec)).with_reserve(reserve(holds, refill));
            new.inherit(&old, Instant::from_nanos(now));
            let part = new.reserve.map(|reserve| reserve.part);
            assert_eq!((new.tolerance, part), (expect.0, Some(expect.1)), "{holds} in {refill} ns");
        };
        // Idle since 1 ns: the reserve has 9 ns and 10 x 30 / 70 ns.
        check(NANOS_PER_SEC, &[21, 1], 11, (30, 70), (13, 20));
        check(NANOS_PER_SEC, &[21, 1], 11, (30, 10), (13, 0));
        check(NANOS_PER_SEC, &[21, 1], 11, (10, 70), (10, 0));
        // 10 operations are paid for at 3 1/3 ns, so 10 ns are idle until 14 ns, and not 11.
        check(300_000_000, &[1; 10], 14, (30, 70), (4, 20));
    }

    /// Admission times of one operation after the other. Before the one of this number, so many
    /// nanoseconds after the last admission, the limits are set again as they are.
    fn set_again(mut meter: Meter, change: Option<(usize, u64)>) -> alloc::vec::Vec<u64> {
        let arrivals =
            [0; 14].into_iter().chain([60, 60, 60, 60, 95, 140, 140, 140, 141, 400, 400]);
        let (fresh, mut now, mut times) = (meter.clone(), Instant::ZERO, alloc::vec::Vec::new());
        for (n, at) in arrivals.enumerate() {
            let at = now.max(Instant::from_nanos(at));
            if let Some((_, late)) = change.filter(|(number, _)| *number == n) {
                let at = (now + Span::from_nanos(late)).min(meter.admits_at(at));
                // A change in the nanosecond in which the debt ends rounds it to a whole one.
                if meter.remainder == 0 || !(meter.free..=meter.free + 1).contains(&at.nanos()) {
                    let mut new = fresh.clone();
                    new.inherit(&meter, at);
                    meter = new;
                }
            }
            now = meter.admits_at(at);
            meter.charge(now, 1);
            times.push(now.nanos());
        }
        times
    }

    /// Notices anything that is owed, earned or forgotten by the change alone.
    #[test]
    fn limits_that_are_set_again_change_no_admission() {
        let plain = Meter::new(rate(300_000_000));
        for meter in [plain.clone().with_reserve(reserve(30, 70)), plain] {
            let expect = set_again(meter.clone(), None);
            for change in (0..expect.len()).flat_map(|n| (0..60).map(move |late| (n, late))) {
                assert_eq!(set_again(meter.clone(), Some(change)), expect, "{change:?}: {meter:?}");
            }
        }
    }

    #[test]
    fn a_new_rate_keeps_the_reserve() {
        let second = reserve(NANOS_PER_SEC, NANOS_PER_SEC);
        let mut old = Meter::new(rate(100)).with_reserve(second);
        // 75 are paid from the reserve; the last admission is still owed.
        for _ in 0..76 {
            old.charge(Instant::ZERO, 1);
        }
        let mut new = Meter::new(rate(1_000)).with_reserve(second);
        new.inherit(&old, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut at_once = 0;
        while new.admits_at(now) == Instant::ZERO {
            new.charge(now, 1);
            at_once += 1;
        }
        // A quarter of a second of the new rate, less the operation that is owed.
        assert_eq!(at_once, 250);
        now = new.admits_at(now);
        assert_eq!(now, Instant::from_nanos(NANOS_PER_SEC / 1_000));
        // Idle time before the change counts: the reserve is whole again after a second and the debt.
        let mut late = Meter::new(rate(1_000)).with_reserve(second);
        late.inherit(&old, Instant::from_nanos(2 * NANOS_PER_SEC));
        assert_eq!(late.tolerance, NANOS_PER_SEC);
        let mut without = Meter::new(rate(1_000));
        without.inherit(&old, Instant::ZERO);
        assert_eq!(without.admits_at(Instant::ZERO), Instant::from_nanos(NANOS_PER_SEC / 1_000));
    }

    /// The rule of a reserve in exact fractions, written apart from the meter: times are
    /// multiples of `1 / (rate x refill)` nanoseconds.
    struct Exact {
        rate: u128,
        holds: u128,
        refill: u128,
        /// The time up to which the rate is used.
        used: u128,
        /// The rest of the reserve.
        left: u128,
    }

    impl Exact {
        fn new(rate: u64, holds: u64, refill: u64) -> Self {
            let [rate, holds, refill] = [rate, holds, refill].map(u128::from);
            Self { rate, holds, refill, used: 0, left: holds * rate * refill }
        }

        /// Admits a cost that waits from `at`; returns the time.
        fn admit(&mut self, at: u64, cost: u64) -> u64 {
            let unit = self.rate * self.refill;
            let nanos = |time: u128| time.div_ceil(unit);
            let whole_left = self.left / unit;
            let at = u128::from(at).max(nanos(self.used).saturating_sub(whole_left));
            if at > nanos(self.used) {
                // Idle time earns `holds / refill` of itself.
                let earned = (at - nanos(self.used)) * self.holds * self.rate;
                self.left = (self.left + earned).min(self.holds * unit);
                self.used = at * unit;
            } else {
                let ahead = (self.used / unit).saturating_sub(at);
                self.left -= ahead * unit;
                self.used -= ahead * unit;
            }
            self.used += u128::from(cost) * u128::from(NANOS_PER_SEC) * self.refill;
            u64::try_from(at).expect("a time")
        }
    }

    proptest::proptest! {
        /// The closed form: from an idle start, `rate x (T + holds)` pass in a run of T.
        #[test]
        fn a_saturated_meter_passes_its_rate_and_its_reserve(
            per_sec in 1_u64..=5_000,
            holds in 0_u64..=2 * NANOS_PER_SEC,
            nanos in 1_u64..=3 * NANOS_PER_SEC,
        ) {
            let mut meter = Meter::new(rate(per_sec)).with_reserve(reserve(holds, NANOS_PER_SEC));
            let (mut now, mut admitted) = (Instant::ZERO, 0_u128);
            loop {
                now = meter.admits_at(now);
                if now.nanos() > nanos {
                    break;
                }
                meter.charge(now, 1);
                admitted += 1;
            }
            let exact = u128::from(per_sec) * u128::from(nanos + holds) / u128::from(NANOS_PER_SEC);
            proptest::prop_assert_eq!(admitted, exact + 1);
        }

        /// Against the rule in exact fractions, with arrivals at any time.
        #[test]
        fn a_reserve_follows_an_exact_model(
            per_sec in 1_u64..=2_000_000,
            holds in 0_u64..=50_000_000,
            refill in 1_u64..=4_000_000_000,
            arrivals in proptest::collection::vec((0_u64..20_000_000, 1_u64..=4_000), 1..300),
        ) {
            let mut meter = Meter::new(rate(per_sec)).with_reserve(reserve(holds, refill));
            let mut exact = Exact::new(per_sec, holds, refill);
            let mut now = Instant::ZERO;
            for (gap, cost) in arrivals {
                // Most come while others wait.
                now += Span::from_nanos(if gap % 3 == 0 { gap } else { 0 });
                let expect = exact.admit(now.nanos(), cost);
                now = meter.admits_at(now);
                meter.charge(now, cost);
                proptest::prop_assert_eq!(now.nanos(), expect);
            }
        }

        /// Against exact rational arithmetic: the k-th admission of a saturated
        /// meter is at ceil(sum of earlier costs / rate).
        #[test]
        fn matches_an_exact_rational_model(
            per_sec in 1_u64..=20_000_000_000,
            costs in proptest::collection::vec(1_u64..=4 << 20, 1..200),
        ) {
            let times = saturated(Meter::new(rate(per_sec)), &costs);
            let mut paid = 0_u128;
            for (time, cost) in times.iter().zip(&costs) {
                let exact = (paid * u128::from(NANOS_PER_SEC)).div_ceil(u128::from(per_sec));
                proptest::prop_assert_eq!(u128::from(*time), exact);
                paid += u128::from(*cost);
            }
        }

        /// With arrivals at any time, no window holds more than the limit and one request.
        #[test]
        fn no_window_exceeds_the_limit_by_more_than_one_request(
            per_sec in 1_u64..=1_000_000,
            gaps in proptest::collection::vec(0_u64..5_000_000, 2..300),
        ) {
            let mut meter = Meter::new(rate(per_sec));
            let mut now = Instant::ZERO;
            let mut times = alloc::vec::Vec::new();
            for gap in gaps {
                now += Span::from_nanos(gap);
                now = meter.admits_at(now);
                meter.charge(now, 1);
                times.push(u128::from(now.nanos()));
            }
            for (i, start) in times.iter().enumerate() {
                for (n, end) in times[i..].iter().enumerate() {
                    let n = u128::try_from(n).unwrap();
                    let allowed = (end - start + 1) * u128::from(per_sec) / u128::from(NANOS_PER_SEC) + 1;
                    proptest::prop_assert!(n <= allowed, "{} in {} ns at {}/s", n, end - start, per_sec);
                }
            }
        }
    }
}
