//! Latency without throttling: requests take long, and no cap explains it.

use super::not_storage::{finding, slow};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, amount, moments, unloaded_words};
use crate::verdict::Cause;
use weir_observe::metric as m;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 308,
    name: "slow-medium",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::INSTANCE,
    finds: "latency is far above that of the medium, and no limit explains it",
    find,
};

/// Processors that another machine has for so much of the time are missed.
const STOLEN: f64 = 0.05;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let found = slow(case).into_iter().filter_map(|(judged, share)| {
        let name = judged.name(case);
        let waited = judged.waited;
        let latency = time(waited.latency_ns / waited.operations.max(1.0));
        let text = format!(
            "{name} is slow but not throttled: mean latency {latency}, of which no limit explains {}",
            percent(share)
        );
        let mut finding = finding(case, rule, Cause::SlowMedium, &name, &text)?;
        finding.confidence = Confidence::Medium;
        finding.evidence.extend(unloaded_words(waited));
        let seconds = judged.facts.seconds().max(1e-9);
        let operations = judged.facts.total.operations.unwrap_or(0.0);
        finding.evidence.push(format!("{} IOPS on average", rate(operations / seconds)));
        for steal in case.facts.others.gauged.iter().filter(|own| own.metric == m::CPU_STEAL.name)
        {
            if steal.mean() >= STOLEN {
                let of = percent(steal.mean());
                finding
                    .evidence
                    .push(format!("stolen CPU time (another machine used the processors): {of}"));
            }
        }
        finding.ruled_out = judged
            .subject
            .path
            .iter()
            .map(|counts| {
                let (cap, facts) = case.cap(counts.cap);
                format!(
                    "{} of {}: at most {} of {}",
                    cap.at_most().name(),
                    case.system.owner_name(cap),
                    percent(facts.used.max().min(1.0)),
                    amount(cap.counts_bytes(), cap.limit.peak())
                )
            })
            .collect();
        finding.moments = moments(case, &judged, 3);
        finding.action = format!(
            "do not buy higher limits for {name}: compare it with another disk of its kind; look for \
             writes that are not aligned to 4 KiB, for frequent flushes, for a busy neighbour, for a \
             fault of the service (see its status page), and for stolen CPU time"
        );
        Some(Candidate::from(finding))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn latency_far_from_any_limit_is_a_slow_medium() {
        let found =
            TestBed::layout(P10).disk("data", EntityLoad::reads(5.0).ms(80.0)).found("slow-medium");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.priority), ("data", 20));
        assert!(!finding.ruled_out.is_empty());
    }

    #[test]
    fn throttled_fast_or_unlimited_disks_are_no_slow_medium() {
        assert!(
            !TestBed::layout(P10)
                .disk("data", EntityLoad::reads(498.0).ms(80.0))
                .finds("slow-medium")
        );
        assert!(
            !TestBed::layout(P10).disk("data", EntityLoad::reads(5.0).ms(9.0)).finds("slow-medium")
        );
        // In a queue it waits for a limit, and outside of it for the storage.
        let queued = |ms| {
            let does = EntityLoad::reads(5.0).ms(80.0).queued_ms(ms);
            TestBed::bare().file("db", "data", does).finds("slow-medium")
        };
        assert!(queued(2.0) && !queued(70.0));
        // A subject with unknown limits may be throttled.
        assert!(
            !TestBed::bare().disk("data", EntityLoad::reads(5.0).ms(80.0)).finds("slow-medium")
        );
    }
}
