//! What the kernel knows: inodes by descriptors that stay right whatever a file is called,
//! and the space that each file takes.
//!
//! An inode is in the table for as long as the kernel counts it as looked up. Its number for
//! the kernel is the backing file's, so it is the same after every restart, and cannot be given
//! to another file while the descriptor is held.

use crate::limits::{Errno, FileId, Limits, Space};
use rustix::fs::{FileType, SeekFrom, Stat};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What space is counted in by most file systems.
const BLOCK: u64 = 4096;
/// The number of the mount's root for the kernel.
const ROOT: u64 = 1;

/// The number by which the kernel knows a backing inode, where `root` is the one of the root:
/// its own, but that the root's is exchanged for the one that the kernel demands.
pub(crate) fn node_id(root: u64, inode: u64) -> u64 {
    match inode {
        _ if inode == root => ROOT,
        ROOT => root,
        inode => inode,
    }
}

/// A file, a directory or anything else that has a name.
pub(crate) struct Inode {
    /// Its number for the kernel.
    pub(crate) node: u64,
    pub(crate) file: FileId,
    pub(crate) kind: FileType,
    /// It itself, without the right to read or write.
    pub(crate) fd: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What it takes, as the limits know it: what it took when a change was last complete,
    /// and what those under way may add.
    space: Space,
    /// How much of that those under way may add.
    pending: u64,
    /// Changes that are not complete.
    changing: u32,
    /// Before this there is no hole.
    dense: u64,
    /// It was written past the kernel's cache, which does not know its time of modification.
    modified_unseen: bool,
    /// Open handles.
    handles: u32,
    /// Those of them through which pages can be dirty in the kernel's cache.
    dirtying: u32,
    /// The limits have been told that it is gone.
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

    /// Whether the kernel may hold what was written and not sent on.
    pub(crate) fn may_be_dirty(&self) -> bool {
        self.lock().dirtying > 0
    }

    /// A handle is opened. Fails if the file is gone.
    pub(crate) fn opened(&self, dirtying: bool) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.removed {
            return Err(Errno::STALE);
        }
        state.handles += 1;
        state.dirtying += u32::from(dirtying);
        Ok(())
    }

    /// A handle is closed; says whether it was the last.
    pub(crate) fn closed(&self, dirtying: bool, limits: &dyn Limits) -> bool {
        let mut state = self.lock();
        state.handles -= 1;
        state.dirtying -= u32::from(dirtying);
        let last = state.handles == 0;
        drop(state);
        self.look_whether_gone(limits);
        last
    }

    /// Tells the limits if the last name and the last handle are gone.
    pub(crate) fn look_whether_gone(&self, limits: &dyn Limits) {
        let unlinked = || rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0);
        let mut state = self.lock();
        if self.kind.is_file() && state.handles == 0 && !state.removed && unlinked() {
            state.removed = true;
            limits.removed(self.file, state.space);
        }
    }

    /// The file was made and at once removed again; nobody has to hear of it.
    pub(crate) fn never_was(&self) {
        self.lock().removed = true;
    }

    /// Asks the limits for what a change needs. It is then under way until what is returned is
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

    /// It is written past the kernel's cache.
    pub(crate) fn modified_unseen(&self) {
        self.lock().modified_unseen = true;
    }

    /// Whether it was, since the kernel knows it.
    pub(crate) fn is_modified_unseen(&self) -> bool {
        self.lock().modified_unseen
    }
}

/// What is about to be done to a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that takes space.
    None,
    /// A hole is made.
    Hole {
        /// Where it begins.
        offset: u64,
    },
    /// It gets another size.
    Cut {
        /// Which.
        size: u64,
    },
    /// A range gets blocks, if it has none.
    Filled {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        len: u64,
        /// It makes the file longer.
        grows: bool,
    },
}

