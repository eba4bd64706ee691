//! Samples that are so far apart that bursts do not show.

use super::rule::{Candidate, Rule, source};
use super::signs::names;
use crate::case::Case;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{float, percent, time};

pub(super) const RULE: Rule = Rule {
    id: 403,
    name: "coarse-samples",
    group: Group::Evidence,
    priority: 200,
    source: source::PRESIZE,
    finds: "the sampling interval exceeds a minute, so that averages hide bursts",
    find,
};

/// The finest that clouds give for nothing, with what a scheduler is late.
const COARSE_S: f64 = 65.0;

/// Below this use no burst of a tenth of the time reaches the limit.
const TENTH: f64 = 0.1;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let interval = case.facts.interval_s;
    if interval < COARSE_S || case.facts.samples < 2 {
        return Vec::new();
    }
    let apart = time(interval * 1e9);
    let text = format!(
        "the sampling interval is {apart}: a limit that is reached for some seconds shows only as an \
         average far below it"
    );
    let mut finding = rule.finding("samples", text);
    finding.confidence = Confidence::High;
    let all = case.system.caps.iter().zip(&case.facts.caps);
    let possible = all.filter(|(_, facts)| facts.samples > 0 && facts.used.max() >= TENTH);
    let possible: Vec<String> = possible
        .map(|(cap, facts)| {
            let used = facts.used.max().min(1.0);
            let seconds = time(used * interval * 1e9);
            format!(
                "{} of {}: used to {} at most, which could be {seconds} at the limit",
                cap.kind.name(),
                case.system.owner_name(cap),
                percent(used)
            )
        })
        .collect();
    if !possible.is_empty() {
        finding.evidence.push(names(&possible));
    }
    finding.evidence.push(format!("{} samples", float(case.facts.samples)));
    "observe some minutes of the worst time with a sampling interval of one second: iostat -x -t 1, typeperf -si 1, or \
     weir observe script --sqlserver; latency and queues show bursts even in averages"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    #[test]
    fn further_apart_than_a_minute() {
        let every = |seconds| {
            let bed = TestBed::edition("azure-premium-2015").disk("data", EntityLoad::reads(50.0));
            bed.seconds(seconds * 30).every(seconds)
        };
        assert_eq!(every(300).found("coarse-samples").len(), 1);
        assert!(!every(60).finds("coarse-samples"));
    }
}
