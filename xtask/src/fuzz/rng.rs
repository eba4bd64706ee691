//! Pseudo-random numbers that depend only on the seed and the iteration, so that any input can be
//! reproduced on its own.

/// splitmix64.
#[derive(Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64, iteration: u64) -> Self {
        let mut rng = Self(seed);
        Self(rng.next() ^ iteration.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0. The bias does not matter here.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % n).unwrap_or(0)
    }

    /// Returns one of `all`, if there is any.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
