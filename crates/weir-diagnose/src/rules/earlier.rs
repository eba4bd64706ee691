//! The findings of the rules on limits, for rules that come after them.
//!
//! A rule that suspects another cause first looks whether a limit explains the latency. Each rule
//! is run once for a case; its findings are kept in [`Known`](crate::case::Known).

use super::rule::Rule;
use super::{at_disk, at_host, at_log_rate, at_stripe, consumed, credits_out, queued};
use crate::case::Case;
use std::collections::BTreeSet;
use std::rc::Rc;
use weir_report::diagnosis::{Finding, Group};

/// Rules on limits that are known, or whose queue is measured.
pub(super) const LIMITS: [Rule; 9] = [
    at_disk::IN_OPERATIONS,
    at_disk::IN_BYTES,
    at_stripe::RULE,
    at_host::UNCACHED,
    at_host::CACHED,
    at_log_rate::RULE,
    credits_out::RULE,
    consumed::RULE,
    queued::RULE,
];

/// Returns the throttling findings of `rules`.
pub(super) fn findings(case: &Case<'_>, rules: &[Rule]) -> Vec<Finding> {
    rules.iter().flat_map(|rule| of_rule(case, rule).to_vec()).collect()
}

/// Returns the first throttling finding of `rules`.
pub(super) fn first(case: &Case<'_>, rules: &[Rule]) -> Option<Finding> {
    rules.iter().find_map(|rule| of_rule(case, rule).first().cloned())
}

/// Returns the subjects that `rules` find to be throttled.
pub(super) fn subjects(case: &Case<'_>, rules: &[Rule]) -> BTreeSet<String> {
    findings(case, rules).into_iter().map(|finding| finding.subject).collect()
}

/// Returns the throttling findings of a rule, and runs it if it has not run yet.
fn of_rule(case: &Case<'_>, rule: &Rule) -> Rc<Vec<Finding>> {
    if let Some(known) = case.known.throttling.borrow().get(&rule.id) {
        return Rc::clone(known);
    }
    let candidates = (rule.find)(case, rule).into_iter().map(|found| found.finding);
    let throttling = candidates.filter(|finding| finding.group == Group::Throttling);
    let findings = Rc::new(throttling.collect::<Vec<_>>());
    case.known.throttling.borrow_mut().insert(rule.id, Rc::clone(&findings));
    findings
}
