//! Workers of parallel queries that wait for each other.

use super::not_storage::finding;
use super::rule::{Candidate, Rule, source};
use super::wait_times::{longest, of_class, storage_words};
use super::waits::Class;
use crate::case::Case;
use crate::follow::HostFacts;
use crate::verdict::Cause;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 307,
    name: "parallelism",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most wait time is of parallel workers for each other",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let Some(waited) = of_class(case, Class::Parallel) else { return Vec::new() };
    let text = format!("workers of parallel queries wait for each other: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::Parallelism, "queries", &text) else {
        return Vec::new();
    };
    let busy = case.facts.others.processors.iter().map(HostFacts::mean).reduce(f64::max);
    // Workers wait for the slowest one, which may wait for anything.
    finding.confidence = if busy.is_some() { Confidence::Medium } else { Confidence::Low };
    finding.evidence.push(match busy {
        Some(busy) => format!("CPU at {} meanwhile", percent(busy)),
        None => "CPU utilisation is unknown".to_owned(),
    });
    let is = |wait: &crate::follow::WaitFacts| Class::from_name(&wait.name) == Class::Parallel;
    finding.evidence.push(longest(case, is));
    finding.evidence.extend(storage_words(case));
    "raise the cost threshold for parallelism (EXEC sp_configure 'cost threshold for \
     parallelism', 50; RECONFIGURE), set MAXDOP to the cores of a NUMA node and at most 8, and \
     tune queries with scans; storage does not help"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::TestBed;

    fn bed(others: f64) -> TestBed {
        TestBed::bare()
            .wait("CXPACKET", 600.0)
            .wait("CXCONSUMER", 200.0)
            .wait("PAGEIOLATCH_SH", others)
    }

    #[test]
    fn parallel_waits_with_busy_processors() {
        assert_eq!(bed(200.0).cpu(0.7).found("parallelism").len(), 1);
        assert_eq!(bed(200.0).found("parallelism").len(), 1);
    }

    #[test]
    fn parallel_waits_with_idle_processors_are_silent() {
        assert!(!bed(1300.0).finds("parallelism"));
        // All wait and no processor is busy: they do not wait for each other.
        assert!(!bed(200.0).cpu(0.2).finds("parallelism"));
    }
}
