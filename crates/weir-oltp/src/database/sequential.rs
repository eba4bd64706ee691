//! Pages one after the other: scans, which are read ahead of.

use super::{Database, EXTENT, FileOp, PAGE, Purpose};

/// Pages of a file that one read of a scan brings at most, and that are read ahead of it:
/// 512 KiB, SQL Server's.
const READ_AHEAD: u32 = 64;

impl Database {
    /// The number in the working set of the page that a user's scan comes to.
    pub(super) fn next_of_scan(&mut self, user: u32) -> u64 {
        let (all, extent) = (self.model.working_set, u64::from(EXTENT));
        let under_way = self.users[user as usize].scan;
        let begins = under_way.is_none();
        let start = under_way.unwrap_or_else(|| self.rng.below(all) / extent * extent);
        // Of every file so many pages.
        let block = u64::from(READ_AHEAD) * self.placement.files() as u64;
        if begins {
            self.read_ahead(start, start / block * block + block);
        }
        if begins || start.is_multiple_of(block) {
            let next = start / block * block + block;
            self.read_ahead(next, next + block);
        }
        self.users[user as usize].scan = Some((start + 1) % all);
        start
    }

    /// Reads the pages from `start` to `end` that are not there, as many neighbours at
    /// once as a read may bring.
    fn read_ahead(&mut self, start: u64, end: u64) {
        if !self.pages.make_room() {
            return;
        }
        let mut pages: Vec<u32> = (start..end.min(self.model.working_set))
            .map(|logical| self.placement.page(logical))
            .filter(|page| self.pages.is_absent(*page))
            .collect();
        pages.sort_unstable();
        let mut left = &pages[..];
        while let Some(first) = left.first().copied() {
            let (data, offset) = self.placement.locate(first);
            let range = self.placement.range(data);
            let joins = |(page, next): (&u32, u32)| *page == next && range.contains(page);
            let run = left.iter().zip(first..first + READ_AHEAD).take_while(|pair| joins(*pair));
            let count = u32::try_from(run.count()).unwrap_or(READ_AHEAD);
            (first..first + count).for_each(|page| self.pages.begin_read(page));
            let file = self.model.data[data].file;
            let purpose = Purpose::Read { first, count };
            self.want(purpose, file, FileOp::Read, offset, u64::from(count) * PAGE);
            left = &left[count as usize..];
        }
    }
}
