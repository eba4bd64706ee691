//! A report of `iostat`, in text or JSON.

use std::collections::BTreeMap;

/// A report of a run.
pub(super) trait Report {
    /// Returns its time in nanoseconds since 1970, if it has one.
    fn at(&self) -> Option<i64>;

    /// Returns whether iostat was restarted before it.
    fn begins_a_run(&self) -> bool;

    /// Returns its rates that are counts divided by seconds, by device and metric.
    fn counts(&self) -> BTreeMap<(&str, &'static str), f64>;
}
