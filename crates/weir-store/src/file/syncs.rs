//! Syncs of a volume's files, several at a time.
//!
//! ```text
//! sync 7   begins --- waits for the medium --------------- ends
//! sync 8                begins --- waits for the medium --- ends
//! caller                  needs a sync that begins after it: waits for 9, with all who come
//! sync 9                                        begins ---
//! ```
//!
//! A sync covers all changes that returned before it began, so a caller waits for one that began
//! after its call. If no more can begin, callers wait, and the next sync is for all of them.
//!
//! A sync takes the marks of changed files, and another one that begins meanwhile does not find
//! them. What it does not find is being made durable, so it waits for the earlier one to end.
//!
//! # Errors
//!
//! The system tells a failed write-back once through each open file. Two syncs through one open file
//! would share that: one would get the error, and the other one would promise bytes that are lost. So
//! each place for a sync has open files of its own. A file that is opened does not tell what another
//! one has told already; therefore the files of the other places are opened by a sync that is alone,
//! when all earlier failures are known. After a failure no sync succeeds.

use super::FileStore;
use crate::segment::Segment;
use crate::sync::locked;
use crate::{Result, StoreError};
use std::collections::BTreeSet;
use std::io;
use std::ops::RangeFrom;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The most syncs of a volume at a time.
pub(crate) const MOST: usize = 4;

/// The syncs of a volume.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    state: Mutex<Synced>,
    ended: Condvar,
    /// Stalls a sync between its marks and its wait for the medium.
    #[cfg(test)]
    pub(super) stall: crate::segment::stall::Stall,
}

/// The outcome of syncs, and those under way.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// The system's error when it failed to write accepted data.
    failed: Option<io::ErrorKind>,
    /// Segments whose files are there, in full length, whatever happens.
    segments: BTreeSet<u64>,
    /// Counts changes of files' lengths, which a sync under way may not cover.
    lengths: u64,
    /// The last sync that began, and the last of those that succeeded.
    begun: u64,
    done: u64,
    under_way: [Option<UnderWay>; MOST],
    /// A sync could not begin for lack of open files.
    lacks_files: bool,
    /// The sync that is alone opens files for others, which may not begin before it is done.
    opens_files: bool,
}

/// A sync under way.
#[derive(Debug, Clone)]
struct UnderWay {
    number: u64,
    takes: Takes,
}

/// The parts that a sync makes durable.
#[derive(Debug, Clone)]
struct Takes {
    /// Segments by number.
    segments: BTreeSet<u64>,
    /// The names in the folder.
    names: bool,
}

impl Takes {
    fn covers(&self, other: &Self) -> bool {
        (self.names || !other.names) && self.segments.is_superset(&other.segments)
    }
}

/// A sync that has begun.
struct Begun<'a> {
    syncs: &'a Syncs,
    place: usize,
    own: UnderWay,
    segments: Vec<Arc<Segment>>,
    /// Files that it found; they are there to stay when it has succeeded.
    present: BTreeSet<u64>,
    lengths: u64,
    /// The last earlier sync that makes durable what this one does not.
    awaits: u64,
    /// It has to open files for syncs beside it.
    opens: bool,
    has_ended: bool,
}

impl Synced {
    fn check(&self, dir: &Path) -> Result<()> {
        let Some(kind) = self.failed else { return Ok(()) };
        let context = format!(
            "an earlier sync of {} failed, bytes written before it may be lost",
            dir.display()
        );
        Err(StoreError::Io { context, source: io::Error::from(kind) })
    }

    fn is_under_way(&self, numbers: RangeFrom<u64>) -> bool {
        self.under_way.iter().flatten().any(|sync| numbers.contains(&sync.number))
    }

    fn is_alone(&self) -> bool {
        self.under_way.iter().all(Option::is_none)
    }

    /// Takes in that a file got another length.
    pub(super) fn lengthened(&mut self, segment: u64) {
        // In full length only after the next sync.
        self.segments.remove(&segment);
        self.lengths += 1;
    }

    /// Forgets segments behind an end.
    pub(super) fn cut(&mut self, count: u64) {
        self.segments.retain(|number| *number < count);
        self.lengths += 1;
    }

    /// Returns the last sync under way that takes something that `takes` lacks.
    fn awaited(&self, takes: &Takes) -> u64 {
        let others = self.under_way.iter().flatten().filter(|other| !takes.covers(&other.takes));
        others.map(|other| other.number).max().unwrap_or(0)
    }
}

