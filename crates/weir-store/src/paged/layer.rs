//! One layer: bytes, and a map that says which pages they are of.
//!
//! The map decides. Bytes that lie in the store under a page that the map has not as
//! data, put there by a write that a crash cut off for example, are never seen.
//!
//! On a medium the map is never ahead of the bytes: a sync takes what changed in the map,
//! syncs the bytes, and then writes what it took (`super::commit`). All bytes that a mark speaks of
//! were written before the mark was made, so they are durable before it is.

use super::commit::{Commits, Step, Turn};
use super::log::{MapLog, Medium};
use super::map::{Mark, NONE, PageMap};
use super::state::State;
use crate::Result;
use crate::store::Store;
use crate::sync::{exclusive, locked, shared};
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock};

/// The mark of a change to [`State::Absent`].
pub(super) const TO_ABSENT: Mark = 3;

/// A layer of a volume.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Its name among the layers of the volume.
    pub(crate) number: u64,
    pub(crate) bytes: Arc<dyn Store>,
    /// Locked to look or to mark, never over I/O.
    maps: RwLock<Maps>,
    /// `None` where the bytes do not survive either.
    kept: Option<Kept>,
}

/// The map on a medium.
#[derive(Debug)]
struct Kept {
    commits: Commits,
    /// Held while it is written.
    log: Mutex<MapLog>,
}

impl Kept {
    fn new(log: MapLog, is_settled: bool) -> Self {
        Self { commits: Commits::new(is_settled), log: Mutex::new(log) }
    }
}

#[derive(Debug, Default)]
struct Maps {
    states: PageMap,
    /// The part that a sync has to write.
    changed: PageMap,
}

/// The parts of a layer.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) bytes: Arc<dyn Store>,
    pub(crate) medium: Option<Box<dyn Medium>>,
}

impl Layer {
    /// Makes a new layer that says nothing, and does not survive.
    pub(crate) fn in_memory(number: u64, bytes: Arc<dyn Store>) -> Self {
        Self { number, bytes, maps: RwLock::default(), kept: None }
    }

    /// Makes a new layer that says nothing.
    pub(crate) fn create(number: u64, parts: Parts) -> Result<Self> {
        let log = parts.medium.map(MapLog::create).transpose()?;
        let kept = log.map(|log| Kept::new(log, true));
        Ok(Self { number, bytes: parts.bytes, maps: RwLock::default(), kept })
    }

    /// Opens a layer that was made before.
    pub(crate) fn open(number: u64, parts: Parts) -> Result<Self> {
        let mut states = PageMap::default();
        let mut kept = None;
        if let Some(medium) = parts.medium {
            let (opened, runs) = MapLog::open(medium)?;
            kept = Some(Kept::new(opened, false));
            runs.into_iter().for_each(|run| states.set(run.pages, run.mark));
        }
        let maps = RwLock::new(Maps { states, changed: PageMap::default() });
        Ok(Self { number, bytes: parts.bytes, maps, kept })
    }

    /// Returns the state of `page`, and how many pages from there on have it, up to `end`.
    pub(crate) fn run_at(&self, page: u64, end: u64) -> (State, u64) {
        let (mark, len) = shared(&self.maps).states.run_at(page, end);
        (State::from_mark(mark), len)
    }

    /// Returns the number of chunks that its maps take room for.
    #[cfg(test)]
    pub(crate) fn chunks(&self) -> usize {
        let maps = shared(&self.maps);
        maps.states.chunks() + maps.changed.chunks()
    }

    /// Returns whether all of some pages, at least one, are here.
    pub(crate) fn has_all(&self, pages: &Range<u64>) -> bool {
        self.run_at(pages.start, pages.end) == (State::Data, pages.end - pages.start)
    }

    /// Gives pages a state. Their bytes must have been written before.
    pub(crate) fn mark(&self, pages: Range<u64>, state: State) {
        let mark = state.mark();
        let changed_to = if mark == NONE { TO_ABSENT } else { mark };
        let mut guard = exclusive(&self.maps);
        let maps = &mut *guard;
        let mut at = pages.start;
        while at < pages.end {
            // A page in that state already does not change: a trim of 8 TiB finds a few runs only.
            let (old, len) = maps.states.run_at(at, pages.end);
            if old != mark {
                maps.states.set(at..at + len, mark);
                if self.kept.is_some() {
                    maps.changed.set(at..at + len, changed_to);
                }
            }
            at += len;
        }
    }

    /// Makes bytes and map durable as they were when this began, or as they became since. Several
    /// syncs may be under way.
    pub(crate) fn sync(&self) -> Result<()> {
        let Some(Kept { commits, log }) = &self.kept else { return self.bytes.sync() };
        let own = {
            let mut batches = commits.lock();
            let changed = std::mem::take(&mut exclusive(&self.maps).changed);
            batches.take(changed)
        };
        self.bytes.sync().inspect_err(|_| commits.lose())?;
        match commits.next(own) {
            Step::Done => Ok(()),
            Step::Write(turn) => self.write(turn, &mut locked(log)),
        }
    }

    /// Writes what a sync has to write.
    fn write(&self, mut turn: Turn, log: &mut MapLog) -> Result<()> {
        if turn.is_lost {
            log.lose_track();
        }
        let done = if log.needs_whole() || log.wants_whole() && !turn.runs.is_empty() {
            let runs = turn.take_whole(|| {
                let mut maps = exclusive(&self.maps);
                (std::mem::take(&mut maps.changed), maps.states.runs().collect())
            });
            self.bytes.sync().and_then(|()| log.write_whole(&runs))
        } else if turn.runs.is_empty() {
            log.settle()
        } else {
            log.write_changes(&turn.runs)
        };
        done.inspect_err(|_| log.lose_track())?;
        turn.written();
        Ok(())
    }

    /// Keeps nothing open that only changes need.
    pub(crate) fn rest(&self) {
        if let Some(kept) = &self.kept {
            locked(&kept.log).rest();
        }
    }
}
