//! Two bits for each page of a layer, in as much memory as was written.
//!
//! ```text
//! page number --> chunk of 4096 pages (2 MiB): absent, or one mark for all, or 1 KiB of marks
//! ```
//!
//! A chunk that nothing was said about does not exist, so a question about all of an
//! empty volume is one step in a tree.

use crate::pieces::{Piece, index, pieces};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A mark of two bits; what they mean is for the user of the map.
pub(crate) type Mark = u8;

/// The mark of every page that none was given.
pub(crate) const NONE: Mark = 0;

const CHUNK_LEN: usize = 4096;
const CHUNK: u64 = CHUNK_LEN as u64;
const PER_WORD: usize = 32;
const WORDS: usize = CHUNK_LEN / PER_WORD;
/// The lower bit of every mark in a word.
const LOW: u64 = 0x5555_5555_5555_5555;

/// Marks of pages by their number.
#[derive(Default)]
pub(crate) struct PageMap(BTreeMap<u64, Chunk>);

impl fmt::Debug for PageMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageMap").field("chunks", &self.0.len()).finish()
    }
}

/// The marks of neighbours.
#[derive(Debug)]
enum Chunk {
    /// All the same, and not [`NONE`].
    Uniform(Mark),
    Mixed(Box<[u64; WORDS]>),
}

/// Neighbouring pages of one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) pages: Range<u64>,
    pub(crate) mark: Mark,
}

impl PageMap {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of chunks that it takes room for.
    #[cfg(test)]
    pub(crate) fn chunks(&self) -> usize {
        self.0.len()
    }

    /// Returns the mark of `page`, and how many pages from there on have it, up to `end`, which
    /// is behind `page`.
    pub(crate) fn run_at(&self, page: u64, end: u64) -> (Mark, u64) {
        let (mark, mut to) = self.run_in_chunk(page, end);
        while to < end {
            let (next, next_to) = self.run_in_chunk(to, end);
            if next != mark {
                break;
            }
            to = next_to;
        }
        (mark, to - page)
    }

    /// Does as [`run_at`](Self::run_at), but tells where the run ends, at the end of a chunk at
    /// the latest or, where there are none, at the next one.
    fn run_in_chunk(&self, page: u64, end: u64) -> (Mark, u64) {
        let number = page / CHUNK;
        let Some(chunk) = self.0.get(&number) else {
            let next = self.0.range(number..).next().map_or(end, |(next, _)| next * CHUNK);
            return (NONE, next.min(end));
        };
        let start = number * CHUNK;
        let (mark, to) = chunk.run_from(index(page - start));
        (mark, (start + to).min(end))
    }

    /// Marks pages. It takes a step for each chunk of the range.
    pub(crate) fn set(&mut self, pages: Range<u64>, mark: Mark) {
        for piece in pieces(pages.start, pages.end.saturating_sub(pages.start), CHUNK) {
            if piece.is_whole(CHUNK) {
                self.set_chunk(piece.unit, mark);
            } else {
                self.set_part(&piece, mark);
            }
        }
    }

    fn set_chunk(&mut self, number: u64, mark: Mark) {
        if mark == NONE {
            self.0.remove(&number);
        } else {
            self.0.insert(number, Chunk::Uniform(mark));
        }
    }

    fn set_part(&mut self, piece: &Piece, mark: Mark) {
        let chunk = self.0.entry(piece.unit).or_insert(Chunk::Uniform(NONE));
        if let Chunk::Uniform(all) = *chunk {
            if all == mark {
                // A chunk that was made for this is not kept.
                if mark == NONE {
                    self.0.remove(&piece.unit);
                }
                return;
            }
            *chunk = Chunk::Mixed(Box::new([word_of(all); WORDS]));
        }
        let Chunk::Mixed(words) = chunk else { return };
        set_bits(words, piece.in_unit(), mark);
        if words.iter().all(|word| *word == word_of(mark)) {
            self.set_chunk(piece.unit, mark);
        }
    }

    /// Returns the runs of every mark but [`NONE`], ascending.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let (mark, len) = self.run_at(at, u64::MAX);
                let pages = at..at + len;
                at = pages.end;
                if mark != NONE {
                    return Some(Run { pages, mark });
                }
                if at == u64::MAX {
                    return None;
                }
            }
        })
    }
}

