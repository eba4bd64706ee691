//! The contents that a view of one instant may have, among writes that go on.
//!
//! A clock counts requests and answers, from 1. Instant n is after the n-th of them, and before the next one. A
//! content can be seen from when it was sent, until the last instant before the answer to a later one of its block.
//! All blocks of a view must have been seen in one instant.

use super::super::oracle::Block;

/// A content that was sent.
#[derive(Debug, Clone, Copy)]
struct Given {
    stamp: u64,
    sent: u64,
    answered: Option<u64>,
}

/// The contents of a block since the start of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Moments {
    /// The content at the start; zeros, if there is none.
    first: u64,
    given: Vec<Given>,
}

/// Instants at which a view may have been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Moments {
    /// Begins a round with the newest content of a block.
    pub(super) fn begin(block: &Block) -> Self {
        Self { first: block.newest(), given: Vec::new() }
    }

    /// Adds a content that is sent. The one before it must have been answered.
    pub(super) fn give(&mut self, stamp: u64, now: u64) {
        self.given.push(Given { stamp, sent: now, answered: None });
    }

    /// Takes in that the newest content was answered.
    pub(super) fn answer(&mut self, now: u64) {
        if let Some(newest) = self.given.last_mut() {
            newest.answered = Some(now);
        }
    }

    /// Returns when a content may have been seen. Several of equal content, as zeros, have several windows.
    fn seen(&self, stamp: u64) -> Vec<Window> {
        let first = Given { stamp: self.first, sent: 0, answered: Some(0) };
        let all = || std::iter::once(first).chain(self.given.iter().copied());
        let ends =
            all().skip(1).map(|next| next.answered.map_or(u64::MAX, |own| own.saturating_sub(1)));
        let ends = ends.chain([u64::MAX]);
        let seen = all().zip(ends).filter(move |(given, _)| given.stamp == stamp);
        seen.map(|(given, to)| Window { from: given.sent, to }).collect()
    }
}

impl Window {
    fn and(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), to: self.to.min(other.to) };
        (both.from <= both.to).then_some(both)
    }

    /// Returns when something ran, by the clocks before its start and after its end, which have the number of the
    /// next request.
    pub(super) fn between(start: u64, end: u64) -> Self {
        Self { from: start.saturating_sub(1), to: end.saturating_sub(1) }
    }

    /// Narrows the window by the contents that were found. Returns the instants that are left.
    pub(super) fn narrow<'a>(
        self,
        blocks: impl Iterator<Item = (&'a Moments, u64)>,
    ) -> Result<Vec<Self>, String> {
        let mut left = vec![self];
        for (at, (moments, found)) in blocks.enumerate() {
            let all = moments.seen(found);
            if all.is_empty() {
                return Err(format!("block {at} has content {found}, which it never had"));
            }
            if !all.iter().any(|own| own.and(self).is_some()) {
                return Err(format!(
                    "block {at} has content {found}, seen in {all:?}, and not in {self:?}"
                ));
            }
            let both = left.iter().flat_map(|one| all.iter().filter_map(|own| own.and(*one)));
            let both = joined(both.collect());
            if both.is_empty() {
                return Err(format!(
                    "block {at} has content {found}, seen in {all:?}; the blocks before are of {left:?}: \
                     these are two instants"
                ));
            }
            left = both;
        }
        Ok(left)
    }
}

