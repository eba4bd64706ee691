//! Values of many metrics with different times, in order of time.

use crate::sheet::{At, Sheet};
use std::collections::{BTreeMap, HashMap};
use weir_observe::header::{EntityId, SeriesId};
use weir_observe::metric::{INTERVAL_NS, Metric};

/// Values by time.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    samples: BTreeMap<i64, Sample>,
    /// Time of the last sample of each entity.
    last: HashMap<EntityId, i64>,
    has_begun: bool,
}

#[derive(Debug, Default)]
struct Sample {
    values: Vec<(SeriesId, &'static Metric, f64)>,
    /// Shortest interval of the metrics of each entity, in nanoseconds.
    intervals: BTreeMap<EntityId, i64>,
}

impl Timeline {
    /// Adds a value.
    pub(super) fn add(&mut self, at: i64, series: SeriesId, measure: &'static Metric, value: f64) {
        self.samples.entry(at).or_default().values.push((series, measure, value));
    }

    /// Records the interval of an entity's values at a time, in nanoseconds.
    pub(super) fn cover(&mut self, at: i64, entity: EntityId, interval_ns: i64) {
        let intervals = &mut self.samples.entry(at).or_default().intervals;
        let shortest = intervals.entry(entity).or_insert(interval_ns);
        *shortest = interval_ns.min(*shortest);
    }

    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Removes the earliest sample and writes it into the sheet.
    pub(super) fn next(&mut self, sheet: &mut Sheet) -> Option<At> {
        let (at, Sample { values, intervals }) = self.samples.pop_first()?;
        for (series, measure, value) in values {
            sheet.put(series, measure, value);
        }
        for (entity, interval_ns) in intervals {
            let last = self.last.insert(entity, at);
            // A cloud has no values for the time in which a disk was detached or idle.
            let is_gap = last.map_or(self.has_begun, |last| at.saturating_sub(last) > interval_ns);
            if is_gap {
                #[expect(clippy::cast_precision_loss, reason = "intervals are far below 2^53 ns")]
                sheet.set(entity, &INTERVAL_NS, interval_ns as f64);
            }
        }
        self.has_begun = true;
        Some(At::Wall(at))
    }
}

/// The number of evenly spaced values that show a metric's period.
const EVEN: usize = 3;

/// Returns the period of a metric with values at these `moments`, in order. `others` is the period
/// of similar metrics, if known. Returns `None` if it is ambiguous: its values are further apart
/// than those of the others, because of a longer period or of gaps.
pub(super) fn period_of(moments: &[i64], others: Option<i64>) -> Option<i64> {
    let Some(own) = least_step(moments.iter().copied()) else { return others };
    let is_longer = others.is_some_and(|others| own > others);
    let is_even = moments.len() >= EVEN && moments.windows(2).all(|pair| pair[1] - pair[0] == own);
    (!is_longer || is_even).then_some(own)
}

/// Returns the least distance of several moments.
pub(super) fn least_step(moments: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut moments: Vec<_> = moments.into_iter().collect();
    moments.sort_unstable();
    let steps = moments.windows(2).filter_map(|pair| match pair {
        [one, other] => other.checked_sub(*one).filter(|step| *step > 0),
        _ => None,
    });
    steps.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_by_own_values_and_those_of_others() {
        let check = |moments: &[i64], others: Option<i64>, expect: Option<i64>| {
            assert_eq!(period_of(moments, others), expect, "{moments:?}");
        };
        check(&[0, 60, 120], None, Some(60));
        check(&[0, 60, 180], Some(60), Some(60));
        check(&[0, 300, 600], Some(60), Some(300));
        check(&[0, 300], Some(60), None);
        check(&[0, 300, 900], Some(60), None);
        check(&[0], Some(60), Some(60));
        check(&[], None, None);
    }
}
