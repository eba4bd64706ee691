//! The stressors of file systems of stress-ng, on `weir mount`. They check what they can (`--verify`).

use super::results::{Outcome, Results};
use super::running::Running;
use super::{LAYOUT, MOUNT, tap};
use crate::error::XtaskError;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Stressors of its class `filesystem` that use files in a folder. The others are about descriptors,
/// `/proc`, or mounts of their own.
pub(super) const STRESSORS: [&str; 41] = [
    "access",
    "chattr",
    "chdir",
    "chmod",
    "chown",
    "copy-file",
    "dentry",
    "dir",
    "dirdeep",
    "dirmany",
    "dnotify",
    "fallocate",
    "fanotify",
    "fcntl",
    "fiemap",
    "file-ioctl",
    "filename",
    "flock",
    "fpunch",
    "fsize",
    "fstat",
    "getdent",
    "handle",
    "hdd",
    "inode-flags",
    "inotify",
    "io",
    "iomix",
    "lease",
    "link",
    "locka",
    "lockf",
    "lockofd",
    "mknod",
    "open",
    "rename",
    "symlink",
    "sync-file",
    "touch",
    "utime",
    "xattr",
];
/// Their number of processes, and the time of each stressor.
const PROCESSES: &str = "2";
const SECONDS: &str = "3";
/// The exit code for what the system or the file system does not support, or has no resources for.
const UNSUPPORTED: [i32; 2] = [3, 4];

/// Runs each stressor on one mount.
pub(super) fn run(weir: &Path, results: &mut Results<'_>) -> Result<(), XtaskError> {
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let place = running.path("mount/suite/stress");
    fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
    let program = Path::new("stress-ng");
    let wants = results.wants();
    for stressor in STRESSORS.into_iter().filter(|stressor| wants(stressor)) {
        let mut command = tap::bounded(program);
        command.arg(format!("--{stressor}")).arg(PROCESSES).args([
            "--timeout",
            SECONDS,
            "--verify",
        ]);
        command.arg("--temp-path").arg(&place).current_dir(&place).stdin(Stdio::null());
        let output = command.output().map_err(XtaskError::file("starting", program))?;
        let outcome = match output.status.code() {
            Some(0) => Outcome::Passed,
            Some(code) if UNSUPPORTED.contains(&code) => Outcome::Skipped,
            _ => Outcome::Failed(failure(&String::from_utf8_lossy(&output.stderr))),
        };
        results.take(stressor, &outcome)?;
    }
    running.stop()
}

/// Returns the first line about a failure.
fn failure(said: &str) -> String {
    let line = said.lines().find(|line| line.contains(": fail:") || line.contains(": error:"));
    line.or(said.lines().last()).unwrap_or_default().to_owned()
}
