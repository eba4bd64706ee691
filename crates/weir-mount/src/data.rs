//! The data path: take, ask the limits, do, answer.
//!
//! A read that is admitted at once is tried without waiting, on the thread that took it: what
//! is in the backing file system's cache is answered there. A write that is admitted at once
//! goes into that cache there too, as long as another thread goes on reading. Everything else
//! is done on the pool: what waits for the limits, for the medium, or for room.

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
    /// Where a thread puts what it reads; as long as the longest read until now.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What of a write is to be durable before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Nothing: it is durable after a sync.
    Nothing,
    /// The bytes and what it takes to find them.
    Bytes,
    /// The times too.
    All,
}

impl Durable {
    /// What the flags of `open` say, or of a single write. The kernel sends its own numbers.
    pub(crate) fn asked_by(flags: i32) -> Self {
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

/// A write as the kernel sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) offset: u64,
    /// What is to be durable before it is answered.
    pub(crate) durable: Durable,
    /// The set-id bits go with it.
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
            // The bytes are there; that a file keeps its mode is no reason to say otherwise.
            let _ = self.drop_set_id(&open.inode.fd);
        }
        // Before the answer, so that whoever gets it finds the space counted.
        drop(changing);
        match written {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    /// Makes a file durable, or a directory's names.
    pub(crate) fn sync(self: &Arc<Self>, what: Synced, data_only: bool, reply: ReplyEmpty) {
        let file = match &what {
            Synced::File(open) => open.inode.file,
            Synced::Dir(dir) => dir.inode.file,
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

    /// Allocates a range, or makes it read as zeros.
    pub(crate) fn fallocate(
        self: &Arc<Self>,
        handle: u64,
        (offset, len): (u64, u64),
        mode: i32,
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
        let done = move |verdict: Result<(), Errno>| {
            let allocate = |()| rustix::fs::fallocate(&open.fd, mode, offset, len);
            let done = verdict.and_then(allocate);
            drop(changing);
            answer(reply, done);
        };
        if !discards || self.limits.try_admit(&io) {
            self.run(move |_| done(Ok(())));
        } else {
            self.run_admitted(io, 0, move |_, verdict| done(verdict));
        }
    }

    /// Finds the next hole or the next data.
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
            // What the kernel holds and has not sent would look like a hole, and only it knows
            // where the file ends. It could be made to send it; but whoever waits for that in
            // this process keeps it from ending when it is killed. This is what programs hear
            // of file systems that know no holes: they read all of it then.
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

/// As `lseek` has them.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// What is to be made durable.
#[derive(Debug)]
pub(crate) enum Synced {
    File(Arc<Open>),
    Dir(Arc<OpenDir>),
}

impl Synced {
    fn sync(&self, limits: &Arc<dyn Limits>, data_only: bool) -> Result<(), Errno> {
        let (fd, file) = match self {
            Self::File(open) => (&open.fd, Some(&open.inode)),
            Self::Dir(dir) => (&dir.fd, None),
        };
        // Where its bytes are is decided only now, and what it takes to remember that.
        let _changing = file.map(|inode| inode.reserve(limits, fd, Change::None)).transpose()?;
        if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
    }
}

/// Answers a read if all of it is in the backing file system's cache; else gives back what to
/// answer with. A file system that cannot say whether it would wait answers there, too.
fn read_cached(open: &Open, offset: u64, len: u32, reply: ReplyData) -> Option<ReplyData> {
    with_buffer(len, |buffer| {
        let wanted = buffer.len();
        let mut buffers = [IoSliceMut::new(buffer)];
        let flags = ReadWriteFlags::NOWAIT;
        let read = match rustix::io::preadv2(&open.fd, &mut buffers, offset, flags) {
            Ok(read) => read,
            Err(_) => return Some(reply),
        };
        // Less than was asked for is the end of the file, or where the cache has a gap.
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

/// Writes until all is written, or as much as can be.
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
        let check = |flags, expect| assert_eq!(Durable::asked_by(flags), expect);
        check(0o2, Durable::Nothing);
        check(0o40_002, Durable::Nothing);
        check(0o50_002, Durable::Bytes);
        check(0o4_010_001, Durable::All);
    }
}
