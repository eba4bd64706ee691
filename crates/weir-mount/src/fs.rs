//! The dispatch of FUSE requests: names and attributes to `names`, bytes to `data`. Operations not
//! listed here are done by the kernel (locks, `copy_file_range` by reads and writes) or refused
//! (`O_TMPFILE`).

use crate::core::{Core, kind};
use crate::data::{Durable, SyncTarget, Write, answer, fuse};
use crate::limits::Errno;
use crate::listing::answer_statfs;
use crate::names::{Caller, Change};
use fuser::{
    BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The FUSE file system of a top directory.
#[derive(Debug)]
pub(crate) struct Fs(pub(crate) Arc<Core>);

/// First minor version of the protocol with which the kernel invalidates cached pages after a
/// direct write, not only before it (Linux 6.16).
const CACHE_RIGHT_BESIDE_DIRECT: u32 = 44;

impl Fs {
    fn keeps(&self) -> Duration {
        self.0.options.kept_for
    }

    /// Returns the open flags: cached pages are kept, because only this mount changes the files,
    /// and direct writes may run in parallel.
    fn opened_as(&self, flags: i32) -> FopenFlags {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        if self.0.goes_direct(flags) {
            FopenFlags::FOPEN_KEEP_CACHE | direct
        } else {
            FopenFlags::FOPEN_KEEP_CACHE
        }
    }
}

fn caller(request: &Request) -> Caller {
    Caller { user: request.uid(), group: request.gid() }
}

fn answer_entry(
    core: &Core,
    reply: ReplyEntry,
    kept_for: Duration,
    found: Result<FileAttr, Errno>,
) {
    match found {
        Ok(attributes) => reply.entry(&kept_for, &attributes, generation(core, &attributes)),
        Err(errno) => reply.error(fuse(errno)),
    }
}

/// Returns the generation of an inode that was just looked up.
fn generation(core: &Core, attributes: &FileAttr) -> Generation {
    Generation(u64::from(core.table.generation(attributes.ino.0)))
}

fn answer_attributes(reply: ReplyAttr, kept_for: Duration, found: Result<FileAttr, Errno>) {
    match found {
        Ok(attributes) => reply.attr(&kept_for, &attributes),
        Err(errno) => reply.error(fuse(errno)),
    }
}

fn answer_xattr(reply: ReplyXattr, found: Result<Result<Vec<u8>, usize>, Errno>) {
    match found {
        Ok(Ok(value)) => reply.data(&value),
        Ok(Err(size)) => reply.size(u32::try_from(size).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(fuse(errno)),
    }
}

impl Filesystem for Fs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let options = self.0.options;
        let mut wanted = vec![
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            // Without it, the kernel reads an attribute before each write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ];
        if options.writeback {
            wanted.push(InitFlags::FUSE_WRITEBACK_CACHE);
        }
        for flag in wanted {
            // Older kernels do not need it.
            let _ = config.add_capabilities(flag);
        }
        let abi = config.kernel_abi();
        let parallel = options.direct_in_parallel
            && (abi.0, abi.1) >= (7, CACHE_RIGHT_BESIDE_DIRECT)
            && config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok();
        let _ = self.0.direct_in_parallel.set(parallel);
        let _ = config.set_max_write(options.largest_io);
        let _ = config.set_max_background(options.queue_depth.max(1));
        let _ = config.set_congestion_threshold(options.queue_depth.max(1));
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (name, kept) = (name.to_owned(), self.keeps());
        self.0.run(move |core| answer_entry(core, reply, kept, core.lookup(parent.0, &name)));
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.0.run(move |core| core.table.forget(node.0, lookups));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let kept = self.keeps();
        self.0.run(move |core| answer_attributes(reply, kept, core.getattr(node.0)));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let handle = handle.map(|handle| handle.0);
        let change = Change { mode, user, group, size, accessed, modified, changed, handle };
        let kept = self.keeps();
        self.0.run(move |core| answer_attributes(reply, kept, core.setattr(node.0, &change)));
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        self.0.run(move |core| match core.readlink(node.0) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(fuse(errno)),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let (name, caller, kept) = (name.to_owned(), caller(request), self.keeps());
        self.0.run(move |core| {
            answer_entry(core, reply, kept, core.mknod(caller, (parent.0, &name), mode, device));
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let (name, caller, kept) = (name.to_owned(), caller(request), self.keeps());
        self.0.run(move |core| {
            answer_entry(core, reply, kept, core.mkdir(caller, (parent.0, &name), mode));
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.0.run(move |core| answer(reply, core.unlink(parent.0, &name)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.0.run(move |core| answer(reply, core.rmdir(parent.0, &name)));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target) = (name.to_owned(), target.as_os_str().to_owned());
        let (caller, kept) = (caller(request), self.keeps());
        self.0.run(move |core| {
            answer_entry(core, reply, kept, core.symlink(caller, (parent.0, &name), &target));
        });
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.0.run(move |core| {
            let to = (new_parent.0, &*new_name);
            answer(reply, core.rename((parent.0, &name), to, flags.bits()));
        });
    }

    fn link(
        &self,
        _: &Request,
        node: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let (name, kept) = (new_name.to_owned(), self.keeps());
        self.0.run(move |core| {
            answer_entry(core, reply, kept, core.link(node.0, (new_parent.0, &name)));
        });
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened_as = self.opened_as(flags.0);
        self.0.run(move |core| match core.open(node.0, flags.0) {
            Ok(handle) => reply.opened(FileHandle(handle), opened_as),
            Err(errno) => reply.error(fuse(errno)),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, caller, kept) = (name.to_owned(), caller(request), self.keeps());
        let opened_as = self.opened_as(flags);
        self.0.run(move |core| match core.create(caller, (parent.0, &name), mode, flags) {
            Ok((attributes, handle)) => {
                let handle = FileHandle(handle);
                let generation = generation(core, &attributes);
                reply.created(&kept, &attributes, generation, handle, opened_as);
            }
            Err(errno) => reply.error(fuse(errno)),
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.read(handle.0, offset, size, reply);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // After a write from its cache the kernel sends a sync itself, if one is needed.
        let cached = how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let write = Write {
            offset,
            durable: if cached { Durable::Nothing } else { Durable::from_open_flags(flags.0) },
            drops_set_id: how.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
        };
        self.0.write(handle.0, write, data, reply);
    }

    /// The kernel has sent its dirty pages before, and sends no more flushes after this reply.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.run(move |core| {
            core.release(handle.0);
            reply.ok();
        });
    }

    fn fsync(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        match self.0.files.get(handle.0) {
            Ok(open) => self.0.sync(SyncTarget::File(open), data_only, reply),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.run(move |core| match core.opendir(node.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(errno) => reply.error(fuse(errno)),
        });
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.0.run(move |core| {
            let read = core.dirs.get(handle.0).and_then(|dir| {
                core.readdir(&dir, offset, |listed| {
                    let kind = kind(listed.kind).unwrap_or(fuser::FileType::RegularFile);
                    Ok(reply.add(INodeNo(listed.node), listed.next, kind, listed.name))
                })
            });
            match read {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(fuse(errno)),
            }
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let kept = self.keeps();
        self.0.run(move |core| {
            let mut added = 0_u32;
            let read = core.dirs.get(handle.0).and_then(|dir| {
                core.readdir(&dir, offset, |listed| {
                    let mut attributes = match core.entry_attributes(&dir, listed) {
                        Ok(attributes) => attributes,
                        // It was removed meanwhile, or is on another device.
                        Err(Errno::NOENT | Errno::XDEV) => return Ok(false),
                        // Deliver the entries so far; the next call meets the error again.
                        Err(_) if added > 0 => return Ok(true),
                        Err(errno) => return Err(errno),
                    };
                    let is_dots = listed.name == "." || listed.name == "..";
                    if is_dots {
                        // These are the attributes of the directory. The kernel takes only the number.
                        attributes.ino = INodeNo(listed.node);
                    }
                    let (node, next) = (attributes.ino, listed.next);
                    let generation = generation(core, &attributes);
                    let full = reply.add(node, next, listed.name, &kept, &attributes, generation);
                    if full && !is_dots {
                        core.table.forget(node.0, 1);
                    }
                    added += 1;
                    Ok(full)
                })
            });
            match read {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(fuse(errno)),
            }
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.dirs.remove(handle.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        match self.0.dirs.get(handle.0) {
            Ok(dir) => self.0.sync(SyncTarget::Dir(dir), data_only, reply),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.0.run(move |core| answer_statfs(reply, core.statfs()));
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.0.run(move |core| answer(reply, core.setxattr(node.0, &name, &value, flags)));
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let (name, size) = (name.to_owned(), usize::try_from(size).unwrap_or(usize::MAX));
        self.0.run(move |core| answer_xattr(reply, core.getxattr(node.0, &name, size)));
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.0.run(move |core| answer_xattr(reply, core.listxattr(node.0, size)));
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.0.run(move |core| answer(reply, core.removexattr(node.0, &name)));
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // The kernel says so only for writes. An unprivileged user lacks the capability.
        let drops_set_id = request.uid() != 0;
        self.0.fallocate(handle.0, (offset, length), (mode, drops_set_id), reply);
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.0.lseek(handle.0, offset, whence, reply);
    }
}
