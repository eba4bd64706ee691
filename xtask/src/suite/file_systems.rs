//! File systems of the kernel on a volume: `fsx` and `fsstress` of xfstests on a loop device, whose file is
//! the volume as qemu-storage-daemon shows it.
//!
//! ```text
//! fsx --> ext4 --> loop device --> qemu-storage-daemon --(NBD)--> weir serve
//! ```
//!
//! After each program, the file system is unmounted and checked. A check that finds something is a failure of
//! the program's check. The kernel's own NBD client would be shorter, but many kernels are without it. nbdfuse
//! 1.14.2 ended with a failed assertion of its own (`in_flight >= 1`) on a busy machine.

use super::results::{Outcome, Results};
use super::running::Running;
use super::{build, fsx, output, succeeds};
use crate::error::XtaskError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LAYOUT: &str = "[[volume]]\nname = \"disk\"\nsize = \"4 GiB\"\nunlimited = true\n";
const SERVE: [&str; 4] = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"];
/// Shows an export as a file.
const DAEMON: &str = "qemu-storage-daemon";
/// Most rounds of waiting for the file, and the pause between two.
const ROUNDS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// A file system, and the programs that make and check it; the device is their last argument.
pub(super) struct Kind {
    name: &'static str,
    make: &'static [&'static str],
    check: &'static [&'static str],
}

pub(super) const CHECKS: [Kind; 3] = [
    Kind { name: "ext4", make: &["mkfs.ext4", "-q", "-F"], check: &["e2fsck", "-f", "-n"] },
    Kind { name: "xfs", make: &["mkfs.xfs", "-q", "-f"], check: &["xfs_repair", "-n"] },
    Kind { name: "btrfs", make: &["mkfs.btrfs", "-q", "-f"], check: &["btrfs", "check"] },
];

/// Runs all programs on each file system.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    fsx::prepare(checkout)?;
    let wants = results.wants();
    for kind in &CHECKS {
        let key = |check: &fsx::Check| format!("{}: {}", kind.name, check.name);
        let checks: Vec<_> = fsx::CHECKS.iter().filter(|check| wants(&key(check))).collect();
        if checks.is_empty() {
            continue;
        }
        let disk = Disk::start(weir)?;
        disk.program(kind.make)?;
        for check in checks {
            results.take(&key(check), &disk.run(kind, check, checkout)?)?;
        }
        disk.stop()?;
    }
    Ok(())
}

impl Kind {
    /// Returns whether a check is one on this file system.
    #[cfg(test)]
    pub(super) fn covers(&self, key: &str) -> bool {
        let of = key.split_once(": ");
        of.is_some_and(|(kind, name)| {
            kind == self.name && fsx::CHECKS.iter().any(|own| own.name == name)
        })
    }
}

/// A volume as a block device. What is left of it is removed when it is dropped.
struct Disk {
    running: Option<Running>,
    daemon: Child,
    device: Option<String>,
    folder: PathBuf,
}

impl Disk {
    fn start(weir: &Path) -> Result<Self, XtaskError> {
        let running = Running::start(weir, LAYOUT, &SERVE)?;
        let folder = running.path("");
        let file = folder.join("mount/disk");
        // The daemon mounts on a file.
        fs::write(&file, "").map_err(XtaskError::file("creating", &file))?;
        let mut command = Command::new(DAEMON);
        command.args(["--blockdev", &format!(
            "driver=nbd,node-name=disk,export=disk,discard=unmap,server.type=unix,server.path={}",
            folder.join("nbd").display()
        )]);
        command.args([
            "--export",
            &format!("fuse,id=disk,node-name=disk,writable=on,mountpoint={}", file.display()),
        ]);
        command.stdin(Stdio::null());
        let daemon = command.spawn().map_err(XtaskError::file("starting", Path::new(DAEMON)))?;
        let mut disk = Self { running: Some(running), daemon, device: None, folder };
        disk.wait_for(&file)?;
        let file = file.display().to_string();
        let made = output(Path::new("/"), "losetup", &["--find", "--show", &file])?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).trim_end().to_owned();
            return Err(XtaskError::Suite(format!("losetup: {said}")));
        }
        disk.device = Some(String::from_utf8_lossy(&made.stdout).trim_end().to_owned());
        build(Path::new("/"), "mkdir", &["-p", &disk.mount()])?;
        Ok(disk)
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

    fn mount(&self) -> String {
        self.folder.join("file-system").display().to_string()
    }

    fn device(&self) -> &str {
        self.device.as_deref().unwrap_or_default()
    }

    /// Runs a program on the device.
    fn program(&self, words: &[&str]) -> Result<(), XtaskError> {
        let (program, args) = words.split_first().unwrap_or((&"", &[]));
        build(Path::new("/"), program, &[args, &[self.device()]].concat())
    }

    /// Runs a check on the mounted file system, and then the check of the file system.
    fn run(&self, kind: &Kind, check: &fsx::Check, checkout: &Path) -> Result<Outcome, XtaskError> {
        let mount = self.mount();
        build(Path::new("/"), "mount", &["-t", kind.name, self.device(), &mount])?;
        let outcome = check.run(checkout, Path::new(&mount), &self.folder)?;
        build(Path::new("/"), "umount", &[&mount])?;
        let (program, args) = kind.check.split_first().unwrap_or((&"", &[]));
        let found = output(Path::new("/"), program, &[args, &[self.device()]].concat())?;
        Ok(match outcome {
            Outcome::Passed if !found.status.success() => {
                let said = [found.stdout, found.stderr].concat();
                let said = String::from_utf8_lossy(&said).trim_end().replace('\n', "; ");
                Outcome::Failed(format!("{program}: {}: {said}", found.status))
            }
            outcome => outcome,
        })
    }

    fn stop(mut self) -> Result<(), XtaskError> {
        self.detach()?;
        self.running.take().map_or(Ok(()), Running::stop)
    }

    /// Removes the mounts and the device.
    fn detach(&mut self) -> Result<(), XtaskError> {
        let (root, mount) = (Path::new("/"), self.mount());
        if succeeds(root, "mountpoint", &["-q", &mount])? {
            build(root, "umount", &["--lazy", &mount])?;
        }
        if let Some(device) = self.device.take() {
            build(root, "losetup", &["--detach", &device])?;
        }
        if let Some(pid) = i32::try_from(self.daemon.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = self.daemon.wait();
        ended.map(drop).map_err(XtaskError::file("waiting for", Path::new(DAEMON)))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.running.is_some() {
            // The error that ended the run has been reported.
            drop(self.detach());
        }
    }
}
