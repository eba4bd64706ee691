//! A small seeded generator: SplitMix64 (Steele, Lea, Flood 2014). Eight bytes of
//! state, about a nanosecond a draw, passes BigCrush. Nothing here is secret.

/// Source of all randomness of one process.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator whose draws depend on all of `parts` and their order.
    pub(crate) fn new(parts: &[u64]) -> Self {
        let mut rng = Self(0);
        for part in parts {
            rng.0 ^= *part;
            rng.0 = rng.next();
        }
        rng
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` by multiply and shift; 0 for `n` = 0. Off from uniform
    /// by less than `n` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A float from 0 to below 1.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
