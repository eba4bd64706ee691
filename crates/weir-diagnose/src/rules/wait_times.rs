//! Sums of wait times by class or name.

use super::waits::{Class, resource_waits, share};
use crate::case::Case;
use crate::follow::WaitFacts;
use crate::seconds::at_s;
use weir_report::number::{percent, rate, time};

/// Minimum mean number of waiting sessions. With fewer, waits are not noticeable.
pub(super) const WAITERS: f64 = 0.5;

/// Wait time of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitedFor {
    /// Share of all wait time.
    pub(super) share: f64,
    /// Mean number of waiting sessions.
    pub(super) waiters: f64,
    /// Total wait time in milliseconds.
    pub(super) time_ms: f64,
    /// Number of waits, if known.
    pub(super) count: Option<f64>,
}

impl WaitedFor {
    /// Returns a description.
    pub(super) fn words(&self) -> String {
        let each = self.count.filter(|count| *count > 0.0).map_or(String::new(), |count| {
            format!(", {} waits of {} each", rate(count), time(self.time_ms * 1e6 / count))
        });
        format!(
            "{} of all wait time, {} waiting sessions on average{each}",
            percent(self.share),
            rate(self.waiters)
        )
    }
}

/// Sums up the waits that `is` selects.
pub(super) fn of_waits(case: &Case<'_>, is: impl Fn(&WaitFacts) -> bool) -> Option<WaitedFor> {
    let waits = resource_waits(case);
    let all: f64 = waits.iter().map(|wait| wait.time_ms).sum();
    let (from, to) = case.facts.span?;
    let seconds = at_s(to) - at_s(from);
    if all <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let own: Vec<_> = waits.into_iter().filter(|wait| is(wait)).collect();
    let time_ms: f64 = own.iter().map(|wait| wait.time_ms).sum();
    let count = own.iter().map(|wait| wait.count).sum::<Option<f64>>();
    Some(WaitedFor { share: time_ms / all, waiters: time_ms / 1e3 / seconds, time_ms, count })
}

/// Sums up the waits of a class.
pub(super) fn of_class(case: &Case<'_>, class: Class) -> Option<WaitedFor> {
    of_waits(case, |wait| Class::from_name(&wait.name) == class)
}

/// Lists the longest of the selected waits.
pub(super) fn longest(case: &Case<'_>, is: impl Fn(&WaitFacts) -> bool) -> String {
    let waits = resource_waits(case).into_iter().filter(|wait| is(wait));
    let words = waits.take(3).map(|wait| {
        let count = wait.count.map_or(String::new(), |count| format!(" in {} waits", rate(count)));
        format!("{} {}{count}", wait.name, time(wait.time_ms * 1e6))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the share of storage in all wait time, in words.
pub(super) fn storage_words(case: &Case<'_>) -> Option<String> {
    let classes = [Class::DataIo, Class::Log, Class::LogGovernor];
    let sum = |sum: f64, class| Some(sum + share(case, class)?);
    let storage = classes.into_iter().try_fold(0.0, sum)?;
    Some(format!("waits for storage: {} of all wait time", percent(storage)))
}

/// Returns whether a wait is for query memory.
pub(super) fn is_memory_grant(wait: &WaitFacts) -> bool {
    wait.name.to_ascii_uppercase().starts_with("RESOURCE_SEMAPHORE")
}

/// Returns whether a wait is for a page in memory, and not for a read of it.
pub(super) fn is_page_latch(wait: &WaitFacts) -> bool {
    wait.name.to_ascii_uppercase().starts_with("PAGELATCH_")
}
