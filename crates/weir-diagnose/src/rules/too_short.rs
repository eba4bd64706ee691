//! An observation that is too short to say what is usual.

use super::no_operations::missing_operations;
use super::rule::{BLIND, Candidate, Rule, source};
use crate::case::Case;
use crate::seconds::at_s;
use crate::system::Subject;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{grouped, time};

pub(super) const RULE: Rule = Rule {
    id: 404,
    name: "too-short",
    group: Group::Evidence,
    priority: 200,
    source: source::PRESIZE,
    finds: "there are too few samples, or the time is too short, to be representative",
    find,
};

/// Minimum number of samples: one of thirty is 3 %.
const SAMPLES: u64 = 30;

/// Minimum time in seconds for any verdict.
const MOMENT: f64 = 2.0;

/// In less time a checkpoint or a backup may have been all there was.
const SECONDS: f64 = 30.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let Some((from, to)) = case.facts.span else { return Vec::new() };
    let seconds = at_s(to) - at_s(from);
    let samples = case.facts.samples;
    // A single sample has a rule of its own.
    if samples < 2 || (samples >= SAMPLES && seconds >= SECONDS) {
        return Vec::new();
    }
    let text = format!(
        "{} samples over {} were observed, which may not be representative",
        grouped(samples),
        time(seconds * 1e9)
    );
    let mut finding = rule.finding("samples", text);
    finding.confidence = Confidence::High;
    // A report of about a second proves nothing. Missing counts have a rule of their own.
    let mut subjects = case.system.subjects.iter();
    let is_counted = |own: &Subject| missing_operations(case.contents, own.entity).is_empty();
    if seconds < MOMENT && subjects.all(is_counted) {
        finding.priority = BLIND;
    }
    if samples == 2 {
        finding
            .evidence
            .push("two snapshots of counters give one average of the time between them".to_owned());
    }
    "observe at least some minutes of the slow time, with a sampling interval of one second"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use super::{BLIND, RULE};
    use crate::bed::{EntityLoad, TestBed};

    #[test]
    fn few_or_short() {
        let bed = || TestBed::bare().disk("data", EntityLoad::reads(50.0));
        assert_eq!(bed().seconds(10).found("too-short").len(), 1);
        assert_eq!(bed().seconds(600).every(60).found("too-short").len(), 1);
        assert!(!bed().seconds(30).finds("too-short"));
        let priority = |seconds| bed().seconds(seconds).found("too-short")[0].priority;
        assert_eq!((priority(1), priority(2)), (BLIND, RULE.priority));
        assert!(!bed().seconds(0).finds("too-short"));
    }
}
