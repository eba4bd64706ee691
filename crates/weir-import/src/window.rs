//! Values of rows in the order of their times.
//!
//! Results may come newest first, or as one table after the other over the same time. A window
//! holds a bounded number of values and then returns the earliest. Ordered input of any length
//! passes through.
//!
//! ```text
//!  rows, any order -->  [ time: values, time: values, ... ]  --> samples, earliest first
//! ```

use crate::error::ImportError;
use crate::sheet::{At, Sheet};
use std::collections::BTreeMap;
use weir_observe::header::{EntityId, SeriesId};
use weir_observe::metric::Metric;

/// The most values held, 16 bytes each.
const MOST: usize = 2 << 20;

/// The time of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stamp {
    /// Nanoseconds since 1970.
    Wall(i64),
    /// Nanoseconds from an unknown moment.
    Since(i64),
}

type Held = Vec<(SeriesId, f64)>;

/// A bounded set of values, ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Window {
    dated: BTreeMap<i64, Held>,
    undated: BTreeMap<i64, Held>,
    /// Metrics by series.
    measures: Vec<Option<&'static Metric>>,
    values: usize,
    /// Time of the last sample returned.
    last: Option<i64>,
    started: bool,
    /// The earliest moment without a date.
    base: Option<i64>,
    has_counters: bool,
}

impl Window {
    /// Records the metric of a series.
    pub(crate) fn know(&mut self, series: SeriesId, measure: &'static Metric) {
        let place = series.0 as usize;
        if place >= self.measures.len() {
            self.measures.resize(place + 1, None);
        }
        if let Some(own) = self.measures.get_mut(place) {
            *own = Some(measure);
        }
        self.has_counters |= measure.is_counter;
    }

    /// Adds values of known series.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if a later sample was returned already.
    pub(crate) fn put_all(
        &mut self,
        at: Stamp,
        values: &[(SeriesId, f64)],
    ) -> Result<(), ImportError> {
        self.sample(at)?.extend_from_slice(values);
        self.values += values.len();
        Ok(())
    }

    /// Adds a value of a metric of an entity, if there is one.
    ///
    /// # Errors
    ///
    /// As [`put_all`](Self::put_all).
    pub(crate) fn set(
        &mut self,
        sheet: &mut Sheet,
        at: Stamp,
        entity: EntityId,
        measure: &'static Metric,
        value: Option<f64>,
    ) -> Result<(), ImportError> {
        let Some(value) = value else { return Ok(()) };
        let series = sheet.series(entity, measure);
        self.know(series, measure);
        self.put_all(at, &[(series, value)])
    }

    /// Ensures that there is a sample at a time, even without values.
    ///
    /// # Errors
    ///
    /// As [`put_all`](Self::put_all).
    pub(crate) fn touch(&mut self, at: Stamp) -> Result<(), ImportError> {
        self.sample(at).map(|_| ())
    }

    fn sample(&mut self, at: Stamp) -> Result<&mut Held, ImportError> {
        let (samples, at) = match at {
            Stamp::Wall(at) => (&mut self.dated, at),
            Stamp::Since(at) => (&mut self.undated, at),
        };
        if self.last.is_some_and(|last| at <= last) {
            return Err(ImportError::whole(
                "its times decrease over too many rows; sort it by time first",
            ));
        }
        Ok(samples.entry(at).or_default())
    }

    /// Returns the number of values of a moment without a date.
    pub(crate) fn count(&self, since: i64) -> usize {
        self.undated.get(&since).map_or(0, Vec::len)
    }

    /// Moves the values of a moment without a date, after the first `keep`, to another moment.
    pub(crate) fn shift(&mut self, from: i64, keep: usize, to: i64) {
        let Some(held) = self.undated.get_mut(&from) else { return };
        let moved = held.split_off(keep.min(held.len()));
        self.undated.entry(to).or_default().extend(moved);
    }

    /// Returns whether the earliest sample must be returned before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.values >= MOST && self.dated.len() + self.undated.len() > 1
    }

    /// Removes the earliest sample and writes it into the sheet.
    pub(crate) fn pop(&mut self, sheet: &mut Sheet) -> Option<At> {
        if !self.started {
            self.started = true;
            self.begin(sheet);
        }
        let (at, held, is_dated) = match self.dated.pop_first() {
            Some((at, held)) => (at, held, true),
            None => {
                let (at, held) = self.undated.pop_first()?;
                (at, held, false)
            }
        };
        self.last = Some(at);
        self.values = self.values.saturating_sub(held.len());
        for (series, value) in held {
            if let Some(Some(measure)) = self.measures.get(series.0 as usize) {
                sheet.put(series, measure, value);
            }
        }
        if is_dated {
            return Some(At::Wall(at));
        }
        let base = *self.base.get_or_insert(at);
        Some(At::Since(u64::try_from(at.saturating_sub(base)).unwrap_or(0)))
    }

    /// Notes facts about all times, and dates the values without a date.
    fn begin(&mut self, sheet: &mut Sheet) {
        if self.dated.is_empty() {
            if self.undated.len() == 1 {
                sheet.note(if self.has_counters {
                    "it is one sample without a time: counters need a second sample"
                } else {
                    "it does not state its time"
                });
            }
            return;
        }
        let undated = std::mem::take(&mut self.undated);
        if undated.is_empty() {
            return;
        }
        if undated.len() > 1 {
            sheet.note("of values without a time, only the first of each is read");
        } else {
            sheet.note("values without a time are put into the first sample with one");
        }
        if let (Some(held), Some(mut first)) =
            (undated.into_values().next(), self.dated.first_entry())
        {
            // A value with a date takes precedence.
            let (own, mut held) = (first.get_mut(), held);
            held.append(own);
            *own = held;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::header::EntityKind;
    use weir_observe::metric::USERS;

    #[track_caller]
    fn check(put: &[(Stamp, f64)], expect: &[At]) {
        let (mut window, mut sheet) = (Window::default(), Sheet::default());
        let host = sheet.entity(EntityKind::Host, "host", None);
        for (at, value) in put {
            window.set(&mut sheet, *at, host, &USERS, Some(*value)).expect("in order");
        }
        let all: Vec<_> = std::iter::from_fn(|| window.pop(&mut sheet)).collect();
        assert_eq!(all, expect);
    }

    #[test]
    fn earliest_first() {
        use Stamp::{Since, Wall};
        check(&[(Wall(9), 1.0), (Wall(7), 2.0), (Wall(8), 1.0)], &[7, 8, 9].map(At::Wall));
        check(&[(Since(7), 1.0), (Since(5), 2.0)], &[0, 2].map(At::Since));
        check(&[(Since(0), 1.0), (Wall(5), 2.0)], &[At::Wall(5)]);
        check(&[], &[]);
    }

    #[test]
    fn late_values_are_rejected() {
        let (mut window, mut sheet) = (Window::default(), Sheet::default());
        window.touch(Stamp::Wall(5)).expect("in order");
        assert_eq!(window.pop(&mut sheet), Some(At::Wall(5)));
        let error = window.touch(Stamp::Wall(5)).expect_err("late").to_string();
        assert!(error.contains("sort it by time first"), "{error}");
    }
}
