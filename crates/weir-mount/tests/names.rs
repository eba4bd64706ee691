//! Names and attributes through a mount.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, Notes, errno, needs, python};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, RenameFlags, SeekFrom, XattrFlags};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use weir_mount::{Errno, FileId, Options};

#[test]
fn the_root_lists_the_top_directories_and_is_read_only() {
    let Some(bed) = Bed::unlimited() else { return };
    let root = bed.mounted.dir().to_owned();
    let names: BTreeSet<_> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, BTreeSet::from(["a".into(), "b".into()]));
    assert_eq!(errno(File::create(root.join("c"))), Some(Errno::PERM));
    assert_eq!(errno(fs::create_dir(root.join("c"))), Some(Errno::PERM));
    assert_eq!(errno(symlink("a", root.join("c"))), Some(Errno::PERM));
    assert_eq!(errno(fs::remove_dir(root.join("a"))), Some(Errno::BUSY));
    assert_eq!(errno(fs::rename(root.join("a"), root.join("c"))), Some(Errno::BUSY));
    assert_eq!(errno(fs::rename(root.join("a"), bed.b("c"))), Some(Errno::XDEV));
    assert_eq!(
        errno(fs::set_permissions(&root, PermissionsExt::from_mode(0o777))),
        Some(Errno::PERM)
    );
    assert_eq!(errno(fs::metadata(root.join("c"))), Some(Errno::NOENT));
    bed.unmount();
}

#[test]
fn new_files_are_in_the_backing_folder() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::create_dir_all(bed.a("x/y")).unwrap();
    fs::write(bed.a("x/y/file"), b"bytes").unwrap();
    symlink("y/file", bed.a("x/link")).unwrap();
    assert_eq!(fs::read(bed.a("x/link")).unwrap(), b"bytes");
    assert_eq!(fs::read_link(bed.a("x/link")).unwrap().to_str(), Some("y/file"));
    assert_eq!(fs::read(bed.backing("x/y/file")).unwrap(), b"bytes");
    assert_eq!(errno(fs::remove_dir(bed.a("x"))), Some(Errno::NOTEMPTY));
    fs::remove_dir_all(bed.a("x")).unwrap();
    assert!(!bed.backing("x").exists());
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, bed.a("pipe"), FileType::Fifo, mode, 0).unwrap();
    rustix::fs::mknodat(CWD, bed.a("plain"), FileType::RegularFile, mode, 0).unwrap();
    rustix::fs::mknodat(CWD, bed.a("socket"), FileType::Socket, mode, 0).unwrap();
    for (name, kind, number) in
        [("zero", FileType::CharacterDevice, 0x105), ("disk", FileType::BlockDevice, 0x1234_5678)]
    {
        rustix::fs::mknodat(CWD, bed.a(name), kind, mode, number).unwrap();
        for path in [bed.a(name), bed.backing(name)] {
            let made = fs::symlink_metadata(path).unwrap();
            assert_eq!(made.mode(), kind.as_raw_mode() | 0o600, "{name}");
            assert_eq!(made.rdev(), number, "{name}");
        }
        fs::rename(bed.a(name), bed.a("moved")).unwrap();
        fs::remove_file(bed.a("moved")).unwrap();
    }
    assert_eq!(fs::metadata(bed.a("pipe")).unwrap().mode(), 0o010_600);
    bed.unmount();
}

