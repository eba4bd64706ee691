//! Test suites that others wrote, run unchanged from a checkout that the caller has fetched.
//!
//! Nothing of a suite is kept here but the list of its checks that are expected to fail, each with its
//! reason, in `xtask/suites/NAME.txt`. A check that fails and is not in the list, or passes and is in
//! it, makes the run fail.
//!
//! | module | holds |
//! |---|---|
//! | `tap` | the results of programs that print the Test Anything Protocol |
//! | `tester` | the test client of nbd-server |
//! | `azurite` | the tests of Azurite |
//! | `running` | the program under test |

mod azurite;
mod running;
mod tap;
mod tester;

use crate::error::XtaskError;
use running::Running;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tap::Outcome;

/// A suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// POSIX conformance of a file system, on `weir mount`: github.com/pjd/pjdfstest. Needs root.
    Pjdfstest,
    /// The test client of nbd-server, on `weir serve`: github.com/NetworkBlockDevice/nbd.
    Nbd,
    /// The live tests of a blob service, on `weir serve`: github.com/Azure/Azurite. Needs Node.js and npm.
    Azurite,
}

/// A volume without limits, so that a suite takes no longer than it has to.
const LAYOUT: &str = "[[volume]]\nname = \"suite\"\nsize = \"8 GiB\"\nunlimited = true\n";

/// A run of a suite.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The suite.
    pub suite: Suite,
    /// Its checkout. The suite is built there.
    pub checkout: &'a Path,
    /// The program to test.
    pub weir: &'a Path,
    /// Run only scripts whose path contains this.
    pub only: Option<&'a str>,
}

/// The results of a suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks that passed.
    pub passed: u64,
    /// Checks that failed, and were expected to.
    pub expected: u64,
    /// Checks that failed, or passed although they were expected to fail.
    pub unexpected: u64,
    /// Checks that the suite skipped.
    pub skipped: u64,
}

/// Builds and runs a suite, and prints the unexpected results and the totals.
///
/// # Errors
///
/// [`XtaskError`] if the suite cannot be built or run.
pub fn run(plan: &Plan<'_>, out: &mut dyn Write) -> Result<Tally, XtaskError> {
    let weir = absolute(plan.weir)?;
    let checkout = absolute(plan.checkout)?;
    let expected = expected(plan.suite)?;
    let mut tally = Tally::default();
    let mut unseen: BTreeSet<&str> = expected.keys().map(String::as_str).collect();
    let mut take = |tally: &mut Tally, key: &str, outcome: &Outcome, out: &mut dyn Write| {
        unseen.remove(key);
        let line = judge(tally, outcome, expected.get(key), key);
        line.map_or(Ok(()), |line| say(out, &line))
    };
    let is_wanted = |name: &str| plan.only.is_none_or(|part| name.contains(part));
    match plan.suite {
        Suite::Pjdfstest => {
            let steps =
                [("autoreconf", &["-ifs"][..]), ("./configure", &[]), ("make", &["pjdfstest"])];
            steps.iter().try_for_each(|(program, args)| build(&checkout, program, args))?;
            let args = ["mount", "{}/layout.toml", "{}/mount"];
            let running = Running::start(&weir, LAYOUT, &args)?;
            let place = running.path("mount/suite/tests");
            fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
            let tests = checkout.join("tests");
            let mut scripts = Vec::new();
            find(&tests, &mut scripts)?;
            scripts.sort();
            for script in scripts {
                let name = script.strip_prefix(&tests).unwrap_or(&script).display().to_string();
                for (check, outcome) in
                    if is_wanted(&name) { tap::run(&script, &place)? } else { Vec::new() }
                {
                    take(&mut tally, &format!("{name}:{check}"), &outcome, out)?;
                }
            }
            running.stop()?;
        }
        Suite::Nbd => {
            let steps = [
                ("./autogen.sh", &[][..]),
                ("./configure", &[]),
                ("make", &[]),
                ("make", &["-C", "tests/run", "nbd-tester-client"]),
            ];
            steps.iter().try_for_each(|(program, args)| build(&checkout, program, args))?;
            for check in tester::CHECKS.iter().filter(|check| is_wanted(check.name)) {
                take(&mut tally, check.name, &check.run(&checkout, &weir)?, out)?;
            }
        }
        Suite::Azurite => {
            azurite::prepare(&checkout)?;
            for file in azurite::FILES.into_iter().filter(|file| is_wanted(file)) {
                let before = tally;
                for (title, outcome) in azurite::run(&checkout, &weir, file)? {
                    take(&mut tally, &format!("{file}: {title}"), &outcome, out)?;
                }
                say(out, &format!("{file}: {}", tally.since(&before)))?;
            }
        }
    }
    // An entry of a check that is gone would excuse another one of that name.
    for key in unseen.into_iter().filter(|_| plan.only.is_none()) {
        tally.unexpected += 1;
        say(out, &format!("GONE {key}, which was expected to fail: the suite has no such check"))?;
    }
    say(out, &format!("{}: {tally}", name_of(plan.suite)))?;
    Ok(tally)
}

