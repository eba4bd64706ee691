//! The columns of a stripe at their limit.

use super::rule::{Candidate, Rule, source};
use super::throttled::{Throttled, finding, next_tier, throttled_by, with};
use crate::case::Case;
use crate::change::Change;
use crate::system::{Owner, SubjectId};
use crate::verdict::CapWait;
use std::collections::BTreeMap;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 103,
    name: "stripe-column",
    group: Group::Throttling,
    priority: 10,
    source: source::PREMIUM,
    finds: "columns of a stripe are throttled by their limits",
    find,
};

fn stripe_of(case: &Case<'_>, wait: &CapWait) -> Option<usize> {
    match case.system.caps[wait.cap].owner {
        Owner::Disk(disk) => case.system.disks[disk].stripe,
        Owner::Host(_) => None,
    }
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let is = |case: &Case<'_>, wait: &CapWait| stripe_of(case, wait).is_some();
    let mut by_stripe: BTreeMap<usize, Vec<Throttled<'_>>> = BTreeMap::new();
    for subjects in throttled_by(case, is) {
        if let Some(stripe) = stripe_of(case, subjects.1) {
            by_stripe.entry(stripe).or_default().push(subjects);
        }
    }
    by_stripe
        .into_iter()
        .filter_map(|(stripe, subjects)| check_stripe(case, rule, stripe, &subjects))
        .collect()
}

fn check_stripe(
    case: &Case<'_>,
    rule: &Rule,
    stripe: usize,
    subjects: &[Throttled<'_>],
) -> Option<Candidate> {
    let own = &case.system.stripes[stripe];
    let mut finding = finding(case, rule, own.name.clone(), subjects)?;
    let columns = own.columns.len();
    let observed =
        subjects.iter().filter(|(judged, _)| matches!(judged.subject.id, SubjectId::Disk(_)));
    let count = observed.count();
    if count > 0 && count < columns {
        finding.evidence.push(format!(
            "{count} of its {columns} columns are throttled: the load is not distributed over all of them"
        ));
    } else if count == 0 {
        finding.evidence.push(format!(
            "its {columns} columns are not observed individually: an uneven load would not show"
        ));
    } else {
        let used: Vec<String> = own
            .columns
            .iter()
            .flat_map(|disk| case.caps_of_disk(*disk))
            .filter(|(cap, _)| Some(cap.kind.name()) == finding.cap.as_deref())
            .map(|(_, facts)| percent(facts.used.mean().unwrap_or(0.0)).to_string())
            .collect();
        if used.len() > 1 {
            finding.evidence.push(format!("mean utilisation of its columns: {}", used.join(", ")));
        }
    }
    let needs_bytes = subjects.first()?.1.kind.counts_bytes();
    let more = u32::try_from(columns * 2).ok()?;
    let (mut action, change) = next_tier(
        case,
        SubjectId::Stripe(stripe),
        needs_bytes,
        subjects.first()?.1.kind.is_burst(),
    );
    action = format!("{action}; {more} columns would double its limits");
    let change = change.or_else(|| {
        case.layout?;
        Some(Change::Columns { name: own.name.clone(), columns: more })
    });
    Some(with(finding, subjects, (action, change)))
}
