//! The buffers of a backup, as in SQL Server.
//!
//! SQL Server 2008 and later allocate five buffers for each device and two for each volume that is
//! read. This reproduces every published output of trace flag 3213 with a known number of devices.
//! Compression has three sets of buffers: for pages, for compressed bytes, and for the device.

use weir_units::Bytes;

/// Buffers for each device: one is filled and one is encoded while three are written.
const PER_DEVICE: u32 = 5;
/// Buffers for each volume that is read: one is filled while one waits.
const PER_VOLUME: u32 = 2;
/// Writes in flight to each device on disk.
pub const WRITE_DEPTH: u32 = 4;
/// Transfers to a disk, unless stated otherwise.
pub const MAX_TRANSFER: Bytes = Bytes::mib(1);
/// The unit of transfers, in which a database allocates its space.
pub const MIN_TRANSFER: Bytes = Bytes::kib(64);
/// The largest transfer.
pub const LARGEST_TRANSFER: Bytes = Bytes::mib(4);

/// The buffers of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Volumes that are read, each by its own reader.
    pub readers: u32,
    /// Backup devices: the files that the backup is striped over.
    pub devices: u32,
    /// Buffers of a set.
    pub count: u32,
    /// Sets of buffers.
    pub sets: u32,
    /// The largest transfer, and the size of a buffer.
    pub max_transfer: Bytes,
}

impl Buffers {
    /// Computes the buffers of a backup of `readers` volumes to `devices` stripes. A `count` that the
    /// user states replaces the computed one.
    #[must_use]
    pub fn new(
        (readers, devices): (u32, u32),
        is_compressed: bool,
        max_transfer: Bytes,
        count: Option<u32>,
    ) -> Self {
        Self {
            readers,
            devices,
            count: count.unwrap_or_else(|| {
                let own = PER_DEVICE.saturating_mul(devices);
                own.saturating_add(PER_VOLUME.saturating_mul(readers))
            }),
            sets: if is_compressed { 3 } else { 1 },
            max_transfer,
        }
    }

    /// Returns the memory of all buffers.
    #[must_use]
    pub fn total(&self) -> Bytes {
        let buffers = u64::from(self.count).saturating_mul(self.sets.into());
        Bytes::new(self.max_transfer.get().saturating_mul(buffers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers, devices, compression; buffers, sets and MiB that SQL Server published.
    #[track_caller]
    fn check(readers: u32, devices: u32, is_compressed: bool, expect: (u32, u32, u64)) {
        let own = Buffers::new((readers, devices), is_compressed, MAX_TRANSFER, None);
        assert_eq!((own.count, own.sets, own.total().get() >> 20), expect);
    }

    #[test]
    fn published_outputs_of_trace_flag_3213() {
        check(1, 1, false, (7, 1, 7));
        check(1, 1, true, (7, 3, 21));
        check(1, 3, true, (17, 3, 51));
        // Article 004.
        check(4, 1, false, (13, 1, 13));
        let stated = Buffers::new((1, 3), true, Bytes::mib(2), Some(64));
        assert_eq!((stated.count, stated.total()), (64, Bytes::mib(384)));
    }
}
