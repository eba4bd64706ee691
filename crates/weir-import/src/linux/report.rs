//! A report of `iostat`, in text or JSON.

use std::collections::BTreeMap;

/// A note on reports without disks.
pub(super) const PROCESSORS_ALONE: &str =
    "its reports cover only processors (iostat -c) and say nothing about disks";

/// The beginning of a report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beginning {
    /// Its time in nanoseconds since 1970, if it has one.
    pub(super) at: Option<i64>,
    /// True if iostat was restarted before it.
    pub(super) begins_a_run: bool,
}

/// A report of a run.
pub(super) trait Report {
    /// Returns its beginning.
    fn beginning(&self) -> Beginning;

    /// Returns its rates that are counts divided by seconds, by device and metric.
    fn counts(&self) -> BTreeMap<(&str, &'static str), f64>;

    /// Returns its time in nanoseconds since 1970, if it has one.
    fn at(&self) -> Option<i64> {
        self.beginning().at
    }

    /// Returns whether iostat was restarted before it.
    fn begins_a_run(&self) -> bool {
        self.beginning().begins_a_run
    }
}
