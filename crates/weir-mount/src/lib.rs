//! Volumes as directories: a file system whose files share the limits of a volume.
//!
//! Names, bytes, attributes and holes are those of a folder on the local file system, one for
//! each top directory of the mount. The mount adds limits, in what implements [`Limits`]: when
//! an I/O may be done, and whether a file may take more space.
//!
//! ```text
//! program --> page cache --> kernel --> read, ask the limits, do, answer --> backing folder
//!                              |                  |
//!                              |                  at once, or on the pool when admitted
//!                              a request is an I/O of the disk: what the cache answers or
//!                              gathers is none
//! ```
//!
//! What who uses a mount may rely on:
//!
//! - Each top directory is a mount of its own, so nothing that one volume holds back holds back
//!   another: neither I/O nor what is written to the page cache.
//! - `fsync`, `fdatasync`, `O_SYNC` and `O_DSYNC` answer when the backing file system has made
//!   it durable. What was answered then survives that the process is killed; what was written
//!   and not synced survives it as far as the kernel had sent it here.
//! - Buffered writes are gathered by the kernel. `close` sends what it holds and waits for it.
//! - Direct I/O goes to the limits as it is. Many direct writes to a file go side by side from
//!   Linux 6.16 on; then its time of modification stays until all direct writers have closed it.
//! - A write that would take more than there is, is refused at once if it is direct, as an
//!   `fallocate` or a truncation is; a buffered one at the next sync or at the close, since
//!   nobody has asked before.
//! - Names and attributes cost no I/O of the volume.
//! - Locks, shared memory, sparse files, `rename` with its flags, extended attributes but for
//!   ACLs, and files without a name work as on the backing file system. Devices cannot be made,
//!   set-id bits have no effect, `O_TMPFILE`, `FICLONE` and other modes of `fallocate` than
//!   `KEEP_SIZE`, `PUNCH_HOLE` and `ZERO_RANGE` are refused, and `copy_file_range` reads and
//!   writes.
//!
//! A process that serves a mount does not use it for what may be held: if it is killed while
//! one of its threads waits for itself, it cannot end.
//!
//! | file | what |
//! |---|---|
//! | `limits` | what the file system asks of the model |
//! | [`served`] | the limits of a running server |
//! | `mount` | a mount from its beginning to its end |
//! | `listing` | the root, which lists the top directories |
//! | `kernel` | mounting and unmounting, as root or as a user |
//! | `fs` | what the kernel asks, and who answers |
//! | `names` | names and attributes |
//! | `data` | the data path |
//! | `core` | what all requests to a top directory share |
//! | `inode` | what the kernel knows, and the space of each file |
//! | `pool` | threads for what may wait, and how much of it there may be |
//! | `error` | what can keep a mount from coming about |

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
mod pool;
pub mod served;

pub use error::{ErrorKind, MountError};
pub use limits::{Capacity, DirId, Errno, FileId, Go, Io, Limits, Op, Space, Unlimited};
pub use mount::{Mount, Mounted, Options, Top};
