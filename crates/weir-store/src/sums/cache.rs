//! Checksums in memory, so that a request needs no system call for them.
//!
//! ```text
//!   read ---> page in memory? --no--> read from the medium
//!   write --> page in memory, dirty --> stored by a seal, or when its place is needed
//! ```
//!
//! A checksum changes only in an open region, whose checksums a crash makes unknown. It therefore need not be on
//! the medium before its region is sealed.
//!
//! Volumes of one data directory share the [`Room`] for pages. Each shard may always keep one page.
//!
//! A shard is locked over the transfer of a page that it needs the place of, or has to store. Callers that must not
//! wait for a medium give up if they find it locked.

use crate::Result;
use crate::pieces::{index, len_of, pieces};
use crate::store::{Extent, ExtentKind, Store};
use crate::sync::locked;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use weir_units::Bytes;

/// The bytes of checksums in a page: those of 4 MiB, or of four blocks in tests.
const PAGE: usize = if cfg!(test) { 16 } else { 4096 };
const PAGE_LEN: u64 = PAGE as u64;

/// Parts of the cache with a lock each.
const SHARDS: u64 = if cfg!(test) { 2 } else { 64 };

/// The most pages of a shard: 16 MiB of all, which are the checksums of 16 GiB.
const MOST: usize = if cfg!(test) { 2 } else { 64 };

/// The most pages of all volumes that share a room: 64 MiB.
const IN_ROOM: usize = if cfg!(test) { 3 } else { 16 << 10 };

/// The pages that caches may still take, beside the first one of each shard.
#[derive(Debug)]
pub(super) struct Room(AtomicUsize);

impl Default for Room {
    fn default() -> Self {
        Self(AtomicUsize::new(IN_ROOM))
    }
}

impl Room {
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, pages: usize) {
        self.0.fetch_add(pages, Ordering::Relaxed);
    }
}

/// The checksums of a volume, on a medium and partly in memory.
#[derive(Debug)]
pub(super) struct Cached<S> {
    medium: S,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug)]
struct Shard {
    room: Arc<Room>,
    /// The numbers of the pages, apart from them so that a search stays in few lines of memory.
    numbers: Vec<u64>,
    pages: Vec<Page>,
    /// The place at which the search for one to give away goes on.
    hand: usize,
    /// Counts the pages that were stored or removed, and so may differ from what was read of the medium before.
    stored: u64,
}

#[derive(Debug)]
struct Page {
    /// Zeros behind the end of the medium.
    bytes: Box<[u8; PAGE]>,
    is_dirty: bool,
    was_used: bool,
}

impl Page {
    fn empty() -> Self {
        Self { bytes: Box::new([0; PAGE]), is_dirty: false, was_used: true }
    }
}

impl Shard {
    fn new(room: Arc<Room>) -> Self {
        Self { room, numbers: Vec::new(), pages: Vec::new(), hand: 0, stored: 0 }
    }

    /// Takes the room for one more page. Returns whether there is any; if not, a page must be evicted.
    fn take_room(&self) -> bool {
        self.pages.is_empty() || self.pages.len() < MOST && self.room.take()
    }

    fn find(&mut self, number: u64) -> Option<&mut Page> {
        let at = self.numbers.iter().position(|own| *own == number)?;
        let page = &mut self.pages[at];
        page.was_used = true;
        Some(page)
    }

    /// Removes pages, whether or not they are stored.
    fn remove(&mut self, is_removed: impl Fn(u64) -> bool) {
        let before = self.taken();
        let mut at = 0;
        while at < self.numbers.len() {
            if is_removed(self.numbers[at]) {
                self.give_away(at);
            } else {
                at += 1;
            }
        }
        self.room.give_back(before - self.taken());
        self.stored += 1;
    }

    /// Returns the pages that were taken of the room.
    fn taken(&self) -> usize {
        self.pages.len().saturating_sub(1)
    }

    fn keep(&mut self, number: u64, page: Page) {
        self.numbers.push(number);
        self.pages.push(page);
    }

    /// Keeps a page if that stores no other one.
    fn keep_if_room(&mut self, number: u64, page: Page) {
        if !self.take_room() {
            let at = self.victim();
            if self.pages[at].is_dirty {
                return;
            }
            self.give_away(at);
        }
        self.keep(number, page);
    }

    fn give_away(&mut self, at: usize) {
        self.numbers.swap_remove(at);
        self.pages.swap_remove(at);
    }

