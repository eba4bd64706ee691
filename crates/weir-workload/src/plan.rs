//! The unchanging half of a process: which operation, how long, in what order.
//! [`JobSpec`] settled into what the data path looks up for every I/O.

use crate::job::{Blocks, Distribution, JobSpec, Mix, Order};
use crate::rng::Rng;

/// Positions in arrays of three.
pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const TRIM: usize = 2;

/// What a process does, whatever it has done so far.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) mix: Mix,
    pub(crate) read_percent: u64,
    pub(crate) order: Order,
    pub(crate) sizes: [Sizes; 3],
    /// What random offsets are a multiple of.
    pub(crate) align: [u64; 3],
    pub(crate) percent_random: [u64; 3],
    pub(crate) random_map: bool,
    /// Random I/Os differ in size, so that the random map cuts those which meet touched blocks.
    pub(crate) cuts: bool,
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
        let endless = spec.time_based && spec.runtime.is_some();
        Self {
            mix: spec.mix,
            read_percent: spec.read_percent.into(),
            order: spec.order,
            sizes: blocks.map(Sizes::new),
            align: std::array::from_fn(|op| {
                align[op].map_or(u64::from(blocks[op].min()), weir_units::Bytes::get)
            }),
            percent_random: percent.map(|percent| (*percent).into()),
            random_map: spec.random_map,
            cuts: spec.cuts_at_touched_blocks(),
            distribution: spec.distribution.clone(),
            endless,
            data_sync: spec.data_sync,
        }
    }

    /// The operation of the next I/O, by the mix alone.
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

    /// One of the operations of the mix.
    pub(crate) fn an_op(&self) -> usize {
        match self.mix {
            Mix::ReadWrite if self.read_percent == 0 => WRITE,
            Mix::Read | Mix::ReadWrite => READ,
            Mix::Write => WRITE,
            Mix::Trim | Mix::TrimWrite => TRIM,
        }
    }

    /// The direction that may go instead of `op`, if the mix has any of it.
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
                let repeat =
                    |(size, share): &(u32, u8)| std::iter::repeat_n(*size, (*share).into());
                let by_percent = sizes.iter().flat_map(repeat).collect();
                Self::Split { min: blocks.min(), by_percent }
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

    /// A length; the smallest one if the drawn one is longer than `room`.
    #[inline]
    pub(crate) fn draw(&self, room: u64, rng: &mut Rng) -> u32 {
        let size = match self {
            Self::Fixed(size) => return *size,
            Self::Range { min, max } => {
                // Multiples of the smallest, the largest itself where it is one.
                let steps = u64::from(*max / *min);
                let size = u64::from(*min) * (1 + rng.below(steps));
                u32::try_from(size).unwrap_or(*max)
            }
            Self::Split { by_percent, .. } => {
                let index = rng.below(by_percent.len() as u64);
                by_percent[usize::try_from(index).unwrap_or(0)]
            }
        };
        if u64::from(size) <= room { size } else { self.min() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
        check(&Blocks::Range { min: 3, max: 7 }, &[(3, 500), (6, 500)]);
    }

    #[test]
    fn a_length_that_does_not_fit_becomes_the_smallest() {
        let sizes = Sizes::new(&Blocks::Split(vec![(4096, 1), (65_536, 99)]));
        let mut rng = Rng::new(&[5]);
        assert!((0..100).all(|_| sizes.draw(65_535, &mut rng) == 4096));
    }
}
