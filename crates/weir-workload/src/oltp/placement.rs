//! Where the pages of a database are: extent by extent over the data files, in
//! proportion to the free space of each (proportional fill).
//!
//! A *page number* here counts through the files one after the other, so that
//! pages that are neighbours in a file are neighbours in every table by page.

use super::model::{DataFile, EXTENT, PAGE};
use std::ops::Range;

/// Extents after which the pattern of files repeats, at most.
const PATTERN: usize = 1024;

/// The pages of the data files.
#[derive(Debug)]
pub struct Placement {
    /// The file of each extent of a round, and the how many-th of its file's it is.
    round: Vec<(u32, u32)>,
    /// Extents that each file gets of a round.
    share: Vec<u32>,
    /// The first page number of each file, and one past the last of all.
    first: Vec<u32>,
}

impl Placement {
    /// Places `pages` pages. There is at least one file.
    pub fn new(files: &[DataFile], pages: u64) -> Self {
        let mut share = vec![0; files.len()];
        let ranked = |file: u32| {
            let rank = share[file as usize];
            share[file as usize] += 1;
            (file, rank)
        };
        let round: Vec<(u32, u32)> = round(files).into_iter().map(ranked).collect();
        let rounds = pages.div_ceil(u64::from(EXTENT)).div_ceil(round.len() as u64);
        let mut first = vec![0];
        for extents in &share {
            let before = u64::from(*first.last().unwrap_or(&0));
            let end = before + rounds * u64::from(*extents) * u64::from(EXTENT);
            first.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        Self { round, share, first }
    }

    /// Page numbers are below this.
    pub fn pages(&self) -> u32 {
        self.first.last().copied().unwrap_or(0)
    }

    /// Data files.
    pub fn files(&self) -> usize {
        self.share.len()
    }

    /// The page numbers of a data file.
    pub fn range(&self, file: usize) -> Range<u32> {
        self.first[file]..self.first[file + 1]
    }

    /// The page number of the `logical`-th page of the database.
    #[expect(clippy::cast_possible_truncation, reason = "page numbers are u32, see `new`")]
    pub fn page(&self, logical: u64) -> u32 {
        let (extent, within) = (logical / u64::from(EXTENT), logical % u64::from(EXTENT));
        let length = self.round.len() as u64;
        let (file, rank) = self.round[(extent % length) as usize];
        let before = extent / length * u64::from(self.share[file as usize]) + u64::from(rank);
        self.first[file as usize] + (before * u64::from(EXTENT) + within) as u32
    }

    /// The data file of a page, and its offset there.
    pub fn locate(&self, page: u32) -> (usize, u64) {
        let file = self.first.partition_point(|first| *first <= page) - 1;
        (file, u64::from(page - self.first[file]) * PAGE)
    }
}

/// The files in the order in which they get extents: each time the one that is
/// furthest behind its share.
fn round(files: &[DataFile]) -> Vec<u32> {
    let weights: Vec<u64> = files.iter().map(|file| (file.free.get() >> 20).max(1)).collect();
    let total: u64 = weights.iter().sum();
    let common = weights.iter().fold(total, |a, b| gcd(a, *b));
    let length = usize::try_from(total / common).unwrap_or(PATTERN).min(PATTERN);
    let mut given = vec![0_u64; files.len()];
    let next = |n: u64| {
        // What it should have is weight x n / total; compared without dividing.
        let behind = |at: &usize| {
            let should = i128::from(weights[*at]) * i128::from(n);
            (should - i128::from(given[*at]) * i128::from(total), std::cmp::Reverse(*at))
        };
        let next = (0..files.len()).max_by_key(behind)?;
        given[next] += 1;
        u32::try_from(next).ok()
    };
    (1..=length as u64).filter_map(next).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use weir_units::Bytes;

    fn files(free: &[u64]) -> Vec<DataFile> {
        let file = |(file, gib)| DataFile { file, free: Bytes::gib(gib) };
        (0..).zip(free.iter().copied()).map(file).collect()
    }

    #[test]
    fn extents_go_to_the_files_by_their_free_space() {
        let placement = Placement::new(&files(&[300, 100]), 80_000);
        let mut seen = BTreeSet::new();
        let mut by_file = [0, 0];
        for logical in 0..80_000 {
            let page = placement.page(logical);
            assert!(seen.insert(page), "page {page} twice");
            by_file[placement.locate(page).0] += 1;
        }
        assert_eq!(by_file, [60_000, 20_000]);
    }

    #[test]
    fn an_extent_is_in_one_piece() {
        let placement = Placement::new(&files(&[1, 1, 1]), 240);
        assert_eq!(placement.locate(placement.page(16)), (2, 0));
        assert_eq!(placement.locate(placement.page(23)), (2, 7 * PAGE));
        assert_eq!(placement.locate(placement.page(24)), (0, 8 * PAGE));
        assert_eq!(placement.pages(), 240);
    }
}
