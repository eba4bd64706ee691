//! The data path: receive, ask the limits, execute, reply.
//!
//! An admitted read is first tried without blocking on the thread that received it, which completes
//! hits in the backing file system's cache. An admitted write goes into that cache on the same
//! thread, as long as another thread remains to read requests. Everything else runs on the pool:
//! operations that wait for limits, for the medium or for budget.

use crate::core::{Core, Open, OpenDir};
use crate::inode::{Change, Changing};
use crate::limits::{Errno, Io, Limits, Op};
use fuser::{ReplyData, ReplyEmpty, ReplyLseek, ReplyWrite};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::ReadWriteFlags;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;

thread_local! {
    /// A buffer per thread, as large as the longest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The durability that a write has to reach before the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// None, until a sync.
    Nothing,
    /// Data and the metadata needed to read it.
    Bytes,
    /// Data and all metadata, including times.
    All,
}

impl Durable {
    /// Reads the flags of `open` or of a single write, which have the kernel's values.
    pub(crate) fn from_open_flags(flags: i32) -> Self {
        const O_DSYNC: i32 = 0o10_000;
        const O_SYNC: i32 = 0o4_010_000;
        match (flags & O_DSYNC, flags & O_SYNC) {
            (0, _) => Self::Nothing,
            (_, O_SYNC) => Self::All,
            _ => Self::Bytes,
        }
    }

    fn flags(self) -> ReadWriteFlags {
        match self {
            Self::Nothing => ReadWriteFlags::empty(),
            Self::Bytes => ReadWriteFlags::DSYNC,
            Self::All => ReadWriteFlags::SYNC,
        }
    }
}

/// A write request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) offset: u64,
    pub(crate) durable: Durable,
    /// True if set-id bits have to be removed.
    pub(crate) drops_set_id: bool,
}

pub(crate) fn fuse(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

pub(crate) fn answer(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(fuse(errno)),
    }
}

impl Core {
    pub(crate) fn read(self: &Arc<Self>, handle: u64, offset: u64, len: u32, reply: ReplyData) {
        let open = match self.files.get(handle) {
            Ok(open) => open,
            Err(errno) => return reply.error(fuse(errno)),
        };
        let file = open.inode.file;
        let io = Io { file, op: Op::Read, offset, len: u64::from(len), durable: false };
        if self.limits.try_admit(&io) {
            if let Some(reply) = read_cached(&open, offset, len, reply) {
                self.run_later(false, 0, move |_| read_now(&open, offset, len, reply));
            }
        } else {
            self.run_admitted(io, 0, move |_, verdict| match verdict {
                Ok(()) => read_now(&open, offset, len, reply),
                Err(errno) => reply.error(fuse(errno)),
            });
        }
    }

    pub(crate) fn write(
        self: &Arc<Self>,
        handle: u64,
        write: Write,
        data: &[u8],
        reply: ReplyWrite,
    ) {
        let (offset, durable) = (write.offset, write.durable != Durable::Nothing);
        let len = data.len() as u64;
        let reserved = self.files.get(handle).and_then(|open| {
            let change = Change::Filled { offset, len, grows: true };
            Ok((open.inode.reserve(&self.limits, &open.fd, change)?, open))
        });
        let (changing, open) = match reserved {
            Ok(reserved) => reserved,
            Err(errno) => return reply.error(fuse(errno)),
        };
        let io = Io { file: open.inode.file, op: Op::Write, offset, len, durable };
        let admitted = self.limits.try_admit(&io);
        if admitted
            && !durable
            && let Some(_permit) = self.readers.permit()
        {
            return self.write_now(&open, changing, write, data, reply);
        }
        let data = data.to_vec();
        let bytes = data.len();
        let later = move |core: &Arc<Self>, verdict: Result<(), Errno>| match verdict {
            Ok(()) => core.write_now(&open, changing, write, &data, reply),
            Err(errno) => {
                drop(changing);
                reply.error(fuse(errno));
            }
        };
        if admitted {
            self.run_later(durable, bytes, move |core| later(core, Ok(())));
        } else {
            self.run_admitted(io, bytes, later);
        }
    }

