//! The inode table. Inodes are held by descriptors, which stay valid when files are renamed,
//! together with the space that each file takes.
//!
//! An inode is in the table while the kernel's lookup count is above zero. The kernel's number is
//! that of the backing file. It is therefore the same after a restart, and is not reused while the
//! descriptor is open.

use crate::limits::{Errno, FileId, Limits, Space};
use rustix::fs::{FileType, SeekFrom, Stat};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Block size in which most file systems allocate.
const BLOCK: u64 = 4096;
/// The kernel's number of the root.
const ROOT: u64 = 1;

/// Returns the kernel's number of a backing inode: the backing number, with that of `root` and the
/// number that the kernel requires for its root exchanged.
pub(crate) fn node_id(root: u64, inode: u64) -> u64 {
    match inode {
        _ if inode == root => ROOT,
        ROOT => root,
        inode => inode,
    }
}

/// A file, a directory or another object with a name.
pub(crate) struct Inode {
    /// The kernel's number.
    pub(crate) node: u64,
    pub(crate) file: FileId,
    pub(crate) kind: FileType,
    /// An `O_PATH` descriptor, without read or write access.
    pub(crate) fd: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The space reported to the limits: that after the last complete change, plus the maximum
    /// growth by changes in progress.
    space: Space,
    /// The part of the space reserved by changes in progress.
    pending: u64,
    /// Number of changes in progress.
    changing: u32,
    /// The file has no holes before this offset.
    dense: u64,
    /// Direct writes changed the modification time, which the kernel has not seen.
    modified_unseen: bool,
    /// Number of open handles.
    handles: u32,
    /// Number of handles that can make pages in the kernel's cache dirty.
    dirtying: u32,
    /// The limits have been told of the removal.
    removed: bool,
}

impl Inode {
    pub(crate) fn new(node: u64, file: FileId, fd: OwnedFd, stat: &Stat) -> Self {
        let state = State { space: space(stat), ..State::default() };
        let kind = FileType::from_raw_mode(stat.st_mode);
        Self { node, file, kind, fd, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn size(&self) -> u64 {
        self.lock().space.size
    }

    /// Returns whether the kernel may hold unsent writes.
    pub(crate) fn may_be_dirty(&self) -> bool {
        self.lock().dirtying > 0
    }

    /// Counts a new handle. Fails if the file has been removed.
    pub(crate) fn opened(&self, dirtying: bool) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.removed {
            return Err(Errno::STALE);
        }
        state.handles += 1;
        state.dirtying += u32::from(dirtying);
        Ok(())
    }

    /// Counts a closed handle. Returns whether it was the last one.
    pub(crate) fn closed(&self, dirtying: bool, limits: &dyn Limits) -> bool {
        let mut state = self.lock();
        state.handles -= 1;
        state.dirtying -= u32::from(dirtying);
        let last = state.handles == 0;
        drop(state);
        self.report_if_removed(limits);
        last
    }

    /// Reports the removal to the limits if neither names nor handles are left.
    pub(crate) fn report_if_removed(&self, limits: &dyn Limits) {
        let unlinked = || rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0);
        let mut state = self.lock();
        if self.kind.is_file() && state.handles == 0 && !state.removed && unlinked() {
            state.removed = true;
            limits.removed(self.file, state.space);
        }
    }

    /// Marks a file as removed without a report, because its creation was undone.
    pub(crate) fn discard(&self) {
        self.lock().removed = true;
    }

