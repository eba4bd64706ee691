//! The root of a mount: a read-only file system that lists the top directories. These are separate
//! mounts on top of it, so that they share no state in the kernel.

use crate::core::Core;
use crate::data::fuse;
use crate::limits::{Capacity, Errno};
use fuser::{
    BsdFileFlags, FileAttr, FileHandle, FileType, Filesystem, INodeNo, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    Request, TimeOrNow,
};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The list never changes.
const FOR_EVER: Duration = Duration::from_secs(86_400);
/// Inode number of the first top directory. The root has 1.
const FIRST: u64 = 2;

/// The root file system.
#[derive(Debug)]
pub(crate) struct Listing {
    names: Vec<OsString>,
    tops: Vec<Arc<Core>>,
}

impl Listing {
    pub(crate) fn new(tops: &[Arc<Core>]) -> Self {
        Self { names: tops.iter().map(|top| top.top.name.clone()).collect(), tops: tops.to_vec() }
    }

    fn entries(&self) -> impl Iterator<Item = (u64, &OsStr)> {
        (FIRST..).zip(self.names.iter().map(OsString::as_os_str))
    }

    /// Returns the total capacity of all top directories.
    fn capacity(&self) -> Result<Capacity, Errno> {
        let none = Capacity { total: 0, free: 0, files: 0, files_free: 0 };
        self.tops.iter().map(|top| top.statfs()).try_fold(none, |sum, one| {
            let one = one?;
            Ok(Capacity {
                total: sum.total.saturating_add(one.total),
                free: sum.free.saturating_add(one.free),
                files: sum.files.saturating_add(one.files),
                files_free: sum.files_free.saturating_add(one.files_free),
            })
        })
    }
}

/// The root is read-only. The mount points in it belong to the user, as `fusermount3` requires.
fn attributes(node: u64) -> FileAttr {
    let root = node < FIRST;
    FileAttr {
        ino: INodeNo(node),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::Directory,
        perm: if root { 0o555 } else { 0o755 },
        nlink: 2,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Replies to `statfs`.
pub(crate) fn answer_statfs(reply: ReplyStatfs, capacity: Result<Capacity, Errno>) {
    const BLOCK: u32 = 4096;
    match capacity {
        Ok(has) => {
            let (total, free) = (has.total / u64::from(BLOCK), has.free / u64::from(BLOCK));
            reply.statfs(total, free, free, has.files, has.files_free, BLOCK, 255, BLOCK);
        }
        Err(errno) => reply.error(fuse(errno)),
    }
}

impl Filesystem for Listing {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.entries().find(|(_, listed)| *listed == name && parent == INodeNo::ROOT);
        match found {
            Some((node, _)) => reply.entry(&FOR_EVER, &attributes(node), fuser::Generation(0)),
            None => reply.error(fuser::Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &attributes(node.0));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(node.0), fuser::FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let dots = [(1, OsStr::new(".")), (1, OsStr::new(".."))].into_iter();
        let tops = self.entries().filter(|_| node == INodeNo::ROOT);
        for ((node, name), next) in dots.chain(tops).zip(1..) {
            if next > offset && reply.add(INodeNo(node), next, FileType::Directory, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        answer_statfs(reply, self.capacity());
    }

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(fuser::Errno::EPERM);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(fuser::Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(fuser::Errno::EPERM);
    }
}
