//! How a mount begins and ends, and what it does not begin with.

use super::{Rig, UNMOUNTING, can_mount, mounts_at, must, shell, wait_until};
use crate::common::{Place, run};
use rustix::process::{Signal, geteuid};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ExitStatus, Stdio};

const VOLUME: &str = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nunlimited = true\n";

/// Mounts `layout` in a folder with the empty directory `mnt` and `full/of`.
fn check(layout: &str, dir: &str, args: &[&str], expect: (&str, i32)) {
    let place = Place::new();
    fs::create_dir(place.path("mnt")).expect("a folder");
    fs::create_dir_all(place.path("full/of")).expect("a folder");
    place.file("layout.toml", layout);
    let mount = ["mount", "layout.toml", dir, "--data", "data"];
    let (stdout, stderr, code) = run(place.weir(&[&mount, args].concat()));
    assert_eq!((stderr.as_str(), code), (expect.0, Some(expect.1)));
    assert_eq!(stdout, "");
    assert_eq!(mounts_at(place.dir()), [""; 0]);
    let left = fs::read_dir(place.dir()).expect("a folder");
    let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["full", "layout.toml", "mnt"], "something is left behind");
    assert_eq!(fs::read_dir(place.path("mnt")).expect("a folder").count(), 0);
}

#[test]
fn a_failed_mount_leaves_nothing_behind() {
    if !can_mount() {
        return;
    }
    check(
        VOLUME,
        "nowhere",
        &[],
        (
            "weir: cannot mount at nowhere: No such file or directory (os error 2); name a directory \
             that exists: mkdir it first\n",
            2,
        ),
    );
    if geteuid().is_root() {
        check(
            VOLUME,
            "layout.toml",
            &[],
            (
                "weir: cannot mount at layout.toml: Not a directory (os error 20); name a directory \
                 that exists: mkdir it first\n",
                2,
            ),
        );
        check(
            VOLUME,
            "full",
            &[],
            (
                "weir: cannot mount at full: it is not empty: it contains \"of\"; choose an empty \
                 directory\n",
                2,
            ),
        );
    }
    check(
        VOLUME,
        "mnt",
        &["--database", "sales"],
        ("weir: --database sales: the layout has 0 managed instances; it needs one\n", 2),
    );
    check(
        "[host]\nunlimited = true\n[blob]\n",
        "mnt",
        &[],
        (
            "weir: there is nothing to mount: the layout has no volume, stripe or file, and no \
             --database is given\n",
            2,
        ),
    );
}

#[test]
fn one_mount_at_a_directory_and_one_for_a_data_folder() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    let again = |dir: &str, data: &str| {
        let mount = ["mount", "layout.toml", dir, "--data", data, "--control", "other.sock"];
        let (stdout, stderr, code) = run(rig.place.weir(&mount));
        assert_eq!(stdout, "");
        (stderr, code)
    };
    let expect =
        "weir: mnt is mounted already; choose another directory, or unmount it: umount DIR\n";
    if geteuid().is_root() {
        assert_eq!(again("mnt", "data2"), (expect.to_owned(), Some(2)));
        assert!(!rig.place.path("data2").exists());
    }
    fs::create_dir(rig.place.path("mnt2")).expect("a folder");
    let process = rig.server().id();
    let expect = format!(
        "weir: data directory data is in use by process {process} (weir mount at mnt); stop that \
         process or choose another data directory\n"
    );
    assert_eq!(again("mnt2", "data"), (expect, Some(3)));
    assert!(!rig.place.path("other.sock").exists());
    assert_eq!(fs::read_dir(rig.place.path("mnt2")).expect("a folder").count(), 0);
    fs::write(rig.path("v/f"), "still there").expect("a file");
    rig.stop();
}

#[test]
fn an_unmount_from_outside_ends_the_process() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    fs::write(rig.path("v/f"), "bytes").expect("a file");
    let line = if geteuid().is_root() { "umount -R \"$0\"" } else { "fusermount3 -u \"$0/v\"" };
    must(shell(line, &[&rig.place.path("mnt")]));
    let (status, said) = rig.server.take().expect("it is mounted").wait();
    assert_eq!((said.as_str(), status.code()), ("", Some(0)));
    assert_eq!(fs::read(rig.place.path("data/files/v/f")).expect("a file"), b"bytes");
    rig.mount(VOLUME, &[]);
    assert_eq!(fs::read(rig.path("v/f")).expect("a file"), b"bytes");
    rig.stop();
}

#[test]
fn clients_of_a_layout_are_not_for_a_mount() {
    let layout = format!("{VOLUME}clients = {{ addresses = [\"::1\"] }}\n");
    let Some(mut rig) = Rig::new(&layout, &[]) else { return };
    let said = &rig.server().said;
    assert!(said.contains("the layout's clients are for weir serve"), "{said}");
    rig.stop();
}

