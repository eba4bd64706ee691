//! The times of the rows of a result set.
//!
//! Most sets have them in an added column (`collection_time`, `CheckDate`), some count from the
//! start of the machine (`sample_ms`), and many have none. Rows without times are one sample,
//! until an entity of the sample repeats.

use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::sheet::Sheet;
use crate::window::Stamp;
use weir_observe::moment::Clock;
use weir_units::Span;

const MS: i64 = 1_000_000;
/// The longest distance of rows of one result by the clock of the machine.
const APART: i64 = 500 * MS;

/// Columns with the time of a row, most reliable first.
const TIMES: &[&str] = &[
    "collectiontime",
    "collectiontimeutc",
    "collectedat",
    "collected",
    "collectiondate",
    "capturetime",
    "capturedate",
    "capturedatetime",
    "snapshottime",
    "snapshotdate",
    "sampletime",
    "sampledate",
    "sampledatetime",
    "checkdate",
    "timedatacollected",
    "endtime",
    "logtime",
    "logdate",
    "polldate",
    "eventtime",
    "measuredat",
    "currenttime",
    "datetime",
    "timestamp",
    "time",
    "ts",
    "now",
    "clocktimestamp",
    "epoch",
    "utc",
];
/// Columns with the clock of the machine, in milliseconds.
const MACHINE: &[&str] = &["samplems", "msticks"];
/// Parts of column names for other times.
const OTHER: &[&str] =
    &["create", "start", "reset", "modif", "login", "last", "backup", "update", "reboot"];

/// The columns of a result set with its times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TimeColumns {
    time: Option<usize>,
    machine: Option<usize>,
    /// Time stated above the result, for all of its rows.
    above: Option<i64>,
    /// True if times are UTC, whatever the clock option says.
    pub(crate) is_utc: bool,
}

impl TimeColumns {
    /// Finds the time columns of `set`, whose first row is `first`.
    pub(crate) fn find(set: &ResultSet, first: Option<&Row>, clock: Clock) -> Self {
        let machine = set.column(MACHINE).or_else(|| old_machine(set, first));
        let is_time = |at: usize| first.is_some_and(|row| is_written_time(row, at, clock));
        let named = TIMES.iter().filter_map(|name| set.column(&[name]));
        let mut named = named.filter(|at| first.is_none_or(|row| row.text(Some(*at)).is_some()));
        let guess = || {
            let mut like = set.names().filter(|(_, name)| {
                ["time", "date", "stamp"].iter().any(|part| name.contains(part))
                    && !OTHER.iter().any(|part| name.contains(part))
            });
            let like = like.find(|(at, _)| is_time(*at)).map(|(at, _)| at);
            // Any date with a time of day is the time of the row, unless its name says that
            // something else began or ended then.
            like.or_else(|| {
                let is_other = |name: &str| OTHER.iter().any(|part| name.contains(part));
                let mut rest = set.names().filter(|(_, name)| !is_other(name));
                rest.find(|(at, _)| is_time(*at)).map(|(at, _)| at)
            })
        };
        let time = named.find(|at| Some(*at) != machine).or_else(guess);
        let above = set.title.as_deref().and_then(|title| watched(title, clock));
        Self { time, machine, above, is_utc: false }
    }

    /// Returns the text of a row's time.
    pub(crate) fn text<'a>(&self, row: &'a Row) -> Option<&'a str> {
        row.text(self.time.or(self.machine))
    }

    /// Returns whether there is a time in each row, or above all of them.
    pub(crate) const fn is_dated(&self) -> bool {
        self.time.is_some() || self.above.is_some()
    }

    /// Returns whether a column is a time column.
    pub(crate) fn is_one(&self, at: usize) -> bool {
        self.time == Some(at) || self.machine == Some(at)
    }
}

