//! Frozen views of volumes, and change tracking since a backup.
//!
//! ```text
//!   write, zeros, trim, resize --+--> marked as changed   since the base, and since the freeze
//!                                +--> old contents kept   while a view needs them
//!                                +--> the store
//!
//!   read of a view --> is the block settled? --yes--> scratch
//!                                            --no---> the store, then asked again
//! ```
//!
//! A freeze takes no time: it begins a new `Era`, in which every change preserves the old contents
//! first. Changes that had begun before belong to the view, so the first reader of the view, and the
//! first change after the freeze, wait for them.
//!
//! A view costs its volume a copy of each block of 64 KiB that changes while the view exists. If a
//! copy cannot be stored, the view is lost, never the change.
//!
//! Changes are marked in bitmaps, one for each era. A complete full backup drops the bitmaps before
//! its freeze. `record` stores them at an orderly end; after any other end they are unknown.

mod bitmap;
mod done;
mod era;
mod frozen;
pub(crate) mod fuzz;
mod record;
mod scratch;
mod tracking;

pub use bitmap::BLOCK;
pub use frozen::{Changed, Frozen};
pub(crate) use record::{FILE, Folder, Home};
pub use scratch::Scratch;
pub use tracking::Tracking;

use crate::asynchronous::{AsyncStore, Operation, Then};
use crate::store::{Extent, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{ErrorKind, Result};
use bitmap::Bitmap;
use done::Done;
use era::{Era, Rules, Visit};
use frozen::Parts;
use record::Record;
use std::sync::{Arc, Mutex, RwLock};
use weir_units::Bytes;

/// A [`Store`] that can be frozen, and that knows which blocks changed. Clones are the same
/// store. Changes of the store under it are neither tracked nor kept from views.
#[derive(Debug, Clone)]
pub struct Freezable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    /// Locked to enter or replace the era, never during I/O.
    era: RwLock<Arc<Era>>,
    admin: Mutex<Admin>,
    home: Option<Box<dyn Home>>,
}

#[derive(Debug)]
struct Admin {
    tracking: Tracking,
    /// The era up to which the base shows the volume.
    base_era: u64,
    /// Blocks changed in earlier eras since the base, each with the last of its eras.
    older: Vec<(u64, Arc<Bitmap>)>,
    /// Eras that are over and may have changes under way.
    past: Vec<Arc<Done>>,
    /// The medium has a current record, and no call has tried to remove it.
    is_recorded: bool,
}

