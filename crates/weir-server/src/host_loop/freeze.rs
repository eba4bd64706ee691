//! Devices as they are at one moment, between two requests.
//!
//! A write that was answered is in its store, or in the overlay of a cache, and nothing is
//! answered while this thread is here. So the view has all that any client knows to be done,
//! on every device; of what is not answered yet it may have some.

use super::HostLoop;
use crate::volume::View;
use weir_core::DeviceId;
use weir_store::Scratch;

/// What is to be frozen.
#[derive(Debug)]
pub(crate) struct FreezeOrder {
    pub(crate) device: DeviceId,
    /// Room for old contents, for each volume of the device.
    pub(crate) scratch: Vec<Scratch>,
}

impl HostLoop {
    /// Freezes devices.
    pub(crate) fn freeze(&self, orders: Vec<FreezeOrder>) -> Vec<View> {
        let freeze = |order: FreezeOrder| {
            let map = &self.devices[order.device.0].map;
            assert_eq!(map.volumes.len(), order.scratch.len(), "each volume has room");
            let volumes = map.volumes.iter().zip(order.scratch);
            let columns = volumes.map(|(volume, scratch)| self.volumes[*volume].freeze(scratch));
            View::new(columns.collect(), map.unit, self.size(order.device))
        };
        orders.into_iter().map(freeze).collect()
    }
}
