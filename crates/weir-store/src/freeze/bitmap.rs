//! A set of blocks of a volume that costs nothing where it is empty.

use crate::pieces::index;
use crate::sync::{exclusive, shared};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Contents are kept, and changes are marked, in blocks of this size.
pub const BLOCK: u64 = 64 << 10;

pub(super) const WORDS: usize = 512;
const WORD_BITS: u64 = u64::BITS as u64;
/// Blocks of one leaf: 2 GiB of a volume in 4 KiB of memory.
pub(super) const LEAF_BITS: u64 = WORDS as u64 * WORD_BITS;

pub(super) type Words = [u64; WORDS];
type Leaf = [AtomicU64; WORDS];

/// A sparse set of block numbers. It only grows, and many threads use it at once.
#[derive(Debug, Default)]
pub(super) struct Bitmap {
    leaves: RwLock<BTreeMap<u64, Box<Leaf>>>,
}

impl Bitmap {
    /// Returns whether a block is in the set. Everything done before it was added has then
    /// been done.
    pub(super) fn get(&self, block: u64) -> bool {
        let leaves = shared(&self.leaves);
        let Some(leaf) = leaves.get(&(block / LEAF_BITS)) else { return false };
        let (word, bit) = place(block);
        leaf[word].load(Ordering::Acquire) & bit != 0
    }

    pub(super) fn set(&self, block: u64) {
        self.set_range(block..block + 1);
    }

    pub(super) fn set_range(&self, blocks: Range<u64>) {
        let mut at = blocks.start;
        while at < blocks.end {
            let number = at / LEAF_BITS;
            let end = blocks.end.min((number + 1) * LEAF_BITS);
            let present = shared(&self.leaves);
            if let Some(leaf) = present.get(&number) {
                set_in(leaf, at..end);
                at = end;
                continue;
            }
            drop(present);
            exclusive(&self.leaves).entry(number).or_insert_with(empty_leaf);
        }
    }

    /// Returns the first block in the range that is in the set.
    pub(super) fn next_set(&self, blocks: Range<u64>) -> Option<u64> {
        let last = blocks.end.checked_sub(1).filter(|last| *last >= blocks.start)?;
        let leaves = shared(&self.leaves);
        for (number, leaf) in leaves.range(blocks.start / LEAF_BITS..=last / LEAF_BITS) {
            let base = number * LEAF_BITS;
            let from = blocks.start.max(base) - base;
            let found = scan(from, |word| leaf[word].load(Ordering::Acquire));
            if let Some(bit) = found {
                return Some(base + bit).filter(|found| *found < blocks.end);
            }
        }
        None
    }

    /// Returns the first block in the range that is not in the set, or the end of the range.
    pub(super) fn next_clear(&self, blocks: Range<u64>) -> u64 {
        let leaves = shared(&self.leaves);
        let mut at = blocks.start;
        while at < blocks.end {
            let number = at / LEAF_BITS;
            let Some(leaf) = leaves.get(&number) else { return at };
            let base = number * LEAF_BITS;
            match scan(at - base, |word| !leaf[word].load(Ordering::Acquire)) {
                Some(bit) => return (base + bit).min(blocks.end),
                None => at = base + LEAF_BITS,
            }
        }
        blocks.end
    }

    /// Returns whether the first block of a range is in the set, and the first one after it for which
    /// that is not so, or the end of the range. The block is looked at once: it may be added meanwhile.
    pub(super) fn run(&self, blocks: Range<u64>) -> (bool, u64) {
        match self.next_set(blocks.clone()) {
            Some(block) if block == blocks.start => (true, self.next_clear(block + 1..blocks.end)),
            Some(block) => (false, block),
            None => (false, blocks.end),
        }
    }

    /// Adds all blocks of another set.
    pub(super) fn add(&self, other: &Self) {
        other.for_each_leaf(|number, words| self.add_leaf(number, words));
    }

    pub(super) fn add_leaf(&self, number: u64, words: &Words) {
        let mut leaves = exclusive(&self.leaves);
        let leaf = leaves.entry(number).or_insert_with(empty_leaf);
        for (own, word) in leaf.iter().zip(words) {
            own.fetch_or(*word, Ordering::AcqRel);
        }
    }

