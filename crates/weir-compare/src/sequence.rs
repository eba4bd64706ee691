//! Values over time in bounded memory.
//!
//! A value is the ratio of two sums: bytes by seconds, nanoseconds by operations. If there are too
//! many values, neighbours are joined by adding both sums, which keeps the ratio of every longer
//! interval exact.

/// The number of values above which neighbours are joined.
const MOST: usize = 2048;

/// An amount and what it is divided by.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ratio {
    /// The amount, for example bytes or nanoseconds.
    pub amount: f64,
    /// The divisor, for example seconds or operations.
    pub by: f64,
}

impl Ratio {
    /// Returns the value; `None` if there is nothing to divide by.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.by > 0.0).then(|| self.amount / self.by)
    }

    fn plus(self, other: Self) -> Self {
        Self { amount: self.amount + other.amount, by: self.by + other.by }
    }
}

/// Values over time, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    values: Vec<Ratio>,
    /// Samples in each value.
    joined: usize,
    /// Samples that do not yet fill a value.
    rest: (Ratio, usize),
    total: Ratio,
    samples: usize,
}

impl Default for Sequence {
    fn default() -> Self {
        let (values, rest, total) = (Vec::new(), (Ratio::default(), 0), Ratio::default());
        Self { values, joined: 1, rest, total, samples: 0 }
    }
}

impl Sequence {
    /// Appends a sample.
    pub fn push(&mut self, amount: f64, by: f64) {
        let own = Ratio { amount, by };
        self.total = self.total.plus(own);
        self.samples += 1;
        self.rest = (self.rest.0.plus(own), self.rest.1 + 1);
        if self.rest.1 < self.joined {
            return;
        }
        self.values.push(self.rest.0);
        self.rest = (Ratio::default(), 0);
        if self.values.len() > MOST {
            self.double();
        }
    }

    /// Joins neighbours, after which each value has twice as many samples.
    fn double(&mut self) {
        let (pairs, odd) = self.values.as_chunks::<2>();
        if let [last] = odd {
            self.rest = (self.rest.0.plus(*last), self.rest.1 + self.joined);
        }
        self.values = pairs.iter().map(|[one, other]| one.plus(*other)).collect();
        self.joined *= 2;
    }

    /// Returns a sequence whose values have at least as many samples each as those of `other`.
    #[must_use]
    pub fn as_coarse_as(&self, other: &Self) -> Self {
        let mut own = self.clone();
        while own.joined < other.joined {
            own.double();
        }
        own
    }

    /// Returns the value over the whole time.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.total.value()
    }

    /// Returns the sum of the amounts.
    #[must_use]
    pub fn amount(&self) -> f64 {
        self.total.amount
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the value that a share of the samples does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        quantile(&self.values, share)
    }

    /// Returns the value of each of `count` equal parts of the time, or `None` if a part has none.
    #[must_use]
    pub fn batches(&self, count: usize) -> Option<Vec<f64>> {
        let whole =
            |part: &[Ratio]| part.iter().fold(Ratio::default(), |sum, own| sum.plus(*own)).value();
        self.parts(count, whole)
    }

    /// Returns a quantile of the samples in each of `count` equal parts of the time.
    #[must_use]
    pub fn quantile_batches(&self, count: usize, share: f64) -> Option<Vec<f64>> {
        self.parts(count, |part| quantile(part, share))
    }

    fn parts(&self, count: usize, of: impl Fn(&[Ratio]) -> Option<f64>) -> Option<Vec<f64>> {
        let length = self.values.len();
        if count == 0 || length < count {
            return None;
        }
        (0..count)
            .map(|at| of(&self.values[at * length / count..(at + 1) * length / count]))
            .collect()
    }
}

/// Returns the value that a share of the values does not exceed, by nearest rank.
fn quantile(values: &[Ratio], share: f64) -> Option<f64> {
    let mut own: Vec<f64> = values.iter().filter_map(|own| own.value()).collect();
    own.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a short list"
    )]
    let rank = (own.len() as f64 * share).ceil() as usize;
    own.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(to: u32) -> Sequence {
        let mut own = Sequence::default();
        (1..=to).for_each(|n| own.push(f64::from(n), 1.0));
        own
    }

    #[test]
    fn joined_neighbours_keep_sums_and_order() {
        let own = counting(10_000);
        assert!(own.values.len() <= MOST && own.joined == 8, "{} {}", own.values.len(), own.joined);
        assert_eq!((own.samples(), own.value()), (10_000, Some(5_000.5)));
        assert_eq!(own.values[1].value(), Some(12.5));
        let batches = own.batches(10).expect("long enough");
        assert!(batches.is_sorted() && batches.len() == 10, "{batches:?}");
        assert!((batches.iter().sum::<f64>() / 10.0 - 5_000.5).abs() < 10.0);
    }

    #[test]
    fn a_ratio_is_weighted_by_its_divisor() {
        let mut own = Sequence::default();
        own.push(10.0, 1.0);
        own.push(0.0, 0.0);
        own.push(90.0, 9.0);
        own.push(0.0, 10.0);
        assert_eq!(own.value(), Some(5.0));
        assert_eq!(own.batches(2), Some(vec![10.0, 90.0 / 19.0]));
        assert_eq!(own.batches(4), None, "a part without operations has no latency");
        assert_eq!(own.batches(5), None);
    }

    #[test]
    fn quantiles_are_of_samples_that_are_equally_long() {
        let own = counting(200);
        assert_eq!(own.quantile(0.95), Some(190.0));
        assert_eq!(own.quantile_batches(2, 0.5), Some(vec![50.0, 150.0]));
        let long = counting(10_000);
        assert_eq!(own.as_coarse_as(&long).values.len(), 25);
        assert_eq!(long.as_coarse_as(&own), long);
        assert_eq!(Sequence::default().quantile(0.5), None);
    }
}
