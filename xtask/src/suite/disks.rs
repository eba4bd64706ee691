//! Volumes as block devices: loop devices, whose files are the volumes as qemu-storage-daemon shows them.
//!
//! ```text
//! file system --> loop device --> qemu-storage-daemon --(NBD)--> weir serve
//! ```
//!
//! The kernel's own NBD client would be shorter, but many kernels are without it. nbdfuse 1.14.2 ended with a
//! failed assertion of its own (`in_flight >= 1`) on a busy machine.

use super::running::Running;
use super::{build, output, succeeds};
use crate::error::XtaskError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const VOLUME: &str = "[[volume]]\nname = \"NAME\"\nsize = \"4 GiB\"\nunlimited = true\n";
/// The size of a volume in bytes.
pub(super) const SIZE: u64 = 4 << 30;
const SERVE: [&str; 4] = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"];
/// Shows an export as a file.
const DAEMON: &str = "qemu-storage-daemon";
/// Most rounds of waiting for the files or for the daemon's end, and the pause between two.
const ROUNDS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// A file system, and the programs that make and check it; the device is their last argument.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) make: &'static [&'static str],
    pub(super) check: &'static [&'static str],
}

pub(super) const KINDS: [Kind; 3] = [
    Kind { name: "ext4", make: &["mkfs.ext4", "-q", "-F"], check: &["e2fsck", "-f", "-n"] },
    Kind { name: "xfs", make: &["mkfs.xfs", "-q", "-f"], check: &["xfs_repair", "-n"] },
    Kind { name: "btrfs", make: &["mkfs.btrfs", "-q", "-f"], check: &["btrfs", "check"] },
];

impl Kind {
    /// Makes an empty file system on a device.
    pub(super) fn make(&self, device: &str) -> Result<(), XtaskError> {
        let (program, args) = self.make.split_first().unwrap_or((&"", &[]));
        build(Path::new("/"), program, &[args, &[device]].concat())
    }
}

/// Volumes as block devices. What is left of them is removed when they are dropped.
pub(super) struct Disks {
    running: Option<Running>,
    daemon: Child,
    devices: Vec<String>,
    folder: PathBuf,
}

impl Disks {
    /// Starts a server with volumes of these names, and makes a device of each.
    pub(super) fn start(weir: &Path, names: &[&str]) -> Result<Self, XtaskError> {
        let layout: String = names.iter().map(|name| VOLUME.replace("NAME", name)).collect();
        let running = Running::start(weir, &layout, &SERVE)?;
        let folder = running.path("");
        let socket = folder.join("nbd");
        let mut command = Command::new(DAEMON);
        for name in names {
            let file = folder.join("mount").join(name);
            // The daemon mounts on a file.
            fs::write(&file, "").map_err(XtaskError::file("creating", &file))?;
            command.args(["--blockdev", &format!(
                "driver=nbd,node-name={name},export={name},discard=unmap,server.type=unix,server.path={}",
                socket.display()
            )]);
            command.args([
                "--export",
                &format!(
                    "fuse,id={name},node-name={name},writable=on,mountpoint={}",
                    file.display()
                ),
            ]);
        }
        command.stdin(Stdio::null());
        let daemon = command.spawn().map_err(XtaskError::file("starting", Path::new(DAEMON)))?;
        let mut disks = Self { running: Some(running), daemon, devices: Vec::new(), folder };
        for name in names {
            let file = disks.folder.join("mount").join(name);
            disks.wait_for(&file)?;
            disks.devices.push(attach(&file)?);
        }
        build(Path::new("/"), "mkdir", &["-p", &disks.mount()])?;
        Ok(disks)
    }

    #[expect(clippy::disallowed_methods, reason = "another process makes progress meanwhile")]
    fn wait_for(&mut self, file: &Path) -> Result<(), XtaskError> {
        for _ in 0..ROUNDS {
            if fs::metadata(file).is_ok_and(|shown| shown.len() > 0) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.daemon.try_wait() {
                return Err(XtaskError::Suite(format!("{DAEMON} did not start: {status}")));
            }
            std::thread::sleep(PAUSE);
        }
        Err(XtaskError::Suite(format!("{DAEMON} did not show {}", file.display())))
    }

    /// Returns a folder for the mount of a device.
    pub(super) fn mount(&self) -> String {
        self.folder.join("file-system").display().to_string()
    }

    /// Returns the folder of the server.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the devices, in the order of the names.
    pub(super) fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Removes the devices, and stops the server.
    pub(super) fn stop(mut self) -> Result<(), XtaskError> {
        self.detach()?;
        self.running.take().map_or(Ok(()), Running::stop)
    }

    /// Removes the mount and the devices, and ends the daemon. Does all of it also after an error, and returns the
    /// first one.
    fn detach(&mut self) -> Result<(), XtaskError> {
        let (root, mount) = (Path::new("/"), self.mount());
        let mut done = match succeeds(root, "mountpoint", &["-q", &mount]) {
            Ok(false) => Ok(()),
            Ok(true) => build(root, "umount", &["--lazy", &mount]),
            Err(error) => Err(error),
        };
        for device in std::mem::take(&mut self.devices) {
            done = done.and(detach(&device));
        }
        done.and(self.end_daemon())
    }

    /// Ends the daemon, which waits as long as its file is open.
    #[expect(clippy::disallowed_methods, reason = "another process ends meanwhile")]
    fn end_daemon(&mut self) -> Result<(), XtaskError> {
        let failed = || XtaskError::file("ending", Path::new(DAEMON));
        for _ in 0..ROUNDS {
            if self.daemon.try_wait().map_err(failed())?.is_some() {
                return Ok(());
            }
            if let Some(pid) = i32::try_from(self.daemon.id()).ok().and_then(Pid::from_raw) {
                kill_process(pid, Signal::TERM).map_err(|error| failed()(error.into()))?;
            }
            std::thread::sleep(PAUSE);
        }
        self.daemon.kill().map_err(failed())?;
        self.daemon.wait().map(drop).map_err(failed())
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        if self.running.is_some() {
            // The error that ended the run has been reported.
            drop(self.detach());
        }
    }
}

/// Makes a loop device of a file.
pub(super) fn attach(file: &Path) -> Result<String, XtaskError> {
    let file = file.display().to_string();
    let made = output(Path::new("/"), "losetup", &["--find", "--show", &file])?;
    match made.status.success() {
        true => Ok(String::from_utf8_lossy(&made.stdout).trim_end().to_owned()),
        false => {
            let said = String::from_utf8_lossy(&made.stderr).trim_end().to_owned();
            Err(XtaskError::Suite(format!("losetup: {said}")))
        }
    }
}

/// Removes a loop device.
pub(super) fn detach(device: &str) -> Result<(), XtaskError> {
    build(Path::new("/"), "losetup", &["--detach", device])
}
