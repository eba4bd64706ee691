//! The placement of a database's pages: extent by extent over the data files, in proportion to the
//! bytes in use of each.
//!
//! A *page number* counts through the working set, file by file, and then through the new pages of
//! each file. Adjacent pages of a file are therefore adjacent in every table by page:
//!
//! ```text
//! file      | working set | cold | new pages ->          | working set | cold | new ->
//! number      0 ..                 base ..                 first[1] ..   base + stride ..
//! ```

use crate::model::{DataFile, EXTENT, PAGE};
use std::ops::Range;

/// Extents after which the pattern of files repeats, at most.
const PATTERN: usize = 1024;

/// The pages of the data files.
#[derive(Debug)]
pub struct Placement {
    /// The file of each extent of a round, and its rank among the extents of that file.
    round: Vec<(u32, u32)>,
    /// Extents of each file in a round.
    share: Vec<u32>,
    /// The first page number of each file, and one past the last of all.
    first: Vec<u32>,
    /// The offset of the new pages in each file.
    new_from: Vec<u64>,
    /// New pages of each file within its original size; the others may be elsewhere on the disk.
    near: Vec<u32>,
    /// Page numbers for the new pages of one file.
    stride: u32,
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
        let numbers = u32::MAX - first.last().copied().unwrap_or(0);
        let stride = numbers / u32::try_from(files.len().max(1)).unwrap_or(u32::MAX);
        let stride = stride / EXTENT * EXTENT;
        let new_from = files.iter().map(DataFile::new_from).collect();
        let near = |file: &DataFile| {
            let pages = file.declared.get().saturating_sub(file.new_from()) / PAGE;
            u32::try_from(pages).unwrap_or(u32::MAX).min(stride)
        };
        let near = files.iter().map(near).collect();
        Self { round, share, first, new_from, near, stride }
    }

    /// Returns the number of pages of the working set. Their page numbers are below it.
    pub fn pages(&self) -> u32 {
        self.first.last().copied().unwrap_or(0)
    }

    /// Returns the maximum number of new pages of a file.
    pub fn new_pages(&self) -> u32 {
        self.stride
    }

    /// Returns the number of data files.
    pub fn files(&self) -> usize {
        self.share.len()
    }

    /// Returns the page numbers of the working set in a data file.
    pub fn range(&self, file: usize) -> Range<u32> {
        self.first[file]..self.first[file + 1]
    }

    /// Returns the page numbers of the first `count` new pages of a data file.
    pub fn new_range(&self, file: usize, count: u32) -> Range<u32> {
        let first = self.pages() + self.stride * u32::try_from(file).unwrap_or(u32::MAX);
        first..first + count.min(self.stride)
    }

    /// Returns the page number of the `new`-th new page of a data file.
    pub(crate) fn new_page(&self, file: usize, new: u32) -> u32 {
        self.new_range(file, new).end
    }

    /// Returns the page numbers around `page` whose pages are contiguous in a file.
    pub fn piece(&self, page: u32) -> Range<u32> {
        match self.new_number(page) {
            Some((file, new)) => {
                let all = self.new_range(file, self.stride);
                let border = all.start + self.near[file];
                if new < self.near[file] { all.start..border } else { border..all.end }
            }
            None => self.range(self.file_of(page)),
        }
    }

    /// Returns the file of a new page, and its rank there.
    pub fn new_number(&self, page: u32) -> Option<(usize, u32)> {
        let new = page.checked_sub(self.pages())?;
        Some(((new / self.stride.max(1)) as usize, new % self.stride.max(1)))
    }

    /// Returns whether a page with this number can exist.
    pub fn has(&self, page: u32) -> bool {
        self.new_number(page).is_none_or(|(file, _)| file < self.files())
    }

    fn file_of(&self, page: u32) -> usize {
        self.first.partition_point(|first| *first <= page) - 1
    }

    /// Returns the page number of the `logical`-th page of the database.
    #[expect(clippy::cast_possible_truncation, reason = "page numbers are u32, see `new`")]
    pub fn page(&self, logical: u64) -> u32 {
        let (extent, within) = (logical / u64::from(EXTENT), logical % u64::from(EXTENT));
        let length = self.round.len() as u64;
        let (file, rank) = self.round[(extent % length) as usize];
        let before = extent / length * u64::from(self.share[file as usize]) + u64::from(rank);
        self.first[file as usize] + (before * u64::from(EXTENT) + within) as u32
    }

    /// Returns the data file of a page, and its offset there.
    pub fn locate(&self, page: u32) -> (usize, u64) {
        match self.new_number(page) {
            Some((file, new)) => (file, self.new_from[file] + u64::from(new) * PAGE),
            None => {
                let file = self.file_of(page);
                (file, u64::from(page - self.first[file]) * PAGE)
            }
        }
    }
}