#[test]
fn renames() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("one"), b"1").unwrap();
    fs::write(bed.a("two"), b"2").unwrap();
    let mut two = File::open(bed.a("two")).unwrap();
    let renamed = |from: &str, to: &str, flags| {
        rustix::fs::renameat_with(CWD, bed.a(from), CWD, bed.a(to), flags)
    };
    assert_eq!(renamed("one", "two", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(renamed("one", "two", RenameFlags::EXCHANGE), Ok(()));
    assert_eq!(fs::read(bed.a("one")).unwrap(), b"2");
    assert_eq!(renamed("one", "two", RenameFlags::EXCHANGE), Ok(()));
    assert_eq!(renamed("one", "two", RenameFlags::empty()), Ok(()));
    assert_eq!(fs::read(bed.a("two")).unwrap(), b"1");
    let mut bytes = Vec::new();
    two.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"2", "what was open stays what it was");
    let moved = rustix::fs::renameat(CWD, bed.a("two"), CWD, bed.b("two"));
    assert_eq!(moved, Err(Errno::XDEV));
    assert_eq!(errno(fs::hard_link(bed.a("two"), bed.b("two"))), Some(Errno::XDEV));
    fs::create_dir_all(bed.a("d/e")).unwrap();
    let open = File::create(bed.a("d/e/file")).unwrap();
    fs::rename(bed.a("d"), bed.a("f")).unwrap();
    (&open).write_all(b"under a new name").unwrap();
    assert_eq!(fs::read(bed.a("f/e/file")).unwrap(), b"under a new name");
    drop((open, two));
    bed.unmount();
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let notes = Arc::new(Notes::default());
    let Some(bed) = Bed::new(Arc::clone(&notes) as _, Options::default()) else { return };
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(bed.a("f"));
    let file = file.unwrap();
    file.write_all_at(&[7; 10_000], 0).unwrap();
    fs::remove_file(bed.a("f")).unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    let mut bytes = [0; 10_000];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [7; 10_000]);
    file.set_len(5).unwrap();
    file.sync_all().unwrap();
    assert_eq!(notes.found_and_removed(), (0, 0));
    drop(file);
    fs::write(bed.a("g"), b"g").unwrap();
    fs::hard_link(bed.a("g"), bed.a("h")).unwrap();
    fs::remove_file(bed.a("g")).unwrap();
    fs::write(bed.a("i"), b"i").unwrap();
    fs::rename(bed.a("i"), bed.a("h")).unwrap();
    bed.unmount();
    assert_eq!(notes.found_and_removed(), (0, 2));
    assert_eq!(notes.files().len(), 1, "only the last one is left");
}

#[test]
fn hard_links_share_everything_or_are_refused() {
    let notes = Arc::new(Notes::default());
    let Some(bed) = Bed::new(Arc::clone(&notes) as _, Options::default()) else { return };
    fs::write(bed.a("one"), b"1").unwrap();
    fs::hard_link(bed.a("one"), bed.a("two")).unwrap();
    fs::write(bed.a("two"), b"22").unwrap();
    assert_eq!(fs::read(bed.a("one")).unwrap(), b"22");
    let (one, two) = (fs::metadata(bed.a("one")).unwrap(), fs::metadata(bed.a("two")).unwrap());
    assert_eq!((one.ino(), one.nlink()), (two.ino(), 2));
    notes.allow_one_name();
    assert_eq!(errno(fs::hard_link(bed.a("one"), bed.a("three"))), Some(Errno::PERM));
    bed.unmount();
}

#[test]
fn attributes_and_permissions() {
    let Some(bed) = Bed::unlimited() else { return };
    let file = File::create(bed.a("f")).unwrap();
    fs::set_permissions(bed.a("f"), PermissionsExt::from_mode(0o640)).unwrap();
    let before = UNIX_EPOCH - Duration::from_secs(1000);
    let after = UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    file.set_times(fs::FileTimes::new().set_accessed(before).set_modified(after)).unwrap();
    for path in [bed.a("f"), bed.backing("f")] {
        let stat = fs::metadata(path).unwrap();
        assert_eq!(stat.mode(), 0o100_640);
        assert_eq!((stat.accessed().unwrap(), stat.modified().unwrap()), (before, after));
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(bed.a("f"), Some(1234), Some(4321)).unwrap();
        let stat = fs::metadata(bed.backing("f")).unwrap();
        assert_eq!((stat.uid(), stat.gid()), (1234, 4321));
        as_other_user(&bed);
    }
    drop(file);
    bed.unmount();
}

