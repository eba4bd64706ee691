//! Operations without latencies.

use super::rule::{BLIND, Candidate, Rule, source};
use super::signs::{is_near, is_timed, names};
use crate::case::{Case, JudgedSubject};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 402,
    name: "no-latency",
    group: Group::Evidence,
    priority: BLIND,
    source: source::MODEL,
    finds: "operations have no latencies, which wait times are computed from",
    find,
};

/// Priority of a finding that needs no action.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let has_none = |judged: &JudgedSubject<'_>| {
        judged.facts.total.operations.is_some_and(|operations| operations > 0.0)
            && !is_timed(judged)
            && judged.facts.total.ns.is_none_or(|ns| ns <= 0.0)
    };
    let untimed: Vec<JudgedSubject<'_>> = case.named().filter(has_none).collect();
    if untimed.is_empty() {
        return Vec::new();
    }
    let near = |judged: &&JudgedSubject<'_>| {
        judged.subject.path.iter().any(|counts| is_near(case, counts.cap))
    };
    let urgent: Vec<&JudgedSubject<'_>> = untimed.iter().filter(near).collect();
    let subjects: Vec<String> = match urgent.is_empty() {
        true => untimed.iter().map(|judged| judged.name(case)).collect(),
        false => urgent.iter().map(|judged| judged.name(case)).collect(),
    };
    let why = if urgent.is_empty() {
        "wait times are unknown; limits that are nearly reached are still found"
    } else {
        "a limit is nearly reached, and wait times are unknown"
    };
    let text = format!("latencies of {} are missing: {why}", names(&subjects));
    let mut finding = rule.finding("latency", text);
    finding.priority = if urgent.is_empty() { NOTE } else { rule.priority };
    finding.confidence = Confidence::High;
    for judged in urgent.iter().take(4) {
        let used = judged.subject.path.iter().map(|counts| &case.facts.caps[counts.cap]);
        let most = used.map(|cap| cap.used.max()).fold(0.0, f64::max);
        finding.evidence.push(format!(
            "{}: a limit is used to {}",
            judged.name(case),
            percent(most)
        ));
    }
    finding.evidence.push("disk-operations, disk-bytes, stripe-column, host-uncached, host-cached and log-rate need latencies; near-limit does not".to_owned());
    "observe latencies as well: iostat -x 1 (r_await, w_await), Avg. Disk sec/Read and sec/Write of \
     PhysicalDisk, sys.dm_io_virtual_file_stats (weir observe script --sqlserver), track_io_timing = on for PostgreSQL"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn missing_latency_is_urgent_near_a_limit() {
        let found = |iops| {
            TestBed::layout(P10).disk("data", EntityLoad::reads(iops).untimed()).found("no-latency")
        };
        assert_eq!(found(490.0)[0].priority, 50);
        assert_eq!(found(400.0)[0].priority, 200);
        assert!(!TestBed::layout(P10).disk("data", EntityLoad::reads(490.0)).finds("no-latency"));
        // An idle subject has no latency.
        assert!(!TestBed::layout(P10).disk("data", EntityLoad::reads(0.0)).finds("no-latency"));
    }
}
