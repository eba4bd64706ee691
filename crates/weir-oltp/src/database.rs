//! The state machine: users, pages, log and checkpoints.
//!
//! A user thinks, then runs a transaction: it computes for the transaction's CPU time, visits its
//! pages one by one, waits for each that is being read or written, and commits. Changed pages stay
//! in memory until a checkpoint writes them. A page that is being written cannot be changed, so
//! slow writes become waits of transactions.
//!
//! The database can be recovered. A transaction changes all its pages at commit, when its record is
//! appended to the log. No page is written before the log of all its changes. A complete checkpoint
//! writes its *redo point*, the end of the log at its start: all earlier changes are in the data
//! files. The log after the redo point is never overwritten.

mod durable;
mod growth;
mod sequential;
mod temporary;

pub use growth::FileGrowth;

use crate::checkpoint::{Checkpointer, POLL};
use crate::cores::Cores;
use crate::log::{CHECKPOINT_SLOT, LogWriter};
use crate::model::{EXTENT, Model, PAGE};
use crate::pages::{Lookup, Pages};
use crate::placement::Placement;
use crate::space::Space;
use crate::tempdb::Tempdb;
use crate::unhardened::Unhardened;
use crate::waits::{Wait, WaitStats};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use weir_random::Rng;
use weir_units::{Instant, Span};

/// An operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// An I/O to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIo {
    /// The number of the file among those of the driver.
    pub file: u32,
    /// The operation.
    pub op: FileOp,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// A mark for [`Database::handle_completion`].
    pub tag: u32,
}

/// The contents of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Pages, as they are when the I/O is issued.
    Pages {
        /// The first page number.
        first: u32,
        /// The number of pages.
        count: u32,
    },
    /// Pages of tempdb, which are never read.
    Temporary,
    /// A block of the log.
    Log {
        /// Its position in the log.
        lsn: u64,
        /// Its bytes of records.
        bytes: u64,
    },
    /// The redo point of a complete checkpoint.
    Checkpoint(RedoPoint),
}

/// The start of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedoPoint {
    /// The number of the checkpoint, from 1; 0 is an empty database.
    pub sequence: u64,
    /// The first block of the log that recovery needs.
    pub lsn: u64,
    /// The newest commit whose changes are in the data files.
    pub commit: u64,
    /// The number of page changes up to that commit.
    pub changes: u64,
}

impl RedoPoint {
    /// Returns its offset in the log file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.sequence % 2 * CHECKPOINT_SLOT
    }
}

/// A transaction that commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The number of the commit, from 1.
    pub number: u64,
    /// The number of page changes up to and including this commit.
    pub changes: u64,
    /// Bytes of its record in the log.
    pub bytes: u64,
    /// The changed pages. A page that is changed twice is listed twice.
    pub pages: Vec<u32>,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Completed batch requests.
    pub batches: u64,
    /// Committed transactions.
    pub transactions: u64,
    /// The sum of response times, from the start of a transaction to its commit.
    pub response: Span,
    /// Time on schedulers.
    pub cpu: Span,
    /// Completed checkpoints.
    pub checkpoints: u64,
    /// Page accesses.
    pub pages_wanted: u64,
    /// Page accesses that missed the buffer pool.
    pub pages_missed: u64,
    /// Transactions that failed because the data files were full (SQL Server's error 1105).
    pub failed: u64,
    /// The number of file growths.
    pub growths: u64,
    /// Evicted pages.
    pub pages_evicted: u64,
    /// Waits of transactions.
    pub waits: WaitStats,
}

impl Counters {
    /// Returns the difference from `earlier`, an older reading of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            batches: self.batches - earlier.batches,
            transactions: self.transactions - earlier.transactions,
            response: self.response.saturating_sub(earlier.response),
            cpu: self.cpu.saturating_sub(earlier.cpu),
            checkpoints: self.checkpoints - earlier.checkpoints,
            pages_wanted: self.pages_wanted - earlier.pages_wanted,
            pages_missed: self.pages_missed - earlier.pages_missed,
            failed: self.failed - earlier.failed,
            growths: self.growths - earlier.growths,
            pages_evicted: self.pages_evicted - earlier.pages_evicted,
            waits: self.waits.since(&earlier.waits),
        }
    }
}

/// The purpose of an I/O.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Read { first: u32, count: u32 },
    Write { first: u32, count: u32, data: usize, since: Instant, waited_by: u64 },
    Temporary { first: u32, count: u32, file: usize, since: Instant, waited_by: u64 },
    Log { end: u64, lsn: u64, bytes: u64 },
    Checkpoint(RedoPoint),
}

