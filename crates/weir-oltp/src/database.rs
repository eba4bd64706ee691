//! The state machine: users, pages, log and checkpoints.
//!
//! A user thinks, then runs a transaction: it computes for the transaction's CPU
//! time, goes through its pages one after the other, waits at each that is on its
//! way, and commits. Changed pages stay in memory until a checkpoint writes them;
//! a page that is being written cannot be changed until it is there, which is how
//! slow writes become waits of transactions.
//!
//! It is a database whose recovery works. A transaction changes its pages when it
//! commits, all at once, when its record is appended to the log. No page is handed
//! out to be written before the log of all its changes is there. A checkpoint that is
//! complete writes its *redo point*, where the log stood when it began: all earlier
//! changes are in the data files. The log after the redo point is never written over.

mod durable;
mod growth;
mod sequential;
mod temporary;

pub use growth::FileGrowth;

use crate::checkpoint::{Checkpointer, POLL};
use crate::cores::Cores;
use crate::log::{CHECKPOINT_SLOT, LogWriter};
use crate::model::{EXTENT, Model, PAGE};
use crate::pages::{Found, Pages};
use crate::placement::Placement;
use crate::space::Space;
use crate::tempdb::Tempdb;
use crate::unhardened::Unhardened;
use crate::waits::{Wait, WaitStats};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use weir_random::Rng;
use weir_units::{Instant, Span};

/// What the database does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

/// An I/O that the database wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIo {
    /// The file, as the driver counts them.
    pub file: u32,
    /// What is done.
    pub op: FileOp,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The database's mark, to be given back.
    pub tag: u32,
}

/// What an I/O moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Pages, as they are when the I/O is handed out.
    Pages {
        /// The number of the first.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Pages of tempdb, which nobody reads again.
    Temporary,
    /// A block of the log.
    Log {
        /// Where it is in the endless log, by which it is found again.
        lsn: u64,
        /// Bytes of records in it.
        bytes: u64,
    },
    /// The redo point of a checkpoint that is complete.
    Checkpoint(RedoPoint),
}

/// Where a recovery begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedoPoint {
    /// Its number among the checkpoints, from 1; 0 is an empty database.
    pub sequence: u64,
    /// The first block of the log that is needed.
    pub lsn: u64,
    /// The newest commit whose changes are in the data files.
    pub commit: u64,
    /// How often pages were changed up to it.
    pub changes: u64,
}

impl RedoPoint {
    /// Where it stands in the log file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.sequence % 2 * CHECKPOINT_SLOT
    }
}

/// A transaction that commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its number, from 1.
    pub number: u64,
    /// How often pages were changed, by it and all before it.
    pub changes: u64,
    /// Bytes of its record in the log.
    pub bytes: u64,
    /// The pages that it changes. One that it changes twice is there twice.
    pub pages: Vec<u32>,
}

/// What has been counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Batch requests done.
    pub batches: u64,
    /// Transactions committed.
    pub transactions: u64,
    /// From the beginning of a transaction to its commit, all together.
    pub response: Span,
    /// Time on schedulers.
    pub cpu: Span,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Pages wanted.
    pub pages_wanted: u64,
    /// Those of them that had to be read.
    pub pages_missed: u64,
    /// Transactions that were given up because the data files were full (SQL Server's
    /// error 1105).
    pub failed: u64,
    /// How often a data file grew.
    pub growths: u64,
    /// Pages that had to go from memory to make room for others.
    pub pages_evicted: u64,
    /// What transactions waited for.
    pub waits: WaitStats,
}

