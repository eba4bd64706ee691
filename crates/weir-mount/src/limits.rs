//! The interface between the file system and the model of its volumes: admission of I/O and
//! accounting of space.

pub use rustix::io::Errno;
use std::path::Path;

/// A top directory, with the number in its [`Top`](crate::Top).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// A file of a top directory. Its id is the backing inode's number, so renames and restarts do not
/// change it. The id of a removed file may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The top directory.
    pub dir: DirId,
    /// Inode number in the backing file system.
    pub inode: u64,
}

/// The operation of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A read.
    Read,
    /// A write.
    Write,
    /// Zeroing of a range without a transfer of bytes.
    Discard,
    /// A sync of a file's data or a directory's names.
    Flush,
}

/// An I/O that goes to a disk. Hits and buffered writes of the kernel's page cache are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Io {
    /// The file; for a flush also a directory.
    pub file: FileId,
    /// The operation.
    pub op: Op,
    /// Offset in bytes; zero for a flush.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub len: u64,
    /// A write that must be durable before its reply, which makes it a write and a flush.
    pub durable: bool,
}

/// The space that a file takes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Space {
    /// Size.
    pub size: u64,
    /// Allocated space in the backing file system: less than the size if there are holes, more if
    /// blocks are preallocated after the end.
    pub allocated: u64,
}

/// Capacity of a top directory, as reported by `statfs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Capacity {
    /// Total space in bytes.
    pub total: u64,
    /// Free space in bytes.
    pub free: u64,
    /// Maximum number of files.
    pub files: u64,
    /// Remaining number of files.
    pub files_free: u64,
}

/// The callback of an admission. If it is dropped without a call, the I/O fails with `EIO`.
pub type Go = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// The model of the volumes. Its methods are called from many threads. They must not wait for a
/// medium, for a limit or for a user of the mount, and must not use the mount.
pub trait Limits: Send + Sync + 'static {
    /// Admits `io` if it may proceed at once. If this returns `true`, the I/O has been charged and
    /// [`Self::admit`] is not called.
    fn try_admit(&self, io: &Io) -> bool {
        let _ = io;
        false
    }

    /// Calls `go` when `io` is admitted or refused, on any thread and possibly at once. Returns
    /// without waiting; the I/O is executed elsewhere.
    fn admit(&self, io: Io, go: Go);

    /// Registers a file that exists at the start of the mount, with its path in the top directory.
    /// All files are registered before the first request.
    ///
    /// # Errors
    ///
    /// The reason why the file is not acceptable. The mount then fails.
    fn register(&self, file: FileId, path: &Path, space: Space) -> Result<(), String> {
        let _ = (file, path, space);
        Ok(())
    }

    /// Registers a new empty file with its path in the top directory. If it is refused, the file is
    /// deleted before it becomes visible, without a call of [`Self::removed`].
    ///
    /// # Errors
    ///
    /// The error for the caller, for example `ENOSPC`.
    fn create(&self, file: FileId, path: &Path) -> Result<(), Errno> {
        let _ = (file, path);
        Ok(())
    }

    /// Reserves space for a change from `old` to at most `new`; neither field decreases. It is
    /// called before the backing file changes, and [`Self::settled`] follows. Changes of a file are
    /// serialised, and each `old` is the `new` of the previous one.
    ///
    /// # Errors
    ///
    /// The error for the caller, for example `ENOSPC`. The file is then unchanged.
    fn reserve(&self, file: FileId, old: Space, new: Space) -> Result<(), Errno> {
        let _ = (file, old, new);
        Ok(())
    }

    /// Reports the actual change from `old` to `new`, which cannot be refused.
    fn settled(&self, file: FileId, old: Space, new: Space) {
        let _ = (file, old, new);
    }

    /// Reports that the last name and handle of a file are gone; `space` becomes free.
    fn removed(&self, file: FileId, space: Space) {
        let _ = (file, space);
    }

    /// Returns whether a file may get a further name (hard link).
    ///
    /// # Errors
    ///
    /// The error for the caller, for example `EPERM` if a file is a volume.
    fn link(&self, file: FileId) -> Result<(), Errno> {
        let _ = file;
        Ok(())
    }

    /// Returns the capacity of a top directory; `None` stands for that of its backing file system.
    fn capacity(&self, dir: DirId) -> Option<Capacity> {
        let _ = dir;
        None
    }
}

/// No limits.
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
