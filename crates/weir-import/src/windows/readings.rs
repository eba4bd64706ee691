//! Output of `Get-Counter`, also exported by `Get-Counter | Export-Csv`: the path of a counter
//! with a colon, and its value in the next line.
//!
//! ```text
//! Timestamp                 CounterSamples
//! ---------                 --------------
//! 1/7/2020 8:00:39 PM       \\db1\physicaldisk(0 c:)\disk reads/sec :
//!                           78.5385858083758
//! ```
//!
//! In a CSV file the time may follow its readings.

use super::board::{Board, Place};
use super::path::Path;
use super::row::{Numbers, Said};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::mem;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "get-counter-readings",
    about: "readings of Get-Counter, printed or exported",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["\\\\"]),
        Sign::Text(&["Readings", "CounterSamples", "Timestamp"]),
        Sign::Text(&[" :\n"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let path = split(line).and_then(|(_, path)| path.trim_end().strip_suffix(" :"));
        path.is_some_and(|path| Path::parse(path).is_some())
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
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

/// Splits a line before the path.
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
    /// True if times follow their readings.
    is_behind: bool,
    has_zone: bool,
}

/// The most lines of a path in a narrow window.
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
            // Readings of the next sample wait for their time.
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
    /// Takes the time in a text, if there is one; returns that of the sample that ends there.
    fn time(&mut self, sheet: &mut Sheet, text: &str) -> Option<i64> {
        let time = text.split('"').find_map(|part| {
            let part = part.trim().trim_start_matches("Timestamp").trim_start_matches([' ', ':']);
            part.contains(':').then(|| self.clock.moment(part)).flatten()
        })?;
        if !mem::replace(&mut self.has_zone, true) {
            sheet.note("its times have no zone: UTC is assumed");
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

    /// Reads the value below a path.
    fn reading(&mut self, sheet: &mut Sheet, mut text: String) -> Result<(), ImportError> {
        let number = self.lines.number();
        for _ in 0..MOST_WRAPPED {
            if text.trim_end().ends_with(':') {
                break;
            }
            let Some(more) = self.lines.next_line()? else { break };
            // Other text in place of the rest of a path ends it.
            if more.contains(r"\\") || self.numbers.read(more.trim()) != Said::Other {
                break;
            }
            text = format!("{} {}", text.trim_end(), more.trim());
        }
        let path = text.trim_end().strip_suffix(':').map(str::trim_end);
        let Some((key, path)) = path.and_then(|text| Some((text, Path::parse(text)?))) else {
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
                return Err(ImportError::at(line, format!("{value:?} is not a number")));
            }
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if !line.trim().is_empty() {
                // Printed values end with a line end.
                return Ok((!self.lines.was_open()).then_some(line));
            }
        }
        Ok(None)
    }
}