    /// Asks the limits for the space of a change. The change is in progress until the result is
    /// dropped. `fd` is the file, open for reading or writing.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        limits: &Arc<dyn Limits>,
        fd: &OwnedFd,
        change: Change,
    ) -> Result<Changing, Errno> {
        let mut state = self.lock();
        let old = state.space;
        let (mut new, mut more) = (old, 0);
        match change {
            Change::None => {}
            Change::Hole { offset } => state.dense = state.dense.min(offset),
            Change::Cut { size } => {
                state.dense = state.dense.min(size);
                new.size = old.size.max(size);
            }
            Change::Filled { offset, len, grows } => {
                let known = Space { allocated: old.allocated - state.pending, ..old };
                let unmapped = |start, end| state.unmapped(fd, start, end);
                more = needed(known, offset, len, unmapped);
                new.allocated = old.allocated.saturating_add(more);
                if grows && len > 0 {
                    new.size = old.size.max(offset.saturating_add(len));
                }
            }
        }
        if new != old {
            limits.reserve(self.file, old, new)?;
            state.space = new;
            state.pending += more;
        }
        state.changing += 1;
        Ok(Changing { inode: Arc::clone(self), limits: Arc::clone(limits), more })
    }

    /// Marks the modification time as changed by direct writes.
    pub(crate) fn modified_unseen(&self) {
        self.lock().modified_unseen = true;
    }

    /// Returns whether direct writes changed the modification time.
    pub(crate) fn is_modified_unseen(&self) -> bool {
        self.lock().modified_unseen
    }
}

/// A change of a file's space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// None.
    None,
    /// A hole is punched.
    Hole {
        /// Start of the range.
        offset: u64,
    },
    /// The file is truncated or extended.
    Cut {
        /// The new size.
        size: u64,
    },
    /// A range is allocated.
    Filled {
        /// Start of the range.
        offset: u64,
        /// Length of the range.
        len: u64,
        /// True if the file grows.
        grows: bool,
    },
}

impl State {
    /// Returns the number of unallocated bytes in a range within the file.
    fn unmapped(&mut self, fd: &OwnedFd, start: u64, end: u64) -> u64 {
        let seek = |to| rustix::fs::seek(fd, to);
        if end <= self.dense {
            return 0;
        }
        // Most files have no holes, and then this one call suffices.
        if let Ok(hole) = seek(SeekFrom::Hole(self.dense)) {
            self.dense = hole;
        }
        let (mut at, mut unmapped) = (start.max(self.dense.min(end)), 0);
        for _ in 0..MAX_COUNTED_HOLES {
            let hole = seek(SeekFrom::Hole(at)).unwrap_or(at).min(end);
            let data = seek(SeekFrom::Data(hole)).unwrap_or(end).clamp(hole, end);
            unmapped += data - hole;
            at = data;
            if at >= end {
                return unmapped;
            }
        }
        unmapped + (end - at)
    }
}

/// Maximum number of holes in a range that are counted individually.
const MAX_COUNTED_HOLES: usize = 32;

impl fmt::Debug for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inode").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A change in progress. When it is dropped, the limits are told the actual space.
pub(crate) struct Changing {
    inode: Arc<Inode>,
    limits: Arc<dyn Limits>,
    /// The reserved growth.
    more: u64,
}

impl Drop for Changing {
    fn drop(&mut self) {
        let mut state = self.inode.lock();
        state.changing -= 1;
        state.pending -= self.more;
        let Ok(stat) = rustix::fs::fstat(&self.inode.fd) else { return };
        let mut now = space(&stat);
        now.allocated = now.allocated.saturating_add(state.pending);
        if state.changing > 0 {
            // Another change in progress may extend the file.
            now.size = now.size.max(state.space.size);
        }
        if now != state.space {
            self.limits.settled(self.inode.file, state.space, now);
            state.space = now;
        }
    }
}

/// Returns the space of a file.
pub(crate) fn space(stat: &Stat) -> Space {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    Space { size, allocated: blocks.saturating_mul(512) }
}

/// Returns the maximum growth of a file by an allocation of `len` bytes at `offset`. `unmapped`
/// returns the number of unallocated bytes in a range of the file.
fn needed(old: Space, offset: u64, len: u64, unmapped: impl FnOnce(u64, u64) -> u64) -> u64 {
    if len == 0 {
        return 0;
    }
    let up = |at: u64| at.div_ceil(BLOCK).saturating_mul(BLOCK);
    let (start, end) = (offset / BLOCK * BLOCK, up(offset.saturating_add(len)));
    let edge = up(old.size);
    let inside = if start < edge { unmapped(start, end.min(edge)) } else { 0 };
    // Blocks beyond those in use are preallocated after the end of the file.
    let reserved = old.allocated.max(edge);
    inside.saturating_add(end.saturating_sub(start.max(reserved)))
}

