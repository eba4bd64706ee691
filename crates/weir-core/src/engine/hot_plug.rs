//! Volumes that are added and removed while the host runs.

use super::Engine;
use super::route::{SHARED_GATES, disk_gate};
use super::types::{DeviceId, Refused, VolumeId};
use super::volume::Volume;
use crate::cache::BLOCK;
use crate::gate::Gate;
use crate::spec::{CacheMode, DeviceSpec, MAX_VOLUMES, SpecError, VolumeSpec};
use crate::writeback::Dirty;
use alloc::vec::Vec;
use weir_units::{Bytes, Instant};

impl Engine {
    /// Adds a volume at `now`, and a device that is the volume. The volume may have the number
    /// of one that was removed; the device is new, so an old [`DeviceId`] never reaches the
    /// bytes of another volume.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if it asks for a cache that the host does not have, or there are too
    /// many.
    pub fn add_volume(
        &mut self,
        now: Instant,
        spec: VolumeSpec,
    ) -> Result<(VolumeId, DeviceId), SpecError> {
        self.assert_not_fixed();
        self.advance(now);
        let volume = self.vacant.last().copied().unwrap_or(self.volumes.len());
        if volume >= MAX_VOLUMES {
            return Err(SpecError::TooMany);
        }
        if spec.cache != CacheMode::None && self.cache.is_none() {
            return Err(SpecError::NoCache { volume });
        }
        let mut gate = Gate::for_disk(&spec.limits.gate);
        gate.fill(spec.credits, self.now);
        if self.vacant.pop().is_some() {
            self.gates[disk_gate(volume)] = gate;
            self.volumes[volume] = Volume::new(spec);
        } else {
            self.gates.push(gate);
            self.volumes.push(Volume::new(spec));
            let count = self.volumes.len();
            for gate in &mut self.gates[..SHARED_GATES] {
                gate.share_with(count);
            }
            if let Some((_, blobs)) = &mut self.cache {
                blobs.set_volumes(count);
            }
        }
        self.devices.push(DeviceSpec::Volume(volume));
        self.measure();
        Ok((VolumeId(volume), DeviceId(self.devices.len() - 1)))
    }

    /// Removes a volume at `now`, with what a ReadWrite cache has not written back of it.
    /// Its device has no bytes from then on.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume, [`Refused::Busy`] if it has requests
    /// or write-backs in flight or is a column of a stripe.
    pub fn remove_volume(&mut self, now: Instant, volume: VolumeId) -> Result<(), Refused> {
        self.assert_not_fixed();
        self.advance(now);
        if self.vacant.contains(&volume.0) || volume.0 >= self.volumes.len() {
            return Err(Refused::NoDevice);
        }
        let is_own =
            |device: &DeviceSpec| matches!(device, DeviceSpec::Volume(own) if *own == volume.0);
        let alone = self.devices.iter().position(is_own);
        let busy = self.parts.iter().any(|(_, part)| part.volume == volume.0);
        let Some(device) = alone.filter(|_| !busy) else { return Err(Refused::Busy) };
        if let Some((_, blobs)) = &mut self.cache {
            blobs.forget(volume.0);
        }
        let held = &mut self.volumes[volume.0];
        self.dirty_blocks -= held.dirty.discard(0, held.spec.size.get().next_multiple_of(BLOCK));
        held.dirty = Dirty::default();
        held.spec.size = Bytes::ZERO;
        held.spec.cache = CacheMode::None;
        // A stripe of nothing has no bytes.
        self.devices[device] = DeviceSpec::Stripe { unit: Bytes::new(BLOCK), columns: Vec::new() };
        self.vacant.push(volume.0);
        self.measure();
        self.settle(self.now);
        Ok(())
    }
}
