//! Results in the form of the Test Anything Protocol: `ok 1`, `not ok 2 - words`, `1..2`.

use super::results::Outcome;
use crate::error::XtaskError;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The longest time of a script or a client, in seconds.
const LONGEST: &str = "600";

/// Runs a script in a folder. Returns its checks by number; number 0 is the script as a whole.
pub(super) fn run(script: &Path, folder: &Path) -> Result<Vec<(u64, Outcome)>, XtaskError> {
    let mut command = bounded("/bin/sh");
    command.arg(script).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(XtaskError::file("running", script))?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns a command that is ended after [`LONGEST`] seconds, so that one that hangs fails.
pub(super) fn bounded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg(LONGEST).arg(program);
    command
}

/// Parses the output of a script. Checks that are announced and missing have failed.
pub(super) fn parse(text: &str) -> Vec<(u64, Outcome)> {
    let mut checks = Vec::new();
    let mut announced = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("1..") {
            let count = rest.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
            announced = count;
            if count == Some(0) {
                checks.push((0, Outcome::Skipped));
            }
            continue;
        }
        let (is_ok, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        let (number, words) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let number = number.parse().unwrap_or(checks.len() as u64 + 1);
        let directive = words.split_once('#').map_or("", |(_, own)| own.trim_start());
        let directive = directive.to_ascii_uppercase();
        // The suite marks a check that may fail as TODO.
        let outcome = if directive.starts_with("SKIP") || !is_ok && directive.starts_with("TODO") {
            Outcome::Skipped
        } else if is_ok {
            Outcome::Passed
        } else {
            Outcome::Failed(words.trim_start_matches("- ").to_owned())
        };
        checks.push((number, outcome));
    }
    match announced {
        None => checks.push((0, Outcome::Failed("it announced no checks".to_owned()))),
        Some(count) => {
            let numbers: Vec<u64> =
                checks.iter().map(|(number, _)| *number).filter(|own| *own > 0).collect();
            let ran: BTreeSet<u64> = numbers.iter().copied().filter(|own| *own <= count).collect();
            let missing = count - ran.len() as u64;
            if missing > 0 {
                checks
                    .push((0, Outcome::Failed(format!("{missing} of {count} checks did not run"))));
            }
            if numbers.len() > ran.len() {
                let more = numbers.len() - ran.len();
                checks.push((
                    0,
                    Outcome::Failed(format!("{more} checks ran twice or were not announced")),
                ));
            }
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_and_missing_ones_are_failures() {
        let text = "1..6\nok 1\nnot ok 2 - tried 'a', got b\nok 3 # SKIP no chflags\nnot ok 4 # TODO x\n\
                    noise\nok 5 # TODO y\n";
        let failed = |words: &str| Outcome::Failed(words.to_owned());
        let expect = [
            (1, Outcome::Passed),
            (2, failed("tried 'a', got b")),
            (3, Outcome::Skipped),
            (4, Outcome::Skipped),
            (5, Outcome::Passed),
            (0, failed("1 of 6 checks did not run")),
        ];
        assert_eq!(parse(text), expect);
        assert_eq!(parse("1..0 # SKIP not here\n"), [(0, Outcome::Skipped)]);
        assert_eq!(parse(""), [(0, failed("it announced no checks"))]);
        // A check that ran twice does not stand for one that did not run.
        let twice = parse("1..2\nok 1\nok 1\nok 5\n");
        let more = failed("2 checks ran twice or were not announced");
        assert_eq!(twice[3..], [(0, failed("1 of 2 checks did not run")), (0, more)]);
    }
}