/// The inodes known to the kernel, by its numbers.
///
/// The kernel may know more inodes than this process can have open. Idle ones are then closed, and
/// requests for them fail with `ESTALE`. The kernel repeats the lookup and the request, as for a
/// network file system.
#[derive(Debug)]
pub(crate) struct Table {
    known: Mutex<HashMap<u64, Known>>,
    /// Number of open inodes of all top directories.
    open: Arc<AtomicUsize>,
    /// The number at which idle inodes are closed.
    most: usize,
    /// The generation of the next inode.
    next: AtomicU32,
}

#[derive(Debug)]
struct Known {
    /// `None` after it was closed.
    inode: Option<Arc<Inode>>,
    /// The kernel's lookup count.
    lookups: u64,
    /// The directory and name of the last lookup.
    at: (u64, OsString),
    /// An invalidation was sent, but the kernel may have kept the entry because it was in use.
    was_invalidated: bool,
    /// Differs from that of an earlier file with the same number, so that a handle of that file
    /// (`name_to_handle_at`) does not open this one.
    generation: u32,
}

impl Known {
    fn is_open(&self) -> bool {
        self.inode.as_ref().is_some_and(|inode| inode.lock().handles > 0)
    }

    /// Returns whether the inode can be closed without loss. Directories cannot: a process may have
    /// one as its working directory without a lookup.
    fn is_idle(&self) -> bool {
        let idle = |inode: &Arc<Inode>| {
            let state = inode.lock();
            let unused = state.handles == 0 && state.changing == 0 && !state.removed;
            unused && !inode.kind.is_dir() && Arc::strong_count(inode) == 1
        };
        self.inode.as_ref().is_some_and(idle)
    }
}

impl Table {
    /// Creates a table with the root, which stays for the whole mount.
    pub(crate) fn new(root: Arc<Inode>, open: Arc<AtomicUsize>, most: usize) -> Self {
        let (node, at) = (root.node, (ROOT, OsString::new()));
        let known =
            Known { inode: Some(root), lookups: 1, at, was_invalidated: false, generation: 0 };
        let known = HashMap::from([(node, known)]);
        open.fetch_add(1, Ordering::Relaxed);
        // A handle of an earlier mount should not fit, either.
        let next = u32::try_from(RandomState::new().hash_one(node) >> 32).unwrap_or(0);
        Self { known: Mutex::new(known), open, most, next: AtomicU32::new(next) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, node: u64) -> Option<Arc<Inode>> {
        self.lock().get(&node)?.inode.clone()
    }

    /// Counts a lookup of `name` in `parent`. If the inode is not open, `found` creates it.
    pub(crate) fn looked_up(
        &self,
        node: u64,
        (parent, name): (u64, &OsStr),
        found: impl FnOnce() -> Inode,
    ) -> Arc<Inode> {
        let mut table = self.lock();
        let at = || (parent, name.to_owned());
        let new = || Known {
            inode: None,
            lookups: 0,
            at: at(),
            was_invalidated: false,
            generation: self.next.fetch_add(1, Ordering::Relaxed),
        };
        let known = table.entry(node).or_insert_with(new);
        known.lookups += 1;
        if known.at.0 != parent || known.at.1 != name {
            known.at = at();
        }
        if let Some(inode) = &known.inode {
            return Arc::clone(inode);
        }
        let inode = Arc::new(found());
        known.inode = Some(Arc::clone(&inode));
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.close_some(&mut table);
        }
        inode
    }

    /// Returns the generation of an inode that the kernel knows.
    pub(crate) fn generation(&self, node: u64) -> u32 {
        self.lock().get(&node).map_or(0, |known| known.generation)
    }

