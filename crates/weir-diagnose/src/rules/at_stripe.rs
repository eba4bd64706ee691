//! The columns of a stripe at their limit.

use super::held::{Who, by, finding, is_peak, next_tier, with};
use super::{Found, Rule, source};
use crate::case::Case;
use crate::change::Change;
use crate::system::{Owner, What};
use crate::verdict::Held;
use std::collections::BTreeMap;
use weir_core::Cap as Kind;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 103,
    name: "stripe-column",
    group: Group::Throttling,
    priority: 10,
    source: source::PREMIUM,
    finds: "requests wait as columns of a stripe are at their limit",
    find,
};

fn stripe_of(case: &Case<'_>, held: &Held) -> Option<usize> {
    match case.system.caps[held.cap].owner {
        Owner::Disk(disk) => case.system.disks[disk].stripe,
        Owner::Host(_) => None,
    }
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let is = |case: &Case<'_>, held: &Held| stripe_of(case, held).is_some();
    let mut by_stripe: BTreeMap<usize, Vec<Who<'_>>> = BTreeMap::new();
    for who in by(case, is) {
        if let Some(stripe) = stripe_of(case, who.1) {
            by_stripe.entry(stripe).or_default().push(who);
        }
    }
    by_stripe.into_iter().filter_map(|(stripe, who)| of_stripe(case, rule, stripe, &who)).collect()
}

fn of_stripe(case: &Case<'_>, rule: &Rule, stripe: usize, who: &[Who<'_>]) -> Option<Found> {
    let own = &case.system.stripes[stripe];
    let mut finding = finding(case, rule, own.name.clone(), who)?;
    let columns = own.columns.len();
    let observed = who.iter().filter(|(seen, _)| matches!(seen.subject.what, What::Disk(_)));
    let held = observed.count();
    if held > 0 && held < columns {
        finding.evidence.push(format!(
            "{held} of its {columns} columns are: what is done is not spread over all of them"
        ));
    } else if held == 0 {
        finding.evidence.push(format!(
            "its {columns} columns are not observed one by one: whether one of them does more than \
             the others does not show"
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
            finding.evidence.push(format!("its columns use {} on average", used.join(", ")));
        }
    }
    let needs_bytes = matches!(who.first()?.1.kind, Kind::DiskBytes | Kind::DiskBurstBytes);
    let more = u32::try_from(columns * 2).ok()?;
    let (mut action, change) =
        next_tier(case, What::Stripe(stripe), needs_bytes, is_peak(who.first()?.1.kind));
    action = format!("{action}; {more} columns would have twice its limits");
    let change = change.or_else(|| {
        case.layout?;
        Some(Change::Columns { name: own.name.clone(), columns: more })
    });
    Some(with(finding, who, (action, change)))
}