impl Tally {
    /// Returns the results that an earlier tally does not have.
    const fn since(self, before: &Self) -> Self {
        Self {
            passed: self.passed - before.passed,
            expected: self.expected - before.expected,
            unexpected: self.unexpected - before.unexpected,
            skipped: self.skipped - before.skipped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, expected, unexpected, skipped } = self;
        write!(
            f,
            "{passed} passed, {unexpected} failed, {expected} failed as expected, {skipped} skipped"
        )
    }
}

/// Counts a result. Returns a line about an unexpected one.
fn judge(
    tally: &mut Tally,
    outcome: &Outcome,
    reason: Option<&String>,
    key: &str,
) -> Option<String> {
    match (outcome, reason) {
        (Outcome::Passed, None) => tally.passed += 1,
        (Outcome::Skipped, _) => tally.skipped += 1,
        (_, Some(reason)) if reason.starts_with(EITHER) => tally.skipped += 1,
        (Outcome::Failed(_), Some(_)) => tally.expected += 1,
        (Outcome::Failed(words), None) => {
            tally.unexpected += 1;
            return Some(format!("FAILED {key} {words}"));
        }
        (Outcome::Passed, Some(reason)) => {
            tally.unexpected += 1;
            return Some(format!("PASSED {key}, which was expected to fail: {reason}"));
        }
    }
    None
}

fn name_of(suite: Suite) -> &'static str {
    match suite {
        Suite::Pjdfstest => "pjdfstest",
        Suite::Nbd => "nbd",
        Suite::Azurite => "azurite",
    }
}

/// Begins the reason of a check whose result depends on chance.
const EITHER: &str = "either: ";
/// Separates a check from its reason.
const SEPARATOR: &str = " | ";

/// Returns the checks that are expected to fail, with their reasons: lines of `CHECK | REASON`.
fn expected(suite: Suite) -> Result<BTreeMap<String, String>, XtaskError> {
    let path = crate::root().join("xtask/suites").join(format!("{}.txt", name_of(suite)));
    let text = fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))?;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let pair = line.split_once(SEPARATOR);
        let pair = pair.map(|(key, reason)| (key.to_owned(), reason.to_owned()));
        let place = path.display();
        pair.ok_or_else(|| {
            XtaskError::Suite(format!("{place}: {line:?} has no reason after {SEPARATOR:?}"))
        })
    };
    lines.map(pair).collect()
}

fn output(folder: &Path, program: &str, args: &[&str]) -> Result<Output, XtaskError> {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().map_err(XtaskError::file("starting", Path::new(program)))
}

/// Returns whether a program succeeds.
fn ran(folder: &Path, program: &str, args: &[&str]) -> Result<bool, XtaskError> {
    output(folder, program, args).map(|output| output.status.success())
}

fn build(folder: &Path, program: &str, args: &[&str]) -> Result<(), XtaskError> {
    let output = output(folder, program, args)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    let last = said.lines().last().unwrap_or_default().to_owned();
    Err(XtaskError::Suite(format!("{program} failed in {}: {last}", folder.display())))
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

fn absolute(path: &Path) -> Result<PathBuf, XtaskError> {
    path.canonicalize().map_err(XtaskError::file("finding", path))
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), XtaskError> {
    writeln!(out, "{line}")
        .map_err(|source| XtaskError::System { doing: "writing the output", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unexpected_results_are_reported() {
        let mut tally = Tally::default();
        let reason = "the reason".to_owned();
        let failed = || Outcome::Failed("got 1".to_owned());
        assert_eq!(judge(&mut tally, &Outcome::Passed, None, "a:1"), None);
        assert_eq!(judge(&mut tally, &Outcome::Skipped, None, "a:2"), None);
        assert_eq!(judge(&mut tally, &failed(), Some(&reason), "a:3"), None);
        let line = judge(&mut tally, &failed(), None, "a:4");
        assert_eq!(line.as_deref(), Some("FAILED a:4 got 1"));
        let line = judge(&mut tally, &Outcome::Passed, Some(&reason), "a:5");
        let expect = "PASSED a:5, which was expected to fail: the reason";
        assert_eq!(line.as_deref(), Some(expect));
        let either = "either: it does not wait".to_owned();
        assert_eq!(judge(&mut tally, &Outcome::Passed, Some(&either), "a:6"), None);
        assert_eq!(judge(&mut tally, &failed(), Some(&either), "a:7"), None);
        assert_eq!(tally, Tally { passed: 1, expected: 1, unexpected: 2, skipped: 3 });
    }

    #[test]
    fn each_suite_has_a_list() {
        assert!(expected(Suite::Pjdfstest).expect("a list").is_empty());
        let nbd = expected(Suite::Nbd).expect("a list");
        assert!(nbd.keys().all(|key| tester::CHECKS.iter().any(|own| own.name == key)), "{nbd:?}");
        let azurite = expected(Suite::Azurite).expect("a list");
        let has_file = |key: &str| {
            key.split_once(": ").is_some_and(|(file, _)| azurite::FILES.contains(&file))
        };
        assert!(
            azurite.iter().all(|(key, reason)| has_file(key) && !reason.is_empty()),
            "{azurite:?}"
        );
    }
}
