//! Workers of parallel queries that wait for each other.

use super::not_storage::{Cause, finding, longest, of_class, storage_words};
use super::waits::Class;
use super::{Found, Rule, source};
use crate::case::Case;
use crate::follow::HostFacts;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 307,
    name: "parallelism",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most of the waiting is of the workers of parallel queries for each other",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let Some(waited) = of_class(case, Class::Parallel) else { return Vec::new() };
    let text = format!("workers of parallel queries wait for each other: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::Parallelism, "queries", &text) else {
        return Vec::new();
    };
    let busy = case.facts.others.processors.iter().map(HostFacts::mean).reduce(f64::max);
    // They wait for the slowest of them, which may wait for anything.
    finding.confidence = if busy.is_some() { Confidence::Medium } else { Confidence::Low };
    finding.evidence.push(match busy {
        Some(busy) => format!("processors are {} busy meanwhile", percent(busy)),
        None => "how busy processors are is not said".to_owned(),
    });
    let is = |wait: &crate::follow::WaitFacts| Class::of(&wait.name) == Class::Parallel;
    finding.evidence.push(longest(case, is));
    finding.evidence.extend(storage_words(case));
    "raise cost threshold for parallelism above its default (EXEC sp_configure 'cost threshold \
     for parallelism', 50; RECONFIGURE), set MAXDOP to the cores of a NUMA node and at most 8, and \
     tune the queries that scan; storage does not help"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::Bed;

    fn bed(others: f64) -> Bed {
        Bed::bare().wait("CXPACKET", 600.0).wait("CXCONSUMER", 200.0).wait("PAGEIOLATCH_SH", others)
    }

    #[test]
    fn most_of_the_waiting_while_processors_work() {
        assert_eq!(bed(200.0).cpu(0.7).found("parallelism").len(), 1);
        assert_eq!(bed(200.0).found("parallelism").len(), 1);
    }

    #[test]
    fn who_waits_for_something_else_is_not_parallel() {
        assert!(!bed(1300.0).finds("parallelism"));
        // All wait, and nobody works: not for each other.
        assert!(!bed(200.0).cpu(0.2).finds("parallelism"));
    }
}
