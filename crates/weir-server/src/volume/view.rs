//! A device as it was at a freeze: the frozen stores of its volumes, and what their caches
//! had not written back.

use super::DeviceMap;
use super::block::{BLOCK, Block, within};
use std::sync::Arc;
use weir_store::freeze::BLOCK as TRACKED;
use weir_store::{
    Extent, ExtentKind, ExtentList, Freezable, Frozen, ReadStore, Scratch, Store, StoreError,
    Tracking,
};
use weir_units::Bytes;

type Result<T> = std::result::Result<T, StoreError>;

/// Changed ranges of a column that are looked at together.
const LOOKED_AT: usize = 4096;
/// Extents of a column that are looked at together.
const EXTENTS: usize = 1024;

/// A volume as its clients saw it at a freeze.
#[derive(Debug)]
pub(crate) struct Column {
    freezable: Freezable,
    frozen: Arc<Frozen>,
    /// Blocks of the cache, ascending: they are over the store.
    dirty: Vec<(u64, Arc<Block>)>,
}

impl Column {
    /// Freezes a store. The dirty blocks of the cache over it are still to be added.
    pub(super) fn freeze(freezable: &Freezable, scratch: Scratch) -> Self {
        let frozen = freezable.freeze(scratch);
        Self { freezable: freezable.clone(), frozen, dirty: Vec::new() }
    }

    /// Adds blocks that the cache had at the freeze, in any order.
    pub(crate) fn add(&mut self, dirty: Vec<(u64, Arc<Block>)>) {
        self.dirty.extend(dirty);
    }

    /// Makes it readable: all dirty blocks were added.
    fn finish(&mut self) {
        self.dirty.sort_unstable_by_key(|(block, _)| *block);
        let tracked = self.dirty.iter().map(|(block, _)| block * BLOCK / TRACKED * TRACKED);
        let mut last = None;
        let is_new = |tracked: &u64| last.replace(*tracked) != Some(*tracked);
        self.frozen.mark_pending(tracked.filter(is_new).map(|tracked| (tracked, TRACKED)));
    }

    /// Returns the blocks of the cache that a range touches.
    fn dirty_in(&self, offset: u64, len: u64) -> &[(u64, Arc<Block>)] {
        let from = self.dirty.partition_point(|(block, _)| (block + 1) * BLOCK <= offset);
        let to = self.dirty.partition_point(|(block, _)| block * BLOCK < offset + len);
        self.dirty.get(from..to).unwrap_or_default()
    }

    fn cover(&self, offset: u64, buf: &mut [u8]) {
        let end = offset + buf.len() as u64;
        for (block, bytes) in self.dirty_in(offset, buf.len() as u64) {
            let start = block * BLOCK;
            let (from, to) = (start.max(offset), (start + BLOCK).min(end));
            buf[within(from - offset)..within(to - offset)]
                .copy_from_slice(&bytes[within(from - start)..within(to - start)]);
        }
    }
}

/// A view that is dropped before it is thawed, because its freeze failed, must not go on keeping
/// old contents.
impl Drop for Column {
    fn drop(&mut self) {
        self.freezable.thaw(&self.frozen);
    }
}

impl ReadStore for Column {
    fn size(&self) -> Bytes {
        Store::size(&*self.frozen)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Store::read_at(&*self.frozen, offset, buf)?;
        self.cover(offset, buf);
        Ok(())
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let done = Store::try_read_at(&*self.frozen, offset, buf)?;
        if done {
            self.cover(offset, buf);
        }
        Ok(done)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        let (mut list, mut at, end) = (ExtentList::new(max), offset, offset + len);
        while at < end && !list.is_full() {
            for extent in Store::extents(&*self.frozen, at, end - at, EXTENTS)? {
                let until = at + extent.len;
                for (block, _) in self.dirty_in(at, extent.len) {
                    let from = (block * BLOCK).max(at);
                    let to = ((block + 1) * BLOCK).min(until);
                    list.push(from - at, extent.kind);
                    list.push(to - from, ExtentKind::Data);
                    at = to;
                }
                list.push(until - at, extent.kind);
                at = until;
            }
        }
        Ok(list.into_vec())
    }

    fn allocated(&self) -> Result<Bytes> {
        Store::allocated(&*self.frozen)
    }
}

/// A device as its clients saw it at a freeze.
#[derive(Debug)]
pub(crate) struct View {
    columns: Vec<Arc<Column>>,
    /// The same, to read from.
    stores: Vec<Arc<dyn Store>>,
    /// The places of the device's bytes in the columns.
    map: DeviceMap,
    size: u64,
}

impl View {
    /// Puts columns together as a device of `size`; `unit` is zero for a single volume.
    pub(crate) fn new(mut columns: Vec<Column>, unit: u64, size: Bytes) -> Self {
        columns.iter_mut().for_each(Column::finish);
        let columns: Vec<_> = columns.into_iter().map(Arc::new).collect();
        let stores = columns.iter().map(|column| Arc::clone(column) as Arc<dyn Store>).collect();
        let map = DeviceMap { volumes: (0..columns.len()).collect(), unit };
        Self { columns, stores, map, size: size.get() }
    }

