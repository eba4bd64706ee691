//! The blocks in the host cache (BlobCache): residency only, no data.
//!
//! One budget of RAM and SSD for all cached volumes of a host, in blocks of
//! 4 KiB. A volume is a directory of chunks of 128 MiB, and only a chunk that is
//! held in part needs a bitmap of its blocks; a warm cache is looked up in the
//! directory alone. When the budget is full a clock hand passes over groups of
//! 2 MiB. It rests on one that was not used since it last came by and takes from
//! lowest block first, until the group is empty or used again; so a pass over more than fits
//! leaves its end. Blocks that are not on the disk yet stay: the caller names them, and there
//! are never more of them than the budget holds.

use crate::blocks::{PER_WORD, words};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The host cache's block: what it holds, it holds in whole ones.
pub const BLOCK: u64 = 4096;
/// Words of a chunk's bitmap.
const WORDS: usize = 512;
/// Blocks of one chunk (128 MiB).
const CHUNK: u32 = 32_768;
/// Words of one group (2 MiB): what the clock hand decides over.
const GROUP: usize = 8;
const _: () = assert!(CHUNK as usize == 64 * WORDS, "a chunk's blocks fill its bitmap");

/// A bit for each block of a chunk.
type Bitmap = Box<[u64; WORDS]>;

/// Bitmaps that their chunks need no more, so that chunks that come and go allocate
/// nothing.
#[derive(Default)]
struct Spare(Vec<Bitmap>);

impl Spare {
    /// Kept at most (256 KiB).
    const MOST: usize = 64;

    fn take(&mut self, word: u64) -> Bitmap {
        match self.0.pop() {
            Some(mut bitmap) => {
                bitmap.fill(word);
                bitmap
            }
            None => Box::new([word; WORDS]),
        }
    }

    fn put(&mut self, bitmap: Option<Bitmap>) {
        if self.0.len() < Self::MOST {
            self.0.extend(bitmap);
        }
    }
}

/// A chunk of a volume.
#[derive(Default)]
struct Chunk {
    /// Blocks held.
    held: u32,
    /// A bit for each group that was used since the hand came by.
    used: u64,
    /// A bit for each block; absent where none or all are held.
    blocks: Option<Bitmap>,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.held == CHUNK
    }

    fn mark_used(&mut self, word: usize) {
        let bit = 1 << (word / GROUP);
        // Most are marked already; not writing keeps the line clean.
        if self.used & bit == 0 {
            self.used |= bit;
        }
    }

    fn holds(&self, run: &Run) -> bool {
        let word = |blocks: &[u64; WORDS]| blocks[run.word] & run.mask == run.mask;
        self.is_full() || self.blocks.as_deref().is_some_and(word)
    }

    /// Takes in a run; returns how many blocks are new.
    fn insert(&mut self, run: &Run, spare: &mut Spare) -> u32 {
        self.mark_used(run.word);
        if self.is_full() {
            return 0;
        }
        let blocks = self.blocks.get_or_insert_with(|| spare.take(0));
        let new = (run.mask & !blocks[run.word]).count_ones();
        blocks[run.word] |= run.mask;
        self.held += new;
        if self.held == CHUNK {
            spare.put(self.blocks.take());
        }
        new
    }

    /// Drops at most `most` blocks of a group, none of those that `pinned` gives for
    /// a word; returns how many.
    fn evict(
        &mut self,
        group: usize,
        most: u64,
        pinned: impl Fn(usize) -> u64,
        spare: &mut Spare,
    ) -> u32 {
        let all = if self.is_full() { u64::MAX } else { 0 };
        let blocks = self.blocks.get_or_insert_with(|| spare.take(all));
        let mut dropped = 0;
        for at in group * GROUP..(group + 1) * GROUP {
            let mut free = blocks[at] & !pinned(at);
            while free != 0 && u64::from(dropped) < most {
                blocks[at] ^= free & free.wrapping_neg();
                free &= free - 1;
                dropped += 1;
            }
        }
        self.held -= dropped;
        if self.held == 0 || self.held == CHUNK {
            spare.put(self.blocks.take());
        }
        dropped
    }
}

