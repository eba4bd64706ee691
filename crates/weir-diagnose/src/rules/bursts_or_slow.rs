//! Latency that bursts at a cap explain, and a slow medium as well.

use super::rule::{BLIND, Candidate, Rule, source};
use crate::case::{Case, JudgedSubject, amount, cap_words, moments};
use crate::verdict::CapWait;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 407,
    name: "bursts-or-slow",
    group: Group::Evidence,
    priority: BLIND,
    source: source::PRESIZE,
    finds: "latency is above that of the edition's medium, either because of bursts at a limit or \
            because the medium is slow",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let all = case.named().filter(|judged| judged.waited.throttled().is_none());
    all.filter_map(|judged| {
        Some(check_subject(case, rule, &judged, judged.waited.suspected.as_ref()?))
    })
    .collect()
}

fn check_subject(
    case: &Case<'_>,
    rule: &Rule,
    judged: &JudgedSubject<'_>,
    wait: &CapWait,
) -> Candidate {
    let name = judged.name(case);
    let (cap, facts) = case.cap(wait.cap);
    let latency = time(judged.waited.latency_ns / judged.waited.operations.max(1.0));
    let limit = amount(cap.counts_bytes(), facts.limit);
    let text = format!(
        "{name} may be throttled by its {}, {limit}, in bursts shorter than the sampling interval, or \
         have a slow medium: mean latency {latency}",
        cap_words(wait.kind)
    );
    let mut finding = rule.finding(name.clone(), text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = Confidence::Low;
    finding.evidence.push(format!(
        "{}: {} of {limit} on average and {} at most; {} of the latency exceeds that of the edition's \
         medium",
        wait.kind.name(),
        percent(facts.used.mean().unwrap_or(0.0)),
        percent(facts.used.max().min(1.0)),
        percent(wait.share)
    ));
    let is_known = judged.facts.whole.bounded_s >= 0.5 * judged.facts.seconds();
    let (missing, action) = if is_known {
        (
            "several requests are in flight most of the time, as with bursts and with a slow medium",
            "measure the unloaded latency at a quiet time (fio --rw=randread --iodepth=1 --runtime=60) \
             and state it as the latency of the volume in the layout; or compare it with another \
             disk of its kind",
        )
    } else {
        (
            "busy time and queue time are unknown",
            "also observe the busy time of the disks (iostat -x -t 1, PerfMon with % Idle Time), or the \
             queue times of files (weir observe script --sqlserver)",
        )
    };
    finding.evidence.push(missing.to_owned());
    action.clone_into(&mut finding.action);
    finding.moments = moments(case, judged, 3);
    Candidate { wait_ns: wait.wait_ns, ..finding.into() }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn bursts_and_a_slow_medium_are_indistinguishable() {
        let of = |does| TestBed::layout(P10).disk("data", does);
        // At 30 % of the limit, four times what the medium takes.
        let slow = EntityLoad::reads(150.0).ms(8.0);
        let found = of(slow).found("bursts-or-slow");
        assert_eq!(found.len(), 1);
        assert!(found[0].action.contains("iostat"), "{}", found[0].action);
        assert!(found[0].finding.ends_with("mean latency 8.00 ms"), "{}", found[0].finding);
        assert!(!of(slow).finds("disk-operations"));
        // Isolated requests: the medium is slow.
        assert!(!of(EntityLoad::reads(110.0).ms(8.0).busy_ms(590.0)).finds("bursts-or-slow"));
        // A constant queue depth of two.
        let loops = of(EntityLoad::reads(250.0).ms(8.0).busy_ms(1_000.0));
        assert!(loops.found("bursts-or-slow")[0].action.contains("fio"));
        // In bursts of ten, at the limit, or as the edition has it.
        let bursts = EntityLoad::reads(150.0).ms(11.0).busy_ms(330.0);
        let near = EntityLoad::reads(499.0).ms(60.0);
        for told in [bursts, near, EntityLoad::reads(150.0).ms(2.0)] {
            assert!(!of(told).finds("bursts-or-slow"), "{told:?}");
        }
    }
}
