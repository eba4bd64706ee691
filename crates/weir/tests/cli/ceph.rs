//! A Ceph cluster on loopback: a monitor, a manager and one OSD, in a temporary folder.
//!
//! It needs no root and no network. All of it ends when it is dropped, also by a test that fails.

use crate::common::{Place, run};
use crate::tools;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The programs that are needed.
const PROGRAMS: [&str; 8] = [
    "ceph",
    "ceph-mgr",
    "ceph-mon",
    "ceph-osd",
    "monmaptool",
    "qemu-storage-daemon",
    "rados",
    "rbd",
];

/// The seconds after which Ceph takes the lock of an image from a client that is gone. The default of
/// 30 s would make the tests longer.
const WATCH_TIMEOUT: u32 = 4;

/// A program that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts a program, whose messages go to a file of that name.
    fn start(place: &Place, log: &str, mut command: Command) -> Self {
        let file = File::options().create(true).append(true).open(place.path(log)).expect("a log");
        command.current_dir(place.dir()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        Self(command.spawn().expect("a program"))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a status").is_some()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, signal).expect("a process");
    }

    pub(crate) fn kill(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("a process");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cluster with the pool `rbd`.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Before the folder, which they use until they end.
    osd: Daemon,
    _manager: Daemon,
    _monitor: Daemon,
    place: Place,
}

impl Cluster {
    /// Starts one, which takes about 12 s. Returns `None` if a program is missing.
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    pub(crate) fn start() -> Option<Self> {
        if let Some(missing) = PROGRAMS.iter().find(|program| !tools::has(program)) {
            println!("skipped: needs {missing}");
            return None;
        }
        let place = Place::new();
        for name in ["mon", "mgr", "osd"] {
            fs::create_dir(place.path(name)).expect("a folder");
        }
        let monitor = start_monitor(&place);
        let manager = Daemon::start(&place, "mgr.log", daemon("ceph-mgr", "x"));
        let osd_id = uuid();
        done(&place, ceph_command(&["osd", "new", &osd_id]));
        let mut format = daemon("ceph-osd", "0");
        format.args(["--mkfs", "--osd-uuid", &osd_id]);
        done(&place, format);
        let osd = Daemon::start(&place, "osd.log", daemon("ceph-osd", "0"));
        let cluster = Self { osd, _manager: manager, _monitor: monitor, place };
        cluster.ceph(&["osd", "pool", "create", "rbd", "8"]);
        Some(cluster)
    }

    /// Runs `ceph`, and returns its output.
    pub(crate) fn ceph(&self, args: &[&str]) -> String {
        done(&self.place, ceph_command(args))
    }

    /// Runs `rbd`, and returns its output.
    pub(crate) fn rbd(&self, args: &[&str]) -> String {
        let mut command = Command::new("rbd");
        command.args(["-c", "ceph.conf", "--rados-osd-op-timeout", "120"]).args(args);
        done(&self.place, command)
    }

    /// Creates an image.
    pub(crate) fn create(&self, image: &str, size: &str) {
        self.rbd(&["create", image, "--size", size]);
    }

    /// Returns the content of an image, as the cluster has it.
    pub(crate) fn export(&self, image: &str) -> Vec<u8> {
        let path = self.place.path("exported");
        self.rbd(&["export", "--no-progress", image, &path.display().to_string()]);
        let bytes = fs::read(&path).expect("a file");
        fs::remove_file(path).expect("a file");
        bytes
    }

    /// Serves an image at `kit.sock` of a folder by qemu-storage-daemon; returns when it answers.
    pub(crate) fn serve(&self, place: &Place, image: &str) -> Daemon {
        self.serve_at(place, image, "kit.sock")
    }

    /// Does the same at another socket of the folder.
    pub(crate) fn serve_at(&self, place: &Place, image: &str, socket: &str) -> Daemon {
        let socket = place.path(socket);
        let _ = fs::remove_file(&socket);
        let conf = self.place.path("ceph.conf");
        let mut command = Command::new("qemu-storage-daemon");
        command.arg("--blockdev").arg(format!(
            "driver=rbd,node-name=disk,pool=rbd,image={image},conf={}",
            conf.display()
        ));
        command.arg("--nbd-server").arg(format!("addr.type=unix,addr.path={}", socket.display()));
        command.args(["--export", "type=nbd,id=data,node-name=disk,name=data,writable=on"]);
        let mut daemon = Daemon::start(place, "qemu.log", command);
        while UnixStream::connect(&socket).is_err() {
            let said = || fs::read_to_string(place.path("qemu.log"));
            assert!(
                !daemon.has_ended(),
                "qemu-storage-daemon (package qemu-block-extra): {:?}",
                said()
            );
            std::thread::park_timeout(Duration::from_millis(5));
        }
        daemon
    }

    /// Runs the script that keeps front ends apart, on a machine of that name. Returns its messages if
    /// it fails.
    pub(crate) fn guard(&self, machine: &str, args: &[&str]) -> Result<(), String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ceph/weir-rbd");
        let mut command = Command::new(script);
        command.args(args).env("WEIR_RBD_OWNER", machine).stdin(Stdio::null());
        command.env("CEPH_CONF", self.place.path("ceph.conf"));
        let (_, said, code) = run(command);
        if code == Some(0) { Ok(()) } else { Err(said) }
    }

    /// Returns the address of the client that has the lock of an image.
    pub(crate) fn owner(&self, image: &str) -> String {
        let locks = self.rbd(&["lock", "ls", image, "--format", "json"]);
        let locks: serde_json::Value = serde_json::from_str(&locks).expect("JSON");
        locks[0]["address"].as_str().expect("a lock").to_owned()
    }

    pub(crate) fn restart_osd(&mut self) {
        self.osd.kill();
        self.osd = Daemon::start(&self.place, "osd.log", daemon("ceph-osd", "0"));
    }
}

