//! The buffer pool: the pages in memory, the dirty ones, and those that are being read or written.
//! The state of a page takes a byte, and a bit for dirty, so that a sweep over all pages is a sweep
//! over memory.

use crate::table::Table;
use std::collections::HashMap;

/// In memory.
const RESIDENT: u8 = 1;
/// Being read from the file.
const READING: u8 = 2;
/// Being written to the file.
const WRITING: u8 = 4;
/// Used since the clock hand passed.
const USED: u8 = 8;

/// The state of a page at an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It is in memory.
    Ready,
    /// It is being read or written.
    Busy,
    /// It must be read.
    Missing,
}

/// The pages of a database.
#[derive(Debug)]
pub(crate) struct Pages {
    state: Table<u8>,
    dirty: Table<u64, 64>,
    dirty_count: u64,
    /// The number of writes of each page, modulo 256.
    written: Table<u8>,
    /// All pages fit in memory, so the clock hand is not needed.
    all_fit: bool,
    /// The pages in memory, in the order of the clock hand, if not all fit.
    frames: Vec<u32>,
    hand: usize,
    capacity: usize,
    resident: usize,
    /// Pages that are being read.
    reading: usize,
    /// A user waits for memory.
    wanted: bool,
    evicted: u64,
    /// New pages in memory, by chunk of the tables. A chunk without pages in memory is dropped, so
    /// that the size of the tables is bounded by that of the memory.
    new: HashMap<usize, u32>,
}

/// Maximum number of pages that the clock hand passes without evicting one. The buffer pool then
/// exceeds its size by a page.
const REACH: usize = 64;

impl Pages {
    /// Makes a buffer pool of `capacity` pages for a database of `count` pages, which may get new
    /// ones if it `grows`. A `warm` one starts full.
    pub(crate) fn new(count: u32, grows: bool, capacity: u64, warm: bool) -> Self {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        let mut pages = Self {
            state: Table::new(count as usize),
            dirty: Table::new((count as usize).div_ceil(64)),
            dirty_count: 0,
            written: Table::new(count as usize),
            all_fit: capacity >= count as usize && !grows,
            frames: Vec::new(),
            hand: 0,
            capacity,
            resident: 0,
            reading: 0,
            wanted: false,
            evicted: 0,
            new: HashMap::new(),
        };
        if warm {
            (0..count).take(capacity).for_each(|page| pages.enter(page));
        }
        pages
    }

    /// Returns whether memory has room for `more` pages, in addition to those that are being read.
    pub(crate) fn has_room_for(&self, more: u32) -> bool {
        self.resident + self.reading + more as usize <= self.capacity
    }

    /// Accesses a page, to read or to `change` it.
    #[inline]
    pub(crate) fn want(&mut self, page: u32, change: bool) -> Lookup {
        let state = self.state.get_mut(page as usize);
        if *state & RESIDENT == 0 {
            return if *state & READING == 0 { Lookup::Missing } else { Lookup::Busy };
        }
        if change && *state & WRITING != 0 {
            return Lookup::Busy;
        }
        *state |= USED;
        Lookup::Ready
    }

    /// Marks a page as dirty. If it was clean, returns a mark of this change for
    /// [`is_dirty_since`](Self::is_dirty_since).
    #[inline]
    pub(crate) fn mark_dirty(&mut self, page: u32) -> Option<u8> {
        let (word, bit) = (self.dirty.get_mut(page as usize / 64), 1 << (page % 64));
        let was_clean = *word & bit == 0;
        self.dirty_count += u64::from(was_clean);
        *word |= bit;
        was_clean.then(|| self.written.get(page as usize))
    }

    /// Returns whether a page is dirty and was not written since it became dirty.
    pub(crate) fn is_dirty_since(&self, page: u32, mark: u8) -> bool {
        self.is_dirty(page) && self.written.get(page as usize) == mark
    }

    /// Returns whether a page is dirty and not being written.
    pub(crate) fn can_go(&self, page: u32) -> bool {
        self.is_dirty(page) && self.state.get(page as usize) & WRITING == 0
    }

    /// Returns whether a page is neither in memory nor being read.
    pub(crate) fn is_absent(&self, page: u32) -> bool {
        self.state.get(page as usize) & (RESIDENT | READING) == 0
    }

    /// Puts a new page into memory, without a read.
    pub(crate) fn create(&mut self, page: u32) {
        self.enter(page);
    }

    /// Evicts clean pages until another page may enter memory. Returns whether it may; memory may
    /// exceed its size by a few pages.
    pub(crate) fn make_room(&mut self) -> bool {
        let most = self.capacity.saturating_add(REACH.max(self.capacity / 64));
        while self.resident + self.reading >= most && self.evict() {}
        self.resident + self.reading < most
    }

