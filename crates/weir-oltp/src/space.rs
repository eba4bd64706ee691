//! Space for new pages: extents go to the data files by their free space (proportional fill), until
//! all are full and one of them grows.
//!
//! SQL Server gives each file a *skip target*. The file with the most free space has 1 and takes an
//! extent in every round; a file with half of that has 2 and takes one in every other round. The
//! targets are recomputed after 8,192 extents, and when a file is full or has grown. Full files
//! grow in turn (AUTOGROW_SINGLE_FILE, the default).

use crate::model::{DataFile, EXTENT, PAGE};
use std::ops::Range;

const EXTENT_BYTES: u64 = PAGE * EXTENT as u64;
/// Extents after which the targets are recomputed.
const RECOUNT: u32 = 8192;

/// A data file and its free space.
#[derive(Debug, Clone)]
struct Room {
    /// Its bytes, and its allocated bytes.
    size: u64,
    allocated: u64,
    growth: Option<u64>,
    most: u64,
    /// The file gets an extent in every `target`-th round; 0 is never.
    target: u64,
    /// Rounds still to skip.
    skip: u64,
}

impl Room {
    fn free_extents(&self) -> u64 {
        self.size.saturating_sub(self.allocated) / EXTENT_BYTES
    }

    /// Returns the size after the next growth.
    fn next_size(&self) -> Option<u64> {
        let next = self.size.saturating_add(self.growth?).min(self.most);
        (next > self.size).then_some(next)
    }
}

/// The result of [`Space::next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewPage {
    /// A new page of a data file, by its rank among the new pages of that file.
    Page(usize, u32),
    /// A data file must grow first.
    Full,
    /// No data file can grow.
    Never,
}

/// The free space of the data files.
#[derive(Debug)]
pub(crate) struct Space {
    files: Vec<Room>,
    /// New pages of each file.
    new: Vec<u32>,
    /// The extent that is being filled.
    extent: (usize, Range<u32>),
    /// The next file to take an extent, and the next one to grow.
    turn: usize,
    grows: usize,
    /// Extents until the targets are recomputed.
    recount: u32,
    /// Maximum number of new pages of a file.
    limit: u32,
}

impl Space {
    /// Returns the free space of `files`, each of which may have `limit` new pages.
    pub(crate) fn new(files: &[DataFile], limit: u32) -> Self {
        let room = |file: &DataFile| {
            let new = u64::from(file.new_pages) * PAGE;
            Room {
                size: file.size.get(),
                allocated: file.new_from() + new.next_multiple_of(EXTENT_BYTES),
                growth: file.growth.map(|growth| growth.by.get()),
                most: file.growth.map_or(0, |growth| growth.most.get()),
                target: 0,
                skip: 0,
            }
        };
        Self {
            files: files.iter().map(room).collect(),
            new: files.iter().map(|file| file.new_pages.next_multiple_of(EXTENT)).collect(),
            extent: (0, 0..0),
            turn: 0,
            grows: 0,
            recount: 0,
            limit: limit / EXTENT * EXTENT,
        }
    }

    /// Allocates the next new page.
    pub(crate) fn next(&mut self) -> NewPage {
        let (file, extent) = &mut self.extent;
        if let Some(page) = extent.next() {
            return NewPage::Page(*file, page);
        }
        if self.recount == 0 {
            self.count_targets();
        }
        match self.next_file() {
            Some(file) => {
                let first = self.new[file];
                self.new[file] += EXTENT;
                self.files[file].allocated += EXTENT_BYTES;
                self.extent = (file, first..first + EXTENT);
                self.recount -= 1;
                if !self.has_room(file) {
                    self.recount = 0;
                }
                self.next()
            }
            None if self.growing().is_some() => NewPage::Full,
            None => NewPage::Never,
        }
    }

    fn has_room(&self, file: usize) -> bool {
        self.files[file].free_extents() > 0 && self.new[file] < self.limit
    }

    /// Returns the file of the next extent: the first one in turn that has skipped its rounds.
    fn next_file(&mut self) -> Option<usize> {
        if self.files.iter().all(|file| file.target == 0) {
            return None;
        }
        loop {
            let at = self.turn;
            self.turn = (at + 1) % self.files.len();
            let file = &mut self.files[at];
            if file.target == 0 {
                continue;
            }
            if file.skip == 0 {
                file.skip = file.target - 1;
                return Some(at);
            }
            file.skip -= 1;
        }
    }

    fn count_targets(&mut self) {
        self.recount = RECOUNT;
        let free = |at: usize| if self.has_room(at) { self.files[at].free_extents() } else { 0 };
        let free: Vec<u64> = (0..self.files.len()).map(free).collect();
        let most = free.iter().max().copied().unwrap_or(0);
        for (file, free) in self.files.iter_mut().zip(free) {
            // Rounded to the nearest integer.
            file.target = (most + free / 2).checked_div(free).unwrap_or(0);
            file.skip = 0;
        }
    }

