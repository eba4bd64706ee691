//! Volumes that come while the host is served, and go.

use super::{Device, HostLoop, Owing};
use crate::error::ServerError;
use crate::volume::{DeviceMap, VolumeBytes, VolumeData};
use std::sync::Arc;
use weir_core::{CacheMode, DeviceId, DiskLimits, Refused, VolumeId, VolumeSpec};
use weir_store::{Extent, ExtentKind, MemoryStore};
use weir_units::{Bytes, Instant};

impl HostLoop {
    /// Takes a volume in at `now`, with a device of its own.
    ///
    /// # Errors
    ///
    /// [`ServerError::Layout`] if the host cannot have it.
    pub fn add_volume(
        &mut self,
        now: Instant,
        spec: VolumeSpec,
        data: VolumeData,
    ) -> Result<(VolumeId, DeviceId), ServerError> {
        let added = self.engine.add_volume(now, spec);
        let (volume, device) =
            added.map_err(|error| ServerError::Layout(weir_layout::error::Kind::Spec(error)))?;
        let map = DeviceMap::single(volume.0);
        put(&mut self.devices, device.0, Device::new(map, [&data]));
        put(&mut self.volumes, volume.0, VolumeBytes::new(data));
        put(&mut self.owners, volume.0, device.0);
        self.share_stores();
        Ok((volume, device))
    }

    /// Begins to let a volume go: what is under way of it is held by nothing of its own.
    pub fn hasten(&mut self, now: Instant, volume: VolumeId) {
        self.set_limits(now, volume, DiskLimits::default());
        if self.engine.volume(volume).is_some_and(|v| v.cache != CacheMode::None) {
            self.set_cache(now, volume, CacheMode::None);
        }
    }

    /// Removes a volume and its bytes if nothing of it is under way, and returns whether it has
    /// gone. Its device must not get further requests.
    pub fn remove_volume(&mut self, now: Instant, volume: VolumeId, device: DeviceId) -> bool {
        let is_asked = self.pending.iter().any(|(_, pending)| pending.device == device.0);
        let is_resized = self.resizing.iter().any(|(resizing, _)| *resizing == volume.0);
        if is_asked || is_resized || !self.volumes[volume.0].is_idle() {
            return false;
        }
        match self.engine.remove_volume(now, volume) {
            Ok(()) => {
                let store = Arc::new(MemoryStore::new(Bytes::ZERO));
                let nothing = VolumeData::new(store, false);
                let gone =
                    std::mem::replace(&mut self.volumes[volume.0], VolumeBytes::new(nothing));
                if gone.owing_told {
                    self.owing.push(Owing::Ends { volume });
                }
                self.share_stores();
                true
            }
            Err(Refused::Busy) => false,
            Err(error) => unreachable!("{volume:?} is one of this host's: {error}"),
        }
    }

    /// Returns whether neither a volume nor its cache holds data, and none of its requests is in flight. A volume whose
    /// extents cannot be read counts as one with data.
    pub fn is_empty(&self, volume: VolumeId, device: DeviceId) -> bool {
        let own = &self.volumes[volume.0];
        let is_asked = self.pending.iter().any(|(_, pending)| pending.device == device.0);
        if is_asked || !own.is_idle() || !own.is_clean() {
            return false;
        }
        let store = &own.data.store;
        let is_data = |extent: &Extent| extent.kind == ExtentKind::Data;
        let extents = store.extents(0, store.size().get(), 2);
        extents.is_ok_and(|all| all.len() <= 1 && !all.iter().any(is_data))
    }

    fn share_stores(&mut self) {
        self.stores = self.volumes.iter().map(|volume| Arc::clone(&volume.data.store)).collect();
    }
}

fn put<T>(all: &mut Vec<T>, at: usize, one: T) {
    match all.get_mut(at) {
        Some(place) => *place = one,
        None => all.push(one),
    }
}
