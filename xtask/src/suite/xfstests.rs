//! xfstests on `weir mount`: the quick generic tests, as for any file system in user space.
//!
//! Two volumes are the test and the scratch file system. `xtask/suites/xfstests-mount` mounts and unmounts
//! them; each mount is a new server. A test that hangs is killed with the servers of its mounts.

use super::results::Results;
use super::succeeds;
use super::watchdog;
use super::xfstests_check::{LONGEST, PLACES, Reasons, Runner};
use crate::error::XtaskError;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const LAYOUT: &str = "[[volume]]\nname = \"NAME\"\nsize = \"4 GiB\"\nunlimited = true\n";

/// A runner whose folder also has layouts and data.
struct Prepared<'a> {
    runner: Runner,
    helper: String,
    weir: &'a Path,
}

/// Builds the suite and runs its tests.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let prepared = Prepared::new(checkout, weir)?;
    let done = prepared.run_all(results);
    let ended = prepared.end();
    done.and(ended)
}

impl<'a> Prepared<'a> {
    fn new(checkout: &Path, weir: &'a Path) -> Result<Self, XtaskError> {
        let runner = Runner::new(checkout)?;
        let helper = crate::root().join("xtask/suites/xfstests-mount").display().to_string();
        for name in PLACES {
            let layout = runner.path(&format!("{name}.toml"));
            fs::write(&layout, LAYOUT.replace("NAME", name))
                .map_err(XtaskError::file("writing", &layout))?;
            let root = runner.path(&format!("at-{name}"));
            fs::create_dir(&root).map_err(XtaskError::file("creating", &root))?;
        }
        runner.configure(&format!(
            "export FSTYP=fuse\nexport FUSE_SUBTYP=.weir\n\
             export TEST_DEV=weir/test\nexport SCRATCH_DEV=weir/scratch\n\
             export MOUNT_PROG=\"{helper} mount\"\nexport UMOUNT_PROG=\"{helper} umount\"\n\
             export DF_PROG=\"{helper} df -T\"\n"
        ))?;
        Ok(Self { runner, helper, weir })
    }

    fn run_all(&self, results: &mut Results<'_>) -> Result<(), XtaskError> {
        let wants = results.wants();
        let mut reasons = Reasons::default();
        for test in self.runner.quick()?.iter().filter(|test| wants(test)) {
            let variable = Some(("WEIR", self.weir.as_os_str()));
            results.take(test, &self.runner.run(test, variable, &mut reasons)?)?;
        }
        reasons.say(results)
    }

    /// Unmounts what is mounted.
    fn end(self) -> Result<(), XtaskError> {
        let mark = self.runner.mark();
        for name in PLACES {
            let place = self.runner.path(name).display().to_string();
            if !succeeds(Path::new("/"), "mountpoint", &["-q", &place])? {
                continue;
            }
            let mut command = Command::new(&self.helper);
            command.args(["umount", &place]).stdin(Stdio::null()).env("WEIR", self.weir);
            let ended = watchdog::run(&mut command, mark, LONGEST)?;
            if !ended.is_some_and(|status| status.success()) {
                watchdog::end(mark)?;
                self.runner.detach()?;
                return Err(XtaskError::Suite(format!("{place} was still in use")));
            }
        }
        Ok(())
    }
}
