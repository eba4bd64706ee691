//! The calls of [`Limits`], and the effect of their results.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, Notes, errno, python, said, spawn_python};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use weir_mount::{DirId, Errno, FileId, Op, Options, Space};

fn bed() -> Option<(Arc<Notes>, Bed)> {
    let notes = Arc::new(Notes::default());
    Some((Arc::clone(&notes), Bed::new(notes, Options::default())?))
}

/// Checks that the limits' accounts match the backing files.
fn check_accounts(notes: &Notes, bed: &Bed) {
    let mut files = notes.files();
    let mut folders = vec![bed.backing("")];
    let mut seen = std::collections::HashSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let stat = entry.as_ref().unwrap().metadata().unwrap();
            if stat.is_dir() {
                folders.push(entry.unwrap().path());
            } else if stat.is_file() && seen.insert(stat.ino()) {
                let file = FileId { dir: DirId(0), inode: stat.ino() };
                let space = Space { size: stat.len(), allocated: stat.blocks() * 512 };
                assert_eq!(files.remove(&file), Some(space), "{:?}", entry.unwrap().path());
            }
        }
    }
    assert_eq!(files.into_iter().next(), None, "a file is counted that is not there");
}

#[test]
fn held_requests_do_not_delay_others() {
    let Some((notes, bed)) = bed() else { return };
    notes.hold(Op::Flush);
    let program = "
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * 4096)
os.fsync(fd)
print('durable')
";
    // More requests than threads of any kind.
    let start = |number: i32| spawn_python(program, &[&bed.a(&format!("held-{number}"))]);
    let mut syncing: Vec<_> = (0..24).map(start).collect();
    notes.wait_for_held(24);
    fs::write(bed.a("other"), b"goes on").unwrap();
    assert_eq!(fs::read(bed.a("other")).unwrap(), b"goes on");
    for child in &mut syncing {
        assert!(child.try_wait().unwrap().is_none(), "a sync is answered that was not admitted");
    }
    notes.release(Ok(()));
    for child in syncing {
        assert_eq!(said(&child.wait_with_output().unwrap()), "durable");
    }
    bed.unmount();
}

#[test]
fn dirty_pages_of_one_volume_do_not_delay_another() {
    let Some((notes, bed)) = bed() else { return };
    notes.hold_in(DirId(0), Op::Write);
    let program = "
import os, signal, sys
signal.alarm(60)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for number in range(int(sys.argv[2])):
    os.write(fd, b'x' * (1 << 20))
os.fsync(fd)
print('durable')
";
    // More than the kernel buffers.
    let held = spawn_python(program, &[&bed.a("held"), "400".as_ref()]);
    notes.wait_for_held(16);
    assert_eq!(python(program, &[&bed.b("free"), "64".as_ref()]), "durable");
    notes.release(Ok(()));
    assert_eq!(said(&held.wait_with_output().unwrap()), "durable");
    bed.unmount();
}

#[test]
fn a_held_read_returns_the_data_at_its_release() {
    let Some((notes, bed)) = bed() else { return };
    fs::write(bed.backing("f"), [b'1'; 8192]).unwrap();
    notes.hold(Op::Read);
    let program = "import sys; print(open(sys.argv[1]).read())";
    let reading = spawn_python(program, &[&bed.a("f")]);
    notes.wait_for_held(1);
    fs::write(bed.backing("f"), [b'2'; 8192]).unwrap();
    notes.release(Ok(()));
    assert_eq!(said(&reading.wait_with_output().unwrap()), "2".repeat(8192));
    notes.refuse(Some(Errno::IO));
    fs::write(bed.backing("g"), [3; 8192]).unwrap();
    assert_eq!(errno(fs::read(bed.a("g"))), Some(Errno::IO));
    notes.refuse(None);
    assert_eq!(fs::read(bed.a("g")).unwrap(), [3; 8192]);
    bed.unmount();
}

#[test]
fn buffered_writes_are_gathered_and_syncs_are_one() {
    let Some((notes, bed)) = bed() else { return };
    let file = File::create(bed.a("f")).unwrap();
    for number in 0..256 {
        file.write_all_at(&[1; 4096], number * 4096).unwrap();
    }
    file.sync_data().unwrap();
    let ios = notes.take();
    let writes: Vec<_> = ios.iter().filter(|io| io.op == Op::Write).collect();
    assert_eq!(writes.iter().map(|io| io.len).sum::<u64>(), 1 << 20);
    assert!(writes.len() < 32, "{} writes", writes.len());
    assert!(writes.iter().all(|io| !io.durable));
    assert_eq!(ios.iter().filter(|io| io.op == Op::Flush).count(), 1);
    let mut bytes = vec![0; 1 << 20];
    File::open(bed.a("f")).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(notes.take(), [], "what the cache has is no I/O");
    drop(file);
    bed.unmount();
}

#[test]
fn direct_writes_are_separate_ios_and_synchronous_ones_durable() {
    let Some((notes, bed)) = bed() else { return };
    let program = "
import mmap, os, sys
flags = os.O_RDWR | os.O_CREAT | os.O_DIRECT
fd = os.open(sys.argv[1], flags)
page = mmap.mmap(-1, 8192); page.write(b'x' * 8192)
for at in range(4):
    os.pwritev(fd, [page], at * 8192)
os.close(fd)
fd = os.open(sys.argv[1], flags | os.O_DSYNC)
os.pwritev(fd, [page], 0)
os.preadv(fd, [page], 8192)
";
    python(program, &[&bed.a("f")]);
    let ios: Vec<_> =
        notes.take().iter().map(|io| (io.op, io.offset, io.len, io.durable)).collect();
    let write = |at| (Op::Write, at, 8192, false);
    let durable = (Op::Write, 0, 8192, true);
    let read = (Op::Read, 8192, 8192, false);
    let all = [write(0), write(8192), write(16_384), write(24_576), durable, read];
    // Older kernels add a sync.
    let ios: Vec<_> = ios.into_iter().filter(|io| io.0 != Op::Flush).collect();
    assert_eq!(ios, all);
    bed.unmount();
}

