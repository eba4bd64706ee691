//! Operations on names and attributes, which go to the backing file system. They cost no I/O; the
//! limits are told of files that are created, removed or resized.

use crate::core::{Core, Invalidation, Open, OpenDir};
use crate::inode::{self, Inode};
use crate::limits::{Capacity, Errno};
use fuser::{FileAttr, TimeOrNow};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, SeekFrom, StatVfs, Timespec,
    Timestamps, Uid, XattrFlags,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The user of a request, who owns the files that it creates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// The attributes that a request changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
    /// The kernel's time of the attribute change: now, or that of its last write.
    pub(crate) changed: Option<SystemTime>,
    /// The handle of the request, if there is one.
    pub(crate) handle: Option<u64>,
}

/// A directory entry that is being read.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a OsStr,
    pub(crate) node: u64,
    pub(crate) kind: FileType,
    /// Offset of the next entry.
    pub(crate) next: u64,
}

/// The set-user-id and set-group-id bits.
const SET_ID: u32 = 0o6000;

impl Core {
    pub(crate) fn lookup(&self, parent: u64, name: &OsStr) -> Result<FileAttr, Errno> {
        let dir = self.inode(parent)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(&dir.fd, name, flags, Mode::empty());
        Ok(self.known(&dir, name, found?)?.1)
    }

    /// Adds the file of `fd`, which is `name` in `dir`, to the inode table.
    fn known(
        &self,
        dir: &Inode,
        name: &OsStr,
        fd: OwnedFd,
    ) -> Result<(Arc<Inode>, FileAttr), Errno> {
        let stat = rustix::fs::fstat(&fd)?;
        if stat.st_dev != self.top.device {
            return Err(Errno::XDEV);
        }
        let node = self.node(stat.st_ino);
        let attributes = self.attributes(node, &stat)?;
        self.invalidate(self.table.failed_invalidation(node));
        let file = self.file(&stat);
        let new = || Inode::new(node, file, fd, &stat);
        let inode = self.table.looked_up(node, (dir.node, name), new);
        Ok((inode, attributes))
    }

    pub(crate) fn getattr(&self, node: u64) -> Result<FileAttr, Errno> {
        let inode = self.inode(node)?;
        self.attributes(node, &rustix::fs::fstat(&inode.fd)?)
    }

