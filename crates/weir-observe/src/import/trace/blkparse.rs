//! What blkparse prints of the events of the block layer.
//!
//! ```text
//! 259,2    0        5     0.000005462  4020  D  RS 282624 + 8 [java]
//! device  cpu   number      seconds     pid  |  |  sector  sectors
//!                                            |  what the request does: R, W, D; F before or
//!                                            |  behind for a flush; S, A, M, .. of no matter
//!                                            Q queued, D sent to the device, C completed, ..
//! ```
//!
//! The latency is that of the device, from D to C. Devices that have no queue of their own (LVM,
//! RAID) have no D: there it is from Q to C.

use super::rows::{SECOND, SECTOR, first_line};
use super::summing::{Device, Direction, ReadRequests, Request, Samples, Summing, scaled};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::sheet::{ReadSamples, Sheet};
use crate::import::text::Lines;
use std::collections::HashMap;

/// More are not under way at once: beyond, those that never complete are forgotten.
const MOST_UNDER_WAY: usize = 1 << 20;

pub(in crate::import) fn recognizes(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.and_then(event).is_some_and(|event| scaled(event.time, SECOND).is_some())
}

pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    let mut lines = Lines::new(input);
    let first = first_line(&mut lines)?;
    if event(&first).is_none() {
        let reason = format!("an event as blkparse prints it was expected, there is {first:?}");
        return Err(ImportError::at(lines.number(), reason));
    }
    lines.put_back(first);
    let trace = Blkparse {
        lines,
        disks: HashMap::new(),
        begun: HashMap::new(),
        unseen: 0,
        failed: 0,
        forgotten: 0,
    };
    Ok(Box::new(Samples::new(trace, Summing::new(options))))
}

/// An event, as far as every line has it.
struct Event<'a> {
    disk: &'a str,
    time: &'a str,
    action: &'a str,
    rwbs: &'a str,
    rest: &'a str,
}

/// The event of a line; nothing if it begins otherwise.
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

