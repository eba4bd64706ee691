//! The places of a device's bytes: one volume, or a stripe over several.

use super::block::within;
use super::{Keep, Load, VolumeBytes};
use std::sync::Arc;
use weir_core::stripe;
use weir_store::{Extent, ExtentList, Store, StoreError};

/// The volumes of a device, and how its bytes are spread over them.
#[derive(Debug, Clone)]
pub(crate) struct DeviceMap {
    pub(crate) volumes: Vec<usize>,
    /// Zero for a single volume.
    pub(crate) unit: u64,
}

impl DeviceMap {
    /// Makes a device that is one volume.
    pub(crate) fn single(volume: usize) -> Self {
        Self { volumes: vec![volume], unit: 0 }
    }

    /// Cuts a range at the stripe's borders: (volume, offset there, range of the buffer).
    fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = (usize, u64, u64, u64)> + '_ {
        let unit = if self.unit == 0 { u64::MAX } else { self.unit };
        let mut done = 0;
        stripe::pieces(unit, self.volumes.len(), offset, len).map(move |piece| {
            let start = done;
            done += piece.len;
            (self.volumes[piece.column], piece.offset, start, piece.len)
        })
    }

    /// Returns the volume that has all bytes of a range, and the range's offset there, if it is only
    /// one.
    pub(crate) fn only(&self, offset: u64, len: u64) -> Option<(usize, u64)> {
        let mut pieces = self.pieces(offset, len);
        let (volume, offset, ..) = pieces.next()?;
        pieces.next().is_none().then_some((volume, offset))
    }

    /// Reads if that needs no waiting; `false` if it would.
    pub(crate) fn try_read(
        &self,
        volumes: &[VolumeBytes],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<bool, StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            let part = &mut buf[within(start)..within(start + len)];
            if !volumes[volume].data.store.try_read_at(at_volume, part)? {
                return Ok(false);
            }
            for (at, bytes) in volumes[volume].seen_in(at_volume, len) {
                part[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(true)
    }

    /// Returns the dirty bytes of a range: offset in the range, bytes.
    pub(crate) fn dirty_in(
        &self,
        volumes: &[VolumeBytes],
        offset: u64,
        len: u64,
    ) -> Vec<(usize, Vec<u8>)> {
        let mut found = Vec::new();
        for (volume, at_volume, start, len) in self.pieces(offset, len) {
            let dirty = volumes[volume].seen_in(at_volume, len);
            found.extend(dirty.map(|(at, bytes)| (within(start) + at, bytes.to_vec())));
        }
        found
    }

    /// Reads from the stores, waiting where needed; what is dirty is not in it.
    pub(crate) fn read_stores(
        &self,
        stores: &[Arc<dyn Store>],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            stores[volume].read_at(at_volume, &mut buf[within(start)..within(start + len)])?;
        }
        Ok(())
    }

    /// Reads from the stores if that needs no waiting; `false` if it would.
    pub(crate) fn try_read_stores(
        &self,
        stores: &[Arc<dyn Store>],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<bool, StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            let part = &mut buf[within(start)..within(start + len)];
            if !stores[volume].try_read_at(at_volume, part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps a client's bytes; `load` is what the lanes got of the request `key`,
    /// also if it fails in the middle.
    pub(crate) fn write(
        &self,
        volumes: &mut [VolumeBytes],
        key: usize,
        (offset, data): (u64, &[u8]),
        keep: impl Fn(usize) -> Keep,
        load: &mut Load,
    ) -> Result<(), StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, data.len() as u64) {
            let part = &data[within(start)..within(start + len)];
            load.parts += 1;
            let durably = match keep(volume) {
                Keep::InCache => {
                    volumes[volume].keep(key, at_volume, part, load)?;
                    continue;
                }
                Keep::InStore => false,
                Keep::Durably => true,
            };
            volumes[volume].write_through(key, (at_volume, part), durably, load)?;
        }
        Ok(())
    }

    /// Makes a range read as zeros; `load` as for [`write`](Self::write).
    pub(crate) fn zero(
        &self,
        volumes: &mut [VolumeBytes],
        key: usize,
        (offset, len): (u64, u64),
        (may_trim, durably): (bool, bool),
        load: &mut Load,
    ) -> Result<(), StoreError> {
        let unit = if self.unit == 0 { u64::MAX } else { self.unit };
        for (column, volume) in self.volumes.iter().enumerate() {
            let width = self.volumes.len();
            if let Some((start, len)) = stripe::column_range(unit, width, column, offset, len) {
                load.parts += 1;
                volumes[*volume].zero(key, (start, len), (may_trim, durably), load)?;
            }
        }
        Ok(())
    }

    /// Returns the extents of a range, at most `max` of them, as the stores say. A block that
    /// is only dirty counts as the store has it.
    pub(crate) fn extents(
        &self,
        stores: &[Arc<dyn Store>],
        offset: u64,
        len: u64,
        max: usize,
    ) -> Result<Vec<Extent>, StoreError> {
        let mut found = ExtentList::new(max);
        let (mut at, end) = (offset, offset + len);
        let row = self.unit.saturating_mul(self.volumes.len() as u64);
        while at < end && !found.is_full() {
            let rows = if self.unit > 0 && at.is_multiple_of(row) { (end - at) / row } else { 0 };
            if let Some(extent) = self.alike(stores, (at, rows))? {
                at += extent.len;
                found.push(extent.len, extent.kind);
                continue;
            }
            let until = if self.unit > 0 { end.min((at / row + 1) * row) } else { end };
            for (volume, at_volume, _, len) in self.pieces(at, until - at) {
                let mut told = 0;
                for extent in stores[volume].extents(at_volume, len, max)? {
                    told += extent.len;
                    found.push(extent.len, extent.kind);
                }
                // If the store has not told all, the next extent does not follow.
                if found.is_full() || told < len {
                    return Ok(found.into_vec());
                }
            }
            at = until;
        }
        Ok(found.into_vec())
    }

    /// Returns the rows from `at` on in which all columns are alike, at most `rows`: without it,
    /// a hole of terabytes would be asked for unit by unit.
    fn alike(
        &self,
        stores: &[Arc<dyn Store>],
        (at, rows): (u64, u64),
    ) -> Result<Option<Extent>, StoreError> {
        let width = self.volumes.len() as u64;
        let (mut kind, mut least) = (None, rows);
        for volume in &self.volumes {
            if least == 0 {
                return Ok(None);
            }
            let first = stores[*volume].extents(at / width, least * self.unit, 1)?;
            let Some(first) = first.first() else { return Ok(None) };
            least = least.min(first.len / self.unit);
            if *kind.get_or_insert(first.kind) != first.kind {
                return Ok(None);
            }
        }
        let len = least * self.unit * width;
        Ok(kind.filter(|_| len > 0).map(|kind| Extent { len, kind }))
    }
}