#[derive(Debug, Clone, Copy, Default)]
struct User {
    kind: usize,
    /// Pages still to visit. The last `changes` of them are changed: existing pages first, then
    /// `new` new ones, and the hot ones at the end.
    left: u32,
    changes: u32,
    new: u32,
    /// The page being accessed.
    page: Option<u32>,
    /// Pages of tempdb still to be filled, and the file that allocates them.
    temporary: u32,
    temporary_file: usize,
    /// The next page of a scan that has begun.
    scan: Option<u64>,
    compute: Span,
    /// The transaction has waited, so pages that it visited may have been written and evicted.
    waited: bool,
    waiting_since: Instant,
    started: Instant,
}

impl User {
    fn is_changing(&self) -> bool {
        self.left <= self.changes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Wake(u32),
    Computed(u32),
    /// The pages of tempdb for a user are allocated.
    Allocated(u32),
    Checkpoint,
    /// The checkpointer looks for old pages.
    Poll,
}

/// A database under load.
#[derive(Debug)]
pub struct Database {
    model: Model,
    placement: Placement,
    pages: Pages,
    cores: Cores,
    log: LogWriter,
    checkpointer: Checkpointer,
    users: Vec<User>,
    /// The pages that each user's transaction has changed so far.
    changed: Vec<Vec<u32>>,
    unhardened: Unhardened,
    /// Commits, their page changes, and the commits that are in the log.
    commits: u64,
    changes: u64,
    acknowledged: u64,
    /// Commits for [`Database::poll_commit`], if the driver polls them.
    unpolled: Option<VecDeque<Commit>>,
    /// Users that wait for room in the log.
    stalled: VecDeque<u32>,
    /// The redo point of the newest checkpoint, ...
    redo: RedoPoint,
    /// ... in bytes of records, and whether it is being written to the log file.
    redo_appended: u64,
    redo_on_its_way: bool,
    /// The start of the next checkpoint.
    checkpoint_at: Option<Instant>,
    tempdb: Option<Tempdb>,
    /// Space for new pages, and users that wait for a file to grow.
    space: Space,
    unplaced: Vec<u32>,
    /// Users that wait for room in the buffer pool, and whether they are being woken.
    out_of_memory: VecDeque<u32>,
    relieving: bool,
    /// New pages of failed transactions.
    returned: Vec<u32>,
    /// Users that wait for a page that is being read or written.
    waiting: HashMap<u32, Vec<u32>>,
    timers: BinaryHeap<Reverse<(Instant, u64, Timer)>>,
    serial: u64,
    in_flight: Vec<Purpose>,
    free_tags: Vec<u32>,
    wanted: VecDeque<FileIo>,
    /// Writes that wait for the log of a page, and that page.
    parked: Vec<(FileIo, u32)>,
    rng: Rng,
    /// The exponent of a self-similar distribution (Gray et al. 1994).
    exponent: f64,
    shares: u64,
    counters: Counters,
    now: Instant,
}

impl Database {
    /// Makes an empty database whose users start at time zero, each somewhere in its think time.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self::from(model, RedoPoint::default())
    }

    /// Makes a database that continues from `redo`: the data files are complete up to it, and a
    /// recovery needs nothing of the log. Its [commits](Self::poll_commit) can be polled.
    #[must_use]
    pub fn resume(model: Model, redo: RedoPoint) -> Self {
        Self { unpolled: Some(VecDeque::new()), ..Self::from(model, redo) }
    }

    fn from(model: Model, redo: RedoPoint) -> Self {
        let placement = Placement::new(&model.data, model.working_set);
        let mut database = Self {
            pages: Pages::new(placement.pages(), model.grows(), model.buffer_pool, model.warm),
            cores: Cores::new(model.vcores),
            log: LogWriter::new(model.log, redo.lsn),
            checkpointer: Checkpointer::new(model.checkpoint, placement.files()),
            users: vec![User::default(); model.users as usize],
            changed: vec![Vec::new(); model.users as usize],
            unhardened: Unhardened::new(placement.pages()),
            commits: redo.commit,
            changes: redo.changes,
            acknowledged: redo.commit,
            unpolled: None,
            stalled: VecDeque::new(),
            redo,
            redo_appended: 0,
            redo_on_its_way: false,
            checkpoint_at: None,
            tempdb: model.tempdb.as_ref().map(|tempdb| Tempdb::new(tempdb, model.checkpoint)),
            space: Space::new(&model.data, placement.new_pages()),
            unplaced: Vec::new(),
            out_of_memory: VecDeque::new(),
            relieving: false,
            returned: Vec::new(),
            waiting: HashMap::new(),
            timers: BinaryHeap::new(),
            serial: 0,
            in_flight: Vec::new(),
            free_tags: Vec::new(),
            wanted: VecDeque::new(),
            parked: Vec::new(),
            rng: Rng::new(&[model.seed]),
            exponent: model.skew.ln() / (1.0 - model.skew).ln(),
            shares: model.mix.iter().map(|kind| u64::from(kind.share)).sum(),
            counters: Counters::default(),
            now: Instant::ZERO,
            placement,
            model,
        };
        let think = database.model.think_time.nanos();
        for user in 0..database.model.users {
            let at = Instant::from_nanos(database.rng.below(think));
            database.set(at, Timer::Wake(user));
        }
        let first = database.checkpointer.first();
        database.set_checkpoint(first);
        database.set(Instant::ZERO + POLL, Timer::Poll);
        database
    }