    pub(super) fn for_each_leaf(&self, mut call: impl FnMut(u64, &Words)) {
        for (number, leaf) in &*shared(&self.leaves) {
            let mut words = [0; WORDS];
            for (word, own) in words.iter_mut().zip(leaf.iter()) {
                *word = own.load(Ordering::Acquire);
            }
            call(*number, &words);
        }
    }
}

fn empty_leaf() -> Box<Leaf> {
    Box::new([const { AtomicU64::new(0) }; WORDS])
}

/// Returns the word of a block in its leaf, and its bit there.
fn place(block: u64) -> (usize, u64) {
    let in_leaf = block % LEAF_BITS;
    (index(in_leaf / WORD_BITS), 1 << (in_leaf % WORD_BITS))
}

fn set_in(leaf: &Leaf, blocks: Range<u64>) {
    let mut at = blocks.start;
    while at < blocks.end {
        let (word, _) = place(at);
        let from = at % WORD_BITS;
        let count = (WORD_BITS - from).min(blocks.end - at);
        let mask = (u64::MAX >> (WORD_BITS - count)) << from;
        // Most blocks that change have changed before, and looking costs less.
        if leaf[word].load(Ordering::Acquire) & mask != mask {
            leaf[word].fetch_or(mask, Ordering::AcqRel);
        }
        at += count;
    }
}

/// Returns the first bit of a leaf, from `from` on, that is set in its word.
fn scan(from: u64, word: impl Fn(usize) -> u64) -> Option<u64> {
    let (first, bit) = place(from);
    let kept = word(first) & !(bit - 1);
    let found = if kept != 0 {
        Some((first, kept))
    } else {
        (first + 1..WORDS).map(|at| (at, word(at))).find(|(_, bits)| *bits != 0)
    };
    found.map(|(at, bits)| at as u64 * WORD_BITS + u64::from(bits.trailing_zeros()))
}

/// Returns the blocks that a range touches; it is not empty.
pub(super) fn blocks(offset: u64, len: u64) -> Range<u64> {
    offset / BLOCK..(offset + len - 1) / BLOCK + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const END: u64 = 3 * LEAF_BITS;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        let start = prop_oneof![0..200_u64, LEAF_BITS - 70..LEAF_BITS + 70, 0..END];
        let range = (start, prop_oneof![0..3_u64, 60..200_u64, Just(LEAF_BITS)])
            .prop_map(|(start, len)| start..(start + len).min(END));
        prop::collection::vec(range, 0..8)
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(first in ranges(), second in ranges(), asked in ranges()) {
            let (bitmap, other) = (Bitmap::default(), Bitmap::default());
            first.iter().cloned().for_each(|range| bitmap.set_range(range));
            second.iter().cloned().for_each(|range| other.set_range(range));
            bitmap.add(&other);
            let model: BTreeSet<u64> = first.into_iter().chain(second).flatten().collect();
            for range in asked.into_iter().chain(std::iter::once(0..END)) {
                prop_assert_eq!(bitmap.get(range.start), model.contains(&range.start));
                let set = range.clone().find(|block| model.contains(block));
                prop_assert_eq!(bitmap.next_set(range.clone()), set);
                let clear = range.clone().find(|block| !model.contains(block));
                prop_assert_eq!(bitmap.next_clear(range.clone()), clear.unwrap_or(range.end.max(range.start)));
                if !range.is_empty() {
                    let is_set = model.contains(&range.start);
                    let until = range.clone().find(|block| model.contains(block) != is_set);
                    prop_assert_eq!(bitmap.run(range.clone()), (is_set, until.unwrap_or(range.end)));
                }
            }
        }
    }

    /// A reader that looked at the first block twice would find a run without blocks.
    #[test]
    fn a_run_has_a_block_while_it_is_added() {
        const BLOCKS: u64 = 1_000_000;
        let bitmap = Bitmap::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..BLOCKS).for_each(|block| bitmap.set(block)));
            for block in 0..BLOCKS {
                loop {
                    let (is_set, until) = bitmap.run(block..block + 1);
                    assert_eq!(until, block + 1);
                    if is_set {
                        break;
                    }
                }
            }
        });
    }
}