    /// Notes whether a user waits for memory.
    pub(crate) fn set_wanted(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Returns whether memory is full of dirty pages.
    pub(crate) fn is_pressed(&self) -> bool {
        self.resident > self.capacity || self.wanted
    }

    /// Notes that a page is being read.
    pub(crate) fn begin_read(&mut self, page: u32) {
        *self.state.get_mut(page as usize) |= READING;
        self.reading += 1;
    }

    /// Notes that a page was read.
    pub(crate) fn end_read(&mut self, page: u32) {
        *self.state.get_mut(page as usize) &= !READING;
        self.reading -= 1;
        self.enter(page);
    }

    fn enter(&mut self, page: u32) {
        if !self.all_fit {
            // More than one page, if there was no room for earlier ones.
            while self.resident >= self.capacity && self.evict() {}
            self.frames.push(page);
            if let Some(chunk) = self.state.chunk_of(page as usize) {
                *self.new.entry(chunk).or_default() += 1;
            }
        }
        self.resident += 1;
        *self.state.get_mut(page as usize) |= RESIDENT | USED;
    }

    /// Evicts a clean page that was not used for a round of the clock hand, if there is one in its
    /// reach. If most pages are dirty, memory grows until they are written.
    fn evict(&mut self) -> bool {
        let mut reach = REACH.min(2 * self.frames.len());
        while reach > 0 {
            if self.hand >= self.frames.len() {
                self.hand = 0;
            }
            let page = self.frames[self.hand];
            let is_dirty = self.is_dirty(page);
            let state = self.state.get_mut(page as usize);
            let pinned = is_dirty || *state & WRITING != 0;
            if !pinned && *state & USED == 0 {
                self.frames.swap_remove(self.hand);
                *state = 0;
                self.resident -= 1;
                self.evicted += 1;
                self.forget_new(page as usize);
                return true;
            }
            *state &= !USED;
            reach -= usize::from(pinned);
            self.hand += 1;
        }
        false
    }

    /// Drops a chunk of the tables when its last new page has left memory. (A chunk of `dirty` has
    /// 64 times as many pages, in a bit each.)
    fn forget_new(&mut self, page: usize) {
        let Some(chunk) = self.state.chunk_of(page) else { return };
        let Some(count) = self.new.get_mut(&chunk) else { return };
        *count -= 1;
        // New pages are never read, so none is being read.
        if *count == 0 {
            self.new.remove(&chunk);
            self.state.forget(page);
            self.written.forget(page);
        }
    }

    pub(crate) fn is_dirty(&self, page: u32) -> bool {
        self.dirty.get(page as usize / 64) >> (page % 64) & 1 == 1
    }

    /// Starts the write of a dirty page in its present state.
    pub(crate) fn begin_write(&mut self, page: u32) {
        *self.dirty.get_mut(page as usize / 64) &= !(1 << (page % 64));
        self.dirty_count -= 1;
        let written = self.written.get_mut(page as usize);
        *written = written.wrapping_add(1);
        *self.state.get_mut(page as usize) |= WRITING;
    }

    /// Notes that a page was written.
    pub(crate) fn end_write(&mut self, page: u32) {
        *self.state.get_mut(page as usize) &= !WRITING;
    }

    /// Returns the number of pages in memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident
    }

    /// Returns the number of chunks of the tables.
    #[cfg(test)]
    pub(crate) fn pieces(&self) -> usize {
        self.state.pieces().max(self.written.pieces())
    }

    /// Returns the number of evicted pages.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the number of dirty pages.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const COUNT: u32 = 24;
    const CAPACITY: usize = 6;

    #[derive(Debug, Clone)]
    enum Op {
        Want { page: u32, change: bool },
        Read(u32),
        BeginWrite(u32),
        EndWrite(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        let page = 0..COUNT;
        prop_oneof![
            4 => (page.clone(), any::<bool>()).prop_map(|(page, change)| Op::Want { page, change }),
            2 => page.clone().prop_map(Op::Read),
            1 => page.clone().prop_map(Op::BeginWrite),
            1 => page.prop_map(Op::EndWrite),
        ]
    }

    /// A simple model of the pages.
    #[derive(Default)]
    struct Kept {
        reading: BTreeSet<u32>,
        writing: BTreeSet<u32>,
        dirty: BTreeSet<u32>,
    }

    impl Kept {
        fn act(&mut self, pages: &mut Pages, op: &Op) {
            match *op {
                Op::Want { page, change } => match pages.want(page, change) {
                    Lookup::Missing => {
                        assert!(!self.reading.contains(&page), "page {page} is read twice");
                        pages.begin_read(page);
                        self.reading.insert(page);
                    }
                    Lookup::Busy => {
                        let out = change && self.writing.contains(&page);
                        assert!(out || self.reading.contains(&page), "page {page} is not busy");
                    }
                    Lookup::Ready if change => {
                        assert_eq!(pages.mark_dirty(page).is_some(), self.dirty.insert(page));
                    }
                    Lookup::Ready => {}
                },
                Op::Read(page) if self.reading.remove(&page) => pages.end_read(page),
                Op::BeginWrite(from) => {
                    let first = (from..COUNT).find(|page| pages.is_dirty(*page));
                    assert_eq!(first, self.dirty.range(from..).next().copied());
                    if let Some(page) = first.filter(|page| pages.can_go(*page)) {
                        pages.begin_write(page);
                        self.dirty.remove(&page);
                        self.writing.insert(page);
                    }
                }
                Op::EndWrite(page) if self.writing.remove(&page) => pages.end_write(page),
                Op::Read(_) | Op::EndWrite(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn dirty_pages_are_never_lost(ops in prop::collection::vec(op(), 1..400)) {
            let mut pages = Pages::new(COUNT, false, CAPACITY as u64, false);
            let mut kept = Kept::default();
            for op in &ops {
                kept.act(&mut pages, op);
                prop_assert_eq!(pages.dirty(), kept.dirty.len() as u64);
                for page in kept.dirty.union(&kept.writing) {
                    prop_assert_eq!(pages.want(*page, false), Lookup::Ready);
                }
                let there = (0..COUNT).filter(|page| !pages.is_absent(*page)).count();
                prop_assert_eq!(pages.resident() + kept.reading.len(), there);
                let pinned = kept.dirty.union(&kept.writing).count();
                prop_assert!(pages.resident() <= CAPACITY + pinned, "{} pages", pages.resident());
            }
        }
    }
}