impl Freezable {
    /// Makes a store freezable, without changes so far.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with(store, None, Some(Record::default()), false)
    }

    /// Makes a new store freezable, and records its changes in `home` at an orderly end.
    pub(crate) fn recorded(store: Arc<dyn Store>, home: Box<dyn Home>) -> Self {
        Self::with(store, Some(home), Some(Record::default()), false)
    }

    /// Makes a store freezable whose changes were recorded in `home`. A record that is
    /// missing, damaged or of another size means that they are unknown.
    pub(crate) fn opened(store: Arc<dyn Store>, home: Box<dyn Home>) -> Self {
        let size = store.size().get();
        let record = home.load(record::MOST).ok().flatten();
        let record = record.and_then(|content| Record::decode(&content, size));
        // A missing record may have been removed by a process that was killed before the removal was
        // durable.
        Self::with(store, Some(home), record, true)
    }

    fn with(
        store: Arc<dyn Store>,
        home: Option<Box<dyn Home>>,
        record: Option<Record>,
        sealed: bool,
    ) -> Self {
        let known = record.is_some();
        let Record { base, changed } = record.unwrap_or_default();
        let changed = base.is_some().then(|| Arc::new(changed));
        let era = Era::first(Rules { changed, sealed, ..Rules::default() });
        let tracking = Tracking { known, base };
        let (older, past, is_recorded) = (Vec::new(), Vec::new(), sealed && known);
        let admin = Admin { tracking, base_era: 0, older, past, is_recorded };
        let (era, admin) = (RwLock::new(Arc::new(era)), Mutex::new(admin));
        Self(Arc::new(Inner { store, era, admin, home }))
    }

    /// Returns the state of change tracking.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        locked(&self.0.admin).tracking.clone()
    }

    /// Freezes the store: the view shows all changes that have returned, and none that begins
    /// after this returns.
    #[must_use]
    pub fn freeze(&self, scratch: Scratch) -> Arc<Frozen> {
        let mut admin = locked(&self.0.admin);
        let mut now = exclusive(&self.0.era);
        let pending = [Arc::<Bitmap>::default(), Arc::default()];
        let [before, after] = pending.clone();
        let number = now.number;
        admin.older.extend(now.rules.changed.clone().map(|changed| (number, changed)));
        admin.past.retain(|era| !era.is_done());
        admin.past.push(now.done());
        let known = admin.older.iter().map(|(_, changed)| Arc::clone(changed));
        let frozen = Arc::new(Frozen::new(Parts {
            store: Arc::clone(&self.0.store),
            era: number,
            before: admin.past.clone(),
            scratch,
            tracking: admin.tracking.clone(),
            changed: known.chain([before]).collect(),
            pending,
        }));
        let mut views = now.rules.frozen.clone();
        views.push(Arc::clone(&frozen));
        let changed = Some(after);
        let sealed = now.rules.sealed;
        *now = Arc::new(now.next(Rules { changed, frozen: views, sealed }));
        frozen
    }

    /// Ends a view: its reads fail from now on, and no more contents are kept for it. A second call
    /// does nothing.
    pub fn thaw(&self, frozen: &Arc<Frozen>) {
        {
            let mut admin = locked(&self.0.admin);
            let mut now = exclusive(&self.0.era);
            if !now.rules.frozen.iter().any(|view| Arc::ptr_eq(view, frozen)) {
                return;
            }
            let views: Vec<_> = now
                .rules
                .frozen
                .iter()
                .filter(|view| !Arc::ptr_eq(view, frozen))
                .cloned()
                .collect();
            let mut changed = now.rules.changed.clone();
            admin.past.retain(|era| !era.is_done());
            if views.is_empty() && admin.tracking.base.is_none() {
                changed = None;
                admin.older.clear();
            } else if let Some(changed) = changed.as_ref().filter(|_| views.is_empty())
                && admin.past.is_empty()
            {
                // Changes do not mark the older bitmaps any more, so they can be merged.
                admin.older.drain(..).for_each(|(_, older)| changed.add(&older));
            }
            admin.past.push(now.done());
            let sealed = now.rules.sealed;
            *now = Arc::new(now.next(Rules { changed, frozen: views, sealed }));
        }
        frozen.lose("the freeze is over");
    }

    /// Makes a view the base of later differentials: it is in the full backup of that id,
    /// which is complete. Returns `false` if it cannot be, because it was lost or a later
    /// one is the base already.
    ///
    /// # Errors
    ///
    /// [`crate::StoreError`] if the record of the old base cannot be removed.
    pub fn complete(&self, frozen: &Arc<Frozen>, backup: &str) -> Result<bool> {
        let mut admin = locked(&self.0.admin);
        let has_later = admin.tracking.base.is_some() && admin.base_era > frozen.era;
        let is_here = shared(&self.0.era).rules.frozen.iter().any(|view| Arc::ptr_eq(view, frozen));
        if has_later || !is_here || frozen.lost().is_some() {
            return Ok(false);
        }
        self.unseal(&mut admin)?;
        admin.tracking = Tracking { known: true, base: Some(backup.to_owned()) };
        admin.base_era = frozen.era;
        admin.older.retain(|(era, _)| *era > frozen.era);
        Ok(true)
    }

    /// Syncs the store and records the changes, so that they are known when the store is opened
    /// again, if nothing changes meanwhile. Without a home it does nothing.
    ///
    /// # Errors
    ///
    /// [`crate::StoreError`] if the sync fails or the record cannot be written: the changes are
    /// unknown then.
    pub fn record(&self) -> Result<()> {
        let mut admin = locked(&self.0.admin);
        let Some(home) = &self.0.home else { return Ok(()) };
        let (changed, size) = {
            let mut now = exclusive(&self.0.era);
            if admin.is_recorded || !admin.tracking.known {
                return Ok(());
            }
            let changed = now.rules.changed.clone();
            let before = now.done();
            // The next change waits for this lock, and removes the record.
            *now = Arc::new(now.next(Rules { sealed: true, ..now.rules.clone() }));
            drop(now);
            before.wait();
            admin.past.iter().for_each(|era| era.wait());
            (changed, self.0.store.size().get())
        };
        // Blocks of the base that count as unchanged may not be durable before this sync. After it, a
        // change removes the record.
        if let Err(error) = self.0.store.sync() {
            admin.tracking.known = false;
            return Err(error);
        }
        let all = Bitmap::default();
        let older = admin.older.iter().map(|(_, older)| older);
        older.chain(&changed).for_each(|changed| all.add(changed));
        home.save(&Record::encode(admin.tracking.base.as_deref(), &all, size))?;
        admin.is_recorded = true;
        Ok(())
    }

    /// Forgets the changes: they are unknown until the next full backup.
    pub(crate) fn forget(&self) {
        let mut admin = locked(&self.0.admin);
        admin.tracking.known = false;
        // A record that cannot be removed is removed before the next change, or that fails.
        let _ = self.unseal(&mut admin);
    }

    fn enter(&self) -> Result<Visit> {
        loop {
            let visit = shared(&self.0.era).enter();
            if !visit.is_sealed() {
                return Ok(visit);
            }
            drop(visit);
            self.unseal(&mut locked(&self.0.admin))?;
        }
    }

    /// Removes the record of the changes, which the next change would make wrong.
    fn unseal(&self, admin: &mut Admin) -> Result<()> {
        if !shared(&self.0.era).rules.sealed {
            return Ok(());
        }
        admin.is_recorded = false;
        if let Some(home) = &self.0.home {
            home.forget()?;
        }
        let mut now = exclusive(&self.0.era);
        admin.past.retain(|era| !era.is_done());
        admin.past.push(now.done());
        *now = Arc::new(now.next(Rules { sealed: false, ..now.rules.clone() }));
        Ok(())
    }

    /// Changes the store by `act`, after `prepare` has preserved what views need.
    fn change<T>(
        &self,
        prepare: impl FnOnce(&Visit, &dyn Store) -> Result<()>,
        act: impl Fn(&dyn Store) -> Result<T>,
    ) -> Result<T> {
        let store = &*self.0.store;
        let visit = self.enter()?;
        if !visit.is_free() {
            prepare(&visit, store)?;
        }
        match act(store) {
            Err(error) if error.kind() == ErrorKind::NoSpace && visit.make_room() => act(store),
            done => done,
        }
    }

    fn write<T>(
        &self,
        (offset, len): (u64, u64),
        write: impl Fn(&dyn Store) -> Result<T>,
    ) -> Result<T> {
        let prepare = |visit: &Visit, store: &dyn Store| {
            check_range(offset, len, store.size().get())?;
            visit.before_write(offset, len);
            Ok(())
        };
        self.change(prepare, write)
    }

    fn zero<T>(
        &self,
        (offset, len): (u64, u64),
        zero: impl Fn(&dyn Store) -> Result<T>,
    ) -> Result<T> {
        let prepare = |visit: &Visit, store: &dyn Store| {
            check_range(offset, len, store.size().get())?;
            visit.before_zeros(store, offset, len);
            Ok(())
        };
        self.change(prepare, zero)
    }

    /// Resizes the store by `resize`.
    pub(crate) fn resized(&self, new: Bytes, resize: impl Fn() -> Result<()>) -> Result<()> {
        let prepare = |visit: &Visit, store: &dyn Store| {
            let old = store.size().get();
            visit.before_zeros(store, new.get(), old.saturating_sub(new.get()));
            Ok(())
        };
        self.change(prepare, |_| resize())
    }
}

