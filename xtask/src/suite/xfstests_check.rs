//! The runner of xfstests, `check`, with one test at a time.
//!
//! Its settings are in `local.config` of a temporary folder, so the checkout stays as it is. A test that takes
//! longer than [`LONGEST`] is killed with all its processes, and has failed.

use super::results::{Outcome, Results};
use super::watchdog::{self, Mark};
use super::{build, output, succeeds};
use crate::error::XtaskError;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The longest time of a test. Most of the group take less than 30 s, but some start thousands of programs.
pub(super) const LONGEST: Duration = Duration::from_secs(300);
const MARK: &str = "WEIR_SUITE";
/// The folders on which the test and the scratch file system are mounted.
pub(super) const PLACES: [&str; 2] = ["test", "scratch"];

/// A checkout that is built, and a folder with its settings, its results, and [`PLACES`].
pub(super) struct Runner {
    checkout: PathBuf,
    folder: TempDir,
}

/// The reasons of tests that were not run, with their numbers.
#[derive(Default)]
pub(super) struct Reasons(BTreeMap<String, u64>);

impl Runner {
    /// Builds the suite, unless that has been done.
    pub(super) fn new(checkout: &Path) -> Result<Self, XtaskError> {
        // The last program that is built.
        if !succeeds(checkout, "test", &["-x", "src/vfs/mount-idmapped"])? {
            build(checkout, "make", &[])?;
        }
        let system = |source| XtaskError::System { doing: "making a folder", source };
        let folder = tempfile::Builder::new().prefix("weir-xfstests-").tempdir().map_err(system)?;
        let own = Self { checkout: checkout.to_owned(), folder };
        for name in PLACES {
            let place = own.path(name);
            fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
        }
        Ok(own)
    }

    /// Writes the settings; the folders of the mounts and of the results are among them.
    pub(super) fn configure(&self, settings: &str) -> Result<(), XtaskError> {
        let folder = self.folder.path().display();
        let [test, scratch] = PLACES;
        let text = format!(
            "{settings}export TEST_DIR={folder}/{test}\nexport SCRATCH_MNT={folder}/{scratch}\n\
             export RESULT_BASE={folder}/results\n"
        );
        let config = self.path("local.config");
        fs::write(&config, text).map_err(XtaskError::file("writing", &config))
    }

    /// Returns the quick generic tests.
    pub(super) fn quick(&self) -> Result<Vec<String>, XtaskError> {
        let path = self.checkout.join("tests/generic/group.list");
        let list = fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))?;
        Ok(quick(&list))
    }

    /// Runs a test, with a variable for its mounts. Counts the reason if it was not run.
    pub(super) fn run(
        &self,
        test: &str,
        variable: Option<(&str, &OsStr)>,
        reasons: &mut Reasons,
    ) -> Result<Outcome, XtaskError> {
        let (program, said) = (self.checkout.join("check"), self.path("said"));
        let file = File::create(&said).map_err(XtaskError::file("creating", &said))?;
        let mut command = Command::new(&program);
        command.arg(test).current_dir(&self.checkout).stdin(Stdio::null());
        command.stdout(file).stderr(Stdio::null()).envs(variable);
        command.env("HOST_OPTIONS", self.path("local.config"));
        let ended = watchdog::run(&mut command, self.mark(), LONGEST)?;
        let said = fs::read(&said).map_err(XtaskError::file("reading", &said))?;
        if ended.is_none() {
            self.detach()?;
            return Ok(Outcome::Failed(format!("it did not end within {} s", LONGEST.as_secs())));
        }
        let said = String::from_utf8_lossy(&said);
        let outcome = parse(test, &said);
        if outcome == Outcome::Skipped {
            *reasons.0.entry(reason(&said)).or_default() += 1;
        }
        Ok(outcome)
    }

    /// Removes the mounts and the loop devices of a test that was killed.
    pub(super) fn detach(&self) -> Result<(), XtaskError> {
        let path = Path::new("/proc/self/mounts");
        let mounts = fs::read_to_string(path).map_err(XtaskError::file("reading", path))?;
        let place = self.folder.path().display().to_string();
        let own = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let mut own: Vec<&str> = own.filter(|mount| mount.starts_with(&place)).collect();
        own.reverse();
        for mount in own {
            build(Path::new("/"), "umount", &["--lazy", mount])?;
        }
        let list =
            output(Path::new("/"), "losetup", &["--noheadings", "--output", "NAME,BACK-FILE"])?;
        for line in
            String::from_utf8_lossy(&list.stdout).lines().filter(|line| line.contains(&place))
        {
            let device = line.split_whitespace().next().unwrap_or_default();
            build(Path::new("/"), "losetup", &["--detach", device])?;
        }
        Ok(())
    }

    /// Returns the mark of all processes of the tests.
    pub(super) fn mark(&self) -> Mark<'_> {
        Mark { name: MARK, value: self.folder.path().as_os_str() }
    }

    /// Returns a path in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Reasons {
    /// Prints the reasons, the most frequent one first.
    pub(super) fn say(self, results: &mut Results<'_>) -> Result<(), XtaskError> {
        let mut reasons: Vec<_> = self.0.into_iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(*count));
        reasons
            .iter()
            .try_for_each(|(reason, count)| results.say(&format!("{count} skipped: {reason}")))
    }
}

