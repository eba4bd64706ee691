//! Output of blkparse: events of the block layer.
//!
//! ```text
//! 259,2    0        5     0.000005462  4020  D  RS 282624 + 8 [java]
//! device  cpu   number      seconds     pid  |  |  sector  sectors
//!                                            |  kind of request: R, W, D; F before or
//!                                            |  after for a flush; S, A, M, .. are ignored
//!                                            Q queued, D sent to the device, C completed, ..
//! ```
//!
//! The latency is that of the device, from D to C. Devices without a queue of their own (LVM,
//! RAID) have no D; their latency is from Q to C.

use super::opened::Trace;
use super::pairing::{self, Action, Pairing};
use super::request::{Direction, ReadRequests, Sink};
use super::rows::{SECOND, SECTOR, first_line};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "blkparse",
    about: "events of the Linux block layer, as printed by blkparse",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(' ', 7, 12), Sign::Text(&[" Q ", " C ", " D "]), Sign::Text(&[" + "])]],
};

fn recognizes(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.and_then(event).is_some_and(|event| scaled(event.time, SECOND).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(input);
    let first = first_line(&mut lines)?;
    if event(&first).is_none() {
        let reason = format!("an event as printed by blkparse was expected, but found {first:?}");
        return Err(ImportError::at(lines.number(), reason));
    }
    lines.put_back(first);
    let trace = Blkparse { lines, pairing: Pairing::default() };
    Ok(Trace::new(trace))
}

/// The common fields of an event.
struct Event<'a> {
    disk: &'a str,
    time: &'a str,
    action: &'a str,
    rwbs: &'a str,
    rest: &'a str,
}

/// Parses the event of a line; `None` if the line begins otherwise.
fn event(line: &str) -> Option<Event<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start();
        let (word, behind) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        rest = behind;
        word
    };
    let (disk, processor, number, time) = (word(), word(), word(), word());
    let (process, action, rwbs) = (word(), word(), word());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (major, minor) = disk.split_once(',')?;
    let is_event = is_number(major) && is_number(minor);
    let is_whole = [processor, number, process].into_iter().all(is_number) && !action.is_empty();
    (is_event && is_whole).then_some(Event { disk, time, action, rwbs, rest })
}

/// Parses offset and length, and whether the request failed: `282624 + 8 [0]`, `[0]`, `0 [0]`.
pub(super) fn place(rest: &str) -> Option<(u64, u64, bool)> {
    let (numbers, behind) = rest.split_once('[').unwrap_or((rest, ""));
    let has_failed = behind.starts_with('-');
    let mut words = numbers.split_ascii_whitespace();
    let Some(sector) = words.next() else { return Some((0, 0, has_failed)) };
    let sector = sector.parse().ok()?;
    let length = match words.next() {
        Some("+") => words.next()?.parse().ok()?,
        None => 0,
        Some(_) => return None,
    };
    Some((sector, length, has_failed))
}

/// Returns the direction of a request with this number of sectors; `None` if it is no I/O.
pub(super) fn direction(rwbs: &str, sectors: u64) -> Option<Direction> {
    let flushes = rwbs.starts_with('F');
    match rwbs.trim_start_matches('F').chars().next() {
        Some('R') => Some(Direction::Read),
        Some('W') if sectors > 0 => Some(Direction::Write),
        Some('W') => Some(Direction::Flush),
        Some('D' | 'E') => Some(Direction::Discard),
        _ if flushes => Some(Direction::Flush),
        _ => None,
    }
}

struct Blkparse {
    lines: Lines<Bytes>,
    pairing: Pairing,
}

impl ReadRequests for Blkparse {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let Some(line) = self.lines.next_line()? else {
            self.pairing.tell(sheet);
            return Ok(false);
        };
        if line.trim().is_empty() {
            return Ok(true);
        }
        let done = match event(&line) {
            Some(event) => self.event(&event, sink),
            None if line.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                Err(format!("an event was expected, but found {line:?}"))
            }
            None => {
                sheet.unused("lines that are not events");
                Ok(())
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(_) if self.lines.was_open() => {
                sheet.note("its last line was truncated and is left out");
                Ok(true)
            }
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

impl Blkparse {
    fn event(&mut self, event: &Event<'_>, sink: &mut dyn Sink) -> Result<(), String> {
        let action = match event.action {
            "Q" => Action::Queued,
            "D" => Action::Sent,
            "C" => Action::Completed,
            "M" | "F" => Action::Merged,
            "R" => Action::Requeued,
            _ => return Ok(()),
        };
        let at = scaled(event.time, SECOND).and_then(|nanos| i64::try_from(nanos).ok());
        let at = at.ok_or_else(|| format!("the time is {:?}, which is not a time", event.time))?;
        let place = place(event.rest);
        let (sector, sectors, has_failed) = place.ok_or_else(|| {
            let there = event.rest.trim();
            format!("a sector and a number of sectors were expected, but found {there:?}")
        })?;
        let Some(direction) = direction(event.rwbs, sectors) else { return Ok(()) };
        let offset = sector.checked_mul(SECTOR).filter(|_| sectors > 0);
        let length = sectors.checked_mul(SECTOR);
        let length = length.ok_or_else(|| format!("{sectors} sectors are too many"))?;
        let own = pairing::Event {
            disk: event.disk,
            action,
            at,
            direction,
            sector,
            offset,
            length,
            has_failed,
        };
        self.pairing.event(own, sink)
    }
}
