//! `file_stats` and `db_file_stats` of qpi: the activity of files between two snapshots. The view
//! reports the length of the interval only in rounded minutes.
//!
//! Rates are recomputed from counts, since the printed ones round to zero for files with little
//! I/O. The fastest file gives the best length of the interval, because its throughput has the
//! most digits.

use super::identity::{Identity, Numbers};
use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{Columns, Meaning, ReadRows, Rows, columns};
use crate::window::Stamp;
use weir_observe::header::EntityId;
use weir_observe::metric as m;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const MS: f64 = 1e6;
const MINUTE: f64 = 60.0;
/// The most rows kept until the length of their interval is known.
const MOST: usize = 10_000;
/// A lower throughput has too few digits to derive an interval.
const LEAST: f64 = 1.0;

const GAUGES: &[Meaning] = &[
    (&["sizegb"], &m::SIZE_ON_DISK_BYTES, GIB),
    (&["latencyms"], &m::LATENCY_NS, MS),
    (&["readlatencyms"], &m::READ_LATENCY_NS, MS),
    (&["writelatencyms"], &m::WRITE_LATENCY_NS, MS),
    (&["readiolatencyms"], &m::READ_IO_LATENCY_NS, MS),
    (&["writeiolatencyms"], &m::WRITE_IO_LATENCY_NS, MS),
    (&["kbperio"], &m::REQUEST_BYTES, 1024.0),
];

/// The count, its rate, and the printed rate with its unit.
const COUNTS: &[(&str, &m::Metric, f64, &str)] = &[
    ("numofreads", &m::READS_PER_S, 1.0, "readiops"),
    ("numofwrites", &m::WRITES_PER_S, 1.0, "writeiops"),
    ("readmb", &m::READ_BYTES_PER_S, MIB, "readmbps"),
    ("writemb", &m::WRITE_BYTES_PER_S, MIB, "writembps"),
];

/// Columns that repeat others.
const AGAIN: &[&str] = &["throughputmbps", "iops", "kbperread", "kbperwrite"];

struct Interval {
    identity: Identity,
    numbers: Numbers,
    minutes: Option<usize>,
    gauges: Columns,
    /// Columns of counts and printed rates.
    counts: Vec<(Option<usize>, Option<usize>)>,
    held: Vec<Held>,
    told: bool,
}

/// A row whose rates are unknown yet.
struct Held {
    at: Stamp,
    file: EntityId,
    minutes: f64,
    counts: Vec<(Option<f64>, Option<f64>)>,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let minutes = set.column(&["intervalmi", "intervalminutes"])?;
    let identity = Identity::new(set);
    let gauges = columns(set, GAUGES);
    let of = |(count, _, _, rate): &(&str, &m::Metric, f64, &str)| {
        (set.column(&[count]), set.column(&[rate]))
    };
    let counts: Vec<_> = COUNTS.iter().map(of).collect();
    let is_somebody = identity.names_files() || identity.database.is_some();
    if !is_somebody || (gauges.is_empty() && counts.iter().all(|(c, _)| c.is_none())) {
        return None;
    }
    let (minutes, held, told) = (Some(minutes), Vec::new(), false);
    let numbers = Numbers::default();
    Some(Box::new(Interval { identity, numbers, minutes, gauges, counts, held, told }))
}

impl Interval {
    fn tell(&mut self, rows: &mut Rows, set: &ResultSet) {
        if self.told {
            return;
        }
        self.told = true;
        let mut used: Vec<_> = self.identity.used().chain(self.minutes).collect();
        used.extend(self.gauges.iter().map(|(at, _, _)| *at));
        used.extend(self.counts.iter().flat_map(|(count, rate)| count.iter().chain(rate)));
        used.extend(AGAIN.iter().filter_map(|name| set.column(&[name])));
        rows.tell_unused(set, &used);
        if !self.identity.names_files() {
            rows.sheet.note("it does not name its files: they are numbered in order");
        }
    }

    /// Writes the rates of the rows kept.
    fn put(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let held = std::mem::take(&mut self.held);
        let Some(first) = held.first() else { return Ok(()) };
        let seconds = seconds(&held, first.minutes);
        if seconds > 0.0 {
            rows.sheet.held.get_or_insert(nanos(seconds));
        }
        if (seconds - first.minutes * MINUTE).abs() > 0.5 {
            rows.sheet.note(format!(
                "its interval is {seconds:.0} s by its throughput; in minutes it says {}",
                first.minutes
            ));
        }
        for row in &held {
            for ((_, measure, by, _), (count, rate)) in COUNTS.iter().zip(&row.counts) {
                let counted = count.filter(|_| seconds > 0.0).map(|count| count / seconds);
                let value = counted.or(*rate).map(|value| value * by);
                rows.set(row.at, row.file, measure, value)?;
            }
        }
        Ok(())
    }
}

/// Returns the length of an interval in seconds, as precisely as the fastest file shows it.
fn seconds(held: &[Held], minutes: f64) -> f64 {
    let said = minutes * MINUTE;
    let throughputs = held.iter().flat_map(|row| row.counts.iter().skip(2));
    let told = throughputs.filter_map(|(amount, rate)| Some(((*amount)?, (*rate)?)));
    let best = told.filter(|(_, rate)| *rate >= LEAST).max_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((amount, rate)) if ((amount / rate) - said).abs() <= MINUTE => amount / rate,
        _ => said,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

impl ReadRows for Interval {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        self.tell(rows, set);
        let Some(minutes) = row.number(set, self.minutes)? else {
            rows.sheet.unused("rows without an interval");
            return Ok(());
        };
        let number = match self.identity.names_files() {
            true => 0,
            false => self.numbers.next(&self.identity, rows, row),
        };
        let file = self.identity.file(rows, row, number);
        let size = set.column(&["sizegb"]);
        let size = row.number(set, size)?.map(|size| size * GIB);
        rows.attribute(file, "size_bytes", size);
        let at = rows.stamp(row, file, "interval")?;
        rows.set_all(at, file, (set, row), &self.gauges)?;
        let is_other = |held: &Held| held.minutes.total_cmp(&minutes).is_ne() || held.at != at;
        if self.held.first().is_some_and(is_other) || self.held.len() >= MOST {
            self.put(rows)?;
        }
        let mut counts = Vec::with_capacity(self.counts.len());
        for (count, rate) in &self.counts {
            counts.push((row.number(set, *count)?, row.number(set, *rate)?));
        }
        self.held.push(Held { at, file, minutes, counts });
        Ok(())
    }

    fn end(&mut self, rows: &mut Rows, _set: &ResultSet) -> Result<(), ImportError> {
        self.put(rows)
    }
}