#[test]
fn buffered_synchronous_writes_are_flushed() {
    let Some((notes, bed)) = bed() else { return };
    let program = "
import os, sys
for flag in [os.O_DSYNC, os.O_SYNC]:
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | flag)
    os.write(fd, b'x' * 4096)
    os.close(fd)
";
    python(program, &[&bed.a("f")]);
    let ops: Vec<_> = notes.take().iter().map(|io| io.op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush, Op::Write, Op::Flush]);
    File::open(bed.a("")).unwrap().sync_all().unwrap();
    assert_eq!(notes.take().iter().map(|io| io.op).collect::<Vec<_>>(), [Op::Flush]);
    bed.unmount();
}

#[test]
fn space_is_counted_as_the_backing_file_system_does() {
    let Some((notes, bed)) = bed() else { return };
    let file = File::create(bed.a("f")).unwrap();
    file.write_all_at(&[1; 100_000], 0).unwrap();
    file.write_all_at(&[1; 10], 10 << 20).unwrap();
    file.sync_all().unwrap();
    check_accounts(&notes, &bed);
    file.set_len(5000).unwrap();
    check_accounts(&notes, &bed);
    file.set_len(1 << 30).unwrap();
    let none = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, none, 0, 1 << 20).unwrap();
    check_accounts(&notes, &bed);
    let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 0, 1 << 19).unwrap();
    check_accounts(&notes, &bed);
    fs::write(bed.a("f"), b"short").unwrap();
    fs::remove_file(bed.a("f")).unwrap();
    drop(file);
    let home = bed.unmount();
    assert_eq!(notes.files().len(), 0);
    // Existing files are registered at the start, each once.
    fs::write(home.path().join("backing/a/g"), [1; 5000]).unwrap();
    fs::hard_link(home.path().join("backing/a/g"), home.path().join("backing/a/h")).unwrap();
    let notes = Arc::new(Notes::default());
    let bed = Bed::again(home, Arc::clone(&notes) as _, Options::default());
    assert_eq!(notes.found_and_removed(), (1, 0));
    check_accounts(&notes, &bed);
    bed.unmount();
}

#[test]
fn writes_beyond_the_capacity_are_refused() {
    let Some((notes, bed)) = bed() else { return };
    notes.set_capacity(1 << 20);
    let file = File::create(bed.a("f")).unwrap();
    let none = rustix::fs::FallocateFlags::empty();
    assert_eq!(rustix::fs::fallocate(&file, none, 0, 2 << 20), Err(Errno::NOSPC));
    rustix::fs::fallocate(&file, none, 0, 1 << 19).unwrap();
    file.write_all_at(&[1; 1 << 19], 0).unwrap();
    file.sync_all().unwrap();
    let has = rustix::fs::statvfs(bed.a("f")).unwrap();
    assert_eq!(has.f_blocks * has.f_frsize, 1 << 20);
    assert_eq!(has.f_bavail * has.f_frsize, 1 << 19);
    assert_eq!((has.f_files, has.f_ffree), (1000, 900));
    let all = rustix::fs::statvfs(bed.mounted.dir()).unwrap();
    assert_eq!(all.f_blocks * all.f_frsize, 2 << 20);
    // Buffered writes fail when the kernel sends them, at the sync or the close.
    let other = File::create(bed.a("g")).unwrap();
    other.write_all_at(&[1; 1 << 20], 0).unwrap();
    assert_eq!(errno(other.sync_all()), Some(Errno::NOSPC));
    drop(other);
    fs::remove_file(bed.a("g")).unwrap();
    // Direct writes fail at once.
    let program = "
import errno, mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
page = mmap.mmap(-1, 1 << 20)
try:
    os.pwritev(fd, [page], 0)
    raise SystemExit('written')
except OSError as error:
    assert error.errno == errno.ENOSPC, error
os.unlink(sys.argv[1])
";
    python(program, &[&bed.a("h")]);
    // Overwriting needs no space.
    file.write_all_at(&[2; 1 << 19], 0).unwrap();
    file.sync_all().unwrap();
    check_accounts(&notes, &bed);
    drop(file);
    fs::remove_file(bed.a("f")).unwrap();
    notes.set_capacity(0);
    assert_eq!(errno(File::create(bed.a("i"))), Some(Errno::NOSPC));
    assert!(!bed.backing("i").exists());
    bed.unmount();
}

#[test]
fn without_writeback_each_write_is_an_io_and_fails_at_once() {
    let notes = Arc::new(Notes::default());
    let options = Options { writeback: false, ..Options::default() };
    let Some(bed) = Bed::new(Arc::clone(&notes) as _, options) else { return };
    let file = File::create(bed.a("f")).unwrap();
    notes.take();
    file.write_all_at(b"one", 0).unwrap();
    file.write_all_at(b"two", 3).unwrap();
    assert_eq!(notes.take().iter().map(|io| io.len).collect::<Vec<_>>(), [3, 3]);
    notes.set_capacity(4096);
    assert_eq!(errno(file.write_all_at(&[1; 8192], 0)), Some(Errno::NOSPC));
    check_accounts(&notes, &bed);
    drop(file);
    bed.unmount();
}
