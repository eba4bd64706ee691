//! `fsx` and `fsstress` of xfstests on `weir mount`: random requests to one file with known content, and
//! random calls by several processes.

use super::results::{Outcome, Results};
use super::running::Running;
use super::{LAYOUT, MOUNT, build, succeeds, watchdog};
use crate::error::XtaskError;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The longest time of a check.
const LONGEST: Duration = Duration::from_secs(600);

/// A run of one of the programs.
pub(super) struct Check {
    pub(super) name: &'static str,
    program: &'static str,
    /// `{}` stands for a path on the mount.
    args: &'static [&'static str],
}

const fn fsx(name: &'static str, args: &'static [&'static str]) -> Check {
    Check { name, program: "ltp/fsx", args }
}

const fn fsstress(name: &'static str, args: &'static [&'static str]) -> Check {
    Check { name, program: "ltp/fsstress", args }
}

pub(super) const CHECKS: [Check; 8] = [
    fsx("fsx", &["-q", "-S", "1", "-N", "20000", "{}"]),
    fsx("fsx-unmapped", &["-q", "-S", "2", "-N", "20000", "-R", "-W", "{}"]),
    fsx(
        "fsx-direct",
        &[
            "-q", "-S", "3", "-N", "10000", "-Z", "-r", "4096", "-w", "4096", "-t", "4096", "-R",
            "-W", "{}",
        ],
    ),
    fsx("fsx-aio", &["-q", "-S", "4", "-N", "10000", "-A", "{}"]),
    fsx("fsx-close-open", &["-q", "-S", "5", "-N", "10000", "-c", "10", "{}"]),
    fsx("fsx-long", &["-q", "-S", "6", "-N", "5000", "-l", "8388608", "-o", "131072", "{}"]),
    fsstress("fsstress", &["-d", "{}", "-s", "7", "-n", "2000", "-p", "4"]),
    fsstress("fsstress-many", &["-d", "{}", "-s", "8", "-n", "1000", "-p", "16", "-l", "2"]),
];

/// Builds the programs, and runs the checks on one mount.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    prepare(checkout)?;
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let wants = results.wants();
    for check in CHECKS.iter().filter(|check| wants(check.name)) {
        let outcome = check.run(checkout, &running.path("mount/suite"), &running.path(""))?;
        results.take(check.name, &outcome)?;
    }
    running.stop()
}

/// Builds the programs, unless that has been done.
pub(super) fn prepare(checkout: &Path) -> Result<(), XtaskError> {
    match succeeds(checkout, "test", &["-x", "ltp/fsx", "-a", "-x", "ltp/fsstress"])? {
        true => Ok(()),
        false => build(checkout, "make", &[]),
    }
}

impl Check {
    /// Runs the program on a file or folder of this name in `root`. It writes its own files to `folder`.
    pub(super) fn run(
        &self,
        checkout: &Path,
        root: &Path,
        folder: &Path,
    ) -> Result<Outcome, XtaskError> {
        let place = root.join(self.name).display().to_string();
        let program = checkout.join(self.program);
        let mut command = Command::new(&program);
        command.args(self.args.iter().map(|arg| arg.replace("{}", &place))).current_dir(folder);
        // The processes of fsstress have groups of their own.
        let (ended, said) = watchdog::run_to_file(&mut command, &folder.join("said"), LONGEST)?;
        let last = said.trim_end().lines().last().unwrap_or_default();
        Ok(match ended {
            Some(status) if status.success() => Outcome::Passed,
            Some(status) => Outcome::Failed(format!("{status}: {last}")),
            None => Outcome::Failed(format!("it did not end within {} s", LONGEST.as_secs())),
        })
    }
}
