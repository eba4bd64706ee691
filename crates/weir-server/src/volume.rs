//! The bytes of a volume and of a device: store, stripe, and what a ReadWrite
//! cache has not written back.
//!
//! A write is stored when it comes and acknowledged when the engine says so: the
//! protocol allows a write to be seen before its reply, and nothing has to be
//! kept in memory while it waits. Only a ReadWrite cache keeps its bytes here
//! until they are written back, so that a crash of the host can lose them.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Dirty blocks that the engine holds for written and the store did not take:
    /// they must be there before anything is called durable.
    owed: BTreeSet<u64>,
}

impl VolumeBytes {
    pub(crate) fn new(data: VolumeData) -> Self {
        Self { data, dirty: BTreeMap::new(), owed: BTreeSet::new() }
    }

    /// What is dirty of a range: where in it, and the bytes.
    fn dirty_in(&self, offset: u64, len: u64) -> impl Iterator<Item = (usize, &[u8])> {
        let end = offset + len;
        self.dirty.range(offset / BLOCK..end.div_ceil(BLOCK)).map(move |(block, bytes)| {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            (at(from - offset), &bytes[at(from - block * BLOCK)..at(to - block * BLOCK)])
        })
    }

    /// Keeps a write in the cache.
    fn keep(&mut self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        let end = offset + data.len() as u64;
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            if !self.dirty.contains_key(&block) {
                let mut bytes = Box::new([0; 4096]);
                if to - from < BLOCK {
                    let size = self.data.store.size().get();
                    let inside = at((size - block * BLOCK).min(BLOCK));
                    self.data.store.read_at(block * BLOCK, &mut bytes[..inside])?;
                }
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
        let blocks = self.dirty.range_mut(offset / BLOCK..end.div_ceil(BLOCK));
        let mut whole = Vec::new();
        for (block, bytes) in blocks {
            let (from, to) = ((block * BLOCK).max(offset), (block * BLOCK + BLOCK).min(end));
            bytes[at(from - block * BLOCK)..at(to - block * BLOCK)].fill(0);
            if to - from == BLOCK {
                whole.push(*block);
            }
        }
        // They are zeros in the store already.
        whole.iter().for_each(|block| drop(self.dirty.remove(block)));
        Ok(())
    }

    /// The engine says that these bytes have reached the disk: now they do. What
    /// the store does not take is owed: reads still see it here, and
    /// [`settle`](Self::settle) tries again.
    pub(crate) fn write_back(&mut self, offset: u64, len: u64) {
        let blocks = self.dirty.range(offset / BLOCK..(offset + len).div_ceil(BLOCK));
        for block in blocks.map(|(block, _)| *block).collect::<Vec<_>>() {
            if self.write_block(block).is_err() {
                self.owed.insert(block);
            }
        }
    }

    /// Writes back all there is, as [`write_back`](Self::write_back) does.
    pub(crate) fn write_back_all(&mut self) {
        self.write_back(0, u64::MAX / 2);
    }

    /// Writes what is owed; a sync that follows makes it durable.
    pub(crate) fn settle(&mut self) -> Result<(), StoreError> {
        while let Some(block) = self.owed.first().copied() {
            self.write_block(block)?;
            self.owed.remove(&block);
        }
        Ok(())
    }

    fn write_block(&mut self, block: u64) -> Result<(), StoreError> {
        // A block that is no longer dirty was zeroed since.
        let Some(bytes) = self.dirty.get(&block) else { return Ok(()) };
        let size = self.data.store.size().get();
        let inside = at(size.saturating_sub(block * BLOCK).min(BLOCK));
        self.data.store.write_at(block * BLOCK, &bytes[..inside])?;
        self.dirty.remove(&block);
        Ok(())
    }

    /// The host crashed: what was not written back is gone. Returns how many blocks.
    pub(crate) fn lose(&mut self) -> usize {
        let count = self.dirty.len();
        self.dirty.clear();
        self.owed.clear();
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
            for (at, bytes) in volumes[volume].dirty_in(at_volume, len) {
                part[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(true)
    }

    /// What is dirty of a range now: where in it, and the bytes.
    pub(crate) fn dirty_in(
        &self,
        volumes: &[VolumeBytes],
        offset: u64,
        len: u64,
    ) -> Vec<(usize, Vec<u8>)> {
        let mut found = Vec::new();
        for (volume, at_volume, start, len) in self.pieces(offset, len) {
            let dirty = volumes[volume].dirty_in(at_volume, len);
            found.extend(dirty.map(|(within, bytes)| (at(start) + within, bytes.to_vec())));
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
        let unit = if self.unit == 0 { u64::MAX } else { self.unit };
        for (column, volume) in self.volumes.iter().enumerate() {
            let width = self.volumes.len();
            if let Some((start, len)) = stripe::column_range(unit, width, column, offset, len) {
                volumes[*volume].zero(start, len, may_trim)?;
            }
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
            let mut told = 0;
            for extent in volumes[volume].data.store.extents(at_volume, len, max)? {
                told += extent.len;
                match found.last_mut() {
                    Some(last) if last.kind == extent.kind => last.len += extent.len,
                    _ => found.push(extent),
                }
            }
            // What comes next does not follow where the store has not told all.
            if found.len() > max || told < len {
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
