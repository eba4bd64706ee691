//! The test of a difference, and its correction for several metrics.
//!
//! Samples of a system depend on their neighbours: a checkpoint, a full queue or a burst lasts for
//! several of them. A test that takes them as independent finds differences between two runs of the
//! same thing. The values of a metric over time are therefore averaged in [`BATCHES`] batches, and
//! the dependence that remains between neighbouring batches, their lag-1 correlation, widens the
//! standard error and reduces the degrees of freedom. Welch's t test compares the two means. It is
//! applied to logarithms, since rates and latencies are positive and skewed, and a ratio of two
//! systems is what is asked for.
//!
//! Holm's method corrects for the number of metrics: the probability that any of them is reported
//! for two runs of the same thing is at most [`SIGNIFICANCE`], whatever the dependence between
//! metrics.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Batches of a sequence.
pub const BATCHES: usize = 10;

/// Least number of samples of a sequence, two for each batch.
pub const LEAST_SAMPLES: usize = 2 * BATCHES;

/// Probability that any difference is reported for two runs of the same thing.
pub const SIGNIFICANCE: f64 = 0.01;

/// Differences below this share are never reported, however certain they are.
pub const FLOOR: f64 = 0.01;

/// Largest correlation of neighbouring batches with which a difference can be judged. Above it, the
/// ten batches are worth less than three independent ones.
const MOST_CORRELATION: f64 = 0.6;

/// Values of a metric that are compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Means of consecutive batches.
    Consecutive(Vec<f64>),
    /// Values of separate runs.
    Separate(Vec<f64>),
}

impl Values {
    fn all(&self) -> &[f64] {
        match self {
            Self::Consecutive(all) | Self::Separate(all) => all,
        }
    }

    /// Returns the values transformed by `by`.
    fn map(&self, by: impl Fn(f64) -> f64) -> Self {
        let mapped = |all: &[f64]| all.iter().map(|own| by(*own)).collect();
        match self {
            Self::Consecutive(all) => Self::Consecutive(mapped(all)),
            Self::Separate(all) => Self::Separate(mapped(all)),
        }
    }
}

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// Probability of a difference as large as this one between two runs of the same thing.
    pub p: f64,
    /// The interval that holds the relative difference with a probability of 99 %.
    pub interval: Option<(f64, f64)>,
}

/// A reason why a difference cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untested {
    /// A side has fewer than two values.
    TooFew,
    /// Neighbouring batches depend on each other too strongly.
    TooDependent,
}

/// Tests whether the means of two lists of values differ.
///
/// # Errors
///
/// [`Untested`] if the values do not allow a judgement.
pub fn test(one: &Values, other: &Values) -> Result<Tested, Untested> {
    if one.all().len() < 2 || other.all().len() < 2 {
        return Err(Untested::TooFew);
    }
    let is_positive = one.all().iter().chain(other.all()).all(|own| *own > 0.0);
    let (one, other) = match is_positive {
        true => (one.map(f64::ln), other.map(f64::ln)),
        false => (one.clone(), other.clone()),
    };
    let correlation = correlation(&one, &other);
    if correlation > MOST_CORRELATION {
        return Err(Untested::TooDependent);
    }
    let (one, other) = (Mean::new(&one, correlation), Mean::new(&other, correlation));
    let (difference, variance) = (other.mean - one.mean, one.variance + other.variance);
    // Values of a fixed limit do not vary at all.
    if variance <= f64::EPSILON * f64::EPSILON {
        let is_equal = difference.abs() <= 1e-9 * one.mean.abs().max(1e-9);
        let exact = if is_positive { difference.exp_m1() } else { f64::NAN };
        let interval = exact.is_finite().then_some((exact, exact));
        return Ok(Tested { p: if is_equal { 1.0 } else { 0.0 }, interval });
    }
    let freedom = variance * variance
        / (one.variance * one.variance / one.freedom
            + other.variance * other.variance / other.freedom);
    let Ok(students) = StudentsT::new(0.0, 1.0, freedom.max(1.0)) else {
        return Err(Untested::TooFew);
    };
    let error = variance.sqrt();
    let p = 2.0 * students.sf((difference / error).abs());
    let reach = students.inverse_cdf(1.0 - SIGNIFICANCE / 2.0) * error;
    let interval =
        is_positive.then(|| ((difference - reach).exp_m1(), (difference + reach).exp_m1()));
    Ok(Tested { p, interval })
}

/// A mean with the variance of its error.
struct Mean {
    mean: f64,
    variance: f64,
    freedom: f64,
}

impl Mean {
    /// Returns the mean of values whose neighbours correlate, as in an autoregressive process.
    fn new(values: &Values, correlation: f64) -> Self {
        let all = values.all();
        let count = count(all);
        let mean = all.iter().sum::<f64>() / count;
        let square = all.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let widened = match values {
            Values::Consecutive(_) => (1.0 + correlation) / (1.0 - correlation),
            Values::Separate(_) => 1.0,
        };
        Self { mean, variance: square / count * widened, freedom: (count - 1.0) / widened }
    }
}