/// Returns the column of `fn_virtualfilestats` that has milliseconds under the name of a time
/// stamp.
fn old_machine(set: &ResultSet, first: Option<&Row>) -> Option<usize> {
    let at = set.column(&["timestamp"]).filter(|_| set.has(&["numberreads"]))?;
    let text = first?.text(Some(at))?;
    (text.len() < 13 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')).then_some(at)
}

fn is_written_time(row: &Row, at: usize, clock: Clock) -> bool {
    let text = row.text(Some(at)).unwrap_or_default();
    text.contains(['-', '/', ':']) && clock.moment(text).is_some()
}

/// Parses the time that `\watch` of psql writes above each result: `Sun 22 Nov 2026 04:45:14 AM
/// UTC (every 2s)`.
fn watched(title: &str, clock: Clock) -> Option<i64> {
    let (time, _) = title.split_once("(every ")?;
    let time = time.trim();
    clock.moment(time).or_else(|| {
        let words: Vec<_> = time.split_whitespace().collect();
        let [name, day, month, year, clock_time, rest @ ..] = &words[..] else { return None };
        let (half, zone) = match rest {
            [half @ ("AM" | "PM"), zone @ ..] => (Some(*half), zone),
            zone => (None, zone),
        };
        let hours = half.map_or((*clock_time).to_owned(), |half| in_24(clock_time, half));
        let zone = zone.first().copied().unwrap_or_default();
        clock.moment(&format!("{name} {month} {day} {hours} {zone} {year}"))
    })
}

/// Converts a 12-hour time to a 24-hour time.
fn in_24(time: &str, half: &str) -> String {
    let Some((hour, rest)) = time.split_once(':') else { return time.to_owned() };
    let hour = hour.parse::<u8>().unwrap_or(0) % 12;
    let hour = if half == "PM" { hour + 12 } else { hour };
    format!("{hour:02}:{rest}")
}

/// The conversion of rows to times, over all result sets of an input.
#[derive(Debug)]
pub(crate) struct Timing {
    clock: Clock,
    step: i64,
    /// Text and value of the last row's time.
    last: Option<(String, i64)>,
    /// Moment of rows without a date.
    now: i64,
    /// Clock of the machine at that moment.
    machine: Option<i64>,
    has_risen: bool,
    has_no_zone: bool,
    has_gone_on: bool,
}

impl Timing {
    /// Creates the conversion; rows without times are `step` nanoseconds apart.
    pub(crate) fn new(clock: Clock, step: i64) -> Self {
        let machine = None;
        let (has_risen, has_no_zone, has_gone_on) = (false, false, false);
        Self { clock, step, last: None, now: 0, machine, has_risen, has_no_zone, has_gone_on }
    }

    /// Forgets the last row's time, since another set may use another clock.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the moment of rows without a date.
    pub(crate) const fn moment(&self) -> i64 {
        self.now
    }

    /// Returns the time of a row. `seen` is the moment without a date at which the entity was last
    /// seen.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if a time is missing.
    pub(crate) fn stamp(
        &mut self,
        sheet: &mut Sheet,
        columns: &TimeColumns,
        row: &Row,
        seen: &mut Option<i64>,
    ) -> Result<Stamp, ImportError> {
        if let Some(at) = columns.time {
            let text = row.text(Some(at)).unwrap_or_default();
            // Many rows share a time.
            if let Some((_, moment)) = self.last.as_ref().filter(|(last, _)| last == text) {
                return Ok(Stamp::Wall(*moment));
            }
            let clock = if columns.is_utc { Clock { offset: 0, ..self.clock } } else { self.clock };
            let Some(moment) = clock.moment(text) else {
                return Err(row.wrong(format!("{text:?} is not a time")));
            };
            self.tell_zone(sheet, columns, text);
            self.last = Some((text.to_owned(), moment));
            return Ok(Stamp::Wall(moment));
        }
        if let Some(moment) = columns.above {
            return Ok(Stamp::Wall(moment));
        }
        let is_again = *seen == Some(self.now);
        match row.text(columns.machine).and_then(|text| text.parse::<i64>().ok()) {
            Some(ms) => self.by_machine(sheet, ms.saturating_mul(MS), is_again),
            None if is_again => self.go_on(sheet),
            None => {}
        }
        *seen = Some(self.now);
        Ok(Stamp::Since(self.now))
    }

    /// Advances to the moment of this value of the machine's clock.
    fn by_machine(&mut self, sheet: &mut Sheet, machine: i64, is_again: bool) {
        let before = *self.machine.get_or_insert(machine);
        let passed = machine.saturating_sub(before);
        if passed == 0 || (passed.abs() < APART && !is_again) {
            return;
        }
        if passed < 0 && self.has_risen {
            sheet.note("the machine was restarted: the length of the interruption is unknown");
            self.now = self.now.saturating_add(self.step);
        } else {
            self.now = self.now.saturating_add(passed);
        }
        self.has_risen |= passed > 0;
        self.machine = Some(machine);
    }

    /// Advances to the next moment, without a known time.
    fn go_on(&mut self, sheet: &mut Sheet) {
        if !self.has_gone_on {
            self.has_gone_on = true;
            let seconds = Span::from_nanos(self.step.unsigned_abs());
            sheet
                .note(format!("its samples have no times: they are assumed to be {seconds} apart"));
        }
        self.now = self.now.saturating_add(self.step);
    }

    fn tell_zone(&mut self, sheet: &mut Sheet, columns: &TimeColumns, text: &str) {
        if !self.has_no_zone && !columns.is_utc && self.clock.offset == 0 && !has_zone(text) {
            self.has_no_zone = true;
            sheet.note("its times have no zone: UTC is assumed");
        }
    }
}

fn has_zone(text: &str) -> bool {
    let time = text.find(':').map(|at| &text[at..]);
    time.is_none_or(|time| {
        time.contains(['+', '-', 'Z', 'z']) || ["UTC", "GMT"].iter().any(|z| time.contains(z))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_a_watched_result() {
        let check = |title: &str, expect: &str| {
            let at = watched(title, Clock::default());
            assert_eq!(at, Clock::default().moment(expect), "{title}");
            assert!(at.is_some(), "{title}");
        };
        check("Sun 22 Nov 2026 04:45:14 PM UTC (every 2s)", "2026-11-22 16:45:14");
        check("Sun Nov 22 04:45:14 2026 (every 2s)", "2026-11-22 04:45:14");
        check("Sun 22 Nov 2026 12:45:14 AM UTC (every 2s)", "2026-11-22 00:45:14");
        assert_eq!(watched("waits (every time)", Clock::default()), None);
    }

    #[test]
    fn a_zone_is_named_or_not() {
        assert!(has_zone("2021-05-15 19:39:34.607 +00:00") && has_zone("2021-05-15T19:39:34Z"));
        assert!(has_zone("1598650497") && !has_zone("2021-05-15 19:39:34.607"));
    }
}
