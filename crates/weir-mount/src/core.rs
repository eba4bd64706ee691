//! The state shared by all requests, and the scheduling of a request: on the thread that read it if
//! nothing delays it, otherwise on the pool after its admission.

use crate::inode::{Inode, Table, node_id};
use crate::limits::{DirId, Errno, FileId, Io, Limits, Op};
use crate::options::Options;
use crate::pool::{Flights, Pool, Readers};
use fuser::{FileAttr, FileType, INodeNo, Notifier};
use rustix::fs::{Mode, OFlags, Stat};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A backing folder.
#[derive(Debug)]
pub(crate) struct TopDir {
    pub(crate) name: OsString,
    pub(crate) id: DirId,
    /// Device number of its file system. Files on other devices are not part of the top directory.
    pub(crate) device: u64,
    pub(crate) root: Arc<Inode>,
    /// The folder's descriptor, which holds the lock.
    pub(crate) folder: OwnedFd,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) fd: OwnedFd,
    pub(crate) inode: Arc<Inode>,
    pub(crate) writes: bool,
    /// Opened for I/O past the kernel's page cache, so the kernel does not update its times.
    pub(crate) direct: bool,
}

/// A directory entry that the kernel has to invalidate: the directory and the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalidation(pub(crate) u64, pub(crate) OsString);

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) fd: OwnedFd,
    pub(crate) inode: Arc<Inode>,
    /// Locked while the directory's position is used.
    pub(crate) position: Mutex<()>,
}

/// The state of a top directory.
pub(crate) struct Core {
    pub(crate) top: TopDir,
    pub(crate) limits: Arc<dyn Limits>,
    pub(crate) options: Options,
    pub(crate) table: Table,
    pub(crate) files: Handles<Open>,
    pub(crate) dirs: Handles<OpenDir>,
    /// `/proc/self/fd`, through which a descriptor is reopened with other access rights.
    pub(crate) proc: OwnedFd,
    pub(crate) pool: Arc<Pool>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) readers: Readers,
    /// The channel for invalidations; `None` after the end of the session.
    pub(crate) notifier: Mutex<Option<Notifier>>,
    /// True if the kernel keeps its cache consistent with parallel direct writes.
    pub(crate) direct_in_parallel: OnceLock<bool>,
    /// Queue of the thread that sends invalidations. A thread that answers requests must not send
    /// them: the kernel may hold the directory's lock until it gets an answer.
    pub(crate) invalidations: SyncSender<Invalidation>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("top", &self.top).finish_non_exhaustive()
    }
}

impl Core {
    /// Returns the inode with the kernel's number `node`.
    pub(crate) fn inode(&self, node: u64) -> Result<Arc<Inode>, Errno> {
        self.table.get(node).ok_or(Errno::STALE)
    }

    /// Returns the kernel's number of a backing inode.
    pub(crate) fn node(&self, inode: u64) -> u64 {
        node_id(self.top.root.file.inode, inode)
    }

    /// Returns the id of a backing inode in [`Limits`].
    pub(crate) fn file(&self, stat: &Stat) -> FileId {
        FileId { dir: self.top.id, inode: stat.st_ino }
    }

    /// Returns the path that reopens a descriptor, relative to [`Self::proc`].
    pub(crate) fn proc_name(fd: &OwnedFd) -> String {
        fd.as_raw_fd().to_string()
    }

