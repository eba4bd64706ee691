//! The blocks of a file that a pass of random I/O has not touched yet.
//!
//! A job whose I/Os differ in size needs a bitmap, as in fio: an I/O that meets touched blocks is cut
//! there, so I/Os become smaller and more numerous towards the end of a pass. Where all I/Os have
//! one size, [`Permutation`](crate::permutation::Permutation) does the same without memory.

use weir_random::Rng;

/// Maximum blocks of a map: 128 MiB of bits.
pub(crate) const MOST_BLOCKS: u64 = 1 << 30;

/// Maximum blocks of all maps of a run: 1 GiB of bits.
pub(crate) const MOST_BLOCKS_OF_A_RUN: u64 = 1 << 33;

/// The reason why a file has no place for another I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// All of it was touched, or its end is reached. It can start over at once.
    Done,
    /// The next free block lies beyond the last block of this direction. That happens where
    /// directions differ in their smallest block: fio counts each in units of its own, in one
    /// map that has room for the smallest units. It is then done with the file for this pass.
    Beyond,
}

const BITS: usize = 64;

/// A bitmap of touched blocks, with a summary of full words above each level. The summaries find the
/// next free block in a few steps, however full the map is.
#[derive(Debug, Clone)]
pub(crate) struct BlockMap {
    len: usize,
    left: usize,
    /// A draw of this pass led beyond the last block.
    beyond: bool,
    /// `levels[0]` has a bit for each block; a bit of the next level is set if its word is full.
    levels: Vec<Vec<u64>>,
}

