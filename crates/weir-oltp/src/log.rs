//! The log. Commits that arrive together share a write (group commit), several writes are in flight
//! at once, and a commit is done when all log up to it is written.
//!
//! The file is a ring behind two slots that checkpoints use in turn:
//!
//! ```text
//! 0      4 KiB   8 KiB = LOG_START                                    size
//! | slot | slot | free | redo point ... blocks ... next block | free |
//! ```
//!
//! A block has a header and a part of the records. Its *LSN* is the number of bytes of all blocks
//! before it, which gives its position in the ring. The log after the redo point is never
//! overwritten: a commit calls `LogWriter::has_room` first.

use crate::model::Log;
use std::collections::VecDeque;
use weir_units::{Instant, Span};

/// The offset of the ring in the file, behind the two slots of checkpoints.
pub const LOG_START: u64 = 8192;
/// Bytes of a checkpoint's slot.
pub const CHECKPOINT_SLOT: u64 = 4096;
/// Bytes of a block before its records.
pub const BLOCK_HEADER: u64 = 32;
/// Bytes of a record before its pages.
pub const RECORD_HEADER: u64 = 32;
/// Bytes of a record for each page that was changed.
pub const RECORD_PAGE: u64 = 16;
/// A log block is padded to a multiple of this.
pub const SECTOR: u64 = 512;
/// Maximum bytes of a block without records: the header, and the padding of the last sector.
const WASTE: u64 = BLOCK_HEADER + SECTOR - 1;

/// Returns the bytes of log of a transaction that changes `pages` pages and whose description
/// states `stated`. A record has at least the bytes that redo needs.
#[must_use]
pub(crate) fn record_bytes(stated: u64, pages: u64) -> u64 {
    let needs = if pages > 0 { RECORD_HEADER + RECORD_PAGE * pages } else { 0 };
    // A transaction with log has a record.
    stated.max(needs).max(if stated > 0 { RECORD_HEADER } else { 0 })
}

/// Returns the size of the ring in a log file of `size`. A block with LSN n is at n modulo this
/// size, behind [`LOG_START`].
#[must_use]
pub fn ring(size: u64) -> u64 {
    size.saturating_sub(LOG_START) / SECTOR * SECTOR
}

/// Returns the maximum bytes of the ring for `records` records of `bytes` together.
fn most(log: &Log, bytes: u64, records: u64) -> u64 {
    // A write takes all pending bytes or a full block, or reaches the end of the ring.
    let full = log.block.get() - BLOCK_HEADER;
    bytes + (records + bytes / full + 2) * WASTE
}

/// Returns the bytes of the ring that a single record needs.
pub(crate) fn least_ring(log: &Log, record: u64) -> u64 {
    most(log, record, 1)
}

/// An in-flight write.
#[derive(Debug, Clone, Copy)]
struct Block {
    end: u64,
    done: bool,
    sent: Instant,
    /// The time from `sent` for which it waited for the instance's log rate.
    governed: Span,
}

/// A pending commit.
#[derive(Debug, Clone, Copy)]
struct Commit {
    end: u64,
    user: u32,
    since: Instant,
}

/// A log write to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogWrite {
    /// The LSN of its block.
    pub(crate) lsn: u64,
    /// Bytes of records in it.
    pub(crate) bytes: u64,
    /// Bytes of records up to its end, for [`LogWriter::written`].
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// A completed commit and its wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) user: u32,
    pub(crate) waited: Span,
    /// The part of it that the instance's log rate caused.
    pub(crate) governed: Span,
}

/// The log writer.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Log,
    ring: u64,
    /// Bytes of records: appended, sent, and written.
    appended: u64,
    sent: u64,
    hardened: u64,
    /// The LSN of the next block, and of the first one that recovery needs.
    lsn: u64,
    redo: u64,
    blocks: VecDeque<Block>,
    commits: VecDeque<Commit>,
    /// Intervals in which hardened blocks waited for the log rate: ordered, disjoint, and back to
    /// the oldest pending commit.
    throttled: VecDeque<(Instant, Instant)>,
}

impl LogWriter {
    /// Makes an empty log whose first block has this LSN.
    pub(crate) fn new(log: Log, lsn: u64) -> Self {
        Self {
            log,
            ring: ring(log.size.get()),
            appended: 0,
            sent: 0,
            hardened: 0,
            lsn,
            redo: lsn,
            blocks: VecDeque::new(),
            commits: VecDeque::new(),
            throttled: VecDeque::new(),
        }
    }

