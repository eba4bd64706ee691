//! New pages, and data files that grow for them.

use super::Database;
#[cfg(doc)]
use super::FileIo;
use crate::space::NewPage;
use weir_units::{Bytes, Instant};

/// A data file that should grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileGrowth {
    /// The file, as [`FileIo::file`] has it.
    pub file: u32,
    /// The size that it should have.
    pub size: Bytes,
}

impl Database {
    /// A data file that must grow, because all are full. Whoever asks has it grow, and
    /// tells [`handle_growth`](Self::handle_growth) before anything else.
    #[must_use]
    pub fn poll_growth(&self) -> Option<FileGrowth> {
        if self.unplaced.is_empty() {
            return None;
        }
        let (data, size) = self.space.growing()?;
        Some(FileGrowth { file: self.model.data[data].file, size: Bytes::new(size) })
    }

    /// The file that [`poll_growth`](Self::poll_growth) told of has grown, or it cannot:
    /// then it stays as it is for good, and another grows if one can.
    pub fn handle_growth(&mut self, now: Instant, granted: bool) {
        self.now = self.now.max(now);
        self.space.grown(granted);
        self.counters.growths += u64::from(granted);
        if granted || self.space.growing().is_none() {
            std::mem::take(&mut self.unplaced).into_iter().for_each(|user| self.go_on(user));
        }
    }

    /// Whether there is room for new pages, and no numbers.
    pub(crate) fn is_out_of_numbers(&self) -> bool {
        self.space.is_out_of_numbers()
    }

    /// The next new page. If there is none the user waits until a file has
    /// grown, or gives up.
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

    /// A transaction ends without having changed anything; its new pages are free again.
    fn give_up(&mut self, user: u32) {
        let changed = self.changed[user as usize].drain(..);
        self.returned.extend(changed.filter(|page| self.placement.new_number(*page).is_some()));
        self.counters.failed += 1;
        self.think(user);
    }
}
