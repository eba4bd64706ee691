//! Azurite's own tests of the blob service, on `weir serve`.
//!
//! The checkout can aim its tests at an existing account (`AZURITE_LIVE_TEST_CONNECTION_STRING`). A few
//! files build their URLs from the host and the port of the server that they did not start;
//! `azurite.patch` has them take both from the environment.

use super::results::{Outcome, Results};
use super::running::{Running, free_port};
use super::{build, by_file, patch, tap};
use crate::error::XtaskError;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The files that ask a server. The others test Azurite's own code, need HTTPS with tokens of Entra ID, or
/// start several servers.
pub(super) const FILES: [&str; 12] = [
    "apis/pageblob",
    "apis/blob",
    "apis/container",
    "apis/blockblob",
    "apis/appendblob",
    "apis/service",
    "apis/blobbatch",
    "sas",
    "blobCorsRequest",
    "specialnaming",
    "blockblob.highlevel",
    "authentication",
];

/// The published key of the development account.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The second account is that of the tests of copies between accounts.
const LAYOUT: &str = "[blob]\nunlimited = true\n[[blob.account]]\nname = \"devstoreaccount2\"\n\
    key = \"MTAwCjE2NQoyMjUKMTAzCjIxOAoyNDEKNDAKNzgKMTkxCjE3OAoyMTQKMTY5CjIxMwo2MQoyNTIKMTQxCg==\"\n";

/// Runs all files, and prints the results of each.
pub(super) fn run_all(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    prepare(checkout)?;
    by_file(&FILES, results, |file| run(checkout, weir, file))
}

/// Patches the checkout and installs its packages, unless that has been done.
fn prepare(checkout: &Path) -> Result<(), XtaskError> {
    patch(checkout, "azurite.patch")?;
    if checkout.join("node_modules/.bin/mocha").exists() {
        return Ok(());
    }
    // The scripts of its packages build parts that the tests do not need.
    build(checkout, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
}

/// Runs a file of tests on a new server. Returns its tests by title.
fn run(checkout: &Path, weir: &Path, file: &str) -> Result<Vec<(String, Outcome)>, XtaskError> {
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let args = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd", "--blob", &address];
    let running = Running::start(weir, LAYOUT, &args)?;
    let results = running.path("results.json");
    let mocha = checkout.join("node_modules/.bin/mocha");
    let mut command = tap::bounded(&mocha);
    command.args([
        "--require",
        "ts-node/register",
        "--no-timeouts",
        "--exit",
        "--reporter",
        "json",
    ]);
    command.arg("--reporter-option").arg(format!("output={}", results.display()));
    command.arg(format!("tests/blob/{file}.test.ts")).current_dir(checkout);
    aim(&mut command, port);
    let output = command.output().map_err(XtaskError::file("starting", &mocha))?;
    let report = fs::read(&results).ok();
    running.stop()?;
    let tests = report.and_then(|report| parse(&report));
    let whole = |outcome: Outcome| vec![("as a whole".to_owned(), outcome)];
    let tests = match tests {
        None => whole(unreported(&output.stderr)),
        Some(tests) if tests.iter().all(|(_, outcome)| *outcome == Outcome::Skipped) => {
            whole(Outcome::Failed("the file has no test that ran".to_owned()))
        }
        Some(tests) => tests,
    };
    // Some titles have the address, and each server has another port.
    let plain = |(title, outcome): (String, _)| (title.replace(&address, "HOST:PORT"), outcome);
    Ok(tests.into_iter().map(plain).collect())
}

/// Returns the result of a file whose tests hung or could not begin.
fn unreported(said: &[u8]) -> Outcome {
    let said = String::from_utf8_lossy(said);
    let first: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
    Outcome::Failed(format!("mocha ended without a report. {}", first.join(" ")))
}

/// Points the tests at the server.
fn aim(command: &mut Command, port: u16) {
    let (account, url) = ("devstoreaccount1", format!("http://127.0.0.1:{port}"));
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={account};AccountKey={KEY};BlobEndpoint={url}/{account};"
    );
    command
        .env("AZURITE_LIVE_TEST_CONNECTION_STRING", connection)
        .env("AZURITE_LIVE_TEST_HOST", "127.0.0.1")
        .env("AZURITE_LIVE_TEST_PORT", port.to_string())
        // Types are not checked: the tests are not ours.
        .env("TS_NODE_TRANSPILE_ONLY", "true")
        // TypeScript 6 wants this said.
        .env("TS_NODE_COMPILER_OPTIONS", r#"{"rootDir":"."}"#)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
}

/// Parses the report of mocha. A hook that fails is a failed test of its own.
fn parse(report: &[u8]) -> Option<Vec<(String, Outcome)>> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let mut tests = Vec::new();
    for (list, outcome) in [("passes", Outcome::Passed), ("pending", Outcome::Skipped)] {
        for test in report.get(list)?.as_array()? {
            tests.push((title_of(test)?, outcome.clone()));
        }
    }
    for test in report.get("failures")?.as_array()? {
        let message = test.pointer("/err/message").and_then(Value::as_str).unwrap_or_default();
        let line = message.lines().next().unwrap_or_default();
        tests.push((title_of(test)?, Outcome::Failed(line.to_owned())));
    }
    Some(tests)
}

/// Returns the title of a test without the tags of the stores that it is for.
fn title_of(test: &Value) -> Option<String> {
    let words = test.get("title")?.as_str()?.split_whitespace();
    let words = words.filter(|word| !matches!(word.trim_end_matches(','), "@loki" | "@sql"));
    Some(words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_mocha_are_parsed() {
        let report = r#"{ "passes": [{ "title": "a b @loki @sql" }], "pending": [{ "title": "c" }],
            "failures": [{ "title": "d  @loki, @sql", "err": { "message": "got 1\nwanted 2" } },
                         { "title": "\"after each\" hook for \"e\"", "err": {} }] }"#;
        let failed = |text: &str| Outcome::Failed(text.to_owned());
        let expect = [
            ("a b", Outcome::Passed),
            ("c", Outcome::Skipped),
            ("d", failed("got 1")),
            ("\"after each\" hook for \"e\"", failed("")),
        ];
        let expect = expect.map(|(title, outcome)| (title.to_owned(), outcome));
        assert_eq!(parse(report.as_bytes()), Some(expect.into()));
        assert_eq!(parse(b"{}"), None);
    }
}
