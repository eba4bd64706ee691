//! Values of rows, put in the order of their times.
//!
//! Results come newest first, or one table after the other, each over the same time. A window
//! holds values until there are too many of them and then gives out the earliest; so what it
//! holds is bounded, and what is in order passes through whatever its length.
//!
//! ```text
//!  rows, any order -->  [ time: values, time: values, ... ]  --> samples, earliest first
//! ```

use super::ImportError;
use super::sheet::{At, Sheet};
use std::collections::BTreeMap;
use weir_observe::header::{EntityId, SeriesId};
use weir_observe::metric::Metric;

/// Values that are held: 16 bytes each.
const MOST: usize = 2 << 20;

/// When a row was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stamp {
    /// In nanoseconds since 1970.
    Wall(i64),
    /// In nanoseconds from some moment that nobody knows.
    Since(i64),
}

type Held = Vec<(SeriesId, f64)>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Window {
    dated: BTreeMap<i64, Held>,
    undated: BTreeMap<i64, Held>,
    /// By series.
    measures: Vec<Option<&'static Metric>>,
    values: usize,
    /// What was given out last.
    last: Option<i64>,
    started: bool,
    /// The earliest moment without a date.
    base: Option<i64>,
    has_counters: bool,
}

impl Window {
    /// Learns what a series is of.
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

    /// Puts values of series that are known.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if they are of a time before what was already given out.
    pub(crate) fn put_all(
        &mut self,
        at: Stamp,
        values: &[(SeriesId, f64)],
    ) -> Result<(), ImportError> {
        self.sample(at)?.extend_from_slice(values);
        self.values += values.len();
        Ok(())
    }

    /// Puts a value of a measure of an entity, if there is one.
    ///
    /// # Errors
    ///
    /// As of [`put_all`](Self::put_all).
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

    /// Makes sure that there is a sample at that time, even if it has no values.
    ///
    /// # Errors
    ///
    /// As of [`put_all`](Self::put_all).
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
                "it goes back in time over more rows than can be held; sort it by time first",
            ));
        }
        Ok(samples.entry(at).or_default())
    }

    /// How many values there are of a moment without a date.
    pub(crate) fn count(&self, since: i64) -> usize {
        self.undated.get(&since).map_or(0, Vec::len)
    }

    /// Takes what was put to a moment without a date after the first `keep` values to another.
    pub(crate) fn shift(&mut self, from: i64, keep: usize, to: i64) {
        let Some(held) = self.undated.get_mut(&from) else { return };
        let moved = held.split_off(keep.min(held.len()));
        self.undated.entry(to).or_default().extend(moved);
    }

    /// Whether the earliest must be given out before more is put.
    pub(crate) fn is_full(&self) -> bool {
        self.values >= MOST && self.dated.len() + self.undated.len() > 1
    }

    /// Gives out the earliest.
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

    /// Says what can be said of the times of all, and puts what has no date to what has.
    fn begin(&mut self, sheet: &mut Sheet) {
        if self.dated.is_empty() {
            if self.undated.len() == 1 {
                sheet.note(if self.has_counters {
                    "it does not say when it was taken, and is one sample: counters need a second \
                     one, as only differences mean something"
                } else {
                    "it does not say when it was taken"
                });
            }
            return;
        }
        let undated = std::mem::take(&mut self.undated);
        if undated.is_empty() {
            return;
        }
        if undated.len() > 1 {
            sheet.note("of what has no time, only the first of each is taken");
        } else {
            sheet.note("what has no time is put to the first sample that has one");
        }
        if let (Some(held), Some(mut first)) =
            (undated.into_values().next(), self.dated.first_entry())
        {
            // What has a date is right.
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
    fn what_is_too_late_is_refused() {
        let (mut window, mut sheet) = (Window::default(), Sheet::default());
        window.touch(Stamp::Wall(5)).expect("in order");
        assert_eq!(window.pop(&mut sheet), Some(At::Wall(5)));
        let error = window.touch(Stamp::Wall(5)).expect_err("late").to_string();
        assert!(error.contains("sort it by time first"), "{error}");
    }
}
