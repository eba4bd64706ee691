//! MariaDB on `weir mount`: the tests of its storage engines, with all files of their servers on the mount.
//!
//! Servers, tests and their runner are the installed ones (the Debian packages `mariadb-server` and
//! `mariadb-test`). The tests that the package lists as unstable are not run.

use super::results::{Outcome, Results};
use super::running::Running;
use super::watchdog::{self, Mark};
use super::{LAYOUT, MOUNT, build};
use crate::error::XtaskError;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The servers do not run as root.
const USER: &str = "mysql";
/// The folder of the tests, and the suites in it: those of the engines with files of their own.
const TESTS: &str = "/usr/share/mysql/mysql-test";
pub(super) const SUITES: [&str; 3] = ["archive", "maria", "innodb"];
/// The longest time of a suite. Each test has a limit of its own.
const LONGEST: Duration = Duration::from_secs(7200);

/// Runs the suites, each on a new mount.
pub(super) fn run(weir: &Path, results: &mut Results<'_>) -> Result<(), XtaskError> {
    let wants = results.wants();
    for suite in SUITES.into_iter().filter(|suite| wants(suite)) {
        let before = results.tally();
        for (test, outcome) in run_suite(weir, suite)? {
            results.take(&test, &outcome)?;
        }
        results.say(&format!("{suite}: {}", results.tally().since(&before)))?;
    }
    Ok(())
}

/// Returns the results of the tests of a suite.
fn run_suite(weir: &Path, suite: &str) -> Result<Vec<(String, Outcome)>, XtaskError> {
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let place = running.path("mount/suite/var").display().to_string();
    build(Path::new("/"), "chmod", &["755", &running.path("").display().to_string()])?;
    build(Path::new("/"), "install", &["-d", "-o", USER, "-m", "755", &place])?;
    let said = running.path("said");
    let file = File::create(&said).map_err(XtaskError::file("creating", &said))?;
    let mut command = Command::new("runuser");
    command.args(["-u", USER, "--", "./mysql-test-run", "--force", "--max-test-fail=0"]);
    command.args(["--retry=0", "--testcase-timeout=5", "--parallel=2"]);
    command.args(["--skip-test-list=unstable-tests", "--suite", suite]);
    command.arg(format!("--vardir={place}")).current_dir(TESTS);
    command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    let mark = Mark { name: "WEIR_SUITE_OF", value: said.as_os_str() };
    let ended = watchdog::run(&mut command, mark, LONGEST)?;
    // The servers of a run that was ended.
    watchdog::end(mark)?;
    let said = fs::read(&said).map_err(XtaskError::file("reading", &said))?;
    let said = String::from_utf8_lossy(&said);
    let mut tests = parse(&said);
    if tests.is_empty() {
        let last = said.trim_end().lines().last().unwrap_or_default();
        return Err(XtaskError::Suite(format!("mysql-test-run ran no tests: {last}")));
    }
    if let Some(words) = broken_off(ended, &said, &tests) {
        tests.push((suite.to_owned(), Outcome::Failed(words)));
    }
    running.stop().map(|()| tests)
}

/// Returns why a run is none of all tests, if no failed test says so.
fn broken_off(
    ended: Option<ExitStatus>,
    said: &str,
    tests: &[(String, Outcome)],
) -> Option<String> {
    let Some(status) = ended else {
        return Some(format!("it did not end within {} s", LONGEST.as_secs()));
    };
    let has_failed = tests.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
    let is_whole = status.success() && said.lines().any(|line| line.starts_with("Completed: "));
    let last = said.trim_end().lines().last().unwrap_or_default();
    (!is_whole && !has_failed).then(|| format!("mysql-test-run: {status}: {last}"))
}

/// Parses the lines of tests: `SUITE.TEST 'COMBINATION' w1 [ pass ] 12`.
fn parse(said: &str) -> Vec<(String, Outcome)> {
    let outcome = |line: &str| {
        let (words, rest) = line.split_once(" [ ")?;
        let (result, rest) = rest.split_once(" ]")?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let (first, others) = words.split_first()?;
        let is_test = first
            .split_once('.')
            .is_some_and(|(suite, name)| SUITES.contains(&suite) && !name.is_empty());
        let others = others.iter().filter(|word| word.starts_with('\''));
        let name: Vec<&str> = std::iter::once(*first).chain(others.copied()).collect();
        let outcome = match result {
            "pass" => Outcome::Passed,
            "skipped" | "disabled" => Outcome::Skipped,
            _ => Outcome::Failed(format!("{result}{rest}")),
        };
        is_test.then(|| (name.join(" "), outcome))
    };
    said.lines().filter_map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_breaks_off_is_no_success() {
        use std::os::unix::process::ExitStatusExt;
        let (good, bad) = (ExitStatus::from_raw(0), ExitStatus::from_raw(1 << 8));
        let passed = [("maria.a".to_owned(), Outcome::Passed)];
        let failed = [("maria.a".to_owned(), Outcome::Failed(String::new()))];
        let completed = "maria.a [ pass ]\nCompleted: All 1 tests were successful.\n";
        assert_eq!(broken_off(Some(good), completed, &passed), None);
        assert_eq!(broken_off(Some(bad), "Completed: Failed 1/1 tests\n", &failed), None);
        let words = broken_off(Some(bad), "Only 1 of 2 completed.\n", &passed);
        assert!(words.is_some_and(|words| words.ends_with("Only 1 of 2 completed.")));
        assert!(broken_off(Some(good), "maria.a [ pass ]\n", &passed).is_some());
        assert!(broken_off(None, completed, &passed).is_some());
    }

    #[test]
    fn results_are_read() {
        let said = "worker[1] mysql-test-run: Using server port 16000\n\
            innodb.alter 'COPY,STRICT'      w3 [ pass ]    501\n\
            maria.maria-recovery                     [ skipped ]  Requires debug build\n\
            innodb.bug                       w1 [ fail ]\n        Test ended at 2026\n\
            innodb.slow                      w2 [ fail ]  timeout after 300 seconds\n";
        let failed = |words: &str| Outcome::Failed(words.to_owned());
        let expect = [
            ("innodb.alter 'COPY,STRICT'", Outcome::Passed),
            ("maria.maria-recovery", Outcome::Skipped),
            ("innodb.bug", failed("fail")),
            ("innodb.slow", failed("fail  timeout after 300 seconds")),
        ];
        assert_eq!(parse(said), expect.map(|(name, outcome)| (name.to_owned(), outcome)));
    }
}
