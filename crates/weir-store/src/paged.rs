//! A volume that knows which of its pages were written, with snapshots that share pages.
//!
//! ```text
//!              page 0     1     2     3
//! top          data   absent  zero absent     what is written goes here
//! snapshot 2  absent    data absent absent
//! snapshot 1    data    data   data absent
//! read          top  snap. 2 zeros  zeros     the topmost that says something decides
//! ```
//!
//! A volume is a stack of layers: bytes in a [`Store`], and a map that has each page of
//! 512 bytes as data, as zero, or not at all. A snapshot freezes the top and puts an empty
//! layer upon it, so it copies nothing. Deleting one only strikes its name; pushing its
//! layer and the one above into one ([`PagedStore::tidy`]) gives back the space.
//!
//! | module | holds |
//! |---|---|
//! | `map` | two bits for each page |
//! | `log` | maps on a medium |
//! | `layer` | bytes and map, and the order in which they become durable |
//! | `commit` | the same for several syncs at a time |
//! | `state` | the state of a page in a layer |
//! | `stack` | layers upon each other: reading, pages |
//! | `merge` | pushing a layer into the one below |
//! | `home` | where layers and their list are kept: in memory, or |
//! | `folders` | in folders of a [`crate::Volume`] |
//!
//! # Locks
//!
//! In this order: `admin`, over a snapshot, a resize or a step of tidying; `changing`,
//! shared by what changes bytes, exclusive while the top is replaced or cut; `filling`,
//! see `PagedStore::put`; a layer's log, while it is written; its batches; its maps.
//! Reading takes only the last: it looks at the stack, and for each run of pages at a map,
//! which are never locked over I/O.

mod commit;
pub(crate) mod folders;
pub(crate) mod fuzz;
pub(crate) mod home;
mod layer;
mod log;
mod map;
mod merge;
mod stack;
mod state;
#[cfg(test)]
mod tests;

use crate::pieces::len_of;
use crate::store::{Extent, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{Result, StoreError};
use home::{Home, LayerList, ListedLayer, Memory};
use layer::{Layer, Parts};
use merge::Merge;
use stack::{Entry, Found, Stack, View, clip, look, runs, touched};
use state::State;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};
use weir_units::Bytes;

const PAGE_LEN: usize = 512;
/// The size of a page in bytes.
pub const PAGE: u64 = PAGE_LEN as u64;
/// The pages that 64 bits can address: no volume has more.
const ALL_PAGES: u64 = u64::MAX / PAGE + 1;
/// The most layers of a volume: a read may have to look at each.
const MAX_LAYERS: usize = 4096;

/// The number of a snapshot of a volume: later ones are greater, and none comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u64);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Some bytes of a volume, in whole pages but where the volume, or the range that was
/// asked for, starts or ends within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageRange {
    /// Where, in bytes.
    pub offset: u64,
    /// The length in bytes; never zero.
    pub len: u64,
}

/// Pages that changed between two states of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    /// Which.
    pub range: PageRange,
    /// True if they were removed; else they were written.
    pub cleared: bool,
}

/// A [`Store`] that knows which pages were written and takes snapshots.
#[derive(Debug)]
pub struct PagedStore {
    home: Arc<dyn Home>,
    /// Replaced as a whole; locked to look or to replace.
    stack: RwLock<Arc<Stack>>,
    changing: RwLock<()>,
    filling: RwLock<()>,
    admin: Mutex<Admin>,
    views: Mutex<Views>,
    /// True once its folder may be another volume's.
    removed: AtomicBool,
}

/// The state that changes of the stack share.
#[derive(Debug)]
struct Admin {
    next_layer: u64,
    next_snapshot: u64,
    /// The progress of a merge.
    merged: Option<Merged>,
    /// Layers out of the list that somebody may still read from.
    gone: Vec<Arc<Layer>>,
}

/// The layers of a merge that is not finished, and the page where it goes on.
#[derive(Debug, Clone, Copy)]
struct Merged {
    lower: u64,
    upper: u64,
    page: u64,
}

