//! pjdfstest on `weir mount`.

use super::results::Results;
use super::running::Running;
use super::{LAYOUT, MOUNT, build, scripts, tap};
use crate::error::XtaskError;
use std::fs;
use std::path::Path;

/// Builds the suite and runs its scripts in a folder of a volume.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let steps = [("autoreconf", &["-ifs"][..]), ("./configure", &[]), ("make", &["pjdfstest"])];
    steps.iter().try_for_each(|(program, args)| build(checkout, program, args))?;
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let place = running.path("mount/suite/tests");
    fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
    let tests = checkout.join("tests");
    let wants = results.wants();
    for script in scripts(&tests, "t")? {
        let name = script.strip_prefix(&tests).unwrap_or(&script).display().to_string();
        let checks = if wants(&name) { tap::run(&script, &place)? } else { Vec::new() };
        for (check, outcome) in checks {
            results.take(&format!("{name}:{check}"), &outcome)?;
        }
    }
    running.stop()
}
