//! Which blocks the host holds (BlobCache): residency only, no data.
//!
//! One budget of RAM and SSD for all cached volumes of a host, in blocks of
//! 4 KiB. Two bits a block, allocated where a volume has been touched, so a hit
//! costs one look into a bitmap and a cache of half a terabyte fits in some tens
//! of megabytes. When the budget is full a clock hand passes over the blocks and
//! takes those that were not used since it last came by.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The cache's block.
pub(crate) const BLOCK: u64 = 4096;
const WORDS: usize = 512;
/// Blocks of one chunk (128 MiB).
const CHUNK: u64 = 64 * WORDS as u64;

struct Chunk {
    present: [u64; WORDS],
    used: [u64; WORDS],
}

/// What the host holds of each volume.
pub(crate) struct BlobCache {
    capacity: u64,
    resident: u64,
    volumes: Vec<Vec<Option<Box<Chunk>>>>,
    hand: Hand,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hand {
    volume: usize,
    chunk: usize,
    word: usize,
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
    let mut at = first;
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let bit = at % 64;
        let count = (64 - bit).min(end - at);
        let mask = (u64::MAX >> (64 - count)) << bit;
        let (chunk, word) = (index(at / CHUNK), index(at % CHUNK / 64));
        at += count;
        Some(Run { chunk, word, mask })
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
        }
    }

    /// Bytes held, of all volumes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident * BLOCK
    }

    /// Whether all blocks of `offset..offset + len` are here; marks them as used.
    pub(crate) fn serves(&mut self, volume: usize, offset: u64, len: u64) -> bool {
        let chunks = &mut self.volumes[volume];
        let (first, end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
        for run in runs(first, end) {
            let Some(Some(chunk)) = chunks.get_mut(run.chunk) else { return false };
            if chunk.present[run.word] & run.mask != run.mask {
                return false;
            }
            chunk.used[run.word] |= run.mask;
        }
        true
    }

    /// Takes in the blocks that `offset..offset + len` touches (`whole` = false)
    /// or covers (`whole` = true: a write of half a block does not bring the rest).
    pub(crate) fn insert(&mut self, volume: usize, offset: u64, len: u64, whole: bool) {
        let (first, end) = if whole {
            (offset.div_ceil(BLOCK), (offset + len) / BLOCK)
        } else {
            (offset / BLOCK, (offset + len).div_ceil(BLOCK))
        };
        if end.saturating_sub(first) > self.capacity {
            return;
        }
        for run in runs(first, end) {
            let chunk = self.chunk(volume, run.chunk);
            let new = run.mask & !chunk.present[run.word];
            chunk.present[run.word] |= run.mask;
            chunk.used[run.word] |= run.mask;
            self.resident += u64::from(new.count_ones());
        }
        while self.resident > self.capacity {
            self.evict_some();
        }
    }

    /// Forgets all of a volume.
    pub(crate) fn forget(&mut self, volume: usize) {
        let held = self.volumes[volume].iter().flatten();
        let count: u64 =
            held.flat_map(|c| c.present.iter()).map(|w| u64::from(w.count_ones())).sum();
        self.resident -= count;
        self.volumes[volume] = Vec::new();
    }

    fn chunk(&mut self, volume: usize, at: usize) -> &mut Chunk {
        let chunks = &mut self.volumes[volume];
        if chunks.len() <= at {
            chunks.resize_with(at + 1, || None);
        }
        chunks[at].get_or_insert_with(|| Box::new(Chunk { present: [0; WORDS], used: [0; WORDS] }))
    }

    /// Moves the hand by one word: blocks not used since its last visit go, the
    /// others lose their mark.
    fn evict_some(&mut self) {
        let Hand { volume, chunk, word } = self.hand;
        let chunks = &mut self.volumes[volume];
        let Some(Some(held)) = chunks.get_mut(chunk) else {
            self.hand = match chunk + 1 < chunks.len() {
                true => Hand { volume, chunk: chunk + 1, word: 0 },
                false => Hand { volume: (volume + 1) % self.volumes.len(), chunk: 0, word: 0 },
            };
            return;
        };
        let idle = held.present[word] & !held.used[word];
        held.present[word] &= !idle;
        held.used[word] = 0;
        self.resident -= u64::from(idle.count_ones());
        self.hand = match word + 1 < WORDS {
            true => Hand { volume, chunk, word: word + 1 },
            false => Hand { volume, chunk: chunk + 1, word: 0 },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn serves_only_what_it_holds_whole() {
        let mut cache = BlobCache::new(1 << 20, 1);
        cache.insert(0, 0, 8192, false);
        assert!(cache.serves(0, 0, 8192));
        assert!(cache.serves(0, 512, 512));
        assert!(!cache.serves(0, 4096, 8192));
        cache.insert(0, 8192, 100, true);
        assert!(!cache.serves(0, 8192, 100), "a write of part of a block does not bring the rest");
        cache.insert(0, 8192, 100, false);
        assert!(cache.serves(0, 8192, 4096), "a read brings the block");
    }

    #[test]
    fn keeps_what_is_used_and_stays_within_its_budget() {
        let mut cache = BlobCache::new(64 * BLOCK, 2);
        for n in 0..1_000 {
            cache.insert(1, n * BLOCK, BLOCK, false);
            cache.insert(0, 0, BLOCK, false);
            assert!(cache.resident_bytes() <= 64 * BLOCK);
            assert!(cache.serves(0, 0, BLOCK), "a block in constant use was dropped at {n}");
        }
        cache.forget(1);
        assert_eq!(cache.resident_bytes(), BLOCK);
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
                        cache.insert(0, offset, len, true);
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
