//! Answers of several systems in the order of their times: an answer is given out when nobody
//! who was asked before can still answer for an earlier time.

use std::collections::BTreeMap;
use weir_observe::live::Answer;
use weir_units::{Instant, Span};

/// See the module.
#[derive(Debug)]
pub(super) struct Order {
    /// Since when each is asked and has not answered.
    asked: Vec<Option<Instant>>,
    held: BTreeMap<(Instant, usize), Answer>,
    last: Option<Instant>,
}

impl Order {
    /// Of so many systems.
    pub(super) fn new(systems: usize) -> Self {
        Self { asked: vec![None; systems], held: BTreeMap::new(), last: None }
    }

    /// A system is asked from then on.
    pub(super) fn asked(&mut self, place: usize, at: Instant) {
        self.set(place, Some(at));
    }

    /// It does not answer.
    pub(super) fn gave_up(&mut self, place: usize) {
        self.set(place, None);
    }

    /// It answered, for that time.
    pub(super) fn answered(&mut self, place: usize, at: Instant, answer: Answer) {
        self.set(place, None);
        self.held.insert((at, place), answer);
    }

    /// Nobody is waited for any more.
    pub(super) fn release(&mut self) {
        self.asked.iter_mut().for_each(|at| *at = None);
    }

    /// The answer that is next, if it is known which that is.
    pub(super) fn next(&mut self) -> Option<(Instant, usize, Answer)> {
        let first = self.asked.iter().flatten().min();
        let entry = self.held.first_entry()?;
        if first.is_some_and(|first| *first <= entry.key().0) {
            return None;
        }
        let ((at, place), answer) = entry.remove_entry();
        // Two may be of one nanosecond.
        let at = self.last.map_or(at, |last| at.max(last + Span::from_nanos(1)));
        self.last = Some(at);
        Some((at, place, answer))
    }

    fn set(&mut self, place: usize, at: Option<Instant>) {
        if let Some(own) = self.asked.get_mut(place) {
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

    fn given(order: &mut Order) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| order.next()).map(|(at, place, _)| (at.nanos(), place)).collect()
    }

    #[test]
    fn who_answers_late_is_waited_for() {
        let mut order = Order::new(2);
        let answer = || Answer::Diskstats(String::new());
        order.asked(0, at(10));
        order.asked(1, at(11));
        order.answered(1, at(12), answer());
        assert_eq!(given(&mut order), []);
        order.answered(0, at(11), answer());
        assert_eq!(given(&mut order), [(11, 0), (12, 1)]);
        order.asked(0, at(20));
        order.answered(1, at(19), answer());
        assert_eq!(given(&mut order), [(19, 1)]);
        order.answered(0, at(19), answer());
        assert_eq!(given(&mut order), [(20, 0)], "of one moment, and one after the other");
    }

    #[test]
    fn who_gives_up_holds_nobody() {
        let mut order = Order::new(2);
        order.asked(0, at(10));
        order.answered(1, at(12), Answer::Diskstats(String::new()));
        order.gave_up(0);
        assert_eq!(given(&mut order), [(12, 1)]);
    }
}
