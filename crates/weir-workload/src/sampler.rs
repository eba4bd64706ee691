//! Distributions of random blocks.
//!
//! These shapes are workload statistics, not limits, so they may use floats. For
//! one seed and one build of the standard library the draws repeat bit by bit;
//! `powf` and `exp` may differ in the last bit between platforms.
//!
//! As in fio, the popular blocks of zipf, pareto and normal are scattered over the range. fio
//! hashes them; here, a permutation maps them, so none collide. Zones stay where they are.

use crate::job::{Distribution, Zone};
use crate::permutation::Permutation;
use weir_random::Rng;

/// Draws blocks below a count.
#[derive(Debug, Clone)]
pub(crate) enum Sampler {
    Zipf { zipf: Zipf, order: Permutation },
    Pareto { last: f64, power: f64, order: Permutation },
    Normal { count: u64, deviation: u64, order: Permutation },
    Zoned(Zones),
}

impl Sampler {
    /// Makes the sampler of `count` blocks of `block` bytes; `None` if all are equally likely. `op`
    /// is the direction, 0 to 2.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "statistics; the deviation is a share of a count"
    )]
    pub(crate) fn new(
        distribution: &Distribution,
        op: usize,
        count: u64,
        block: u64,
        rng: &mut Rng,
    ) -> Option<Self> {
        let mut order = || Permutation::new(count, rng);
        match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf { theta } => {
                Some(Self::Zipf { zipf: Zipf::new(count, *theta), order: order() })
            }
            Distribution::Pareto { h } => {
                let power = h.ln() / (1.0 - h).ln();
                Some(Self::Pareto { last: count.saturating_sub(1) as f64, power, order: order() })
            }
            Distribution::Normal { deviation } => {
                let deviation = ((count as f64 * deviation / 100.0).ceil() as u64).min(count / 2);
                Some(Self::Normal { count, deviation, order: order() })
            }
            Distribution::Zoned(zones) => {
                Zones::new(zones.as_array()[op], count, block).map(Self::Zoned)
            }
        }
    }

    /// Draws a block.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the float is from 0 to the last block"
    )]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Zipf { zipf, order } => order.scatter(zipf.draw(rng) - 1),
            Self::Pareto { last, power, order } => {
                order.scatter((last * rng.unit().powf(*power)) as u64)
            }
            Self::Normal { count, deviation, order } => {
                // fio's normal: the mean of twelve uniform draws, then moved by up to
                // half the deviation either way.
                let sum: u64 = (0..12).map(|_| rng.below(*count) / 12).sum();
                let moved = sum + rng.below(*deviation + 1);
                order.scatter(moved.saturating_sub(deviation / 2).min(count - 1))
            }
            Self::Zoned(zones) => zones.draw(rng),
        }
    }
}

/// Ranks 1 to n with weight rank^-theta, exactly, by rejection-inversion (Hörmann and Derflinger
/// 1996): without a table, and with about one draw per sample.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    n: f64,
    theta: f64,
    from: f64,
    to: f64,
    shortcut: f64,
}

impl Zipf {
    #[expect(clippy::cast_precision_loss, reason = "ranks beyond 2^53 are never told apart")]
    fn new(n: u64, theta: f64) -> Self {
        let n = n.max(1) as f64;
        let mut zipf = Self { n, theta, from: 0.0, to: 0.0, shortcut: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the rank is clamped to 1..=n"
    )]
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.to + rng.unit() * (self.from - self.to);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.n);
            let inside = rank - x <= self.shortcut;
            if inside || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns the integral of the weight, which is zero at 1. Theta is never 1.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.theta;
        (power * x.ln()).exp_m1() / power
    }

    fn inverse(&self, y: f64) -> f64 {
        let power = 1.0 - self.theta;
        ((y * power).max(-1.0).ln_1p() / power).exp()
    }
}

/// Zones of the range with their shares of the I/O.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    /// The zone of each percent of the I/O.
    by_percent: Vec<u8>,
    /// First block and number of blocks.
    ranges: Vec<(u64, u64)>,
}

