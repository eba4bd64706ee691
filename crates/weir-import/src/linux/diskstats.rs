//! `/proc/diskstats`, once or repeatedly, with an optional time or uptime before each.
//!
//! ```text
//!  major minor name  reads merged sectors ms  writes merged sectors ms  now busy-ms queued-ms
//!                    discards merged sectors ms  flushes ms
//! ```
//!
//! Kernels before 4.18 have no discards, those before 5.5 no flushes, and those before 2.6.25 only
//! reads, sectors, writes and sectors of partitions. A sector always has 512 bytes. A snapshot
//! ends at a repeated device or at the next time.

use super::disks::{Column, Disks, counter};
use super::line::time_line;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::io::Cursor;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "diskstats",
    about: "/proc/diskstats of Linux, once or repeatedly",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(' ', 14, 20)]],
};

const SECTOR: f64 = 512.0;

/// The columns after the name of a device.
const COLUMNS: [Option<Column>; 17] = [
    Some((&m::READS, 1.0)),
    Some((&m::READS_MERGED, 1.0)),
    Some((&m::READ_BYTES, SECTOR)),
    Some((&m::IO_STALL_READ_MS, 1.0)),
    Some((&m::WRITES, 1.0)),
    Some((&m::WRITES_MERGED, 1.0)),
    Some((&m::WRITE_BYTES, SECTOR)),
    Some((&m::IO_STALL_WRITE_MS, 1.0)),
    Some((&m::QUEUE_LENGTH, 1.0)),
    Some((&m::BUSY_MS, 1.0)),
    Some((&m::QUEUED_MS, 1.0)),
    Some((&m::DISCARDS, 1.0)),
    Some((&m::DISCARDS_MERGED, 1.0)),
    Some((&m::DISCARD_BYTES, SECTOR)),
    Some((&m::IO_STALL_DISCARD_MS, 1.0)),
    Some((&m::FLUSHES, 1.0)),
    Some((&m::IO_STALL_FLUSH_MS, 1.0)),
];
/// The fewest columns of a device.
const FEWEST: usize = 11;
/// Index of the number of in-flight requests.
const UNDER_WAY: usize = 8;

/// The columns of partitions on old kernels.
const OF_OLD: [Option<Column>; 4] = [
    Some((&m::READS, 1.0)),
    Some((&m::READ_BYTES, SECTOR)),
    Some((&m::WRITES, 1.0)),
    Some((&m::WRITE_BYTES, SECTOR)),
];

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let Some(line) = split(line) else { return false };
        let count = line.values().take_while(|word| counter(word).is_some()).count();
        count >= FEWEST && count == line.values().count()
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Diskstats {
        lines: Lines::new(input),
        options: options.clone(),
        disks: Disks::default(),
        most: 0,
        mark: None,
        time: Time::default(),
    }))
}

/// A reader of snapshots taken at known times.
#[derive(Default)]
pub(crate) struct Snapshots {
    disks: Disks,
}

impl Snapshots {
    /// Takes the snapshot of a time, in nanoseconds since 1970, into the sheet.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it has no device, or is malformed.
    pub(crate) fn take(
        &mut self,
        sheet: &mut Sheet,
        at: i64,
        text: String,
    ) -> Result<(), ImportError> {
        let lines: Bytes = Box::new(Cursor::new(text));
        let mut reader = Diskstats {
            lines: Lines::new(lines),
            options: Options::default(),
            disks: std::mem::take(&mut self.disks),
            most: 0,
            mark: Some(Mark::Wall(at)),
            time: Time::default(),
        };
        let read = reader.next_sample(sheet);
        self.disks = reader.disks;
        let reason = || "it contains no block device, as in some containers".to_owned();
        read?.map(drop).ok_or_else(|| ImportError::Empty { reason: reason() })
    }
}

/// A line of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'a> {
    /// Text that a collector put before it.
    stamp: &'a str,
    name: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn values(self) -> impl Iterator<Item = &'a str> {
        self.rest.split_ascii_whitespace()
    }
}

