//! Making a device durable.
//!
//! ```text
//!   next --a turn ends--> storing: lanes come up to what was dirty --> syncing: each volume
//!                            |  a write-back failed: errors              | all of them
//!                            +-------------------------------------------+--> answers
//! ```
//!
//! A sync begins when a turn of the thread ends, for all requests that came by then. A device has as many
//! syncs under way as its stores take. Requests that come when it has all of them share the next sync: what
//! they cover may not have been in the store when the others began.

use super::progress::{Storing, Syncing};
use super::{Device, HostLoop, Replies};
use crate::worker::{Job, Task};
use std::sync::Arc;
use weir_store::StoreError;
use weir_units::Instant;

impl HostLoop {
    /// Makes a device durable on behalf of a request.
    pub(super) fn sync(
        &mut self,
        now: Instant,
        device: usize,
        key: usize,
        replies: &mut impl Replies,
    ) {
        let map = &self.devices[device].map;
        if map.volumes.iter().all(|v| self.volumes[*v].is_inline()) {
            let result = map.volumes.iter().try_for_each(|v| self.volumes[*v].sync());
            self.answer(now, key, result.as_ref().err(), replies);
            return;
        }
        self.pending[key].on_worker = true;
        self.pending[key].awaits_store = true;
        self.devices[device].durability.next.push(key);
        self.list_flushing(device);
    }

    /// Puts a device on the list of those whose next sync may begin.
    fn list_flushing(&mut self, device: usize) {
        let durability = &mut self.devices[device].durability;
        if !durability.listed && !durability.next.is_empty() {
            durability.listed = true;
            self.flushing.push(device);
        }
    }

    /// Begins the next syncs of devices.
    pub(super) fn begin_syncs(&mut self, now: Instant, replies: &mut impl Replies) {
        while let Some(device) = self.flushing.pop() {
            self.devices[device].durability.listed = false;
            self.start_storing(now, device, replies);
        }
    }

    /// Begins the next sync of a device if requests wait for it and its stores take it.
    fn start_storing(&mut self, now: Instant, device: usize, replies: &mut impl Replies) {
        let Device { durability, syncs, map, .. } = &mut self.devices[device];
        let is_full = durability.storing.is_some() || durability.syncing.len() >= *syncs;
        if is_full || durability.next.is_empty() {
            return;
        }
        let keys = std::mem::take(&mut durability.next);
        let mut until = Vec::new();
        for column in 0..map.volumes.len() {
            let volume = self.devices[device].map.volumes[column];
            self.volumes[volume].settle();
            until.extend(self.volumes[volume].barrier().map(|barrier| (volume, barrier)));
            self.look_at(volume);
        }
        if until.is_empty() {
            self.start_syncing(now, device, keys, replies);
        } else {
            self.devices[device].durability.storing = Some(Storing { keys, until });
            self.storing.push(device);
        }
    }

    /// Starts syncs whose lanes have come far enough.
    pub(super) fn go_on_storing(&mut self, now: Instant, replies: &mut impl Replies) {
        for device in std::mem::take(&mut self.storing) {
            let has_passed =
                |(volume, barrier): &(usize, u64)| self.volumes[*volume].has_passed(*barrier);
            let durability = &mut self.devices[device].durability;
            let is_there = |storing: &mut Storing| storing.until.iter().all(has_passed);
            if let Some(Storing { keys, .. }) = durability.storing.take_if(is_there) {
                self.start_syncing(now, device, keys, replies);
                self.list_flushing(device);
            } else if durability.storing.is_some() {
                self.storing.push(device);
            }
        }
    }

    fn start_syncing(
        &mut self,
        now: Instant,
        device: usize,
        keys: Vec<usize>,
        replies: &mut impl Replies,
    ) {
        let Device { map, durability, .. } = &mut self.devices[device];
        let owed = map.volumes.iter().find_map(|volume| self.volumes[*volume].owes());
        if let Some((_, reason)) = owed {
            let reason = Arc::clone(reason);
            self.made_durable(now, device, keys, Some(&reason), replies);
            return;
        }
        durability.begun += 1;
        let number = durability.begun;
        let sync = |volume: &usize| Task::Sync { number, store: Arc::clone(&self.stores[*volume]) };
        self.jobs.extend(map.volumes.iter().map(|volume| Job { device, task: sync(volume) }));
        durability.syncing.push(Syncing { number, keys, left: map.volumes.len(), failed: None });
    }

    /// Records the result of a sync of one of the device's volumes.
    pub(super) fn synced(
        &mut self,
        now: Instant,
        device: usize,
        number: u64,
        result: Result<(), StoreError>,
        replies: &mut impl Replies,
    ) {
        let syncing = &mut self.devices[device].durability.syncing;
        let Some(at) = syncing.iter().position(|sync| sync.number == number) else {
            unreachable!("no sync {number} of device {device} is under way");
        };
        let sync = &mut syncing[at];
        sync.left -= 1;
        sync.failed = sync.failed.take().or(result.err());
        if sync.left == 0 {
            let Syncing { keys, failed, .. } = syncing.remove(at);
            self.made_durable(now, device, keys, failed.as_ref(), replies);
        }
    }

    /// Answers the waiting requests. The next sync may begin.
    fn made_durable(
        &mut self,
        now: Instant,
        device: usize,
        keys: Vec<usize>,
        failed: Option<&StoreError>,
        replies: &mut impl Replies,
    ) {
        for key in keys {
            self.answer(now, key, failed, replies);
        }
        self.list_flushing(device);
    }
}