impl PagedStore {
    /// Makes a volume of `size` zeros in memory, of which no page was written.
    #[must_use]
    pub fn in_memory(size: Bytes) -> Self {
        let bytes = Arc::new(crate::MemoryStore::new(size));
        let layer = Layer::in_memory(0, bytes);
        Self::from_layers(Arc::new(Memory), &LayerList::new(size), vec![layer])
    }

    /// Makes a new volume in `home`, which lists it from then on.
    pub(crate) fn create(home: Arc<dyn Home>, size: Bytes) -> Result<Self> {
        let list = LayerList::new(size);
        let layer = Layer::create(0, home.make(0, size)?)?;
        home.save(&list)?;
        Ok(Self::from_layers(home, &list, vec![layer]))
    }

    /// Opens the volume that `list` describes, whose layers have `parts`.
    pub(crate) fn open(home: Arc<dyn Home>, list: &LayerList, parts: Vec<Parts>) -> Result<Self> {
        let numbers = list.layers.iter().map(|listed| listed.number);
        let layers = numbers.zip(parts).map(|(number, parts)| Layer::open(number, parts));
        let store = Self::from_layers(home, list, layers.collect::<Result<_>>()?);
        // The rest of a shrinking, if a crash came before it was durable.
        let stack = store.stack();
        let size = stack.size();
        keep_last_page(&stack, size, |source| source.size > size)?;
        clear(&stack, size.div_ceil(PAGE)..ALL_PAGES);
        Ok(store)
    }

    fn from_layers(home: Arc<dyn Home>, list: &LayerList, layers: Vec<Layer>) -> Self {
        let entries = list.layers.iter().zip(layers).map(|(listed, layer)| Entry {
            layer: Arc::new(layer),
            size: listed.size.get(),
            snapshot: listed.snapshot,
        });
        let next_layer = list.layers.iter().map(|listed| listed.number + 1).max();
        Self {
            home,
            stack: RwLock::new(Arc::new(Stack(entries.collect()))),
            changing: RwLock::default(),
            filling: RwLock::default(),
            admin: Mutex::new(Admin {
                next_layer: next_layer.unwrap_or(0),
                next_snapshot: list.next_snapshot,
                merged: None,
                gone: Vec::new(),
            }),
            views: Mutex::default(),
            removed: AtomicBool::new(false),
        }
    }

    /// Its place may be another's from now on: nothing of it is put there any more, by what
    /// is under way neither.
    pub(crate) fn set_removed(&self) {
        let _admin = locked(&self.admin);
        self.removed.store(true, Ordering::Release);
    }

