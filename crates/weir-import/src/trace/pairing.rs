//! Events of the block layer of Linux, paired to requests: queued, sent to a device, completed.
//!
//! The latency is that of the device, from D to C. Devices without a queue of their own (LVM,
//! RAID) have no D; their latency is from Q to C.

use super::summing::{Device, Direction, Request, Summing};
use crate::sheet::Sheet;
use std::collections::HashMap;

/// The most in-flight requests; beyond, requests that never complete are dropped.
const MOST_UNDER_WAY: usize = 1 << 20;

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Queued,
    /// Sent to the device.
    Sent,
    Completed,
    /// Merged into another request.
    Merged,
    /// Returned from the device to the queue.
    Requeued,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) disk: &'a str,
    pub(super) action: Action,
    /// Time in nanoseconds.
    pub(super) at: i64,
    pub(super) direction: Direction,
    pub(super) sector: u64,
    /// Offset of the first byte, if any are transferred.
    pub(super) offset: Option<u64>,
    /// Length in bytes.
    pub(super) length: u64,
    pub(super) has_failed: bool,
}

/// The state of a device.
struct Disk {
    device: Device,
    /// True if it has had a D.
    is_sent_to: bool,
    /// True if it has had a C before any D.
    has_no_queue: bool,
    /// Queued requests that were neither merged nor sent.
    waiting: i64,
}

/// A request that has begun.
struct Begun {
    at: i64,
    /// True if its beginning was passed on.
    is_told: bool,
}

/// The pairing of events to requests.
#[derive(Default)]
pub(super) struct Pairing {
    disks: HashMap<String, Disk>,
    /// Requests in flight, by device and sector.
    begun: HashMap<(Device, u64), Begun>,
    /// Number of requests completed without a beginning.
    unseen: u64,
    failed: u64,
    forgotten: usize,
}

impl Pairing {
    /// Takes an event.
    pub(super) fn event(&mut self, event: Event<'_>, summing: &mut Summing) -> Result<(), String> {
        let Event { disk, action, at, direction, sector, offset, length, has_failed } = event;
        let device = self.disk(disk, summing)?.device;
        let request = Request { at, device, direction, offset, length, latency: None };
        match action {
            Action::Queued => self.queued(disk, sector, request, summing),
            Action::Sent => self.sent(disk, sector, request, summing),
            Action::Completed => self.completed(disk, sector, request, summing),
            Action::Merged => self.disk(disk, summing)?.waiting -= 1,
            Action::Requeued => self.requeued(disk, sector, device, summing),
        }
        self.failed += u64::from(has_failed && action == Action::Completed);
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
            // Requests queued so far count from when they are sent.
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

    /// Notes the requests that never completed.
    pub(super) fn tell(&self, sheet: &mut Sheet) {
        let sent = self.begun.values().filter(|begun| begun.is_told).count();
        let waiting: i64 = self.disks.values().map(|disk| disk.waiting.max(0)).sum();
        if sent > 0 || waiting > 0 {
            sheet.note(format!(
                "requests are in flight at its end: {sent} at devices, {waiting} in queues"
            ));
        }
        if self.unseen > 0 {
            sheet.note(format!(
                "{} requests have only a completion: their latency is unknown",
                self.unseen
            ));
        }
        if self.failed > 0 {
            sheet.note(format!("{} requests completed with an error: counted", self.failed));
        }
        if self.forgotten > 0 {
            sheet.note(format!("{} requests have no completion", self.forgotten));
        }
    }
}
