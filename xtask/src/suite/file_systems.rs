//! File systems of the kernel on a volume: `fsx` and `fsstress` of xfstests on a device of `disks`.
//!
//! After each program, the file system is unmounted and checked. A check that finds something is a failure of
//! the program's check.

use super::disks::{Disks, KINDS, Kind};
use super::results::{Outcome, Results};
use super::{fsx, watchdog};
use crate::error::XtaskError;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The longest time of a mount, an unmount or the check of a file system.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs all programs on each file system.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    fsx::prepare(checkout)?;
    let wants = results.wants();
    for kind in &KINDS {
        let key = |check: &fsx::Check| format!("{}: {}", kind.name, check.name);
        let checks: Vec<_> = fsx::CHECKS.iter().filter(|check| wants(&key(check))).collect();
        if checks.is_empty() {
            continue;
        }
        let disk = Disk(Disks::start(weir, &["disk"])?);
        kind.make(disk.device())?;
        for check in checks {
            results.take(&key(check), &disk.run(kind, check, checkout)?)?;
        }
        disk.0.stop()?;
    }
    Ok(())
}

/// Returns whether a check is one of the suite.
#[cfg(test)]
pub(super) fn covers(key: &str) -> bool {
    key.split_once(": ").is_some_and(|(kind, name)| {
        KINDS.iter().any(|own| own.name == kind) && fsx::CHECKS.iter().any(|own| own.name == name)
    })
}

/// The one volume.
struct Disk(Disks);

impl Disk {
    fn device(&self) -> &str {
        self.0.devices().first().map_or("", String::as_str)
    }

    /// Runs a check on the mounted file system, and then the check of the file system.
    fn run(&self, kind: &Kind, check: &fsx::Check, checkout: &Path) -> Result<Outcome, XtaskError> {
        let mount = self.0.mount();
        let steps: [&[&str]; 2] =
            [&["mount", "-t", kind.name, self.device(), &mount], &["umount", &mount]];
        if let Some(failure) = self.bounded(steps[0])? {
            return Ok(Outcome::Failed(failure));
        }
        let outcome = check.run(checkout, Path::new(&mount), self.0.folder())?;
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
        let said = self.0.folder().join("said");
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
}
