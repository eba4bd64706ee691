//! The options of a mount.

use std::time::Duration;

/// The options of a mount, for all its top directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Other users may use the mount, within the files' modes. Without root, this requires
    /// `user_allow_other` in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// The kernel buffers writes in its page cache, as for a file system on a disk. Otherwise each
    /// write is an I/O.
    pub writeback: bool,
    /// Direct writes to a file run in parallel, as for a file system on a disk. This requires Linux
    /// 6.16; with older kernels, synchronous direct writes are serialised. Direct writes then
    /// change the modification time only when all direct writers have closed the file.
    pub direct_in_parallel: bool,
    /// Maximum I/O size in bytes, between 4 KiB and 1 MiB.
    pub largest_io: u32,
    /// Maximum number of background I/Os (page cache, asynchronous I/O) in flight in the kernel,
    /// for each top directory.
    pub queue_depth: u16,
    /// Number of threads that read requests, for each top directory; at least two.
    pub readers: usize,
    /// Number of pool threads for all top directories; at least two. Up to half of them run syncs.
    pub workers: usize,
    /// Time for which the kernel caches names and attributes. It matters only if a backing folder
    /// is changed directly.
    pub kept_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_other: rustix::process::geteuid().is_root(),
            writeback: true,
            direct_in_parallel: true,
            largest_io: 1 << 20,
            queue_depth: 512,
            readers: 4,
            workers: 16,
            kept_for: Duration::from_secs(60),
        }
    }
}