    /// Takes the right to change the files at its place, while that is its own.
    fn admin(&self) -> Result<MutexGuard<'_, Admin>> {
        let admin = locked(&self.admin);
        if self.removed.load(Ordering::Acquire) {
            let context = "the volume has been removed".to_owned();
            return Err(StoreError::Io { context, source: io::ErrorKind::NotFound.into() });
        }
        Ok(admin)
    }

    fn stack(&self) -> Arc<Stack> {
        Arc::clone(&shared(&self.stack))
    }

    /// Freezes what is there now. It copies nothing, and is durable when it returns, with
    /// everything that had been written before. Changes wait while it makes durable what
    /// was written last; reads do not. [`StoreError::Snapshot`] if there are too many.
    pub fn snapshot(&self) -> Result<SnapshotId> {
        let mut admin = self.admin()?;
        if self.stack().0.len() >= MAX_LAYERS {
            let problem = "exceeds the maximum number of snapshots; delete others first";
            return Err(StoreError::Snapshot { snapshot: admin.next_snapshot, problem });
        }
        let number = admin.next_layer;
        admin.next_layer += 1;
        let size = self.size();
        let layer = Layer::create(number, self.home.make(number, size)?)?;
        // The most of it, while changes go on.
        self.sync()?;
        let _still = exclusive(&self.changing);
        self.sync()?;
        let mut next = Stack::clone(&self.stack());
        let old_top = Arc::clone(next.top());
        let id = admin.next_snapshot;
        let last = next.0.len() - 1;
        next.0[last].snapshot = Some(id);
        next.0.push(Entry { layer: Arc::new(layer), size: size.get(), snapshot: None });
        // The id is not used again even if this fails, because the stored list is unknown then.
        admin.next_snapshot += 1;
        self.replace_stack(&admin, next)?;
        old_top.rest();
        Ok(SnapshotId(id))
    }

    /// Returns the snapshots, ascending.
    #[must_use]
    pub fn snapshots(&self) -> Vec<SnapshotId> {
        self.stack().0.iter().filter_map(|entry| entry.snapshot.map(SnapshotId)).collect()
    }

    /// Returns a snapshot as a store of the size that the volume had; `None` where there is no
    /// such snapshot. What would change it is [`StoreError::ReadOnly`]. It stays as it is
    /// while it is held, even if the snapshot is deleted.
    #[must_use]
    pub fn view(&self, snapshot: SnapshotId) -> Option<Arc<dyn Store>> {
        let mut views = locked(&self.views);
        let stack = views.hold(&self.stack(), Some(snapshot)).ok()?;
        Some(Arc::new(View(stack)))
    }

    /// Forgets a snapshot, durably; `false` where there is none of that number. The space
    /// comes back with [`tidy`](Self::tidy).
    pub fn delete_snapshot(&self, snapshot: SnapshotId) -> Result<bool> {
        let admin = self.admin()?;
        let mut next = Stack::clone(&self.stack());
        let Some(position) = next.position(snapshot.0) else { return Ok(false) };
        next.0[position].snapshot = None;
        self.replace_stack(&admin, next)?;
        Ok(true)
    }

    /// Puts another stack in place of this one, on the medium first.
    fn replace_stack(&self, admin: &Admin, next: Stack) -> Result<()> {
        let layers = next.0.iter().map(|entry| ListedLayer {
            number: entry.layer.number,
            size: Bytes::new(entry.size),
            snapshot: entry.snapshot,
        });
        let next_snapshot = admin.next_snapshot;
        self.home.save(&LayerList { layers: layers.collect(), next_snapshot })?;
        *exclusive(&self.stack) = Arc::new(next);
        Ok(())
    }

    /// Does one bounded step of giving back the space that deleted snapshots hold; `true`
    /// if another one can be done at once. It may be called at any time, beside all else.
    /// Layers that a held view or a read in flight still needs stay until a later call, and so
    /// does the last deleted snapshot until the next one is taken.
    pub fn tidy(&self) -> Result<bool> {
        let mut admin = self.admin()?;
        self.remove_gone(&mut admin)?;
        let stack = self.stack();
        let Some(position) = self.mergeable(&stack, admin.merged) else { return Ok(false) };
        let (lower, upper) = (&stack.0[position], &stack.0[position + 1]);
        let numbers = (lower.layer.number, upper.layer.number);
        let begun = admin.merged.filter(|merged| (merged.lower, merged.upper) == numbers);
        let merge = Merge { lower, upper, at_bottom: position == 0 };
        let next_page = merge.step(begun.map_or(0, |merged| merged.page))?;
        self.sync_layer(&lower.layer)?;
        admin.merged = next_page.map(|page| Merged { lower: numbers.0, upper: numbers.1, page });
        if next_page.is_some() {
            return Ok(true);
        }
        let mut next = Stack::clone(&stack);
        next.0[position] = Entry { layer: Arc::clone(&lower.layer), ..upper.clone() };
        let gone = next.0.remove(position + 1).layer;
        lower.layer.rest();
        self.replace_stack(&admin, next)?;
        admin.gone.push(gone);
        drop(stack);
        self.remove_gone(&mut admin)?;
        Ok(self.mergeable(&self.stack(), None).is_some())
    }

    /// Returns the position of a layer that the one above can be pushed into; the one that this
    /// was begun with, if there are several.
    fn mergeable(&self, stack: &Stack, begun: Option<Merged>) -> Option<usize> {
        let views = locked(&self.views);
        let can_be = |pair: &[Entry]| {
            let (lower, upper) = (pair[0].layer.number, pair[1].layer.number);
            pair[0].snapshot.is_none() && !views.look_into(lower, upper)
        };
        let pairs = || (0..).zip(stack.below().windows(2));
        let found = || pairs().filter(|(_, pair)| can_be(pair));
        let is_begun = |pair: &[Entry]| begun.is_some_and(|m| m.lower == pair[0].layer.number);
        let going_on = found().find(|(_, pair)| is_begun(pair));
        going_on.or_else(|| found().next()).map(|(position, _)| position)
    }

    /// Removes the layers that are not read from any more.
    fn remove_gone(&self, admin: &mut Admin) -> Result<()> {
        let mut done = Ok(());
        admin.gone.retain(|layer| {
            let in_use = Arc::strong_count(layer) > 1;
            if !in_use && done.is_ok() {
                done = self.home.remove(layer.number);
                return done.is_err();
            }
            true
        });
        done
    }

    /// Returns the pages that were written and not cleared since, in a range of the volume as it is
    /// or of a snapshot: ascending, neighbours joined, at most `max`. What is given back
    /// lies in the range; one that was asked for in part of a page is told in part.
    ///
    /// [`StoreError::OutOfRange`] if the range is not inside, [`StoreError::Snapshot`] if
    /// there is no such snapshot.
    pub fn pages(
        &self,
        of: Option<SnapshotId>,
        offset: u64,
        len: u64,
        max: usize,
    ) -> Result<Vec<PageRange>> {
        let mut views = locked(&self.views);
        let stack = views.hold(&self.stack(), of)?;
        drop(views);
        stack.pages(offset, len, max)
    }

    /// Returns the changes in a range from snapshot `since` to the later snapshot `of`, or to now:
    /// pages written, as far as they are still there, and pages that were there and are no
    /// more. Ascending, neighbours of a kind joined, at most `max`; the range is one of the
    /// later state.
    ///
    /// Errors are those of [`pages`](Self::pages); a `since` that is later than `of` is
    /// [`StoreError::Snapshot`].
    pub fn changes(
        &self,
        since: SnapshotId,
        of: Option<SnapshotId>,
        offset: u64,
        len: u64,
        max: usize,
    ) -> Result<Vec<Change>> {
        let mut views = locked(&self.views);
        let now = self.stack();
        let before = views.hold(&now, Some(since))?;
        let stack = views.hold(&now, of)?;
        drop(views);
        let Some(between) = stack.0.get(before.0.len()..) else {
            let problem = "is newer than the snapshot that it is compared with";
            return Err(StoreError::Snapshot { snapshot: since.0, problem });
        };
        check_range(offset, len, stack.size())?;
        let mut list = ChangeList { changes: Vec::new(), max, full: false };
        for (found, pages) in runs(between, touched(offset, len)) {
            match found {
                Found::Absent => {}
                Found::Data(_) => list.push(clip(&pages, offset, len), false),
                // Only what was there has gone.
                Found::Zero => runs(&before.0, pages)
                    .filter(|(found, _)| found.is_data())
                    .for_each(|(_, pages)| list.push(clip(&pages, offset, len), true)),
            }
            if list.full {
                break;
            }
        }
        Ok(list.changes)
    }

    /// Changes bytes by `put`, and has their pages as data afterwards.
    ///
    /// Changes pages in the top layer. If a page that is not there yet is changed in part, the
    /// rest of it is brought up first. No other change may reach that page meanwhile, or the rest
    /// would cover it: so only one change at a time brings up pages.
    fn put(
        &self,
        stack: &Stack,
        offset: u64,
        len: u64,
        put: impl FnOnce(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        let top = stack.top();
        let pages = touched(offset, len);
        if pages.is_empty() {
            return Ok(());
        }
        if top.has_all(&pages) {
            return put(&*top.bytes);
        }
        let end = offset + len;
        let in_part = [
            (!offset.is_multiple_of(PAGE)).then_some(pages.start),
            (!end.is_multiple_of(PAGE) && end != stack.size()).then_some(pages.end - 1),
        ];
        let (_beside, _alone);
        if in_part == [None, None] {
            _beside = shared(&self.filling);
        } else {
            _alone = exclusive(&self.filling);
            for page in in_part.into_iter().flatten() {
                if !top.has_all(&(page..page + 1)) {
                    stack.copy_up(page)?;
                }
            }
        }
        put(&*top.bytes)?;
        top.mark(pages, State::Data);
        Ok(())
    }

    /// Makes a part of a page read as zeros, which is nothing if it was not written.
    fn put_zeros(&self, stack: &Stack, offset: u64, len: u64) -> Result<()> {
        let page = offset / PAGE;
        if len == 0 || !look(&stack.0, page, page + 1).0.is_data() {
            return Ok(());
        }
        self.put(stack, offset, len, |bytes| bytes.write_zeroes(offset, len, true))
    }

    /// Moves the end to `new`, which is before it.
    fn shrink(&self, admin: &Admin, new: u64) -> Result<()> {
        let _still = exclusive(&self.changing);
        let stack = self.stack();
        keep_last_page(&stack, new, |_| true)?;
        self.replace_size(admin, new)?;
        clear(&stack, new.div_ceil(PAGE)..ALL_PAGES);
        stack.top().bytes.resize(Bytes::new(new))
    }

    /// Moves the end to `new`, which is not before it.
    fn grow(&self, admin: &Admin, new: u64) -> Result<()> {
        // Nothing that an earlier shrinking cleared is to come back in what is new.
        self.sync()?;
        let stack = self.stack();
        let bytes = &stack.top().bytes;
        if bytes.size().get() != stack.size() {
            // A resize failed after one of the two: what is behind the end goes first.
            bytes.resize(Bytes::new(stack.size()))?;
        }
        bytes.resize(Bytes::new(new))?;
        let _still = exclusive(&self.changing);
        self.replace_size(admin, new)
    }

    fn replace_size(&self, admin: &Admin, new: u64) -> Result<()> {
        let mut next = Stack::clone(&self.stack());
        let last = next.0.len() - 1;
        next.0[last].size = new;
        self.replace_stack(admin, next)
    }

    fn sync_layer(&self, layer: &Layer) -> Result<()> {
        layer.sync()?;
        self.home.synced(layer.number)
    }
}