/// Finds the first word that is not a number after two that are: major, minor, name.
fn split(line: &str) -> Option<Line<'_>> {
    let whole = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let (mut from, mut numbers) = (0, (None, None));
    loop {
        let rest = line.get(from..)?;
        let start = from + rest.find(|c: char| !c.is_ascii_whitespace())?;
        let len = line.get(start..)?.find(|c: char| c.is_ascii_whitespace());
        let end = len.map_or(line.len(), |len| start + len);
        let word = line.get(start..end)?;
        if let ((Some(major), Some(_)), false) = (numbers, whole(word)) {
            let is_name = word.starts_with(|c: char| c.is_alphabetic());
            let (stamp, rest) = (line.get(..major)?.trim(), line.get(end..)?);
            return is_name.then_some(Line { stamp, name: word, rest });
        }
        numbers = if whole(word) { (numbers.1, Some(start)) } else { (None, None) };
        from = end;
    }
}

struct Diskstats {
    lines: Lines<Bytes>,
    options: Options,
    disks: Disks,
    /// Number of columns of the widest line so far.
    most: usize,
    /// Time stated for the next snapshot.
    mark: Option<Mark>,
    time: Time,
}

/// The time stated by a line.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mark {
    Wall(i64),
    /// Uptime in nanoseconds.
    Uptime(u64),
}

impl Mark {
    fn parse(line: &str, clock: Clock) -> Option<Self> {
        if let Some(at) = time_line(line, clock) {
            return Some(Self::Wall(at));
        }
        let mut words = line.split_ascii_whitespace();
        let (up, idle) = (words.next()?, words.next()?);
        let decimals = |word: &str| word.contains('.').then(|| word.parse::<f64>().ok())?;
        let (up, _, None) = (decimals(up)?, decimals(idle)?, words.next()) else { return None };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        (0.0..9e9).contains(&up).then(|| Self::Uptime((up * 1e9).round() as u64))
    }
}

impl ReadSamples for Diskstats {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        self.disks.begin();
        let (mut devices, mut at) = (0_u64, None);
        while let Some(line) = self.lines.next_line()? {
            let Some(found) = split(&line) else {
                if let Some(mark) = Mark::parse(&line, self.options.clock) {
                    if devices > 0 {
                        self.lines.put_back(line);
                        break;
                    }
                    // A time is more informative than an uptime.
                    if !matches!((self.mark, mark), (Some(Mark::Wall(_)), Mark::Uptime(_))) {
                        self.mark = Some(mark);
                    }
                } else if !line.trim().is_empty() {
                    sheet.skipped("lines that are not devices", self.lines.number(), &line);
                }
                continue;
            };
            if self.disks.has(found.name) {
                self.lines.put_back(line);
                break;
            }
            if devices == 0 {
                let stamp = self.options.clock.moment(found.stamp).map(Mark::Wall);
                at = stamp.or_else(|| self.mark.take());
            }
            self.mark = None;
            devices += u64::from(self.device(sheet, found)?);
        }
        if devices == 0 {
            if self.disks.snapshot() == 2 {
                sheet.note("it is one snapshot of counters: rates need two");
            }
            return Ok(None);
        }
        Ok(Some(self.time.take(sheet, at, self.options.step().nanos())))
    }
}

