//! `sar`, as text: with clocks of 12 and 24 hours, of old and new sysstat.
//!
//! While it measures, sar prints all tables of one time before those of the next. From a file it
//! prints table by table, each with all times up to the next restart of the machine. Lines have
//! times of day only. The date is in the first line, and a table whose times go back by half a day
//! or more has reached the next date.

use super::activity::{self, Place, Table};
use super::by_table::{ByTable, TakeLines};
use super::held::Held;
use super::line::{banner, stamped};
use super::quantity::style_of;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::text::words;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::moment::{Clock, time_of};

pub(crate) const KIND: Kind = Kind {
    name: "sar",
    about: "sar of sysstat, as text",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["DEV", "CPU"]),
        Sign::Word(&["tps", "%user", "%usr"]),
        Sign::Word(&["%idle", "rd_sec/s", "rkB/s", "bread/s"]),
        Sign::Word(&["Average", "Linux"]),
    ]],
};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let line = stamped(line, Clock::default()).1;
        let Some((time, rest)) = split_time(line) else { return false };
        if time_of(time).is_none() || !is_head(rest) {
            return false;
        }
        let names: Vec<_> = rest.split_whitespace().collect();
        activity::meaning(&names).is_some()
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let sar = Sar {
        clock: options.clock,
        style: None,
        host: None,
        dated: false,
        tables: Vec::new(),
        table: None,
        stretch: 0,
        latest: 0,
        row_of: None,
        last_time: (String::new(), 0),
        backward: 0,
        origin: None,
    };
    Ok(ByTable::new(input, sar))
}

/// Splits a line into its time and the rest.
fn split_time(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = line.find(char::is_whitespace)?;
    let (time, rest) = line.split_at(end);
    if !time.contains(':') {
        return None;
    }
    let rest = rest.trim_start();
    let half = rest
        .split(char::is_whitespace)
        .next()
        .filter(|half| half.eq_ignore_ascii_case("AM") || half.eq_ignore_ascii_case("PM"));
    match half {
        Some(half) => {
            // Both are parts of the line, with the space between them.
            let (time, rest) = line.split_at(line.len() - rest.len() + half.len());
            Some((time, rest.trim_start()))
        }
        None => Some((time, rest)),
    }
}

/// Returns whether the text after a time is a head: in a row, at least one of the first two words
/// is a number.
fn is_head(rest: &str) -> bool {
    let mut words = rest.split_ascii_whitespace().take(2).peekable();
    words.peek().is_some()
        && words.all(|word| !word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()))
}

struct Sar {
    clock: Clock,
    style: Option<Style>,
    host: Option<EntityId>,
    /// True if the date is known; otherwise times count from the beginning of some day.
    dated: bool,
    tables: Vec<Known>,
    /// Table of the current rows.
    table: Option<usize>,
    /// Earliest start of the current tables, by the clock of the input.
    stretch: i64,
    latest: i64,
    /// Table of the last row.
    row_of: Option<usize>,
    /// The last time read; rows of one time are consecutive.
    last_time: (String, i64),
    backward: u64,
    /// Time of the first sample, if the date is unknown.
    origin: Option<i64>,
}

struct Known {
    table: Table,
    /// Time of its last row since the restart, by the clock of the input.
    last: Option<i64>,
    /// Time of day at which the interval of the next row begins, from a head.
    begins: Option<i64>,
}

impl TakeLines for Sar {
    fn line(&mut self, sheet: &mut Sheet, held: &mut Held, line: &str) -> Result<(), String> {
        let line = stamped(line, self.clock).1;
        if let Some((host, date)) = banner(line, self.clock) {
            self.begin(sheet, held, &host, date);
            return Ok(());
        }
        let Some((time, rest)) = split_time(line) else {
            // "Average:", in any language.
            if line.split_whitespace().next().is_some_and(|word| !word.ends_with(':')) {
                sheet.unused("lines without a time");
            }
            return Ok(());
        };
        let Some(time) = self.time(time) else {
            return Err(format!("a line begins with {time:?}, which is not a time"));
        };
        if rest.starts_with("LINUX RESTART") {
            self.restart(sheet, held, time);
        } else if rest.starts_with("COM ") {
            sheet.unused("comments");
        } else if is_head(rest) {
            self.head(sheet, time, rest);
        } else {
            self.row(sheet, held, time, rest)?;
        }
        Ok(())
    }

    fn end(&mut self, sheet: &mut Sheet, held: &mut Held) {
        held.release();
        if self.backward > 0 {
            sheet.note(format!("{} rows whose times decreased are left out", self.backward));
        }
        if !self.dated {
            sheet.note("its times have no date");
        }
    }

    fn reports(&self) -> Reports {
        // A row that was left out is not an idle device.
        if self.backward > 0 { Reports::All } else { Reports::AllButIdle }
    }

