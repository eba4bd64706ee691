//! Logs of PerfMon, as `relog`, `logman` and `typeperf` write them as text: one row per time, one
//! column per counter.
//!
//! The head has the zone as minutes to add for UTC: `(-60)` is an hour ahead of UTC. If counters
//! come or go, another head follows.

use super::board::{Board, Place};
use super::path::Path;
use super::row::{Fields, Numbers, Said};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::table::delimiter;
use crate::text::Lines;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "perfmon",
    about: "a log of PerfMon, relog or typeperf, as CSV or TSV",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["(PDH-CSV", "(PDH-TSV"]),
        Sign::Text(&["\\PhysicalDisk(", "\\LogicalDisk(", "\\Processor(", "\\SQLServer:"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    let head = text.lines().find(|line| !line.trim().is_empty());
    head.is_some_and(|head| is_head(head, delimiter(head).unwrap_or(b',')))
}

/// Returns whether a line names counters; it may be cut.
fn is_head(line: &str, delimiter: u8) -> bool {
    let mut fields = Fields::new(line, delimiter);
    let first = fields.next().unwrap_or_default().trim_start_matches('\u{feff}');
    if is_stamp(first) {
        return true;
    }
    let mut paths = 0;
    while let Some(field) = fields.next() {
        if Path::parse(field).is_some() {
            paths += 1;
        } else if !field.is_empty() && !fields.is_open() {
            return false;
        }
    }
    paths > 0 && Path::parse(first).is_none()
}

/// Returns whether a field is `(PDH-CSV 4.0) (W. Europe Standard Time)(-60)`.
fn is_stamp(field: &str) -> bool {
    field.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("(PDH-"))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
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
    /// Counters of the columns after the first.
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
            let first = Fields::new(&line, self.delimiter).next().unwrap_or_default();
            let begins = first.starts_with(|c: char| c.is_ascii_digit());
            if !begins && is_head(&line, self.delimiter) {
                self.head(sheet, &line)?;
            } else if self.columns.is_empty() {
                return Err(ImportError::at(
                    self.lines.number(),
                    "a header with the paths of counters was expected, such as \"(PDH-CSV \
                     4.0)\",\"\\\\HOST\\PhysicalDisk(0 C:)\\Disk Reads/sec\"",
                ));
            } else if !begins && Fields::new(&line, self.delimiter).count() == 1 {
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
        let mut fields = Fields::new(line, self.delimiter);
        self.clock(sheet, fields.next().unwrap_or_default());
        self.columns.clear();
        let mut names = 0;
        for field in fields {
            let place = self.board.place(field).or_else(|| {
                let path = Path::parse(field);
                if path.is_none() && !field.is_empty() {
                    sheet.unused(field);
                }
                path.map(|path| self.board.add(sheet, field, path))
            });
            self.columns.push(place);
            names = if field.is_empty() { names } else { self.columns.len() };
        }
        // A head may end with a separator. Its rows then do, too, or have a comment there.
        self.columns.truncate(names);
        self.board.check(self.lines.number())?;
        self.board.settle(sheet);
        let board = &self.board;
        for column in &mut self.columns {
            *column = column.filter(|place| board.has(*place));
        }
        Ok(())
    }

    /// Takes the zone from the beginning of the head.
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
                sheet.note("its times have no zone: UTC is assumed");
            }
            None => {}
        }
    }

    /// Takes the values of a row; returns `None` if it was cut.
    fn row(&mut self, sheet: &mut Sheet, line: &str) -> Result<Option<At>, ImportError> {
        let number = self.lines.number();
        let expected = self.columns.len();
        let mut row = self.fields(sheet, line, false);
        if self.lines.was_open() && (row.count < expected || row.is_open) {
            sheet.note("its last line was truncated and is left out");
            return Ok(None);
        }
        let more = row.count.checked_sub(expected).filter(|more| *more > 0);
        if more.is_some_and(|more| more == row.failed) {
            sheet.clear();
            row = self.fields(sheet, line, true);
            sheet.unused("values of -1 without a counter in the head");
        }
        let extra = row.extra.filter(|_| row.count == expected + 1 && !row.is_open);
        let is_comment = extra.is_some_and(|field| Numbers::default().read(field) == Said::Other);
        if is_comment {
            sheet.unused("comments after the values of rows");
        } else if row.count != expected || row.is_open {
            return Err(ImportError::at(number, misfit(row.count, expected, extra)));
        }
        if let Some(field) = row.wrong {
            return Err(ImportError::at(number, format!("{field:?} is not a number")));
        }
        let at = self.clock.moment(row.time);
        let at =
            at.ok_or_else(|| ImportError::at(number, format!("{:?} is not a time", row.time)))?;
        Ok(Some(At::Wall(at)))
    }

    /// Writes the values of a row by the columns of the head; `skips` those of [`FAILED`]
    /// counters.
    fn fields<'a>(&mut self, sheet: &mut Sheet, line: &'a str, skips: bool) -> Row<'a> {
        let mut fields = Fields::new(line, self.delimiter);
        let mut row = Row { time: fields.next().unwrap_or_default(), ..Row::default() };
        for field in fields.by_ref() {
            row.failed += usize::from(field == FAILED);
            if skips && field == FAILED {
                continue;
            }
            match self.columns.get(row.count).copied() {
                Some(Some(place)) => match self.numbers.read(field) {
                    Said::Value(value) => self.board.put(sheet, place, value),
                    Said::Nothing => {}
                    Said::Other => row.wrong = row.wrong.or(Some(field)),
                },
                // Spreadsheets may leave blank columns after the last.
                None if field.is_empty() => continue,
                None => row.extra = row.extra.or(Some(field)),
                Some(None) => {}
            }
            row.count += 1;
        }
        row.is_open = fields.is_open();
        row
    }
}

/// The value that typeperf writes for a failed counter. It may leave such a counter out of the
/// head, so that rows are wider than the head.
const FAILED: &str = "-1";

/// The remaining fields of a row.
#[derive(Debug, Default)]
struct Row<'a> {
    time: &'a str,
    count: usize,
    /// The first field that is not a number, and the first beyond the columns of the head.
    wrong: Option<&'a str>,
    extra: Option<&'a str>,
    /// Number of failed counters.
    failed: usize,
    is_open: bool,
}

/// Describes why a row does not fit its head. A surplus value may belong to any counter.
fn misfit(count: usize, expected: usize, extra: Option<&str>) -> String {
    let words = format!("a row has {count} values, but its header has {expected} counters");
    match extra {
        Some(_) => format!(
            "{words}: it is unclear which value is the extra one; write the log again with `relog \
             LOG -f CSV -o NEW.csv`, or give typeperf each counter by its whole path"
        ),
        None => words,
    }
}
