//! NBD servers of others, in a folder of their own.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_backend::condition::Hearing;
use weir_backend::{BackendError, RemoteOptions, RemoteStore, State};
use weir_units::Span;

/// The longest wait for something that happens on its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether a program is installed. It has to be with `CI=true`.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and {program} is not installed");
    if !found {
        println!("skipped: needs {program}");
    }
    found
}

/// Returns a number of a campaign: of the environment, or a small one.
pub(crate) fn number(variable: &str, small: u64) -> u64 {
    std::env::var(variable)
        .map_or(small, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// A folder with the socket and the disk of a server.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn disk(&self, size: u64) -> String {
        let path = self.path("disk");
        let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
        file.expect("a file").set_len(size).expect("its size");
        path.display().to_string()
    }

    /// Starts nbdkit with these arguments; returns when it answers.
    pub(crate) fn nbdkit(&self, args: &[&str]) -> Program {
        let socket = self.path("nbd.sock");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-U"]).arg(&socket).args(args);
        Program::start(command, &socket)
    }

    /// Starts qemu-storage-daemon on `disk`; returns when it answers.
    pub(crate) fn qemu(&self, disk: &str) -> Program {
        let socket = self.path("nbd.sock");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("qemu-storage-daemon");
        command.arg("--blockdev").arg(format!("driver=file,node-name=disk,filename={disk}"));
        command.arg("--nbd-server").arg(format!("addr.type=unix,addr.path={}", socket.display()));
        command.args(["--export", "type=nbd,id=e,node-name=disk,name=,writable=on"]);
        Program::start(command, &socket)
    }

    /// Opens the export of the server.
    pub(crate) fn open(&self, timeout: Span) -> Result<(RemoteStore, Heard), BackendError> {
        Self::open_at(&format!("nbd+unix:///?socket={}", self.path("nbd.sock").display()), timeout)
    }

    /// Opens an export by its URI.
    pub(crate) fn open_at(uri: &str, timeout: Span) -> Result<(RemoteStore, Heard), BackendError> {
        let (sender, receiver) = channel();
        let hearing = Hearing::with(move |state| drop(sender.send(state.clone())));
        let uri = uri.parse().expect("a URI");
        let (connections, given_up) = (4, Arc::default());
        let options = RemoteOptions { uri, connections, timeout, hearing, given_up };
        let store = RemoteStore::open(options)?;
        Ok((store, Heard(receiver)))
    }
}

/// The changes of a store's condition.
#[derive(Debug)]
pub(crate) struct Heard(Receiver<State>);

impl Heard {
    /// Returns the number of changes that were not waited for.
    pub(crate) fn count(&self) -> usize {
        self.0.try_iter().count()
    }

    /// Waits for a state.
    pub(crate) fn wait_for(&self, is_it: impl Fn(&State) -> bool) -> State {
        loop {
            let state = self.0.recv_timeout(PATIENCE).expect("a change of the condition");
            if is_it(&state) {
                return state;
            }
        }
    }
}

/// A server; killed if it is dropped.
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(mut command: Command, socket: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a program");
        while UnixStream::connect(socket).is_err() {
            assert!(child.try_wait().expect("a status").is_none(), "it ended: {command:?}");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Self(child)
    }

    /// Stops it until [`go_on`](Self::go_on); returns when it has stopped.
    pub(crate) fn stall(&self) {
        let process = Pid::from_child(&self.0);
        kill_process(process, Signal::STOP).expect("a process");
        let stopped = waitpid(Some(process), WaitOptions::UNTRACED).expect("a process");
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    }

    pub(crate) fn go_on(&self) {
        kill_process(Pid::from_child(&self.0), Signal::CONT).expect("a process");
    }

    pub(crate) fn kill(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("a process");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
