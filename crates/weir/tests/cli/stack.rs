//! A file system on an export: nbdfuse makes a file of it, and a loop device a disk of the file.

use crate::common::Place;
use crate::mount::{must, shell, wait_until};
use crate::tools;
use rustix::process::geteuid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Returns whether this machine has loop devices, and reports it if not.
pub(crate) fn can_loop(place: &Place) -> bool {
    fs::write(place.path("probe"), [0; 4096]).expect("a file");
    let line = "d=$(losetup --show -f \"$0\") && losetup -d \"$d\"";
    let mut probe = shell(line, &[&place.path("probe")]);
    let can = geteuid().is_root() && probe.output().is_ok_and(|tried| tried.status.success());
    tools::machine_has("loop-devices", can)
}

/// A loop device of a file; detached if it is dropped.
#[derive(Debug)]
pub(crate) struct Loop {
    path: PathBuf,
    is_attached: bool,
}

impl Loop {
    pub(crate) fn over(file: &Path) -> Self {
        let path = must(shell("losetup --show -f \"$0\"", &[file])).trim().into();
        Self { path, is_attached: true }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn detach(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_attached) {
            tried("losetup -d \"$0\"", &self.path)?;
        }
        Ok(())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

/// Runs a line for the shell.
fn tried(line: &str, path: &Path) -> Result<(), String> {
    match shell(line, &[path]).output() {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("{line} {}: {other:?}", path.display())),
    }
}

/// A server, a loop device and a mount, stopped from the top, also by a failed test.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    mounted: Option<PathBuf>,
    device: Option<Loop>,
    nbdfuse: Option<(Child, PathBuf)>,
}

impl Stack {
    /// Makes a device of an export of the server in `place`.
    pub(crate) fn up(place: &Place, export: &str) -> Self {
        for dir in ["nbd", "fs"] {
            fs::create_dir_all(place.path(dir)).expect("a folder");
        }
        let uri = format!("nbd+unix:///{export}?socket={}", place.path("nbd.sock").display());
        let file = place.path("nbd/disk");
        let mut nbdfuse = Command::new("nbdfuse");
        nbdfuse.arg("-P").arg(place.path("pid")).arg(&file).arg(uri).stdin(Stdio::null());
        let child = nbdfuse.spawn().expect("nbdfuse");
        let mut stack = Self::default();
        stack.nbdfuse = Some((child, place.path("nbd")));
        wait_until("nbdfuse serves", || file.exists());
        stack.device = Some(Loop::over(&file));
        stack
    }

    pub(crate) fn device(&self) -> PathBuf {
        self.device.as_ref().expect("a device").path().to_owned()
    }

    /// Mounts the device at `fs`.
    pub(crate) fn mount(&mut self, place: &Place) {
        let dir = place.path("fs");
        must(shell("mount \"$0\" \"$1\"", &[&self.device(), &dir]));
        self.mounted = Some(dir);
    }

    pub(crate) fn unmount(&mut self) {
        if let Some(dir) = self.mounted.take() {
            must(shell("umount \"$0\"", &[&dir]));
        }
    }

    pub(crate) fn take_down(&mut self) -> Result<(), String> {
        if let Some(dir) = self.mounted.take() {
            tried("umount \"$0\"", &dir)?;
        }
        if let Some(mut device) = self.device.take() {
            device.detach()?;
        }
        if let Some((mut child, dir)) = self.nbdfuse.take() {
            let unmounted = tried("umount \"$0\"", &dir);
            if unmounted.is_err() {
                let _ = child.kill();
            }
            let _ = child.wait();
            unmounted?;
        }
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let _ = self.take_down();
    }
}
