//! The use of tempdb: after a user has computed and before it visits pages, it allocates pages of
//! one file and fills them.

use super::{Database, FileOp, PAGE, Purpose, Tempdb, Timer, User, Wait};
use std::ops::Range;
use weir_units::Span;

impl Database {
    /// Starts the allocation of a user's pages of tempdb, if its transaction uses any.
    pub(super) fn allocate(&mut self, user: u32) {
        let state = &mut self.users[user as usize];
        let wants = self.model.mix[state.kind].tempdb_pages;
        let Some(tempdb) = self.tempdb.as_mut().filter(|_| wants > 0) else {
            self.go_on(user);
            return;
        };
        let (file, is_free) = tempdb.request(user);
        (state.temporary, state.temporary_file, state.waiting_since) = (wants, file, self.now);
        if is_free {
            let at = self.now + tempdb.hold(wants);
            self.set(at, Timer::Allocated(user));
        }
    }

    /// Ends a user's allocation, and starts that of the next user in the file's queue.
    pub(super) fn allocated(&mut self, user: u32) {
        let file = self.users[user as usize].temporary_file;
        let Some(tempdb) = &mut self.tempdb else { return };
        if let Some(next) = tempdb.release(file) {
            let User { temporary, waiting_since, .. } = self.users[next as usize];
            let at = self.now + tempdb.hold(temporary);
            self.counters.waits.count(Wait::PageLatchUp, self.now - waiting_since);
            self.set(at, Timer::Allocated(next));
        }
        self.fill(user, None);
    }

    /// Fills a user's pages, starting with the one that it waited for.
    fn fill(&mut self, user: u32, mut page: Option<u32>) {
        let Some(tempdb) = &mut self.tempdb else { return };
        let state = &mut self.users[user as usize];
        while state.temporary > 0 {
            if tempdb.change(user, page.take(), self.now).is_none() {
                state.waiting_since = self.now;
                return;
            }
            state.temporary -= 1;
        }
        self.go_on(user);
    }

    pub(super) fn write_all_temporary(&mut self) {
        let files = self.tempdb.as_ref().map_or(0, |tempdb| tempdb.placement.files());
        (0..files).for_each(|file| self.write_temporary(file));
    }

    fn write_temporary(&mut self, file: usize) {
        while let Some(tempdb) = &mut self.tempdb
            && let Tempdb { checkpointer, placement, pages, .. } = tempdb
            && let Some(write) = checkpointer.next_write(file, placement, pages, self.now)
            && let Some(model) = &self.model.tempdb
        {
            let (first, count) = (write.pages.start, write.pages.end - write.pages.start);
            let offset = tempdb.placement.locate(first).1;
            let device = model.data[file].file;
            let (since, waited_by) = (self.now, write.waited_by);
            let purpose = Purpose::Temporary { first, count, file, since, waited_by };
            self.want(purpose, device, FileOp::Write, offset, u64::from(count) * PAGE);
        }
    }

    /// Takes the completion of a write to tempdb.
    pub(super) fn temporary_written(
        &mut self,
        pages: Range<u32>,
        file: usize,
        waited_by: u64,
        took: Span,
    ) {
        for page in pages {
            let waited = self.tempdb.as_mut().map(|tempdb| tempdb.written(page));
            for user in waited.into_iter().flatten() {
                let waited = self.now - self.users[user as usize].waiting_since;
                self.counters.waits.count(Wait::PageIoLatchEx, waited);
                self.fill(user, Some(page));
            }
        }
        if self.tempdb.as_mut().is_some_and(|t| t.checkpointer.written(file, waited_by, took)) {
            self.write_temporary(file);
        }
    }
}
