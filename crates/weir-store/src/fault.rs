//! A store that loses power, runs full and breaks when a test says so.
//!
//! ```text
//! write, zero, trim --> now     what readers see
//!                   --> unsynced, in order
//! durable write     --> the same, and a crash keeps all of it
//! sync              --> durable is what now is; unsynced is empty
//! begin, end sync   --> the same for what was unsynced when it began
//! crash             --> durable, and of each unsynced change any 512-byte sectors
//! kill              --> everything as it is: the system outlives the process
//! ```
//!
//! A resize is durable when it returns, as with [`crate::Volume`].

use crate::memory::MemoryStore;
use crate::pieces::{index, pieces};
use crate::store::{Extent, ExtentKind, Store};
use crate::sync::locked;
use crate::{Result, StoreError};
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use weir_random::Rng;
use weir_units::Bytes;

/// The bytes that a medium writes as a whole or not at all.
const SECTOR: u64 = 512;

/// A volume in memory with the failures of a medium.
#[derive(Debug)]
pub struct FaultStore {
    state: Mutex<State>,
}

/// A failure to be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The medium is full: what may take space fails.
    NoSpace,
    /// The medium is broken: every operation fails.
    Io,
}

#[derive(Debug)]
struct State {
    now: MemoryStore,
    durable: MemoryStore,
    unsynced: Vec<Unsynced>,
    /// Changes that are not in `unsynced` any more.
    synced: u64,
    fault: Option<Planned>,
    /// Bytes that it cannot read.
    unreadable: Range<u64>,
    /// Bytes for which it has no space left.
    without_place: Range<u64>,
    /// It makes single writes durable.
    is_durable: bool,
}

/// A change since the last sync.
#[derive(Debug, Clone)]
struct Unsynced {
    change: Change,
    /// A crash keeps all of it.
    is_durable: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    Zero { offset: u64, len: u64 },
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    fault: Fault,
    /// Operations that still succeed.
    after: u64,
}

/// The faults that an operation can meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Medium,
    MediumAndSpace,
}

impl FaultStore {
    /// Makes a volume of `size` durable zeros.
    #[must_use]
    pub fn new(size: Bytes) -> Self {
        Self::from_state(MemoryStore::new(size), MemoryStore::new(size), Vec::new())
    }

    fn from_state(now: MemoryStore, durable: MemoryStore, unsynced: Vec<Unsynced>) -> Self {
        let (fault, unreadable, without_place) = (None, 0..0, 0..0);
        let state = State {
            now,
            durable,
            unsynced,
            synced: 0,
            fault,
            unreadable,
            without_place,
            is_durable: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// Returns the store after a power loss: synced data is there, and of data that was
    /// not synced each sector is or is not, as `seed` decides.
    pub fn crash(&self, seed: u64) -> Result<Self> {
        let state = locked(&self.state);
        let survived = copy(&state.durable)?;
        let mut coin = Rng::from_state(seed);
        for Unsynced { change, is_durable } in &state.unsynced {
            change.apply(&survived, &mut || *is_durable || coin.flip())?;
        }
        Ok(Self::from_state(copy(&survived)?, survived, Vec::new()))
    }

    /// Returns the store after its process was killed: nothing is lost, and data that was not
    /// synced can still be lost to a [`FaultStore::crash`].
    pub fn kill(&self) -> Result<Self> {
        let state = locked(&self.state);
        Ok(Self::from_state(copy(&state.now)?, copy(&state.durable)?, state.unsynced.clone()))
    }

    /// Lets `operations` more of those that `fault` can hit succeed, and fails
    /// the later ones until [`FaultStore::heal`].
    pub fn fail_after(&self, operations: u64, fault: Fault) {
        locked(&self.state).fault = Some(Planned { fault, after: operations });
    }

    /// Fails reads of a range until [`FaultStore::heal`].
    pub fn fail_reads(&self, range: Range<u64>) {
        locked(&self.state).unreadable = range;
    }

    /// Fails writes to a range that has no space on the full medium, until [`FaultStore::heal`].
    pub fn fill_up(&self, without_place: Range<u64>) {
        locked(&self.state).without_place = without_place;
    }

    /// Makes [`Store::write_durably`] do so from now on, or not.
    pub fn make_writes_durable(&self, is_durable: bool) {
        locked(&self.state).is_durable = is_durable;
    }

    /// Ends the failures.
    pub fn heal(&self) {
        let mut state = locked(&self.state);
        state.fault = None;
        (state.unreadable, state.without_place) = (0..0, 0..0);
    }

    /// Begins a sync that takes its time. It covers the changes until now.
    pub fn begin_sync(&self) -> Result<u64> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        Ok(state.synced + state.unsynced.len() as u64)
    }

    /// Ends the sync for which [`FaultStore::begin_sync`] returned `begun`.
    pub fn end_sync(&self, begun: u64) -> Result<()> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        state.make_durable(begun)
    }

    /// Returns the number of changes that a crash could lose now.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        locked(&self.state).unsynced.iter().filter(|own| !own.is_durable).count()
    }
}

impl State {
    fn meet(&mut self, needs: Needs) -> Result<()> {
        let Some(planned) = &mut self.fault else { return Ok(()) };
        if planned.fault == Fault::NoSpace && needs == Needs::Medium {
            return Ok(());
        }
        if planned.after > 0 {
            planned.after -= 1;
            return Ok(());
        }
        let context = "injected by a test".to_owned();
        Err(match planned.fault {
            Fault::NoSpace => no_space(context),
            Fault::Io => StoreError::Io { context, source: io::Error::other("broken medium") },
        })
    }

    fn change(&mut self, change: Change, is_durable: bool) -> Result<()> {
        change.apply(&self.now, &mut || true)?;
        self.unsynced.push(Unsynced { change, is_durable });
        Ok(())
    }

