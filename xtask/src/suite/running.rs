//! The program under test, while a suite runs.

use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// A running `weir` in a temporary folder, which has the layout in `layout.toml`.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    root: PathBuf,
    /// Reads what it says after its start. A full pipe would block it.
    said: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts the program with these arguments, in which `{}` stands for the folder, and waits until it
    /// is ready.
    pub(crate) fn start(weir: &Path, layout: &str, args: &[&str]) -> Result<Self, XtaskError> {
        Self::start_as(Command::new(weir), layout, args)
    }

    /// Does the same out of reach of Ctrl-C, for a caller that catches it.
    pub(crate) fn start_apart(
        weir: &Path,
        layout: &str,
        args: &[&str],
    ) -> Result<Self, XtaskError> {
        Self::start_as(in_own_group(weir), layout, args)
    }

    fn start_as(mut command: Command, layout: &str, args: &[&str]) -> Result<Self, XtaskError> {
        let root = std::env::temp_dir().join(format!("weir-suite-{}", std::process::id()));
        let (file, mount) = (root.join("layout.toml"), root.join("mount"));
        fs::create_dir_all(&mount).map_err(XtaskError::file("creating", &mount))?;
        fs::write(&file, layout).map_err(XtaskError::file("writing", &file))?;
        let place = root.display().to_string();
        command.args(args.iter().map(|arg| arg.replace("{}", &place)));
        command.arg("--data").arg(root.join("data")).arg("--control").arg(root.join("control"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let weir = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(XtaskError::file("starting", &weir))?;
        let mut own = Self { child, root, said: None };
        let mut said = String::new();
        if let Some(stderr) = own.child.stderr.take() {
            let mut stderr = BufReader::new(stderr);
            while !said.contains("ready;") && stderr.read_line(&mut said).is_ok_and(|read| read > 0)
            {
            }
            own.said = Some(std::thread::spawn(move || {
                let mut said = Vec::new();
                // An error ends the output early.
                let _ = stderr.read_to_end(&mut said);
                String::from_utf8_lossy(&said).into_owned()
            }));
        }
        if said.contains("ready;") {
            return Ok(own);
        }
        Err(XtaskError::Suite(format!("weir did not start: {}", said.trim_end())))
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns a path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Stops it, and removes its files.
    pub(crate) fn stop(self) -> Result<(), XtaskError> {
        self.stop_and_tell().map(drop)
    }

    /// Stops it, and removes its files. Returns what it said after its start.
    pub(crate) fn stop_and_tell(mut self) -> Result<String, XtaskError> {
        self.end();
        let status = self.child.wait();
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        if status.as_ref().is_ok_and(|status| status.success()) {
            return Ok(said);
        }
        let last = said.trim_end().lines().last().unwrap_or_default();
        Err(XtaskError::Suite(format!("weir ended with {status:?}: {last}")))
    }

    fn end(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
            drop(self.child.wait());
        }
        drop(fs::remove_dir_all(&self.root));
    }
}

/// Returns a port that nobody listens at.
pub(crate) fn free_port() -> Result<u16, XtaskError> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let system = |source| XtaskError::System { doing: "finding a free port", source };
    listener.map(|address| address.port()).map_err(system)
}
