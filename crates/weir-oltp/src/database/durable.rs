//! Durability: commits in the log, pages in the data files, and the redo point, from which on
//! recovery needs the log.

use super::{
    CHECKPOINT_SLOT, Commit, Database, FileOp, Lookup, PAGE, Purpose, RedoPoint, Timer, Wait,
};
use crate::log::{LogWrite, record_bytes};
use weir_units::{Instant, Span};

impl Database {
    /// Commits a user's transaction if its pages are in memory and the log has room.
    pub(super) fn commit(&mut self, user: u32) {
        let bytes = self.record_bytes(user);
        if bytes == 0 {
            self.end(user);
        } else if !self.stalled.is_empty() || !self.log.has_room(bytes) {
            self.begin_wait(user);
            self.stalled.push_back(user);
            self.checkpoint_if_full();
        } else if self.has_its_pages(user) {
            self.append(user, bytes);
            self.send_log();
            self.checkpoint_if_full();
        }
    }

    fn record_bytes(&self, user: u32) -> u64 {
        let stated = self.model.mix[self.users[user as usize].kind].log.get();
        record_bytes(stated, self.changed[user as usize].len() as u64)
    }

    /// Returns whether all pages that a transaction changes are in memory. A page may have been
    /// written and evicted while the user waited for another. The transaction has seen it, so it is
    /// put back without a read. The user waits for a page that is being read for another user.
    fn has_its_pages(&mut self, user: u32) -> bool {
        if !self.users[user as usize].waited {
            return true;
        }
        for at in 0..self.changed[user as usize].len() {
            let page = self.changed[user as usize][at];
            match self.pages.want(page, false) {
                Lookup::Ready => {}
                Lookup::Missing => self.pages.create(page),
                Lookup::Busy => {
                    self.wait_for(user, page, Lookup::Busy);
                    return false;
                }
            }
            // A dirty page is not evicted for a later page of the same transaction.
            self.mark_dirty(page);
        }
        true
    }

    /// Appends the record to the log, and changes the pages in memory.
    fn append(&mut self, user: u32, bytes: u64) {
        self.commits += 1;
        let changed = std::mem::take(&mut self.changed[user as usize]);
        self.changes += changed.len() as u64;
        changed.iter().for_each(|page| self.unhardened.add(*page));
        if let Some(unpolled) = &mut self.unpolled {
            let (number, changes, pages) = (self.commits, self.changes, changed.clone());
            unpolled.push_back(Commit { number, changes, bytes, pages });
        }
        self.changed[user as usize] = changed;
        self.log.commit(user, bytes, self.now);
    }

    pub(super) fn mark_dirty(&mut self, page: u32) {
        if let Some(mark) = self.pages.mark_dirty(page) {
            let (data, _) = self.placement.locate(page);
            self.checkpointer.dirtied(data, page, mark, self.now);
        }
    }

    pub(super) fn set_checkpoint(&mut self, at: Instant) {
        self.checkpoint_at = Some(at);
        self.set(at, Timer::Checkpoint);
    }

    /// Starts a checkpoint early if the log is filling.
    fn checkpoint_if_full(&mut self) {
        let full = self.log.is_filling() || !self.stalled.is_empty();
        if full && !self.checkpointer.is_running() {
            self.checkpoint(true);
        } else if full && self.checkpointer.hurry() {
            self.write_all_dirty();
        }
    }

    pub(super) fn checkpoint(&mut self, log_is_full: bool) {
        self.checkpoint_at = None;
        self.redo = RedoPoint {
            sequence: self.redo.sequence + 1,
            lsn: self.log.lsn(),
            commit: self.commits,
            changes: self.changes,
        };
        self.redo_appended = self.log.appended();
        self.checkpointer.begin(self.now, log_is_full);
        self.write_all_dirty();
    }

    pub(super) fn write_all_dirty(&mut self) {
        (0..self.placement.files()).for_each(|data| self.write_dirty(data));
        self.end_checkpoint();
    }

    pub(super) fn write_dirty(&mut self, data: usize) {
        while let Some(write) =
            self.checkpointer.next_write(data, &self.placement, &mut self.pages, self.now)
        {
            let (first, count) = (write.pages.start, write.pages.end - write.pages.start);
            let offset = self.placement.locate(first).1;
            let file = self.model.data[data].file;
            let (since, waited_by) = (self.now, write.waited_by);
            let purpose = Purpose::Write { first, count, data, since, waited_by };
            self.want(purpose, file, FileOp::Write, offset, u64::from(count) * PAGE);
        }
    }

    /// Writes the redo point to the log file when all pages changed before the checkpoint are
    /// written, and the log up to its start.
    pub(super) fn end_checkpoint(&mut self) {
        let hardened = self.log.hardened() >= self.redo_appended;
        if hardened && !self.redo_on_its_way && self.checkpointer.is_swept(&self.pages) {
            self.redo_on_its_way = true;
            let (purpose, log) = (Purpose::Checkpoint(self.redo), self.model.log.file);
            self.want(purpose, log, FileOp::Write, self.redo.offset(), CHECKPOINT_SLOT);
        }
    }

    /// Completes a checkpoint whose redo point is written, and frees the log before it.
    pub(super) fn checkpointed(&mut self, redo: RedoPoint) {
        self.redo_on_its_way = false;
        self.log.free(redo.lsn);
        if let Some(next) = self.checkpointer.complete(self.now) {
            self.set_checkpoint(next);
        }
        while let Some(user) = self.stalled.front().copied()
            && let bytes = self.record_bytes(user)
            && self.log.has_room(bytes)
        {
            self.stalled.pop_front();
            let waited = self.now - self.users[user as usize].waiting_since;
            self.counters.waits.count(Wait::LogmgrReserveAppend, waited);
            if self.has_its_pages(user) {
                self.append(user, bytes);
            }
        }
        self.send_log();
        self.checkpoint_if_full();
    }

    pub(super) fn send_log(&mut self) {
        while let Some(write) = self.log.next_write(self.now) {
            let LogWrite { lsn, bytes, end, .. } = write;
            let purpose = Purpose::Log { end, lsn, bytes };
            self.want(purpose, self.model.log.file, FileOp::Write, write.offset, write.len);
        }
    }

    /// Acknowledges the commits of written log, and sends the next log writes.
    pub(super) fn harden(&mut self) {
        while let Some(done) = self.log.next_committed(self.now) {
            let own = done.waited.saturating_sub(done.governed);
            self.counters.waits.count(Wait::WriteLog, own);
            if done.governed > Span::ZERO {
                self.counters.waits.count(Wait::InstanceLogRateGovernor, done.governed);
            }
            self.acknowledged += 1;
            for page in &self.changed[done.user as usize] {
                self.unhardened.remove(*page);
            }
            self.end(done.user);
        }
        let Self { parked, wanted, unhardened, .. } = self;
        let freed = parked.extract_if(.., |(_, page)| !unhardened.contains(*page));
        wanted.extend(freed.map(|(io, _)| io));
        self.send_log();
        self.end_checkpoint();
    }
}
