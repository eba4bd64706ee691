//! The real `weir` in a folder of its own.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use weir_client::Connection;

/// A folder for layouts, sockets and data; gone at the end.
#[derive(Debug)]
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder that no disk slows down, where there is one.
    pub(crate) fn without_a_disk() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), Self)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Puts a file into the folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// `weir` with these arguments, run in the folder, where `nbd.sock` and
    /// `control.sock` are its sockets.
    pub(crate) fn weir(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).current_dir(self.dir()).env("WEIR_CONTROL", "control.sock");
        // Tests look for whole sentences.
        command.env("COLUMNS", "1000");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Opens an export.
    pub(crate) fn open(&self, export: &str) -> Connection {
        let socket = self.path("nbd.sock");
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        Connection::open(&uri.parse().expect("a URI")).expect("an export")
    }

    /// Serves `layout` on `nbd.sock`; returns when it is ready.
    pub(crate) fn serve(&self, layout: &str, args: &[&str]) -> Server {
        self.file("layout.toml", layout);
        let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock"];
        Server::start(self.weir(&[&serve, args].concat()))
    }
}

/// A `weir serve`; killed if it is dropped.
pub(crate) struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Its messages until it was ready.
    pub(crate) said: String,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a program");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut server = Self { child, stderr, said: String::new() };
        loop {
            let start = server.said.len();
            let read = server.stderr.read_line(&mut server.said).expect("text");
            assert!(read > 0, "it did not start: {}", server.said);
            if server.said[start..].starts_with("ready;") {
                return server;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("it is running");
    }

    /// Waits for its end; returns how it ended and what it said after it was ready.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("an end"), said)
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.expect("a process");
    }

    /// Stops it as a service manager does; it has nothing to say but that.
    pub(crate) fn stop(self) {
        self.stop_after("");
    }

    /// Stops it as a service manager does; since it was ready, it said `notices`, and perhaps whom it has
    /// refused.
    pub(crate) fn stop_after(self, notices: &str) {
        self.signal(Signal::TERM);
        let (status, said) = self.wait();
        let lines = said.lines().filter(|line| !line.starts_with("audit: "));
        let said: String = lines.map(|line| format!("{line}\n")).collect();
        let stopping =
            "stopping: completing the requests in flight; press Ctrl-C again to stop at once\n";
        assert_eq!(said, format!("{notices}{stopping}"));
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end; stdout, stderr and the exit code.
pub(crate) fn run(mut command: Command) -> (String, String, Option<i32>) {
    let output = command.output().expect("a program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Three reports of iostat on one disk: since the start, and two of five seconds.
pub(crate) const IOSTAT: &str = "\
Linux 5.15.0 (db1)\t03/14/19\t_x86_64_\t(4 CPU)

03/14/19 00:42:19
Device            r/s     w/s     rkB/s     wkB/s   r_await w_await aqu-sz  %util
sda              0.13    3.27      1.01      2.02      0.51    1.11   0.01   0.50

03/14/19 00:42:24
Device            r/s     w/s     rkB/s     wkB/s   r_await w_await aqu-sz  %util
sda            400.00  100.00   3200.00    800.00      2.00    7.00   1.50  80.00

03/14/19 00:42:29
Device            r/s     w/s     rkB/s     wkB/s   r_await w_await aqu-sz  %util
sda            200.00    0.00   1600.00      0.00      4.00    0.00   0.80  40.00
";