    /// Returns what is known of the changes of all columns.
    pub(crate) fn tracking(&self) -> Tracking {
        let all = || self.columns.iter().map(|column| column.frozen.tracking());
        let known = all().all(|tracking| tracking.known);
        let base = all().next().and_then(|tracking| tracking.base.clone());
        let same = known && all().all(|tracking| tracking.base == base);
        Tracking { known, base: base.filter(|_| same) }
    }

    /// Returns the most bytes of old contents that were kept at a time, summed over the columns.
    pub(crate) fn most_kept(&self) -> u64 {
        self.columns.iter().map(|column| column.frozen.most_kept().get()).sum()
    }

    /// Makes it the base of later differentials, if it can be; whether it is.
    pub(crate) fn complete(&self, backup: &str) -> Result<bool> {
        if self.columns.iter().any(|column| column.frozen.lost().is_some()) {
            return Ok(false);
        }
        let complete = |column: &Arc<Column>| column.freezable.complete(&column.frozen, backup);
        self.columns.iter().try_fold(true, |all, column| Ok(complete(column)? && all))
    }

    /// Ends it.
    pub(crate) fn thaw(&self) {
        self.columns.iter().for_each(|column| column.freezable.thaw(&column.frozen));
    }

    /// Gives it up for this reason.
    pub(crate) fn lose(&self, reason: &str) {
        for column in &self.columns {
            column.frozen.lose(reason);
        }
    }

    /// Keeps nothing any longer for a range, which has been read.
    pub(crate) fn release(&self, offset: u64, len: u64) {
        let unit = if self.map.unit == 0 { u64::MAX } else { self.map.unit };
        let len = len.min(self.size.saturating_sub(offset));
        for (number, column) in self.columns.iter().enumerate() {
            let range =
                weir_core::stripe::column_range(unit, self.columns.len(), number, offset, len);
            if let Some((offset, len)) = range {
                column.frozen.release(offset, len);
            }
        }
    }

    /// Lists ranges that may have changed since the base, from `from` on, at most `max`; and
    /// where to go on.
    pub(crate) fn changed(&self, from: u64, max: usize) -> (Vec<(u64, u64)>, Option<u64>) {
        let (mut found, mut known_to) = (Vec::new(), self.size);
        for number in 0..self.columns.len() {
            let (ranges, next) = self.changed_of(number, from);
            found.extend(ranges);
            known_to = known_to.min(next.unwrap_or(self.size));
        }
        found.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (start, len) in found {
            let (start, end) = (start.max(from), (start + len).min(known_to));
            if start >= end {
                continue;
            }
            let is_full = ranges.len() == max;
            match ranges.last_mut() {
                Some((last, len)) if *last + *len == start => *len = end - *last,
                _ if is_full => return (ranges, Some(start)),
                _ => ranges.push((start, end - start)),
            }
        }
        (ranges, (known_to < self.size).then_some(known_to))
    }

    /// Lists changed ranges of one column as ranges of the device, and from where on it has
    /// more.
    fn changed_of(&self, number: usize, from: u64) -> (Vec<(u64, u64)>, Option<u64>) {
        let frozen = &self.columns[number].frozen;
        let unit = self.map.unit;
        if unit == 0 {
            let changed = frozen.changed(from, LOOKED_AT);
            return (changed.ranges, changed.next);
        }
        let (width, number) = (self.columns.len() as u64, number as u64);
        // The first byte of the column that is not before `from` on the device.
        let (row, column) = (from / unit / width, from / unit % width);
        let start = match column.cmp(&number) {
            std::cmp::Ordering::Less => row * unit,
            std::cmp::Ordering::Equal => row * unit + from % unit,
            std::cmp::Ordering::Greater => (row + 1) * unit,
        };
        let on_device = |at: u64| (at / unit * width + number) * unit + at % unit;
        let mut changed = frozen.changed(start, LOOKED_AT);
        let mut found = Vec::new();
        for (offset, len) in std::mem::take(&mut changed.ranges) {
            let (mut at, end) = (offset, offset + len);
            while at < end {
                if found.len() >= LOOKED_AT {
                    return (found, Some(on_device(at)));
                }
                let to = ((at / unit + 1) * unit).min(end);
                found.push((on_device(at), to - at));
                at = to;
            }
        }
        (found, changed.next.map(on_device))
    }
}

impl ReadStore for View {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.map.read_stores(&self.stores, offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.map.try_read_stores(&self.stores, offset, buf)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.map.extents(&self.stores, offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.stores.iter().try_fold(Bytes::ZERO, |sum, store| {
            Ok(Bytes::new(sum.get() + store.allocated()?.get()))
        })
    }
}
