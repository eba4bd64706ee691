//! A deterministic random number generator, so that a problem always has the same answer.

/// A linear congruential generator (Knuth's MMIX).
#[derive(Debug)]
pub(crate) struct Lcg(u64);

impl Lcg {
    pub(crate) const fn new() -> Self {
        Self(1)
    }

    /// Returns a number below `below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below.max(1)
    }
}
