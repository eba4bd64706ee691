//! The times of samples: first and last, usual distance, and gaps.

use std::collections::BTreeMap;
use weir_units::{Instant, Span};

/// The times of the samples of an observation.
#[derive(Debug, Default)]
pub(crate) struct Times {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Number of samples by distance in nanoseconds, rounded to three digits to bound the table.
    apart: BTreeMap<u64, u64>,
    /// The longest distance.
    longest: Span,
}

impl Times {
    /// The shortest distance reported as a gap.
    pub(crate) const LONG: Span = Span::from_secs(60);

    /// Takes the times of consecutive samples.
    pub(crate) fn take(&mut self, times: &[Instant]) {
        self.first = self.first.or(times.first().copied());
        let mut run = (0, 0);
        for at in times {
            if let Some(last) = self.last.replace(*at) {
                let exactly = at.since(last);
                self.longest = self.longest.max(exactly);
                let apart = to_three_digits(exactly.nanos());
                if apart != run.0 {
                    self.add(run);
                    run = (apart, 0);
                }
                run.1 += 1;
            }
        }
        self.add(run);
    }

    fn add(&mut self, (apart, count): (u64, u64)) {
        if count > 0 {
            *self.apart.entry(apart).or_default() += count;
        }
    }

    /// Returns the first and last time, if there is a sample.
    pub(crate) fn extent(&self) -> Option<(Instant, Instant)> {
        self.first.zip(self.last)
    }

    /// Describes the gaps: their number, and the length of the longest.
    pub(crate) fn gaps(&self) -> Option<String> {
        let usual = self.usual()?;
        let least = Self::LONG.nanos().max(usual.saturating_mul(10));
        let count: u64 = self.apart.range(least.saturating_add(1)..).map(|(_, count)| count).sum();
        let least = in_seconds(Span::from_nanos(least));
        let (usual, longest) = (Span::from_nanos(usual), in_seconds(self.longest));
        (count > 0).then(|| {
            format!(
                "samples are usually {usual} apart; unobserved gaps of more than {least}: {count}, \
                 the longest {longest}"
            )
        })
    }

    /// Returns the median distance of samples.
    fn usual(&self) -> Option<u64> {
        let half = self.apart.values().sum::<u64>().div_ceil(2);
        let mut before = 0;
        let found = self.apart.iter().find(|(_, count)| {
            before += **count;
            before >= half
        });
        found.map(|(apart, _)| *apart)
    }
}

/// Formats a time in whole seconds.
pub(crate) fn in_seconds(span: Span) -> String {
    format!("{} s", span.nanos() / 1_000_000_000)
}

/// Rounds down to three significant digits.
fn to_three_digits(number: u64) -> u64 {
    let by = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    number / by * by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept() {
        let check = |number, expect| assert_eq!(to_three_digits(number), expect);
        check(0, 0);
        check(7, 7);
        check(999, 999);
        check(1_234, 1_230);
        check(u64::MAX, 18_400_000_000_000_000_000);
    }
}
