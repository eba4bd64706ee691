//! Logs of PerfMon, as `relog`, `logman` and `typeperf` write them as text: a row for each
//! time, a column for each counter.
//!
//! The head says how far the clock was behind UTC, in minutes: `(-60)` is an hour ahead. Where
//! counters came or went, another head follows.

use super::board::{Board, Place};
use super::path::Path;
use super::row::{Fields, Numbers, Said};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::moment::Clock;
use crate::import::presence::Reports;
use crate::import::sheet::{At, ReadSamples, Sheet};
use crate::import::table::delimiter;
use crate::import::text::Lines;

pub(in crate::import) fn recognizes(text: &str) -> bool {
    let head = text.lines().find(|line| !line.trim().is_empty());
    head.is_some_and(|head| is_head(head, delimiter(head).unwrap_or(b',')))
}

/// Whether a line names counters; it may be cut.
fn is_head(line: &str, delimiter: u8) -> bool {
    let mut fields = Fields::of(line, delimiter);
    let first = fields.next().unwrap_or_default().trim_start_matches('\u{feff}');
    if is_stamp(first) {
        return true;
    }
    let mut paths = 0;
    while let Some(field) = fields.next() {
        if Path::of(field).is_some() {
            paths += 1;
        } else if !field.is_empty() && !fields.is_open() {
            return false;
        }
    }
    paths > 0 && Path::of(first).is_none()
}

/// `(PDH-CSV 4.0) (W. Europe Standard Time)(-60)`
fn is_stamp(field: &str) -> bool {
    field.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("(PDH-"))
}

pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(PerfMon {
        lines: Lines::new(input),
        clock: options.clock,
        delimiter: b',',
        board: Board::default(),
        columns: Vec::new(),
        numbers: Numbers::default(),
    }))
}

struct PerfMon {
    lines: Lines<Bytes>,
    clock: Clock,
    delimiter: u8,
    board: Board,
    /// The counters of the columns behind the first.
    columns: Vec<Option<Place>>,
    numbers: Numbers,
}

impl ReadSamples for PerfMon {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::All;
        while let Some(line) = self.lines.next_line()? {
            if line.trim().is_empty() {
                continue;
            }
            if self.columns.is_empty() {
                self.delimiter = delimiter(&line).unwrap_or(b',');
            }
            let first = Fields::of(&line, self.delimiter).next().unwrap_or_default();
            let begins = first.starts_with(|c: char| c.is_ascii_digit());
            if !begins && is_head(&line, self.delimiter) {
                self.head(sheet, &line)?;
            } else if self.columns.is_empty() {
                return Err(ImportError::at(
                    self.lines.number(),
                    "a head with the paths of counters was expected, such as \
                     \"(PDH-CSV 4.0)\",\"\\\\HOST\\PhysicalDisk(0 C:)\\Disk Reads/sec\"",
                ));
            } else if !begins && Fields::of(&line, self.delimiter).count() == 1 {
                sheet.skipped("lines of text", self.lines.number(), &line);
            } else if let Some(at) = self.row(sheet, &line)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl PerfMon {
    fn head(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        let mut fields = Fields::of(line, self.delimiter);
        self.clock(sheet, fields.next().unwrap_or_default());
        self.columns.clear();
        let mut names = 0;
        for field in fields {
            let place = self.board.place(field).or_else(|| {
                let path = Path::of(field);
                if path.is_none() && !field.is_empty() {
                    sheet.unused(field);
                }
                path.map(|path| self.board.add(sheet, field, path))
            });
            self.columns.push(place);
            names = if field.is_empty() { names } else { self.columns.len() };
        }
        // A head may end with a separator; its rows then do, too, or have a comment there.
        self.columns.truncate(names);
        self.board.check(self.lines.number())?;
        self.board.settle(sheet);
        let board = &self.board;
        for column in &mut self.columns {
            *column = column.filter(|place| board.has(*place));
        }
        Ok(())
    }

    /// Takes the zone from what the head begins with.
    fn clock(&mut self, sheet: &mut Sheet, stamp: &str) {
        let last = stamp.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once('('));
        let behind = last.and_then(|(_, minutes)| minutes.trim().parse::<i64>().ok());
        match behind.filter(|minutes| minutes.unsigned_abs() <= 24 * 60) {
            Some(minutes) => {
                self.clock.offset = -minutes * 60;
                let zone = stamp.split(['(', ')']).filter(|part| !part.trim().is_empty()).nth(1);
                sheet.about("zone", zone.unwrap_or_default());
            }
            None if self.clock.offset == 0 && self.board.is_empty() => {
                sheet.note("its times have no zone: taken for UTC");
            }
            None => {}
        }
    }

    /// The values of a row; nothing if it was cut.
    fn row(&mut self, sheet: &mut Sheet, line: &str) -> Result<Option<At>, ImportError> {
        let number = self.lines.number();
        let mut fields = Fields::of(line, self.delimiter);
        let time = fields.next().unwrap_or_default();
        let (mut count, mut wrong, mut extra) = (0, None, None);
        for field in fields.by_ref() {
            let place = self.columns.get(count).copied();
            match place {
                Some(Some(place)) => match self.numbers.read(field) {
                    Said::Value(value) => self.board.put(sheet, place, value),
                    Said::Nothing => {}
                    Said::Other => wrong = wrong.or(Some(field)),
                },
                // Spreadsheets may leave blank columns behind the last.
                None if field.is_empty() => continue,
                None => extra = extra.or(Some(field)),
                Some(None) => {}
            }
            count += 1;
        }
        let expected = self.columns.len();
        if self.lines.was_open() && (count < expected || fields.is_open()) {
            sheet.note("its last line was cut: left out");
            return Ok(None);
        }
        let extra = extra.filter(|_| count == expected + 1 && !fields.is_open());
        let is_comment = extra.is_some_and(|field| Numbers::default().read(field) == Said::Other);
        if is_comment {
            sheet.unused("comments behind the values of rows");
        } else if count != expected || fields.is_open() {
            return Err(ImportError::at(number, misfit(count, expected, extra)));
        }
        if let Some(field) = wrong {
            return Err(ImportError::at(number, format!("{field:?} is no number")));
        }
        let at = self.clock.moment(time);
        let at = at.ok_or_else(|| ImportError::at(number, format!("{time:?} is no time")))?;
        Ok(Some(At::Wall(at)))
    }
}

/// Why a row does not fit its head. A value more than there are counters may be of any of them.
fn misfit(count: usize, expected: usize, extra: Option<&str>) -> String {
    let words = format!("a row has {count} values, and its head {expected} counters");
    match extra {
        Some(_) => format!(
            "{words}: which value is the one too many cannot be told; write the log again with \
             `relog LOG -f CSV -o NEW.csv`, or give typeperf each counter by its whole path"
        ),
        None => words,
    }
}
