//! The bytes of a volume and of a device: store, stripe, and what a ReadWrite
//! cache has not written back.
//!
//! A write is stored when it comes and acknowledged when the engine says so: the
//! protocol allows a write to be seen before its reply, and nothing has to be
//! kept in memory while it waits. Only a ReadWrite cache keeps its bytes here
//! until they are written back, so that a crash of the host can lose them.

use std::collections::BTreeMap;
use std::sync::Arc;
use weir_core::stripe;
use weir_store::{Extent, ExtentKind, Store, StoreError};
use weir_units::Bytes;

/// The host cache's block.
const BLOCK: u64 = 4096;
type Block = [u8; 4096];

/// A volume's store.
#[derive(Debug, Clone)]
pub struct VolumeData {
    /// Where the bytes are.
    pub store: Arc<dyn Store>,
    /// Whether a sync or a read may wait for a medium.
    pub may_block: bool,
}

/// The bytes of one volume with the cache's dirty blocks over them.
#[derive(Debug)]
pub(crate) struct VolumeBytes {
    pub(crate) data: VolumeData,
    dirty: BTreeMap<u64, Box<Block>>,
    /// A write-back failed: the next flush says so.
    pub(crate) failed: Option<StoreError>,
}

impl VolumeBytes {
    pub(crate) fn new(data: VolumeData) -> Self {
        Self { data, dirty: BTreeMap::new(), failed: None }
    }

    fn patch(&self, offset: u64, buf: &mut [u8]) {
        if self.dirty.is_empty() {
            return;
        }
        let end = offset + buf.len() as u64;
        for (block, bytes) in self.dirty.range(offset / BLOCK..end.div_ceil(BLOCK)) {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            let source = &bytes[at(from - block * BLOCK)..at(to - block * BLOCK)];
            buf[at(from - offset)..at(to - offset)].copy_from_slice(source);
        }
    }

