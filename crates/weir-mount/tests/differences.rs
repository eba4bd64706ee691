//! The differences between a mount and the folder behind it, one by one (`docs/SEMANTICS.md`).

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, errno, needs, python, said};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_mount::Errno;

fn root() -> bool {
    needs("root", rustix::process::geteuid().is_root())
}

/// Clones, attributes of `chattr`, whiteouts and files without a name are refused. `copy_file_range` copies
/// bytes.
#[test]
fn clones_flags_and_unnamed_files_are_refused() {
    let Some(bed) = Bed::unlimited() else { return };
    let program = "
import errno, fcntl, os, struct, sys
a = sys.argv[1]
FICLONE, FS_IOC_GETFLAGS = 0x40049409, 0x80086601
def refused(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'done'
source = os.open(a + 'source', os.O_RDWR | os.O_CREAT)
os.write(source, b'bytes' * 1000)
copy = os.open(a + 'copy', os.O_RDWR | os.O_CREAT)
print(refused(lambda: fcntl.ioctl(copy, FICLONE, source)))
print(refused(lambda: fcntl.ioctl(copy, FS_IOC_GETFLAGS, struct.pack('l', 0))))
print(refused(lambda: os.open(a, os.O_TMPFILE | os.O_RDWR)))
assert os.copy_file_range(source, copy, 5000, 0, 0) == 5000
assert os.pread(copy, 5000, 0) == b'bytes' * 1000
";
    assert_eq!(python(program, &[&bed.a("")]), "ENOTSUP\nENOTTY\nENOTSUP");
    let whiteout = |from: &str, to: &str| {
        rustix::fs::renameat_with(CWD, bed.a(from), CWD, bed.a(to), RenameFlags::WHITEOUT)
    };
    assert_eq!(whiteout("source", "moved"), Err(Errno::INVAL));
    bed.unmount();
}

/// A mount is `nodev` and `nosuid`: device nodes and set-id programs are kept, and have no effect.
#[test]
fn devices_and_set_id_programs_have_no_effect() {
    let Some(bed) = Bed::unlimited() else { return };
    if !root() {
        return;
    }
    let mode = Mode::from_raw_mode(0o666);
    let null = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(CWD, bed.a("null"), FileType::CharacterDevice, mode, null).unwrap();
    assert_eq!(errno(File::open(bed.a("null"))), Some(Errno::ACCESS));
    fs::copy("/usr/bin/id", bed.a("id")).unwrap();
    fs::set_permissions(bed.a("id"), PermissionsExt::from_mode(0o4755)).unwrap();
    assert_eq!(fs::metadata(bed.backing("id")).unwrap().mode() & 0o7777, 0o4755);
    fs::set_permissions(bed.home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = "
import os, sys
os.setgid(65534); os.setuid(65534)
os.execv(sys.argv[1], ['id', '-u'])
";
    assert_eq!(python(program, &[&bed.a("id")]), "65534");
    bed.unmount();
}

/// The kernel keeps what it has read and the locks that it gave: changes and locks that come to the folder
/// directly may be unseen until the next mount.
#[test]
fn what_happens_in_the_folder_directly_is_not_seen_at_once() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("f"), b"before").unwrap();
    assert_eq!(fs::read(bed.a("f")).unwrap(), b"before");
    File::options().write(true).open(bed.backing("f")).unwrap().write_all_at(b"behind", 0).unwrap();
    assert_eq!(fs::read(bed.a("f")).unwrap(), b"before");
    let program = "
import fcntl, sys
mounted, behind = [open(path, 'r+') for path in sys.argv[1:3]]
fcntl.flock(mounted, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(behind, fcntl.LOCK_EX | fcntl.LOCK_NB)
";
    python(program, &[&bed.a("f"), &bed.backing("f")]);
    let home = bed.unmount();
    let bed = Bed::again(home, std::sync::Arc::new(weir_mount::Unlimited), Default::default());
    assert_eq!(fs::read(bed.a("f")).unwrap(), b"behind");
    bed.unmount();
}

/// Another file system below the backing folder; unmounted at the end.
struct Other(PathBuf);

impl Other {
    fn mount(at: PathBuf) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "none"]).arg(&at);
        said(&mount.output().unwrap());
        Self(at)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn other_file_systems_in_the_folder_are_not_entered() {
    let Some(bed) = Bed::unlimited() else { return };
    if !root() {
        return;
    }
    fs::create_dir(bed.backing("other")).unwrap();
    let other = Other::mount(bed.backing("other"));
    fs::write(bed.backing("other/f"), b"elsewhere").unwrap();
    assert_eq!(errno(fs::metadata(bed.a("other"))), Some(Errno::XDEV));
    drop(other);
    bed.unmount();
}

/// The mount is a device of its own. Inode numbers, sizes, links and times are those of the folder, but for
/// the time of the last change: the kernel has its own until it asks again.
#[test]
fn attributes_are_those_of_the_folder_except_for_the_device() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::create_dir(bed.a("d")).unwrap();
    fs::write(bed.a("d/f"), [1; 10_000]).unwrap();
    fs::hard_link(bed.a("d/f"), bed.a("d/g")).unwrap();
    rustix::fs::mknodat(CWD, bed.a("d/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let known = |path: &Path| {
        let stat = fs::symlink_metadata(path).unwrap();
        let times = [stat.atime_nsec(), stat.mtime_nsec()];
        (stat.ino(), stat.mode(), stat.len(), stat.nlink(), stat.uid(), stat.gid(), times)
    };
    // The kernel has sent what it knew of the times when the file is synced.
    File::open(bed.a("d/f")).unwrap().sync_all().unwrap();
    for name in ["d", "d/f", "d/g", "d/pipe"] {
        assert_eq!(known(&bed.a(name)), known(&bed.backing(name)), "{name}");
        let device = |path: PathBuf| fs::symlink_metadata(path).unwrap().dev();
        assert_ne!(device(bed.a(name)), device(bed.backing(name)), "{name}");
    }
    assert_ne!(fs::metadata(bed.a("")).unwrap().dev(), fs::metadata(bed.b("")).unwrap().dev());
    bed.unmount();
}
