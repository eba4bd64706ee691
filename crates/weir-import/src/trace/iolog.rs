//! I/O logs of fio (`write_iolog`), in versions 2 and 3.
//!
//! Version 3 has a time in every line: microseconds since the start of the job. In version 2 only
//! `wait` lets time pass, by the microseconds in its offset.

use super::opened::Trace;
use super::request::{Direction, ReadRequests, Request, Sink};
use super::rows::first_line;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "fio-iolog",
    about: "an I/O log of fio, version 2 or 3",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Text(&["fio version "]), Sign::Text(&["iolog"])]],
};

const MICROSECOND: i64 = 1000;

fn recognizes(text: &str) -> bool {
    text.lines().next().and_then(version).is_some()
}

/// Returns the version in the first line.
fn version(line: &str) -> Option<&str> {
    line.trim_start_matches('\u{feff}').strip_prefix("fio version ")?.strip_suffix(" iolog")
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(input);
    let first = first_line(&mut lines)?;
    let has_times = match version(first.trim_end()) {
        Some("2") => false,
        Some("3") => true,
        Some(other) => {
            let reason = format!("it is of version {other}; versions 2 and 3 are read");
            return Err(ImportError::at(lines.number(), reason));
        }
        None => {
            let reason = format!("\"fio version 3 iolog\" was expected, but found {first:?}");
            return Err(ImportError::at(lines.number(), reason));
        }
    };
    let trace = Iolog { lines, has_times, now: 0, has_waited: false, has_begun: false };
    Ok(Trace::new(trace))
}

struct Iolog {
    lines: Lines<Bytes>,
    /// True if every line has a time.
    has_times: bool,
    /// Nanoseconds since the beginning.
    now: i64,
    has_waited: bool,
    has_begun: bool,
}

impl ReadRequests for Iolog {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let Some(line) = self.lines.next_line()? else {
            self.check_times(sheet)?;
            return Ok(false);
        };
        match self.line(&line, sink, sheet) {
            Ok(()) => Ok(true),
            Err(_) if self.lines.was_open() => {
                sheet.note("its last line was truncated and is left out");
                Ok(true)
            }
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

impl Iolog {
    fn line(&mut self, line: &str, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace().peekable();
        if words.peek().is_none() {
            return Ok(());
        }
        if self.has_times {
            let time = words.next().unwrap_or_default();
            let micros: Option<i64> = time.parse().ok().filter(|micros| *micros >= 0);
            let now = micros.and_then(|micros| micros.checked_mul(MICROSECOND));
            self.now = now.ok_or_else(|| format!("the time is {time:?}, which is not a time"))?;
        }
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err("a file and an action were expected".to_owned());
        };
        if matches!(action, "add" | "open" | "close" | "unlink") && words.peek().is_none() {
            return Ok(());
        }
        let mut number = |what: &str| {
            let word = words.next().unwrap_or_default();
            word.parse::<u64>()
                .map_err(|_| format!("the {what} is {word:?}, which is not a number"))
        };
        let (offset, length) = (number("offset")?, number("length")?);
        let direction = match action {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "trim" => Direction::Discard,
            "sync" | "datasync" | "syncfs" | "sync_file_range" => Direction::Flush,
            "wait" if !self.has_times => return self.wait(offset),
            other => {
                sheet.unused(&format!("the action {other}"));
                return Ok(());
            }
        };
        self.has_begun = true;
        let length = if direction == Direction::Flush { 0 } else { length };
        let device = sink.device(None, file).map_err(|error| error.to_string())?;
        let offset = Some(offset);
        let request = Request { at: self.now, device, direction, offset, length, latency: None };
        sink.request(request).map_err(|error| error.to_string())
    }

    fn wait(&mut self, micros: u64) -> Result<(), String> {
        let nanos = i64::try_from(micros).ok().and_then(|micros| micros.checked_mul(MICROSECOND));
        let now = nanos.and_then(|nanos| self.now.checked_add(nanos));
        self.now =
            now.ok_or_else(|| format!("it waits {micros} microseconds, which is too long"))?;
        self.has_waited = true;
        Ok(())
    }

    /// Rejects a log without times, which has no samples.
    fn check_times(&self, sheet: &mut Sheet) -> Result<(), ImportError> {
        if self.has_times || !self.has_begun {
            return Ok(());
        }
        if !self.has_waited {
            return Err(ImportError::whole(
                "version 2 of an iolog has no times unless something waits in it, and nothing \
                 does; fio 3.31 and later write version 3, which has",
            ));
        }
        sheet.note("requests between two waits are assumed to arrive at once");
        Ok(())
    }
}