impl Chunk {
    /// Returns the mark at a place in the chunk, and the place up to which all have it.
    fn run_from(&self, from: usize) -> (Mark, u64) {
        let words = match self {
            Self::Uniform(mark) => return (*mark, CHUNK),
            Self::Mixed(words) => words,
        };
        let shift = from % PER_WORD * 2;
        let mark = (words[from / PER_WORD] >> shift) & 3;
        let wanted = mark * LOW;
        let mut mask = u64::MAX << shift;
        for (number, word) in words.iter().enumerate().skip(from / PER_WORD) {
            let differ = (word ^ wanted) & mask;
            if differ != 0 {
                let to = number * PER_WORD + differ.trailing_zeros() as usize / 2;
                return (mark_of(mark), to as u64);
            }
            mask = u64::MAX;
        }
        (mark_of(mark), CHUNK)
    }
}

fn set_bits(words: &mut [u64; WORDS], places: Range<usize>, mark: Mark) {
    for piece in pieces(places.start as u64, places.len() as u64, PER_WORD as u64) {
        let bits = u64::MAX >> (64 - 2 * piece.len) << (2 * piece.start);
        let word = &mut words[index(piece.unit)];
        *word = *word & !bits | word_of(mark) & bits;
    }
}

/// Returns a word of nothing but one mark.
fn word_of(mark: Mark) -> u64 {
    u64::from(mark) * LOW
}

#[expect(clippy::cast_possible_truncation, reason = "the caller has two bits")]
fn mark_of(bits: u64) -> Mark {
    bits as Mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_map_is_one_run_of_nothing() {
        let map = PageMap::default();
        assert_eq!(map.run_at(0, u64::MAX), (NONE, u64::MAX));
        assert_eq!(map.runs().next(), None);
    }

    #[test]
    fn runs_are_joined_over_chunks_and_clipped() {
        let mut map = PageMap::default();
        map.set(10..3 * CHUNK + 5, 2);
        assert_eq!(map.run_at(0, u64::MAX), (NONE, 10));
        assert_eq!(map.run_at(11, u64::MAX), (2, 3 * CHUNK - 6));
        assert_eq!(map.run_at(11, 2 * CHUNK), (2, 2 * CHUNK - 11));
        assert_eq!(map.runs().collect::<Vec<_>>(), [Run { pages: 10..3 * CHUNK + 5, mark: 2 }]);
    }

    #[test]
    fn chunks_that_became_uniform_take_no_room() {
        let mut map = PageMap::default();
        map.set(0..CHUNK - 1, 1);
        assert!(matches!(map.0[&0], Chunk::Mixed(_)));
        map.set(CHUNK - 1..CHUNK, 1);
        assert!(matches!(map.0[&0], Chunk::Uniform(1)));
        map.set(5..CHUNK, NONE);
        map.set(0..5, NONE);
        map.set(7 * CHUNK + 1..7 * CHUNK + 2, NONE);
        assert!(map.is_empty());
    }

    proptest! {
        #[test]
        fn a_map_is_a_vector_of_marks(
            sets in prop::collection::vec((0..4 * CHUNK, 0..2 * CHUNK, 0..4_u8), 0..30),
            looks in prop::collection::vec((0..6 * CHUNK, 1..3 * CHUNK), 1..50),
        ) {
            let mut map = PageMap::default();
            let mut model = vec![NONE; 9 * CHUNK_LEN];
            for (start, len, mark) in sets {
                map.set(start..start + len, mark);
                model[index(start)..index(start + len)].fill(mark);
            }
            for (page, len) in looks {
                let (mark, run) = map.run_at(page, page + len);
                let asked = &model[index(page)..index(page + len)];
                let same = asked.iter().take_while(|m| **m == asked[0]).count();
                prop_assert_eq!((mark, run), (asked[0], same as u64));
            }
            let mut found = vec![NONE; model.len()];
            for run in map.runs() {
                found[index(run.pages.start)..index(run.pages.end)].fill(run.mark);
            }
            prop_assert!(found == model);
        }
    }
}
