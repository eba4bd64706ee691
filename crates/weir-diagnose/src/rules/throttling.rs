//! All rules on throttling, in the order of their numbers.

use super::earlier::{self, LIMITS};
use super::rule::Rule;
use super::{backup_limit, ceiling};
use crate::case::Case;
use std::collections::BTreeSet;
use weir_report::diagnosis::Finding;

/// Rules on the throttling of files, disks, stripes and machines.
pub(super) const OF_SUBJECTS: [Rule; LIMITS.len() + 1] = {
    let mut all = [ceiling::RULE; LIMITS.len() + 1];
    let mut at = 0;
    while at < LIMITS.len() {
        all[at] = LIMITS[at];
        at += 1;
    }
    all
};

/// Returns the first finding of throttling.
pub(super) fn first(case: &Case<'_>) -> Option<Finding> {
    earlier::first(case, &OF_SUBJECTS).or_else(|| earlier::first(case, &[backup_limit::RULE]))
}

/// Returns the throttled subjects and backups.
pub(super) fn throttled(case: &Case<'_>) -> BTreeSet<String> {
    let mut all = earlier::subjects(case, &OF_SUBJECTS);
    all.extend(earlier::subjects(case, &[backup_limit::RULE]));
    all
}