    fn write_now(
        &self,
        open: &Open,
        changing: Changing,
        write: Write,
        data: &[u8],
        reply: ReplyWrite,
    ) {
        if open.direct {
            open.inode.modified_unseen();
        }
        let written = write_all(&open.fd, write, data);
        if write.drops_set_id {
            self.drop_set_id_of(&open.inode);
        }
        // Settled before the reply, so that the program that receives it finds the space counted.
        drop(changing);
        match written {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    /// Syncs a file or the names of a directory.
    pub(crate) fn sync(self: &Arc<Self>, what: SyncTarget, data_only: bool, reply: ReplyEmpty) {
        let file = match &what {
            SyncTarget::File(open) => open.inode.file,
            SyncTarget::Dir(dir) => dir.inode.file,
        };
        let io = Io { file, op: Op::Flush, offset: 0, len: 0, durable: false };
        let done = move |core: &Arc<Self>, verdict: Result<(), Errno>| {
            answer(reply, verdict.and_then(|()| what.sync(&core.limits, data_only)));
        };
        if self.limits.try_admit(&io) {
            self.run_later(true, 0, move |core| done(core, Ok(())));
        } else {
            self.run_admitted(io, 0, done);
        }
    }

    /// Allocates a range, or zeroes it.
    pub(crate) fn fallocate(
        self: &Arc<Self>,
        handle: u64,
        (offset, len): (u64, u64),
        (mode, drops_set_id): (i32, bool),
        reply: ReplyEmpty,
    ) {
        const KNOWN: FallocateFlags = FallocateFlags::KEEP_SIZE
            .union(FallocateFlags::PUNCH_HOLE)
            .union(FallocateFlags::ZERO_RANGE);
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        if !KNOWN.contains(mode) {
            return reply.error(fuser::Errno::EOPNOTSUPP);
        }
        let zeros = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        let discards = mode.intersects(zeros);
        let grows = !mode.contains(FallocateFlags::KEEP_SIZE);
        let reserved = self.files.get(handle).and_then(|open| {
            let change = match mode.contains(FallocateFlags::PUNCH_HOLE) {
                true => Change::Hole { offset },
                false => Change::Filled { offset, len, grows },
            };
            Ok((open.inode.reserve(&self.limits, &open.fd, change)?, open))
        });
        let (changing, open) = match reserved {
            Ok(reserved) => reserved,
            Err(errno) => return reply.error(fuse(errno)),
        };
        let io = Io { file: open.inode.file, op: Op::Discard, offset, len, durable: false };
        let done = move |core: &Arc<Self>, verdict: Result<(), Errno>| {
            let allocate = |()| rustix::fs::fallocate(&open.fd, mode, offset, len);
            let done = verdict.and_then(allocate);
            if done.is_ok() && drops_set_id {
                core.drop_set_id_of(&open.inode);
            }
            drop(changing);
            answer(reply, done);
        };
        if !discards || self.limits.try_admit(&io) {
            self.run(move |core| done(core, Ok(())));
        } else {
            self.run_admitted(io, 0, done);
        }
    }

    /// Finds the next hole or data.
    pub(crate) fn lseek(
        self: &Arc<Self>,
        handle: u64,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = self.files.get(handle).and_then(|open| {
            let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
            match whence {
                SEEK_DATA => Ok((open, SeekFrom::Data(offset))),
                SEEK_HOLE => Ok((open, SeekFrom::Hole(offset))),
                _ => Err(Errno::INVAL),
            }
        });
        let (open, to) = match sought {
            Ok(sought) => sought,
            Err(errno) => return reply.error(fuse(errno)),
        };
        if open.inode.may_be_dirty() {
            // The kernel's unsent pages would look like holes, and only the kernel knows the file's
            // end. Forcing it to send them would wait within this process, which could then not
            // exit when it is killed. EINVAL tells programs that the file system does not support
            // holes; they then read the whole file.
            return reply.error(fuser::Errno::EINVAL);
        }
        self.run(move |_| {
            let found = rustix::fs::seek(&open.fd, to);
            match found.and_then(|at| i64::try_from(at).map_err(|_| Errno::OVERFLOW)) {
                Ok(at) => reply.offset(at),
                Err(errno) => reply.error(fuse(errno)),
            }
        });
    }
}

/// The values of `lseek`.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The object of a sync.
#[derive(Debug)]
pub(crate) enum SyncTarget {
    File(Arc<Open>),
    Dir(Arc<OpenDir>),
}

impl SyncTarget {
    fn sync(&self, limits: &Arc<dyn Limits>, data_only: bool) -> Result<(), Errno> {
        let (fd, file) = match self {
            Self::File(open) => (&open.fd, Some(&open.inode)),
            Self::Dir(dir) => (&dir.fd, None),
        };
        // Delayed allocation takes effect at the sync, and changes the space of the file.
        let _changing = file.map(|inode| inode.reserve(limits, fd, Change::None)).transpose()?;
        if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
    }
}

/// Replies to a read if all of it is in the backing file system's cache; otherwise returns the
/// reply. A file system without `RWF_NOWAIT` support answers here as well.
fn read_cached(open: &Open, offset: u64, len: u32, reply: ReplyData) -> Option<ReplyData> {
    with_buffer(len, |buffer| {
        let wanted = buffer.len();
        let mut buffers = [IoSliceMut::new(buffer)];
        let flags = ReadWriteFlags::NOWAIT;
        let read = match rustix::io::preadv2(&open.fd, &mut buffers, offset, flags) {
            Ok(read) => read,
            Err(_) => return Some(reply),
        };
        // A short read means the end of the file or a gap in the cache.
        if read < wanted && offset + (read as u64) < open.inode.size() {
            return Some(reply);
        }
        reply.data(&buffer[..read]);
        None
    })
}

fn read_now(open: &Open, offset: u64, len: u32, reply: ReplyData) {
    with_buffer(len, |buffer| match read_all(&open.fd, buffer, offset) {
        Ok(read) => reply.data(&buffer[..read]),
        Err(errno) => reply.error(fuse(errno)),
    });
}

fn with_buffer<T>(len: u32, work: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        work(&mut buffer[..len])
    })
}

/// Reads until the buffer is full or the file ends.
fn read_all(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut read = 0;
    while read < buffer.len() {
        let rest = &mut buffer[read..];
        let more =
            rustix::io::retry_on_intr(|| rustix::io::pread(&fd, &mut *rest, offset + read as u64))?;
        if more == 0 {
            break;
        }
        read += more;
    }
    Ok(read)
}

/// Writes all of `data`, or as much as possible.
fn write_all(fd: impl AsFd, write: Write, data: &[u8]) -> Result<u32, Errno> {
    let flags = write.durable.flags();
    let mut written = 0;
    while written < data.len() {
        let (rest, at) = ([IoSlice::new(&data[written..])], write.offset + written as u64);
        match rustix::io::pwritev2(&fd, &rest, at, flags) {
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(errno) if written == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    u32::try_from(written).map_err(|_| Errno::OVERFLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_durable_writes() {
        let check = |flags, expect| assert_eq!(Durable::from_open_flags(flags), expect);
        check(0o2, Durable::Nothing);
        check(0o40_002, Durable::Nothing);
        check(0o50_002, Durable::Bytes);
        check(0o4_010_001, Durable::All);
    }
}
