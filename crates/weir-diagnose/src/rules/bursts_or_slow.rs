//! Latency that bursts at a cap explain, and a slow medium as well.

use super::{Found, Rule, source};
use crate::case::{Case, Seen, amount, cap_words, moments};
use crate::report::BLIND;
use crate::verdict::Held;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 407,
    name: "bursts-or-slow",
    group: Group::Evidence,
    priority: BLIND,
    source: source::PRESIZE,
    finds: "requests take longer than the edition says of their medium, and whether they wait in \
            bursts or the medium is slow cannot be told",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let all = case.named().filter(|seen| seen.waited.throttled().is_none());
    all.filter_map(|seen| Some(of_subject(case, rule, &seen, seen.waited.suspected.as_ref()?)))
        .collect()
}

fn of_subject(case: &Case<'_>, rule: &Rule, seen: &Seen<'_>, held: &Held) -> Found {
    let name = seen.name(case);
    let (cap, facts) = case.cap(held.cap);
    let latency = time(seen.waited.latency_ns / seen.waited.operations.max(1.0));
    let limit = amount(cap.counts_bytes(), facts.limit);
    let text = format!(
        "{name} may be held at its {}, {limit}, in bursts shorter than a sample, or have a slow \
         medium: its requests take {latency} on average",
        cap_words(held.kind)
    );
    let mut finding = rule.finding(name.clone(), text);
    finding.cap = Some(held.kind.name().to_owned());
    finding.confidence = Confidence::Low;
    finding.evidence.push(format!(
        "{} uses {} of {limit} on average and {} at most; {} of the latency is more than the \
         edition says of the medium",
        held.kind.name(),
        percent(facts.used.mean().unwrap_or(0.0)),
        percent(facts.used.max().min(1.0)),
        percent(held.share)
    ));
    let is_known = seen.facts.whole.bounded_s >= 0.5 * seen.facts.seconds();
    let (missing, action) = if is_known {
        (
            "it has several requests under way most of the time, as bursts and a slow medium do",
            "measure what it takes alone: fio --rw=randread --iodepth=1 --runtime=60, at a quiet \
             time, and give that as the latency of the volume in the layout; or compare with \
             another disk of its kind",
        )
    } else {
        (
            "nobody says for how much of the time something was under way, nor what was queued",
            "observe the disks beside it with what says that (iostat -x -t 1, PerfMon with % Idle \
             Time), or files with their queues (weir observe script --sqlserver)",
        )
    };
    finding.evidence.push(missing.to_owned());
    action.clone_into(&mut finding.action);
    finding.moments = moments(case, seen, 3);
    Found { waited_ns: held.waited_ns, ..finding.into() }
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn what_cannot_be_told_apart_is_called_so() {
        let of = |does| Bed::layout(P10).disk("data", does);
        // At 30 % of the limit, four times what the medium takes.
        let slow = Does::reads(150.0).ms(8.0);
        let found = of(slow).found("bursts-or-slow");
        assert_eq!(found.len(), 1);
        assert!(found[0].action.contains("iostat"), "{}", found[0].action);
        assert!(found[0].finding.ends_with(" on average"), "{}", found[0].finding);
        assert!(!of(slow).finds("disk-operations"));
        // One by one: the medium is slow.
        assert!(!of(Does::reads(110.0).ms(8.0).busy_ms(590.0)).finds("bursts-or-slow"));
        // Two are always under way.
        let loops = of(Does::reads(250.0).ms(8.0).busy_ms(1_000.0));
        assert!(loops.found("bursts-or-slow")[0].action.contains("fio"));
        // In bursts of ten, at the limit, or as the edition has it.
        let bursts = Does::reads(150.0).ms(11.0).busy_ms(330.0);
        let near = Does::reads(499.0).ms(60.0);
        for told in [bursts, near, Does::reads(150.0).ms(2.0)] {
            assert!(!of(told).finds("bursts-or-slow"), "{told:?}");
        }
    }
}
