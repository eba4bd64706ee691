//! Cached disks with an unknown number of cache hits.

use super::rule::{BLIND, Candidate, Rule, source};
use super::signs::{is_raised, names};
use crate::case::{Case, amount};
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 405,
    name: "hits-unknown",
    group: Group::Evidence,
    priority: BLIND,
    source: source::PREMIUM,
    finds: "the number of host cache hits is unknown, and so is the use of the limits behind the cache",
    find,
};

/// Priority of a finding that needs no action.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let unknown: Vec<usize> =
        (0..case.system.caps.len()).filter(|cap| case.facts.caps[*cap].is_bound).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    // A slow subject may be throttled behind the cache.
    let open = case.named().any(|judged| {
        let passes = judged.subject.path.iter().any(|counts| unknown.contains(&counts.cap));
        passes && is_raised(&judged) && judged.waited.throttled().is_none()
    });
    let mut subjects: Vec<String> = unknown
        .iter()
        .map(|cap| case.system.owner_name(&case.system.caps[*cap]).to_owned())
        .collect();
    subjects.dedup();
    let text = format!(
        "the number of host cache hits is unknown: the limits of {} may be reached or nearly unused",
        names(&subjects)
    );
    let mut finding = rule.finding("cache", text);
    finding.priority = if open { rule.priority } else { NOTE };
    finding.confidence = Confidence::High;
    for cap in unknown.iter().take(6) {
        let (cap, facts) = case.cap(*cap);
        finding.evidence.push(format!(
            "{} of {}: all of {} without cache hits",
            cap.kind.name(),
            case.system.owner_name(cap),
            amount(cap.counts_bytes(), facts.limit)
        ));
    }
    "import the machine's \"VM Cached IOPS Consumed Percentage\" and \"VM Uncached IOPS \
     Consumed Percentage\" of Azure Monitor as well, or observe with the cache off for a while \
     (az vm update --disk-caching ..=None)"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const CACHED: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\n\
                          name = \"data\"\ntier = \"P10\"\ncache = \"read-only\"\n";

    #[test]
    fn more_reads_than_the_disk_allows_may_be_cache_hits() {
        let disk = |does| TestBed::layout(CACHED).disk("data", does);
        assert_eq!(disk(EntityLoad::reads(3000.0).ms(1.0)).found("hits-unknown")[0].priority, 200);
        // The disk could serve these all by itself.
        assert!(!disk(EntityLoad::reads(400.0).ms(1.0)).finds("hits-unknown"));
        let plain = CACHED.replace("cache = \"read-only\"\n", "");
        assert!(
            !TestBed::layout(&plain).disk("data", EntityLoad::reads(490.0)).finds("hits-unknown")
        );
    }
}