/// Files created by another user belong to that user, and files of others are protected from it.
fn as_other_user(bed: &Bed) {
    fs::set_permissions(bed.home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(bed.a("theirs")).unwrap();
    std::os::unix::fs::chown(bed.a("theirs"), Some(65534), Some(65534)).unwrap();
    fs::create_dir(bed.a("shared")).unwrap();
    fs::set_permissions(bed.a("shared"), PermissionsExt::from_mode(0o2777)).unwrap();
    let program = "
import os, sys
a, theirs, shared = sys.argv[1:]
os.setgid(65534); os.setuid(65534); os.umask(0o027)
fd = os.open(theirs + '/f', os.O_RDWR | os.O_CREAT, 0o6777)
os.mkdir(theirs + '/d'); os.symlink('x', theirs + '/l'); os.mkdir(shared + '/d')
secret = os.open(theirs + '/read-only', os.O_WRONLY | os.O_CREAT, 0o400)
os.write(secret, b'written through the handle that made it')
for name in ['f', 'd', 'l']:
    stat = os.lstat(theirs + '/' + name)
    assert (stat.st_uid, stat.st_gid) == (65534, 65534), stat
assert os.stat(theirs + '/f').st_mode & 0o777 == 0o750
assert os.stat(shared + '/d').st_mode & 0o2000 and os.stat(shared + '/d').st_gid == 0
assert os.access(theirs + '/f', os.R_OK) and not os.access(a + '/f', os.R_OK)
for path in [a + '/f', a + '/new']:
    try:
        os.open(path, os.O_RDWR | os.O_CREAT)
        raise SystemExit('opened ' + path)
    except PermissionError:
        pass
# The set-id bits go when somebody else writes.
os.chmod(theirs + '/f', 0o6777)
os.write(fd, b'x'); os.close(fd)
assert os.stat(theirs + '/f').st_mode & 0o6000 == 0, oct(os.stat(theirs + '/f').st_mode)
# Also those of files of others, whatever the kernel knows of their mode, and however they change.
changes = {
    'append': (os.O_APPEND, lambda fd: os.write(fd, b'x')),
    'sync': (os.O_SYNC, lambda fd: os.write(fd, b'x')),
    'allocate': (0, lambda fd: os.posix_fallocate(fd, 0, 8192)),
    'cut': (0, lambda fd: os.ftruncate(fd, 1)),
}
for name, (flags, change) in changes.items():
    path = shared + '/' + name
    assert os.stat(path).st_mode & 0o7777 == 0o6777
    fd = os.open(path, os.O_WRONLY | flags)
    change(fd)
    assert os.stat(path).st_mode & 0o7777 == 0o777, (name, oct(os.stat(path).st_mode))
    os.close(fd)
    assert os.stat(path).st_mode & 0o7777 == 0o777, (name, oct(os.stat(path).st_mode))
";
    for name in ["append", "sync", "allocate", "cut"] {
        let path = bed.a(&format!("shared/{name}"));
        fs::write(&path, b"bytes").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o6777)).unwrap();
    }
    python(program, &[&bed.a(""), &bed.a("theirs"), &bed.a("shared")]);
}

#[test]
fn extended_attributes() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("f"), b"").unwrap();
    let path = bed.a("f");
    rustix::fs::setxattr(&path, "user.weir", b"value", XattrFlags::CREATE).unwrap();
    let again = rustix::fs::setxattr(&path, "user.weir", b"other", XattrFlags::CREATE);
    assert_eq!(again, Err(Errno::EXIST));
    let mut value = [0; 64];
    let len = rustix::fs::getxattr(&path, "user.weir", &mut value[..]).unwrap();
    assert_eq!(&value[..len], b"value");
    assert_eq!(rustix::fs::getxattr(&path, "user.weir", &mut value[..2]), Err(Errno::RANGE));
    assert_eq!(rustix::fs::getxattr(&path, "user.none", &mut value[..]), Err(Errno::NODATA));
    let len = rustix::fs::listxattr(&path, &mut value[..]).unwrap();
    assert_eq!(&value[..len], b"user.weir\0");
    // Programs that copy attributes ask for the sizes first.
    assert_eq!(rustix::fs::getxattr_query(&path, "user.weir"), Ok(5));
    assert_eq!(rustix::fs::listxattr_query(&path), Ok(10));
    rustix::fs::removexattr(&path, "user.weir").unwrap();
    assert_eq!(rustix::fs::listxattr(&path, &mut value[..]), Ok(0));
    // An access control list would have no effect.
    let list = "system.posix_acl_access";
    let empty = [2, 0, 0, 0];
    let set = rustix::fs::setxattr(&path, list, &empty, XattrFlags::empty());
    assert_eq!(set, Err(Errno::OPNOTSUPP));
    assert_eq!(rustix::fs::getxattr(&path, list, &mut value[..]), Err(Errno::OPNOTSUPP));
    if rustix::process::geteuid().is_root() {
        capabilities(&path);
    }
    bed.unmount();
}

#[test]
fn a_handle_of_a_removed_file_is_stale() {
    let Some(bed) = Bed::unlimited() else { return };
    if !needs("root for open_by_handle_at", rustix::process::geteuid().is_root()) {
        return;
    }
    let program = "
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
a = sys.argv[1]
mount = os.open(a, os.O_RDONLY)
def handle_of(path):
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136)
    at = ctypes.c_int()
    assert libc.name_to_handle_at(-100, path.encode(), handle, ctypes.byref(at), 0) == 0
    return handle
def read(handle):
    fd = libc.open_by_handle_at(mount, handle, os.O_RDONLY)
    if fd < 0:
        return ctypes.get_errno()
    found = os.read(fd, 100)
    os.close(fd)
    return found
def write(name, text):
    with open(a + name, 'w') as file:
        file.write(text)
