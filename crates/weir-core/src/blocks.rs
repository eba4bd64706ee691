//! Sets of blocks, sixty-four to a word.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// Blocks of a word.
pub(crate) const PER_WORD: u64 = 64;

/// The words that a range of blocks touches, in order: (which, a bit for each block).
pub(crate) fn words(range: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut at = range.start;
    core::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let (word, bit) = (at / PER_WORD, at % PER_WORD);
        let count = (PER_WORD - bit).min(range.end - at);
        at += count;
        Some((word, (u64::MAX >> (PER_WORD - count)) << bit))
    })
}

/// An ordered set of blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockSet {
    /// The words that are not empty.
    words: BTreeMap<u64, u64>,
    len: u64,
}

impl BlockSet {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A bit for each of a word's blocks.
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.words.get(&at).copied().unwrap_or(0)
    }

    /// Counts the blocks of `range` in the set.
    pub(crate) fn count(&self, range: Range<u64>) -> u64 {
        words(range).map(|(at, mask)| u64::from((self.word(at) & mask).count_ones())).sum()
    }

    /// Puts in those of `range` that are not in `other`.
    pub(crate) fn insert(&mut self, range: Range<u64>, other: &Self) {
        for (at, mask) in words(range) {
            let new = mask & !other.word(at) & !self.word(at);
            if new != 0 {
                *self.words.entry(at).or_default() |= new;
                self.len += u64::from(new.count_ones());
            }
        }
    }

    /// Takes out those of `range`. Goes by what is there, however long the range is.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        let mut from = range.start / PER_WORD;
        let until = range.end.div_ceil(PER_WORD).max(from);
        while let Some((&at, word)) = self.words.range_mut(from..until).next() {
            let within = range.start.max(at * PER_WORD)..range.end.min((at + 1) * PER_WORD);
            let gone = *word & words(within).next().map_or(0, |(_, mask)| mask);
            *word &= !gone;
            if *word == 0 {
                self.words.remove(&at);
            }
            self.len -= u64::from(gone.count_ones());
            from = at + 1;
        }
    }

    /// Takes out the first block and those that follow it without a gap, `most` at most.
    pub(crate) fn take_run(&mut self, most: u64) -> Option<Range<u64>> {
        let (at, word) = self.words.first_key_value()?;
        let first = at * PER_WORD + u64::from(word.trailing_zeros());
        let mut end = first;
        loop {
            let ones = (self.word(end / PER_WORD) >> (end % PER_WORD)).trailing_ones();
            end = (end + u64::from(ones)).min(first + most);
            if ones == 0 || end == first + most || !end.is_multiple_of(PER_WORD) {
                break;
            }
        }
        self.remove(first..end);
        Some(first..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let blocks = |(at, word): (&u64, &u64)| {
            let (first, word) = (at * PER_WORD, *word);
            (0..PER_WORD).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        };
        self.words.iter().flat_map(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(Range<u64>, Range<u64>),
        Remove(Range<u64>),
        Take(u64),
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0_u64..400, 0_u64..200).prop_map(|(first, count)| first..first + count)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (range(), range()).prop_map(|(range, other)| Step::Insert(range, other)),
            1 => range().prop_map(Step::Remove),
            1 => (1_u64..200).prop_map(Step::Take),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(steps in proptest::collection::vec(step(), 1..60)) {
            let (mut set, mut model) = (BlockSet::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Insert(range, other) => {
                        let mut without = BlockSet::default();
                        without.insert(other.clone(), &BlockSet::default());
                        set.insert(range.clone(), &without);
                        model.extend(range.filter(|block| !other.contains(block)));
                    }
                    Step::Remove(range) => {
                        prop_assert_eq!(
                            set.count(range.clone()),
                            model.range(range.clone()).count() as u64
                        );
                        set.remove(range.clone());
                        model.retain(|block| !range.contains(block));
                    }
                    Step::Take(most) => {
                        let first = model.first().copied();
                        let run = first.map(|first| {
                            let gap = |block: &u64| *block == first + most || !model.contains(block);
                            first..(first..).find(gap).expect("it ends")
                        });
                        prop_assert_eq!(set.take_run(most), run.clone());
                        model.retain(|block| !run.as_ref().is_some_and(|run| run.contains(block)));
                    }
                }
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((set.len(), set.is_empty()), (model.len() as u64, model.is_empty()));
                let words = set.words.values().all(|word| *word != 0);
                prop_assert!(words, "an empty word is kept");
            }
        }
    }
}
