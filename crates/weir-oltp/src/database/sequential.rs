//! Scans: pages in order, with read-ahead.

use super::{Database, EXTENT, FileOp, PAGE, Purpose};

/// Maximum pages of one read of a scan, and its read-ahead per file: 512 KiB, as in SQL Server.
const READ_AHEAD: u32 = 64;

impl Database {
    /// Returns the next page of a user's scan, by its number in the working set.
    pub(super) fn next_of_scan(&mut self, user: u32) -> u64 {
        let (all, extent) = (self.model.working_set, u64::from(EXTENT));
        let in_flight = self.users[user as usize].scan;
        let begins = in_flight.is_none();
        let start = in_flight.unwrap_or_else(|| self.rng.below(all) / extent * extent);
        // The pages of one read of each file.
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

    /// Reads the missing pages from `start` to `end`. Adjacent pages share a read.
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