    pub(crate) fn setattr(&self, node: u64, change: &Change) -> Result<FileAttr, Errno> {
        let inode = self.inode(node)?;
        if let Some(size) = change.size {
            self.truncate(&inode, change.handle, size)?;
        }
        if change.user.is_some() || change.group.is_some() {
            let (user, group) = (change.user.map(Uid::from_raw), change.group.map(Gid::from_raw));
            rustix::fs::chownat(&inode.fd, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = change.mode {
            self.chmod(&inode.fd, mode)?;
        }
        let modified = change.modified.filter(|_| !self.is_outdated(&inode, change.changed));
        if change.accessed.is_some() || modified.is_some() {
            let times = Timestamps {
                last_access: stamp(change.accessed),
                last_modification: stamp(modified),
            };
            rustix::fs::utimensat(&inode.fd, "", &times, AtFlags::EMPTY_PATH)?;
        }
        self.attributes(node, &rustix::fs::fstat(&inode.fd)?)
    }

    /// Returns whether the kernel sends a modification time from before the last direct write. A
    /// program's `utimensat` has the current time in `changed`.
    fn is_outdated(&self, inode: &Inode, changed: Option<SystemTime>) -> bool {
        let Some(changed) = changed.filter(|_| inode.is_modified_unseen()) else { return false };
        let stat = rustix::fs::fstat(&inode.fd).and_then(|stat| self.attributes(0, &stat));
        stat.is_ok_and(|own| changed < own.mtime)
    }

    fn truncate(&self, inode: &Arc<Inode>, handle: Option<u64>, size: u64) -> Result<(), Errno> {
        if !inode.kind.is_file() {
            return Err(Errno::INVAL);
        }
        let handle = handle.and_then(|handle| self.files.get(handle).ok());
        let opened = match &handle {
            Some(_) => None,
            None => Some(self.reopen(&inode.fd, OFlags::WRONLY)?),
        };
        let fd = handle.as_ref().map(|handle| &handle.fd).or(opened.as_ref()).ok_or(Errno::BADF)?;
        let _changing = inode.reserve(&self.limits, fd, inode::Change::Cut { size })?;
        rustix::fs::ftruncate(fd, size)?;
        self.drop_set_id(&inode.fd).map(drop)
    }

    /// Removes the set-id bits after a change of a file's bytes, and lets the kernel forget the mode
    /// that it knows.
    pub(crate) fn drop_set_id_of(&self, inode: &Inode) {
        // The change has succeeded; a failure to change the mode does not make it fail.
        if self.drop_set_id(&inode.fd) == Ok(true) {
            self.forget_attributes(inode.node);
        }
    }

    /// Removes the set-id bits. The kernel delegates this, because it would need a request before
    /// each write. Returns whether there were any.
    fn drop_set_id(&self, fd: &OwnedFd) -> Result<bool, Errno> {
        let mode = rustix::fs::fstat(fd)?.st_mode;
        // Without group execute permission, the set-group-id bit has another meaning.
        let drop = if mode & 0o010 == 0 { 0o4000 } else { SET_ID };
        if mode & drop == 0 {
            return Ok(false);
        }
        self.chmod(fd, mode & !drop)?;
        Ok(true)
    }

    fn chmod(&self, fd: &OwnedFd, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::chmodat(&self.proc, Self::proc_name(fd), mode, AtFlags::empty())
    }

    pub(crate) fn readlink(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let inode = self.inode(node)?;
        Ok(rustix::fs::readlinkat(&inode.fd, "", Vec::new())?.into_bytes())
    }

    /// Creates a file and opens it for reading and writing.
    pub(crate) fn create(
        &self,
        caller: Caller,
        (parent, name): (u64, &OsStr),
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, u64), Errno> {
        let dir = self.inode(parent)?;
        match self.make_file(caller, &dir, name, mode) {
            Ok((fd, inode, attributes)) => {
                inode.opened(true)?;
                let open = Open { fd, inode, writes: true, direct: self.goes_direct(flags) };
                Ok((attributes, self.files.insert(open)))
            }
            // The file was created in the backing folder meanwhile.
            Err(Errno::EXIST) if !flag(flags, OFlags::EXCL) => {
                let found = self.lookup(parent, name)?;
                let opened = self.open(found.ino.0, flags).and_then(|handle| {
                    if flag(flags, OFlags::TRUNC) {
                        self.truncate(&self.inode(found.ino.0)?, Some(handle), 0)?;
                    }
                    Ok((self.getattr(found.ino.0)?, handle))
                });
                opened.inspect_err(|_| self.table.forget(found.ino.0, 1))
            }
            Err(errno) => Err(errno),
        }
    }

    fn make_file(
        &self,
        caller: Caller,
        dir: &Inode,
        name: &OsStr,
        mode: u32,
    ) -> Result<(OwnedFd, Arc<Inode>, FileAttr), Errno> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = mode & 0o7777;
        let fd = rustix::fs::openat(&dir.fd, name, flags, Mode::from_raw_mode(mode))?;
        let made = self.reopen(&fd, OFlags::PATH).and_then(|path| {
            self.set_owner(caller, dir, &path, mode)?;
            let (inode, attributes) = self.known(dir, name, path)?;
            self.limits.create(inode.file, &self.path(dir, name)).inspect_err(|_| {
                inode.discard();
                self.table.forget(inode.node, 1);
            })?;
            Ok((inode, attributes))
        });
        match made {
            Ok((inode, attributes)) => Ok((fd, inode, attributes)),
            Err(errno) => {
                // The first error is returned, whether or not the removal succeeds.
                let _ = rustix::fs::unlinkat(&dir.fd, name, AtFlags::empty());
                Err(errno)
            }
        }
    }

    /// Sets owner and group of a new object, as a local file system would.
    fn set_owner(
        &self,
        caller: Caller,
        dir: &Inode,
        made: &OwnedFd,
        mode: u32,
    ) -> Result<(), Errno> {
        let (mut stat, folder) = (rustix::fs::fstat(made)?, rustix::fs::fstat(&dir.fd)?);
        let kind = FileType::from_raw_mode(stat.st_mode);
        // With the set-group-id bit, a directory passes on its group, and to subdirectories also
        // the bit.
        let inherits = folder.st_mode & 0o2000 != 0;
        let group = if inherits { stat.st_gid } else { caller.group };
        if stat.st_uid != caller.user || stat.st_gid != group {
            let (user, group) = (Uid::from_raw(caller.user), Gid::from_raw(group));
            rustix::fs::chownat(made, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
            stat = rustix::fs::fstat(made)?;
        }
        let inherited = if inherits && kind.is_dir() { 0o2000 } else { 0 };
        let mode = mode & 0o7777 | inherited;
        if !kind.is_symlink() && stat.st_mode & 0o7777 != mode {
            self.chmod(made, mode)?;
        }
        Ok(())
    }

    pub(crate) fn mknod(
        &self,
        caller: Caller,
        (parent, name): (u64, &OsStr),
        mode: u32,
        device: u32,
    ) -> Result<FileAttr, Errno> {
        use FileType::{BlockDevice, CharacterDevice, Fifo, Socket};
        let dir = self.inode(parent)?;
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Ok(self.make_file(caller, &dir, name, mode)?.2),
            // The kernel sends devices only for callers that may make them. Their numbers have the
            // same form in both places.
            kind @ (Fifo | Socket | CharacterDevice | BlockDevice) => {
                let raw = Mode::from_raw_mode(mode & 0o7777);
                rustix::fs::mknodat(&dir.fd, name, kind, raw, device.into())?;
                self.finish_creation(caller, &dir, name, mode, AtFlags::empty())
            }
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn mkdir(
        &self,
        caller: Caller,
        (parent, name): (u64, &OsStr),
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        let dir = self.inode(parent)?;
        rustix::fs::mkdirat(&dir.fd, name, Mode::from_raw_mode(mode & 0o7777))?;
        self.finish_creation(caller, &dir, name, mode, AtFlags::REMOVEDIR)
    }

    pub(crate) fn symlink(
        &self,
        caller: Caller,
        (parent, name): (u64, &OsStr),
        target: &OsStr,
    ) -> Result<FileAttr, Errno> {
        let dir = self.inode(parent)?;
        rustix::fs::symlinkat(target, &dir.fd, name)?;
        self.finish_creation(caller, &dir, name, 0o777, AtFlags::empty())
    }

    /// Sets the owner of a new object. On failure it is removed again.
    fn finish_creation(
        &self,
        caller: Caller,
        dir: &Inode,
        name: &OsStr,
        mode: u32,
        remove: AtFlags,
    ) -> Result<FileAttr, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handed = rustix::fs::openat(&dir.fd, name, flags, Mode::empty()).and_then(|path| {
            self.set_owner(caller, dir, &path, mode)?;
            Ok(self.known(dir, name, path)?.1)
        });
        handed.inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&dir.fd, name, remove);
        })
    }

    pub(crate) fn link(&self, node: u64, (parent, name): (u64, &OsStr)) -> Result<FileAttr, Errno> {
        let (inode, dir) = (self.inode(node)?, self.inode(parent)?);
        if inode.kind.is_file() {
            self.limits.link(inode.file)?;
        }
        let path = Self::proc_path(&inode.fd);
        rustix::fs::linkat(&self.proc, path, &dir.fd, name, AtFlags::SYMLINK_FOLLOW)?;
        self.lookup(parent, name)
    }

    pub(crate) fn unlink(&self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        let dir = self.inode(parent)?;
        let victim = self.open_existing(&dir, name);
        rustix::fs::unlinkat(&dir.fd, name, AtFlags::empty())?;
        self.report_if_removed(victim);
        Ok(())
    }

    pub(crate) fn rmdir(&self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.inode(parent)?.fd, name, AtFlags::REMOVEDIR)
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
    ) -> Result<(), Errno> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::INVAL);
        }
        let (from, to) = (self.inode(parent)?, self.inode(new_parent)?);
        let victim = if flags.is_empty() { self.open_existing(&to, new_name) } else { None };
        rustix::fs::renameat_with(&from.fd, name, &to.fd, new_name, flags)?;
        self.report_if_removed(victim);
        Ok(())
    }

    /// Opens the file of a name before an operation that may remove the name.
    fn open_existing(&self, dir: &Inode, name: &OsStr) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&dir.fd, name, flags, Mode::empty()).ok()
    }

    /// Reports the removal to the limits if neither names nor handles are left.
    fn report_if_removed(&self, victim: Option<OwnedFd>) {
        let Some(victim) = victim else { return };
        let Ok(stat) = rustix::fs::fstat(&victim) else { return };
        if !FileType::from_raw_mode(stat.st_mode).is_file() || stat.st_nlink > 0 {
            return;
        }
        let node = self.node(stat.st_ino);
        match self.table.get(node) {
            Some(inode) => inode.report_if_removed(&*self.limits),
            None => {
                let inode = Inode::new(node, self.file(&stat), victim, &stat);
                inode.report_if_removed(&*self.limits);
            }
        }
    }

    pub(crate) fn open(&self, node: u64, flags: i32) -> Result<u64, Errno> {
        let inode = self.inode(node)?;
        if !inode.kind.is_file() {
            return Err(Errno::NXIO);
        }
        let access = flags & 0o3;
        let writes = access != 0;
        let fd = if writes {
            // For a cached partial write the kernel reads the rest of the page, whatever the access
            // mode of the file. Users may lack the permission for that.
            match self.reopen(&inode.fd, OFlags::RDWR) {
                Err(Errno::ACCESS) if access == 1 => self.reopen(&inode.fd, OFlags::WRONLY),
                opened => opened,
            }
        } else {
            self.reopen(&inode.fd, OFlags::RDONLY)
        }?;
        inode.opened(writes)?;
        let direct = self.goes_direct(flags);
        Ok(self.files.insert(Open { fd, inode, writes, direct }))
    }

    pub(crate) fn release(&self, handle: u64) {
        if let Some(open) = self.files.remove(handle) {
            let last = open.inode.closed(open.writes, &*self.limits);
            if last && open.inode.is_modified_unseen() {
                // After a new lookup, the kernel takes over the backing file's times.
                self.invalidate(self.table.invalidation(open.inode.node));
            }
        }
    }

    /// Queues an invalidation; it is dropped if the queue is full.
    fn invalidate(&self, name: Option<(u64, OsString)>) {
        if let Some((dir, name)) = name {
            let _ = self.invalidations.try_send(Invalidation(dir, name));
        }
    }

    pub(crate) fn opendir(&self, node: u64) -> Result<u64, Errno> {
        let inode = self.inode(node)?;
        let fd = self.reopen(&inode.fd, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.dirs.insert(OpenDir { fd, inode, position: Mutex::default() }))
    }

    /// Reads a directory from `offset` on until `add` returns that it is full.
    pub(crate) fn readdir(
        &self,
        dir: &OpenDir,
        offset: u64,
        mut add: impl FnMut(&Listed<'_>) -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        let OpenDir { fd, position, .. } = dir;
        let _position = position.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::fs::seek(fd, SeekFrom::Start(offset))?;
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(fd, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let listed = Listed {
                name,
                node: self.node(entry.ino()),
                kind: entry.file_type(),
                next: entry.next_entry_cookie(),
            };
            if add(&listed)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the attributes of an entry. For entries other than `.` and `..` this counts as a
    /// lookup, which has to be undone if the reply does not contain the entry.
    pub(crate) fn entry_attributes(
        &self,
        dir: &OpenDir,
        listed: &Listed<'_>,
    ) -> Result<FileAttr, Errno> {
        let node = dir.inode.node;
        if listed.name == "." || listed.name == ".." {
            return self.getattr(node);
        }
        self.lookup(node, listed.name)
    }

    pub(crate) fn getxattr(
        &self,
        node: u64,
        name: &OsStr,
        size: usize,
    ) -> Result<Result<Vec<u8>, usize>, Errno> {
        check_attribute(name)?;
        let path = Self::proc_path(&self.inode(node)?.fd);
        if size == 0 {
            return Ok(Err(rustix::fs::getxattr_query(path, name)?));
        }
        let mut value = vec![0; size];
        let len = rustix::fs::getxattr(path, name, &mut value[..])?;
        value.truncate(len);
        Ok(Ok(value))
    }

    pub(crate) fn listxattr(
        &self,
        node: u64,
        size: usize,
    ) -> Result<Result<Vec<u8>, usize>, Errno> {
        let path = Self::proc_path(&self.inode(node)?.fd);
        if size == 0 {
            return Ok(Err(rustix::fs::listxattr_query(path)?));
        }
        let mut names = vec![0; size];
        let len = rustix::fs::listxattr(path, &mut names[..])?;
        names.truncate(len);
        Ok(Ok(names))
    }

    pub(crate) fn setxattr(
        &self,
        node: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<(), Errno> {
        check_attribute(name)?;
        let flags = u32::try_from(flags).ok().and_then(XattrFlags::from_bits);
        let path = Self::proc_path(&self.inode(node)?.fd);
        rustix::fs::setxattr(path, name, value, flags.ok_or(Errno::INVAL)?)
    }

    pub(crate) fn removexattr(&self, node: u64, name: &OsStr) -> Result<(), Errno> {
        check_attribute(name)?;
        rustix::fs::removexattr(Self::proc_path(&self.inode(node)?.fd), name)
    }

    /// Returns the capacity of the top directory.
    pub(crate) fn statfs(&self) -> Result<Capacity, Errno> {
        match self.limits.capacity(self.top.id) {
            Some(capacity) => Ok(capacity),
            None => Ok(capacity(&rustix::fs::fstatvfs(&self.top.folder)?)),
        }
    }
}

/// Refuses access control lists. The kernel checks permissions by modes only, so a list would be
/// stored and change the mode but have no effect.
fn check_attribute(name: &OsStr) -> Result<(), Errno> {
    match name.as_bytes().starts_with(b"system.posix_acl_") {
        true => Err(Errno::OPNOTSUPP),
        false => Ok(()),
    }
}

fn capacity(of: &StatVfs) -> Capacity {
    Capacity {
        total: of.f_blocks.saturating_mul(of.f_frsize),
        free: of.f_bavail.saturating_mul(of.f_frsize),
        files: of.f_files,
        files_free: of.f_favail,
    }
}

/// Returns whether a flag of `open` is set.
pub(crate) fn flag(flags: i32, flag: OFlags) -> bool {
    OFlags::from_bits_retain(flags.cast_unsigned()).contains(flag)
}

fn stamp(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(rustix::fs::UTIME_OMIT),
        Some(TimeOrNow::Now) => special(rustix::fs::UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => exact(time),
    }
}

fn exact(time: SystemTime) -> Timespec {
    let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => {
            Timespec { tv_sec: signed(after.as_secs()), tv_nsec: i64::from(after.subsec_nanos()) }
        }
        Err(before) => {
            let before = before.duration();
            let part = i64::from(before.subsec_nanos() != 0);
            let tv_nsec = part * 1_000_000_000 - i64::from(before.subsec_nanos());
            Timespec { tv_sec: -signed(before.as_secs()) - part, tv_nsec }
        }
    }
}

/// Returns the files in a folder and its subfolders with their space, each once, to register them
/// with the limits.
pub(crate) fn files_in(
    folder: &std::path::Path,
    device: u64,
    mut found: impl FnMut(&std::path::Path, &std::fs::Metadata) -> io::Result<()>,
) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let top = folder;
    let mut folders = vec![folder.to_owned()];
    let mut linked = std::collections::HashSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.dev() != device {
                continue;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() && (metadata.nlink() == 1 || linked.insert(metadata.ino()))
            {
                let path = entry.path();
                found(path.strip_prefix(top).unwrap_or(&path), &metadata)?;
            }
        }
    }
    Ok(())
}