impl Counters {
    /// What was counted since `earlier`, an older reading of the same counters.
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

/// What an I/O is for.
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
    /// Pages still to go through; the last `changes` of them are changed, and of those
    /// `new` are new, but for the hot ones at the end.
    left: u32,
    changes: u32,
    new: u32,
    /// The page that is wanted.
    page: Option<u32>,
    /// Pages of tempdb still to be filled, and the file that gives them.
    temporary: u32,
    temporary_file: usize,
    /// The next page of a scan, once it has begun.
    scan: Option<u64>,
    compute: Span,
    /// It has waited: pages that it went through before may have been written since.
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
    /// A user has the pages of tempdb that it wanted.
    Allocated(u32),
    Checkpoint,
    /// Pages that are old enough are looked for.
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
    /// The pages that each user's transaction changes, so far.
    changed: Vec<Vec<u32>>,
    unhardened: Unhardened,
    /// Commits so far, and how often they changed pages; those that are in the log.
    commits: u64,
    changes: u64,
    acknowledged: u64,
    /// Commits that nobody has asked for yet, if somebody does.
    told: Option<VecDeque<Commit>>,
    /// Who waits for room in the log.
    stalled: VecDeque<u32>,
    /// Of the newest checkpoint: where the log stood when it began, ...
    redo: RedoPoint,
    /// ... in bytes of records, and whether the point is on its way to the log file.
    redo_appended: u64,
    redo_on_its_way: bool,
    /// When the next one begins.
    checkpoint_at: Option<Instant>,
    tempdb: Option<Tempdb>,
    /// Where new pages go, and who waits for a file to grow.
    space: Space,
    unplaced: Vec<u32>,
    /// Who waits for room in memory, and whether they are getting it.
    short: VecDeque<u32>,
    relieving: bool,
    /// New pages of transactions that were given up.
    returned: Vec<u32>,
    /// Who waits for a page on its way.
    waiting: HashMap<u32, Vec<u32>>,
    timers: BinaryHeap<Reverse<(Instant, u64, Timer)>>,
    serial: u64,
    under_way: Vec<Purpose>,
    free_tags: Vec<u32>,
    wanted: VecDeque<FileIo>,
    /// Writes that wait until the log of a page is there, and the page.
    parked: Vec<(FileIo, u32)>,
    rng: Rng,
    /// Turns an even draw into a self-similar one (Gray et al. 1994).
    exponent: f64,
    shares: u64,
    counters: Counters,
    now: Instant,
}

