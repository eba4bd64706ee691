//! Commands that change a host while it runs: limits, sizes, cache modes, a crash.

use super::above::AboveTarget;
use super::route::{
    CACHED_BYTES, CACHED_IOPS, LOG, Route, UNCACHED_BYTES, UNCACHED_IOPS, WRITE_BYTES, WRITE_IOPS,
    disk_gate,
};
use super::types::{DeviceId, Event, Refused, VolumeId};
use super::{Engine, log_limits, sides};
use crate::cache::{BLOCK, Brought};
use crate::gate::Gate;
use crate::spec::{CacheMode, DiskLimits, GateLimits, Limit};
use crate::writeback::Dirty;
use alloc::vec::Vec;
use weir_units::{Bytes, Instant, Share};

impl Engine {
    /// Gives a volume new limits at `now`; requests that wait are held to them.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume.
    pub fn set_disk_limits(
        &mut self,
        now: Instant,
        volume: VolumeId,
        limits: DiskLimits,
    ) -> Result<(), Refused> {
        self.assert_not_fixed();
        self.advance(now);
        let held = self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?;
        held.spec.limits = limits;
        held.above = AboveTarget::of(&limits);
        self.set_gate_limits(disk_gate(volume.0), &limits.gate);
        Ok(())
    }

    /// Gives the host new limits at `now`, which hold for reads and writes together.
    pub fn set_host_limits(&mut self, now: Instant, uncached: &GateLimits, cached: &GateLimits) {
        self.assert_not_fixed();
        self.advance(now);
        self.has_separate_writes = false;
        let gates =
            [UNCACHED_IOPS, UNCACHED_BYTES, WRITE_IOPS, WRITE_BYTES, CACHED_IOPS, CACHED_BYTES];
        let limits = [uncached, &GateLimits::default(), cached].map(sides);
        // The last of a way first: what an earlier gate lets through then meets the new limits.
        for (gate, limits) in gates.into_iter().zip(limits.as_flattened()).rev() {
            self.set_gate_limits(gate, limits);
        }
    }

    /// Gives the host another log rate at `now`, or none.
    pub fn set_log_rate(&mut self, now: Instant, rate: Option<Limit>) {
        self.assert_not_fixed();
        self.advance(now);
        self.set_gate_limits(LOG, &log_limits(rate));
    }

    /// Fills the credit buckets of a volume to `share` at `now`; requests that wait are held to
    /// that. Nothing changes for a volume without credits.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume.
    pub fn set_credits(
        &mut self,
        now: Instant,
        volume: VolumeId,
        share: Share,
    ) -> Result<(), Refused> {
        self.assert_not_fixed();
        self.advance(now);
        if volume.0 >= self.volumes.len() {
            return Err(Refused::NoDevice);
        }
        self.set_gate_credits(disk_gate(volume.0), share);
        Ok(())
    }

    /// Fills the credit buckets of the host to `share` at `now`.
    pub fn set_host_credits(&mut self, now: Instant, share: Share) {
        self.assert_not_fixed();
        self.advance(now);
        for gate in [UNCACHED_IOPS, UNCACHED_BYTES, CACHED_IOPS, CACHED_BYTES].into_iter().rev() {
            self.set_gate_credits(gate, share);
        }
    }

    /// Gives a volume a new size at `now`. In-flight requests complete.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume.
    pub fn set_size(&mut self, now: Instant, volume: VolumeId, size: Bytes) -> Result<(), Refused> {
        self.assert_not_fixed();
        self.advance(now);
        self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?.spec.size = size;
        self.measure();
        Ok(())
    }

    /// Gives a volume a new cache mode at `now`. The volume starts cold; what a
    /// ReadWrite cache still owes is written back at once.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume or the host has no cache.
    pub fn set_cache_mode(
        &mut self,
        now: Instant,
        volume: VolumeId,
        mode: CacheMode,
    ) -> Result<(), Refused> {
        self.assert_not_fixed();
        self.advance(now);
        let held = self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?;
        match &mut self.cache {
            Some((_, blobs)) => blobs.forget(volume.0),
            None if mode == CacheMode::None => {}
            None => return Err(Refused::NoDevice),
        }
        held.spec.cache = mode;
        held.dirty.draining = true;
        self.write_back(volume.0, self.now);
        self.settle(self.now);
        Ok(())
    }