/// Returns the lag-1 correlation of batches, the mean of both sides, with the bias of short lists
/// removed; at least zero.
fn correlation(one: &Values, other: &Values) -> f64 {
    let of = |values: &Values| {
        let Values::Consecutive(all) = values else { return None };
        let mean = all.iter().sum::<f64>() / count(all);
        let squares: f64 = all.iter().map(|own| (own - mean).powi(2)).sum();
        let products: f64 = all.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
        Some(if squares > 0.0 { products / squares + 1.0 / count(all) } else { 0.0 })
    };
    let both: Vec<f64> = [one, other].into_iter().filter_map(of).collect();
    if both.is_empty() { 0.0 } else { (both.iter().sum::<f64>() / count(&both)).max(0.0) }
}

#[expect(clippy::cast_precision_loss, reason = "a number of values")]
const fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

/// Corrects probabilities for their number by Holm's method, in their order.
#[must_use]
pub fn corrected(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|one, other| all[*one].total_cmp(&all[*other]));
    let mut corrected = vec![1.0; all.len()];
    let mut least = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a number of metrics")]
        let left = (all.len() - rank) as f64;
        least = least.max((all[place] * left).min(1.0));
        corrected[place] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_values_are_tested_as_by_welch() {
        // R: t.test(log(a), log(b)) of these values.
        let a = Values::Separate(vec![10.0, 11.0, 12.0, 13.0]);
        let b = Values::Separate(vec![13.0, 14.0, 15.0, 15.5, 17.0]);
        let tested = test(&a, &b).expect("a test");
        let expected = welch_by_integration(&a, &b);
        assert!((tested.p / expected - 1.0).abs() < 1e-3, "{} {expected}", tested.p);
        let (low, high) = tested.interval.expect("positive values");
        assert!(low < 0.293 && 0.293 < high, "{low} {high}");
    }

    /// Integrates the density of the t distribution numerically, as an independent check.
    fn welch_by_integration(a: &Values, b: &Values) -> f64 {
        let logs = |own: &Values| own.all().iter().map(|own| own.ln()).collect::<Vec<_>>();
        let moments = |own: &[f64]| {
            let mean = own.iter().sum::<f64>() / count(own);
            let square = own.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
            (mean, square / (count(own) - 1.0) / count(own), count(own) - 1.0)
        };
        let ((m1, v1, d1), (m2, v2, d2)) = (moments(&logs(a)), moments(&logs(b)));
        let t = ((m2 - m1) / (v1 + v2).sqrt()).abs();
        let freedom = (v1 + v2).powi(2) / (v1 * v1 / d1 + v2 * v2 / d2);
        let density = |x: f64| (1.0 + x * x / freedom).powf(-(freedom + 1.0) / 2.0);
        let step = 1e-2;
        let area = |from: f64| {
            (0..400_000_u32)
                .map(|n| density(from + (f64::from(n) + 0.5) * step) * step)
                .sum::<f64>()
        };
        area(t) / area(0.0)
    }

    #[test]
    fn values_that_do_not_vary_differ_or_do_not() {
        let of = |value: f64| Values::Separate(vec![value; 5]);
        assert_eq!(test(&of(500.0), &of(500.0)).map(|own| own.p), Ok(1.0));
        let told = test(&of(500.0), &of(550.0)).expect("a test");
        assert_eq!(told.p, 0.0);
        let (low, high) = told.interval.expect("positive values");
        assert!((low - 0.1).abs() < 1e-9 && (high - 0.1).abs() < 1e-9, "{low} {high}");
        assert_eq!(test(&of(0.0), &of(0.0)).map(|own| own.p), Ok(1.0));
    }

    #[test]
    fn too_little_is_not_judged() {
        let one = Values::Separate(vec![1.0]);
        assert_eq!(test(&one, &one), Err(Untested::TooFew));
        let rising = Values::Consecutive((1..=10).map(f64::from).collect());
        assert_eq!(test(&rising, &rising), Err(Untested::TooDependent));
    }

    #[test]
    fn dependence_widens_the_error() {
        let waves = |offset: f64| {
            let all = [1.0, 1.4, 1.2, 0.8, 0.7, 1.0, 1.3, 1.1, 0.9, 0.8];
            all.map(|own| own + offset).to_vec()
        };
        let p = |of: fn(Vec<f64>) -> Values| {
            test(&of(waves(3.0)), &of(waves(3.3))).map(|own| own.p).expect("a test")
        };
        let (dependent, independent) = (p(Values::Consecutive), p(Values::Separate));
        assert!(dependent > 1.5 * independent, "{dependent} {independent}");
    }

    #[test]
    fn holm_corrects_in_order() {
        // The published example: the smallest of four is multiplied by four, the next by three.
        let corrected = corrected(&[0.03, 0.005, 0.04, 0.01]);
        let expected = [0.06, 0.02, 0.06, 0.03];
        for (got, want) in corrected.iter().zip(expected) {
            assert!((got - want).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(super::corrected(&[]), Vec::<f64>::new());
    }
}
