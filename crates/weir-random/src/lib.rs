//! The seeded random generator of the workspace: SplitMix64 (Steele, Lea, Flood 2014).
//!
//! Its state has eight bytes, a draw takes about a nanosecond, and it passes BigCrush. The same seed
//! gives the same numbers on every machine, so a seed reproduces a simulation or a test. It is not
//! for secrets.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "std"))]
extern crate std;

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Makes a generator whose draws depend on all of `parts` and their order.
    #[must_use]
    pub fn new(parts: &[u64]) -> Self {
        let mut rng = Self(0);
        for part in parts {
            rng.0 ^= *part;
            rng.0 = rng.next_u64();
        }
        rng
    }

    /// Makes the generator that other implementations of SplitMix64 have for `seed`.
    #[must_use]
    pub const fn from_state(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Draws a number below `n`, or 0 for `n` = 0. Multiplication and shift make it differ from
    /// uniform by less than `n` / 2^64.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Draws an index below `n`, or 0 for `n` = 0.
    #[expect(clippy::cast_possible_truncation, reason = "the number is below a usize")]
    pub const fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// Draws a number from `from` to `to`, as the remainder of 64 bits.
    pub const fn within(&mut self, from: u64, to: u64) -> u64 {
        match (to - from).checked_add(1) {
            Some(count) => from + self.next_u64() % count,
            None => self.next_u64(),
        }
    }

    /// Draws a float from 0 to below 1.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "a float holds 53 bits")]
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws true with a probability in percent.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }

    /// Draws true or false with equal probability.
    pub const fn flip(&mut self) -> bool {
        self.next_u64() & 1 == 1
    }

    /// Draws one of `all`, if there is any.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.index(all.len()))
    }

    /// Draws one of `all`.
    ///
    /// # Panics
    ///
    /// If `all` is empty.
    #[expect(clippy::cast_possible_truncation, reason = "the number is below a usize")]
    pub const fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[(self.next_u64() % all.len() as u64) as usize]
    }

    /// Fills `bytes` with draws, each in little-endian order.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Draws a number of an exponential distribution.
    #[cfg(feature = "std")]
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "not negative, and larger values saturate"
    )]
    pub fn exponential(&mut self, mean: u64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean as f64) as u64
    }
}

/// Maps 64 bits one to one onto 64 bits, so that each bit of the input changes about half of the
/// output: the finaliser of SplitMix64.
#[inline]
#[must_use]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Derives the seed of part `index` of a run, so that the parts have draws of their own. Part 0 keeps
/// the seed.
#[inline]
#[must_use]
pub const fn split(seed: u64, index: u64) -> u64 {
    seed ^ index.wrapping_mul(GAMMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_reference_implementation() {
        // Vigna's splitmix64.c with the seed 1234567.
        let mut rng = Rng::from_state(1_234_567);
        let expect: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expect.map(|_| rng.next_u64()), expect);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut rng = Rng::new(&[1, 2]);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.pick::<u8>(&[]), None);
        for n in [1, 2, 7, u64::MAX] {
            assert!((0..1000).all(|_| rng.below(n) < n), "{n}");
        }
        assert!((0..1000).all(|_| (3..=5).contains(&rng.within(3, 5))));
        rng.within(0, u64::MAX);
        assert!((0..1000).all(|_| rng.index(3) < 3 && *rng.one(&[5, 6]) > 4));
        assert!((100..300).contains(&(0..1000).filter(|_| rng.chance(20)).count()));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert!((0..1000).all(|_| rng.pick(&[4, 8]).is_some_and(|n| [4, 8].contains(n))));
        assert!((450..550).contains(&(0..1000).filter(|_| rng.flip()).count()));
    }

    #[test]
    fn the_order_of_parts_matters() {
        let first = |parts: &[u64]| Rng::new(parts).next_u64();
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
        assert_eq!(split(7, 0), 7);
        assert_ne!(split(7, 1), split(7, 2));
    }

    #[test]
    fn bytes_are_filled_to_the_end() {
        let mut bytes = [0; 13];
        Rng::from_state(9).fill(&mut bytes);
        let mut rng = Rng::from_state(9);
        let words = [rng.next_u64(), rng.next_u64()].map(u64::to_le_bytes).concat();
        assert_eq!(bytes, words[..13]);
    }
}
