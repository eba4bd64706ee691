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
use super::{build, fsx, output, succeeds, watchdog};
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
/// The longest time of a mount, an unmount or the check of a file system.
const LONGEST: Duration = Duration::from_secs(600);
/// Most rounds of waiting for the file or for the daemon's end, and the pause between two.
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
        let steps: [&[&str]; 2] =
            [&["mount", "-t", kind.name, self.device(), &mount], &["umount", &mount]];
        if let Some(failure) = self.bounded(steps[0])? {
            return Ok(Outcome::Failed(failure));
        }
        let outcome = check.run(checkout, Path::new(&mount), &self.folder)?;
        let tests = [kind.check, &[self.device()]].concat();
        for step in [steps[1], &tests] {
            if let (Some(failure), Outcome::Passed) = (self.bounded(step)?, &outcome) {
                return Ok(Outcome::Failed(failure));
            }
        }
        Ok(outcome)
    }

    /// Runs a program within [`LONGEST`]. Returns how it failed, if it did.
    fn bounded(&self, words: &[&str]) -> Result<Option<String>, XtaskError> {
        let (program, args) = words.split_first().unwrap_or((&"", &[]));
        let said = self.folder.join("said");
        let (ended, said) =
            watchdog::run_to_file(Command::new(program).args(args), &said, LONGEST)?;
        Ok(match ended {
            Some(status) if status.success() => None,
            Some(status) => {
                Some(format!("{program}: {status}: {}", said.trim_end().replace('\n', "; ")))
            }
            None => Some(format!("{program} did not end within {} s", LONGEST.as_secs())),
        })
    }

    fn stop(mut self) -> Result<(), XtaskError> {
        self.detach()?;
        self.running.take().map_or(Ok(()), Running::stop)
    }

    /// Removes the mounts and the device, and ends the daemon. Does all of it also after an error, and returns the
    /// first one.
    fn detach(&mut self) -> Result<(), XtaskError> {
        let (root, mount) = (Path::new("/"), self.mount());
        let mut done = match succeeds(root, "mountpoint", &["-q", &mount]) {
            Ok(false) => Ok(()),
            Ok(true) => build(root, "umount", &["--lazy", &mount]),
            Err(error) => Err(error),
        };
        if let Some(device) = self.device.take() {
            done = done.and(build(root, "losetup", &["--detach", &device]));
        }
        done.and(self.end_daemon())
    }

    /// Ends the daemon, which would wait for whoever has its file open.
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

impl Drop for Disk {
    fn drop(&mut self) {
        if self.running.is_some() {
            // The error that ended the run has been reported.
            drop(self.detach());
        }
    }
}
