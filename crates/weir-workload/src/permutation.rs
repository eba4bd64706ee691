//! A random order of all blocks of a file in constant memory.
//!
//! fio keeps a bitmap of touched blocks. Here, a bijection of the k-bit numbers maps the counter 0,
//! 1, 2, ... (adding a key, multiplying by an odd constant, and combining with the own bits shifted
//! right are all invertible), and results beyond the last block are skipped. k is minimal, so less
//! than half of the results are skipped: on average, a block takes less than two steps.

use weir_random::Rng;

/// The numbers below `len`, each once, in an order that depends on a key.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
    counter: u64,
    left: u64,
}

impl Permutation {
    /// Makes an order of the numbers below `len`.
    pub(crate) fn new(len: u64, rng: &mut Rng) -> Self {
        let mask = len.checked_next_power_of_two().map_or(u64::MAX, |n| n - 1);
        let shift = mask.count_ones().div_ceil(2);
        let mut new = Self { len, mask, shift, keys: [0; 3], counter: 0, left: 0 };
        new.restart(rng);
        new
    }

    /// Restarts with another order.
    pub(crate) fn restart(&mut self, rng: &mut Rng) {
        self.keys = std::array::from_fn(|_| rng.next_u64());
        self.counter = 0;
        self.left = self.len;
    }

    /// Returns the next number; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let n = self.mix(self.counter);
            self.counter += 1;
            if n < self.len {
                return Some(n);
            }
        }
    }

    /// Maps `n`, which is below `len`, without advancing the order.
    pub(crate) fn scatter(&self, mut n: u64) -> u64 {
        // Follows the cycle of n, which returns below len, at the latest at n.
        loop {
            n = self.mix(n);
            if n < self.len {
                return n;
            }
        }
    }

    #[inline]
    fn mix(&self, n: u64) -> u64 {
        const ODD: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x8cb9_2ba7_2f3d_8dd7];
        let mut n = n;
        for (key, odd) in self.keys.iter().zip(ODD) {
            n = n.wrapping_add(*key).wrapping_mul(odd) & self.mask;
            n ^= n >> self.shift;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn each_number_occurs_exactly_once(len in 1_u64..5_000, seed: u64) {
            let mut rng = Rng::new(&[seed]);
            let mut permutation = Permutation::new(len, &mut rng);
            for _pass in 0..2 {
                let mut seen = vec![false; usize::try_from(len).unwrap()];
                while let Some(n) = permutation.next() {
                    let seen = &mut seen[usize::try_from(n).unwrap()];
                    proptest::prop_assert!(!*seen, "{n} came twice");
                    *seen = true;
                }
                proptest::prop_assert!(seen.iter().all(|seen| *seen));
                permutation.restart(&mut rng);
            }
        }

        #[test]
        fn scattering_is_one_to_one(len in 1_u64..2_000, seed: u64) {
            let permutation = Permutation::new(len, &mut Rng::new(&[seed]));
            let mut to: Vec<u64> = (0..len).map(|n| permutation.scatter(n)).collect();
            to.sort_unstable();
            proptest::prop_assert_eq!(to, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_looks_random() {
        // Mean distance of neighbours in a random order of n is n / 3, and the
        // first half of the order must fall evenly on both halves of the numbers.
        for len in [1_000_u64, 65_536, 3_932_160] {
            let mut permutation = Permutation::new(len, &mut Rng::new(&[7]));
            let count = len.min(100_000);
            let order: Vec<u64> = (0..count).map(|_| permutation.next().unwrap()).collect();
            let distance: u64 = order.windows(2).map(|w| w[0].abs_diff(w[1])).sum();
            let mean = distance / (count - 1);
            assert!((len * 31 / 100..len * 36 / 100).contains(&mean), "{len}: {mean}");
            let half = &order[..order.len() / 2];
            let low = half.iter().filter(|n| **n < len / 2).count() * 100 / half.len();
            assert!((47..=53).contains(&low), "{len}: {low} %");
        }
    }

    #[test]
    fn the_whole_range_of_numbers_does_not_overflow() {
        let mut permutation = Permutation::new(u64::MAX, &mut Rng::new(&[1]));
        assert!(permutation.next().is_some());
        assert_eq!(Permutation::new(0, &mut Rng::new(&[1])).next(), None);
    }
}
