//! Block events of the Linux kernel, as its trace file, `trace_pipe` and trace-cmd print them.
//!
//! ```text
//! java-4020  [000] d..1.  52.000005: block_rq_issue: 259,2 RS 4096 () 282624 + 8 none,0,0 [java]
//! <idle>-0   [001] d.h2.  52.000105: block_rq_complete: 259,2 RS () 282624 + 8 none,0,0 [0]
//! task       cpu   flags  seconds    event             device kind bytes (command) sector sectors
//! ```
//!
//! The priority (`none,0,0`) is missing on older kernels. Only issue and completion are used, so
//! the latency is that of the device.

use super::blkparse::{direction, place};
use super::opened::Trace;
use super::pairing::{Action, Event, Pairing};
use super::request::{ReadRequests, Sink};
use super::rows::{SECOND, SECTOR};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "ftrace-block",
    about: "block events of the Linux kernel (block_rq_issue, block_rq_complete)",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Text(&["block_rq_issue:"]), Sign::Text(&["block_rq_complete:"])]],
};

const EVENTS: [(&str, Action); 2] =
    [(": block_rq_issue: ", Action::Sent), (": block_rq_complete: ", Action::Completed)];

/// Lines at the beginning in which an event is looked for.
const GLANCE: usize = 60;

fn recognizes(text: &str) -> bool {
    text.lines().take(GLANCE).any(|line| parse(line).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(super) fn open_trace(input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    Ok(Trace::new(Ftrace { lines: Lines::new(input), pairing: Pairing::default(), lost: 0 }))
}

/// Parses the event of a line; `None` if it has none.
fn parse(line: &str) -> Option<Event<'_>> {
    let find = |(word, action): (&str, Action)| Some((line.split_once(word)?, action));
    let ((before, event), action) = EVENTS.into_iter().find_map(find)?;
    let time = before.rsplit(' ').next()?;
    let at = i64::try_from(scaled(time, SECOND)?).ok()?;
    let (disk, rest) = event.trim_start().split_once(' ')?;
    let (major, minor) = disk.split_once(',')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    let rwbs = rest.split(' ').next()?;
    let (_, behind) = rest.split_once(')')?;
    let (numbers, status) = behind.split_once('[').unwrap_or((behind, ""));
    // Without the priority behind the numbers.
    let numbers: Vec<&str> = numbers.split_ascii_whitespace().take(3).collect();
    let (sector, sectors, _) = place(&numbers.join(" "))?;
    let direction = direction(rwbs, sectors)?;
    let offset = sector.checked_mul(SECTOR).filter(|_| sectors > 0);
    let length = sectors.checked_mul(SECTOR)?;
    let has_failed = action == Action::Completed && status.starts_with('-');
    Some(Event { disk, action, at, direction, sector, offset, length, has_failed })
}

/// Parses the number of events that the kernel dropped: `CPU:0 [LOST 123 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let (_, number) = line.split_once("[LOST ")?;
    number.strip_suffix(" EVENTS]")?.parse().ok()
}

struct Ftrace {
    lines: Lines<Bytes>,
    pairing: Pairing,
    /// Events that the kernel dropped.
    lost: u64,
}

impl ReadRequests for Ftrace {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let Some(line) = self.lines.next_line()? else {
            self.pairing.tell(sheet);
            if self.lost > 0 {
                sheet
                    .note(format!("the kernel dropped {} events: requests are missing", self.lost));
            }
            return Ok(false);
        };
        match parse(&line) {
            Some(event) => {
                let number = self.lines.number();
                let taken = self.pairing.event(event, sink);
                taken.map_err(|reason| ImportError::at(number, reason))?;
            }
            None if line.trim().is_empty() || line.starts_with('#') => {}
            None => match lost(&line) {
                Some(lost) => self.lost += lost,
                None => sheet.unused("lines that are no block events"),
            },
        }
        Ok(true)
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_old_and_new_kernels() {
        let check = |line: &str, expect: Option<(Action, i64, u64, u64)>| {
            let found = parse(line).map(|own| (own.action, own.at, own.sector, own.length));
            assert_eq!(found, expect, "{line}");
        };
        let issue =
            "  kworker/0:1H-9 [000] d..1. 52.000005: block_rq_issue: 8,0 WS 4096 () 100 + 8 ";
        let expect = Some((Action::Sent, 52_000_005_000, 100, 4096));
        check(&format!("{issue}[java]"), expect);
        check(&format!("{issue}none,0,0 [my task]"), expect);
        check(
            "<idle>-0 [001] d.h2. 52.1: block_rq_complete: 8,0 R () 7 + 16 none,0,0 [0]",
            Some((Action::Completed, 52_100_000_000, 7, 8192)),
        );
        check(
            "x-1 [0] ..... 1.5: block_rq_issue: 8,0 FF 0 () 0 + 0 [x]",
            Some((Action::Sent, 1_500_000_000, 0, 0)),
        );
        check("x-1 [0] ..... 1.5: block_rq_insert: 8,0 R 0 () 0 + 0 [x]", None);
        check("x-1 [0] ..... 1.5: block_rq_issue: 8,0 N 0 (12 00) 0 + 0 [x]", None);
        assert_eq!(lost("CPU:3 [LOST 17 EVENTS]"), Some(17));
        let failed = "x-0 [0] . 1.0: block_rq_complete: 8,0 R () 7 + 8 [-5]";
        assert!(parse(failed).is_some_and(|own| own.has_failed));
    }
}