impl Database {
    /// A database whose users begin at time zero, each somewhere in its think time.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self::from(model, RedoPoint::default())
    }

    /// The same, going on from `redo`: its data files are as of then, and the log holds
    /// nothing that a recovery needs. It tells its [commits](Self::poll_commit).
    #[must_use]
    pub fn resume(model: Model, redo: RedoPoint) -> Self {
        Self { told: Some(VecDeque::new()), ..Self::from(model, redo) }
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
            told: None,
            stalled: VecDeque::new(),
            redo,
            redo_appended: 0,
            redo_on_its_way: false,
            checkpoint_at: None,
            tempdb: model.tempdb.as_ref().map(|tempdb| Tempdb::new(tempdb, model.checkpoint)),
            space: Space::new(&model.data, placement.new_pages()),
            unplaced: Vec::new(),
            short: VecDeque::new(),
            relieving: false,
            returned: Vec::new(),
            waiting: HashMap::new(),
            timers: BinaryHeap::new(),
            serial: 0,
            under_way: Vec::new(),
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

    /// The next I/O that is wanted. A page that it writes is to be written as it is now,
    /// with all commits that [`poll_commit`](Self::poll_commit) has told.
    pub fn poll_io(&mut self) -> Option<FileIo> {
        while let Some(io) = self.wanted.pop_front() {
            match self.waits_for_log(&io) {
                None => return Some(io),
                Some(page) => self.parked.push((io, page)),
            }
        }
        None
    }

    /// What an I/O that was handed out moves.
    #[must_use]
    pub fn content(&self, io: &FileIo) -> Content {
        match self.under_way[io.tag as usize] {
            Purpose::Read { first, count } | Purpose::Write { first, count, .. } => {
                Content::Pages { first, count }
            }
            Purpose::Temporary { .. } => Content::Temporary,
            Purpose::Log { lsn, bytes, .. } => Content::Log { lsn, bytes },
            Purpose::Checkpoint(redo) => Content::Checkpoint(redo),
        }
    }

    /// The next commit of a database that was [resumed](Self::resume). Ask before
    /// [`poll_io`](Self::poll_io).
    pub fn poll_commit(&mut self) -> Option<Commit> {
        self.told.as_mut()?.pop_front()
    }

    /// The newest commit that is done: it and all before it are in the log.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// A page that a write must wait for, whose changes are not yet in the log.
    fn waits_for_log(&self, io: &FileIo) -> Option<u32> {
        let Purpose::Write { first, count, .. } = self.under_way[io.tag as usize] else {
            return None;
        };
        (first..first + count).find(|page| self.unhardened.contains(*page))
    }

    /// When something happens next that no I/O brings about.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// What has been counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            checkpoints: self.checkpointer.done(),
            pages_evicted: self.pages.evicted(),
            ..self.counters
        }
    }

    /// Pages in memory.
    #[must_use]
    pub fn pages_in_memory(&self) -> usize {
        self.pages.resident()
    }

    /// Pages changed and not yet on their way to their files.
    #[must_use]
    pub fn pages_dirty(&self) -> u64 {
        self.pages.dirty()
    }

    /// Does what was due until `now`.
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
                // Another began before its time.
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

    /// An I/O is done. `governed` is how long the instance's log rate held it.
    pub fn handle_completion(&mut self, now: Instant, tag: u32, governed: Span) {
        self.now = self.now.max(now);
        self.free_tags.push(tag);
        match self.under_way[tag as usize] {
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

    /// The kind of the next transaction.
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

    /// `mean`, rounded up or down so that it is the mean of many.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "means are checked to be from 0 to a million"
    )]
    fn whole(&mut self, mean: f64) -> u32 {
        let part = mean.fract();
        mean as u32 + u32::from(part > 0.0 && self.rng.unit() < part)
    }

    /// A user is on a scheduler for a quantum, or less.
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

    /// The next page that a user wants; none if a file must grow for it, or cannot.
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
            // They lie all over the database.
            self.rng.below(hot) * (all / hot)
        } else if self.model.skew < 0.5 {
            self_similar(self.rng.unit(), self.exponent, all)
        } else {
            self.rng.below(all)
        };
        Some(self.placement.page(logical))
    }

    /// A user goes through its pages until one is not to be had, or commits.
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
            if found == Found::Missing {
                // Nobody overtakes who waits for memory already.
                let is_in_line = self.relieving || self.short.is_empty();
                if !is_in_line || !self.pages.make_room() {
                    state.page = Some(page);
                    self.wait_for_memory(user);
                    return;
                }
                if self.placement.new_number(page).is_some() {
                    self.pages.create(page);
                    found = Found::Ready;
                }
            }
            if found != Found::Ready {
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

    /// A user waits for a page that is not to be had, and has it read if need be.
    fn wait_for(&mut self, user: u32, page: u32, found: Found) {
        self.begin_wait(user);
        self.waiting.entry(page).or_default().push(user);
        if found == Found::Missing {
            self.counters.pages_missed += 1;
            self.read(page);
        }
    }

    /// Memory is full of what must be written first.
    fn wait_for_memory(&mut self, user: u32) {
        self.begin_wait(user);
        let is_first = self.short.is_empty();
        self.short.push_back(user);
        self.pages.set_wanted(true);
        if is_first {
            self.write_all_dirty();
        }
    }

    /// Pages have been written or read: who waits for memory may have it.
    fn relieve(&mut self) {
        if self.short.is_empty() || self.relieving {
            return;
        }
        self.relieving = true;
        // Each once: who needs another page comes behind the others.
        for _ in 0..self.short.len() {
            if !self.pages.make_room() {
                break;
            }
            let Some(user) = self.short.pop_front() else { break };
            let waited = self.now - self.users[user as usize].waiting_since;
            self.counters.waits.count(Wait::SleepBufferpoolHelpLw, waited);
            self.go_on(user);
        }
        self.relieving = false;
        self.pages.set_wanted(!self.short.is_empty());
    }

    /// A page has come, or has been written: whoever waited for it goes on.
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
            self.under_way.push(purpose);
            u32::try_from(self.under_way.len() - 1).unwrap_or(u32::MAX)
        });
        self.under_way[tag as usize] = purpose;
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

/// The how many-th page of its extent the one at `offset` is.
#[expect(clippy::cast_possible_truncation, reason = "an extent has 8 pages")]
const fn extent_rank(offset: u64) -> u32 {
    (offset / PAGE % EXTENT as u64) as u32
}

/// The page below `pages` to which an even draw from 0 to 1 leads.
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
