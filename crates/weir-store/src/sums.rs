//! Checksums of a volume's bytes, so that damage of the medium is an error and never wrong bytes.
//!
//! ```text
//!   write --> regions open? --> old bytes of partial blocks verified --> bytes --> checksums
//!   read ---> bytes, checksums --> equal? --yes--> answered
//!                                         --no---> once more, with no write in between; then an error
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `data/` | the bytes |
//! | `sums/` | the CRC-32 of each block of 4 KiB, sparse like the bytes (`block`) |
//! | `open/` | the list of open regions (`log`) |
//!
//! A write changes two files, and a crash can keep either change. A *sealed* region has durable bytes and
//! durable checksums that agree. Before its first write it is *opened*: it goes on a list, durably. After a
//! crash, the checksums of open regions are *unknown*: a crash must never make a good block look damaged. They are
//! computed anew from the bytes, which accepts damage that happened to these regions since they were opened. The
//! list works like the bitmap mode of dm-integrity. See `regions` for how they are sealed.
//!
//! A sync does not wait for the checksums of open regions. One sync in 64 also seals regions, which takes two
//! more syncs, and the first write to a sealed region waits for one small sync.
//!
//! The checksum is the CRC-32 of Ethernet, as in `meta.json`, and not CRC-32C: both find any three changed
//! bits in a block of 4 KiB and all bursts up to 32 bits, and both are computed by instructions of the
//! processor.
//!
//! Reads take no lock. A read beside a write of the same block can find bytes and checksum of different
//! writes. It then reads once more with the lock of the region's writes.

mod block;
mod cache;
mod damage;
mod files;
mod log;
mod rebuild;
mod regions;
mod scrub;

pub use block::BLOCK;
pub(crate) use files::{FileSums, OpeningBudget, remove};
pub(crate) use scrub::told;
pub use scrub::{DamagedRange, Scrub};

use crate::pieces::{index, len_of};
use crate::store::{Extent, ExtentKind, ExtentList, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{Result, StoreError};
use block::{Buffer, Part, SUM, SumsBuffer, append_sums, first_mismatch, parts, sum_of, sums_len};
use cache::Cached;
use damage::Damaged;
use log::REGIONS;
use rebuild::Rebuild;
use regions::{Due, Entered, Pace, STRETCH, States};
use std::ops::Range;
use std::sync::{Mutex, RwLock};
use weir_units::Bytes;

/// The locks of writes; a stretch of the volume has one of them.
const LOCKS: usize = 64;

/// The bytes whose checksums one sync computes anew after a crash.
const PER_SYNC: u64 = 8 << 20;

/// A [`Store`] that verifies what it reads.
#[derive(Debug)]
pub(crate) struct Summed<S: Store> {
    /// The volume's name, for messages.
    name: String,
    data: S,
    sums: Cached<S>,
    states: States<S>,
    /// Shared by what changes bytes, exclusive to a shrinking.
    changing: RwLock<()>,
    /// Held over a resize, so that two do not interleave.
    resizing: Mutex<()>,
    /// Held over a change of bytes and checksums, so that they agree after it.
    writing: [Mutex<()>; LOCKS],
    rebuild: Mutex<Rebuild>,
    damaged: Damaged,
}

/// The new content of a range.
#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    Bytes(&'a [u8]),
    /// Zeros, without space if it may be trimmed.
    Zeros {
        may_trim: bool,
    },
}

/// A choice: a read waits for the medium, or returns without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

