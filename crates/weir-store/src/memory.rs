//! Bytes in memory, taken in pages of 4 KiB when they are written.
//!
//! ```text
//! offset --> leaf number --> shard (RwLock) --> leaf, 2 MiB: 512 page slots --> page, 4 KiB
//! ```
//!
//! Leaves are found by hashing, so an empty volume of any size has none. The
//! shards exist for threads: readers never wait for readers, and writers only
//! for who is in a leaf of the same shard.

use crate::Result;
use crate::pieces::{index, len_of, pieces};
use crate::store::{Extent, ExtentKind, ExtentList, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use weir_units::Bytes;

const PAGE: usize = 4096;
const PAGE_LEN: u64 = PAGE as u64;
const PAGES: usize = 512;
const LEAF_LEN: u64 = PAGE_LEN * PAGES as u64;
const SHARDS: u64 = 64;

/// Up to this many leaves a range is looked up leaf by leaf; for more, the
/// leaves that exist are listed instead (a trim of 32 TiB meets 16 million).
const PROBED_LEAVES: u64 = 1024;

type Page = Box<[u8; PAGE]>;
type Leaves = HashMap<u64, Leaf, BuildHasherDefault<LeafHasher>>;

/// A sparse volume in memory. [`Store::sync`] has nothing to do.
pub struct MemoryStore {
    size: AtomicU64,
    allocated: AtomicU64,
    shards: Box<[Shard]>,
    /// Held over a resize, so that two do not interleave.
    resizing: Mutex<()>,
}

/// On a cache line of its own: shards are locked all the time.
#[repr(align(64))]
#[derive(Default)]
struct Shard(RwLock<Leaves>);

impl MemoryStore {
    /// Makes a volume of `size` zeros.
    #[must_use]
    pub fn new(size: Bytes) -> Self {
        Self {
            size: AtomicU64::new(size.get()),
            allocated: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            resizing: Mutex::new(()),
        }
    }

    #[inline]
    fn shard(&self, leaf: u64) -> &RwLock<Leaves> {
        &self.shards[index(leaf % SHARDS)].0
    }

    #[inline]
    fn check(&self, offset: u64, len: u64) -> Result<()> {
        check_range(offset, len, self.size.load(Ordering::Acquire))
    }

    /// Runs `change` on each leaf of a range, which may be new. The range is
    /// checked again under each leaf's lock. A call that gets the lock after a resize
    /// cleaned the shard also sees the new size, so nothing lands behind the end.
    #[inline]
    fn change_leaves(
        &self,
        offset: u64,
        len: u64,
        mut change: impl FnMut(&mut Leaf, crate::pieces::Piece) -> u64,
    ) -> Result<()> {
        self.check(offset, len)?;
        for piece in pieces(offset, len, LEAF_LEN) {
            let mut leaves = exclusive(self.shard(piece.unit));
            self.check(offset, len)?;
            let fresh = change(leaves.entry(piece.unit).or_default(), piece);
            if fresh > 0 {
                self.allocated.fetch_add(fresh * PAGE_LEN, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Zeroes the range and gives back the pages that lie in it.
    fn clear(&self, offset: u64, len: u64) {
        for number in self.candidates(offset, len) {
            let (start, len) = clip_to_leaf(number, offset, len);
            let mut leaves = exclusive(self.shard(number));
            let Some(leaf) = leaves.get_mut(&number) else { continue };
            let freed = leaf.clear(start, len);
            if leaf.used == 0 {
                leaves.remove(&number);
            }
            self.allocated.fetch_sub(freed * PAGE_LEN, Ordering::Relaxed);
        }
    }

    /// Returns the numbers of the leaves that a range may have, ascending.
    fn candidates(&self, offset: u64, len: u64) -> Vec<u64> {
        if len == 0 {
            return Vec::new();
        }
        let range = offset / LEAF_LEN..=(offset + (len - 1)) / LEAF_LEN;
        if range.end() - range.start() < PROBED_LEAVES {
            return range.collect();
        }
        let mut found = Vec::new();
        for shard in &self.shards {
            found.extend(shared(&shard.0).keys().copied().filter(|n| range.contains(n)));
        }
        found.sort_unstable();
        found
    }
}

/// Returns the part of a range that lies in leaf `number`: where in the leaf, how long.
fn clip_to_leaf(number: u64, offset: u64, len: u64) -> (u64, u64) {
    let leaf_start = number * LEAF_LEN;
    let from = offset.max(leaf_start);
    let to = (offset + len).min(leaf_start.saturating_add(LEAF_LEN));
    (from - leaf_start, to - from)
}

impl Store for MemoryStore {
    fn size(&self) -> Bytes {
        Bytes::new(self.size.load(Ordering::Acquire))
    }

    #[inline]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, len_of(buf))?;
        for piece in pieces(offset, len_of(buf), LEAF_LEN) {
            let out = &mut buf[piece.in_request()];
            match shared(self.shard(piece.unit)).get(&piece.unit) {
                Some(leaf) => leaf.read(piece.start, out),
                None => out.fill(0),
            }
        }
        Ok(())
    }

    #[inline]
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.change_leaves(offset, len_of(data), |leaf, piece| {
            leaf.write(piece.start, &data[piece.in_request()])
        })
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        if may_trim {
            return self.trim(offset, len);
        }
        self.change_leaves(offset, len, |leaf, piece| leaf.zero(piece.start, piece.len))
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len)?;
        self.clear(offset, len);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        let _alone = locked(&self.resizing);
        let old = self.size.swap(new.get(), Ordering::AcqRel);
        self.clear(new.get().min(old), old.saturating_sub(new.get()));
        Ok(())
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.check(offset, len)?;
        let mut list = ExtentList::new(max);
        let mut at = offset;
        for number in self.candidates(offset, len) {
            if list.is_full() {
                break;
            }
            let (start, in_leaf) = clip_to_leaf(number, offset, len);
            let from = number * LEAF_LEN + start;
            list.push(from - at, ExtentKind::Hole);
            match shared(self.shard(number)).get(&number) {
                Some(leaf) => leaf.extents(start, in_leaf, &mut list),
                None => list.push(in_leaf, ExtentKind::Hole),
            }
            at = from + in_leaf;
        }
        list.push(offset + len - at, ExtentKind::Hole);
        Ok(list.into_vec())
    }

    fn allocated(&self) -> Result<Bytes> {
        Ok(Bytes::new(self.allocated.load(Ordering::Relaxed)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("size", &self.size)
            .field("allocated", &self.allocated)
            .finish_non_exhaustive()
    }
}

/// 2 MiB of a volume, of which some pages exist.
struct Leaf {
    pages: Box<[Option<Page>; PAGES]>,
    used: usize,
}

impl Default for Leaf {
    fn default() -> Self {
        Self { pages: Box::new([const { None }; PAGES]), used: 0 }
    }
}

impl Leaf {
    #[inline]
    fn read(&self, start: u64, out: &mut [u8]) {
        for piece in pieces(start, len_of(out), PAGE_LEN) {
            let out = &mut out[piece.in_request()];
            match &self.pages[index(piece.unit)] {
                Some(page) => out.copy_from_slice(&page[piece.in_unit()]),
                None => out.fill(0),
            }
        }
    }

    /// Returns how many pages are new.
    #[inline]
    fn write(&mut self, start: u64, data: &[u8]) -> u64 {
        let mut fresh = 0;
        for piece in pieces(start, len_of(data), PAGE_LEN) {
            let slot = &mut self.pages[index(piece.unit)];
            fresh += u64::from(slot.is_none());
            let page = slot.get_or_insert_with(empty_page);
            page[piece.in_unit()].copy_from_slice(&data[piece.in_request()]);
        }
        self.used += index(fresh);
        fresh
    }

    /// Zeroes and keeps or takes the pages; returns how many are new.
    fn zero(&mut self, start: u64, len: u64) -> u64 {
        let mut fresh = 0;
        for piece in pieces(start, len, PAGE_LEN) {
            let slot = &mut self.pages[index(piece.unit)];
            fresh += u64::from(slot.is_none());
            slot.get_or_insert_with(empty_page)[piece.in_unit()].fill(0);
        }
        self.used += index(fresh);
        fresh
    }

    /// Zeroes and gives back whole pages; returns how many.
    fn clear(&mut self, start: u64, len: u64) -> u64 {
        let mut freed = 0;
        for piece in pieces(start, len, PAGE_LEN) {
            let slot = &mut self.pages[index(piece.unit)];
            if piece.is_whole(PAGE_LEN) {
                freed += u64::from(slot.take().is_some());
            } else if let Some(page) = slot {
                page[piece.in_unit()].fill(0);
            }
        }
        self.used -= index(freed);
        freed
    }

    fn extents(&self, start: u64, len: u64, list: &mut ExtentList) {
        for piece in pieces(start, len, PAGE_LEN) {
            let kind = match self.pages[index(piece.unit)] {
                Some(_) => ExtentKind::Data,
                None => ExtentKind::Hole,
            };
            list.push(piece.len, kind);
        }
    }
}

fn empty_page() -> Page {
    Box::new([0; PAGE])
}

/// Spreads leaf numbers over a table: a multiplication by an odd constant near
/// 2^64 / golden ratio, folded so that both ends of the result depend on all of it.
#[derive(Default)]
struct LeafHasher(u64);

impl Hasher for LeafHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = low(product) ^ low(product >> 64);
        self.0 = self.0.rotate_left(32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low(n: u128) -> u64 {
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    /// Notices a trim that frees the pages and keeps the tables of 4 KiB that found them.
    #[test]
    fn a_leaf_without_pages_is_given_back() {
        let store = MemoryStore::new(Bytes::gib(1));
        let leaves = || store.shards.iter().map(|shard| shared(&shard.0).len()).sum::<usize>();
        for leaf in 0..3 {
            store.write_at(leaf * LEAF_LEN, &[1; 2 * PAGE]).unwrap();
        }
        store.trim(0, LEAF_LEN + PAGE_LEN).unwrap();
        assert_eq!(leaves(), 2);
        store.trim(LEAF_LEN + PAGE_LEN, PAGE_LEN).unwrap();
        store.resize(Bytes::ZERO).unwrap();
        assert_eq!(leaves(), 0);
    }

    /// Notices a hash by which all leaves of a shard are in one chain.
    #[test]
    fn the_leaves_of_a_shard_are_spread_over_its_table() {
        let hash = |leaf: u64| BuildHasherDefault::<LeafHasher>::default().hash_one(leaf);
        let hashes: Vec<u64> = (0..1024).map(|turn| hash(turn * SHARDS)).collect();
        // The table takes the lowest bits for the place and the highest seven to compare.
        let (low, high): (HashSet<u64>, HashSet<u64>) =
            hashes.iter().map(|hash| (hash % 1024, hash >> 57)).unzip();
        assert!(low.len() > 512 && high.len() > 96, "{} {}", low.len(), high.len());
    }
}