impl Store for Freezable {
    fn size(&self) -> Bytes {
        self.0.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.store.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.0.store.try_read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write((offset, data.len() as u64), |store| store.write_at(offset, data))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.zero((offset, len), |store| store.write_zeroes(offset, len, may_trim))
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.zero((offset, len), |store| store.trim(offset, len))
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool> {
        self.write((offset, data.len() as u64), |store| store.write_durably(offset, data))
    }

    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool> {
        self.zero((offset, len), |store| store.zero_durably(offset, len, may_trim))
    }

    fn sync(&self) -> Result<()> {
        self.0.store.sync()
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.resized(new, || self.0.store.resize(new))
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.0.store.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.0.store.allocated()
    }

    fn depth(&self) -> usize {
        self.0.store.depth()
    }

    fn syncs(&self) -> usize {
        self.0.store.syncs()
    }

    fn asynchronous(&self) -> Option<&dyn AsyncStore> {
        self.0.store.asynchronous().map(|_| self as &dyn AsyncStore)
    }
}

impl AsyncStore for Freezable {
    /// Does not take a write whose old contents a view needs.
    fn submit(&self, operation: Operation, then: Then) -> Option<(Operation, Then)> {
        let Some(store) = self.0.store.asynchronous() else { return Some((operation, then)) };
        let Operation::Write { offset, data, .. } = &operation else {
            return store.submit(operation, then);
        };
        let (offset, len) = (*offset, data.len() as u64);
        if let Err(error) = check_range(offset, len, self.0.store.size().get()) {
            then.call(Err(error));
            return None;
        }
        let visit = shared(&self.0.era).enter();
        // Removing the record waits, and so does preserving old contents.
        if visit.is_sealed() || !visit.is_quick() {
            return Some((operation, then));
        }
        visit.before_write(offset, len);
        // The change is over when it is answered. One that is returned begins again.
        let under_way = Arc::new(Mutex::new(Some(visit)));
        let over = Arc::clone(&under_way);
        let then = Then::new(move |result| {
            locked(&over).take();
            then.call(result);
        });
        let returned = store.submit(operation, then);
        if returned.is_some() {
            locked(&under_way).take();
        }
        returned
    }

    fn kick(&self) {
        if let Some(store) = self.0.store.asynchronous() {
            store.kick();
        }
    }
}

#[cfg(test)]
mod tests;