write('old', 'old')
old = handle_of(a + 'old')
assert read(old) == b'old'
os.unlink(a + 'old')
assert read(old) == errno.ESTALE
# Some file systems use the number of a removed file for the next one.
for n in range(50):
    write(f'new{n}', 'new')
    assert read(handle_of(a + f'new{n}')) == b'new'
    assert read(old) == errno.ESTALE, read(old)
";
    python(program, &[&bed.a("")]);
    bed.unmount();
}

/// The capabilities of a program can be read as they were set, and go with a write.
fn capabilities(path: &std::path::Path) {
    // Version 2, effective, CAP_NET_RAW.
    let mut given = [0; 20];
    (given[0], given[3], given[5]) = (1, 2, 0x20);
    rustix::fs::setxattr(path, "security.capability", &given, XattrFlags::empty()).unwrap();
    let mut found = [0; 64];
    let len = rustix::fs::getxattr(path, "security.capability", &mut found[..]);
    assert_eq!((len, &found[..20]), (Ok(20), &given[..]));
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"x").unwrap();
    let len = rustix::fs::getxattr(path, "security.capability", &mut found[..]);
    assert_eq!(len, Err(Errno::NODATA));
}

#[test]
fn holes() {
    let Some(bed) = Bed::unlimited() else { return };
    let file = File::create_new(bed.a("f")).unwrap();
    file.write_all_at(&[1; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 65_536, 131_072).unwrap();
    // The kernel may have unsent pages.
    assert_eq!(rustix::fs::seek(&file, SeekFrom::Hole(0)), Err(Errno::INVAL));
    drop(file);
    let sought = File::open(bed.a("f")).unwrap();
    let seek = |to| rustix::fs::seek(&sought, to);
    assert_eq!(seek(SeekFrom::Hole(0)), Ok(65_536));
    assert_eq!(seek(SeekFrom::Data(65_536)), Ok(196_608));
    assert_eq!(seek(SeekFrom::Hole(196_608)), Ok(1 << 20));
    assert_eq!(seek(SeekFrom::Data(1 << 20)), Err(Errno::NXIO));
    let file = File::options().read(true).write(true).open(bed.a("f")).unwrap();
    let mut byte = [9];
    let read = File::open(bed.a("f")).unwrap();
    read.read_exact_at(&mut byte, 70_000).unwrap();
    assert_eq!(byte, [0]);
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 4096).unwrap();
    read.read_exact_at(&mut byte, 0).unwrap();
    assert_eq!(byte, [0]);
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 1 << 20, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 2 << 20);
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 2 << 20, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 2 << 20);
    let collapse = rustix::fs::fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096);
    assert_eq!(collapse, Err(Errno::OPNOTSUPP));
    // Pages in the kernel's cache are not holes.
    file.write_all_at(b"not yet written", 70_000).unwrap();
    assert_eq!(seek(SeekFrom::Data(65_536)), Err(Errno::INVAL));
    drop(file);
    assert_eq!(seek(SeekFrom::Data(65_536)), Ok(69_632));
    drop((sought, read));
    bed.unmount();
}

#[test]
fn ways_to_open() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("f"), b"0123456789").unwrap();
    assert_eq!(errno(File::create_new(bed.a("f"))), Some(Errno::EXIST));
    assert_eq!(fs::metadata(bed.a("f")).unwrap().len(), 10);
    // Writes part of a page through a handle without read access.
    OpenOptions::new().write(true).open(bed.a("f")).unwrap().write_all_at(b"x", 5).unwrap();
    assert_eq!(fs::read(bed.a("f")).unwrap(), b"01234x6789");
    drop(File::create(bed.a("f")).unwrap());
    assert_eq!(fs::metadata(bed.a("f")).unwrap().len(), 0);
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
    let unnamed = rustix::fs::open(bed.a(""), flags, Mode::RUSR);
    assert_eq!(unnamed.err(), Some(Errno::OPNOTSUPP));
    let dir = File::open(bed.a("")).unwrap();
    dir.sync_all().unwrap();
    drop(dir);
    fs::write(bed.a("from"), [5; 300_000]).unwrap();
    fs::copy(bed.a("from"), bed.b("to")).unwrap();
    assert_eq!(fs::read(bed.b("to")).unwrap(), [5; 300_000]);
    assert!(
        rustix::fs::accessat(CWD, bed.a("f"), rustix::fs::Access::EXEC_OK, AtFlags::empty())
            .is_err()
    );
    bed.unmount();
}