/// Where and how much, and whether it failed: `282624 + 8 [0]`, `[0]`, `0 [0]`.
fn place(rest: &str) -> Option<(u64, u64, bool)> {
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

/// What a request does that is so many sectors long; nothing if it is no I/O.
fn direction(rwbs: &str, sectors: u64) -> Option<Direction> {
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

/// What is known of a device.
struct Disk {
    device: Device,
    /// It has had a D.
    is_sent_to: bool,
    /// It has had a C before any D.
    has_no_queue: bool,
    /// Requests that came and were not joined to others, less those sent.
    waiting: i64,
}

/// A request that has begun.
struct Begun {
    at: i64,
    /// Its beginning has been told.
    is_told: bool,
}

struct Blkparse {
    lines: Lines<Bytes>,
    disks: HashMap<String, Disk>,
    /// By device and sector.
    begun: HashMap<(Device, u64), Begun>,
    /// Completed without a beginning.
    unseen: u64,
    failed: u64,
    forgotten: usize,
}

impl ReadRequests for Blkparse {
    fn next(&mut self, summing: &mut Summing, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let Some(line) = self.lines.next_line()? else {
            self.tell(sheet);
            return Ok(false);
        };
        if line.trim().is_empty() {
            return Ok(true);
        }
        let done = match event(&line) {
            Some(event) => self.event(&event, summing),
            None if line.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                Err(format!("an event was expected, there is {line:?}"))
            }
            None => {
                sheet.unused("lines that are no events");
                Ok(())
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(_) if self.lines.was_open() => {
                sheet.note("its last line was cut: left out");
                Ok(true)
            }
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

impl Blkparse {
    fn event(&mut self, event: &Event<'_>, summing: &mut Summing) -> Result<(), String> {
        if !matches!(event.action, "Q" | "D" | "C" | "M" | "F" | "R") {
            return Ok(());
        }
        let at = scaled(event.time, SECOND).and_then(|nanos| i64::try_from(nanos).ok());
        let at = at.ok_or_else(|| format!("the time is {:?}, which is none", event.time))?;
        let place = place(event.rest);
        let (sector, sectors, has_failed) = place.ok_or_else(|| {
            let there = event.rest.trim();
            format!("a sector and a number of sectors were expected, there is {there:?}")
        })?;
        let Some(direction) = direction(event.rwbs, sectors) else { return Ok(()) };
        let offset = sector.checked_mul(SECTOR).filter(|_| sectors > 0);
        let length = sectors.checked_mul(SECTOR);
        let length = length.ok_or_else(|| format!("{sectors} sectors are too many"))?;
        let device = self.disk(event.disk, summing)?.device;
        let request = Request { at, device, direction, offset, length, latency: None };
        match event.action {
            "Q" => self.queued(event.disk, sector, request, summing),
            "D" => self.sent(event.disk, sector, request, summing),
            "C" => self.completed(event.disk, sector, request, summing),
            // Joined to another one.
            "M" | "F" => self.disk(event.disk, summing)?.waiting -= 1,
            // Back from the device to the queue.
            _ => self.requeued(event.disk, sector, device, summing),
        }
        self.failed += u64::from(has_failed && event.action == "C");
        Ok(())
    }

    fn disk(&mut self, name: &str, summing: &mut Summing) -> Result<&mut Disk, String> {
        if !self.disks.contains_key(name) {
            let device = summing.device(None, name).map_err(|error| error.to_string())?;
            let disk = Disk { device, is_sent_to: false, has_no_queue: false, waiting: 0 };
            self.disks.insert(name.to_owned(), disk);
        }
        self.disks.get_mut(name).ok_or_else(|| format!("there is no {name}"))
    }

    fn queued(&mut self, disk: &str, sector: u64, request: Request, summing: &mut Summing) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        disk.waiting += 1;
        if !disk.has_no_queue {
            summing.pass(request.at);
        }
        if !disk.is_sent_to {
            let is_told = disk.has_no_queue;
            self.begin(sector, request, is_told, summing);
        }
    }

    fn sent(&mut self, disk: &str, sector: u64, request: Request, summing: &mut Summing) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        disk.waiting -= 1;
        if !disk.is_sent_to {
            // What was queued so far counts from when it is sent.
            disk.is_sent_to = true;
            let told =
                self.begun.iter().filter(|(key, begun)| key.0 == request.device && begun.is_told);
            (0..told.count()).for_each(|_| summing.leave(request.device));
            self.begun.retain(|key, _| key.0 != request.device);
        }
        self.begin(sector, request, true, summing);
    }

    fn begin(&mut self, sector: u64, request: Request, is_told: bool, summing: &mut Summing) {
        let Request { at, device, direction, offset, length, .. } = request;
        if self.begun.len() >= MOST_UNDER_WAY {
            self.forgotten += self.begun.len();
            for (key, _) in self.begun.drain().filter(|(_, begun)| begun.is_told) {
                summing.leave(key.0);
            }
        }
        let before = self.begun.insert((device, sector), Begun { at, is_told });
        if before.is_some_and(|before| before.is_told) {
            summing.leave(device);
        }
        if is_told && !summing.begin(at, device, direction, offset, length) {
            self.begun.remove(&(device, sector));
        }
    }

    fn completed(&mut self, disk: &str, sector: u64, request: Request, summing: &mut Summing) {
        let Request { at, device, direction, length, .. } = request;
        if let Some(disk) = self.disks.get_mut(disk) {
            disk.has_no_queue |= !disk.is_sent_to;
            disk.waiting -= i64::from(!disk.is_sent_to);
        }
        let begun = self.begun.remove(&(device, sector));
        let latency =
            begun.as_ref().map(|begun| u64::try_from(at.saturating_sub(begun.at)).unwrap_or(0));
        match begun {
            Some(begun) if begun.is_told => summing.end(at, device, direction, length, latency),
            Some(_) => summing.done(Request { latency, ..request }),
            None => {
                self.unseen += 1;
                summing.done(request);
            }
        }
    }

    fn requeued(&mut self, disk: &str, sector: u64, device: Device, summing: &mut Summing) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        if disk.is_sent_to && self.begun.remove(&(device, sector)).is_some() {
            disk.waiting += 1;
            summing.leave(device);
        }
    }

    fn tell(&self, sheet: &mut Sheet) {
        let sent = self.begun.values().filter(|begun| begun.is_told).count();
        let waiting: i64 = self.disks.values().map(|disk| disk.waiting.max(0)).sum();
        if sent > 0 || waiting > 0 {
            sheet.note(format!(
                "it ends while requests are under way: {sent} at devices, {waiting} in queues"
            ));
        }
        if self.unseen > 0 {
            sheet.note(format!(
                "of {} requests only the completion is there: their latency is missing",
                self.unseen
            ));
        }
        if self.failed > 0 {
            sheet.note(format!("{} requests completed with an error: counted", self.failed));
        }
        if self.forgotten > 0 {
            sheet.note(format!("of {} requests no completion was found", self.forgotten));
        }
    }
}