    /// Returns the place of a page to give away: one that was not used since the last search came by, and rather
    /// a clean one.
    fn victim(&mut self) -> usize {
        for is_clean in [true, false] {
            for _ in 0..2 * self.pages.len() {
                self.hand = (self.hand + 1) % self.pages.len();
                let page = &mut self.pages[self.hand];
                let was_used = std::mem::take(&mut page.was_used);
                let is_kept = was_used || is_clean && page.is_dirty;
                if !is_kept {
                    return self.hand;
                }
            }
        }
        self.hand
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.room.give_back(self.taken());
    }
}

impl<S: Store> Cached<S> {
    pub(super) fn new(medium: S, room: &Arc<Room>) -> Self {
        let shard = |_| Mutex::new(Shard::new(Arc::clone(room)));
        Self { medium, shards: (0..SHARDS).map(shard).collect() }
    }

    /// Returns the medium, which may lack what was written last.
    pub(super) fn medium(&self) -> &S {
        &self.medium
    }

    fn shard(&self, page: u64) -> &Mutex<Shard> {
        &self.shards[index(page % SHARDS)]
    }

    /// Reads checksums, from byte `at` of the file on.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> Result<()> {
        pieces(at, len_of(out), PAGE_LEN).try_for_each(|piece| {
            let out = &mut out[piece.in_request()];
            let copy = |page: &mut Page| out.copy_from_slice(&page.bytes[piece.in_unit()]);
            self.on_page(piece.unit, false, copy)
        })
    }

    /// Does what [`Cached::read`] does, or returns `false` if it would have to wait.
    pub(super) fn try_read(&self, at: u64, out: &mut [u8]) -> Result<bool> {
        for piece in pieces(at, len_of(out), PAGE_LEN) {
            let mut shard = match self.shard(piece.unit).try_lock() {
                Ok(shard) => shard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(false),
            };
            let out = &mut out[piece.in_request()];
            if let Some(page) = shard.find(piece.unit) {
                out.copy_from_slice(&page.bytes[piece.in_unit()]);
                continue;
            }
            let mut page = Page::empty();
            let len = self.len_in_medium(piece.unit);
            if !self.medium.try_read_at(piece.unit * PAGE_LEN, &mut page.bytes[..len])? {
                return Ok(false);
            }
            out.copy_from_slice(&page.bytes[piece.in_unit()]);
            shard.keep_if_room(piece.unit, page);
        }
        Ok(true)
    }

    /// Changes checksums. Not on the medium before [`Cached::flush`].
    pub(super) fn write(&self, at: u64, sums: &[u8]) -> Result<()> {
        pieces(at, len_of(sums), PAGE_LEN).try_for_each(|piece| {
            self.on_page(piece.unit, true, |page| {
                page.bytes[piece.in_unit()].copy_from_slice(&sums[piece.in_request()]);
                page.is_dirty = true;
            })
        })
    }

    /// Makes checksums zero, on the medium at once, except for parts of pages that may be trimmed. No other call
    /// may change checksums of the range meanwhile.
    pub(super) fn zero(&self, at: u64, len: u64, may_trim: bool) -> Result<()> {
        let mut whole = None;
        for piece in pieces(at, len, PAGE_LEN) {
            if piece.is_whole(PAGE_LEN) {
                let (first, count) = whole.get_or_insert((piece.unit, 0));
                *count = piece.unit + 1 - *first;
                continue;
            }
            self.on_page(piece.unit, true, |page| {
                page.bytes[piece.in_unit()].fill(0);
                page.is_dirty = true;
            })?;
            if !may_trim {
                self.flush_page(piece.unit)?;
            }
        }
        let Some((first, count)) = whole else { return Ok(()) };
        let forget = || (first..first + count).for_each(|page| self.forget(page));
        // Before, so that nobody stores them afterwards, and then what was read meanwhile.
        forget();
        let done = self.medium.write_zeroes(first * PAGE_LEN, count * PAGE_LEN, may_trim);
        forget();
        done
    }

    /// Stores each page that can be stored. Returns the first error.
    pub(super) fn flush(&self) -> Result<()> {
        let mut done = Ok(());
        for shard in &self.shards {
            let dirty: Vec<u64> = {
                let shard = locked(shard);
                let pages = shard.numbers.iter().zip(&shard.pages);
                pages.filter(|(_, page)| page.is_dirty).map(|(number, _)| *number).collect()
            };
            for page in dirty {
                done = done.and(self.flush_page(page));
            }
        }
        done
    }

    /// Changes the length, with no change of checksums meanwhile. New ones are zeros.
    pub(super) fn resize(&self, len: u64) -> Result<()> {
        if len >= self.medium.size().get() {
            return self.medium.resize(Bytes::new(len));
        }
        let mut shards: Vec<_> = self.shards.iter().map(locked).collect();
        let (kept, in_last) = (len.div_ceil(PAGE_LEN), len % PAGE_LEN);
        for shard in &mut shards {
            shard.remove(|page| page >= kept);
        }
        if in_last > 0 {
            let page = len / PAGE_LEN;
            let page = shards[index(page % SHARDS)].find(page);
            page.into_iter().for_each(|page| page.bytes[index(in_last)..].fill(0));
        }
        self.medium.resize(Bytes::new(len))
    }

    /// Returns the first extent of a range. Checksums that are only in memory are data.
    pub(super) fn first_extent(&self, at: u64, len: u64) -> Result<Option<Extent>> {
        let range = at / PAGE_LEN..(at + len).div_ceil(PAGE_LEN);
        // Before the medium is asked, since a page may be stored meanwhile.
        let dirty = self.shards.iter().filter_map(|shard| {
            let shard = locked(shard);
            let pages = shard.numbers.iter().zip(&shard.pages).filter(|(_, page)| page.is_dirty);
            pages.map(|(number, _)| *number).filter(|number| range.contains(number)).min()
        });
        let dirty = dirty.min();
        let first = self.medium.extents(at, len, 1)?.first().copied();
        let Some(extent) = first.filter(|extent| extent.kind == ExtentKind::Hole) else {
            return Ok(first);
        };
        let Some(dirty) = dirty.filter(|page| page * PAGE_LEN < at + extent.len) else {
            return Ok(first);
        };
        let start = dirty * PAGE_LEN;
        Ok(Some(match start > at {
            true => Extent { len: start - at, ..extent },
            false => {
                let end = (start + PAGE_LEN).min(at + len);
                Extent { len: end - at, kind: ExtentKind::Data }
            }
        }))
    }

    fn forget(&self, page: u64) {
        locked(self.shard(page)).remove(|own| own == page);
    }

    fn flush_page(&self, number: u64) -> Result<()> {
        let mut shard = locked(self.shard(number));
        let Some(at) = shard.numbers.iter().position(|own| *own == number) else { return Ok(()) };
        self.store(&mut shard, at)
    }

    /// Calls `act` on a page, and keeps it in memory.
    fn on_page<T>(
        &self,
        number: u64,
        is_change: bool,
        act: impl FnOnce(&mut Page) -> T,
    ) -> Result<T> {
        let mut shard = locked(self.shard(number));
        if let Some(page) = shard.find(number) {
            return Ok(act(page));
        }
        let stored = shard.stored;
        drop(shard);
        // Without the lock, since the medium may be slow.
        let mut page = self.load(number)?;
        let mut shard = locked(self.shard(number));
        if let Some(page) = shard.find(number) {
            return Ok(act(page));
        }
        if shard.stored != stored {
            page = self.load(number)?;
        }
        match self.make_room(&mut shard) {
            Ok(()) => {}
            Err(error) if is_change => return Err(error),
            // It is the medium's, and the next read loads it again.
            Err(_) => return Ok(act(&mut page)),
        }
        let done = act(&mut page);
        shard.keep(number, page);
        Ok(done)
    }

    /// Takes the room for one more page, or evicts one.
    fn make_room(&self, shard: &mut Shard) -> Result<()> {
        if shard.take_room() {
            return Ok(());
        }
        let victim = shard.victim();
        let Err(error) = self.store(shard, victim) else {
            shard.give_away(victim);
            return Ok(());
        };
        // A full disk still takes pages whose blocks are allocated.
        for at in 0..shard.pages.len() {
            if at != victim && self.store(shard, at).is_ok() {
                shard.give_away(at);
                return Ok(());
            }
        }
        Err(error)
    }

    /// Stores a page of a shard if it is dirty.
    fn store(&self, shard: &mut Shard, at: usize) -> Result<()> {
        let (number, page) = (shard.numbers[at], &mut shard.pages[at]);
        if !page.is_dirty {
            return Ok(());
        }
        shard.stored += 1;
        let len = self.len_in_medium(number);
        if len > 0 {
            self.medium.write_at(number * PAGE_LEN, &page.bytes[..len])?;
        }
        page.is_dirty = false;
        Ok(())
    }

    fn load(&self, number: u64) -> Result<Page> {
        let mut page = Page::empty();
        let len = self.len_in_medium(number);
        self.medium.read_at(number * PAGE_LEN, &mut page.bytes[..len])?;
        Ok(page)
    }

    /// Returns the number of bytes of a page that the medium has.
    fn len_in_medium(&self, page: u64) -> usize {
        index(self.medium.size().get().saturating_sub(page * PAGE_LEN).min(PAGE_LEN))
    }
}

#[cfg(test)]
impl<S> Cached<S> {
    pub(super) fn into_medium(self) -> S {
        self.medium
    }
}

#[cfg(test)]
mod tests;
