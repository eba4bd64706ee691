//! A seeded generator of random numbers for tests.

/// A SplitMix64 generator with its state.
#[derive(Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns an integer from `from` to `to`.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.next() % of.len() as u64;
        &of[usize::try_from(at).expect("an index")]
    }

    /// Returns true with a probability in percent.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }
}
