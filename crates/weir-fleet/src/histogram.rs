//! Latencies as text that can be added up.
//!
//! Percentiles of servers cannot be averaged, but counts can be added. The buckets are those of HDR
//! histograms with two significant digits: each is at most 1 % wide, and equal values are in equal
//! buckets on every machine. The text has the lowest value of each bucket in nanoseconds and its
//! count: `1007616:12 1024000:3`.

use hdrhistogram::Histogram;

/// Returns the buckets of a text: the lowest value of each, and its count. An error is a part that is not a
/// bucket.
pub(crate) fn buckets(text: &str) -> impl Iterator<Item = Result<(u64, u64), &str>> {
    text.split_whitespace().map(|part| {
        let pair = part.split_once(':');
        let bucket = pair.and_then(|(value, n)| Some((value.parse().ok()?, n.parse().ok()?)));
        bucket.ok_or(part)
    })
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // Two significant digits are always possible.
        Self(Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits")))
    }
}

impl Latencies {
    /// Adds the counts of a histogram with the same buckets.
    pub fn add(&mut self, other: &Histogram<u64>) {
        for bucket in other.iter_recorded() {
            self.record(bucket.value_iterated_to(), bucket.count_at_value());
        }
    }

    fn record(&mut self, value: u64, count: u64) {
        // The histogram grows to any value.
        let _ = self.0.record_n(self.0.lowest_equivalent(value), count);
    }

    /// Adds the counts of a text.
    ///
    /// # Errors
    ///
    /// The part that is no bucket.
    pub fn add_text(&mut self, text: &str) -> Result<(), String> {
        for bucket in buckets(text) {
            let (value, count) = bucket.map_err(str::to_owned)?;
            self.record(value, count);
        }
        Ok(())
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> String {
        let buckets = self.0.iter_recorded().map(|bucket| {
            let lowest = self.0.lowest_equivalent(bucket.value_iterated_to());
            format!("{lowest}:{}", bucket.count_at_value())
        });
        buckets.collect::<Vec<_>>().join(" ")
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency at a percentile, in nanoseconds; `None` without values.
    #[must_use]
    pub fn percentile(&self, percentile: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percentile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latencies(values: &[u64]) -> Latencies {
        let mut all = Latencies::default();
        values.iter().for_each(|value| all.record(*value, 1));
        all
    }

    proptest! {
        #[test]
        fn the_sum_of_two_texts_is_the_text_of_all(
            one in prop::collection::vec(1..u64::MAX / 2, 0..50),
            other in prop::collection::vec(1..10_000_000_u64, 0..50),
        ) {
            let mut sum = Latencies::default();
            prop_assert_eq!(sum.add_text(&latencies(&one).text()), Ok(()));
            prop_assert_eq!(sum.add_text(&latencies(&other).text()), Ok(()));
            let all = latencies(&[one, other].concat());
            prop_assert_eq!(sum.text(), all.text());
            prop_assert_eq!(sum.percentile(99.0), all.percentile(99.0));
        }
    }

    #[test]
    fn texts_that_are_no_buckets_are_named() {
        let check = |text: &str, wrong: &str| {
            assert_eq!(Latencies::default().add_text(text), Err(wrong.to_owned()));
        };
        check("100:1 200", "200");
        check("100:-1", "100:-1");
        assert_eq!(latencies(&[]).percentile(50.0), None);
        let value = latencies(&[5_000_000; 10]).percentile(50.0).expect("a value");
        assert!(value.abs_diff(5_000_000) <= 50_000, "{value}");
    }
}