impl State {
    /// How many bytes of a range that lies in the file have no block.
    fn unmapped(&mut self, fd: &OwnedFd, start: u64, end: u64) -> u64 {
        let seek = |to| rustix::fs::seek(fd, to);
        if end <= self.dense {
            return 0;
        }
        // Most files have no hole at all; then this is asked once.
        if let Ok(hole) = seek(SeekFrom::Hole(self.dense)) {
            self.dense = hole;
        }
        let (mut at, mut unmapped) = (start.max(self.dense.min(end)), 0);
        for _ in 0..MOST_HOLES {
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

/// Holes of a range that are counted one by one.
const MOST_HOLES: usize = 32;

impl fmt::Debug for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inode").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A change of a file's bytes that is under way. When it is complete, the limits hear what the
/// file takes in fact.
pub(crate) struct Changing {
    inode: Arc<Inode>,
    limits: Arc<dyn Limits>,
    /// What it may add.
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
            // Another may be about to make it longer.
            now.size = now.size.max(state.space.size);
        }
        if now != state.space {
            self.limits.settled(self.inode.file, state.space, now);
            state.space = now;
        }
    }
}

/// What a file takes.
pub(crate) fn space(stat: &Stat) -> Space {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    Space { size, allocated: blocks.saturating_mul(512) }
}

/// How much a file takes more, at most, when `len` bytes at `offset` have been allocated.
/// `unmapped` counts the bytes of a range of the file that have no block.
fn needed(old: Space, offset: u64, len: u64, unmapped: impl FnOnce(u64, u64) -> u64) -> u64 {
    if len == 0 {
        return 0;
    }
    let up = |at: u64| at.div_ceil(BLOCK).saturating_mul(BLOCK);
    let (start, end) = (offset / BLOCK * BLOCK, up(offset.saturating_add(len)));
    let edge = up(old.size);
    let inside = if start < edge { unmapped(start, end.min(edge)) } else { 0 };
    // What is allocated and has no place in the file is a reserve behind its end.
    let reserved = old.allocated.max(edge);
    inside.saturating_add(end.saturating_sub(start.max(reserved)))
}

/// What the kernel knows, by its numbers.
///
/// It may know more than this process can have open. Then some of what nobody uses is closed,
/// and whoever asks for it by its number hears `ESTALE`: the kernel looks the name up again and
/// repeats what it was asked, as it does for a file system on a network.
#[derive(Debug)]
pub(crate) struct Table {
    known: Mutex<HashMap<u64, Known>>,
    /// What all top directories have open.
    open: Arc<AtomicUsize>,
    /// How much of it there may be before some is closed.
    most: usize,
}

#[derive(Debug)]
struct Known {
    /// `None` once it was closed.
    inode: Option<Arc<Inode>>,
    /// How often it was looked up and not forgotten.
    lookups: u64,
    /// Where it was looked up last: a directory's number and a name.
    at: (u64, OsString),
    /// The kernel has been asked to let go of it and may not have: somebody may have been using
    /// the name just then.
    let_go: bool,
}

impl Known {
    fn is_open(&self) -> bool {
        self.inode.as_ref().is_some_and(|inode| inode.lock().handles > 0)
    }

    /// Whether nothing is lost if it is closed. Directories stay: somebody may be in one, by
    /// no name.
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
    /// Knows the root, from the beginning to the end.
    pub(crate) fn new(root: Arc<Inode>, open: Arc<AtomicUsize>, most: usize) -> Self {
        let (node, at) = (root.node, (ROOT, OsString::new()));
        let known = Known { inode: Some(root), lookups: 1, at, let_go: false };
        let known = HashMap::from([(node, known)]);
        open.fetch_add(1, Ordering::Relaxed);
        Self { known: Mutex::new(known), open, most }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, node: u64) -> Option<Arc<Inode>> {
        self.lock().get(&node)?.inode.clone()
    }

    /// Counts a lookup of `name` in `parent`, which found what `found` makes an inode of if it
    /// is not open.
    pub(crate) fn looked_up(
        &self,
        node: u64,
        (parent, name): (u64, &OsStr),
        found: impl FnOnce() -> Inode,
    ) -> Arc<Inode> {
        let mut table = self.lock();
        let at = || (parent, name.to_owned());
        let new = || Known { inode: None, lookups: 0, at: at(), let_go: false };
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

    /// Closes an eighth of what may be open, so that it is not soon called again.
    fn close_some(&self, table: &mut HashMap<u64, Known>) {
        let idle = table.values_mut().filter(|known| known.is_idle());
        for known in idle.take(self.most.div_ceil(8)) {
            known.inode = None;
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The kernel forgets `lookups` lookups.
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
        // The descriptor of an unlinked file may be what frees its blocks: not under the lock.
        drop(gone);
    }

    /// What name to let go of, so that the kernel forgets an inode.
    pub(crate) fn let_go(&self, node: u64) -> Option<(u64, OsString)> {
        let mut table = self.lock();
        let known = table.get_mut(&node)?;
        known.let_go = true;
        Some(known.at.clone())
    }

    /// The same, if the kernel was asked before and it may not have forgotten.
    pub(crate) fn let_go_again(&self, node: u64) -> Option<(u64, OsString)> {
        let table = self.lock();
        let known = table.get(&node)?;
        (known.let_go && !known.is_open()).then(|| known.at.clone())
    }

    /// All that is left, at the end.
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
    fn numbers_for_the_kernel_never_meet() {
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
    fn what_a_write_takes_at_most() {
        // A file with a hole at its end, or none.
        let check = |old: (u64, u64), offset, len, expect: u64| {
            let data = old.1;
            let unmapped = |start: u64, end: u64| end.saturating_sub(start.max(data));
            assert_eq!(needed(space(old.0, old.1), offset, len, unmapped), expect);
        };
        check((0, 0), 0, 1, 4096);
        check((0, 0), 4095, 2, 8192);
        check((4096, 4096), 0, 4096, 0);
        check((4096, 4096), 4096, 4096, 4096);
        // Behind a hole.
        check((0, 0), 1 << 20, 4096, 4096);
        // Into a hole.
        check((1 << 20, 0), 8192, 1, 4096);
        // Into a file with little of a hole left.
        check((8192, 4096), 0, 8192, 4096);
        // A reserve behind the end is used up first.
        check((4096, 65536), 4096, 4096, 0);
        check((4096, 65536), 61440, 8192, 4096);
        check((10, 4096), 5, 0, 0);
    }

    /// What a file that ends in a hole and has a reserve behind it takes looks like one
    /// without either.
    #[test]
    fn a_reserve_does_not_fill_holes() {
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
        // Behind the end everything is missing.
        assert_eq!(state.unmapped(&fd, 1 << 20, 2 << 20), 1 << 20);
    }
}