    /// Closes an eighth of the limit, so that the next call is not soon.
    fn close_some(&self, table: &mut HashMap<u64, Known>) {
        let idle = table.values_mut().filter(|known| known.is_idle());
        for known in idle.take(self.most.div_ceil(8)) {
            known.inode = None;
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Decreases the lookup count.
    pub(crate) fn forget(&self, node: u64, lookups: u64) {
        let mut table = self.lock();
        let Some(known) = table.get_mut(&node) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return;
        }
        let gone = table.remove(&node).and_then(|known| known.inode);
        drop(table);
        self.open.fetch_sub(usize::from(gone.is_some()), Ordering::Relaxed);
        // Closing an unlinked file may free its blocks, so not under the lock.
        drop(gone);
    }

    /// Returns the entry to invalidate so that the kernel forgets an inode.
    pub(crate) fn invalidation(&self, node: u64) -> Option<(u64, OsString)> {
        let mut table = self.lock();
        let known = table.get_mut(&node)?;
        known.was_invalidated = true;
        Some(known.at.clone())
    }

    /// Returns the entry of an inode whose invalidation may have failed.
    pub(crate) fn failed_invalidation(&self, node: u64) -> Option<(u64, OsString)> {
        let table = self.lock();
        let known = table.get(&node)?;
        (known.was_invalidated && !known.is_open()).then(|| known.at.clone())
    }

    /// Removes and returns all inodes, at the end of the mount.
    pub(crate) fn drain(&self) -> Vec<Arc<Inode>> {
        let left: Vec<_> = self.lock().drain().filter_map(|(_, known)| known.inode).collect();
        self.open.fetch_sub(left.len(), Ordering::Relaxed);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn space(size: u64, allocated: u64) -> Space {
        Space { size, allocated }
    }

    #[test]
    fn kernel_numbers_are_unique() {
        let check = |root, inode, expect| {
            assert_eq!(node_id(root, inode), expect);
            assert_eq!(node_id(root, expect), inode, "it is its own inverse");
        };
        check(7, 7, 1);
        check(7, 1, 7);
        check(7, 8, 8);
        check(1, 1, 1);
        check(1, u64::MAX, u64::MAX);
    }

    #[test]
    fn the_growth_by_a_write_is_bounded() {
        // Files with and without a hole at the end.
        let check = |old: (u64, u64), offset, len, expect: u64| {
            let data = old.1;
            let unmapped = |start: u64, end: u64| end.saturating_sub(start.max(data));
            assert_eq!(needed(space(old.0, old.1), offset, len, unmapped), expect);
        };
        check((0, 0), 0, 1, 4096);
        check((0, 0), 4095, 2, 8192);
        check((4096, 4096), 0, 4096, 0);
        check((4096, 4096), 4096, 4096, 4096);
        // After a hole.
        check((0, 0), 1 << 20, 4096, 4096);
        // Into a hole.
        check((1 << 20, 0), 8192, 1, 4096);
        // Into a file with a small hole.
        check((8192, 4096), 0, 8192, 4096);
        // Preallocated blocks after the end are used first.
        check((4096, 65536), 4096, 4096, 0);
        check((4096, 65536), 61440, 8192, 4096);
        check((10, 4096), 5, 0, 0);
    }

    /// Preallocated blocks may hide a hole at the end of the file in the allocated size.
    #[test]
    fn preallocation_does_not_hide_holes() {
        let all = |start: u64, end: u64| end - start;
        assert_eq!(needed(space(1 << 20, 1 << 20), 0, 1 << 20, all), 1 << 20);
    }

    #[test]
    fn holes_of_a_range_are_counted() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        for at in [0, 64 << 10, 256 << 10] {
            file.write_all_at(&[1; 4096], at).unwrap();
        }
        let (fd, mut state) = (OwnedFd::from(file), State::default());
        assert_eq!(state.unmapped(&fd, 0, 4096), 0);
        assert_eq!(state.dense, 4096);
        assert_eq!(state.unmapped(&fd, 64 << 10, 68 << 10), 0);
        assert_eq!(state.unmapped(&fd, 60 << 10, 72 << 10), 8 << 10);
        assert_eq!(state.unmapped(&fd, 0, 1 << 20), (1 << 20) - 3 * 4096);
        // Everything after the end is unallocated.
        assert_eq!(state.unmapped(&fd, 1 << 20, 2 << 20), 1 << 20);
    }
}
