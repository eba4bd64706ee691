//! Values of incomplete samples.
//!
//! sar and sadf print a file table by table, each from the first time to the last. A sample is
//! therefore complete only at the end, or at a restart of the machine. Values are kept here until
//! then, in a few bytes each and up to a bound.

use crate::sheet::Sheet;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_observe::header::SeriesId;
use weir_observe::metric::Metric;

/// The most values kept, 12 bytes each; beyond it, the earliest samples are returned as they are.
const MOST: usize = 1 << 24;

/// Index of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u32);

/// The values of a sample. A single vector of pairs would take a third more.
#[derive(Debug, Default)]
struct Row {
    slots: Vec<Slot>,
    values: Vec<f64>,
}

impl Row {
    fn with_capacity(count: usize) -> Self {
        Self { slots: Vec::with_capacity(count), values: Vec::with_capacity(count) }
    }

    fn push(&mut self, slot: Slot, value: f64) {
        self.slots.push(slot);
        self.values.push(value);
    }

    fn extend(&mut self, other: Self) {
        self.slots.extend(other.slots);
        self.values.extend(other.values);
    }

    const fn len(&self) -> usize {
        self.slots.len()
    }

    const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// A bounded store of incomplete samples.
#[derive(Debug, Default)]
pub(super) struct Held {
    series: Vec<(SeriesId, &'static Metric)>,
    slots: HashMap<SeriesId, Slot>,
    rows: BTreeMap<i64, Row>,
    /// The current row, to which most values belong.
    row: (i64, Row),
    values: usize,
    /// Samples before this time are complete.
    before: Option<i64>,
    /// Restarts of the machine with a later sample in the store.
    restarts: BTreeSet<i64>,
    /// Stated sampling intervals in nanoseconds, by the times of their samples.
    intervals: BTreeMap<i64, i64>,
    /// The last stated interval; all rows of a sample state the same.
    covered: (i64, i64),
    /// True if all samples are complete.
    all: bool,
    /// True if the bound was reached.
    overflowed: bool,
}

impl Held {
    /// Returns the slot of a series, or `None` beyond the supported number.
    pub(super) fn slot(&mut self, series: SeriesId, measure: &'static Metric) -> Option<Slot> {
        if let Some(slot) = self.slots.get(&series) {
            return Some(*slot);
        }
        let slot = Slot(u32::try_from(self.series.len()).ok()?);
        self.series.push((series, measure));
        self.slots.insert(series, slot);
        Some(slot)
    }

    /// Adds a value of a series that may be new.
    pub(super) fn add_series(
        &mut self,
        at: i64,
        series: SeriesId,
        measure: &'static Metric,
        value: f64,
    ) {
        if let Some(slot) = self.slot(series, measure) {
            self.add(at, slot, value);
        }
    }

    /// Adds a value of the sample at a time.
    pub(super) fn add(&mut self, at: i64, slot: Slot, value: f64) {
        if self.row.0 != at {
            // The next row is usually as long.
            let usual = self.row.1.len();
            self.put_back();
            let row = self.rows.remove(&at).unwrap_or_else(|| Row::with_capacity(usual));
            self.row = (at, row);
        }
        self.row.1.push(slot, value);
        self.values += 1;
        if self.values > MOST {
            self.overflowed = true;
            self.release_before(at);
        }
    }

    /// Moves the current row to the others.
    fn put_back(&mut self) {
        let (at, values) = std::mem::take(&mut self.row);
        if !values.is_empty() {
            let row = self.rows.entry(at).or_default();
            if row.is_empty() { *row = values } else { row.extend(values) }
        }
    }

    /// Marks the samples before a time as complete.
    pub(super) fn release_before(&mut self, at: i64) {
        self.put_back();
        self.before = self.before.max(Some(at));
    }

    /// Records a restart of the machine: the next sample covers the time since then.
    pub(super) fn restart(&mut self, at: i64) {
        self.release();
        self.restarts.insert(at);
    }

    /// Records the sampling interval of the sample at a time; the shortest of several counts.
    pub(super) fn cover(&mut self, at: i64, interval_ns: i64) {
        if interval_ns > 0 && self.covered != (at, interval_ns) {
            self.covered = (at, interval_ns);
            let shortest = self.intervals.entry(at).or_insert(interval_ns);
            *shortest = interval_ns.min(*shortest);
        }
    }

    /// Marks all samples as complete.
    pub(super) fn release(&mut self) {
        self.put_back();
        self.all = true;
    }

    /// Writes the next complete sample into the sheet, and returns its time.
    pub(super) fn next(&mut self, sheet: &mut Sheet) -> Option<i64> {
        if !self.all && self.before.is_none() {
            return None;
        }
        let Some(first) = self.rows.first_entry() else {
            self.all = false;
            return None;
        };
        if !self.all && self.before.is_none_or(|before| *first.key() >= before) {
            return None;
        }
        let (at, values) = first.remove_entry();
        self.values -= values.len();
        while let Some(restart) = self.restarts.first().copied().filter(|restart| *restart <= at) {
            self.restarts.pop_first();
            self.cover(at, at.saturating_sub(restart));
        }
        sheet.interval_ns = self.intervals.remove(&at);
        for (slot, value) in values.slots.into_iter().zip(values.values) {
            let place = usize::try_from(slot.0).unwrap_or(usize::MAX);
            if let Some((series, measure)) = self.series.get(place) {
                sheet.put(*series, measure, value);
            }
        }
        if std::mem::take(&mut self.overflowed) {
            sheet.note("it has more values than can be kept at once: some samples may be split");
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::header::EntityKind;
    use weir_observe::metric::READS;

    #[test]
    fn samples_are_released_when_complete() {
        let (mut sheet, mut held) = (Sheet::default(), Held::default());
        let host = sheet.entity(EntityKind::Host, "host", None);
        let series = sheet.series(host, &READS);
        for at in [10, 20, 10, 30, 20] {
            held.add_series(at, series, &READS, 1.0);
        }
        assert_eq!(held.next(&mut sheet), None);
        held.release_before(20);
        assert_eq!(held.next(&mut sheet), Some(10));
        assert_eq!(held.next(&mut sheet), None);
        held.release();
        assert_eq!(held.next(&mut sheet), Some(20));
        assert_eq!(held.next(&mut sheet), Some(30));
        assert_eq!(held.next(&mut sheet), None);
        held.add_series(40, series, &READS, 1.0);
        assert_eq!(held.next(&mut sheet), None, "it is not whole");
    }
}