/// A range that enters the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Brought {
    /// A read brings whole blocks.
    Read { offset: u64, len: u64 },
    /// A write of part of a block does not bring the rest.
    Write { offset: u64, len: u64 },
}

/// The resident blocks of all volumes.
pub(crate) struct BlobCache {
    capacity: u64,
    resident: u64,
    volumes: Vec<Vec<Chunk>>,
    hand: Hand,
    spare: Spare,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hand {
    volume: usize,
    chunk: usize,
    group: usize,
}

impl core::fmt::Debug for BlobCache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlobCache")
            .field("capacity", &self.capacity)
            .field("resident", &self.resident)
            .finish_non_exhaustive()
    }
}

/// A run of bits within one word of one chunk.
struct Run {
    chunk: usize,
    word: usize,
    mask: u64,
}

/// Cuts blocks `first..end` at word borders.
fn runs(first: u64, end: u64) -> impl Iterator<Item = Run> {
    let words_per_chunk = u64::from(CHUNK) / PER_WORD;
    words(first..end).map(move |(at, mask)| {
        let (chunk, word) = (index(at / words_per_chunk), index(at % words_per_chunk));
        Run { chunk, word, mask }
    })
}

#[expect(clippy::cast_possible_truncation, reason = "an index into a table that fits in memory")]
fn index(n: u64) -> usize {
    n as usize
}

impl BlobCache {
    pub(crate) fn new(capacity_bytes: u64, volumes: usize) -> Self {
        Self {
            capacity: capacity_bytes / BLOCK,
            resident: 0,
            volumes: (0..volumes).map(|_| Vec::new()).collect(),
            hand: Hand::default(),
            spare: Spare::default(),
        }
    }