    /// Keeps a write in the cache.
    fn keep(&mut self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        let end = offset + data.len() as u64;
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            if !self.dirty.contains_key(&block) {
                let mut bytes = Box::new([0; 4096]);
                let size = self.data.store.size().get();
                let inside = at((size - block * BLOCK).min(BLOCK));
                self.data.store.read_at(block * BLOCK, &mut bytes[..inside])?;
                self.dirty.insert(block, bytes);
            }
            if let Some(bytes) = self.dirty.get_mut(&block) {
                bytes[at(from - block * BLOCK)..at(to - block * BLOCK)]
                    .copy_from_slice(&data[at(from - offset)..at(to - offset)]);
            }
        }
        Ok(())
    }

    fn write_through(&mut self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        self.data.store.write_at(offset, data)?;
        let end = offset + data.len() as u64;
        for (block, bytes) in self.dirty.range_mut(offset / BLOCK..end.div_ceil(BLOCK)) {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            bytes[at(from - block * BLOCK)..at(to - block * BLOCK)]
                .copy_from_slice(&data[at(from - offset)..at(to - offset)]);
        }
        Ok(())
    }

    fn zero(&mut self, offset: u64, len: u64, may_trim: bool) -> Result<(), StoreError> {
        self.data.store.write_zeroes(offset, len, may_trim)?;
        let end = offset + len;
        self.dirty.retain(|block, bytes| {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            if from < to {
                bytes[at(from - block * BLOCK)..at(to - block * BLOCK)].fill(0);
            }
            // Whole blocks are in the store already.
            to.saturating_sub(from) < BLOCK
        });
        Ok(())
    }

    /// The engine says that these bytes have reached the disk: now they do.
    pub(crate) fn write_back(&mut self, offset: u64, len: u64) {
        let blocks: Vec<u64> = self
            .dirty
            .range(offset / BLOCK..(offset + len).div_ceil(BLOCK))
            .map(|b| *b.0)
            .collect();
        for block in blocks {
            let Some(bytes) = self.dirty.get(&block) else { continue };
            let size = self.data.store.size().get();
            let inside = at(size.saturating_sub(block * BLOCK).min(BLOCK));
            match self.data.store.write_at(block * BLOCK, &bytes[..inside]) {
                Ok(()) => drop(self.dirty.remove(&block)),
                // It stays, so that reads see it and a later flush can say so.
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// The host crashed: what was not written back is gone.
    pub(crate) fn lose(&mut self) -> usize {
        let count = self.dirty.len();
        self.dirty.clear();
        count
    }

    /// Bytes in dirty blocks behind `size`, or allocated in the store there.
    pub(crate) fn has_data_behind(&self, size: u64) -> Result<bool, StoreError> {
        let whole = self.data.store.size().get();
        if size >= whole {
            return Ok(false);
        }
        let extents = self.data.store.extents(size, whole - size, 2)?;
        let stored = extents.iter().any(|extent| extent.kind == ExtentKind::Data);
        Ok(stored || self.dirty.range(size / BLOCK..).next().is_some())
    }
}

/// Where a device's bytes are.
#[derive(Debug, Clone)]
pub(crate) struct DeviceMap {
    pub(crate) volumes: Vec<usize>,
    /// Zero for a single volume.
    pub(crate) unit: u64,
}

/// How a write is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    InStore,
    InCache,
}

impl DeviceMap {
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

    /// Reads if that needs no waiting; `false` if it would.
    pub(crate) fn try_read(
        &self,
        volumes: &[VolumeBytes],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<bool, StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            let part = &mut buf[at(start)..at(start + len)];
            if !volumes[volume].data.store.try_read_at(at_volume, part)? {
                return Ok(false);
            }
            volumes[volume].patch(at_volume, part);
        }
        Ok(true)
    }

    /// Puts the cache's dirty blocks over what was read from the stores.
    pub(crate) fn patch(&self, volumes: &[VolumeBytes], offset: u64, buf: &mut [u8]) {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            volumes[volume].patch(at_volume, &mut buf[at(start)..at(start + len)]);
        }
    }

    /// Reads from the stores, waiting where needed; what is dirty is not in it.
    pub(crate) fn read_stores(
        &self,
        stores: &[Arc<dyn Store>],
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, buf.len() as u64) {
            stores[volume].read_at(at_volume, &mut buf[at(start)..at(start + len)])?;
        }
        Ok(())
    }

    pub(crate) fn write(
        &self,
        volumes: &mut [VolumeBytes],
        offset: u64,
        data: &[u8],
        keep: impl Fn(usize) -> Keep,
    ) -> Result<(), StoreError> {
        for (volume, at_volume, start, len) in self.pieces(offset, data.len() as u64) {
            let part = &data[at(start)..at(start + len)];
            match keep(volume) {
                Keep::InCache => volumes[volume].keep(at_volume, part)?,
                Keep::InStore => volumes[volume].write_through(at_volume, part)?,
            }
        }
        Ok(())
    }

    pub(crate) fn zero(
        &self,
        volumes: &mut [VolumeBytes],
        offset: u64,
        len: u64,
        may_trim: bool,
    ) -> Result<(), StoreError> {
        // What a range covers of a column is one range there.
        let mut ranges: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (volume, at_volume, _, len) in self.pieces(offset, len) {
            ranges.entry(volume).or_insert((at_volume, 0)).1 += len;
        }
        for (volume, (offset, len)) in ranges {
            volumes[volume].zero(offset, len, may_trim)?;
        }
        Ok(())
    }

    /// What of a range holds data, at most `max` extents.
    pub(crate) fn extents(
        &self,
        volumes: &[VolumeBytes],
        offset: u64,
        len: u64,
        max: usize,
    ) -> Result<Vec<Extent>, StoreError> {
        let mut found: Vec<Extent> = Vec::new();
        for (volume, at_volume, _, len) in self.pieces(offset, len) {
            for extent in volumes[volume].data.store.extents(at_volume, len, max)? {
                match found.last_mut() {
                    Some(last) if last.kind == extent.kind => last.len += extent.len,
                    _ => found.push(extent),
                }
            }
            if found.len() > max {
                found.truncate(max);
                break;
            }
        }
        // Dirty blocks are data wherever the store has a hole.
        let dirty = |v: &usize| !volumes[*v].dirty.is_empty();
        if self.volumes.iter().any(dirty) {
            let len = found.iter().map(|extent| extent.len).sum();
            found = vec![Extent { len, kind: ExtentKind::Data }];
        }
        Ok(found)
    }

    pub(crate) fn size(&self, volumes: &[VolumeBytes]) -> Bytes {
        let sizes = self.volumes.iter().map(|v| volumes[*v].data.store.size().get());
        let smallest = sizes.min().unwrap_or(0);
        if self.unit == 0 {
            return Bytes::new(smallest);
        }
        Bytes::new(smallest / self.unit * self.unit * self.volumes.len() as u64)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "within a buffer that is in memory")]
fn at(n: u64) -> usize {
    n as usize
}
