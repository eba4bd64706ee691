//! Events of the block layer of Linux, paired to requests: queued, sent to a device, completed.
//!
//! The latency is that of the device, from D to C. Devices without a queue of their own (LVM,
//! RAID) have no D; their latency is from Q to C.

use super::request::{Begun, Device, Direction, Request, Sink};
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

/// A request in flight.
struct InFlight {
    at: i64,
    /// Present if its beginning was passed on.
    told: Option<Begun>,
}

/// The pairing of events to requests.
#[derive(Default)]
pub(super) struct Pairing {
    disks: HashMap<String, Disk>,
    /// Requests in flight, by device and sector.
    begun: HashMap<(Device, u64), InFlight>,
    /// Number of requests completed without a beginning.
    unseen: u64,
    failed: u64,
    forgotten: usize,
}

impl Pairing {
    /// Takes an event.
    pub(super) fn event(&mut self, event: Event<'_>, sink: &mut dyn Sink) -> Result<(), String> {
        let Event { disk, action, at, direction, sector, offset, length, has_failed } = event;
        let device = self.disk(disk, sink)?.device;
        let request = Request { at, device, direction, offset, length, latency: None };
        match action {
            Action::Queued => self.queued(disk, sector, request, sink),
            Action::Sent => self.sent(disk, sector, request, sink),
            Action::Completed => self.completed(disk, sector, request, sink),
            Action::Merged => self.disk(disk, sink)?.waiting -= 1,
            Action::Requeued => self.requeued(disk, sector, device, sink),
        }
        self.failed += u64::from(has_failed && action == Action::Completed);
        Ok(())
    }

    fn disk(&mut self, name: &str, sink: &mut dyn Sink) -> Result<&mut Disk, String> {
        if !self.disks.contains_key(name) {
            let device = sink.device(None, name).map_err(|error| error.to_string())?;
            let disk = Disk { device, is_sent_to: false, has_no_queue: false, waiting: 0 };
            self.disks.insert(name.to_owned(), disk);
        }
        self.disks.get_mut(name).ok_or_else(|| format!("there is no {name}"))
    }

    fn queued(&mut self, disk: &str, sector: u64, request: Request, sink: &mut dyn Sink) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        disk.waiting += 1;
        if !disk.has_no_queue {
            sink.pass(request.at);
        }
        if !disk.is_sent_to {
            let is_told = disk.has_no_queue;
            self.begin(sector, request, is_told, sink);
        }
    }

    fn sent(&mut self, disk: &str, sector: u64, request: Request, sink: &mut dyn Sink) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        disk.waiting -= 1;
        if !disk.is_sent_to {
            // Requests queued so far count from when they are sent.
            disk.is_sent_to = true;
            let own = self.begun.extract_if(|key, _| key.0 == request.device);
            own.filter_map(|(_, begun)| begun.told)
                .for_each(|told| sink.leave(told, request.device));
        }
        self.begin(sector, request, true, sink);
    }

    fn begin(&mut self, sector: u64, request: Request, is_told: bool, sink: &mut dyn Sink) {
        let Request { at, device, .. } = request;
        if self.begun.len() >= MOST_UNDER_WAY {
            self.forgotten += self.begun.len();
            for ((device, _), begun) in self.begun.drain() {
                begun.told.into_iter().for_each(|told| sink.lose(told, device));
            }
        }
        let before = self.begun.remove(&(device, sector));
        if let Some(told) = before.and_then(|before| before.told) {
            sink.lose(told, device);
        }
        let told = if is_told { sink.begin(&request) } else { None };
        if told.is_some() || !is_told {
            self.begun.insert((device, sector), InFlight { at, told });
        }
    }

    fn completed(&mut self, disk: &str, sector: u64, request: Request, sink: &mut dyn Sink) {
        let Request { at, device, .. } = request;
        if let Some(disk) = self.disks.get_mut(disk) {
            disk.has_no_queue |= !disk.is_sent_to;
            disk.waiting -= i64::from(!disk.is_sent_to);
        }
        let begun = self.begun.remove(&(device, sector));
        let latency =
            begun.as_ref().map(|begun| u64::try_from(at.saturating_sub(begun.at)).unwrap_or(0));
        self.unseen += u64::from(begun.is_none());
        let request = Request { latency, ..request };
        match begun.and_then(|begun| begun.told) {
            Some(told) => sink.end(told, &request),
            None => sink.done(&request),
        }
    }

    fn requeued(&mut self, disk: &str, sector: u64, device: Device, sink: &mut dyn Sink) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        if !disk.is_sent_to {
            return;
        }
        if let Some(begun) = self.begun.remove(&(device, sector)) {
            disk.waiting += 1;
            begun.told.into_iter().for_each(|told| sink.leave(told, device));
        }
    }

    /// Notes the requests that never completed.
    pub(super) fn tell(&self, sheet: &mut Sheet) {
        let sent = self.begun.values().filter(|begun| begun.told.is_some()).count();
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