    fn at(&mut self, at: i64) -> At {
        if self.dated {
            return At::Wall(at);
        }
        let since = at.saturating_sub(*self.origin.get_or_insert(at));
        At::Since(u64::try_from(since).unwrap_or(0))
    }
}

impl Sar {
    /// Begins an output.
    fn begin(&mut self, sheet: &mut Sheet, held: &mut Held, host: &str, date: Option<i64>) {
        held.release();
        self.host = Some(sheet.entity(EntityKind::Host, host, None));
        self.dated |= date.is_some();
        if let Some(date) = date {
            self.stretch = date;
            self.latest = date;
        }
        for known in &mut self.tables {
            known.last = None;
            known.table.forget();
        }
        self.table = None;
        self.row_of = None;
    }

    /// Records a restart: all later samples follow those so far.
    fn restart(&mut self, sheet: &mut Sheet, held: &mut Held, time: i64) {
        self.stretch = after(self.latest, time);
        self.latest = self.stretch;
        held.restart(self.stretch - self.clock.offset * SECOND);
        for known in &mut self.tables {
            known.last = None;
        }
        self.table = None;
        self.row_of = None;
        sheet.note("the machine was restarted");
    }

    /// Parses a time of day, by the clock of the input unless it has a zone.
    fn time(&mut self, text: &str) -> Option<i64> {
        if self.last_time.0 == text {
            return Some(self.last_time.1);
        }
        let (time, offset) = time_of(text)?;
        // Stored by the clock of the input, in which its days begin.
        let time = time + (self.clock.offset - offset.unwrap_or(self.clock.offset)) * SECOND;
        self.last_time = (text.to_owned(), time);
        Some(time)
    }

    fn head(&mut self, sheet: &mut Sheet, time: i64, rest: &str) {
        let names: Vec<_> = rest.split_whitespace().collect();
        let known = self.tables.iter().position(|known| known.table.has(&names));
        self.table = known.or_else(|| {
            self.tables.push(Known { table: Table::new(&names, sheet), last: None, begins: None });
            Some(self.tables.len() - 1)
        });
        // A head has the time of the sample before its rows.
        if let Some(known) = self.table.and_then(|table| self.tables.get_mut(table)) {
            known.begins = Some(time);
        }
    }

    fn row(
        &mut self,
        sheet: &mut Sheet,
        held: &mut Held,
        time: i64,
        rest: &str,
    ) -> Result<(), String> {
        let place = self.table;
        let Some(known) = place.and_then(|place| self.tables.get_mut(place)) else {
            sheet.unused("rows before the first header");
            return Ok(());
        };
        // A table after all times of another one is no sign; its return is.
        let comes_again = self.row_of != place && known.last.is_some();
        if !known.table.is_used() {
            self.row_of = place;
            return Ok(());
        }
        let moment = after(known.last.unwrap_or(self.stretch), time);
        if known.last.is_some_and(|last| moment < last) {
            self.backward += 1;
            return Ok(());
        }
        known.last = Some(moment);
        let at = moment - self.clock.offset * SECOND;
        if let Some(begins) = known.begins.take() {
            held.cover(at, (time - begins).rem_euclid(DAY));
        }
        if moment > self.latest {
            self.latest = moment;
            if comes_again {
                held.release_before(at);
            }
        }
        self.row_of = place;
        let host = *self.host.get_or_insert_with(|| sheet.entity(EntityKind::Host, "host", None));
        let words = words(rest);
        let style = style_of(&mut self.style, &words);
        known.table.row(&words, style, &mut Place { sheet, held, host, at })
    }
}

/// Returns the moment of a time of day that follows another moment, or slightly precedes it.
fn after(last: i64, time: i64) -> i64 {
    let moment = last.div_euclid(DAY) * DAY + time;
    if moment + DAY / 2 < last { moment + DAY } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_beginning_of_a_line() {
        let check = |line: &str, expect| assert_eq!(split_time(line), expect, "{line}");
        check("05:48:49 PM     CPU  %usr", Some(("05:48:49 PM", "CPU  %usr")));
        check("13:20:09          tps  DEV", Some(("13:20:09", "tps  DEV")));
        check("13:20:09+0200  tps", Some(("13:20:09+0200", "tps")));
        check("00:00:01  pmX 1", Some(("00:00:01", "pmX 1")));
        check("Average:  all 1", None);
        check("13 14", None);
    }

    #[test]
    fn midnight_and_small_steps_back() {
        assert_eq!(after(23 * HOUR, HOUR), DAY + HOUR);
        assert_eq!(after(3 * HOUR, 2 * HOUR), 2 * HOUR);
        assert_eq!(after(0, 23 * HOUR), 23 * HOUR);
    }

    #[test]
    fn heads_and_rows() {
        assert!(is_head("CPU     %user"));
        assert!(is_head("tps      rtps"));
        assert!(!is_head("all      2.15"));
        assert!(!is_head("0.00 0.00 sda"));
        assert!(!is_head(""));
    }
}
