//! A volume as it was.
//!
//! A block is *settled* once its old contents are in the scratch store, or are not needed.
//! It is settled before it changes, so a reader that finds it unsettled after its read has
//! read old contents.

use super::bitmap::{BLOCK, Bitmap, blocks};
use super::done::Done;
use super::scratch::Scratch;
use super::tracking::Tracking;
use crate::pieces::{index, len_of};
use crate::store::{Extent, ExtentKind, ExtentList, ReadStore, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{ErrorKind, Result, StoreError};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use weir_units::Bytes;

/// Compared with, which is fast.
const ZEROS: [u8; 4096] = [0; 4096];
/// Blocks that are settled at the same time.
const TURNS: usize = 16;

/// Extents looked at together.
const EXTENTS: usize = 1024;

/// A read-only [`Store`] that shows a volume as it was at a freeze.
#[derive(Debug)]
pub struct Frozen {
    store: Arc<dyn Store>,
    size: u64,
    /// The last era that it shows.
    pub(super) era: u64,
    /// Eras whose changes may still be under way. They belong to the view.
    before: Vec<Arc<Done>>,
    is_quiet: AtomicBool,
    settled: Bitmap,
    /// Blocks whose contents are in the scratch store, or were until they were released.
    stored: Bitmap,
    /// Settled blocks that are not read again.
    released: Bitmap,
    /// The bytes that were released last, to which the next ones may be adjacent.
    last_released: Mutex<Range<u64>>,
    /// Held to settle a block.
    turns: [Mutex<()>; TURNS],
    /// None once the view is lost.
    scratch: RwLock<Option<Scratch>>,
    /// Bytes in the scratch store now, and at most so far.
    kept: AtomicU64,
    most_kept: AtomicU64,
    lost: OnceLock<String>,
    tracking: Tracking,
    changed: Vec<Arc<Bitmap>>,
    pending: [Arc<Bitmap>; 2],
}

/// Ranges of a frozen view that may differ from its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Offset and length in bytes, ascending, not adjacent.
    pub ranges: Vec<(u64, u64)>,
    /// The offset at which to ask for the next ranges; `None` after the last.
    pub next: Option<u64>,
}

/// The parts of a new view.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    pub(super) era: u64,
    pub(super) before: Vec<Arc<Done>>,
    pub(super) scratch: Scratch,
    pub(super) tracking: Tracking,
    pub(super) changed: Vec<Arc<Bitmap>>,
    /// Changes before the freeze, and after it, to which those that are pending are added.
    pub(super) pending: [Arc<Bitmap>; 2],
}

