//! Devices as they are at one moment, between two requests.
//!
//! A write that was answered is in its store, or in the overlay of a cache, and nothing is
//! answered while this thread is here. So the view has all that any client knows to be done,
//! on every device; of what is not answered yet it may have some.
//!
//! The dirty blocks of a cache follow in steps, between which the host serves its clients.

use super::HostLoop;
use crate::volume::{Block, Column, View};
use std::sync::Arc;
use weir_core::DeviceId;
use weir_store::Scratch;
use weir_units::Bytes;

/// A device that is to be frozen.
#[derive(Debug)]
pub(crate) struct FreezeOrder {
    pub(crate) device: DeviceId,
    /// Room for old contents, for each volume of the device.
    pub(crate) scratch: Vec<Scratch>,
}

/// A device that is frozen, without the dirty blocks of its caches.
#[derive(Debug)]
pub(crate) struct FrozenDevice {
    pub(crate) device: DeviceId,
    pub(crate) columns: Vec<Column>,
    unit: u64,
    size: Bytes,
}

impl FrozenDevice {
    /// Makes the view, once all columns have their dirty blocks.
    pub(crate) fn into_view(self) -> View {
        View::new(self.columns, self.unit, self.size)
    }
}

impl HostLoop {
    /// Freezes devices.
    pub(crate) fn freeze(&mut self, orders: Vec<FreezeOrder>) -> Vec<FrozenDevice> {
        let freeze = |order: FreezeOrder| {
            let map = &self.devices[order.device.0].map;
            assert_eq!(map.volumes.len(), order.scratch.len(), "each volume has room");
            let volumes = map.volumes.iter().zip(order.scratch);
            let columns = volumes.map(|(volume, scratch)| self.volumes[*volume].freeze(scratch));
            let (columns, unit) = (columns.collect(), map.unit);
            FrozenDevice { device: order.device, columns, unit, size: self.size(order.device) }
        };
        orders.into_iter().map(freeze).collect()
    }

    /// Returns dirty blocks of a column as they were at the freeze, after looking at up to `most`
    /// more, and whether these were the last ones.
    pub(crate) fn capture_some(
        &mut self,
        device: DeviceId,
        column: usize,
        most: usize,
    ) -> (Vec<(u64, Arc<Block>)>, bool) {
        let volume = self.devices[device.0].map.volumes[column];
        self.volumes[volume].capture_some(most)
    }
}
