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
//! | `sums/` | the CRC-32 of each block of 4 KiB, sparse like the bytes (`block`); newer ones are in memory (`cache`) |
//! | `open/` | the list of open regions (`log`) |
//!
//! A write changes two files, and a crash can keep either change. A *sealed* region has durable bytes and
//! durable checksums that agree. Before its first write it is *opened*: it goes on a list, durably. After a
//! crash, the checksums of open regions are *unknown*: a crash must never make a good block look damaged. They are
//! computed anew from the bytes, which accepts damage that happened to these regions since they were opened. The
//! list works like the bitmap mode of dm-integrity. See `regions` for how they are sealed.
//!
//! A sync does not wait for the checksums of open regions. One sync in 256 also seals regions, which takes two
//! more syncs, and the first write to a sealed region waits for one small sync.
//!
//! The checksum is the CRC-32 of Ethernet, as in `meta.json`, and not CRC-32C: both find any three changed
//! bits in a block of 4 KiB and all bursts up to 32 bits, and both are computed by instructions of the
//! processor.
//!
//! Reads take no lock. A read beside a write of the same block can find bytes and checksum of different
//! writes. It then reads once more with the lock of the chunk's changes.

mod block;
mod cache;
mod change;
mod damage;
mod extents;
mod files;
mod log;
mod read;
mod rebuild;
mod regions;
mod scrub;

pub use block::BLOCK;
pub(crate) use files::{FileSums, Shares, missing, remove};
pub(crate) use scrub::told;
pub use scrub::{DamagedRange, Scrub};

use crate::pieces::{index, len_of};
use crate::store::{Extent, ExtentKind, ExtentList, Store, check_range};
use crate::sync::{locked, shared};
use crate::{Result, StoreError};
use block::{CHUNK, parts};
use cache::Cached;
use change::Content;
use damage::Damaged;
use log::REGIONS;
use read::{Verdict, Wait};
use rebuild::Rebuild;
use regions::{Due, Pace, STRETCH, States};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};
use weir_units::Bytes;

/// The locks of changes. A chunk of the volume has one of them, and the chunks of a stretch have different ones.
const LOCKS: usize = 1024;

const _: () = assert!(
    (LOCKS as u64).is_multiple_of(STRETCH / CHUNK),
    "their order in a stretch is that of its chunks"
);

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
    /// Held over a change of bytes and checksums, so that they agree after it. A thread that holds several
    /// took them in the order of their chunks, all in one stretch.
    writing: [Mutex<()>; LOCKS],
    rebuild: Mutex<Rebuild>,
    /// A sync of the checksums failed, so the system may have dropped some. Until the next opening, regions
    /// with unknown checksums stay so.
    is_lost: AtomicBool,
    /// A thread computes unknown checksums, so syncs do not.
    computes_beside: AtomicBool,
    damaged: Damaged,
}

impl<S: Store> Summed<S> {
    /// Takes the bytes, the checksums and the list of open regions of a volume. `sums` must be as long as
    /// [`sums_len`] says.
    fn open(name: &str, data: S, sums: Cached<S>, list: S, pace: Pace) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            data,
            sums,
            states: States::load(list, pace)?,
            changing: RwLock::default(),
            resizing: Mutex::default(),
            writing: std::array::from_fn(|_| Mutex::default()),
            rebuild: Mutex::default(),
            is_lost: AtomicBool::new(false),
            computes_beside: AtomicBool::new(false),
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
        let sealed = self.seal(&due);
        // On a full disk, a flush has done its work: the bytes are durable, and the regions stay open. A
        // medium that fails is an error of the flush.
        if all || self.is_lost.load(Ordering::Acquire) { sealed } else { Ok(()) }
    }

    /// Seals regions whose bytes are durable.
    fn seal(&self, due: &[Due]) -> Result<()> {
        self.sums.flush()?;
        self.sums.medium().sync().inspect_err(|_| {
            self.is_lost.store(true, Ordering::Release);
            self.states.set_open_unknown();
        })?;
        self.states.seal(due)
    }

    /// Locks the chunk of `offset` for a change.
    fn lock_chunk(&self, offset: u64) -> MutexGuard<'_, ()> {
        locked(&self.writing[index(offset / CHUNK) % LOCKS])
    }

    /// Locks the chunks of a range within a stretch.
    fn lock_chunks(&self, range: Range<u64>) -> Vec<MutexGuard<'_, ()>> {
        let chunks = range.start / CHUNK..range.end.div_ceil(CHUNK);
        chunks.map(|chunk| self.lock_chunk(chunk * CHUNK)).collect()
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
            let _alone = self.lock_chunk(part.offset);
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
        if !self.computes_beside.load(Ordering::Acquire) {
            // Bytes that the medium cannot read now fail in a read; their region stays open.
            let _ = self.rebuild(PER_SYNC);
        }
        Ok(())
    }

    /// A sync that seals regions takes only those whose bytes were there when it began, so others go on beside it.
    fn syncs(&self) -> usize {
        self.data.syncs()
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