/// That a file is open is said if it is not closed soon.
fn ended_with_one_open(said: &str, status: ExitStatus) {
    let more = said.strip_prefix(UNMOUNTING).expect("what it says first");
    let open = "open files: 1; they remain usable for 10 s\n";
    assert!(more.is_empty() || more == open, "{more}");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn unmounting_waits_for_who_has_a_file_open() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    let hold = "exec 3> \"$0\" && echo open && read line && echo \"$line\" >&3";
    let mut holder = shell(hold, &[&rig.path("v/f")]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    let mut told = String::new();
    let stdout = holder.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut told).expect("text");
    rig.server().signal(Signal::TERM);
    // It has no name any more, so that no other process can open it.
    wait_until("the name is gone", || {
        !mounts_at(rig.place.dir()).iter().any(|at| at.ends_with("/v"))
    });
    holder.stdin.take().expect("a pipe").write_all(b"late\n").expect("it reads");
    assert!(holder.wait().expect("an end").success());
    let (status, said) = rig.server.take().expect("it is mounted").wait();
    ended_with_one_open(&said, status);
    assert_eq!(fs::read(rig.place.path("data/files/v/f")).expect("a file"), b"late\n");
}

#[test]
fn a_mount_that_was_killed_is_replaced_by_the_next() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    must(shell("echo synced > \"$0\" && sync \"$0\"", &[&rig.path("v/f")]));
    rig.kill();
    assert!(fs::metadata(rig.path("v/f")).is_err(), "it has no server");
    rig.mount(VOLUME, &[]);
    assert_eq!(fs::read(rig.path("v/f")).expect("a file"), b"synced\n");
    rig.stop();
}

#[test]
fn without_a_data_folder_the_files_are_gone_at_the_end() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    rig.stop();
    let mount = || {
        let mut command = rig.place.weir(&["mount", "layout.toml", "mnt"]);
        // On the same file system as everything here.
        command.env("TMPDIR", rig.place.dir());
        crate::common::Server::start(command)
    };
    let server = mount();
    assert!(server.said.contains("the files are lost at exit; --data DIR keeps them\n"));
    fs::write(rig.path("v/f"), "bytes").expect("a file");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(0));
    let left = fs::read_dir(rig.place.dir()).expect("a folder");
    let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["data", "layout.toml", "mnt"]);
}

/// Looking for holes, as programs that copy do, leaves nothing that waits for itself.
#[test]
fn killed_while_much_is_unwritten_it_ends_and_mounts_again() {
    let slow = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\n\
                limits = { throughput = \"1 MiB/s\" }\n";
    let Some(mut rig) = Rig::new(slow, &[]) else { return };
    let program = "
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for _ in range(24): os.write(fd, b'x' * (1 << 20))
try:
    os.lseek(fd, 0, os.SEEK_HOLE)
    print('sought')
except OSError as error: print(errno.errorcode[error.errno])
sys.stdout.flush()
sys.stdin.read()
";
    let mut python = std::process::Command::new("python3");
    python.arg("-c").arg(program).arg(rig.path("v/f"));
    let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    let mut said = String::new();
    BufReader::new(python.stdout.take().expect("a pipe")).read_line(&mut said).expect("text");
    assert_eq!(said, "EINVAL\n");
    rig.kill();
    python.kill().expect("running");
    python.wait().expect("an end");
    rig.mount(VOLUME, &[]);
    fs::write(rig.path("v/g"), "again").expect("a file");
    rig.stop();
}

#[test]
fn unwritten_data_of_open_files_is_written_before_the_end() {
    let Some(mut rig) = Rig::new(VOLUME, &[]) else { return };
    let program = "
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * (1 << 20))
print('written'); sys.stdout.flush()
sys.stdin.read()
";
    let mut python = std::process::Command::new("python3");
    python.arg("-c").arg(program).arg(rig.path("v/f"));
    let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    let mut said = String::new();
    BufReader::new(python.stdout.take().expect("a pipe")).read_line(&mut said).expect("text");
    rig.server().signal(Signal::TERM);
    let backing = rig.place.path("data/files/v/f");
    wait_until("it is written", || fs::metadata(&backing).is_ok_and(|stat| stat.len() == 1 << 20));
    python.kill().expect("running");
    python.wait().expect("an end");
    let (status, said) = rig.server.take().expect("it is mounted").wait();
    ended_with_one_open(&said, status);
}

#[test]
fn missing_files_are_reported_at_the_mount() {
    let layout = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n";
    let Some(mut rig) = Rig::new(layout, &["--database", "hr"]) else { return };
    fs::write(rig.path("hr/hr.mdf"), "rows").expect("a file");
    rig.stop();
    let mount = ["mount", "layout.toml", "mnt", "--data", "data", "--database", "sales"];
    let mut command = rig.place.weir(&mount);
    let mut weir = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("weir");
    let mut said = BufReader::new(weir.stderr.take().expect("a pipe")).lines();
    let first = said.next().expect("a line").expect("text");
    assert_eq!(
        first,
        "data/files/hr: its files are not mounted, since neither the layout nor --database names it"
    );
    wait_until("it is mounted", || !mounts_at(rig.place.dir()).is_empty());
    let pid = i32::try_from(weir.id()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a process"), Signal::TERM).expect("running");
    assert_eq!(weir.wait().expect("an end").code(), Some(0));
    // And what cannot be kept in itself is refused.
    let inside = ["mount", "layout.toml", "mnt", "--data", "mnt/d", "--database", "sales"];
    let (_, said, code) = run(rig.place.weir(&inside));
    let expect = "weir: --data mnt/d: is inside the mount point mnt; choose another folder\n";
    assert_eq!((said.as_str(), code), (expect, Some(2)));
}
