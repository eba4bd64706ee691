//! Volumes as directories: a pass-through file system whose files share the limits of a volume.
//!
//! Each top directory of the mount shows a folder of the local file system, with its names, bytes,
//! attributes and holes. The mount adds the limits of a [`Limits`] implementation: it decides when
//! an I/O may proceed, and whether a file may take more space.
//!
//! ```text
//! program --> page cache --> kernel --> read, ask the limits, execute, reply --> backing folder
//!                              |                     |
//!                              |                     at once, or on the pool when admitted
//!                              a request is an I/O of the disk; hits and buffered writes
//!                              of the page cache are not
//! ```
//!
//! Guarantees:
//!
//! - Each top directory is a separate mount. A volume that is throttled delays neither I/O nor page
//!   cache writes of another.
//! - `fsync`, `fdatasync`, `O_SYNC` and `O_DSYNC` return when the backing file system has made the
//!   data durable. Acknowledged syncs survive a kill of the process. Unsynced writes survive it as
//!   far as the kernel has sent them.
//! - The kernel gathers buffered writes. `close` sends them and waits.
//! - Direct I/O goes to the limits unchanged. From Linux 6.16 on, direct writes to a file run in
//!   parallel; its modification time is then updated when all direct writers have closed it.
//! - A direct write, an `fallocate` or a truncation beyond the capacity fails at once. A buffered
//!   write fails at the next sync or at the close, because the kernel does not ask earlier.
//! - Operations on names and attributes cost no I/O of the volume.
//! - Locks, shared memory, sparse files, `rename` with its flags, extended attributes except ACLs,
//!   and unlinked open files work as on the backing file system. Device files and set-id bits are
//!   kept and have no effect, `O_TMPFILE`, `FICLONE` and modes of `fallocate` other than
//!   `KEEP_SIZE`, `PUNCH_HOLE` and `ZERO_RANGE` are refused, and `copy_file_range` reads and writes.
//!   `docs/SEMANTICS.md` lists all differences.
//!
//! The process that serves a mount must not use it for operations that limits may delay. If it is
//! killed while one of its threads waits for itself, it cannot exit.
//!
//! | module | holds |
//! |---|---|
//! | `limits` | the interface to the model of the volumes |
//! | [`served`] | the limits of a running server |
//! | `mount` | start and end of a mount |
//! | `options` | the options of a mount |
//! | `listing` | the root directory, which lists the top directories |
//! | `kernel` | mounting and unmounting, as root or as another user |
//! | `fs` | dispatch of FUSE requests |
//! | `names` | operations on names and attributes |
//! | `data` | the data path |
//! | `core` | the state shared by all requests to a top directory |
//! | `inode` | the inode table, and the space of each file |
//! | `pool` | threads for operations that may wait, and limits of requests in flight |
//! | `error` | errors of mounting and unmounting |

#![forbid(unsafe_code)]

mod core;
mod data;
mod error;
mod fs;
mod inode;
mod kernel;
mod limits;
mod listing;
mod mount;
mod names;
mod options;
mod pool;
pub mod served;

pub use error::{ErrorKind, MountError};
pub use limits::{Capacity, DirId, Errno, FileId, Go, Io, Limits, Op, Space, Unlimited};
pub use mount::{Mount, Mounted, Top};
pub use options::Options;
