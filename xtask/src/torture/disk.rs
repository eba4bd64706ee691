//! A disk that loses power or fails, under the data folder of a system.
//!
//! It is XFS on a loop device. A loss of power shuts the file system down while the server is stopped, and a failure
//! while it runs: what the device has not received by then is lost, the journal included.

use super::server::{lost, system, wait_until};
use super::session::{DONE, Session};
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::geteuid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// More than the volumes of a system have, and than XFS needs.
const SIZE: u64 = 3 << 30;
const IMAGE: &str = "disk.img";
/// The data folder of all systems, which the disk is mounted on.
const DATA: &str = "data";

/// Shuts the file system down for each line. It starts before anything is mounted in the folder: a process that
/// started later would close the campaign's open files there, and wait for the stopped server for ever.
const SHUTDOWN: &str =
    "while read -r line; do xfs_io -x -c shutdown \"$0\" || exit; echo \"$1\"; done";

/// A mounted disk, unmounted if it is dropped.
pub(super) struct Disk {
    folder: PathBuf,
    shutdown: Mutex<Session>,
}

/// Returns what this machine lacks.
pub(super) fn lacks() -> Option<&'static str> {
    let has = |program: &str, arg: &str| Command::new(program).arg(arg).output().is_ok();
    let can =
        geteuid().is_root() && has("mkfs.xfs", "-V") && has("xfs_io", "-V") && has_loop_devices();
    (!can).then_some("it needs root, loop devices, and mkfs.xfs and xfs_io of xfsprogs")
}

fn has_loop_devices() -> bool {
    let output = Command::new("losetup").arg("--find").output();
    output.is_ok_and(|output| output.status.success())
}

impl Disk {
    /// Makes a disk, and mounts it as the data folder in `folder`.
    pub(super) fn new(folder: &Path) -> Result<Self, XtaskError> {
        let (image, data) = (folder.join(IMAGE), folder.join(DATA));
        fs::create_dir(&data).map_err(XtaskError::file("creating", &data))?;
        let file = File::create(&image).and_then(|file| file.set_len(SIZE));
        file.map_err(XtaskError::file("creating", &image))?;
        must("mkfs.xfs", &["-q", IMAGE], folder)?;
        let mut shell = in_own_group("sh");
        shell.args(["-c", SHUTDOWN]).arg(&data).arg(DONE);
        let shutdown = Mutex::new(Session::start(shell, "").map_err(|what| lost(&what))?);
        let own = Self { folder: folder.to_owned(), shutdown };
        own.mount()?;
        Ok(own)
    }

    fn mount(&self) -> Result<(), XtaskError> {
        must("mount", &["-o", "loop", IMAGE, DATA], &self.folder)
    }

    /// Shuts the file system down without writing its journal. Each access is an error from then on.
    pub(super) fn shut_down(&self) -> Result<(), XtaskError> {
        let mut shutdown = self.shutdown.lock().unwrap_or_else(PoisonError::into_inner);
        shutdown.ask("shutdown").map(drop).map_err(|what| lost(&format!("xfs_io: {what}")))
    }

    /// Mounts the disk again, on which nothing is open any more.
    pub(super) fn recover(&self) -> Result<(), XtaskError> {
        wait_until("the disk is still in use", || {
            let umount = in_own_group("umount").arg(DATA).current_dir(&self.folder).output();
            umount.map(|own| own.status.success()).map_err(system("running umount"))
        })?;
        self.mount()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A server that is still there keeps it until it ends.
        let _ = in_own_group("umount").arg("-l").arg(self.folder.join(DATA)).output();
    }
}

fn must(program: &str, args: &[&str], folder: &Path) -> Result<(), XtaskError> {
    let output = in_own_group(program).args(args).current_dir(folder).output();
    let output = output.map_err(system("running a program of the disk"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let words = format!("{program} in {}: {}", folder.display(), said.trim());
    Err(system("preparing a disk")(std::io::Error::other(words)))
}