/// The snapshots that somebody looks at. Locked over finding a snapshot in the stack and
/// holding it, so that who merges sees either the snapshot or who looks at it.
#[derive(Debug, Default)]
struct Views(Vec<Weak<Stack>>);

impl Views {
    /// Returns the layers of a snapshot, which are not merged with later ones while this is held,
    /// or, without a snapshot, those of the volume as it is.
    fn hold(&mut self, stack: &Arc<Stack>, of: Option<SnapshotId>) -> Result<Arc<Stack>> {
        let Some(SnapshotId(snapshot)) = of else { return Ok(Arc::clone(stack)) };
        let problem = "does not exist";
        let last = stack.position(snapshot).ok_or(StoreError::Snapshot { snapshot, problem })?;
        let held = Arc::new(Stack(stack.0[..=last].to_vec()));
        self.0.retain(|view| view.strong_count() > 0);
        self.0.push(Arc::downgrade(&held));
        Ok(held)
    }

    /// Returns whether a read could see the pages that are pushed from `upper` into `lower`. A read
    /// through the upper layer does not.
    fn look_into(&self, lower: u64, upper: u64) -> bool {
        let mut held = self.0.iter().filter_map(Weak::upgrade);
        held.any(|view| view.has_layer(lower) && !view.has_layer(upper))
    }
}