    /// Blocks held at most, of all volumes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes held, of all volumes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident * BLOCK
    }

    /// Returns whether all blocks of `offset..offset + len` are resident; marks them as used.
    pub(crate) fn serves(&mut self, volume: usize, offset: u64, len: u64) -> bool {
        let chunks = &mut self.volumes[volume];
        for run in runs(offset / BLOCK, (offset + len).div_ceil(BLOCK)) {
            match chunks.get_mut(run.chunk) {
                Some(chunk) if chunk.holds(&run) => chunk.mark_used(run.word),
                _ => return false,
            }
        }
        true
    }

    /// Takes in the blocks that a read touched or a write covered; of more than fit,
    /// the last. `pinned` gives those of the 64 blocks from one of a volume on that
    /// must not be dropped.
    pub(crate) fn insert(
        &mut self,
        volume: usize,
        brought: Brought,
        pinned: impl Fn(usize, u64) -> u64,
    ) {
        let (first, end) = match brought {
            Brought::Read { offset, len } => (offset / BLOCK, (offset + len).div_ceil(BLOCK)),
            Brought::Write { offset, len } => (offset.div_ceil(BLOCK), (offset + len) / BLOCK),
        };
        // Blocks before it would only be evicted again.
        let first = first.max(end.saturating_sub(self.capacity));
        for run in runs(first, end) {
            let chunks = &mut self.volumes[volume];
            if chunks.len() <= run.chunk {
                chunks.resize_with(run.chunk + 1, Chunk::default);
            }
            self.resident += u64::from(chunks[run.chunk].insert(&run, &mut self.spare));
            if self.resident > self.capacity {
                self.make_room(&pinned);
            }
        }
    }

    /// Changes the number of volumes.
    pub(crate) fn set_volumes(&mut self, volumes: usize) {
        self.volumes.resize_with(volumes, Vec::new);
    }

    /// Forgets all of a volume.
    pub(crate) fn forget(&mut self, volume: usize) {
        let held: u64 = self.volumes[volume].iter().map(|chunk| u64::from(chunk.held)).sum();
        self.resident -= held;
        self.volumes[volume] = Vec::new();
    }

    #[inline(never)]
    fn make_room(&mut self, pinned: &impl Fn(usize, u64) -> u64) {
        while self.resident > self.capacity {
            self.evict_some(pinned);
        }
    }

    /// A step of the hand: of a group that was not used since the last visit as many
    /// blocks go as must, and the hand rests there if that was enough. One that was
    /// used loses its mark.
    fn evict_some(&mut self, pinned: impl Fn(usize, u64) -> u64) {
        let Hand { volume, chunk, group } = self.hand;
        let over = self.resident - self.capacity;
        let chunks = &mut self.volumes[volume];
        let count = chunks.len();
        let Some(held) = chunks.get_mut(chunk).filter(|chunk| chunk.held > 0) else {
            self.hand = match chunk + 1 < count {
                true => Hand { volume, chunk: chunk + 1, group: 0 },
                false => Hand { volume: (volume + 1) % self.volumes.len(), chunk: 0, group: 0 },
            };
            return;
        };
        let bit = 1 << group;
        if held.used & bit == 0 {
            let first = chunk as u64 * u64::from(CHUNK);
            let pinned = |word: usize| pinned(volume, first + word as u64 * 64);
            self.resident -= u64::from(held.evict(group, over, pinned, &mut self.spare));
            if self.resident <= self.capacity {
                return;
            }
        }
        held.used &= !bit;
        self.hand = match group + 1 < WORDS / GROUP {
            true => Hand { volume, chunk, group: group + 1 },
            false => Hand { volume, chunk: chunk + 1, group: 0 },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    impl BlobCache {
        /// As [`serves`](Self::serves), without leaving a mark.
        pub(crate) fn holds(&self, volume: usize, offset: u64, len: u64) -> bool {
            runs(offset / BLOCK, (offset + len).div_ceil(BLOCK)).all(|run| {
                self.volumes[volume].get(run.chunk).is_some_and(|chunk| chunk.holds(&run))
            })
        }
    }

    /// Nothing is pinned.
    impl BlobCache {
        fn read(&mut self, volume: usize, offset: u64, len: u64) {
            self.insert(volume, Brought::Read { offset, len }, |_, _| 0);
        }

        fn write(&mut self, volume: usize, offset: u64, len: u64) {
            self.insert(volume, Brought::Write { offset, len }, |_, _| 0);
        }
    }

    #[test]
    fn serves_only_what_it_holds_whole() {
        let mut cache = BlobCache::new(1 << 20, 1);
        cache.read(0, 0, 8192);
        assert!(cache.serves(0, 0, 8192));
        assert!(cache.serves(0, 512, 512));
        assert!(!cache.serves(0, 4096, 8192));
        cache.write(0, 8192, 100);
        assert!(!cache.serves(0, 8192, 100), "a write of part of a block does not bring the rest");
        cache.read(0, 8192, 100);
        assert!(cache.serves(0, 8192, 4096), "a read brings the block");
    }

    #[test]
    fn keeps_what_is_used_and_stays_within_its_budget() {
        let group = 2 << 20;
        let mut cache = BlobCache::new(64 * group, 2);
        for n in 0..1_000 {
            cache.read(1, n * group, group);
            cache.read(0, 0, BLOCK);
            assert!(cache.resident_bytes() <= 64 * group);
            assert!(cache.serves(0, 0, BLOCK), "a block in constant use was dropped at {n}");
        }
        assert!(cache.resident_bytes() > 63 * group, "no more goes than must");
        cache.forget(1);
        assert_eq!(cache.resident_bytes(), BLOCK);
    }

    #[test]
    fn a_full_chunk_can_lose_a_block() {
        let chunk = u64::from(CHUNK) * BLOCK;
        let mut cache = BlobCache::new(chunk, 1);
        cache.write(0, 0, chunk);
        assert!(cache.serves(0, 0, chunk));
        cache.write(0, chunk, BLOCK);
        assert_eq!(cache.resident_bytes(), chunk);
        assert!(cache.serves(0, chunk, BLOCK) && !cache.serves(0, 0, chunk));
    }

    #[test]
    fn a_pass_over_more_than_fits_leaves_its_end() {
        let (capacity, file) = (300 << 20, 1_000 << 20);
        let mut passed = BlobCache::new(capacity, 2);
        let mut at_once = BlobCache::new(capacity, 2);
        for offset in (0..file).step_by(128 << 10) {
            passed.read(1, offset, 128 << 10);
        }
        at_once.read(1, 0, file);
        for offset in (0..file).step_by(4096) {
            let end = offset >= file - capacity;
            assert_eq!(passed.holds(1, offset, BLOCK), end, "a pass, at {offset}");
            assert_eq!(at_once.holds(1, offset, BLOCK), end, "one read, at {offset}");
        }
        // The next pass finds nothing before it has pushed it out, as with any cache
        // that keeps what came last.
        for offset in (0..file).step_by(128 << 10) {
            assert!(!passed.serves(1, offset, 128 << 10), "{offset}");
            passed.read(1, offset, 128 << 10);
        }
    }

    #[test]
    fn pinned_blocks_are_not_evicted() {
        for chunk in [0, 1, 7] {
            let mut cache = BlobCache::new(100 * BLOCK, 2);
            let base = chunk * u64::from(CHUNK);
            // Every third block of the first volume, 22 of the 100 that fit.
            let pinned = |volume, first: u64| {
                (0..64)
                    .filter(|bit| volume == 0 && first == base && bit % 3 == 0)
                    .fold(0_u64, |mask, bit| mask | 1 << bit)
            };
            let offset = base * BLOCK;
            cache.insert(0, Brought::Write { offset, len: 64 * BLOCK }, pinned);
            for n in 0..500 {
                let offset = n * BLOCK;
                cache.insert(1, Brought::Read { offset, len: BLOCK }, pinned);
                assert!(cache.resident_bytes() <= 100 * BLOCK);
            }
            let is_held = |block: &u64| cache.serves(0, (base + block) * BLOCK, BLOCK);
            let held: Vec<u64> = (0..64).filter(is_held).collect();
            assert_eq!(held, (0..64).step_by(3).collect::<Vec<u64>>(), "chunk {chunk}");
        }
    }

    #[test]
    fn the_bitmaps_of_chunks_that_become_empty_are_kept_up_to_a_number() {
        let mut cache = BlobCache::new(70 * BLOCK, 2);
        for chunk in 0..70 {
            cache.read(0, chunk * u64::from(CHUNK) * BLOCK, BLOCK);
        }
        assert_eq!(cache.spare.0.len(), 0);
        cache.read(1, 0, 70 * BLOCK);
        assert_eq!(cache.spare.0.len(), Spare::MOST);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_set_while_nothing_is_evicted(
            ops in proptest::collection::vec((0_u64..3, 0_u64..5_000, 1_u64..600, proptest::bool::ANY), 1..60),
        ) {
            let mut cache = BlobCache::new(1 << 40, 1);
            let mut model = BTreeSet::new();
            for (kind, first, count, _) in ops {
                let (offset, len) = (first * BLOCK, count * BLOCK);
                match kind {
                    0 => {
                        cache.write(0, offset, len);
                        model.extend(first..first + count);
                    }
                    1 => {
                        let held = (first..first + count).all(|b| model.contains(&b));
                        proptest::prop_assert_eq!(cache.serves(0, offset, len), held);
                    }
                    _ => {
                        let held = model.contains(&first);
                        proptest::prop_assert_eq!(cache.serves(0, offset + 1, 1), held);
                    }
                }
                proptest::prop_assert_eq!(cache.resident_bytes(), model.len() as u64 * BLOCK);
            }
        }
    }
}