/// The numbers of `.` and `..` are those of the directory and of its parent, in every list.
#[test]
fn dots_have_the_numbers_of_their_directories() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::create_dir_all(bed.a("x/y/z")).unwrap();
    let inode = |path: &str| fs::metadata(bed.a(path)).unwrap().ino();
    for (dir, parent) in [("x", ""), ("x/y", "x"), ("x/y/z", "x/y")] {
        // The kernel asks for attributes, too, only in the first of several lists.
        for _ in 0..3 {
            let opened = File::open(bed.a(dir)).unwrap();
            let listed = rustix::fs::Dir::read_from(&opened).unwrap().map(Result::unwrap);
            let dots: BTreeSet<_> = listed
                .filter(|entry| entry.file_name().to_bytes().starts_with(b"."))
                .map(|entry| (entry.file_name().to_owned(), entry.ino()))
                .collect();
            let expect = [(c".".to_owned(), inode(dir)), (c"..".to_owned(), inode(parent))];
            assert_eq!(dots, expect.into(), "{dir}");
        }
    }
    bed.unmount();
}

#[test]
fn a_directory_is_read_while_it_changes() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::create_dir(bed.a("d")).unwrap();
    for number in 0..10_000 {
        fs::write(bed.backing(&format!("d/stays-{number}")), b"").unwrap();
    }
    let dir = bed.a("d");
    let busy = dir.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let changing = std::thread::spawn(move || {
        let mut number = 0;
        while stopped.try_recv().is_err() {
            number += 1;
            let (one, two) =
                (busy.join(format!("goes-{number}")), busy.join(format!("went-{number}")));
            fs::write(&one, b"x").unwrap();
            fs::rename(&one, &two).unwrap();
            fs::remove_file(&two).unwrap();
        }
    });
    for _ in 0..5 {
        let mut seen = BTreeSet::new();
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("stays-") {
                assert!(entry.metadata().unwrap().is_file());
                assert!(seen.insert(name), "an entry comes twice");
            }
        }
        assert_eq!(seen.len(), 10_000);
    }
    stop.send(()).unwrap();
    changing.join().unwrap();
    bed.unmount();
}

#[test]
fn open_files_have_display_paths() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::create_dir(bed.a("d")).unwrap();
    fs::write(bed.a("d/one"), b"").unwrap();
    fs::rename(bed.a("d/one"), bed.a("d/two")).unwrap();
    let inode = fs::metadata(bed.backing("d/two")).unwrap().ino();
    let file = FileId { dir: weir_mount::DirId(0), inode };
    assert_eq!(bed.mounted.path_of(file).unwrap().to_str(), Some("a/d/two"));
    bed.unmount();
}

#[test]
fn modification_times_are_current_after_direct_writers_close() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("f"), [0; 8192]).unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(bed.a("f")).unwrap().set_times(fs::FileTimes::new().set_modified(old)).unwrap();
    let program = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096); page.write(b'x' * 4096)
os.pwritev(fd, [page], 0)
";
    python(program, &[&bed.a("f")]);
    // The release reaches the mount after `close` returns.
    let moved = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        fs::metadata(bed.a("f")).unwrap().modified().unwrap() != old
    });
    assert!(moved);
    bed.unmount();
}

/// A direct write changes the time without the kernel, which must not revert it.
#[test]
fn the_time_of_a_direct_write_stays() {
    let Some(bed) = Bed::unlimited() else { return };
    let program = "
import mmap, os, sys, time
path, backing = sys.argv[1:3]
buffered = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(buffered, b'x' * 4096)
before = time.time()
time.sleep(0.05)
direct = os.open(path, os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
os.pwritev(direct, [page], 4096)
written = os.stat(backing).st_mtime
assert written > before
os.fsync(buffered)
assert os.stat(backing).st_mtime >= written, 'a sync set it back'
reads = os.open(path, os.O_RDONLY)
os.close(direct); os.close(buffered)
assert os.stat(backing).st_mtime >= written, 'a close set it back'
os.close(reads)
for _ in range(500):
    if os.stat(path).st_mtime == os.stat(backing).st_mtime: break
    time.sleep(0.01)
else: raise SystemExit('the kernel still has the old one')
# What a program wishes is done, also of a file that was written so.
os.utime(path, (1, 1))
assert os.stat(backing).st_mtime == 1 and os.stat(path).st_mtime == 1
fd = os.open(path, os.O_RDWR | os.O_DIRECT); os.pwritev(fd, [page], 0)
os.utime(path, (2, 2)); os.fsync(fd); os.close(fd)
assert os.stat(backing).st_mtime == 2, os.stat(backing).st_mtime
";
    python(program, &[&bed.a("f"), &bed.backing("f")]);
    bed.unmount();
}