    /// Returns whether a record of `bytes` fits, however it and earlier records are divided into
    /// blocks.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let unsent = self.appended - self.sent + bytes;
        let most = most(&self.log, unsent, self.commits.len() as u64 + 1);
        self.lsn - self.redo + most <= self.ring
    }

    /// Returns whether a checkpoint should begin because the ring is 70 % full, as in SQL Server's
    /// simple recovery model.
    pub(crate) fn is_filling(&self) -> bool {
        (self.lsn - self.redo).saturating_mul(10) >= self.ring.saturating_mul(7)
    }

    /// Returns the LSN of the next block.
    pub(crate) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Returns the bytes of all records.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// Returns the bytes of records that are in the file.
    pub(crate) fn hardened(&self) -> u64 {
        self.hardened
    }

    /// Frees the log before `redo`.
    pub(crate) fn free(&mut self, redo: u64) {
        self.redo = redo;
    }

    /// Appends a record of `bytes` for `user`, for which there [is room](Self::has_room).
    pub(crate) fn commit(&mut self, user: u32, bytes: u64, now: Instant) {
        self.appended += bytes;
        self.commits.push_back(Commit { end: self.appended, user, since: now });
    }

    /// Returns the next write, if records are pending and the number of in-flight writes allows it.
    pub(crate) fn next_write(&mut self, now: Instant) -> Option<LogWrite> {
        if self.sent == self.appended || self.blocks.len() >= self.log.writes as usize {
            return None;
        }
        let at = self.lsn % self.ring;
        let most = self.log.block.get().min(self.ring - at) - BLOCK_HEADER;
        let bytes = (self.appended - self.sent).min(most);
        self.sent += bytes;
        let governed = Span::ZERO;
        self.blocks.push_back(Block { end: self.sent, done: false, sent: now, governed });
        let len = (BLOCK_HEADER + bytes).next_multiple_of(SECTOR);
        let offset = LOG_START + at;
        let write = LogWrite { lsn: self.lsn, bytes, end: self.sent, offset, len };
        self.lsn += len;
        Some(write)
    }

    /// Takes the completion of a write. `governed` is the time that it waited for the instance's
    /// log rate.
    pub(crate) fn written(&mut self, end: u64, governed: Span) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.end == end) {
            block.done = true;
            block.governed = governed;
        }
        while let Some(block) = self.blocks.front().filter(|block| block.done).copied() {
            self.hardened = block.end;
            self.add_throttled(block.sent, block.sent + block.governed);
            self.blocks.pop_front();
        }
    }

    /// Adds an interval in which a block waited for the log rate. Blocks are added in the order in
    /// which they were sent.
    fn add_throttled(&mut self, start: Instant, end: Instant) {
        let needed = self.commits.front().map_or(start, |commit| commit.since);
        while self.throttled.front().is_some_and(|(_, end)| *end <= needed) {
            self.throttled.pop_front();
        }
        match self.throttled.back_mut().filter(|(_, last)| *last >= start) {
            Some((_, last)) => *last = end.max(*last),
            None if end > start => self.throttled.push_back((start, end)),
            None => {}
        }
    }

    /// Returns the time since `since` in which blocks waited for the log rate.
    fn throttled_since(&self, since: Instant) -> Span {
        let throttled = self.throttled.iter().rev().take_while(|(_, end)| *end > since);
        throttled.fold(Span::ZERO, |sum, (start, end)| sum + (*end - *start.max(&since)))
    }

    /// Returns the number of pending commits.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.commits.len()
    }

    /// Returns the next completed commit.
    pub(crate) fn next_committed(&mut self, now: Instant) -> Option<Committed> {
        let commit = *self.commits.front()?;
        if commit.end > self.hardened {
            return None;
        }
        self.commits.pop_front();
        let (waited, governed) = (now - commit.since, self.throttled_since(commit.since));
        Some(Committed { user: commit.user, waited, governed: governed.min(waited) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Bytes;

    fn writer(writes: u32) -> LogWriter {
        let (size, block) = (Bytes::kib(64), Bytes::kib(56));
        LogWriter::new(Log { file: 0, size, block, writes }, 0)
    }

    /// Returns the next write: offset, length, and bytes of records.
    fn next(log: &mut LogWriter) -> Option<(u64, u64, u64)> {
        log.next_write(at(0)).map(|write| (write.offset, write.len, write.bytes))
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn commits_during_in_flight_writes_share_the_next_write() {
        let mut log = writer(1);
        log.commit(0, 700, at(0));
        assert_eq!(next(&mut log), Some((LOG_START, 1024, 700)));
        log.commit(1, 700, at(1));
        log.commit(2, 700, at(2));
        assert_eq!(log.next_write(at(0)), None);
        log.written(700, Span::ZERO);
        let done = log.next_committed(at(5)).expect("it is there");
        assert_eq!((done.user, done.waited), (0, Span::from_millis(5)));
        assert_eq!(log.next_committed(at(5)), None);
        assert_eq!(next(&mut log), Some((LOG_START + 1024, 1536, 1400)));
    }

    #[test]
    fn waits_for_the_log_rate_are_separate_from_other_log_waits() {
        // Three blocks, at most two in flight. Each waits 10 ms for the log rate, and its write
        // takes 2 ms.
        let mut log = writer(2);
        log.commit(0, 3 * 50_000, at(0));
        let end = |write: Option<LogWrite>| write.expect("a write").end;
        let (first, second) = (end(log.next_write(at(0))), end(log.next_write(at(0))));
        assert_eq!(log.next_write(at(0)), None);
        log.written(first, Span::from_millis(10));
        let third = end(log.next_write(at(12)));
        log.commit(1, 100, at(13));
        log.written(second, Span::from_millis(20));
        let fourth = end(log.next_write(at(22)));
        log.written(third, Span::from_millis(18));
        log.written(fourth, Span::from_millis(8));
        // The log rate is exceeded from 0 to 30 ms without a gap, although a block waited to be
        // sent.
        let first = log.next_committed(at(32)).expect("it is there");
        assert_eq!((first.waited, first.governed), (Span::from_millis(32), Span::from_millis(30)));
        let second = log.next_committed(at(32)).expect("it is there");
        assert_eq!(
            (second.waited, second.governed),
            (Span::from_millis(19), Span::from_millis(17))
        );
    }

    #[test]
    fn a_commit_waits_for_all_that_is_before_it() {
        let mut log = writer(2);
        log.commit(0, 512, at(0));
        let first = log.next_write(at(0)).expect("a write");
        log.commit(1, 512, at(0));
        let second = log.next_write(at(0)).expect("a write");
        log.written(second.end, Span::ZERO);
        assert_eq!(log.next_committed(at(1)), None);
        log.written(first.end, Span::from_millis(9));
        let users: Vec<u32> =
            std::iter::from_fn(|| log.next_committed(at(2))).map(|done| done.user).collect();
        assert_eq!(users, [0, 1]);
    }

    /// Writes all pending records. Returns the LSNs and ends of the blocks.
    fn drain(log: &mut LogWriter) -> Vec<(u64, u64)> {
        let mut blocks = Vec::new();
        while let Some(write) = log.next_write(at(0)) {
            assert!(write.offset >= LOG_START && write.offset + write.len <= 64 << 10);
            assert_eq!(write.offset, LOG_START + write.lsn % (56 << 10));
            log.written(write.end, Span::ZERO);
            blocks.push((write.lsn, write.lsn + write.len));
            while log.next_committed(at(0)).is_some() {}
        }
        blocks
    }

    #[test]
    fn no_write_reaches_beyond_the_file() {
        let mut log = writer(4);
        let mut end = 0;
        for n in 1..100 {
            log.commit(0, 1 + n * 501, at(n));
            for block in drain(&mut log) {
                assert_eq!(block.0, end, "blocks follow one another");
                end = block.1;
            }
            assert_eq!(log.hardened(), log.appended());
        }
    }

    #[test]
    fn log_that_recovery_needs_is_never_overwritten() {
        for bytes in [1, 480, 481, 2048, 20_000] {
            let mut log = writer(4);
            // Each record has its own block, or they share blocks.
            for shared in [false, true] {
                let mut records = 0;
                while log.has_room(bytes) {
                    log.commit(0, bytes, at(0));
                    records += 1;
                    if !shared || !log.has_room(bytes) {
                        drain(&mut log);
                    }
                }
                assert!(log.lsn() - log.redo <= log.ring, "{records} of {bytes}");
                assert!(log.is_filling() || bytes == 20_000, "{records} of {bytes}");
                log.free(log.lsn());
                assert!(log.has_room(bytes) && !log.is_filling());
            }
        }
    }

    #[test]
    fn a_record_has_room_for_what_redoing_it_takes() {
        for (stated, pages, expect) in
            [(0, 0, 0), (2048, 4, 2048), (100, 6, 128), (0, 1, 48), (1, 0, 32)]
        {
            assert_eq!(record_bytes(stated, pages), expect, "{stated} for {pages}");
        }
    }
}
