//! Values of many metrics, each with times of its own, put in order of time.

use crate::header::SeriesId;
use crate::import::measure::Measure;
use crate::import::sheet::{At, Sheet};
use std::collections::BTreeMap;

/// Values by their times.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    samples: BTreeMap<i64, Vec<(SeriesId, &'static Measure, f64)>>,
}

impl Timeline {
    /// Takes a value in.
    pub(super) fn add(&mut self, at: i64, series: SeriesId, measure: &'static Measure, value: f64) {
        self.samples.entry(at).or_default().push((series, measure, value));
    }

    /// Whether there is no value.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Puts the earliest sample into the sheet and lets go of it.
    pub(super) fn next(&mut self, sheet: &mut Sheet) -> Option<At> {
        let (at, values) = self.samples.pop_first()?;
        for (series, measure, value) in values {
            sheet.put(series, measure, value);
        }
        Some(At::Wall(at))
    }
}

/// The least time between two of several moments.
pub(super) fn least_step(moments: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut moments: Vec<_> = moments.into_iter().collect();
    moments.sort_unstable();
    let steps = moments.windows(2).filter_map(|pair| match pair {
        [one, other] => other.checked_sub(*one).filter(|step| *step > 0),
        _ => None,
    });
    steps.min()
}
