//! sqllogictest, the tests that SQLite shares with other databases, with the database on `weir mount`.
//!
//! The runner is compiled with the installed library: the makefile of the suite compiles SQLite so that it
//! never syncs. `sqllogictest.patch` has the runner sync each commit and keep 16 pages in memory, so that
//! most reads and all commits reach the mount. After each statement, `PRAGMA integrity_check` must find nothing.

use super::results::{Outcome, Results};
use super::running::Running;
use super::{LAYOUT, MOUNT, build, patch, scripts, watchdog};
use crate::error::XtaskError;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The longest time of a script.
const LONGEST: Duration = Duration::from_secs(900);

/// Builds the runner, and runs the scripts on one mount.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    patch(checkout, "sqllogictest.patch")?;
    let tests = checkout.join("test");
    let paths = scripts(&tests, "test")?;
    // One script has no content.
    let paths = paths.iter().filter(|path| fs::metadata(path).is_ok_and(|own| own.len() > 0));
    let names = paths.filter_map(|path| path.strip_prefix(&tests).ok()?.to_str());
    let names: Vec<&str> = names.collect();
    let wants = results.wants();
    let chosen: Vec<&str> = match results.has_filter() {
        true => names.into_iter().filter(|name| wants(name)).collect(),
        false => selection(&names),
    };
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let runner = running.path("runner").display().to_string();
    let args = ["-O2", "-DOMIT_ODBC=1", "-o", &runner, "sqllogictest.c", "md5.c", "-lsqlite3"];
    build(&checkout.join("src"), "cc", &args)?;
    for name in chosen {
        results.take(name, &run_script(&tests.join(name), &running)?)?;
    }
    running.stop()
}

/// Returns the scripts of a run without a filter: all scripts but those of `random`, and of `index` the
/// first one in each folder, since the others repeat it with other random numbers.
fn selection<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut folders = BTreeSet::new();
    let is_chosen = |name: &&str| {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        match name.split('/').next() {
            Some("random") => false,
            Some("index") => folders.insert(folder.to_owned()),
            _ => true,
        }
    };
    names.iter().copied().filter(is_chosen).collect()
}

/// Runs a script with a new database.
fn run_script(script: &Path, running: &Running) -> Result<Outcome, XtaskError> {
    let database = running.path("mount/suite/database");
    let mut command = Command::new(running.path("runner"));
    command.args(["--verify", "--parameters", "integrity_check", "--connection"]);
    command.arg(&database).arg(script);
    let (ended, said) = watchdog::run_to_file(&mut command, &running.path("said"), LONGEST)?;
    if ended.is_none() {
        return Ok(Outcome::Failed(format!("it did not end within {} s", LONGEST.as_secs())));
    }
    // A script may remove all its tables, but the file stays.
    match fs::metadata(&database) {
        Ok(_) => fs::remove_file(&database).map_err(XtaskError::file("removing", &database))?,
        Err(error) => return Ok(Outcome::Failed(format!("it left no database: {error}"))),
    }
    Ok(parse(&said))
}

/// Parses the output of the runner, which has a line `N errors out of N tests in FILE - N skipped.` before or
/// after those of the errors. Its exit code is the number of errors modulo 256.
fn parse(said: &str) -> Outcome {
    let numbers = said.lines().find_map(|line| {
        let (errors, rest) = line.split_once(" errors out of ")?;
        let tests = rest.split_whitespace().next()?;
        Some((errors.parse::<u64>().ok()?, tests.parse::<u64>().ok()?))
    });
    match numbers {
        Some((0, 1..)) => Outcome::Passed,
        Some((0, 0)) => Outcome::Failed("it has no test that ran".to_owned()),
        Some((errors, tests)) => {
            let first = said.lines().find(|line| !line.contains(" errors out of "));
            let first = first.unwrap_or_default();
            Outcome::Failed(format!("{errors} errors out of {tests} tests: {first}"))
        }
        None => {
            let last = said.trim_end().lines().last().unwrap_or_default();
            Outcome::Failed(format!("it did not end: {last}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let failed = |words: &str| Outcome::Failed(words.to_owned());
        let good = "0 errors out of 1031 tests in a.test - 4 skipped. [integrity_check]\n";
        assert_eq!(parse(good), Outcome::Passed);
        // The exit code of these is 0.
        let bad = "a.test:5: wrong result\n256 errors out of 300 tests in a.test - 0 skipped.\n";
        assert_eq!(parse(bad), failed("256 errors out of 300 tests: a.test:5: wrong result"));
        let bad = "1 errors out of 9 tests in a.test - 0 skipped.\na.test:5: wrong result\n";
        assert_eq!(parse(bad), failed("1 errors out of 9 tests: a.test:5: wrong result"));
        let none = "0 errors out of 0 tests in a.test - 9 skipped.\n";
        assert_eq!(parse(none), failed("it has no test that ran"));
        let early = "runner: unable to connect to database\n";
        assert_eq!(parse(early), failed("it did not end: runner: unable to connect to database"));
    }

    #[test]
    fn a_run_takes_one_script_of_each_folder_of_indices() {
        let names = [
            "evidence/in1.test",
            "index/in/10/0.test",
            "index/in/10/1.test",
            "index/in/100/1.test",
            "random/expr/0.test",
            "select1.test",
        ];
        let chosen =
            ["evidence/in1.test", "index/in/10/0.test", "index/in/100/1.test", "select1.test"];
        assert_eq!(selection(&names), chosen);
    }
}