impl Frozen {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { store, era, before, scratch, tracking, changed, pending } = parts;
        Self {
            size: store.size().get(),
            store,
            era,
            before,
            is_quiet: AtomicBool::new(false),
            settled: Bitmap::default(),
            stored: Bitmap::default(),
            released: Bitmap::default(),
            last_released: Mutex::new(0..0),
            turns: Default::default(),
            scratch: RwLock::new(Some(scratch)),
            kept: AtomicU64::new(0),
            most_kept: AtomicU64::new(0),
            lost: OnceLock::new(),
            tracking,
            changed,
            pending,
        }
    }

    /// Returns what was known of the volume's changes at the freeze.
    #[must_use]
    pub fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// Returns the bytes of old contents that are kept now.
    #[must_use]
    pub fn kept(&self) -> Bytes {
        Bytes::new(self.kept.load(Ordering::Relaxed))
    }

    /// Returns the most bytes of old contents that were kept at a time.
    #[must_use]
    pub fn most_kept(&self) -> Bytes {
        Bytes::new(self.most_kept.load(Ordering::Relaxed))
    }

    /// Marks ranges, each an offset and a length, that will be changed to the contents that the
    /// volume's readers saw at the freeze already. They count as changed before the freeze and
    /// after it. Call it before the first question for changes, and before the view ends.
    pub fn mark_pending(&self, ranges: impl IntoIterator<Item = (u64, u64)>) {
        for (offset, len) in ranges.into_iter().filter(|(_, len)| *len > 0) {
            self.pending.iter().for_each(|marks| marks.set_range(blocks(offset, len)));
        }
    }

    /// Returns why it does not show the volume any more, if it does not.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Lists ranges that may have changed between the base and the freeze, from `from` on, at
    /// most `max` of them.
    #[must_use]
    pub fn changed(&self, from: u64, max: usize) -> Changed {
        self.wait_quiet();
        let end = self.size.div_ceil(BLOCK);
        let mut ranges = Vec::new();
        let mut at = from / BLOCK;
        loop {
            let sets = self.changed.iter();
            let Some(start) = sets.filter_map(|set| set.next_set(at..end)).min() else { break };
            if ranges.len() == max {
                return Changed { ranges, next: Some(start * BLOCK) };
            }
            at = start;
            while let Some(set) = self.changed.iter().find(|set| at < end && set.get(at)) {
                at = set.next_clear(at..end);
            }
            let first = (start * BLOCK).max(from);
            ranges.push((first, (at * BLOCK).min(self.size) - first));
        }
        Changed { ranges, next: None }
    }

    /// Drops the old contents of a range, which has been read and is not read again. A block
    /// of which only a part is released is kept until an adjacent range has the rest.
    pub fn release(&self, offset: u64, len: u64) {
        let Some(gone) = self.whole_blocks(offset, len) else { return };
        let freed = {
            // Nothing is kept meanwhile.
            let _turns = self.turns.each_ref().map(locked);
            let freed = self.kept_in(gone.clone());
            self.released.set_range(gone.clone());
            self.settled.set_range(gone.clone());
            freed
        };
        if freed == 0 {
            return;
        }
        if let Some(scratch) = shared(&self.scratch).as_ref().and_then(Scratch::made) {
            let start = gone.start * BLOCK;
            // A failed trim only takes room, which still counts.
            if scratch.trim(start, (gone.end * BLOCK).min(self.size) - start).is_ok() {
                self.kept.fetch_sub(freed, Ordering::Relaxed);
            }
        }
    }

    /// Joins a range with the adjacent one before it, and returns the blocks that this
    /// completes.
    fn whole_blocks(&self, offset: u64, len: u64) -> Option<Range<u64>> {
        let end = offset.saturating_add(len).min(self.size);
        if offset >= end {
            return None;
        }
        let mut last = locked(&self.last_released);
        let mut from = offset;
        if (last.start..=last.end).contains(&offset) {
            from = (last.end / BLOCK * BLOCK).max(last.start).min(offset);
            *last = last.start..end.max(last.end);
        } else {
            *last = offset..end;
        }
        let until = if end == self.size { end.div_ceil(BLOCK) } else { end / BLOCK };
        let gone = from.div_ceil(BLOCK)..until;
        (!gone.is_empty()).then_some(gone)
    }

    /// Returns the bytes that the scratch store has of blocks.
    fn kept_in(&self, blocks: Range<u64>) -> u64 {
        let (mut sum, mut at) = (0, blocks.start);
        while let Some(block) = self.stored.next_set(at..blocks.end) {
            if !self.released.get(block) {
                sum += ((block + 1) * BLOCK).min(self.size) - block * BLOCK;
            }
            at = block + 1;
        }
        sum
    }

    /// Gives the view up for this reason, with all that was kept; whether it was there.
    pub fn lose(&self, reason: &str) -> bool {
        let first = self.lost.set(reason.to_owned()).is_ok();
        if first {
            // Waits for reads of the scratch store, and removes it.
            drop(exclusive(&self.scratch).take());
        }
        first
    }

    fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(StoreError::FrozenLost { reason: reason.clone() }),
        }
    }

    /// Waits until the changes that had begun before the freeze are done.
    fn wait_quiet(&self) {
        if !self.is_quiet.load(Ordering::Acquire) {
            self.before.iter().for_each(|era| era.wait());
            self.is_quiet.store(true, Ordering::Release);
        }
    }

    fn try_quiet(&self) -> bool {
        let quiet =
            self.is_quiet.load(Ordering::Acquire) || self.before.iter().all(|era| era.is_done());
        if quiet {
            self.is_quiet.store(true, Ordering::Release);
        }
        quiet
    }

    /// Keeps the old contents of a range that is about to change. A failure is the view's.
    pub(super) fn preserve(&self, offset: u64, len: u64) {
        let end = (offset + len).min(self.size);
        if offset >= end || self.lost.get().is_some() {
            return;
        }
        self.wait_quiet();
        let touched = blocks(offset, end - offset);
        let mut at = self.settled.next_clear(touched.clone());
        while at < touched.end {
            if let Err(error) = self.keep(at) {
                self.lose(&format!("old contents cannot be kept: {error}"));
                return;
            }
            at = self.settled.next_clear(at + 1..touched.end);
        }
    }

    /// Keeps the old contents of a range that is about to become zeros, as its holes are already.
    pub(super) fn preserve_data(&self, offset: u64, len: u64) {
        let end = (offset + len).min(self.size);
        if offset >= end || self.lost.get().is_some() {
            return;
        }
        self.wait_quiet();
        let keep = |data: Range<u64>| self.preserve(data.start, data.end - data.start);
        if let Err(error) = for_each_data(&*self.store, offset..end, keep) {
            self.lose(&format!("old contents cannot be found: {error}"));
        }
    }

    fn keep(&self, block: u64) -> Result<()> {
        let _turn = locked(&self.turns[index(block % TURNS as u64)]);
        if self.settled.get(block) {
            return Ok(());
        }
        let scratch = shared(&self.scratch);
        let Some(scratch) = &*scratch else { return Ok(()) };
        let offset = block * BLOCK;
        // Bytes that a shrinking has cut off were zeros, or are kept.
        let end = (offset + BLOCK).min(self.size).min(self.store.size().get());
        let mut old = vec![0; index(end.saturating_sub(offset))];
        self.store.read_at(offset, &mut old)?;
        if old.chunks(ZEROS.len()).any(|part| *part != ZEROS[..part.len()]) {
            scratch.store(self.size)?.write_at(offset, &old)?;
            self.stored.set(block);
            let len = (offset + BLOCK).min(self.size) - offset;
            let kept = self.kept.fetch_add(len, Ordering::Relaxed) + len;
            self.most_kept.fetch_max(kept, Ordering::Relaxed);
        }
        self.settled.set(block);
        Ok(())
    }

    /// Reads with `read`, which may answer that it would have to wait.
    fn read_with(&self, offset: u64, buf: &mut [u8], read: &Read) -> Result<bool> {
        let end = offset + len_of(buf);
        let mut at = offset;
        while at < end {
            let block = at / BLOCK;
            let last = end.div_ceil(BLOCK);
            let (settled, until) = self.settled.run(block..last);
            let to = (until * BLOCK).min(end);
            let part = &mut buf[index(at - offset)..index(to - offset)];
            let done = match settled {
                true => self.read_kept(at, part, read)?,
                false => self.read_live(at, part, read)?,
            };
            if !done {
                return Ok(false);
            }
            at = to;
        }
        Ok(true)
    }

    fn read_kept(&self, offset: u64, buf: &mut [u8], read: &Read) -> Result<bool> {
        if let Some(block) = self.released.next_set(blocks(offset, len_of(buf))) {
            let reason = format!("the block at {} was released", block * BLOCK);
            return Err(StoreError::FrozenLost { reason });
        }
        let scratch = shared(&self.scratch);
        match scratch.as_ref().and_then(Scratch::made) {
            Some(store) => read(store, offset, buf),
            None => {
                buf.fill(0);
                Ok(true)
            }
        }
    }

    /// Reads blocks that were not settled; those that are afterwards come from the scratch
    /// store instead.
    fn read_live(&self, offset: u64, buf: &mut [u8], read: &Read) -> Result<bool> {
        let len = len_of(buf);
        let inside = self.store.size().get().saturating_sub(offset).min(len);
        let (live, cut) = buf.split_at_mut(index(inside));
        cut.fill(0);
        let done = if live.is_empty() { Ok(true) } else { read(&*self.store, offset, live) };
        match done {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // The volume was cut meanwhile.
            Err(error) if error.kind() == ErrorKind::OutOfRange => {
                return self.read_with(offset, buf, read);
            }
            Err(error) => return Err(error),
        }
        let touched = blocks(offset, len);
        let mut next = self.settled.next_set(touched.clone());
        while let Some(block) = next {
            let from = (block * BLOCK).max(offset);
            let to = ((block + 1) * BLOCK).min(offset + len);
            let part = &mut buf[index(from - offset)..index(to - offset)];
            if !self.read_kept(from, part, read)? {
                return Ok(false);
            }
            next = self.settled.next_set(block + 1..touched.end);
        }
        Ok(true)
    }

    fn kept_extents(&self, range: Range<u64>, list: &mut ExtentList) -> Result<()> {
        let scratch = shared(&self.scratch);
        let len = range.end - range.start;
        let Some(store) = scratch.as_ref().and_then(Scratch::made) else {
            list.push(len, ExtentKind::Hole);
            return Ok(());
        };
        let mut told = 0;
        while told < len && !list.is_full() {
            for extent in store.extents(range.start + told, len - told, 1024)? {
                list.push(extent.len, extent.kind);
                told += extent.len;
            }
        }
        Ok(())
    }

    /// Lists what was live of blocks that were not settled. One that is afterwards counts as
    /// data: its hole may be newer than the view.
    fn live_extents(&self, range: Range<u64>, list: &mut ExtentList) -> Result<()> {
        let mut at = range.start;
        while at < range.end && !list.is_full() {
            let inside = self.store.size().get().clamp(at, range.end);
            let mut found =
                if inside > at { self.store.extents(at, inside - at, 1024)? } else { Vec::new() };
            if inside < range.end && found.iter().map(|e| e.len).sum::<u64>() == inside - at {
                found.push(Extent { len: range.end - inside, kind: ExtentKind::Hole });
            }
            for Extent { len, kind } in found {
                let end = at + len;
                while at < end {
                    let block = at / BLOCK;
                    let last = blocks(at, end - at).end;
                    let (settled, until) = self.settled.run(block..last);
                    let to = (until * BLOCK).min(end);
                    list.push(to - at, if settled { ExtentKind::Data } else { kind });
                    at = to;
                }
            }
        }
        Ok(())
    }
}

