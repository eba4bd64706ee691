//! Start and end of mounts: on request, on errors and after a crash.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, LONG, Notes, can_mount, errno, needs, said, spawn_python, tops};
use rustix::fs::{CWD, FileType, Mode, makedev};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use weir_mount::{DirId, Errno, ErrorKind, Mount, MountError, Op, Options, Top, Unlimited};

/// The variable with the folder of the process that mounts for a test.
const HOME: &str = "WEIR_MOUNT_TEST_HOME";

fn try_mount(home: &Path, dir: &Path) -> Result<weir_mount::Mounted, MountError> {
    Mount::new(tops(home), Arc::new(Unlimited), Options::default()).spawn(dir)
}

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for dir in ["mnt", "backing/a", "backing/b"] {
        fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    home
}

/// Not a test: the entry point of a process that mounts until it is unmounted or killed.
#[test]
fn mounts_for_others() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let home = Path::new(&home);
    match try_mount(home, &home.join("mnt")) {
        Ok(mounted) => {
            println!("\nmounted");
            std::io::stdout().flush().unwrap();
            mounted.wait().unwrap();
        }
        Err(error) => println!("\nrefused {:?}: {error}", error.kind()),
    }
}

/// Starts the mounting process with `start` and returns its first message.
fn mounting(home: &Path, mut start: Command) -> (Mounting, String) {
    start.args(["--exact", "mounts_for_others", "--nocapture"]).env(HOME, home);
    let mut child = start.stdout(Stdio::piped()).current_dir("/").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told = |line: &String| line.starts_with("mounted") || line.starts_with("refused");
    let said = lines.find(|line| told(line)).unwrap_or_default();
    // The rest of its output is discarded.
    std::thread::spawn(move || lines.for_each(drop));
    (Mounting(child), said)
}

/// The mounting process, which is killed at the end of the test.
struct Mounting(Child);