impl<S: Store> Summed<S> {
    /// Takes the bytes, the checksums and the list of open regions of a volume. `sums` must be as long as
    /// [`sums_len`] says.
    fn open(name: &str, data: S, sums: S, list: S, pace: Pace) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            data,
            sums: Cached::new(sums),
            states: States::load(list, pace)?,
            changing: RwLock::default(),
            resizing: Mutex::default(),
            writing: std::array::from_fn(|_| Mutex::default()),
            rebuild: Mutex::default(),
            damaged: Damaged::default(),
        })
    }

    /// Returns the store of the bytes. Its changes must go through this.
    pub(crate) fn data(&self) -> &S {
        &self.data
    }

    /// Returns the number of reads, and of writes of parts of blocks, that failed on a damaged block.
    pub(crate) fn damaged_reads(&self) -> u64 {
        self.damaged.reads()
    }

    /// Returns the offsets of the blocks on which they failed.
    pub(crate) fn damaged_blocks(&self) -> Vec<u64> {
        self.damaged.blocks()
    }

    /// Has `tell` called with the error of each damaged block, once.
    pub(crate) fn on_damage(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        self.damaged.listen(tell);
    }

    /// Seals all regions, at an orderly end. Regions with unknown checksums stay open.
    pub(crate) fn close(&self) -> Result<()> {
        self.sync_and_seal(true)
    }

    /// Continues after an opening: makes the list of open regions durable, and computes some of their checksums.
    /// Returns what is left of the budget.
    fn resume(&self, budget: u64) -> Result<u64> {
        self.states.settle()?;
        // Checksums that cannot be computed now stay unknown. What was read for them is not known, either.
        Ok(self.rebuild(budget).unwrap_or(0))
    }

    /// Returns the most bytes that regions with unknown checksums can have.
    pub(crate) fn unknown_bytes(&self) -> u64 {
        let size = self.size().get();
        let per_region = STRETCH * size.div_ceil(STRETCH * REGIONS);
        size.min(self.states.unknown_in(size) * per_region)
    }

    fn sync_and_seal(&self, all: bool) -> Result<()> {
        let due = self.states.due(all);
        self.data.sync()?;
        if due.is_empty() {
            return Ok(());
        }
        // A flush has done its work: the bytes are durable, and the regions stay open.
        let sealed = self.seal(&due);
        if all { sealed } else { Ok(()) }
    }

    /// Seals regions whose bytes are durable.
    fn seal(&self, due: &[Due]) -> Result<()> {
        self.sums.flush()?;
        // After an error, the system may have dropped checksums.
        self.sums.medium().sync().inspect_err(|_| self.states.set_open_unknown())?;
        self.states.seal(due)
    }

    fn lock_of(&self, offset: u64) -> &Mutex<()> {
        &self.writing[index(offset / STRETCH) % LOCKS]
    }

    /// Reads the checksums of the blocks of a range into `sums`.
    fn read_sums(&self, first: u64, sums: &mut [u8], wait: Wait) -> Result<bool> {
        let at = first / BLOCK * SUM;
        match wait {
            Wait::Yes => self.sums.read(at, sums).map(|()| true),
            Wait::No => self.sums.try_read(at, sums),
        }
    }

    fn read_data(&self, offset: u64, buf: &mut [u8], wait: Wait) -> Result<bool> {
        match wait {
            Wait::Yes => self.data.read_at(offset, buf).map(|()| true),
            Wait::No => self.data.try_read_at(offset, buf),
        }
    }

    /// Reads a part, and the rest of its block if it is none as a whole. Returns the damage; `None` if
    /// that would have to wait.
    fn read_part(&self, part: Part, out: &mut [u8], wait: Wait) -> Result<Option<Verdict>> {
        let start = part.block_start();
        if !part.is_whole {
            let mut block: Buffer = [0; 4096];
            let len = index((self.size().get().max(part.offset + part.len) - start).min(BLOCK));
            let block = &mut block[..len];
            if !self.read_data(start, block, wait)? {
                return Ok(None);
            }
            let from = index(part.offset - start);
            out.copy_from_slice(&block[from..from + out.len()]);
            return self.compare(start, block, wait);
        }
        if !self.read_data(start, out, wait)? {
            return Ok(None);
        }
        self.compare(start, out, wait)
    }

    /// Compares the blocks from `start` on with their checksums.
    fn compare(&self, start: u64, data: &[u8], wait: Wait) -> Result<Option<Verdict>> {
        let mut sums: SumsBuffer = [0; 1024];
        let sums = &mut sums[..index(block::sums_of_len(data))];
        if !self.read_sums(start, sums, wait)? {
            return Ok(None);
        }
        Ok(Some(match first_mismatch(data, sums) {
            None => Verdict::Sound,
            Some((number, expected, found)) => {
                Verdict::Differs { block: start + number * BLOCK, expected, found }
            }
        }))
    }

    /// Reads a part that no write changes meanwhile, and fails if it is damaged. The lock of its writes is
    /// held.
    fn read_still(&self, part: Part, out: &mut [u8]) -> Result<()> {
        if self.states.is_unknown(part.offset) {
            return self.data.read_at(part.offset, out);
        }
        match self.read_part(part, out, Wait::Yes)? {
            Some(Verdict::Differs { block, expected, found }) => {
                let volume = self.name.clone();
                let error = StoreError::DamagedBlock { volume, offset: block, expected, found };
                self.damaged.count(block, &error);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Changes a range.
    fn change(&self, offset: u64, len: u64, content: Content) -> Result<()> {
        let _no_resize = shared(&self.changing);
        check_range(offset, len, self.size().get())?;
        if len == 0 {
            return Ok(());
        }
        let entered = self.states.enter(offset, len)?;
        let mut at = offset;
        while at < offset + len {
            let end = (offset + len).min((at / STRETCH + 1) * STRETCH);
            let content = match content {
                Content::Bytes(bytes) => {
                    Content::Bytes(&bytes[index(at - offset)..index(end - offset)])
                }
                zeros => zeros,
            };
            self.change_stretch(&entered, at..end, content)?;
            at = end;
        }
        Ok(())
    }

    /// Changes a range within one stretch.
    fn change_stretch(&self, entered: &Entered<S>, at: Range<u64>, content: Content) -> Result<()> {
        let _alone = locked(self.lock_of(at.start));
        let sums = self.new_sums(at.clone(), content)?;
        let changed = match content {
            Content::Bytes(bytes) => self.data.write_at(at.start, bytes),
            Content::Zeros { may_trim } => {
                self.data.write_zeroes(at.start, at.end - at.start, may_trim)
            }
        };
        // Zeros that take space reserve that of their checksums.
        let may_trim = matches!(content, Content::Zeros { may_trim: true });
        let stored = match &changed {
            Ok(()) => self.store_sums(&sums, may_trim),
            Err(_) => self.store_sums_of_changed(&sums),
        };
        let stored = stored.inspect_err(|_| entered.set_unknown(at.start));
        changed.and(stored)
    }

    /// Stores the checksums of those blocks that have their new bytes, after a change that failed. The others keep
    /// theirs: a checksum of the bytes that are there would also cover earlier damage.
    fn store_sums_of_changed(&self, sums: &[NewSums]) -> Result<()> {
        let size = self.size().get();
        for (at, new) in sums.iter().flat_map(NewSums::each) {
            let offset = at / SUM * BLOCK;
            let mut block: Buffer = [0; 4096];
            let block = &mut block[..index((size - offset).min(BLOCK))];
            if self.data.read_at(offset, block).is_ok() && sum_of(block) == new {
                self.sums.write(at, &new.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns the checksums of a range with new content. Old bytes that stay in its blocks are verified: a
    /// new checksum over damaged bytes would make them look sound.
    fn new_sums(&self, at: Range<u64>, content: Content) -> Result<Vec<NewSums>> {
        let mut sums = Vec::new();
        for part in parts(at.start, at.end - at.start) {
            let bytes = match content {
                Content::Bytes(bytes) => {
                    let from = index(part.offset - at.start);
                    Some(&bytes[from..from + index(part.len)])
                }
                Content::Zeros { .. } => None,
            };
            let first = part.offset / BLOCK * SUM;
            let len = part.len / BLOCK * SUM;
            let new = match bytes {
                None if part.is_whole => {
                    if let Some(NewSums::Zeros { len: before, .. }) = sums.last_mut() {
                        *before += len;
                        continue;
                    }
                    NewSums::Zeros { first, len }
                }
                Some(bytes) if part.is_whole => {
                    let mut sums = Vec::with_capacity(index(len));
                    append_sums(&mut sums, bytes);
                    NewSums::Of { first, sums }
                }
                _ => NewSums::Of { first, sums: self.merged(part, bytes)?.to_le_bytes().into() },
            };
            sums.push(new);
        }
        Ok(sums)
    }

    /// Returns the checksum of a block after a part of it has changed to `bytes`, or to zeros.
    fn merged(&self, part: Part, bytes: Option<&[u8]>) -> Result<u32> {
        let start = part.block_start();
        let len = (self.size().get() - start).min(BLOCK);
        let mut block: Buffer = [0; 4096];
        let block = &mut block[..index(len)];
        if part.len < len {
            self.read_still(Part { offset: start, len, is_whole: false }, block)?;
        }
        let changed = &mut block[index(part.offset - start)..][..index(part.len)];
        match bytes {
            Some(bytes) => changed.copy_from_slice(bytes),
            None => changed.fill(0),
        }
        Ok(sum_of(block))
    }

    fn store_sums(&self, sums: &[NewSums], may_trim: bool) -> Result<()> {
        sums.iter().try_for_each(|sums| match sums {
            NewSums::Zeros { first, len } => self.sums.zero(*first, *len, may_trim),
            NewSums::Of { first, sums } => self.sums.write(*first, sums),
        })
    }

    /// Resizes the volume by `resize`, which changes the bytes and the size.
    pub(crate) fn resized(&self, new: Bytes, resize: impl FnOnce(&S) -> Result<()>) -> Result<()> {
        let _alone = locked(&self.resizing);
        let (old, new) = (self.size().get(), new.get());
        if new >= old {
            // A shrinking that failed late may have left some behind the end.
            self.sums.resize(sums_len(old))?;
            self.sums.resize(sums_len(new))?;
            // Writes go on, since this waits for syncs. A block that the end cuts counts as filled up with zeros,
            // so its checksum is that of the longer one, too.
            return resize(&self.data);
        }
        let _no_change = exclusive(&self.changing);
        let entered = self.states.enter(new, old - new)?;
        let block = new / BLOCK * BLOCK;
        let last = match new > block {
            true => {
                let part = Part { offset: new, len: old.min(block + BLOCK) - new, is_whole: false };
                Some(self.merged(part, None)?)
            }
            false => None,
        };
        let done = resize(&self.data).and_then(|()| {
            if let Some(last) = last {
                self.sums.write(block / BLOCK * SUM, &last.to_le_bytes())?;
            }
            self.sums.resize(sums_len(self.size().get()))
        });
        // Without a new size, nothing has changed.
        done.inspect_err(|_| {
            if self.size().get() != old {
                entered.set_unknown(block);
            }
        })
    }

    /// Appends the blocks of a hole that have checksums as data, since bytes of them are missing.
    fn extents_of_hole(&self, hole: Range<u64>, list: &mut ExtentList) -> Result<()> {
        let first = hole.start / BLOCK * SUM;
        let len = hole.end.div_ceil(BLOCK) * SUM - first;
        let mut listed = hole.start;
        // Lists the bytes up to the block of the checksum at `sum`.
        let mut push = |sum: u64, kind| {
            let to = (sum / SUM * BLOCK).clamp(hole.start, hole.end);
            list.push(to - listed, kind);
            listed = to;
            list.is_full()
        };
        let (mut at, last) = (first, first + len);
        while at < last {
            // One after the other, so that a list that is full ends the work.
            let Some(extent) = self.sums.first_extent(at, last - at)? else { break };
            let end = at + extent.len;
            if extent.kind == ExtentKind::Hole {
                // A hole need not end at a checksum; the rest of that one is data.
                if push(end, ExtentKind::Hole) {
                    return Ok(());
                }
                at = end;
                continue;
            }
            let mut buffer = [0; 4096];
            at -= at % SUM;
            while at < end.next_multiple_of(SUM) {
                let stored = &mut buffer[..index((end.next_multiple_of(SUM) - at).min(BLOCK))];
                self.sums.read(at, stored)?;
                for sum in stored.chunks(4) {
                    let kind = match block::decode(sum) {
                        0 => ExtentKind::Hole,
                        _ => ExtentKind::Data,
                    };
                    at += SUM;
                    if push(at, kind) {
                        return Ok(());
                    }
                }
            }
            at = end;
        }
        Ok(())
    }
}

/// The checksums of consecutive blocks, from byte `first` of the file on.
#[derive(Debug)]
enum NewSums {
    Zeros { first: u64, len: u64 },
    Of { first: u64, sums: Vec<u8> },
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    Sound,
    Differs { block: u64, expected: u32, found: u32 },
}

impl NewSums {
    /// Returns each checksum with its place in the file.
    fn each(&self) -> impl Iterator<Item = (u64, u32)> {
        let (first, len, sums) = match self {
            Self::Zeros { first, len } => (*first, *len, &[][..]),
            Self::Of { first, sums } => (*first, len_of(sums), &sums[..]),
        };
        let sums = sums.chunks(4).map(block::decode).chain(std::iter::repeat(0));
        (first..first + len).step_by(4).zip(sums)
    }
}

impl<S: Store> Store for Summed<S> {
    fn size(&self) -> Bytes {
        self.data.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, len_of(buf), self.size().get())?;
        for part in parts(offset, len_of(buf)) {
            let out = &mut buf[index(part.offset - offset)..][..index(part.len)];
            if let Ok(Some(Verdict::Sound)) = self.read_part(part, out, Wait::Yes) {
                continue;
            }
            // Beside a write or a resize, perhaps. The medium's own errors come again.
            let _no_resize = shared(&self.changing);
            check_range(offset, part.offset + part.len - offset, self.size().get())?;
            let _alone = locked(self.lock_of(part.offset));
            self.read_still(part, out)?;
        }
        Ok(())
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        check_range(offset, len_of(buf), self.size().get())?;
        for part in parts(offset, len_of(buf)) {
            let out = &mut buf[index(part.offset - offset)..][..index(part.len)];
            // The second look waits for writes.
            let Ok(Some(Verdict::Sound)) = self.read_part(part, out, Wait::No) else {
                return Ok(false);
            };
        }
        Ok(true)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(offset, len_of(data), Content::Bytes(data))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.change(offset, len, Content::Zeros { may_trim })
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.write_zeroes(offset, len, true)
    }

    /// Makes the bytes durable, and in some of the calls also the checksums of regions that were not written
    /// for a while. After a crash it also computes a few of those that are unknown.
    fn sync(&self) -> Result<()> {
        match self.states.begin_sync() {
            true => self.sync_and_seal(false)?,
            false => self.data.sync()?,
        }
        // Bytes that the medium cannot read now fail in a read; their region stays open.
        let _ = self.rebuild(PER_SYNC);
        Ok(())
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.resized(new, |data| data.resize(new))
    }

    /// Lists blocks that have a checksum as data also where their bytes are gone, since a hole would be
    /// taken for zeros.
    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        check_range(offset, len, self.size().get())?;
        let mut list = ExtentList::new(max);
        let mut at = offset;
        // Holes that become data can join their neighbours, so the list may have room for more.
        while at < offset + len && !list.is_full() {
            for extent in self.data.extents(at, offset + len - at, max)? {
                let end = at + extent.len;
                match extent.kind {
                    ExtentKind::Data => list.push(extent.len, extent.kind),
                    ExtentKind::Hole => self.extents_of_hole(at..end, &mut list)?,
                }
                at = end;
                if list.is_full() {
                    break;
                }
            }
        }
        Ok(list.into_vec())
    }

    fn allocated(&self) -> Result<Bytes> {
        Ok(Bytes::new(self.data.allocated()?.get() + self.sums.medium().allocated()?.get()))
    }
}

#[cfg(test)]
mod tests;