impl BlockMap {
    /// Makes a map of `len` free blocks; `None` beyond [`MOST_BLOCKS`].
    pub(crate) fn new(len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|_| len <= MOST_BLOCKS)?;
        let (mut levels, mut bits) = (Vec::new(), len);
        loop {
            let words = bits.div_ceil(BITS);
            levels.push(vec![0; words]);
            if words <= 1 {
                break;
            }
            bits = words;
        }
        let mut new = Self { len, left: 0, beyond: false, levels };
        new.restart();
        Some(new)
    }

    /// Frees all blocks.
    pub(crate) fn restart(&mut self) {
        self.beyond = false;
        if self.left == self.len {
            return;
        }
        let mut bits = self.len;
        for level in &mut self.levels {
            level.fill(0);
            // Bits past the end never count as free.
            if let Some(last) = level.last_mut().filter(|_| !bits.is_multiple_of(BITS)) {
                *last = u64::MAX << (bits % BITS);
            }
            bits = level.len();
        }
        self.left = self.len;
    }

    /// Draws a free block below `limit` and leaves it free.
    pub(crate) fn draw(&mut self, limit: u64, rng: &mut Rng) -> Result<usize, Exhausted> {
        if self.beyond {
            return Err(Exhausted::Beyond);
        }
        if self.left == 0 {
            return Err(Exhausted::Done);
        }
        let block = self.free_from(rng.below(limit)).ok_or(Exhausted::Done)?;
        if block as u64 >= limit {
            self.beyond = true;
            return Err(Exhausted::Beyond);
        }
        Ok(block)
    }

    /// Draws a free block below `limit`, touches it and up to `wanted - 1` free blocks that follow, where `wanted`
    /// depends on the block. Returns the first block and how many were touched. A drawn block
    /// that is touched is replaced by the next free one, as in fio.
    pub(crate) fn take(
        &mut self,
        limit: u64,
        rng: &mut Rng,
        wanted: impl FnOnce(u64, &mut Rng) -> u64,
    ) -> Result<(u64, u64), Exhausted> {
        let block = self.draw(limit, rng)?;
        let wanted = usize::try_from(wanted(block as u64, rng)).unwrap_or(usize::MAX);
        let mut taken = 0;
        while taken < wanted {
            let at = block + taken;
            if at >= self.len || self.is_touched(at) {
                break;
            }
            self.touch(at);
            taken += 1;
        }
        Ok((block as u64, taken as u64))
    }

    /// Returns `block` or the next free one, going on from the first after the last.
    fn free_from(&self, block: u64) -> Option<usize> {
        let drawn = usize::try_from(block).ok()?;
        self.next_free(drawn).or_else(|| self.next_free(0))
    }

    fn is_touched(&self, block: usize) -> bool {
        self.levels[0][block / BITS] & (1 << (block % BITS)) != 0
    }

    fn touch(&mut self, block: usize) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            *word |= 1 << (at % BITS);
            if *word != u64::MAX {
                break;
            }
            at /= BITS;
        }
        self.left -= 1;
    }

    /// Returns the first free block at or after `from`.
    fn next_free(&self, from: usize) -> Option<usize> {
        let (mut at, mut height) = (from, 0);
        // Climbs until a word has a free bit at or after the position.
        loop {
            let level = self.levels.get(height)?;
            let free = level.get(at / BITS).map_or(0, |word| !word & (u64::MAX << (at % BITS)));
            if free != 0 {
                at = at / BITS * BITS + free.trailing_zeros() as usize;
                break;
            }
            at = at / BITS + 1;
            height += 1;
        }
        // Descends to the first free bit below.
        while height > 0 {
            height -= 1;
            at = at * BITS + (!self.levels[height][at]).trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_pass_touches_each_block_once(
            len in 1_u64..20_000,
            seed: u64,
            sizes in proptest::collection::vec(1_u64..100, 1..5),
        ) {
            let mut rng = Rng::new(&[seed]);
            let mut map = BlockMap::new(len).unwrap();
            for _pass in 0..2 {
                let mut touched = vec![false; usize::try_from(len).unwrap()];
                let mut wanted = sizes.iter().cycle();
                while let Ok((first, taken)) = map.take(len, &mut rng, |_, _| *wanted.next().unwrap()) {
                    proptest::prop_assert!(taken > 0);
                    for block in first..first + taken {
                        let own = &mut touched[usize::try_from(block).unwrap()];
                        proptest::prop_assert!(!*own, "block {block} was touched twice");
                        *own = true;
                    }
                }
                proptest::prop_assert!(touched.iter().all(|own| *own));
                map.restart();
            }
        }

        #[test]
        fn the_next_free_block_is_that_of_a_plain_search(
            len in 1_usize..9_000,
            touched in proptest::collection::vec(0_usize..9_000, 0..6_000),
            from in 0_usize..9_000,
        ) {
            let mut map = BlockMap::new(len as u64).unwrap();
            let mut plain = vec![false; len];
            for block in touched.into_iter().filter(|block| *block < len) {
                if !plain[block] {
                    map.touch(block);
                    plain[block] = true;
                }
            }
            let expect = (from..len).find(|block| !plain[*block]);
            proptest::prop_assert_eq!(map.next_free(from.min(len)), expect);
        }
    }

    #[test]
    fn a_map_is_bounded() {
        assert!(BlockMap::new(MOST_BLOCKS + 1).is_none());
        let mut empty = BlockMap::new(0).unwrap();
        assert_eq!(empty.take(0, &mut Rng::new(&[1]), |_, _| 1), Err(Exhausted::Done));
    }

    #[test]
    fn a_draw_beyond_the_last_block_ends_the_pass() {
        let (mut map, mut rng) = (BlockMap::new(4).unwrap(), Rng::new(&[1]));
        assert_eq!(map.take(1, &mut rng, |_, _| 1), Ok((0, 1)));
        assert_eq!(map.take(1, &mut rng, |_, _| 1), Err(Exhausted::Beyond), "the next free is 1");
        assert_eq!(map.take(4, &mut rng, |_, _| 1), Err(Exhausted::Beyond));
        map.restart();
        assert_eq!(map.take(1, &mut rng, |_, _| 1), Ok((0, 1)));
    }
}
