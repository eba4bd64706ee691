//! Numbers that look drawn and are the same every time, so that one problem has one answer.

/// A linear congruential generator (Knuth's MMIX).
#[derive(Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new() -> Self {
        Self(1)
    }

    /// One of the first `below` places.
    pub(crate) fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below.max(1)
    }
}
