//! The page-blob tests of the Azure SDK for Python, on `weir serve`.
//!
//! The checkout is the SDK's package of sources, which has its tests, or the folder of the package in the
//! SDK's repository. The tests are unchanged. `xtask/suites/azure_sdk_python.py` stands in for the helpers of
//! that repository, and has the tests use the account of the server over HTTP, without recordings.

use super::results::{Outcome, Results};
use super::running::{Running, free_port};
use super::{build, by_file, tap};
use crate::error::XtaskError;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The files of tests.
pub(super) const FILES: [&str; 2] = ["test_page_blob", "test_page_blob_async"];

/// The packages that the tests import besides the SDK itself.
const PACKAGES: [&str; 4] = ["azure-mgmt-storage", "pytest", "pytest-asyncio", "requests"];

/// The tests set tiers, which blobs without limits do not have.
const LAYOUT: &str = "edition = \"azure-now\"\n[host]\nunlimited = true\n[blob]\n";

/// The account, and its key.
const ACCOUNT: [&str; 2] = ["suite", "MDEyMzQ1Njc4OWFiY2RlZg=="];

/// Runs all files, and prints the results of each.
pub(super) fn run_all(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    prepare(checkout)?;
    by_file(&FILES, results, |file| run(checkout, weir, file))
}

/// Installs the SDK of the checkout and the packages of its tests in the checkout, unless that has been done.
fn prepare(checkout: &Path) -> Result<(), XtaskError> {
    if checkout.join("venv/bin/pytest").exists() {
        return Ok(());
    }
    build(checkout, "python3", &["-m", "venv", "venv"])?;
    let pip = checkout.join("venv/bin/pip").display().to_string();
    let mut args = vec!["install", "--quiet", "--disable-pip-version-check", ".[aio]"];
    args.extend(PACKAGES);
    build(checkout, &pip, &args)
}

/// Runs a file of tests on a new server. Returns its tests by name.
fn run(checkout: &Path, weir: &Path, file: &str) -> Result<Vec<(String, Outcome)>, XtaskError> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let [account, key] = ACCOUNT;
    let layout = format!("{LAYOUT}[[blob.account]]\nname = \"{account}\"\nkey = \"{key}\"\n");
    let args = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd", "--blob", &address];
    let running = Running::start(weir, &layout, &args)?;
    let report = running.path("results");
    let pytest = checkout.join("venv/bin/pytest");
    let mut command = tap::bounded(&pytest);
    command.args(["-p", "azure_sdk_python", "-p", "no:cacheprovider", "--quiet"]);
    // pytest rewrites assertions to explain those that fail. A test has a million that fail and are caught.
    command.args(["--override-ini", "asyncio_mode=auto", "--assert=plain"]);
    command.arg(format!("tests/{file}.py")).current_dir(checkout);
    aim(&mut command, &address);
    command.env("WEIR_SUITE_RESULTS", &report);
    let output = command.output().map_err(XtaskError::file("starting", &pytest))?;
    let report = fs::read_to_string(&report).unwrap_or_default();
    running.stop()?;
    Ok(parse(&report, output.status, &String::from_utf8_lossy(&output.stdout)))
}

/// Points the tests at the server.
fn aim(command: &mut Command, address: &str) {
    let [account, key] = ACCOUNT;
    command
        .env("PYTHONPATH", crate::root().join("xtask/suites"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WEIR_SUITE_URL", format!("http://{address}/{account}"))
        .env("WEIR_SUITE_KEY", key)
        .stdin(Stdio::null());
}

/// Parses the report of the plugin, which has a JSON object per test. pytest ends with code 0 or 1 if it has
/// run all tests.
fn parse(report: &str, status: ExitStatus, said: &str) -> Vec<(String, Outcome)> {
    let tests: Option<Vec<_>> = report.lines().map(parse_test).collect();
    let whole = |words: String| ("as a whole".to_owned(), Outcome::Failed(words));
    let Some(mut tests) = tests else {
        return vec![whole("the report is incomplete".to_owned())];
    };
    if !matches!(status.code(), Some(0 | 1)) {
        let last = said.trim_end().lines().last().unwrap_or_default();
        tests.push(whole(format!("pytest did not run all tests: {status}: {last}")));
    } else if tests.iter().all(|(_, outcome)| *outcome == Outcome::Skipped) {
        tests.push(whole("the file has no test that ran".to_owned()));
    }
    tests
}

fn parse_test(line: &str) -> Option<(String, Outcome)> {
    let report: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let outcome = match text("outcome")? {
        "passed" => Outcome::Passed,
        "skipped" => Outcome::Skipped,
        _ => Outcome::Failed(text("words")?.lines().next().unwrap_or_default().to_owned()),
    };
    Some((text("test")?.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn reports_of_the_plugin_are_parsed() {
        let code = |code: i32| ExitStatus::from_raw(code << 8);
        let failed = |words: &str| Outcome::Failed(words.to_owned());
        let passed = r#"{ "test": "a", "outcome": "passed", "words": "" }"#;
        let skipped = r#"{ "test": "b", "outcome": "skipped", "words": "from a recording only" }"#;
        let broken = r#"{ "test": "c", "outcome": "failed", "words": "got 1\nwanted 2" }"#;
        let all = format!("{passed}\n{skipped}\n{broken}\n");
        let expect = [("a", Outcome::Passed), ("b", Outcome::Skipped), ("c", failed("got 1"))];
        let expect = expect.map(|(test, outcome)| (test.to_owned(), outcome));
        assert_eq!(parse(&all, code(1), ""), expect);
    }

    #[test]
    fn a_run_that_is_cut_short_has_failed() {
        let code = |code: i32| ExitStatus::from_raw(code << 8);
        let passed = r#"{ "test": "a", "outcome": "passed", "words": "" }"#;
        let whole =
            |report: &str, status: ExitStatus| match parse(report, status, "x\nno disk\n").pop() {
                Some((name, Outcome::Failed(words))) => format!("{name}: {words}"),
                other => format!("{other:?}"),
            };
        let expect = "as a whole: pytest did not run all tests: exit status: 124: no disk";
        assert_eq!(whole(passed, code(124)), expect);
        let skipped = r#"{ "test": "b", "outcome": "skipped", "words": "" }"#;
        assert_eq!(whole(skipped, code(0)), "as a whole: the file has no test that ran");
        assert_eq!(whole("", code(0)), "as a whole: the file has no test that ran");
        assert_eq!(whole(r#"{ "test": "a", "#, code(0)), "as a whole: the report is incomplete");
    }
}