    /// Returns the next I/O. A page must be written as it is now, with all commits that
    /// [`poll_commit`](Self::poll_commit) has returned.
    pub fn poll_io(&mut self) -> Option<FileIo> {
        while let Some(io) = self.wanted.pop_front() {
            match self.waits_for_log(&io) {
                None => return Some(io),
                Some(page) => self.parked.push((io, page)),
            }
        }
        None
    }

    /// Returns the contents of an issued I/O.
    #[must_use]
    pub fn content(&self, io: &FileIo) -> Content {
        match self.in_flight[io.tag as usize] {
            Purpose::Read { first, count } | Purpose::Write { first, count, .. } => {
                Content::Pages { first, count }
            }
            Purpose::Temporary { .. } => Content::Temporary,
            Purpose::Log { lsn, bytes, .. } => Content::Log { lsn, bytes },
            Purpose::Checkpoint(redo) => Content::Checkpoint(redo),
        }
    }

    /// Returns the next commit of a database that was [resumed](Self::resume). Call it before
    /// [`poll_io`](Self::poll_io).
    pub fn poll_commit(&mut self) -> Option<Commit> {
        self.unpolled.as_mut()?.pop_front()
    }

    /// Returns the newest acknowledged commit: it and all earlier ones are in the log.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns a page of a write whose changes are not in the log yet.
    fn waits_for_log(&self, io: &FileIo) -> Option<u32> {
        let Purpose::Write { first, count, .. } = self.in_flight[io.tag as usize] else {
            return None;
        };
        (first..first + count).find(|page| self.unhardened.contains(*page))
    }

