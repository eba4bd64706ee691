//! Volumes as directories, used by the programs that people run on them.
//!
//! Only processes other than the server of a mount may use its files. The tests may, since `weir`
//! runs as a process of its own.

mod ends;
mod export;
mod instance;
mod limits;
pub(crate) mod postgres;
mod power;
mod programs;
mod space;

use crate::common::{Place, Server, run};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The message of a mount that is stopped.
const UNMOUNTING: &str =
    "unmounting: completing the requests in flight; press Ctrl-C again to stop at once\n";

/// Returns whether this system can mount, and reports it if not. It has to with `CI=true`.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
pub(crate) fn can_mount() -> bool {
    let open = fs::File::options().read(true).write(true).open("/dev/fuse").is_ok();
    let helper = Command::new("fusermount3").arg("-V").output().is_ok();
    let can = open && (geteuid().is_root() || helper);
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(can || !must, "CI=true, and nothing can be mounted");
    if !can {
        println!("skipped: needs /dev/fuse, and root or fusermount3");
    }
    can
}

/// A mount at `mnt`, of the files in `data`; gone at the end.
struct Rig {
    server: Option<Server>,
    place: Place,
}

impl Rig {
    /// Mounts `layout`, if this machine can.
    fn new(layout: &str, args: &[&str]) -> Option<Self> {
        can_mount().then(|| {
            let place = Place::new();
            fs::create_dir(place.path("mnt")).expect("a folder");
            let mut rig = Self { server: None, place };
            rig.mount(layout, args);
            rig
        })
    }

    /// Mounts again, after [`Rig::stop`] or a kill.
    fn mount(&mut self, layout: &str, args: &[&str]) {
        self.place.file("layout.toml", layout);
        let mount = ["mount", "layout.toml", "mnt", "--data", "data"];
        self.server = Some(Server::start(self.place.weir(&[&mount, args].concat())));
    }

    /// A path in the mount.
    fn path(&self, name: &str) -> PathBuf {
        self.place.path("mnt").join(name)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it is mounted")
    }

    /// Stops it as a service manager does. It unmounts, and has nothing else to say.
    fn stop(&mut self) {
        self.server().signal(Signal::TERM);
        let (status, said) = self.server.take().expect("it is mounted").wait();
        assert_eq!((said.as_str(), status.code()), (UNMOUNTING, Some(0)));
        assert_eq!(mounts_at(&self.place.path("mnt")), [""; 0]);
    }

    fn kill(&mut self) {
        self.server().signal(Signal::KILL);
        drop(self.server.take().expect("it is mounted").wait());
    }

    fn status(&self) -> Value {
        let status = self.place.weir(&["status", "-o", "json", "--interval", "1ms"]);
        let (stdout, stderr, code) = run(status);
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    fn volume(&self, name: &str) -> Option<Value> {
        volume_of(&self.status(), name)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A failed test leaves a mount without a server.
        drop(self.server.take());
        let dir = self.place.path("mnt");
        let _ = Command::new("umount").arg("-lR").arg(dir).output();
    }
}

fn volume_of(status: &Value, name: &str) -> Option<Value> {
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes");
    volumes.iter().find(|volume| volume["name"] == name).cloned()
}

/// Where something is mounted below a folder.
fn mounts_at(dir: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("text");
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    places.filter(|place| Path::new(place).starts_with(dir)).map(str::to_owned).collect()
}

/// Runs a program, which must succeed; returns what it printed.
#[track_caller]
pub(crate) fn must(command: Command) -> String {
    let shown = format!("{command:?}");
    let (stdout, stderr, code) = run(command);
    assert_eq!(code, Some(0), "{shown}\n{stdout}{stderr}");
    stdout
}

/// A line for the shell; the arguments are `$0`, `$1` and so on.
pub(crate) fn shell(line: &str, args: &[&Path]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).args(args).env("LC_ALL", "C");
    command
}

/// Runs a program, which must succeed, and returns the system calls of the mount's server meanwhile.
#[track_caller]
fn traced(rig: &Rig, calls: &str, program: Command) -> String {
    let (pid, out) = (rig.server().id().to_string(), rig.place.path("trace"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-e", &format!("trace={calls}"), "-p", &pid, "-o"]);
    let mut strace = strace.arg(&out).stderr(Stdio::piped()).spawn().expect("strace");
    // It says so when it is attached.
    let mut told = BufReader::new(strace.stderr.take().expect("a pipe")).lines();
    let first = told.next().expect("a line").expect("text");
    assert!(first.contains("attached"), "{first}");
    must(program);
    let id = i32::try_from(strace.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process"), Signal::INT).expect("running");
    strace.wait().expect("an end");
    fs::read_to_string(&out).expect("text")
}

/// Waits for something that no descriptor tells of.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (_never, deadline) = channel::<()>();
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        let _ = deadline.recv_timeout(Duration::from_millis(10));
    }
    panic!("{what}: not within 30 seconds");
}
