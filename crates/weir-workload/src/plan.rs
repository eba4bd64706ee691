//! The constant part of a process: operations, lengths and order. It is the form of a [`JobSpec`]
//! that the data path reads for every I/O.

use crate::job::{Blocks, Distribution, JobSpec, Mix, Order, READ, TRIM, WRITE};
use weir_random::Rng;

/// The constant part of a process.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) mix: Mix,
    pub(crate) read_percent: u64,
    pub(crate) order: Order,
    pub(crate) sizes: [Sizes; 3],
    /// Alignment of random offsets.
    pub(crate) align: [u64; 3],
    pub(crate) percent_random: [u64; 3],
    /// Random blocks come once per pass, in the order of a permutation.
    pub(crate) once: bool,
    /// The blocks of the random map, if the job needs one.
    pub(crate) map_block: Option<u32>,
    pub(crate) distribution: Distribution,
    /// Start over at the end of the range instead of ending.
    pub(crate) endless: bool,
    pub(crate) data_sync: bool,
}

impl Plan {
    pub(crate) fn new(spec: &JobSpec) -> Self {
        let blocks = spec.blocks.as_array();
        let align = spec.align.as_array();
        let percent = spec.percent_random.as_array();
        let cuts = spec.cuts_at_touched_blocks();
        let endless = spec.time_based && spec.runtime.is_some();
        Self {
            mix: spec.mix,
            read_percent: spec.read_percent.into(),
            order: spec.order,
            sizes: blocks.map(Sizes::new),
            align: std::array::from_fn(|op| {
                // A sequential job ignores it, as in fio.
                let own = align[op].filter(|_| matches!(spec.order, Order::Random { .. }));
                own.map_or(u64::from(blocks[op].min()), weir_units::Bytes::get)
            }),
            percent_random: percent.map(|percent| (*percent).into()),
            once: (spec.random_map && !cuts) || spec.has_lfsr(),
            // fio takes the smallest of all directions, used or not.
            map_block: cuts.then(|| blocks.map(Blocks::min).into_iter().min()).flatten(),
            distribution: spec.distribution.clone(),
            endless,
            data_sync: spec.data_sync,
        }
    }

    /// Draws the operation of the next I/O from the mix.
    #[inline]
    pub(crate) fn draw_op(&self, rng: &mut Rng) -> usize {
        match self.mix {
            Mix::Read => READ,
            Mix::Write => WRITE,
            Mix::Trim | Mix::TrimWrite => TRIM,
            Mix::ReadWrite if rng.below(100) < self.read_percent => READ,
            Mix::ReadWrite => WRITE,
        }
    }

    /// Returns one of the operations of the mix.
    pub(crate) fn an_op(&self) -> usize {
        match self.mix {
            Mix::ReadWrite if self.read_percent == 0 => WRITE,
            Mix::Read | Mix::ReadWrite => READ,
            Mix::Write => WRITE,
            Mix::Trim | Mix::TrimWrite => TRIM,
        }
    }

    /// Returns the direction that may replace `op`, if the mix has it.
    pub(crate) fn other(&self, op: usize) -> Option<usize> {
        match (self.mix, op) {
            (Mix::ReadWrite, READ) if self.read_percent < 100 => Some(WRITE),
            (Mix::ReadWrite, WRITE) if self.read_percent > 0 => Some(READ),
            _ => None,
        }
    }
}

/// The lengths of one direction.
#[derive(Debug, Clone)]
pub(crate) enum Sizes {
    Fixed(u32),
    Range { min: u32, max: u32 },
    Split { min: u32, by_percent: Box<[u32]> },
}

impl Sizes {
    fn new(blocks: &Blocks) -> Self {
        match blocks {
            Blocks::Fixed(size) => Self::Fixed(*size),
            Blocks::Range { min, max } => Self::Range { min: *min, max: *max },
            Blocks::Split(sizes) => {
                let min = blocks.min();
                // In fio's order, which determines the replacement of a length that does not fit.
                // Lengths are multiples of the smallest.
                let mut sizes = sizes.clone();
                sizes.sort_by_key(|(_, share)| *share);
                Self::Split {
                    min,
                    by_percent: sizes
                        .iter()
                        .flat_map(|(size, share): &(u32, u8)| {
                            std::iter::repeat_n(*size - *size % min, (*share).into())
                        })
                        .collect(),
                }
            }
        }
    }

    #[inline]
    pub(crate) fn min(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { min, .. } | Self::Split { min, .. } => *min,
        }
    }

    /// Draws a length of at most `room`, which is at least the smallest.
    #[inline]
    pub(crate) fn draw(&self, room: u64, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { min, max } => {
                // A number of at least the smallest length, from as many numbers as the largest has
                // bytes, rounded down to a multiple of the smallest. fio repeats a draw that does
                // not fit; here, such numbers are excluded.
                let numbers = match u64::from(*max) <= room {
                    true => u64::from(*max),
                    false => room - room % u64::from(*min),
                };
                let number = u64::from(*min) + rng.below(numbers);
                let size = number - number % u64::from(*min);
                u32::try_from(size).map_or(*max, |size| size.min(*max))
            }
            Self::Split { by_percent, .. } => loop {
                let index = rng.below(by_percent.len() as u64);
                let from = &by_percent[usize::try_from(index).unwrap_or(0)..];
                // The next length that fits, in their order; if none does, another draw.
                if let Some(size) = from.iter().find(|size| u64::from(**size) <= room) {
                    break *size;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn shares(blocks: &Blocks) -> BTreeMap<u32, u32> {
        let (sizes, mut rng) = (Sizes::new(blocks), Rng::new(&[5]));
        let mut counts = BTreeMap::new();
        (0..100_000).for_each(|_| *counts.entry(sizes.draw(u64::MAX, &mut rng)).or_insert(0) += 1);
        counts
    }

    #[track_caller]
    fn check(blocks: &Blocks, permille: &[(u32, u32)]) {
        let shares = shares(blocks);
        assert_eq!(shares.len(), permille.len(), "{shares:?}");
        for (size, expect) in permille {
            let got = shares[size] / 100;
            assert!(got.abs_diff(*expect) <= 6, "{size}: {got} instead of {expect} permille");
        }
    }

    #[test]
    fn sizes_have_their_shares() {
        check(&Blocks::Split(vec![(4096, 10), (65_536, 90)]), &[(4096, 100), (65_536, 900)]);
        let range = Blocks::Range { min: 1024, max: 4096 };
        check(&range, &[(1024, 250), (2048, 250), (3072, 250), (4096, 250)]);
        // 9, one of the seven numbers from 3 on, is more than the largest.
        check(&Blocks::Range { min: 3, max: 7 }, &[(3, 429), (6, 429), (7, 143)]);
        let uneven = vec![(4096, 50), (6144, 30), (8192, 20)];
        check(&Blocks::Split(uneven), &[(4096, 800), (8192, 200)]);
    }

    #[test]
    fn lengths_fit_into_what_is_left() {
        let mut rng = Rng::new(&[5]);
        let sizes = Sizes::new(&Blocks::Split(vec![(4096, 1), (65_536, 99)]));
        assert!((0..100).all(|_| sizes.draw(65_535, &mut rng) == 4096));
        let sizes = Sizes::new(&Blocks::Range { min: 1000, max: 1 << 30 });
        let drawn: BTreeSet<u32> = (0..1000).map(|_| sizes.draw(3999, &mut rng)).collect();
        assert_eq!(drawn, BTreeSet::from([1000, 2000, 3000]));
        assert!((0..100).all(|_| sizes.draw(1000, &mut rng) == 1000));
    }
}
