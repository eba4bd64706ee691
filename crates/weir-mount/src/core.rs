//! What all requests share, and how a request gets from the thread that read it to where it
//! is done: here if nothing holds it back, else on the pool, when it has been admitted.

use crate::inode::{Inode, Table, node_id};
use crate::limits::{DirId, Errno, FileId, Io, Limits, Op};
use crate::mount::Options;
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
    /// The device of its file system: what is on another is not part of it.
    pub(crate) device: u64,
    pub(crate) root: Arc<Inode>,
    /// The folder itself, with the lock on it.
    pub(crate) folder: OwnedFd,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) fd: OwnedFd,
    pub(crate) inode: Arc<Inode>,
    pub(crate) writes: bool,
    /// It is written past the kernel's cache, whose idea of the times does not change then.
    pub(crate) direct: bool,
}

/// A name that the kernel is to let go of, and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LetGo(pub(crate) u64, pub(crate) OsString);

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) fd: OwnedFd,
    pub(crate) inode: Arc<Inode>,
    /// Held while its position is used.
    pub(crate) position: Mutex<()>,
}

/// Everything of a top directory.
pub(crate) struct Core {
    pub(crate) top: TopDir,
    pub(crate) limits: Arc<dyn Limits>,
    pub(crate) options: Options,
    pub(crate) table: Table,
    pub(crate) files: Handles<Open>,
    pub(crate) dirs: Handles<OpenDir>,
    /// `/proc/self/fd`, by which a descriptor becomes another with more rights.
    pub(crate) proc: OwnedFd,
    pub(crate) pool: Arc<Pool>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) readers: Readers,
    /// To tell the kernel to let go of something; there while the session lives.
    pub(crate) notifier: Mutex<Option<Notifier>>,
    /// Whether the kernel keeps its cache right beside direct writes that overtake each other.
    pub(crate) direct_in_parallel: OnceLock<bool>,
    /// To whoever makes the kernel let go of names, which must not be a thread that answers:
    /// the kernel may hold their directory until it has an answer.
    pub(crate) let_go: SyncSender<LetGo>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("top", &self.top).finish_non_exhaustive()
    }
}

impl Core {
    /// What the kernel means by a number.
    pub(crate) fn inode(&self, node: u64) -> Result<Arc<Inode>, Errno> {
        self.table.get(node).ok_or(Errno::STALE)
    }

    /// The number for the kernel of a backing inode.
    pub(crate) fn node(&self, inode: u64) -> u64 {
        node_id(self.top.root.file.inode, inode)
    }

    /// What the limits know a backing inode by.
    pub(crate) fn file(&self, stat: &Stat) -> FileId {
        FileId { dir: self.top.id, inode: stat.st_ino }
    }

    /// The path by which a descriptor is opened anew, relative to [`Self::proc`].
    pub(crate) fn proc_name(fd: &OwnedFd) -> String {
        fd.as_raw_fd().to_string()
    }

    /// The same path, from the root.
    pub(crate) fn proc_path(fd: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    /// Opens what `fd` stands for.
    pub(crate) fn reopen(&self, fd: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.proc, Self::proc_name(fd), flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Whether a file that is opened with `flags` is read and written past the kernel's cache,
    /// by many at once. Otherwise it is the kernel that does what `O_DIRECT` asks for.
    pub(crate) fn goes_direct(&self, flags: i32) -> bool {
        let parallel = self.direct_in_parallel.get().copied().unwrap_or(false);
        parallel && OFlags::from_bits_retain(flags.cast_unsigned()).contains(OFlags::DIRECT)
    }

    /// The path of `name` in `dir`, from the top directory on.
    pub(crate) fn path(&self, dir: &Inode, name: &OsStr) -> PathBuf {
        if dir.node == self.top.root.node {
            return PathBuf::from(name);
        }
        let backing = |fd| std::fs::read_link(Self::proc_path(fd)).unwrap_or_default();
        let (top, dir) = (backing(&self.top.root.fd), backing(&dir.fd));
        dir.strip_prefix(top).unwrap_or(Path::new("")).join(name)
    }

    /// Does what may wait for the backing file system's names: on this thread if another goes
    /// on reading, else on the pool.
    pub(crate) fn run(self: &Arc<Self>, job: impl FnOnce(&Arc<Self>) + Send + 'static) {
        if let Some(_permit) = self.readers.permit() {
            job(self);
        } else {
            self.run_later(false, 0, job);
        }
    }

    /// Does it on the pool. Meanwhile it holds `bytes`.
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

    /// Does it on the pool once `io` has been admitted. Meanwhile it holds `bytes`.
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

    /// What the kernel is told of an inode.
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

/// What kind of thing has a name.
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

/// What is open, by numbers that are not given twice.
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

    /// Whether one of them is as `is` says.
    pub(crate) fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().any(|open| is(open))
    }

    /// All that are left, at the end.
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
