//! A mount for a suite of file systems.

use crate::error::XtaskError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A volume without limits, so that a suite takes no longer than it has to.
const LAYOUT: &str = "[[volume]]\nname = \"suite\"\nsize = \"8 GiB\"\nunlimited = true\n";

/// A running `weir mount` in a temporary folder.
#[derive(Debug)]
pub(super) struct Mounted {
    child: Child,
    root: PathBuf,
}

impl Mounted {
    /// Mounts a volume with this program.
    pub(super) fn start(weir: &Path) -> Result<Self, XtaskError> {
        let root = std::env::temp_dir().join(format!("weir-suite-{}", std::process::id()));
        let (layout, mount) = (root.join("layout.toml"), root.join("mount"));
        fs::create_dir_all(&mount).map_err(XtaskError::file("creating", &mount))?;
        fs::write(&layout, LAYOUT).map_err(XtaskError::file("writing", &layout))?;
        let mut command = Command::new(weir);
        command.arg("mount").arg(&layout).arg(&mount);
        command.arg("--data").arg(root.join("data")).arg("--control").arg(root.join("control"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(XtaskError::file("starting", weir))?;
        let mut own = Self { child, root };
        let mut said = String::new();
        if let Some(stderr) = own.child.stderr.take() {
            let mut stderr = BufReader::new(stderr);
            while !said.contains("ready;") && stderr.read_line(&mut said).is_ok_and(|read| read > 0)
            {
            }
            // What it says later is of no interest, but it must be able to say it.
            std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        }
        if said.contains("ready;") {
            return Ok(own);
        }
        Err(XtaskError::Suite(format!("weir mount did not start: {}", said.trim_end())))
    }

    /// Creates a folder in the mount.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, XtaskError> {
        let path = self.root.join("mount/suite").join(name);
        fs::create_dir(&path).map_err(XtaskError::file("creating", &path))?;
        Ok(path)
    }

    /// Unmounts it, and removes its files.
    pub(super) fn stop(mut self) -> Result<(), XtaskError> {
        self.end();
        let status = self.child.wait();
        if status.as_ref().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(XtaskError::Suite(format!("weir mount ended with {status:?}")))
    }

    fn end(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
            drop(self.child.wait());
        }
        drop(fs::remove_dir_all(&self.root));
    }
}