impl Mounting {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Mounting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn synced_data_survives_a_kill_and_a_remount() {
    if !can_mount() {
        return;
    }
    let home = home();
    let dir = home.path().join("mnt");
    let itself = Command::new(std::env::current_exe().unwrap());
    let (mut child, said) = mounting(home.path(), itself);
    assert_eq!(said, "mounted");
    let file = File::create(dir.join("a/f")).unwrap();
    file.write_all_at(&[7; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    child.kill();
    assert_eq!(errno(fs::metadata(&dir)), Some(Errno::NOTCONN), "a dead mount is left");
    assert_eq!(fs::read(home.path().join("backing/a/f")).unwrap(), [7; 1 << 20]);
    let mounted = try_mount(home.path(), &dir).unwrap();
    assert_eq!(fs::read(dir.join("a/f")).unwrap(), [7; 1 << 20]);
    assert!(file.sync_all().is_err(), "what was open then is lost");
    drop(file);
    mounted.unmount(LONG).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn more_files_are_known_than_can_be_open() {
    if !can_mount() {
        return;
    }
    let home = home();
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 400 && exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let (mut child, said) = mounting(home.path(), few);
    assert_eq!(said, "mounted");
    let path = |number| home.path().join(format!("mnt/a/f{number}"));
    let open = File::create(path(0)).unwrap();
    for number in 1..3000 {
        fs::write(path(number), b"x").unwrap();
    }
    for number in 1..3000 {
        assert_eq!(fs::metadata(path(number)).unwrap().len(), 1);
    }
    for number in (1..3000).step_by(7) {
        fs::set_permissions(path(number), PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(fs::read(path(number)).unwrap(), b"x");
        fs::rename(path(number), path(number + 10_000)).unwrap();
        fs::remove_file(path(number + 10_000)).unwrap();
    }
    open.write_all_at(b"still open", 0).unwrap();
    drop(open);
    assert_eq!(fs::read(path(0)).unwrap(), b"still open");
    let left = 3000 - (1..3000).step_by(7).count();
    assert_eq!(fs::read_dir(home.path().join("mnt/a")).unwrap().count(), left);
    common::said(&Command::new("umount").arg("-R").arg(home.path().join("mnt")).output().unwrap());
    assert!(child.wait().success());
}

#[test]
fn unmounting_waits_for_requests_in_flight() {
    let notes = Arc::new(Notes::default());
    let Some(bed) = Bed::new(Arc::clone(&notes) as _, Options::default()) else { return };
    notes.hold(Op::Flush);
    let program = "
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b'bytes')
os.fsync(fd)
os.pwrite(fd, b'more.', 5)
os.fsync(fd)
print('done')
";
    let child = spawn_python(program, &[&bed.a("f")]);
    notes.wait_for_held(1);
    let mounted = &bed.mounted;
    let impatient = mounted.unmount(Duration::ZERO);
    assert_eq!(impatient.map_err(|error| error.kind()), Err(ErrorKind::InUse));
    // The name is gone, but the open file remains usable.
    assert_eq!(fs::read_dir(mounted.dir()).unwrap().count(), 0);
    let ended = std::thread::scope(|scope| {
        let unmounting = scope.spawn(|| mounted.unmount(LONG));
        notes.release(Ok(()));
        unmounting.join().unwrap()
    });
    ended.unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()), "done");
    assert_eq!(fs::read(bed.backing("f")).unwrap(), b"bytesmore.");
    assert!(mounted.has_ended());
    mounted.unmount(LONG).unwrap();
}

#[test]
fn umount_by_another_process_ends_the_mount() {
    let Some(bed) = Bed::unlimited() else { return };
    fs::write(bed.a("f"), b"bytes").unwrap();
    said(&Command::new("umount").arg("-R").arg(bed.mounted.dir()).output().unwrap());
    bed.mounted.wait().unwrap();
    assert_eq!(fs::read(bed.backing("f")).unwrap(), b"bytes");
}

#[test]
fn impossible_mounts_are_refused() {
    if !can_mount() {
        return;
    }
    let home = home();
    let path = |name: &str| home.path().join(name);
    let refused = |dir: &str| {
        let error = try_mount(home.path(), &path(dir)).map(drop).unwrap_err();
        (error.kind(), error.hint().is_some())
    };
    assert_eq!(refused("nowhere"), (ErrorKind::NoDirectory, true));
    fs::write(path("file"), b"").unwrap();
    assert_eq!(refused("file"), (ErrorKind::NoDirectory, true));
    fs::create_dir_all(path("full/of")).unwrap();
    assert_eq!(refused("full"), (ErrorKind::NotEmpty, true));
    fs::create_dir_all(path("backing/a/inside")).unwrap();
    assert_eq!(refused("backing/a/inside"), (ErrorKind::Nested, true));
    fs::remove_dir(path("backing/a/inside")).unwrap();
    let mounted = try_mount(home.path(), &path("mnt")).unwrap();
    assert_eq!(refused("mnt"), (ErrorKind::Mounted, true));
    fs::create_dir(path("other")).unwrap();
    assert_eq!(refused("other"), (ErrorKind::BackingInUse, true));
    mounted.unmount(LONG).unwrap();
    let named = |names: &[&str]| {
        let top = |(number, name): (u32, &&str)| {
            let backing = home.path().join("backing").join(["a", "b"][number as usize]);
            Top { name: (*name).into(), backing, id: DirId(number) }
        };
        let tops = (0..).zip(names).map(top).collect();
        let mount = Mount::new(tops, Arc::new(Unlimited), Options::default());
        mount.spawn(&path("mnt")).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(named(&["a", "a"]), Err(ErrorKind::Name));
    assert_eq!(named(&["a/b"]), Err(ErrorKind::Name));
    assert_eq!(named(&[".."]), Err(ErrorKind::Name));
    fs::remove_dir(path("backing/b")).unwrap();
    assert_eq!(refused("mnt"), (ErrorKind::Backing, false));
}

#[test]
fn a_top_directory_can_be_the_root() {
    if !can_mount() {
        return;
    }
    let home = home();
    let dir = home.path().join("mnt");
    let top = tops(home.path()).remove(0);
    let mount = Mount::single(top, Arc::new(Unlimited), Options::default());
    let mounted = mount.spawn(&dir).unwrap();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("d/f"), b"bytes").unwrap();
    fs::rename(dir.join("d/f"), dir.join("f")).unwrap();
    assert_eq!(fs::read(home.path().join("backing/a/f")).unwrap(), b"bytes");
    let names: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2);
    fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
    mounted.unmount(LONG).unwrap();
}

/// A mount namespace with a `/dev/fuse` that users can open, which not every container permits. It
/// exists as long as its first process.
struct Userland {
    first: Child,
}

impl Userland {
    fn new(home: &Path) -> Self {
        let device = home.join("fuse");
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o666));
        rustix::fs::mknodat(CWD, &device, kind, mode, makedev(10, 229)).unwrap();
        fs::set_permissions(&device, PermissionsExt::from_mode(0o666)).unwrap();
        let mut first = Command::new("unshare");
        first.args(["--mount", "--propagation", "slave", "sh", "-c"]);
        first.arg("mount --bind \"$0\" /dev/fuse && echo ready && exec cat").arg(&device);
        let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        first.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        Self { first }
    }

    /// Returns a command that runs as the user `nobody` in the namespace.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.first.id().to_string(), "--"]);
        command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        command.arg(program);
        command
    }
}

impl Drop for Userland {
    fn drop(&mut self) {
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

#[test]
fn a_user_mounts_through_the_helper() {
    let root = rustix::process::geteuid().is_root();
    let helper = Command::new("fusermount3").arg("-V").output().is_ok();
    if !can_mount() || !needs("root, to become a user, and fusermount3", root && helper) {
        return;
    }
    let home = home();
    fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for dir in ["mnt", "backing/a", "backing/b"] {
        std::os::unix::fs::chown(home.path().join(dir), Some(65534), Some(65534)).unwrap();
    }
    let program = home.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let land = Userland::new(home.path());
    let mut without = land.command("env");
    without.arg("PATH=/nowhere").arg(&program);
    let (mut child, told) = mounting(home.path(), without);
    assert!(told.starts_with("refused NoHelper"), "{told}");
    child.wait();
    let (mut child, told) = mounting(home.path(), land.command(&program));
    assert_eq!(told, "mounted");
    let use_it = "
cd \"$0\" && umask 027 && dd if=/dev/zero of=f bs=64k count=4 conv=fsync status=none &&
test \"$(stat -c %u,%a,%s f)\" = 65534,640,262144 && ln f g && mv f h && rm g h && sync .
";
    let mut shell = land.command("sh");
    said(&shell.arg("-c").arg(use_it).arg(home.path().join("mnt/a")).output().unwrap());
    // The same after a crash.
    child.kill();
    let (mut child, told) = mounting(home.path(), land.command(&program));
    assert_eq!(told, "mounted");
    for name in ["mnt/b", "mnt/a"] {
        let mut unmount = land.command("fusermount3");
        said(&unmount.arg("-u").arg(home.path().join(name)).output().unwrap());
    }
    assert!(child.wait().success());
    assert_eq!(fs::read_dir(home.path().join("mnt")).unwrap().count(), 0);
}