/// Returns the tests of the group `quick` from a list of `NUMBER GROUP..`.
fn quick(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let quick = lines.filter(|line| line.split_whitespace().skip(1).any(|group| group == "quick"));
    quick.filter_map(|line| Some(format!("generic/{}", line.split_whitespace().next()?))).collect()
}

/// Returns why a test was not run.
fn reason(said: &str) -> String {
    let reason = said.lines().find_map(|line| line.split_once("[not run]"));
    reason.map_or("no reason", |(_, reason)| reason.trim()).to_owned()
}

/// Parses the output of `check` for a test.
fn parse(test: &str, said: &str) -> Outcome {
    let line = said.lines().find_map(|line| line.strip_prefix(test)).unwrap_or_default();
    // A test that ran before has its last time in front, as `5s ... - output mismatch`.
    let line = line.split_once(" ... ").map_or(line, |(_, line)| line).trim();
    let is_in = |name: &str| {
        let list = said.lines().find_map(|line| line.strip_prefix(name));
        list.is_some_and(|list| list.split_whitespace().any(|own| own == test))
    };
    // The list `Ran:` also has the tests of the other two.
    if is_in("Failures:") {
        let differs =
            said.lines().find(|line| line.trim_start().starts_with('+') && !line.contains("+++"));
        Outcome::Failed(format!("{line} {}", differs.unwrap_or_default().trim()))
    } else if is_in("Not run:") {
        Outcome::Skipped
    } else if is_in("Ran:") {
        Outcome::Passed
    } else {
        let last = said.trim_end().lines().last().unwrap_or_default();
        Outcome::Failed(format!("it did not end: {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_tests_are_those_of_their_group() {
        let list = "# a comment quick\n001 auto quick rw\n002 auto quicker\n\n003 quick\n";
        assert_eq!(quick(list), ["generic/001", "generic/003"]);
    }

    #[test]
    fn results_are_read() {
        let said =
            "FSTYP -- fuse\n\ngeneric/001 1s ...  1s\nRan: generic/001\nPassed all 1 tests\n";
        assert_eq!(parse("generic/001", said), Outcome::Passed);
        let said = "generic/004 [not run] no O_TMPFILE\nRan: generic/004\nNot run: generic/004\nPassed all 1 tests\n";
        assert_eq!(parse("generic/004", said), Outcome::Skipped);
        assert_eq!(reason(said), "no O_TMPFILE");
        let said = "generic/020       - output mismatch (see out.bad)\n    --- tests/out\n    +++ out.bad\n    @@ -1 +1 @@\n    \
                    -a\n    +b\n\nRan: generic/020\nFailures: generic/020\nFailed 1 of 1 tests\n";
        let failed = Outcome::Failed("- output mismatch (see out.bad) +b".to_owned());
        assert_eq!(parse("generic/020", said), failed);
        let again = said.replacen("generic/020       -", "generic/020 5s ... -", 1);
        assert_eq!(parse("generic/020", &again), failed);
        assert_eq!(parse("generic/020", "a\nb\n"), Outcome::Failed("it did not end: b".to_owned()));
    }
}
