//! The results of a suite, compared with the list of checks that are expected to fail.

use crate::error::XtaskError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Skipped,
    /// With what the script says about it.
    Failed(String),
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

/// The results so far.
pub(super) struct Results<'a> {
    name: &'static str,
    only: Option<&'a str>,
    expected: BTreeMap<String, String>,
    /// Checks that are expected to fail and have not been run.
    unseen: BTreeSet<String>,
    tally: Tally,
    out: &'a mut dyn Write,
}

impl<'a> Results<'a> {
    /// Reads the list of a suite.
    pub(super) fn new(
        name: &'static str,
        only: Option<&'a str>,
        out: &'a mut dyn Write,
    ) -> Result<Self, XtaskError> {
        let expected = expected(name)?;
        let unseen = expected.keys().cloned().collect();
        Ok(Self { name, only, expected, unseen, tally: Tally::default(), out })
    }

    /// Returns the filter of the names of checks that are to be run.
    pub(super) fn wants(&self) -> impl Fn(&str) -> bool + use<'a> {
        let only = self.only;
        move |name| only.is_none_or(|part| name.contains(part))
    }

    /// Returns whether only some checks are to be run.
    pub(super) const fn has_filter(&self) -> bool {
        self.only.is_some()
    }

    /// Counts a result, and prints it if it is unexpected.
    pub(super) fn take(&mut self, key: &str, outcome: &Outcome) -> Result<(), XtaskError> {
        self.unseen.remove(key);
        let line = judge(&mut self.tally, outcome, self.expected.get(key), key);
        line.map_or(Ok(()), |line| self.say(&line))
    }

    /// Counts a failure that has been shown not to be Weir's, and prints it with the place where it also fails.
    pub(super) fn excuse(&mut self, key: &str, words: &str, place: &str) -> Result<(), XtaskError> {
        self.unseen.remove(key);
        self.tally.expected += 1;
        self.say(&format!("fails {place} too: {key} {words}"))
    }

    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }

    /// Prints the totals and returns them.
    pub(super) fn end(mut self) -> Result<Tally, XtaskError> {
        if let (Some(only), true) = (self.only, self.tally == Tally::default()) {
            let name = self.name;
            return Err(XtaskError::Suite(format!(
                "--only {only}: no check of {name} has this in its name"
            )));
        }
        // An entry of a check that is gone would excuse another one of that name.
        let gone =
            if self.only.is_none() { std::mem::take(&mut self.unseen) } else { BTreeSet::new() };
        for key in gone {
            self.tally.unexpected += 1;
            self.say(&format!(
                "GONE {key}, which was expected to fail: the suite has no such check"
            ))?;
        }
        self.say(&format!("{}: {}", self.name, self.tally))?;
        Ok(self.tally)
    }

    /// Prints a line.
    pub(super) fn say(&mut self, line: &str) -> Result<(), XtaskError> {
        let system = |source| XtaskError::System { doing: "writing the output", source };
        writeln!(self.out, "{line}").map_err(system)
    }
}

impl Tally {
    /// Returns the results that an earlier tally does not have.
    pub(super) const fn since(self, before: &Self) -> Self {
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

/// Begins the reason of a check whose result depends on chance.
const EITHER: &str = "either: ";
/// Separates a check from its reason.
const SEPARATOR: &str = " | ";

/// Returns the checks that are expected to fail, with their reasons: lines of `CHECK | REASON`.
pub(super) fn expected(name: &str) -> Result<BTreeMap<String, String>, XtaskError> {
    let path = crate::root().join("xtask/suites").join(format!("{name}.txt"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_matches_nothing_is_an_error() {
        let mut out = Vec::new();
        let results = Results::new("fsx", Some("no-such-check"), &mut out).expect("a list");
        let said = results.end().expect_err("it is an error").to_string();
        assert_eq!(said, "--only no-such-check: no check of fsx has this in its name");
        let mut results = Results::new("fsx", Some("fsx-a"), &mut out).expect("a list");
        results.take("fsx-aio", &Outcome::Skipped).expect("it is counted");
        assert_eq!(results.end().expect("a tally").skipped, 1);
    }

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
}