    /// Makes changes durable up to one of this number.
    fn make_durable(&mut self, number: u64) -> Result<()> {
        let some = index(number.saturating_sub(self.synced));
        for Unsynced { change, .. } in self.unsynced.drain(..some) {
            change.apply(&self.durable, &mut || true)?;
        }
        self.synced = self.synced.max(number);
        Ok(())
    }
}

impl Change {
    /// Does to `store` those sectors of the change that `keep` wants.
    fn apply(&self, store: &MemoryStore, keep: &mut dyn FnMut() -> bool) -> Result<()> {
        match self {
            Self::Write { offset, data } => {
                for (at, len) in kept_runs(*offset, data.len() as u64, keep) {
                    let from = index(at - offset);
                    store.write_at(at, &data[from..from + index(len)])?;
                }
            }
            // Zeros that replace zeros are the same, kept or lost.
            Self::Zero { offset, len } => {
                for (at, len) in data_in(store, *offset, *len)? {
                    for (at, len) in kept_runs(at, len, keep) {
                        store.trim(at, len)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Forgets what is behind `size`.
    fn cut(&mut self, size: u64) {
        match self {
            Self::Write { offset, data } => data.truncate(index(size.saturating_sub(*offset))),
            Self::Zero { offset, len } => *len = (*len).min(size.saturating_sub(*offset)),
        }
        // A change behind the end is an empty one at the end.
        let (Self::Write { offset, .. } | Self::Zero { offset, .. }) = self;
        *offset = (*offset).min(size);
    }
}

fn no_space(context: String) -> StoreError {
    StoreError::NoSpace { context, source: io::ErrorKind::StorageFull.into() }
}

fn overlaps(range: &Range<u64>, offset: u64, bytes: &[u8]) -> bool {
    offset < range.end && range.start < offset + bytes.len() as u64
}

/// Returns the sectors of a range that `keep` wants, neighbours joined: where, how long.
fn kept_runs(offset: u64, len: u64, keep: &mut dyn FnMut() -> bool) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for piece in pieces(offset, len, SECTOR) {
        if !keep() {
            continue;
        }
        let at = offset + piece.at;
        match runs.last_mut() {
            Some((from, len)) if *from + *len == at => *len += piece.len,
            _ => runs.push((at, piece.len)),
        }
    }
    runs
}

/// Returns the stretches of data in a range: where, how long.
fn data_in(store: &MemoryStore, offset: u64, len: u64) -> Result<Vec<(u64, u64)>> {
    let mut at = offset;
    let mut found = Vec::new();
    for Extent { len, kind } in store.extents(offset, len, usize::MAX)? {
        if kind == ExtentKind::Data {
            found.push((at, len));
        }
        at += len;
    }
    Ok(found)
}

fn copy(store: &MemoryStore) -> Result<MemoryStore> {
    let size = store.size();
    let made = MemoryStore::new(size);
    for (at, len) in data_in(store, 0, size.get())? {
        let mut data = vec![0; index(len)];
        store.read_at(at, &mut data)?;
        made.write_at(at, &data)?;
    }
    Ok(made)
}

impl FaultStore {
    fn write(&self, offset: u64, data: &[u8], durably: bool) -> Result<bool> {
        let mut state = locked(&self.state);
        crate::store::check_range(offset, data.len() as u64, state.now.size().get())?;
        state.meet(Needs::MediumAndSpace)?;
        if overlaps(&state.without_place, offset, data) {
            return Err(no_space("injected by a test".to_owned()));
        }
        let is_durable = durably && state.is_durable;
        state.change(Change::Write { offset, data: data.to_vec() }, is_durable)?;
        Ok(is_durable)
    }

    fn zero(&self, offset: u64, len: u64, may_trim: bool, durably: bool) -> Result<bool> {
        let mut state = locked(&self.state);
        crate::store::check_range(offset, len, state.now.size().get())?;
        state.meet(if may_trim { Needs::Medium } else { Needs::MediumAndSpace })?;
        let is_durable = durably && state.is_durable;
        state.change(Change::Zero { offset, len }, is_durable)?;
        Ok(is_durable)
    }
}

impl Store for FaultStore {
    fn size(&self) -> Bytes {
        locked(&self.state).now.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        if overlaps(&state.unreadable, offset, buf) {
            let source = io::Error::other("bad sector");
            return Err(StoreError::Io { context: "injected by a test".to_owned(), source });
        }
        state.now.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, false).map(drop)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.zero(offset, len, may_trim, false).map(drop)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool> {
        self.write(offset, data, true)
    }

    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool> {
        self.zero(offset, len, may_trim, true)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.write_zeroes(offset, len, true)
    }

    fn sync(&self) -> Result<()> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        let all = state.synced + state.unsynced.len() as u64;
        state.make_durable(all)
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        for Unsynced { change, .. } in &mut state.unsynced {
            change.cut(new.get());
        }
        state.now.resize(new)?;
        state.durable.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        let mut state = locked(&self.state);
        state.meet(Needs::Medium)?;
        state.now.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        locked(&self.state).now.allocated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_that_are_kept_are_joined_only_with_their_neighbours() {
        let check = |kept: &[u64], expect: &[(u64, u64)]| {
            let mut sector = 0..;
            let runs = kept_runs(32, 31 * SECTOR, &mut || kept.contains(&sector.next().unwrap()));
            assert_eq!(runs, expect);
        };
        check(&[], &[]);
        check(&[0, 1, 3], &[(32, 992), (1536, 512)]);
        check(&[0, 30], &[(32, 480), (15_360, 512)]);
        check(&[30, 31], &[(15_360, 544)]);
    }
}
