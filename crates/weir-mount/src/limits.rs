//! What the file system asks of whoever models the volumes: when bytes may move, and
//! whether files may take the space that they want.

pub use rustix::io::Errno;
use std::path::Path;

/// A top directory, by the number that its [`Top`](crate::Top) was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// A file of a top directory. It keeps its number for as long as it exists, whatever it is
/// called, and over restarts: it is the inode's in the backing folder. Once a file is gone
/// another may get the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The top directory that it is in.
    pub dir: DirId,
    /// Its inode's number in the backing file system.
    pub inode: u64,
}

/// What is done with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// A range is made to read as zeros, and no bytes move.
    Discard,
    /// What was written is made durable; of a directory, its names.
    Flush,
}

/// An I/O, as it would go to a disk: what the kernel's page cache took is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Io {
    /// The file; of a flush also a directory.
    pub file: FileId,
    /// What is done.
    pub op: Op,
    /// Where it begins, in bytes; zero for a flush.
    pub offset: u64,
    /// How long it is, in bytes; zero for a flush.
    pub len: u64,
    /// A write that is answered when it is durable: it is a write and a flush.
    pub durable: bool,
}

/// The space that a file takes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Space {
    /// How long it is.
    pub size: u64,
    /// What the backing file system has allocated for it: less than the size if there are
    /// holes, more if there is a reserve behind its end.
    pub allocated: u64,
}

/// What a top directory holds, as `statfs` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Capacity {
    /// All of it, in bytes.
    pub total: u64,
    /// What is free, in bytes.
    pub free: u64,
    /// How many files it can hold.
    pub files: u64,
    /// How many more it can hold.
    pub files_free: u64,
}

/// Says whether an I/O may go on. Dropped without being called, the I/O fails with `EIO`.
pub type Go = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// What holds I/O back, and who counts space. Called by many threads at once. Nothing here may
/// wait for a medium, for a limit or for whoever uses the mount, and nothing here may use the
/// mount that asks.
pub trait Limits: Send + Sync + 'static {
    /// Whether `io` may be done at once. If so it has been charged, and [`Self::admit`] does
    /// not follow.
    fn try_admit(&self, io: &Io) -> bool {
        let _ = io;
        false
    }

    /// Calls `go` when `io` may be done or must not, on whichever thread, also at once. It
    /// returns soon: the I/O is done elsewhere.
    fn admit(&self, io: Io, go: Go);

    /// A file that is there when the mount begins, and its path in its top directory. All of
    /// them come before the first request.
    ///
    /// # Errors
    ///
    /// Why it cannot be there: nothing is mounted then.
    fn found(&self, file: FileId, path: &Path, space: Space) -> Result<(), String> {
        let _ = (file, path, space);
        Ok(())
    }

    /// An empty file has been made, and has that path in its top directory. If it is refused it
    /// is removed again before anybody sees it, and [`Self::removed`] is not called.
    ///
    /// # Errors
    ///
    /// What the caller gets, as `ENOSPC`.
    fn create(&self, file: FileId, path: &Path) -> Result<(), Errno> {
        let _ = (file, path);
        Ok(())
    }

    /// A file wants to take `new` instead of `old`, of which nothing is less. Called before the
    /// backing file changes: `new` is the most that it can become. [`Self::settled`] follows.
    /// Changes of one file come one after the other, each with the `new` before as its `old`.
    ///
    /// # Errors
    ///
    /// What the caller gets, as `ENOSPC`: nothing changes then.
    fn reserve(&self, file: FileId, old: Space, new: Space) -> Result<(), Errno> {
        let _ = (file, old, new);
        Ok(())
    }

    /// A file takes `new` instead of `old`, more or less. That cannot be refused: the backing
    /// file is as it is.
    fn settled(&self, file: FileId, old: Space, new: Space) {
        let _ = (file, old, new);
    }

    /// The last name and the last open handle of a file are gone; it took `space` until now.
    fn removed(&self, file: FileId, space: Space) {
        let _ = (file, space);
    }

    /// Whether a file may get another name: hard links.
    ///
    /// # Errors
    ///
    /// What the caller gets, as `EPERM` where a file is a volume of its own.
    fn link(&self, file: FileId) -> Result<(), Errno> {
        let _ = file;
        Ok(())
    }

    /// What a top directory holds; `None`: what its backing file system says of itself.
    fn capacity(&self, dir: DirId) -> Option<Capacity> {
        let _ = dir;
        None
    }
}

/// No limits at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Limits for Unlimited {
    fn try_admit(&self, _: &Io) -> bool {
        true
    }

    fn admit(&self, _: Io, go: Go) {
        go(Ok(()));
    }
}
