//! The ends of the timeouts of requests.

use crate::book::Id;
use std::collections::VecDeque;
use weir_units::{Instant, Span};

/// Requests that begin within this part of the timeout share a deadline, which is late by at most this
/// part.
const PARTS: u64 = 64;

/// When requests are late. Ids grow with time, so each entry stands for all requests up to an id.
#[derive(Debug)]
pub(crate) struct Deadlines {
    timeout: Span,
    /// The end, and the last request that it is for, oldest first.
    ends: VecDeque<(Instant, Id)>,
}

impl Deadlines {
    pub(crate) fn new(timeout: Span) -> Self {
        Self { timeout, ends: VecDeque::new() }
    }

    /// Starts the timeout of all requests up to the id `last`.
    pub(crate) fn begin(&mut self, now: Instant, last: Id) {
        let end = now + self.timeout;
        match self.ends.back_mut() {
            Some((until, id)) if end < *until => *id = last,
            _ => {
                let part = Span::from_nanos(self.timeout.nanos() / PARTS);
                self.ends.push_back((end + part, last));
            }
        }
    }

    /// Returns the time until the next end.
    pub(crate) fn left(&self, now: Instant) -> Option<Span> {
        self.ends.front().map(|(end, _)| *end - now)
    }

    /// Returns the last id whose timeout is over.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Id> {
        let mut due = None;
        while let Some((end, id)) = self.ends.front()
            && *end <= now
        {
            due = Some(*id);
            self.ends.pop_front();
        }
        due
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_timeout_and_a_part_more_at_most() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut deadlines = Deadlines::new(Span::from_millis(6400));
        // One request a millisecond, so a hundred share an end.
        (0..1000).for_each(|n| deadlines.begin(at(n), n));
        assert_eq!(deadlines.ends.len(), 10);
        let mut next = 0;
        for now in 0..8000 {
            if let Some(last) = deadlines.take_due(at(now)) {
                for id in next..=last {
                    assert!((6400..=6500).contains(&(now - id)), "{id} is late at {now}");
                }
                next = last + 1;
            }
        }
        assert_eq!((next, deadlines.left(at(0))), (1000, None));
    }
}
