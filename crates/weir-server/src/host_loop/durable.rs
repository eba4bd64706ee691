//! Making a device durable.
//!
//! ```text
//!   idle --flush--> storing: lanes come up to what was dirty --> syncing: each volume
//!     ^                |  something is owed: bad news              | all of them
//!     +----------------+-------------------------------------------+--> the next, if any
//! ```
//!
//! One at a time for each device. Requests that come meanwhile share the next: what
//! they cover may not have been in the store when this one began.

use super::progress::Stage;
use super::{HostLoop, Replies};
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
        let durability = &mut self.devices[device].durability;
        durability.next.push(key);
        if matches!(durability.stage, Stage::Idle) {
            self.start_storing(now, device, replies);
        }
    }

    /// Begins the next sync if requests wait for it.
    fn start_storing(&mut self, now: Instant, device: usize, replies: &mut impl Replies) {
        let durability = &mut self.devices[device].durability;
        durability.now = std::mem::take(&mut durability.next);
        if durability.now.is_empty() {
            return;
        }
        let mut until = Vec::new();
        for column in 0..self.devices[device].map.volumes.len() {
            let volume = self.devices[device].map.volumes[column];
            self.volumes[volume].settle();
            until.extend(self.volumes[volume].barrier().map(|barrier| (volume, barrier)));
            self.look_at(volume);
        }
        let there = until.is_empty();
        self.devices[device].durability.stage = Stage::Storing(until);
        if there {
            self.start_syncing(now, device, replies);
        } else {
            self.storing.push(device);
        }
    }

    /// Starts syncs whose lanes have come far enough.
    pub(super) fn go_on_storing(&mut self, now: Instant, replies: &mut impl Replies) {
        for device in std::mem::take(&mut self.storing) {
            let Stage::Storing(until) = &self.devices[device].durability.stage else { continue };
            if until.iter().all(|(volume, barrier)| self.volumes[*volume].has_passed(*barrier)) {
                self.start_syncing(now, device, replies);
            } else {
                self.storing.push(device);
            }
        }
    }

    fn start_syncing(&mut self, now: Instant, device: usize, replies: &mut impl Replies) {
        let volumes = &self.devices[device].map.volumes;
        let owed = volumes.iter().find_map(|volume| self.volumes[*volume].owes());
        if let Some((_, reason)) = owed {
            let reason = Arc::clone(reason);
            self.made_durable(now, device, Some(&reason), replies);
            return;
        }
        let left = volumes.len();
        let sync = |volume: &usize| Task::Sync { store: Arc::clone(&self.stores[*volume]) };
        self.jobs.extend(volumes.iter().map(|volume| Job { device, task: sync(volume) }));
        self.devices[device].durability.stage = Stage::Syncing { left, failed: None };
    }

    /// Records the result of the sync of one of the device's volumes.
    pub(super) fn synced(
        &mut self,
        now: Instant,
        device: usize,
        result: Result<(), StoreError>,
        replies: &mut impl Replies,
    ) {
        let Stage::Syncing { left, failed } = &mut self.devices[device].durability.stage else {
            unreachable!("no sync of device {device} is under way");
        };
        *left -= 1;
        *failed = failed.take().or(result.err());
        if *left == 0 {
            let failed = failed.take();
            self.made_durable(now, device, failed.as_ref(), replies);
        }
    }

    /// Answers the waiting requests, and begins the next sync.
    fn made_durable(
        &mut self,
        now: Instant,
        device: usize,
        failed: Option<&StoreError>,
        replies: &mut impl Replies,
    ) {
        let durability = &mut self.devices[device].durability;
        durability.stage = Stage::Idle;
        for key in std::mem::take(&mut durability.now) {
            self.answer(now, key, failed, replies);
        }
        self.start_storing(now, device, replies);
    }
}
