//! Metrics of subjects, with their values over time or of repeated runs.

use crate::sequence::Sequence;
use crate::stats::{BATCHES, LEAST_SAMPLES, Values};
use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use weir_report::comparison::{Better, MetricUnit};

/// An entity with a load, or the sum of several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Its kind, for example `volume`.
    pub kind: String,
    /// Its name; empty for the sum of all subjects of the kind.
    pub name: String,
}

impl Subject {
    /// Returns a subject.
    #[must_use]
    pub fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Returns the sum of all subjects of a kind.
    #[must_use]
    pub fn sum(kind: &str) -> Self {
        Self::new(kind, "")
    }

    /// Returns whether it is a sum.
    #[must_use]
    pub const fn is_sum(&self) -> bool {
        self.name.is_empty()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sum() { write!(f, "all {}s", self.kind) } else { f.write_str(&self.name) }
    }
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// The direction in which it improves.
    pub better: Better,
    /// Set if it decides unless other metrics are asked for.
    pub decides: bool,
}

impl Metric {
    /// Returns a rate or latency, which decides.
    #[must_use]
    pub const fn deciding(name: &'static str, unit: MetricUnit, better: Better) -> Self {
        Self { name: Cow::Borrowed(name), unit, better, decides: true }
    }

    /// Returns a metric that explains others.
    #[must_use]
    pub const fn explaining(name: String, unit: MetricUnit, better: Better) -> Self {
        Self { name: Cow::Owned(name), unit, better, decides: false }
    }

    /// Returns the mean number of requests that wait at a cap.
    #[must_use]
    pub fn waiting(cap: &str) -> Self {
        let name = format!("waiting at {cap}");
        Self::explaining(name, MetricUnit::Requests, Better::Lower)
    }
}

/// Operations per second.
pub const IOPS: Metric = Metric::deciding("iops", MetricUnit::PerSecond, Better::Higher);
/// Bytes per second.
pub const THROUGHPUT: Metric =
    Metric::deciding("throughput", MetricUnit::BytesPerSecond, Better::Higher);
/// Mean latency.
pub const LATENCY: Metric = Metric::deciding("latency", MetricUnit::Nanoseconds, Better::Lower);
/// Transactions per second.
pub const TRANSACTIONS: Metric =
    Metric::deciding("transactions", MetricUnit::PerSecond, Better::Higher);
/// Batch requests per second.
pub const BATCH_REQUESTS: Metric =
    Metric::deciding("batches", MetricUnit::PerSecond, Better::Higher);
/// Mean time from the start of a transaction to its commit.
pub const RESPONSE: Metric =
    Metric::deciding("response time", MetricUnit::Nanoseconds, Better::Lower);

/// The values of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Values over time.
    Over(Rc<Sequence>),
    /// A percentile of values over time.
    Percentile(Rc<Sequence>, f64),
    /// Values of separate runs.
    Separate(Vec<f64>),
    /// One value, with the relative difference that its source allows, if it states one.
    One(f64, Option<f64>),
}

impl Data {
    /// Returns the value over the whole time, or the mean of all runs.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Over(sequence) => sequence.value(),
            Self::Percentile(sequence, share) => sequence.quantile(*share),
            Self::Separate(all) if all.is_empty() => None,
            #[expect(clippy::cast_precision_loss, reason = "a number of runs")]
            Self::Separate(all) => Some(all.iter().sum::<f64>() / all.len() as f64),
            Self::One(value, _) => Some(*value),
        }
    }

    /// Returns the values to test, made comparable with `other`; `None` if there are too few.
    #[must_use]
    pub fn values(&self, other: &Self) -> Option<Values> {
        let batches = match (self, other) {
            (Self::Separate(all), _) => return Some(Values::Separate(all.clone())),
            (Self::One(..), _) => None,
            (Self::Over(own), _) if own.samples() < LEAST_SAMPLES => None,
            (Self::Over(own), _) => own.batches(BATCHES),
            (Self::Percentile(own, share), Self::Percentile(other, _)) => {
                own.as_coarse_as(other).quantile_batches(BATCHES, *share)
            }
            (Self::Percentile(..), _) => None,
        };
        batches.map(Values::Consecutive)
    }
}

/// A metric of a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The subject.
    pub subject: Subject,
    /// The metric.
    pub metric: Metric,
    /// Its values.
    pub data: Data,
}

/// All metrics of a side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The metrics, by subject.
    pub rows: Vec<Row>,
    /// Number of samples or of runs.
    pub samples: usize,
    /// The length of the observed time.
    pub seconds: Option<f64>,
}

impl Profile {
    /// Adds a metric, unless it has no value.
    pub fn add(&mut self, subject: &Subject, metric: Metric, data: Data) {
        if data.value().is_some_and(f64::is_finite) {
            self.rows.push(Row { subject: subject.clone(), metric, data });
        }
    }

    /// Returns a metric of a subject.
    #[must_use]
    pub fn find(&self, subject: &Subject, metric: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.subject == *subject && row.metric.name == metric)
    }

    /// Returns the subjects in order, sums first.
    #[must_use]
    pub fn subjects(&self) -> Vec<&Subject> {
        let mut all: Vec<&Subject> = Vec::new();
        for row in &self.rows {
            if !all.contains(&&row.subject) {
                all.push(&row.subject);
            }
        }
        all
    }

    /// Returns the profile of several runs of one thing, each of which counts as one value.
    #[must_use]
    pub fn repeated(all: Vec<Self>) -> Self {
        let runs = all.len();
        let Some((first, rest)) = all.split_first() else { return Self::default() };
        let mut repeated = Self { samples: runs, ..Self::default() };
        for row in &first.rows {
            let others = rest.iter().map(|own| {
                own.find(&row.subject, &row.metric.name).and_then(|row| row.data.value())
            });
            let values: Option<Vec<f64>> =
                std::iter::once(row.data.value()).chain(others).collect();
            if let Some(values) = values {
                repeated.add(&row.subject, row.metric.clone(), Data::Separate(values));
            }
        }
        repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_separate_values_of_what_all_have() {
        let data = Subject::new("volume", "data");
        let of = |iops: f64, has_latency: bool| {
            let mut own = Profile::default();
            own.add(&data, IOPS, Data::One(iops, None));
            if has_latency {
                own.add(&data, LATENCY, Data::One(1e6, None));
            }
            own
        };
        let all = Profile::repeated(vec![of(90.0, true), of(100.0, false), of(110.0, true)]);
        assert_eq!((all.rows.len(), all.samples), (1, 3));
        assert_eq!(all.rows[0].data, Data::Separate(vec![90.0, 100.0, 110.0]));
        assert_eq!(all.rows[0].data.value(), Some(100.0));
    }

    #[test]
    fn a_value_that_is_no_number_is_no_metric() {
        let mut own = Profile::default();
        own.add(&Subject::sum("file"), LATENCY, Data::One(f64::NAN, None));
        own.add(&Subject::sum("file"), LATENCY, Data::Over(Rc::default()));
        assert_eq!(own, Profile::default());
    }
}