impl Diskstats {
    /// Writes the counters of a device; returns whether there are any.
    fn device(&mut self, sheet: &mut Sheet, line: Line<'_>) -> Result<bool, ImportError> {
        let mut values = [None; COLUMNS.len()];
        let mut count = 0;
        for word in line.values() {
            let Some(value) = counter(word) else {
                return self.wrong(sheet, &format!("{word:?} is not a whole number"));
            };
            if let Some(place) = values.get_mut(count) {
                *place = Some(value);
            }
            count += 1;
        }
        let was_cut = self.lines.was_open() && count < self.most;
        if was_cut || (count < FEWEST && count != OF_OLD.len()) {
            let reason = format!("a device has {} columns instead of 14, 18 or 20", count + 3);
            return self.wrong(sheet, &reason);
        }
        if count == OF_OLD.len() {
            self.disks.put(sheet, line.name, &OF_OLD, &values);
            return Ok(true);
        }
        self.most = self.most.max(count);
        if count > COLUMNS.len() {
            sheet.unused("columns after the 20th");
        }
        // Some kernels report negative counts.
        if let Some(value) = values.get_mut(UNDER_WAY) {
            *value = value.filter(|under_way| *under_way < f64::from(i32::MAX));
        }
        let columns = COLUMNS.get(..count.min(COLUMNS.len())).unwrap_or_default();
        self.disks.put(sheet, line.name, columns, &values);
        Ok(true)
    }

    /// Creates an error for a line, unless it was cut.
    fn wrong(&self, sheet: &mut Sheet, reason: &str) -> Result<bool, ImportError> {
        if self.lines.was_open() {
            sheet.note("its last line was truncated and is left out");
            return Ok(false);
        }
        Err(ImportError::at(self.lines.number(), reason))
    }
}

/// The times of snapshots.
#[derive(Debug, Default)]
struct Time {
    /// Time of the last snapshot.
    last: Option<At>,
    /// Difference of the uptime and the time since the beginning; it falls at a restart.
    ahead: i128,
    uptime: u64,
}

impl Time {
    fn take(&mut self, sheet: &mut Sheet, mark: Option<Mark>, step: u64) -> At {
        let at = match (mark, self.last) {
            (Some(Mark::Wall(at)), None | Some(At::Wall(_))) => At::Wall(at),
            (Some(Mark::Uptime(up)), None | Some(At::Since(_))) => self.since(sheet, up),
            (mark, None) => {
                debug_assert!(mark.is_none(), "all marks are taken above");
                sheet.note("it has no times: snapshots are assumed to be evenly spaced");
                At::Since(0)
            }
            (_, Some(At::Wall(last))) => At::Wall(last.saturating_add_unsigned(step)),
            (_, Some(At::Since(last))) => At::Since(last.saturating_add(step)),
        };
        self.last = Some(at);
        at
    }

    /// Returns the time since the beginning, from the uptime.
    fn since(&mut self, sheet: &mut Sheet, up: u64) -> At {
        match self.last {
            Some(At::Since(last)) if up < self.uptime => {
                sheet.note(
                    "the machine was restarted, and the length of the interruption is unknown",
                );
                self.ahead = -i128::from(last);
            }
            None => self.ahead = i128::from(up),
            _ => {}
        }
        self.uptime = up;
        At::Since(u64::try_from(i128::from(up) - self.ahead).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_devices() {
        let check = |line: &str, expect: Option<(&str, &str, &str)>| {
            let found = split(line).map(|line| (line.stamp, line.name, line.rest));
            assert_eq!(found, expect, "{line}");
        };
        check("   8       0 sda 1 2", Some(("", "sda", " 1 2")));
        check("1598650497 8 0 sda 1 2", Some(("1598650497", "sda", " 1 2")));
        check("2020-01-01 00:00:00\t 8 0 dm-0 1", Some(("2020-01-01 00:00:00", "dm-0", " 1")));
        check("104 0 cciss/c0d0 1", Some(("", "cciss/c0d0", " 1")));
        check("7223.72 29418.91", None);
        check("8 0 12 1.5", None);
        check("", None);
    }

    #[test]
    fn lines_with_times() {
        let clock = Clock::default();
        assert_eq!(Mark::parse("7223.72 29418.91", clock), Some(Mark::Uptime(7_223_720_000_000)));
        assert_eq!(Mark::parse("1598650497", clock), Some(Mark::Wall(1_598_650_497_000_000_000)));
        assert_eq!(Mark::parse("0.00 0.01 0.05 1/123 4567", clock), None);
    }
}