impl Zones {
    fn new(zones: &[Zone], count: u64, block: u64) -> Option<Self> {
        let mut start = 0;
        let (mut by_percent, mut ranges) = (Vec::new(), Vec::new());
        for (index, zone) in (0_u8..).zip(zones) {
            let end = start + zone.size.resolve(count * block);
            let (first, last) = (start / block, (end / block).min(count));
            // A zone that is rounded to nothing gets its I/O on one block.
            let first = first.min(count - 1);
            ranges.push((first, last.saturating_sub(first).max(1)));
            by_percent.extend(std::iter::repeat_n(index, zone.access.into()));
            start = end;
        }
        (!by_percent.is_empty()).then_some(Self { by_percent, ranges })
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let percent = usize::try_from(rng.below(self.by_percent.len() as u64)).unwrap_or(0);
        let (first, blocks) = self.ranges[usize::from(self.by_percent[percent])];
        first + rng.below(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Extent, PerOp};
    use std::collections::HashMap;

    const DRAWS: u64 = 200_000;

    /// Returns how often each block was drawn, most frequent first.
    fn counts(distribution: &Distribution, blocks: u64) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(&[11]);
        let sampler = Sampler::new(distribution, 0, blocks, 4096, &mut rng).unwrap();
        let mut counts = HashMap::new();
        for _ in 0..DRAWS {
            let block = sampler.draw(&mut rng);
            assert!(block < blocks);
            *counts.entry(block).or_insert(0) += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    /// Returns the percentage of the I/O on the `top` most popular blocks.
    fn share(counts: &[(u64, u64)], top: usize) -> u64 {
        counts.iter().take(top).map(|(_, count)| count).sum::<u64>() * 100 / DRAWS
    }

    #[track_caller]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn check_zipf(theta: f64) {
        let counts = counts(&Distribution::Zipf { theta }, 1_000);
        let weights: Vec<f64> = (1..=1_000).map(|rank| f64::from(rank).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        for rank in [0, 1, 2, 9, 50] {
            let expect = weights[rank] / total * DRAWS as f64;
            let got = counts[rank].1 as f64;
            // Five standard deviations of a count, and the order statistics' shift.
            assert!(
                (got - expect).abs() < 5.0 * expect.sqrt() + 0.02 * expect,
                "theta {theta} rank {rank}: {got} instead of {expect}"
            );
        }
        let hottest: Vec<u64> = counts[..3].iter().map(|(block, _)| *block).collect();
        assert_ne!(hottest, [0, 1, 2], "popular blocks are scattered");
    }

    #[test]
    fn zipf_ranks_have_their_weights() {
        check_zipf(0.5);
        check_zipf(0.99);
        check_zipf(1.1);
        check_zipf(2.0);
    }

    #[test]
    fn pareto_gives_most_io_to_few_blocks() {
        // h = 0.2: 80 % of the I/O to 20 % of the blocks.
        let share = share(&counts(&Distribution::Pareto { h: 0.2 }, 1_000), 200);
        assert!((78..=82).contains(&share), "{share} %");
    }

    #[test]
    fn normal_has_the_spread_of_twelve_draws() {
        // Standard deviation count / 12: the middle sixth (one either way) gets 68 %.
        let share = share(&counts(&Distribution::Normal { deviation: 0.0 }, 1_200), 200);
        assert!((66..=71).contains(&share), "{share} %");
        let wider = counts(&Distribution::Normal { deviation: 50.0 }, 1_200);
        assert!(self::share(&wider, 200) < 50);
    }

    #[test]
    fn zones_get_their_shares_in_their_places() {
        let zone = |access, percent| Zone { access, size: Extent::Percent(percent) };
        let zones = vec![zone(60, 10), zone(30, 20), zone(10, 70)];
        let counts = counts(&Distribution::Zoned(PerOp::all(zones)), 1_000);
        let between = |from, to| {
            let inside = counts.iter().filter(|(block, _)| (from..to).contains(block));
            inside.map(|(_, count)| count).sum::<u64>() * 1_000 / DRAWS
        };
        for (from, to, permille) in [(0, 100, 600), (100, 300, 300), (300, 1_000, 100)] {
            let got = between(from, to);
            assert!(got.abs_diff(permille) <= 6, "{from}..{to}: {got} instead of {permille}");
        }
    }

    #[test]
    fn one_block_is_enough_for_every_distribution() {
        let zones = vec![Zone { access: 100, size: Extent::Percent(1) }];
        for distribution in [
            Distribution::Zipf { theta: 1.2 },
            Distribution::Pareto { h: 0.3 },
            Distribution::Normal { deviation: 5.0 },
            Distribution::Zoned(PerOp::all(zones)),
        ] {
            assert_eq!(counts(&distribution, 1), [(0, DRAWS)]);
        }
    }
}
