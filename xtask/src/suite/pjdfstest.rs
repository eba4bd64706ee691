//! pjdfstest on `weir mount`.

use super::results::Results;
use super::running::Running;
use super::{LAYOUT, MOUNT, build, tap};
use crate::error::XtaskError;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

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
    let mut scripts = Vec::new();
    find(&tests, &mut scripts)?;
    scripts.sort();
    let wants = results.wants();
    for script in scripts {
        let name = script.strip_prefix(&tests).unwrap_or(&script).display().to_string();
        let checks = if wants(&name) { tap::run(&script, &place)? } else { Vec::new() };
        for (check, outcome) in checks {
            results.take(&format!("{name}:{check}"), &outcome)?;
        }
    }
    running.stop()
}

/// Collects the scripts of a folder and its subfolders.
fn find(folder: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), XtaskError> {
    for entry in fs::read_dir(folder).map_err(XtaskError::file("reading", folder))? {
        let path = entry.map_err(XtaskError::file("reading", folder))?.path();
        if path.is_dir() {
            find(&path, scripts)?;
        } else if path.extension() == Some(OsStr::new("t")) {
            scripts.push(path);
        }
    }
    Ok(())
}
