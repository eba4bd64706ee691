//! New pages, and growth of data files.

use super::Database;
#[cfg(doc)]
use super::FileIo;
use crate::space::NewPage;
use weir_units::{Bytes, Instant};

/// A growth of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileGrowth {
    /// The file, numbered as in [`FileIo::file`].
    pub file: u32,
    /// The new size.
    pub size: Bytes,
}

impl Database {
    /// Returns the data file that must grow because all are full. The caller lets it grow and calls
    /// [`handle_growth`](Self::handle_growth) before anything else.
    #[must_use]
    pub fn poll_growth(&self) -> Option<FileGrowth> {
        if self.unplaced.is_empty() {
            return None;
        }
        let (data, size) = self.space.growing()?;
        Some(FileGrowth { file: self.model.data[data].file, size: Bytes::new(size) })
    }

    /// Takes the result of the growth that [`poll_growth`](Self::poll_growth) returned. A file
    /// whose growth was not granted is not asked again, and another file may grow.
    pub fn handle_growth(&mut self, now: Instant, granted: bool) {
        self.now = self.now.max(now);
        self.space.grown(granted);
        self.counters.growths += u64::from(granted);
        if granted || self.space.growing().is_none() {
            std::mem::take(&mut self.unplaced).into_iter().for_each(|user| self.go_on(user));
        }
    }

    /// Returns whether there is room for new pages, but no page numbers.
    pub(crate) fn is_out_of_numbers(&self) -> bool {
        self.space.is_out_of_numbers()
    }

    /// Allocates a new page. If there is none, the user waits until a file has grown, or its
    /// transaction fails.
    pub(super) fn place_new(&mut self, user: u32) -> Option<u32> {
        if let Some(page) = self.returned.pop() {
            return Some(page);
        }
        match self.space.next() {
            NewPage::Page(file, number) => Some(self.placement.new_page(file, number)),
            NewPage::Full => {
                self.unplaced.push(user);
                None
            }
            NewPage::Never => {
                self.give_up(user);
                None
            }
        }
    }

    /// Fails a transaction without changes, and frees its new pages.
    fn give_up(&mut self, user: u32) {
        let changed = self.changed[user as usize].drain(..);
        self.returned.extend(changed.filter(|page| self.placement.new_number(*page).is_some()));
        self.counters.failed += 1;
        self.think(user);
    }
}
