//! A single sample, of which no rate can be made.

use super::no_operations::missing_operations;
use super::rule::{BLIND, Candidate, Rule, source};
use crate::case::Case;
use crate::follow::SubjectFacts;
use crate::system::Subject;
use weir_observe::{Counting, EntityKind};
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 406,
    name: "one-sample",
    group: Group::Evidence,
    priority: BLIND,
    source: source::PRESIZE,
    finds: "there is only one sample of counters, and so there are no rates",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    // A subject without observed time has no rates. Missing counts of operations have a rule of
    // their own, since a second sample does not help.
    let is_unseen = |(own, facts): (&Subject, &SubjectFacts)| {
        facts.seconds() <= 0.0 && missing_operations(case.contents, own.entity).is_empty()
    };
    let subjects = || case.system.subjects.iter().zip(&case.facts.subjects);
    let is_blind =
        case.facts.samples <= 1 || (subjects().next().is_some() && subjects().all(is_unseen));
    let counters =
        || case.contents.series.iter().any(|series| series.counting == Counting::Cumulative);
    if !is_blind || !counters() {
        return Vec::new();
    }
    let files = case.contents.entities.iter().any(|own| own.kind == EntityKind::File);
    let mut finding = rule.finding(
        "samples",
        match case.facts.samples {
            0 => "there is no complete sample: a rate needs two samples of each counter",
            _ => "there is only one sample of cumulative counters: a rate needs a second one",
        },
    );
    finding.confidence = Confidence::High;
    finding.evidence.push(
        "averages since the start of the counters mix busy and idle times, and hide slow ones"
            .to_owned(),
    );
    finding.action = if files {
        "take a second sample some minutes later, while the system is slow, and import both: weir observe \
         script --sqlserver has a query that samples by itself (qpi: snapshot_file_stats, then \
         file_stats)"
    } else {
        "take a second sample some seconds later and import both, or observe with iostat -x 1"
    }
    .to_owned();
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    #[test]
    fn one_sample_is_found_and_two_are_enough() {
        let bed = |seconds| {
            let bed = TestBed::bare().file("db", "data", EntityLoad::reads(50.0));
            bed.seconds(seconds).found("one-sample")
        };
        assert_eq!(bed(0)[0].priority, 50);
        assert_eq!(bed(1), []);
    }
}
