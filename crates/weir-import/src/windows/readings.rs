//! What `Get-Counter` prints, and what `Get-Counter | Export-Csv` makes of it: the path of a
//! counter with a colon behind it, and its value in the next line.
//!
//! ```text
//! Timestamp                 CounterSamples
//! ---------                 --------------
//! 1/7/2020 8:00:39 PM       \\db1\physicaldisk(0 c:)\disk reads/sec :
//!                           78.5385858083758
//! ```
//!
//! In a CSV file the time may come behind its readings.

use super::board::{Board, Place};
use super::path::Path;
use super::row::{Numbers, Said};
use crate::ImportError;
use crate::kind::Bytes;
use crate::merge::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::mem;
use weir_observe::moment::Clock;

pub(crate) fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let path = split(line).and_then(|(_, path)| path.trim_end().strip_suffix(" :"));
        path.is_some_and(|path| Path::of(path).is_some())
    })
}

pub(crate) fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Readings {
        lines: Lines::new(input),
        clock: options.clock,
        board: Board::default(),
        numbers: Numbers::default(),
        sample: Vec::new(),
        at: None,
        is_behind: false,
        has_zone: options.clock.offset != 0,
    }))
}

/// What stands before a path, and the line from there on.
fn split(line: &str) -> Option<(&str, &str)> {
    line.find(r"\\").map(|at| line.split_at(at))
}

struct Readings {
    lines: Lines<Bytes>,
    clock: Clock,
    board: Board,
    numbers: Numbers,
    sample: Vec<(Place, f64)>,
    at: Option<i64>,
    /// Times come behind their readings.
    is_behind: bool,
    has_zone: bool,
}

/// A path in a narrow window goes over so many lines.
const MOST_WRAPPED: usize = 4;

impl ReadSamples for Readings {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            let (before, path) = match split(&line) {
                Some((before, path)) => (before, Some(path)),
                None => (line.as_str(), None),
            };
            let small = before.to_ascii_lowercase();
            if let (Some(readings), Some(time)) = (small.find("readings"), small.find("timestamp"))
            {
                self.is_behind = readings < time;
            }
            let ended = self.time(sheet, before);
            if let Some(path) = path {
                self.reading(sheet, path.to_owned())?;
            }
            // What was read of the next sample waits for its time.
            if let Some(at) = ended {
                return Ok(Some(At::Wall(at)));
            }
        }
        self.board.check(self.lines.number())?;
        Ok(self.at.take().map(|at| {
            let sample = mem::take(&mut self.sample);
            self.put(sheet, sample);
            At::Wall(at)
        }))
    }
}

impl Readings {
    /// Takes the time that a text may have; that of the sample which ends there.
    fn time(&mut self, sheet: &mut Sheet, text: &str) -> Option<i64> {
        let time = text.split('"').find_map(|part| {
            let part = part.trim().trim_start_matches("Timestamp").trim_start_matches([' ', ':']);
            part.contains(':').then(|| self.clock.moment(part)).flatten()
        })?;
        if !mem::replace(&mut self.has_zone, true) {
            sheet.note("its times have no zone: taken for UTC");
        }
        let ended = if self.is_behind { Some(time) } else { self.at.replace(time) };
        if ended.is_some() {
            let sample = mem::take(&mut self.sample);
            self.put(sheet, sample);
        }
        ended
    }

    fn put(&mut self, sheet: &mut Sheet, sample: Vec<(Place, f64)>) {
        self.board.settle(sheet);
        for (place, value) in sample {
            self.board.put(sheet, place, value);
        }
    }

    /// Reads what a path has below it.
    fn reading(&mut self, sheet: &mut Sheet, mut text: String) -> Result<(), ImportError> {
        let number = self.lines.number();
        for _ in 0..MOST_WRAPPED {
            if text.trim_end().ends_with(':') {
                break;
            }
            let Some(more) = self.lines.next_line()? else { break };
            // What comes instead of the rest of a path is something else.
            if more.contains(r"\\") || self.numbers.read(more.trim()) != Said::Other {
                break;
            }
            text = format!("{} {}", text.trim_end(), more.trim());
        }
        let path = text.trim_end().strip_suffix(':').map(str::trim_end);
        let Some((key, path)) = path.and_then(|text| Some((text, Path::of(text)?))) else {
            let short: String = text.chars().take(60).collect();
            let reason = format!("the path of a counter with a colon was expected, not {short:?}");
            return Err(ImportError::at(number, reason));
        };
        let Some(value) = self.value()? else {
            sheet.note("its last reading was cut: left out");
            return Ok(());
        };
        let place = self.board.place(key).unwrap_or_else(|| self.board.add(sheet, key, path));
        match self.numbers.read(value.trim()) {
            Said::Value(value) => self.sample.push((place, value)),
            Said::Nothing => {}
            Said::Other => {
                let (line, value) = (self.lines.number(), value.trim());
                return Err(ImportError::at(line, format!("{value:?} is no number")));
            }
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if !line.trim().is_empty() {
                // What is printed has an end of line behind it.
                return Ok((!self.lines.was_open()).then_some(line));
            }
        }
        Ok(None)
    }
}