type Read<'a> = dyn Fn(&dyn Store, u64, &mut [u8]) -> Result<bool> + 'a;

/// Shows the bytes of the freeze.
impl ReadStore for Frozen {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, len_of(buf), self.size)?;
        self.check()?;
        self.wait_quiet();
        self.read_with(offset, buf, &|store, at, part| store.read_at(at, part).map(|()| true))?;
        // A view that was lost meanwhile did not keep the changed blocks.
        self.check()
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        check_range(offset, len_of(buf), self.size)?;
        self.check()?;
        if !self.try_quiet() {
            return Ok(false);
        }
        let done = self.read_with(offset, buf, &|store, at, part| store.try_read_at(at, part))?;
        self.check()?;
        Ok(done)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        check_range(offset, len, self.size)?;
        self.check()?;
        self.wait_quiet();
        let mut list = ExtentList::new(max);
        let (mut at, end) = (offset, offset + len);
        while at < end && !list.is_full() {
            let (block, last) = (at / BLOCK, end.div_ceil(BLOCK));
            let (settled, until) = self.settled.run(block..last);
            let to = (until * BLOCK).min(end);
            match settled {
                true => self.kept_extents(at..to, &mut list)?,
                false => self.live_extents(at..to, &mut list)?,
            }
            at = to;
        }
        self.check()?;
        Ok(list.into_vec())
    }

    /// Returns what the view takes beyond its volume.
    fn allocated(&self) -> Result<Bytes> {
        match shared(&self.scratch).as_ref().and_then(Scratch::made) {
            Some(store) => store.allocated(),
            None => Ok(Bytes::ZERO),
        }
    }
}

/// Calls `call` with each stretch of data in a range of a store.
pub(super) fn for_each_data(
    store: &dyn Store,
    range: Range<u64>,
    mut call: impl FnMut(Range<u64>),
) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        for extent in store.extents(at, range.end - at, EXTENTS)? {
            if extent.kind == ExtentKind::Data {
                call(at..at + extent.len);
            }
            at += extent.len;
        }
    }
    Ok(())
}
