//! Loss of power below a mount: what reaches the backing folder, and what is there afterwards.

use super::{Rig, can_mount, must, shell, traced};
use crate::common::Place;
use crate::stack::{Loop, can_loop};
use crate::tools::{self, needs};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nunlimited = true\n";
/// The smallest disk that mkfs.xfs takes is 300 MiB.
const SIZE: u64 = 320 << 20;
const ROUNDS: u8 = 3;

fn python(program: &str, args: &[&Path]) -> Command {
    let mut python = Command::new("python3");
    python.arg("-c").arg(program).args(args);
    python
}

/// Each sync of a folder is one of the backing folder, after the renames that it covers. `syncfs` ends in
/// the kernel.
#[test]
fn a_sync_of_a_folder_is_a_sync_of_the_backing_folder() {
    needs!("strace", "python3");
    let Some(mut rig) = Rig::new(LAYOUT, &[]) else { return };
    let program = "
import ctypes, os, sys
dir = sys.argv[1]
os.mkdir(dir)
fd = os.open(dir, os.O_RDONLY)
os.close(os.open(dir + '/new', os.O_WRONLY | os.O_CREAT))
os.rename(dir + '/new', dir + '/name')
os.fsync(fd)
os.unlink(dir + '/name')
os.fdatasync(fd)
assert ctypes.CDLL(None).syncfs(fd) == 0
";
    let calls = "renameat2,unlinkat,fsync,fdatasync,sync,syncfs";
    let trace = traced(&rig, calls, python(program, &[&rig.path("v/d")]));
    let of = |call: &str| {
        let at = trace.lines().position(|line| line.contains(call) && line.contains("/files/v/d"));
        at.unwrap_or_else(|| panic!("{call}: {trace}"))
    };
    let order = ["renameat2(", " fsync(", "unlinkat(", "fdatasync("].map(of);
    assert!(order.is_sorted(), "{trace}");
    assert!(!trace.contains("syncfs("), "{trace}");
    rig.stop();
}

/// A disk whose file system can be stopped as by a loss of power.
struct Disk {
    device: Loop,
    dir: PathBuf,
}

impl Disk {
    fn mount(&self) {
        must(shell("mount \"$0\" \"$1\"", &[self.device.path(), &self.dir]));
    }

    /// Stops the file system: nothing that is not on the disk yet reaches it, not even the journal.
    fn lose_power(&self) {
        let program = "
import fcntl, os, struct, sys
XFS_IOC_GOINGDOWN, NOLOGFLUSH = 0x8004587D, 2
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), XFS_IOC_GOINGDOWN, struct.pack('I', NOLOGFLUSH))
";
        must(python(program, &[&self.dir]));
    }

    fn unmount(&self) {
        must(shell("umount \"$0\"", &[&self.dir]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A failed test leaves it mounted; the device follows.
        let _ = shell("umount -l \"$0\"", &[&self.dir]).output();
    }
}

/// Changes files, and syncs some of them.
const CHANGE: &str = "
import os, sys
top, n = sys.argv[1], int(sys.argv[2])
old, new = bytes([n]), bytes([n + 100])
def sync(path):
    fd = os.open(path, os.O_RDONLY); os.fsync(fd); os.close(fd)
def write(path, data, flags=0):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags)
    os.write(fd, data)
    return fd
d = f'{top}/{n}'
os.mkdir(d)
fd = write(d + '/synced', new * 300000); os.fsync(fd); os.close(fd)
os.close(write(d + '/durable', new * 5000, os.O_DSYNC))
fd = write(d + '/mixed', old * 1000000); os.fsync(fd); os.close(fd)
fd = write(d + '/cut', old * 100000); os.fsync(fd); os.ftruncate(fd, 5000); os.fsync(fd); os.close(fd)
os.close(write(d + '/gone', old))
os.close(write(d + '/replaced', old * 9000))
sync(d); sync(top)
# Replaces a file as programs do.
fd = write(d + '/tmp', new * 9000); os.fsync(fd); os.close(fd)
os.rename(d + '/tmp', d + '/replaced')
os.unlink(d + '/gone')
os.mkdir(d + '/sub')
sync(d)
# Nothing of this is synced.
os.close(write(d + '/mixed', new * 500000))
os.rename(d + '/synced', d + '/renamed')
os.close(write(d + '/late', new * 100))
";

/// Checks the files of round `n` after a loss of power.
fn check_round(top: &Path, n: u8) {
    let (old, new) = (n, n + 100);
    let dir = top.join(n.to_string());
    let file =
        |name: &str| fs::read(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let all =
        |name: &str, byte: u8, len: usize| assert!(file(name) == vec![byte; len], "{name} {n}");
    // A rename that no sync covers has happened or not.
    let name = if dir.join("synced").exists() { "synced" } else { "renamed" };
    all(name, new, 300_000);
    all("durable", new, 5000);
    all("cut", old, 5000);
    all("replaced", new, 9000);
    assert!(dir.join("sub").is_dir() && !dir.join("tmp").exists() && !dir.join("gone").exists());
    // Each block of an overwrite that no sync covers has the old bytes or the new ones.
    let mixed = file("mixed");
    assert_eq!(mixed.len(), 1_000_000);
    for (at, byte) in mixed.iter().enumerate() {
        let is_right = match at {
            ..500_000 => *byte == mixed[at - at % 4096] && [old, new].contains(byte),
            _ => *byte == old,
        };
        assert!(is_right, "byte {at} of {n}");
    }
}

fn check(make: &str) {
    let place = Place::new();
    if !can_mount() || !can_loop(&place) {
        return;
    }
    File::create(place.path("image")).and_then(|file| file.set_len(SIZE)).expect("a file");
    for name in ["data", "mnt"] {
        fs::create_dir(place.path(name)).expect("a folder");
    }
    let device = Loop::over(&place.path("image"));
    must(shell(make, &[device.path()]));
    let disk = Disk { device, dir: place.path("data") };
    disk.mount();
    let mut rig = Rig { server: None, place };
    for n in 1..=ROUNDS {
        rig.mount(LAYOUT, &[]);
        must(python(CHANGE, &[&rig.path("v"), Path::new(&n.to_string())]));
        disk.lose_power();
        rig.kill();
        must(shell("umount -lR \"$0\"", &[&rig.place.path("mnt")]));
        disk.unmount();
        disk.mount();
        (1..=n).for_each(|n| check_round(&rig.place.path("data/files/v"), n));
    }
    rig.mount(LAYOUT, &[]);
    (1..=ROUNDS).for_each(|n| check_round(&rig.path("v"), n));
    rig.stop();
    disk.unmount();
}

#[test]
fn synced_files_and_folders_on_ext4_survive_a_loss_of_power() {
    needs!("losetup", "mkfs.ext4", "python3");
    check("mkfs.ext4 -q \"$0\"");
}

#[test]
fn synced_files_and_folders_on_xfs_survive_a_loss_of_power() {
    needs!("losetup", "mkfs.xfs", "python3");
    check("mkfs.xfs -q \"$0\"");
}
