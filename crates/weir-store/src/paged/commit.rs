//! The way of changes of a map into its log, for several syncs at a time.
//!
//! ```text
//! sync 1   takes changes --- bytes durable ---|writes 1     |
//! sync 2          takes --- bytes durable ----|- waits -----|writes 2 and 3 |
//! sync 3                 takes --- bytes durable -----------|- waits -------|
//! ```
//!
//! A sync takes what changed in the map, as the next batch, and then syncs the bytes. When that is
//! done, it and all batches before it may go into the log: their bytes were written before. One
//! sync at a time writes the log. It takes all batches that may go, in the order in which they were
//! taken, as one frame. So the log is never ahead of the bytes, and no change overtakes another.
//!
//! After a failure the batches are dropped, and the next write is a whole map. Its bytes are synced
//! once more, since the map may have pages that were marked after the last sync began.

use super::layer::TO_ABSENT;
use super::map::{NONE, PageMap, Run};
use crate::sync::locked;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The batches of a layer.
#[derive(Debug)]
pub(super) struct Commits {
    state: Mutex<Batches>,
    ended: Condvar,
}

/// Batches on their way to the log.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Those that are not in the log, oldest first.
    waiting: VecDeque<(u64, PageMap)>,
    /// The last one that was taken, whose bytes are durable, and that is in the log.
    taken: u64,
    ready: u64,
    written: u64,
    /// A sync has the turn to write the log.
    is_writing: bool,
    /// The files have been made durable as they were found.
    is_settled: bool,
    /// The next write has to be a whole map.
    is_lost: bool,
}

/// The next step of a sync whose bytes are durable.
pub(super) enum Step<'a> {
    Done,
    Write(Turn<'a>),
}

/// The turn of a sync to write the log.
pub(super) struct Turn<'a> {
    commits: &'a Commits,
    /// The last batch that it writes.
    upto: u64,
    pub(super) runs: Vec<Run>,
    pub(super) is_lost: bool,
    has_ended: bool,
}

impl Batches {
    /// Takes `changed` as a batch. Returns the last batch that a sync has to wait for.
    pub(super) fn take(&mut self, changed: PageMap) -> u64 {
        if !changed.is_empty() {
            self.taken += 1;
            // A whole map has it.
            if !self.is_lost {
                self.waiting.push_back((self.taken, changed));
            }
        }
        self.taken
    }

    fn lose(&mut self) {
        self.is_lost = true;
        self.waiting.clear();
    }

    /// Returns the changes of the batches whose bytes are durable, in their order.
    fn take_ready(&mut self) -> Vec<Run> {
        let state = |mark| if mark == TO_ABSENT { NONE } else { mark };
        let mut runs = Vec::new();
        while self.waiting.front().is_some_and(|(number, _)| *number <= self.ready) {
            let changed = self.waiting.pop_front().map(|(_, changed)| changed).unwrap_or_default();
            runs.extend(changed.runs().map(|run| Run { mark: state(run.mark), ..run }));
        }
        runs
    }
}

impl Commits {
    /// Makes the batches of a new layer, or of one that was found.
    pub(super) fn new(is_settled: bool) -> Self {
        let state = Batches { is_settled, ..Batches::default() };
        Self { state: Mutex::new(state), ended: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Batches> {
        locked(&self.state)
    }

    /// Takes in that bytes may be lost.
    pub(super) fn lose(&self) {
        self.lock().lose();
    }

    /// Takes in that the bytes of all batches up to `own` are durable. Waits until these batches
    /// are in the log, or until it is the caller's turn to write it.
    pub(super) fn next(&self, own: u64) -> Step<'_> {
        let mut state = self.lock();
        state.ready = state.ready.max(own);
        loop {
            if state.written >= own && state.is_settled {
                return Step::Done;
            }
            if !state.is_writing {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_writing = true;
        let (upto, runs, is_lost) = (state.ready, state.take_ready(), state.is_lost);
        Step::Write(Turn { commits: self, upto, runs, is_lost, has_ended: false })
    }
}

impl Turn<'_> {
    /// Takes all that changed and the whole map, by `take`, in place of the batches that wait.
    pub(super) fn take_whole(&mut self, take: impl FnOnce() -> (PageMap, Vec<Run>)) -> Vec<Run> {
        let mut batches = self.commits.lock();
        let (changed, runs) = take();
        self.upto = batches.take(changed);
        batches.waiting.clear();
        batches.is_lost = false;
        runs
    }

    /// Ends the turn; what it wrote is durable.
    pub(super) fn written(mut self) {
        let mut state = self.commits.lock();
        state.written = state.written.max(self.upto);
        state.is_settled = true;
        self.has_ended = true;
    }
}

impl Drop for Turn<'_> {
    /// Also ends a turn that failed.
    fn drop(&mut self) {
        let mut state = self.commits.lock();
        if !self.has_ended {
            state.lose();
        }
        state.is_writing = false;
        self.commits.ended.notify_all();
    }
}