fn uuid() -> String {
    fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a UUID").trim().to_owned()
}

fn daemon(program: &str, id: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["-f", "-i", id, "-c", "ceph.conf"]);
    command
}

fn ceph_command(args: &[&str]) -> Command {
    let mut command = Command::new("ceph");
    command.args(["-c", "ceph.conf", "--connect-timeout", "60"]).args(args);
    command
}

/// Runs a command in the folder of the cluster; it must succeed. Returns its output.
fn done(place: &Place, mut command: Command) -> String {
    command.current_dir(place.dir()).stdin(Stdio::null());
    let shown = format!("{command:?}");
    let (out, said, code) = run(command);
    assert_eq!(code, Some(0), "{shown}: {said}");
    out
}

/// Starts the monitor at a free port. Another program may take the port meanwhile: then at the next.
fn start_monitor(place: &Place) -> Daemon {
    for _ in 0..5 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("v2:{}", listener.local_addr().expect("an address"));
        let id = uuid();
        place.file("ceph.conf", &configuration(place, &id, &address));
        let mut map = Command::new("monmaptool");
        map.args(["--create", "--clobber", "--fsid", &id, "--addv", "a"]);
        map.args([&format!("[{address}]"), "monmap"]);
        done(place, map);
        let mut format = daemon("ceph-mon", "a");
        format.args(["--mkfs", "--monmap", "monmap"]);
        done(place, format);
        drop(listener);
        let mut monitor = Daemon::start(place, "mon.log", daemon("ceph-mon", "a"));
        let mut status = ceph_command(&["-s"]);
        status.current_dir(place.dir()).stdin(Stdio::null());
        let mut asks = Daemon::start(place, "status.log", status);
        while !asks.has_ended() && !monitor.has_ended() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        if !monitor.has_ended() {
            return monitor;
        }
        fs::remove_dir_all(place.path("mon"))
            .and_then(|()| fs::create_dir(place.path("mon")))
            .expect("a folder");
    }
    panic!("the monitor does not start: {:?}", fs::read_to_string(place.path("mon.log")))
}

fn configuration(place: &Place, id: &str, monitor: &str) -> String {
    let dir = place.dir().display();
    format!(
        "[global]
fsid = {id}
mon host = {monitor}
auth cluster required = none
auth service required = none
auth client required = none
ms bind msgr1 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
osd client watch timeout = {WATCH_TIMEOUT}
run dir = {dir}
admin socket =
pid file =
log to stderr = true
log file = /dev/null
mon cluster log file = /dev/null
mon data = {dir}/mon
mon data avail warn = 1
mon data avail crit = 0
mgr data = {dir}/mgr
mgr initial modules =
osd data = {dir}/osd
osd objectstore = bluestore
bluestore block size = 2147483648
bluestore block db create = false
bluestore block wal create = false
"
    )
}