/// Joins windows that overlap, or they would grow in number with each block.
fn joined(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|own| (own.from, own.to));
    let mut all: Vec<Window> = Vec::new();
    for own in windows {
        match all.last_mut() {
            Some(last) if own.from <= last.to => last.to = last.to.max(own.to),
            _ => all.push(own),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sent and answered contents.
    fn moments(first: u64, given: &[(u64, u64, Option<u64>)]) -> Moments {
        let given = given.iter().map(|(stamp, sent, answered)| Given {
            stamp: *stamp,
            sent: *sent,
            answered: *answered,
        });
        Moments { first, given: given.collect() }
    }

    fn narrowed(blocks: &[(Moments, u64)], from: u64, to: u64) -> Result<Vec<Window>, String> {
        Window { from, to }.narrow(blocks.iter().map(|(own, found)| (own, *found)))
    }

    #[test]
    fn a_view_has_what_was_answered_before_and_nothing_that_was_sent_after() {
        let block = |found| (moments(7, &[(8, 1, Some(2)), (9, 5, Some(6)), (10, 9, None)]), found);
        let fits = |found, from, to| narrowed(&[block(found)], from, to).is_ok();
        assert_eq!([7, 8, 9, 10].map(|found| fits(found, 3, 4)), [false, true, false, false]);
        assert_eq!([7, 8, 9, 10].map(|found| fits(found, 1, 5)), [true, true, true, false]);
        // The last one may be there as soon as it was sent, without an answer.
        assert_eq!([7, 8, 9, 10].map(|found| fits(found, 7, 20)), [false, false, true, true]);
        assert!(narrowed(&[block(11)], 0, 20).is_err_and(|what| what.contains("never")));
    }

    #[test]
    fn all_blocks_are_of_one_instant() {
        let one = moments(7, &[(8, 1, Some(2)), (9, 9, Some(10))]);
        let two = moments(7, &[(8, 3, Some(4))]);
        assert_eq!(
            narrowed(&[(one.clone(), 8), (two.clone(), 8)], 1, 20),
            Ok(vec![Window { from: 3, to: 9 }])
        );
        // The new content of one and the old content of the other were never there together.
        let mixed = narrowed(&[(one, 9), (two, 7)], 1, 20);
        assert!(mixed.is_err_and(|what| what.contains("two instants")));
    }

    #[test]
    fn equal_contents_have_several_windows() {
        let trimmed = moments(0, &[(5, 1, Some(2)), (0, 5, Some(6)), (6, 9, Some(10))]);
        let other = moments(0, &[(3, 7, Some(8))]);
        assert!(narrowed(&[(trimmed.clone(), 0)], 3, 4).is_err());
        assert_eq!(
            narrowed(&[(trimmed.clone(), 0), (other.clone(), 3)], 1, 20),
            Ok(vec![Window { from: 7, to: 9 }])
        );
        assert!(narrowed(&[(trimmed, 0), (other, 3)], 11, 20).is_err());
    }

    #[test]
    fn several_blocks_with_several_windows_have_one_instant_too() {
        // Each of them is zeros twice within the time, and never when another one is.
        let one =
            moments(1, &[(0, 1, Some(2)), (5, 3, Some(4)), (0, 9, Some(10)), (6, 11, Some(12))]);
        let two = moments(1, &[(0, 5, Some(6)), (5, 7, Some(8)), (0, 13, Some(14))]);
        assert!(narrowed(&[(one.clone(), 0)], 0, 20).is_ok_and(|all| all.len() == 2));
        assert!(narrowed(&[(two.clone(), 0)], 0, 20).is_ok_and(|all| all.len() == 2));
        let both = narrowed(&[(one, 0), (two, 0)], 0, 20);
        assert!(both.is_err_and(|what| what.contains("two instants")));
        // Zeros upon zeros are one window.
        let again = moments(0, &[(0, 1, Some(2)), (0, 3, Some(4)), (5, 5, Some(6))]);
        let again = vec![(again, 0); 3];
        assert_eq!(narrowed(&again, 0, 20), Ok(vec![Window { from: 0, to: 5 }]));
    }

    #[test]
    fn nothing_is_seen_before_it_is_sent_or_after_the_answer_to_the_next() {
        // The next request is number 5 when a backup starts and ends.
        let still = Window::between(5, 5);
        let seen = |block: &Moments, found| still.narrow([(block, found)].into_iter()).is_ok();
        let after = moments(7, &[(8, 5, Some(6))]);
        assert!(seen(&after, 7) && !seen(&after, 8), "it was sent after the end");
        let before = moments(7, &[(8, 3, Some(4))]);
        assert!(seen(&before, 8) && !seen(&before, 7), "it was answered before the start");
        let during = moments(7, &[(8, 4, Some(5))]);
        assert!(seen(&during, 7) && seen(&during, 8));
    }
}
