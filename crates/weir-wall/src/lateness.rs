//! The lateness of a thread's recent wake-ups.

use weir_units::Span;

/// The number of wake-ups that count. Older ones say little about the present load.
const RECENT: usize = 64;

/// The number of wake-ups from which an estimate is made.
const ENOUGH: usize = 8;

/// No thread wakes up earlier than this before a deadline. A machine that is later is overloaded,
/// and polling would make that worse.
pub(crate) const LONGEST_LEAD: Span = Span::from_micros(400);

/// The lateness of recent wake-ups, from which the lead of the next one follows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lateness {
    /// In nanoseconds, a ring.
    recent: Vec<u64>,
    oldest: usize,
    sorted: Vec<u64>,
}

impl Lateness {
    /// Adds a wake-up, and forgets the oldest one if there are enough.
    pub(crate) fn note(&mut self, late: Span) {
        let late = late.nanos();
        if self.recent.len() < RECENT {
            self.recent.push(late);
        } else {
            let gone = std::mem::replace(&mut self.recent[self.oldest], late);
            self.oldest = (self.oldest + 1) % RECENT;
            let at = self.sorted.partition_point(|other| *other < gone);
            self.sorted.remove(at);
        }
        let at = self.sorted.partition_point(|other| *other < late);
        self.sorted.insert(at, late);
    }

    /// Returns the time by which to wake up before a deadline. It is the largest quantile of the
    /// recent lateness that leaves a mean of at most `affordable` to poll, since wake-ups that are
    /// less late than the lead come early.
    pub(crate) fn lead(&self, affordable: Span) -> Span {
        if self.sorted.len() < ENOUGH {
            return Span::ZERO;
        }
        let affordable = affordable.nanos().saturating_mul(self.sorted.len() as u64);
        let (mut lead, mut polled) = (0, 0_u64);
        for (earlier, late) in (0..).zip(&self.sorted) {
            // Each wake-up that is less late polls for the difference, too.
            polled = polled.saturating_add((*late - lead).saturating_mul(earlier));
            if polled > affordable || *late > LONGEST_LEAD.nanos() {
                break;
            }
            lead = *late;
        }
        Span::from_nanos(lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(late: impl IntoIterator<Item = u64>, affordable: u64) -> u64 {
        let mut lateness = Lateness::default();
        late.into_iter().for_each(|late| lateness.note(Span::from_micros(late)));
        lateness.lead(Span::from_micros(affordable)).nanos() / 1000
    }

    #[test]
    fn the_lead_is_the_largest_quantile_that_is_affordable() {
        let tens = || (1..=10).map(|n| n * 10);
        // Wake-ups that are never early need no polling.
        assert_eq!(lead(tens(), 0), 10);
        // A lead of 20 µs polls for 10 µs after one wake-up of ten.
        assert_eq!(lead(tens(), 1), 20);
        assert_eq!(lead(tens(), 2), 20);
        // One of 30 µs polls for 20 and 10 µs.
        assert_eq!(lead(tens(), 3), 30);
        // 90 + 80 + .. + 10 = 450 µs of ten wake-ups.
        assert_eq!(lead(tens(), 44), 90);
        assert_eq!(lead(tens(), 45), 100);
        assert_eq!(lead(std::iter::repeat_n(15, 64), 0), 15);
    }

    #[test]
    fn a_few_wake_ups_are_no_estimate() {
        assert_eq!(lead(std::iter::repeat_n(15, ENOUGH - 1), 100), 0);
        assert_eq!(lead(std::iter::repeat_n(15, ENOUGH), 100), 15);
    }

    #[test]
    fn the_lead_is_bounded() {
        assert_eq!(lead(std::iter::repeat_n(4_000, 64), 1_000_000), 0);
        let some = std::iter::repeat_n(20, 60).chain(std::iter::repeat_n(4_000, 4));
        assert_eq!(lead(some, 1_000_000), 20);
    }

    #[test]
    fn old_wake_ups_are_forgotten() {
        let late = std::iter::repeat_n(200, RECENT).chain(std::iter::repeat_n(15, RECENT));
        assert_eq!(lead(late, 1_000), 15);
        let mixed = (0..1_000).map(|n| n * 7919 % 300);
        let last: Vec<u64> = mixed.clone().skip(1_000 - RECENT).collect();
        assert_eq!(lead(mixed, 1_000), *last.iter().max().unwrap());
        assert_eq!(lead(last.clone(), 0), *last.iter().min().unwrap());
    }
}
