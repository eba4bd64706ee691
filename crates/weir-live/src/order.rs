//! Answers of several systems, merged by time.

use std::collections::BTreeMap;
use weir_import::live::Answer;
use weir_units::{Instant, Span};

/// A queue that returns answers in the order of their times. It keeps an answer back as long as a
/// system that was polled earlier can still answer for an earlier time.
#[derive(Debug)]
pub(crate) struct TimeOrder {
    /// Start of the poll in flight, by system.
    polled: Vec<Option<Instant>>,
    queued: BTreeMap<(Instant, usize), Answer>,
    last: Option<Instant>,
}

impl TimeOrder {
    /// Starts with `systems` idle systems.
    pub(crate) fn new(systems: usize) -> Self {
        Self { polled: vec![None; systems], queued: BTreeMap::new(), last: None }
    }

    /// Starts a poll.
    pub(crate) fn polled(&mut self, system: usize, at: Instant) {
        self.set(system, Some(at));
    }

    /// Ends a poll without an answer.
    pub(crate) fn failed(&mut self, system: usize) {
        self.set(system, None);
    }

    /// Ends a poll with an answer for the time `at`.
    pub(crate) fn answered(&mut self, system: usize, at: Instant, answer: Answer) {
        self.set(system, None);
        self.queued.insert((at, system), answer);
    }

    /// Abandons all polls in flight.
    pub(crate) fn release(&mut self) {
        self.polled.fill(None);
    }

    /// Returns the next answer, unless an earlier one can still arrive.
    pub(crate) fn next(&mut self) -> Option<(Instant, usize, Answer)> {
        let first = self.polled.iter().flatten().min();
        let entry = self.queued.first_entry()?;
        if first.is_some_and(|first| *first <= entry.key().0) {
            return None;
        }
        let ((at, system), answer) = entry.remove_entry();
        // Times in an observation are distinct; two answers can have the same nanosecond.
        let at = self.last.map_or(at, |last| at.max(last + Span::from_nanos(1)));
        self.last = Some(at);
        Some((at, system, answer))
    }

    fn set(&mut self, system: usize, at: Option<Instant>) {
        if let Some(own) = self.polled.get_mut(system) {
            *own = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    fn drain(order: &mut TimeOrder) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| order.next()).map(|(at, system, _)| (at.nanos(), system)).collect()
    }

    #[test]
    fn a_late_answer_is_waited_for() {
        let mut order = TimeOrder::new(2);
        let answer = || Answer::Diskstats(String::new());
        order.polled(0, at(10));
        order.polled(1, at(11));
        order.answered(1, at(12), answer());
        assert_eq!(drain(&mut order), []);
        order.answered(0, at(11), answer());
        assert_eq!(drain(&mut order), [(11, 0), (12, 1)]);
        order.polled(0, at(20));
        order.answered(1, at(19), answer());
        assert_eq!(drain(&mut order), [(19, 1)]);
        order.answered(0, at(19), answer());
        assert_eq!(drain(&mut order), [(20, 0)], "two answers of one moment get distinct times");
    }

    #[test]
    fn a_failed_poll_delays_no_other_system() {
        let mut order = TimeOrder::new(2);
        order.polled(0, at(10));
        order.answered(1, at(12), Answer::Diskstats(String::new()));
        order.failed(0);
        assert_eq!(drain(&mut order), [(12, 1)]);
    }
}
