//! A device as it was at a freeze: the frozen stores of its volumes, and what their caches
//! had not written back.

use super::{BLOCK, Block, DeviceMap, within};
use std::sync::Arc;
use weir_store::freeze::BLOCK as TRACKED;
use weir_store::{Extent, ExtentKind, Freezable, Frozen, Scratch, Store, StoreError, Tracking};
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
    /// Freezes a store under a cache that holds `dirty`.
    pub(super) fn freeze(
        freezable: &Freezable,
        scratch: Scratch,
        dirty: Vec<(u64, Arc<Block>)>,
    ) -> Self {
        let mut pending: Vec<(u64, u64)> = Vec::new();
        for (block, _) in &dirty {
            let tracked = block * BLOCK / TRACKED * TRACKED;
            if pending.last().is_none_or(|(last, _)| *last != tracked) {
                pending.push((tracked, TRACKED));
            }
        }
        let frozen = freezable.freeze(scratch, &pending);
        Self { freezable: freezable.clone(), frozen, dirty }
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

impl Store for Column {
    fn size(&self) -> Bytes {
        self.frozen.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.frozen.read_at(offset, buf)?;
        self.cover(offset, buf);
        Ok(())
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let done = self.frozen.try_read_at(offset, buf)?;
        if done {
            self.cover(offset, buf);
        }
        Ok(done)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn trim(&self, _: u64, _: u64) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn resize(&self, _: Bytes) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        let (mut list, mut at, end) = (Vec::new(), offset, offset + len);
        while at < end && list.len() <= max {
            for extent in self.frozen.extents(at, end - at, EXTENTS)? {
                let until = at + extent.len;
                for (block, _) in self.dirty_in(at, extent.len) {
                    let from = (block * BLOCK).max(at);
                    let to = ((block + 1) * BLOCK).min(until);
                    push(&mut list, from - at, extent.kind);
                    push(&mut list, to - from, ExtentKind::Data);
                    at = to;
                }
                push(&mut list, until - at, extent.kind);
                at = until;
            }
        }
        list.truncate(max);
        Ok(list)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.frozen.allocated()
    }
}

fn push(list: &mut Vec<Extent>, len: u64, kind: ExtentKind) {
    match list.last_mut() {
        _ if len == 0 => {}
        Some(last) if last.kind == kind => last.len += len,
        _ => list.push(Extent { len, kind }),
    }
}

/// A device as its clients saw it at a freeze.
#[derive(Debug)]
pub(crate) struct View {
    columns: Vec<Arc<Column>>,
    /// The same, to read from.
    stores: Vec<Arc<dyn Store>>,
    /// Where the device's bytes are in the columns.
    map: DeviceMap,
    size: u64,
}

impl View {
    /// Puts columns together as a device of `size`; `unit` is zero for a single volume.
    pub(crate) fn new(columns: Vec<Column>, unit: u64, size: Bytes) -> Self {
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

    /// Returns how many bytes of old contents were kept.
    pub(crate) fn kept(&self) -> u64 {
        self.columns.iter().map(|column| column.frozen.kept().get()).sum()
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

impl Store for View {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.map.read_stores(&self.stores, offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.map.try_read_stores(&self.stores, offset, buf)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn trim(&self, _: u64, _: u64) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn resize(&self, _: Bytes) -> Result<()> {
        Err(StoreError::ReadOnly)
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
