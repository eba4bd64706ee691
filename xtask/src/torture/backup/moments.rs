//! The contents that a view of one instant may have, among writes that go on.
//!
//! A clock counts requests and answers. A content can be seen from when it was sent, until a later one of its
//! block was answered. All blocks of a view must have been seen in one instant.

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

/// The instants at which a view may have been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Moments {
    /// Returns the contents of a block before a round.
    pub(super) fn of(block: &Block) -> Self {
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
    fn seen(&self, stamp: u64) -> impl Iterator<Item = Window> + '_ {
        let first = Given { stamp: self.first, sent: 0, answered: Some(0) };
        let all = || std::iter::once(first).chain(self.given.iter().copied());
        let ends = all().skip(1).map(|next| next.answered.unwrap_or(u64::MAX));
        let ends = ends.chain([u64::MAX]);
        let seen = all().zip(ends).filter(move |(given, _)| given.stamp == stamp);
        seen.map(|(given, to)| Window { from: given.sent, to }).collect::<Vec<_>>().into_iter()
    }
}

impl Window {
    fn and(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), to: self.to.min(other.to) };
        (both.from <= both.to).then_some(both)
    }

    /// Narrows the window by the contents that were found.
    pub(super) fn narrow<'a>(
        mut self,
        blocks: impl Iterator<Item = (&'a Moments, u64)> + Clone,
    ) -> Result<Self, String> {
        let whole = self;
        // Contents that were sent once decide first.
        for is_last in [false, true] {
            for (at, (moments, found)) in blocks.clone().enumerate() {
                let all: Vec<_> = moments.seen(found).collect();
                if all.is_empty() {
                    return Err(format!("block {at} has content {found}, which it never had"));
                }
                if !all.iter().any(|own| own.and(whole).is_some()) {
                    return Err(format!(
                        "block {at} has content {found}, seen in {all:?}, and not in {whole:?}"
                    ));
                }
                let fits: Vec<_> = all.iter().filter_map(|own| own.and(self)).collect();
                match fits[..] {
                    [] => {
                        return Err(format!(
                            "block {at} has content {found}, seen in {all:?}; the blocks before are of {self:?}: \
                             these are two instants"
                        ));
                    }
                    [one] if all.len() == 1 || is_last => self = one,
                    _ => {}
                }
            }
        }
        Ok(self)
    }
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

    fn narrowed(blocks: &[(Moments, u64)], from: u64, to: u64) -> Result<Window, String> {
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
            Ok(Window { from: 3, to: 10 })
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
            Ok(Window { from: 7, to: 10 })
        );
        assert!(narrowed(&[(trimmed, 0), (other, 3)], 11, 20).is_err());
    }
}