impl Syncs {
    pub(super) fn lock(&self) -> MutexGuard<'_, Synced> {
        locked(&self.state)
    }

    /// Returns the segments whose files are there, in full length, whatever happens.
    pub(super) fn durable_segments(&self) -> BTreeSet<u64> {
        self.lock().segments.clone()
    }

    fn wait<'a>(&self, state: MutexGuard<'a, Synced>) -> MutexGuard<'a, Synced> {
        self.ended.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all changes of `store` durable that have returned.
    pub(super) fn run(&self, store: &FileStore) -> Result<()> {
        let mut state = self.lock();
        let wanted = state.begun + 1;
        loop {
            state.check(&store.dir)?;
            if state.done >= wanted {
                return Ok(());
            }
            // One that began after this call will do.
            let comes = state.is_under_way(wanted..);
            match if comes { None } else { self.begin(&mut state, store) } {
                Some(begun) => {
                    drop(state);
                    begun.run(store)?;
                    state = self.lock();
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Begins a sync if there is a place and if its files are open there.
    fn begin<'a>(&'a self, state: &mut Synced, store: &FileStore) -> Option<Begun<'a>> {
        if state.opens_files {
            return None;
        }
        let place = state.under_way.iter().position(Option::is_none)?;
        // Before the marks: a file that appears meanwhile is for the next one.
        let present = store.present();
        let layout = store.layout();
        let changed = (0..).zip(&layout.segments).filter(|(_, segment)| segment.is_dirty());
        let (numbers, segments): (BTreeSet<u64>, Vec<_>) =
            changed.map(|(number, segment)| (number, Arc::clone(segment))).unzip();
        let is_alone = state.is_alone();
        if !is_alone && !segments.iter().all(|segment| segment.is_open(place)) {
            state.lacks_files = true;
            return None;
        }
        let names = store.names_changed.load(Ordering::Acquire);
        let takes = Takes { segments: numbers, names };
        let awaits = state.awaited(&takes);
        state.begun += 1;
        let own = UnderWay { number: state.begun, takes };
        state.under_way[place] = Some(own.clone());
        state.opens_files = is_alone && std::mem::take(&mut state.lacks_files);
        let (lengths, opens) = (state.lengths, state.opens_files);
        let (syncs, has_ended) = (self, false);
        Some(Begun { syncs, place, own, segments, present, lengths, awaits, opens, has_ended })
    }
}

impl Begun<'_> {
    /// Waits for the medium, and for earlier syncs that have the rest.
    fn run(mut self, store: &FileStore) -> Result<()> {
        let done = self.sync_all(store);
        let syncs = self.syncs;
        let mut state = syncs.lock();
        if let Err(Failure { lost: Some(kind), .. }) = &done {
            state.failed = Some(*kind);
        }
        while done.is_ok() && state.under_way.iter().flatten().any(|o| o.number <= self.awaits) {
            state = syncs.wait(state);
        }
        self.has_ended = true;
        state.under_way[self.place] = None;
        syncs.ended.notify_all();
        done.map_err(|failure| failure.error)?;
        state.check(&store.dir)?;
        state.done = state.done.max(self.own.number);
        if state.lengths == self.lengths {
            state.segments.append(&mut self.present);
        }
        Ok(())
    }

    fn sync_all(&self, store: &FileStore) -> std::result::Result<(), Failure> {
        if self.opens {
            self.open_more();
            self.syncs.lock().opens_files = false;
            self.syncs.ended.notify_all();
        }
        for segment in &self.segments {
            let Some(file) = segment.take_dirty(self.place)? else { continue };
            #[cfg(test)]
            self.syncs.stall.meet();
            file.sync_data().map_err(|error| Failure::lost(segment.path(), error))?;
        }
        if !self.own.takes.names {
            return Ok(());
        }
        let folder = store.folder()?;
        store.names_changed.store(false, Ordering::Release);
        folder.sync_all().map_err(|error| Failure::lost(&store.dir, error))
    }

    /// Opens the files of the other places. Where the system gives none, syncs come one by one.
    fn open_more(&self) {
        let places = || (0..MOST).filter(|place| *place != self.place);
        let all = self.segments.iter().flat_map(|own| places().map(move |place| (own, place)));
        for (segment, place) in all {
            if segment.open(place).is_err() {
                return;
            }
        }
    }
}

impl Drop for Begun<'_> {
    /// Ends a sync that panicked: it may have taken marks of bytes that are not durable.
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = self.syncs.lock();
            state.failed = Some(io::ErrorKind::Other);
            state.opens_files &= !self.opens;
            state.under_way[self.place] = None;
            self.syncs.ended.notify_all();
        }
    }
}

/// An error of a sync, and the system's one if it came from the waiting itself. If for example a
/// descriptor cannot be had, nothing is lost.
struct Failure {
    error: StoreError,
    lost: Option<io::ErrorKind>,
}

impl Failure {
    fn lost(path: &Path, source: io::Error) -> Self {
        Self { lost: Some(source.kind()), error: StoreError::io("sync", path, source) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { error, lost: None }
    }
}

#[cfg(test)]
mod tests;