    /// Returns the next deadline.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            checkpoints: self.checkpointer.done(),
            pages_evicted: self.pages.evicted(),
            ..self.counters
        }
    }

    /// Returns the number of pages in the buffer pool.
    #[must_use]
    pub fn pages_in_memory(&self) -> usize {
        self.pages.resident()
    }

    /// Returns the number of dirty pages that are not being written.
    #[must_use]
    pub fn pages_dirty(&self) -> u64 {
        self.pages.dirty()
    }

    /// Handles all deadlines until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, _, timer))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            self.now = self.now.max(at);
            match timer {
                Timer::Wake(user) => self.begin(user),
                Timer::Computed(user) => self.computed(user),
                Timer::Allocated(user) => self.allocated(user),
                Timer::Checkpoint if self.checkpoint_at == Some(at) => self.checkpoint(false),
                // Another checkpoint began early.
                Timer::Checkpoint => {}
                Timer::Poll => {
                    self.write_all_dirty();
                    self.write_all_temporary();
                    self.relieve();
                    self.set(at + POLL, Timer::Poll);
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// Takes the completion of an I/O. `governed` is the time that it waited for the instance's log
    /// rate.
    pub fn handle_completion(&mut self, now: Instant, tag: u32, governed: Span) {
        self.now = self.now.max(now);
        self.free_tags.push(tag);
        match self.in_flight[tag as usize] {
            Purpose::Read { first, count } => {
                (first..first + count).for_each(|page| self.pages.end_read(page));
                (first..first + count).for_each(|page| self.wake(page));
                self.relieve();
            }
            Purpose::Write { first, count, data, since, waited_by } => {
                (first..first + count).for_each(|page| self.pages.end_write(page));
                let took = self.now - since;
                let is_more = self.checkpointer.written(data, waited_by, took);
                (first..first + count).for_each(|page| self.wake(page));
                self.relieve();
                if is_more {
                    self.write_dirty(data);
                }
                self.end_checkpoint();
            }
            Purpose::Temporary { first, count, file, since, waited_by } => {
                let took = self.now - since;
                self.temporary_written(first..first + count, file, waited_by, took);
            }
            Purpose::Log { end, .. } => {
                self.log.written(end, governed);
                self.harden();
            }
            Purpose::Checkpoint(redo) => self.checkpointed(redo),
        }
    }

    fn set(&mut self, at: Instant, timer: Timer) {
        self.serial += 1;
        self.timers.push(Reverse((at, self.serial, timer)));
    }

    fn begin(&mut self, user: u32) {
        let kind = self.pick();
        let transaction = &self.model.mix[kind];
        let (reads, writes, new) = (transaction.reads, transaction.writes, transaction.new_pages);
        let (hot, compute) = (transaction.hot_writes, transaction.cpu);
        let reads = self.whole(reads);
        let changes = self.whole(writes);
        let new = self.whole(new);
        let changes = changes + new + hot;
        let left = reads + changes;
        let (waiting_since, started) = (self.now, self.now);
        self.changed[user as usize].clear();
        self.users[user as usize] =
            User { kind, left, changes, new, compute, waiting_since, started, ..User::default() };
        if self.cores.request(user) {
            self.compute(user);
        }
    }

    /// Draws the kind of the next transaction.
    fn pick(&mut self) -> usize {
        let mut pick = self.rng.below(self.shares);
        for (at, kind) in self.model.mix.iter().enumerate() {
            match pick.checked_sub(u64::from(kind.share)) {
                None => return at,
                Some(left) => pick = left,
            }
        }
        0
    }

    /// Rounds `mean` up or down at random, so that it is the mean of many draws.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "means are checked to be from 0 to a million"
    )]
    fn whole(&mut self, mean: f64) -> u32 {
        let part = mean.fract();
        mean as u32 + u32::from(part > 0.0 && self.rng.unit() < part)
    }

    /// Runs a user on a scheduler for up to a quantum.
    fn compute(&mut self, user: u32) {
        let compute = &mut self.users[user as usize].compute;
        let slice = (*compute).min(self.model.quantum);
        *compute = compute.saturating_sub(slice);
        self.counters.cpu += slice;
        self.set(self.now + slice, Timer::Computed(user));
    }

    fn computed(&mut self, user: u32) {
        let is_done = self.users[user as usize].compute == Span::ZERO;
        if !is_done && !self.cores.is_contended() {
            self.compute(user);
            return;
        }
        if let Some(next) = self.cores.release() {
            let waited = self.now - self.users[next as usize].waiting_since;
            self.counters.waits.count(Wait::SosSchedulerYield, waited);
            self.compute(next);
        }
        if is_done {
            self.allocate(user);
        } else {
            self.users[user as usize].waiting_since = self.now;
            if self.cores.request(user) {
                self.compute(user);
            }
        }
    }

    /// Draws the next page of a user; `None` if a file must grow for it, or cannot grow.
    fn draw(&mut self, user: u32) -> Option<u32> {
        let User { kind, left, new, .. } = self.users[user as usize];
        let is_changing = self.users[user as usize].is_changing();
        let kind = &self.model.mix[kind];
        let hot = u64::from(kind.hot_pages);
        let all = self.model.working_set;
        let is_new = left > kind.hot_writes && left <= kind.hot_writes + new;
        if is_new {
            return self.place_new(user);
        }
        let logical = if kind.sequential && !is_changing {
            self.next_of_scan(user)
        } else if left <= kind.hot_writes {
            // Hot pages are spread over the database.
            self.rng.below(hot) * (all / hot)
        } else if self.model.skew < 0.5 {
            self_similar(self.rng.unit(), self.exponent, all)
        } else {
            self.rng.below(all)
        };
        Some(self.placement.page(logical))
    }

    /// Lets a user visit its pages until it must wait for one, or commits.
    fn go_on(&mut self, user: u32) {
        while self.users[user as usize].left > 0 {
            let page = match self.users[user as usize].page {
                Some(page) => page,
                None => {
                    let Some(page) = self.draw(user) else { return };
                    self.counters.pages_wanted += 1;
                    page
                }
            };
            let state = &mut self.users[user as usize];
            let mut found = self.pages.want(page, state.is_changing());
            if found == Lookup::Missing {
                // Users that wait for memory are not overtaken.
                let is_next = self.relieving || self.out_of_memory.is_empty();
                if !is_next || !self.pages.make_room() {
                    state.page = Some(page);
                    self.wait_for_memory(user);
                    return;
                }
                if self.placement.new_number(page).is_some() {
                    self.pages.create(page);
                    found = Lookup::Ready;
                }
            }
            if found != Lookup::Ready {
                state.page = Some(page);
                self.wait_for(user, page, found);
                return;
            }
            let is_changing = state.is_changing();
            state.page = None;
            state.left -= 1;
            if is_changing {
                self.changed[user as usize].push(page);
                self.mark_dirty(page);
            }
        }
        self.commit(user);
    }

    fn begin_wait(&mut self, user: u32) {
        let state = &mut self.users[user as usize];
        (state.waited, state.waiting_since) = (true, self.now);
    }

    /// Makes a user wait for a page, which is read if it is missing.
    fn wait_for(&mut self, user: u32, page: u32, found: Lookup) {
        self.begin_wait(user);
        self.waiting.entry(page).or_default().push(user);
        if found == Lookup::Missing {
            self.counters.pages_missed += 1;
            self.read(page);
        }
    }

    /// Makes a user wait for memory that is full of dirty pages.
    fn wait_for_memory(&mut self, user: u32) {
        self.begin_wait(user);
        let is_first = self.out_of_memory.is_empty();
        self.out_of_memory.push_back(user);
        self.pages.set_wanted(true);
        if is_first {
            self.write_all_dirty();
        }
    }

    /// Wakes users that wait for memory, after pages were written or read.
    fn relieve(&mut self) {
        if self.out_of_memory.is_empty() || self.relieving {
            return;
        }
        self.relieving = true;
        // Each user once: one that needs another page is queued behind the others.
        for _ in 0..self.out_of_memory.len() {
            if !self.pages.make_room() {
                break;
            }
            let Some(user) = self.out_of_memory.pop_front() else { break };
            let waited = self.now - self.users[user as usize].waiting_since;
            self.counters.waits.count(Wait::SleepBufferpoolHelpLw, waited);
            self.go_on(user);
        }
        self.relieving = false;
        self.pages.set_wanted(!self.out_of_memory.is_empty());
    }

    /// Wakes the users of a page that was read or written.
    fn wake(&mut self, page: u32) {
        for user in self.waiting.remove(&page).unwrap_or_default() {
            let state = self.users[user as usize];
            let changing = state.is_changing();
            let wait = if changing { Wait::PageIoLatchEx } else { Wait::PageIoLatchSh };
            self.counters.waits.count(wait, self.now - state.waiting_since);
            self.go_on(user);
        }
    }

    fn want(&mut self, purpose: Purpose, file: u32, op: FileOp, offset: u64, len: u64) {
        let tag = self.free_tags.pop().unwrap_or_else(|| {
            self.in_flight.push(purpose);
            u32::try_from(self.in_flight.len() - 1).unwrap_or(u32::MAX)
        });
        self.in_flight[tag as usize] = purpose;
        self.wanted.push_back(FileIo { file, op, offset, len, tag });
    }

    fn read(&mut self, page: u32) {
        let (data, offset) = self.placement.locate(page);
        let start = page - extent_rank(offset);
        let mut extent = start..start + EXTENT;
        let whole = self.model.read_extents
            && self.pages.has_room_for(EXTENT)
            && extent.all(|page| self.pages.is_absent(page));
        let (first, count) = if whole { (start, EXTENT) } else { (page, 1) };
        (first..first + count).for_each(|page| self.pages.begin_read(page));
        let offset = self.placement.locate(first).1;
        let file = self.model.data[data].file;
        let purpose = Purpose::Read { first, count };
        self.want(purpose, file, FileOp::Read, offset, u64::from(count) * PAGE);
    }

    fn end(&mut self, user: u32) {
        let User { kind, started, .. } = self.users[user as usize];
        self.counters.transactions += 1;
        self.counters.batches += u64::from(self.model.mix[kind].batches);
        self.counters.response += self.now - started;
        self.think(user);
    }

    fn think(&mut self, user: u32) {
        let think = Span::from_nanos(self.rng.exponential(self.model.think_time.nanos()));
        self.set(self.now + think, Timer::Wake(user));
    }
}

/// Returns the rank in its extent of the page at `offset`.
#[expect(clippy::cast_possible_truncation, reason = "an extent has 8 pages")]
const fn extent_rank(offset: u64) -> u32 {
    (offset / PAGE % EXTENT as u64) as u32
}

/// Maps a uniform draw from 0 to 1 to a page below `pages`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there are fewer than 2^32 pages"
)]
fn self_similar(even: f64, exponent: f64, pages: u64) -> u64 {
    ((even.powf(exponent) * pages as f64) as u64).min(pages - 1)
}

#[cfg(test)]
mod tests;
