//! Unknown limits.

use super::rule::{BLIND, Candidate, Rule, source};
use super::signs::{is_raised, names};
use super::throttling;
use crate::case::{Case, JudgedSubject};
use weir_observe::EntityKind;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::time;

pub(super) const RULE: Rule = Rule {
    id: 401,
    name: "no-limits",
    group: Group::Evidence,
    priority: BLIND,
    source: source::MODEL,
    finds: "I/O was observed, but its limits are unknown",
    find,
};

/// Priority of a finding that needs no action.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let unlimited: Vec<JudgedSubject<'_>> =
        case.named().filter(|judged| judged.subject.path.is_empty()).collect();
    // Counted queue times show throttling without limits.
    let raised =
        unlimited.iter().filter(|judged| is_raised(judged) && !judged.facts.has_queue_times);
    let raised: Vec<&JudgedSubject<'_>> = raised.collect();
    // If some subjects have limits, those without matter only if they are slow.
    if unlimited.is_empty() || (raised.is_empty() && case.system.has_limits()) {
        return Vec::new();
    }
    // Subjects with other signs of throttling are left out.
    let said = throttling::throttled(case);
    let is_open = |judged: &JudgedSubject<'_>| !said.contains(&judged.name(case));
    let raised: Vec<&JudgedSubject<'_>> =
        raised.into_iter().filter(|judged| is_open(judged)).collect();
    let subjects: Vec<String> = match raised.is_empty() {
        true => unlimited.iter().map(|judged| judged.name(case)).collect(),
        false => raised.iter().map(|judged| judged.name(case)).collect(),
    };
    let text = if raised.is_empty() {
        format!("the limits of {} are unknown, so that their headroom is unknown", names(&subjects))
    } else {
        format!(
            "latency of {} is high, and their limits are unknown: throttling can neither be confirmed nor \
             ruled out",
            names(&subjects)
        )
    };
    let mut finding = rule.finding("limits", text);
    finding.priority = if !raised.is_empty() { rule.priority } else { NOTE };
    finding.confidence = Confidence::High;
    for judged in raised.iter().take(4) {
        if let Some(ns) = judged.facts.latency_ns() {
            finding.evidence.push(format!("{}: mean latency {}", judged.name(case), time(ns)));
        }
    }
    if let Some(said) = throttling::first(case) {
        finding.evidence.push(format!("other evidence: {}", said.finding));
    }
    let files = unlimited.iter().any(|judged| {
        case.contents.entity(judged.subject.entity).is_some_and(|own| own.kind == EntityKind::File)
    });
    finding.action = if files {
        "state the layout (--layout FILE: machine, disks with tiers, files), or for a managed \
         instance --edition azure-mi-2018 or azure-mi-now with an observation that contains file \
         sizes"
    } else {
        "state the layout (--layout FILE: machine size, and the tier or limits of each disk, with \
         the names above)"
    }
    .to_owned();
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    #[test]
    fn high_latency_without_limits_is_urgent() {
        let found =
            TestBed::bare().disk("data", EntityLoad::reads(50.0).ms(40.0)).found("no-limits");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 50);
        assert!(finding.finding.contains("data"), "{}", finding.finding);
    }

    #[test]
    fn low_latency_is_a_note_and_known_limits_are_silent() {
        let found =
            TestBed::bare().disk("data", EntityLoad::reads(50.0).ms(4.0)).found("no-limits");
        assert_eq!(found[0].priority, 200);
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                    name = \"data\"\ntier = \"P10\"\n";
        assert!(
            !TestBed::layout(text)
                .disk("data", EntityLoad::reads(50.0).ms(40.0))
                .finds("no-limits")
        );
        assert!(!TestBed::bare().wait("WRITELOG", 100.0).finds("no-limits"));
    }

    #[test]
    fn queue_times_make_limits_unnecessary() {
        let queued = EntityLoad::writes(50.0).ms(100.0).queued_ms(96.0);
        assert_eq!(TestBed::bare().file("db", "data", queued).found("no-limits")[0].priority, 200);
    }
}