    /// Returns whether a file has room but no page numbers for more new pages.
    pub(crate) fn is_out_of_numbers(&self) -> bool {
        let can_grow = |room: &Room| room.free_extents() > 0 || room.next_size().is_some();
        self.files.iter().zip(&self.new).any(|(room, new)| *new >= self.limit && can_grow(room))
    }

    /// Returns the data file that grows next, and its new size.
    pub(crate) fn growing(&self) -> Option<(usize, u64)> {
        let turns = (0..self.files.len()).map(|n| (self.grows + n) % self.files.len());
        turns
            .filter(|at: &usize| self.new[*at] < self.limit)
            .find_map(|at| Some((at, self.files[at].next_size()?)))
    }

    /// Takes the result of a growth. A file whose growth was not granted is not asked again.
    pub(crate) fn grown(&mut self, granted: bool) {
        let Some((file, size)) = self.growing() else { return };
        if granted {
            self.files[file].size = size;
            self.grows = (file + 1) % self.files.len();
        } else {
            self.files[file].growth = None;
        }
        self.recount = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Growth;
    use weir_units::Bytes;

    /// Makes files from their extents and their extents in use.
    fn files(extents: &[(u64, u64)]) -> Vec<DataFile> {
        let bytes = |extents: u64| Bytes::new(extents * EXTENT_BYTES);
        let file = |(file, (size, used)): (u32, &(u64, u64))| {
            let used = bytes(*used);
            DataFile { used, ..DataFile::new(file, bytes(*size)) }
        };
        (0..).zip(extents).map(file).collect()
    }

    /// Returns the extents that each file gets, until there are `most` or no more.
    fn fill(space: &mut Space, most: usize) -> Vec<usize> {
        let mut extents = vec![0; space.files.len()];
        for _ in 0..most {
            let NewPage::Page(file, first) = space.next() else { break };
            for page in first + 1..first + EXTENT {
                assert_eq!(space.next(), NewPage::Page(file, page), "an extent is in one piece");
            }
            extents[file] += 1;
        }
        extents
    }

    #[test]
    fn new_extents_go_to_files_by_their_free_space() {
        let mut space = Space::new(&files(&[(100, 40), (100, 70), (100, 100)]), u32::MAX);
        assert_eq!(fill(&mut space, 30), [20, 10, 0]);
        assert_eq!(fill(&mut space, 1000), [40, 20, 0]);
        assert_eq!(space.next(), NewPage::Never);
        // A new file beside full ones takes all extents, a well-known trap.
        let mut space = Space::new(&files(&[(1000, 990), (1000, 0)]), u32::MAX);
        assert_eq!(fill(&mut space, 101), [1, 100]);
    }

    #[test]
    fn full_files_grow_in_turn_up_to_their_maximum() {
        let mut all = files(&[(10, 10), (10, 10), (10, 10)]);
        for (at, most) in [(0, 14), (2, 13)] {
            let (by, most) = (Bytes::new(2 * EXTENT_BYTES), Bytes::new(most * EXTENT_BYTES));
            all[at].growth = Some(Growth { by, most });
        }
        let mut space = Space::new(&all, u32::MAX);
        for (file, size, extents) in [(0, 12, 2), (2, 12, 2), (0, 14, 2), (2, 13, 1)] {
            assert_eq!(space.next(), NewPage::Full);
            assert_eq!(space.growing(), Some((file, size * EXTENT_BYTES)));
            space.grown(true);
            assert_eq!(fill(&mut space, 100)[file], extents);
        }
        assert_eq!(space.next(), NewPage::Never);
    }

    #[test]
    fn a_file_that_cannot_grow_is_not_asked_again() {
        let mut all = files(&[(1, 1), (1, 1)]);
        let growth = Growth { by: Bytes::new(EXTENT_BYTES), most: Bytes::gib(1) };
        all.iter_mut().for_each(|file| file.growth = Some(growth));
        let mut space = Space::new(&all, u32::MAX);
        space.grown(false);
        assert_eq!((space.next(), space.growing()), (NewPage::Full, Some((1, 2 * EXTENT_BYTES))));
        space.grown(false);
        assert_eq!(space.next(), NewPage::Never);
    }

    #[test]
    fn page_numbers_are_the_end() {
        let mut space = Space::new(&files(&[(100, 0)]), 17);
        assert_eq!(fill(&mut space, 100), [2]);
        assert_eq!(space.next(), NewPage::Never);
    }

    #[test]
    fn new_pages_of_earlier_runs_are_in_use() {
        let mut all = files(&[(10, 3)]);
        all[0].new_pages = 12;
        let mut space = Space::new(&all, u32::MAX);
        assert_eq!(fill(&mut space, 100), [5]);
        assert_eq!(space.new, [16 + 5 * EXTENT]);
    }
}