    /// Returns the absolute path that reopens a descriptor.
    pub(crate) fn proc_path(fd: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    /// Reopens the file of `fd`.
    pub(crate) fn reopen(&self, fd: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.proc, Self::proc_name(fd), flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Returns whether a file opened with `flags` bypasses the page cache and permits parallel I/O.
    /// Otherwise the kernel implements `O_DIRECT`.
    pub(crate) fn goes_direct(&self, flags: i32) -> bool {
        let parallel = self.direct_in_parallel.get().copied().unwrap_or(false);
        parallel && OFlags::from_bits_retain(flags.cast_unsigned()).contains(OFlags::DIRECT)
    }

    /// Returns the path of `name` in `dir`, relative to the top directory.
    pub(crate) fn path(&self, dir: &Inode, name: &OsStr) -> PathBuf {
        if dir.node == self.top.root.node {
            return PathBuf::from(name);
        }
        let backing = |fd| std::fs::read_link(Self::proc_path(fd)).unwrap_or_default();
        let (top, dir) = (backing(&self.top.root.fd), backing(&dir.fd));
        dir.strip_prefix(top).unwrap_or(Path::new("")).join(name)
    }

    /// Runs a job that may wait for names of the backing file system: on this thread if another one
    /// remains to read requests, otherwise on the pool.
    pub(crate) fn run(self: &Arc<Self>, job: impl FnOnce(&Arc<Self>) + Send + 'static) {
        if let Some(_permit) = self.readers.permit() {
            job(self);
        } else {
            self.run_later(false, 0, job);
        }
    }

    /// Runs a job on the pool; until then it accounts for `bytes`.
    pub(crate) fn run_later(
        self: &Arc<Self>,
        sync: bool,
        bytes: usize,
        job: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let (core, ticket) = (Arc::clone(self), self.flights.ticket(bytes));
        let job = Box::new(move || {
            job(&core);
            drop(ticket);
        });
        if sync { self.pool.run_sync(job) } else { self.pool.run(job) }
    }

    /// Runs a job on the pool when `io` is admitted; until then it accounts for `bytes`.
    pub(crate) fn run_admitted(
        self: &Arc<Self>,
        io: Io,
        bytes: usize,
        job: impl FnOnce(&Arc<Self>, Result<(), Errno>) + Send + 'static,
    ) {
        let (core, ticket) = (Arc::clone(self), self.flights.ticket(bytes));
        let sync = io.op == Op::Flush || io.durable;
        let go = move |verdict| {
            let pool = Arc::clone(&core);
            let job = Box::new(move || {
                job(&core, verdict);
                drop(ticket);
            });
            if sync { pool.pool.run_sync(job) } else { pool.pool.run(job) }
        };
        self.limits.admit(io, Box::new(go));
    }

    /// Lets the kernel forget the attributes of an inode. It waits for no lock of the kernel, so a thread
    /// that answers requests may do it.
    pub(crate) fn forget_attributes(&self, node: u64) {
        let notifier = self.notifier.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(notifier) = notifier {
            // An inode that the kernel does not know is no error; a negative offset keeps its pages.
            let _ = notifier.inval_inode(INodeNo(node), -1, 0);
        }
    }

    /// Returns the attributes of an inode for the kernel.
    pub(crate) fn attributes(&self, node: u64, stat: &Stat) -> Result<FileAttr, Errno> {
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(FileAttr {
            ino: INodeNo(node),
            size: unsigned(stat.st_size),
            blocks: unsigned(stat.st_blocks),
            atime: time(stat.st_atime, stat.st_atime_nsec),
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
            crtime: UNIX_EPOCH,
            kind: kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)).ok_or(Errno::IO)?,
            perm: u16::try_from(stat.st_mode & 0o7777).unwrap_or(0),
            nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            uid: stat.st_uid,
            gid: stat.st_gid,
            rdev: u32::try_from(stat.st_rdev).unwrap_or(0),
            blksize: u32::try_from(stat.st_blksize).unwrap_or(4096),
            flags: 0,
        })
    }
}

/// Converts a file type.
pub(crate) fn kind(kind: rustix::fs::FileType) -> Option<FileType> {
    use rustix::fs::FileType as Backing;
    Some(match kind {
        Backing::RegularFile => FileType::RegularFile,
        Backing::Directory => FileType::Directory,
        Backing::Symlink => FileType::Symlink,
        Backing::Fifo => FileType::NamedPipe,
        Backing::Socket => FileType::Socket,
        Backing::CharacterDevice => FileType::CharDevice,
        Backing::BlockDevice => FileType::BlockDevice,
        Backing::Unknown => return None,
    })
}

fn time(seconds: i64, nanos: impl TryInto<u32>) -> SystemTime {
    let nanos = Duration::from_nanos(u64::from(nanos.try_into().unwrap_or(0)));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH - whole + nanos } else { UNIX_EPOCH + whole + nanos }
}

/// Open files or directories by handle. Handles are never reused.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    open: RwLock<HashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { open: RwLock::default(), next: AtomicU64::new(1) }
    }
}

impl<T> Handles<T> {
    pub(crate) fn insert(&self, opened: T) -> u64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(handle, Arc::new(opened));
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>, Errno> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&handle).map(Arc::clone).ok_or(Errno::BADF)
    }

    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether any entry satisfies `is`.
    pub(crate) fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().any(|open| is(open))
    }

    /// Removes and returns all entries, at the end of the mount.
    pub(crate) fn drain(&self) -> Vec<Arc<T>> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.drain().map(|(_, opened)| opened).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970() {
        let check = |seconds, nanos: u32, expect: SystemTime| {
            assert_eq!(time(seconds, nanos), expect);
        };
        check(0, 5, UNIX_EPOCH + Duration::from_nanos(5));
        check(-1, 250_000_000, UNIX_EPOCH - Duration::from_millis(750));
        check(-2, 0, UNIX_EPOCH - Duration::from_secs(2));
    }
}