/// Returns the files in the order in which they get extents: each time, the one that is furthest
/// behind its share.
fn round(files: &[DataFile]) -> Vec<u32> {
    const EXTENT_BYTES: u64 = PAGE * EXTENT as u64;
    let mut weights: Vec<u64> = files.iter().map(|file| file.weight.get() / EXTENT_BYTES).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    let total: u64 = weights.iter().sum();
    let common = weights.iter().fold(total, |a, b| gcd(a, *b));
    let length = usize::try_from(total / common).unwrap_or(PATTERN).min(PATTERN);
    let mut given = vec![0_u64; files.len()];
    let next = |n: u64| {
        // The share is weight x n / total; the comparison avoids the division.
        let next = (0..files.len()).max_by_key(|at: &usize| {
            let should = i128::from(weights[*at]) * i128::from(n);
            (should - i128::from(given[*at]) * i128::from(total), std::cmp::Reverse(*at))
        })?;
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
        let file = |(file, gib)| DataFile::new(file, Bytes::gib(gib));
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
    fn a_file_of_which_nothing_is_in_use_gets_nothing() {
        let mut files = files(&[1, 1]);
        files[0].weight = Bytes::ZERO;
        let placement = Placement::new(&files, 800);
        assert_eq!((placement.range(0), placement.range(1)), (0..0, 0..800));
        assert!((0..800).all(|logical| placement.locate(placement.page(logical)).0 == 1));
    }

    #[test]
    fn an_extent_is_in_one_piece() {
        let placement = Placement::new(&files(&[1, 1, 1]), 240);
        assert_eq!(placement.locate(placement.page(16)), (2, 0));
        assert_eq!(placement.locate(placement.page(23)), (2, 7 * PAGE));
        assert_eq!(placement.locate(placement.page(24)), (0, 8 * PAGE));
        assert_eq!(placement.pages(), 240);
    }

    #[test]
    fn new_pages_are_behind_what_is_in_use() {
        let mut files = files(&[1, 1]);
        files[1].used = Bytes::mib(100);
        let placement = Placement::new(&files, 1600);
        let new = placement.new_range(1, 20);
        assert_eq!(placement.locate(new.start), (1, 100 << 20));
        assert_eq!(placement.locate(new.end - 1), (1, (100 << 20) + 19 * PAGE));
        assert_eq!(placement.new_number(new.start + 3), Some((1, 3)));
        let near = u32::try_from(((1 << 30) - (100 << 20)) / PAGE).expect("few");
        assert_eq!(placement.piece(new.start + 3), new.start..new.start + near);
        // Growth may be elsewhere on the disk, so no write crosses the border.
        let all = placement.new_range(1, u32::MAX);
        assert_eq!(placement.piece(new.start + near), new.start + near..all.end);
        assert_eq!((placement.piece(900), placement.piece(799)), (800..1600, 0..800));
        let last = placement.new_range(1, u32::MAX).end - 1;
        assert_eq!((placement.has(last), placement.has(last + 1)), (true, false));
    }
}