    /// Puts a range of a device into the cache, as one pass of reads over it would leave it:
    /// of more than fits the end, in equal shares of a stripe's columns. Volumes without a
    /// cache and bytes beyond the device's end are left out. Returns the number of bytes put
    /// in.
    pub fn warm(&mut self, device: DeviceId, offset: u64, len: u64) -> Bytes {
        let (Some(size), Some((_, blobs))) = (self.sizes.get(device.0), &mut self.cache) else {
            return Bytes::ZERO;
        };
        let len = len.min(size.saturating_sub(offset));
        let (device, volumes) = (&self.devices[device.0], &self.volumes);
        let ranges = || {
            let columns = device.columns().iter().copied().enumerate();
            columns.filter(|(_, volume)| volumes[*volume].spec.cache != CacheMode::None).filter_map(
                |(column, volume)| Some((volume, device.column_range(column, offset, len)?)),
            )
        };
        let pinned = |volume: usize, first| volumes[volume].dirty.mask(first);
        let blocks = blobs.capacity().checked_div(ranges().count() as u64);
        let share = blocks.unwrap_or(0) * BLOCK;
        let mut warmed = 0;
        for (volume, (start, len)) in ranges() {
            let end = start + len;
            let len = len.min(share);
            blobs.insert(volume, Brought::Read { offset: end - len, len }, pinned);
            warmed += len;
        }
        Bytes::new(warmed)
    }

    /// The host crashes at `now`: in-flight requests vanish without a completion, the cache is
    /// empty, and the dirty blocks of a ReadWrite cache are lost. Returns the lost ranges of
    /// each volume.
    ///
    /// Write-backs until `now` are on the disk, and [`poll_event`](Self::poll_event) still
    /// reports them. Completions that were not fetched are gone.
    pub fn crash(&mut self, now: Instant) -> Vec<(VolumeId, u64, u64)> {
        self.assert_not_fixed();
        self.advance(now);
        let mut lost = Vec::new();
        for (id, volume) in self.volumes.iter_mut().enumerate() {
            let ranges = volume.dirty.ranges();
            lost.extend(ranges.into_iter().map(|(offset, len)| (VolumeId(id), offset, len)));
            volume.dirty = Dirty::default();
            volume.in_flight = 0;
            if let Some((_, blobs)) = &mut self.cache {
                blobs.forget(id);
            }
        }
        self.gates.iter_mut().for_each(Gate::clear);
        self.timers.clear();
        self.parts.clear();
        self.parents.clear();
        self.events.retain(|event| matches!(event, Event::WrittenBack { .. }));
        self.waiting_for_room.clear();
        self.to_write_back.clear();
        self.dirty_blocks = 0;
        lost
    }

    fn set_gate_limits(&mut self, gate: usize, limits: &GateLimits) {
        let waiting = self.gates[gate].set_limits(limits, &mut self.parts, self.now);
        self.arrive_again(gate, waiting);
    }

    fn set_gate_credits(&mut self, gate: usize, share: Share) {
        let waiting = self.gates[gate].set_credits(share, &mut self.parts, self.now);
        self.arrive_again(gate, waiting);
    }

    /// Sends parts that waited at a gate there again.
    fn arrive_again(&mut self, gate: usize, waiting: Vec<usize>) {
        let bit = match gate {
            UNCACHED_IOPS => Route::UNCACHED_IOPS,
            UNCACHED_BYTES => Route::UNCACHED_BYTES,
            WRITE_IOPS => Route::WRITE_IOPS,
            WRITE_BYTES => Route::WRITE_BYTES,
            CACHED_IOPS => Route::CACHED_IOPS,
            CACHED_BYTES => Route::CACHED_BYTES,
            LOG => Route::LOG,
            _ => Route::DISK,
        };
        for key in waiting {
            self.parts[key].route.0 |= bit;
            self.proceed(key, self.now);
        }
        self.settle(self.now);
    }
}