/// Brings up what is kept of the last page when the volume is cut to `size` within it,
/// if it is in a layer of which `needed`: there the rest of the page is still known.
fn keep_last_page(stack: &Stack, size: u64, needed: impl Fn(&Entry) -> bool) -> Result<()> {
    let (page, kept) = (size / PAGE, size % PAGE);
    if kept == 0 {
        return Ok(());
    }
    match look(&stack.0, page, page + 1).0 {
        Found::Data(source) if !Arc::ptr_eq(&source.layer, stack.top()) && needed(source) => {
            stack.copy_up(page)?;
            stack.top().mark(page..page + 1, State::Data);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Has the pages of the top as not written, and hides what is below.
fn clear(stack: &Stack, pages: Range<u64>) {
    for (found, pages) in runs(stack.below(), pages) {
        // In one step for each run: between two, what is below would be seen.
        let state = if found.is_data() { State::Zero } else { State::Absent };
        stack.top().mark(pages, state);
    }
}

/// Collects changes, joining neighbours, up to a number of them.
struct ChangeList {
    changes: Vec<Change>,
    max: usize,
    full: bool,
}

impl ChangeList {
    fn push(&mut self, range: PageRange, cleared: bool) {
        let count = self.changes.len();
        match self.changes.last_mut() {
            _ if self.full => {}
            Some(Change { range: last, cleared: kind })
                if *kind == cleared && last.offset + last.len == range.offset =>
            {
                last.len += range.len;
            }
            _ if count == self.max => self.full = true,
            _ => self.changes.push(Change { range, cleared }),
        }
    }
}

/// An orderly close syncs, so that all writes are found again. A client that needs to know that
/// they are durable has synced before.
impl Drop for PagedStore {
    fn drop(&mut self) {
        if !self.removed.load(Ordering::Acquire) {
            let _ = self.sync();
        }
    }
}

impl Store for PagedStore {
    fn size(&self) -> Bytes {
        Bytes::new(shared(&self.stack).size())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let stack = self.stack();
        check_range(offset, len_of(buf), stack.size())?;
        stack.read_at(offset, buf)?;
        // A range that a resize took away meanwhile is refused as if the resize had come first.
        check_range(offset, len_of(buf), self.size().get())
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let stack = self.stack();
        check_range(offset, len_of(buf), stack.size())?;
        let done = stack.try_read_at(offset, buf)?;
        check_range(offset, len_of(buf), self.size().get())?;
        Ok(done)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let _still = shared(&self.changing);
        let stack = self.stack();
        check_range(offset, len_of(data), stack.size())?;
        self.put(&stack, offset, len_of(data), |bytes| bytes.write_at(offset, data))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        if may_trim {
            return self.trim(offset, len);
        }
        let _still = shared(&self.changing);
        let stack = self.stack();
        check_range(offset, len, stack.size())?;
        self.put(&stack, offset, len, |bytes| bytes.write_zeroes(offset, len, false))
    }

    /// Pages that lie in the range are not written any more; of those that lie in it in
    /// part, that part is written with zeros.
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let _still = shared(&self.changing);
        let stack = self.stack();
        check_range(offset, len, stack.size())?;
        let end = offset + len;
        let last = if end == stack.size() { end.div_ceil(PAGE) } else { end / PAGE };
        let pages = offset.div_ceil(PAGE)..last;
        let from = pages.start.saturating_mul(PAGE).min(end);
        let to = pages.end.saturating_mul(PAGE).min(end).max(from);
        self.put_zeros(&stack, offset, from - offset)?;
        self.put_zeros(&stack, to, end - to)?;
        if from == to {
            return Ok(());
        }
        clear(&stack, pages);
        stack.top().bytes.trim(from, to - from)
    }

    fn sync(&self) -> Result<()> {
        let top = Arc::clone(self.stack().top());
        self.sync_layer(&top)
    }

    /// Resizes durably. If it fails, the size is the old one, or the new one with
    /// space still to be freed; [`Store::size`] says which.
    fn resize(&self, new: Bytes) -> Result<()> {
        let admin = self.admin()?;
        self.home.check_size(new)?;
        if new < self.size() {
            self.shrink(&admin, new.get())
        } else {
            self.grow(&admin, new.get())
        }
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.stack().extents(offset, len, max)
    }

    fn syncs(&self) -> usize {
        self.stack().top().bytes.syncs()
    }

    fn allocated(&self) -> Result<Bytes> {
        self.stack().allocated()
    }
}
