//! Signs that several rules look for: raised latency, caps that hold somebody, throttling.

use super::RULES;
use super::held::by;
use crate::case::{Case, Seen};
use crate::verdict::{Basis, THROTTLED};
use std::collections::BTreeSet;
use weir_observe::EntityId;
use weir_report::diagnosis::{Finding, Group};

/// Where nobody is throttled, requests to remote storage take 2 to 10 ms (article 000).
pub(super) const RAISED_NS: f64 = 10e6;

/// Latency from so many times that of the medium on is not the medium's.
const TIMES_MEDIUM: f64 = 2.0;

/// The mean of fewer operations is chance.
pub(super) const FEW: f64 = 100.0;

/// A limit used to 90 % and more in fewer samples than this was touched, not used up.
pub(super) const NEAR_SAMPLES: u64 = 3;

/// And in a smaller part of the samples.
pub(super) const NEAR_SHARE: f64 = 0.01;

/// The part of the time from which on something is no accident.
pub(super) const NOTABLE: f64 = 0.05;

/// Whether requests take longer than they do where nothing holds them.
pub(super) fn is_raised(seen: &Seen<'_>) -> bool {
    let waited = seen.waited;
    if waited.operations < FEW || waited.latency_ns <= 0.0 {
        return false;
    }
    let mean = waited.latency_ns / waited.operations;
    let medium = waited.usual_ns.filter(|_| waited.basis == Basis::Medium).unwrap_or(0.0);
    mean > RAISED_NS.max(TIMES_MEDIUM * medium)
}

/// Whether it is said how long requests of somebody take.
pub(super) fn is_timed(seen: &Seen<'_>) -> bool {
    seen.waited.latency_ns > 0.0
}

/// The caps at which somebody is held.
pub(super) fn holding(case: &Case<'_>) -> BTreeSet<usize> {
    let who = by(case, |_, _| true);
    let all = who.iter().flat_map(|(seen, first)| {
        let enough = seen.waited.held.iter().filter(|held| held.share >= THROTTLED);
        enough.map(|held| held.cap).chain([first.cap])
    });
    all.collect()
}

/// Whether a cap was near its limit in more samples than by accident, and it is known that it was.
pub(super) fn is_near(case: &Case<'_>, cap: usize) -> bool {
    let facts = &case.facts.caps[cap];
    let samples = weir_report::number::float(facts.samples.max(1));
    !facts.is_bound
        && facts.near_samples >= NEAR_SAMPLES
        && weir_report::number::float(facts.near_samples) >= NEAR_SHARE * samples
}

/// What rules of numbers below `before` say of throttling. Rules of Throttling ask for those
/// before their own alone, so that this ends.
pub(super) fn throttling(case: &Case<'_>, before: u16) -> Vec<Finding> {
    let rules = RULES.iter().filter(|rule| rule.group == Group::Throttling && rule.id < before);
    let found = rules.flat_map(|rule| (rule.find)(case, rule)).map(|found| found.finding);
    found.filter(|finding| finding.group == Group::Throttling).collect()
}

/// Rules of Throttling have numbers below this.
pub(super) const THROTTLING: u16 = 200;

/// The name of an entity; of a file with its database's.
pub(super) fn entity_name(case: &Case<'_>, id: EntityId) -> String {
    let Some(entity) = case.contents.entity(id) else { return String::new() };
    let known = case.system.subjects.iter().find(|subject| subject.entity == id);
    known.map_or_else(|| entity.name.clone(), |subject| case.name(subject.what))
}

/// Names in a sentence: the first few, and how many more there are.
pub(super) fn names(names: &[String]) -> String {
    const MOST: usize = 4;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
