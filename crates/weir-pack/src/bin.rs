//! The bin that is worth most at given prices: a knapsack with several limits.
//!
//! Each room gets a price, too (of the relaxation in which items may be cut), and what an item takes
//! at those prices is its weight: whatever fits all rooms is no heavier than all of them. With one
//! weight the items have an order, by what they are worth for it, and no bin is worth more than the
//! first of them that it can carry and a part of the next (Dantzig 1957). The search takes items in
//! that order or leaves them, and turns back where the bound is no better than the best so far. All
//! of it in whole numbers.

use crate::problem::Problem;
use crate::relaxed;

/// What was found for one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worth {
    /// The items of the best bin that was found.
    pub(crate) items: Vec<usize>,
    /// No bin is worth more.
    pub(crate) most: u64,
    /// What each room is worth, to look again with.
    pub(crate) rooms: Vec<u64>,
}

/// How to look for a bin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'p> {
    /// The items that may be in it.
    pub(crate) items: &'p [usize],
    /// What each item of the problem is worth.
    pub(crate) prices: &'p [u64],
    /// What the rooms are worth, as far as that is known.
    pub(crate) rooms: Option<&'p [u64]>,
    /// The most nodes.
    pub(crate) nodes: u64,
}

/// An item that is worth more than it costs in a bin.
#[derive(Debug, Clone, Copy)]
struct Asset<'p> {
    item: usize,
    profit: u64,
    takes: &'p [u64],
    weight: u64,
}

/// The search for one kind.
struct Search<'p> {
    room: &'p [u64],
    /// What is worth most for its weight comes first.
    assets: Vec<Asset<'p>>,
    /// By depth: profit and weight of all assets before.
    before: Vec<(u128, u128)>,
    nodes: u64,
    best: u64,
    chosen: Vec<bool>,
    kept: Vec<bool>,
    /// The most that something is worth that was not looked at.
    open: u64,
}

/// Looks for the bin of `kind` with the items that are worth most.
pub(crate) fn best(problem: &Problem<'_>, kind: usize, look: Look<'_>) -> Worth {
    let Look { items, prices, rooms, nodes } = look;
    let room = problem.kinds[kind].room.as_slice();
    let empty = vec![0; room.len()];
    let mut assets: Vec<Asset<'_>> = Vec::new();
    for item in items {
        let Some(fit) = problem.fit(kind, *item) else { continue };
        let profit = prices[*item].saturating_sub(fit.cost);
        if profit > 0 && problem.has_room(kind, *item, &empty) {
            assets.push(Asset { item: *item, profit, takes: &fit.takes, weight: 0 });
        }
    }
    if assets.is_empty() {
        return Worth::default();
    }
    // Any prices of rooms are right, those of the relaxation are the sharpest.
    let prices = rooms.map(<[u64]>::to_vec).or_else(|| {
        let pairs: Vec<(u64, &[u64])> = assets.iter().map(|own| (own.profit, own.takes)).collect();
        relaxed::rooms(room, &pairs)
    });
    let prices = prices.unwrap_or_else(|| vec![0; room.len()]);
    let capacity = weigh(&mut assets, &prices, room);
    let before = std::iter::once((0, 0)).chain(assets.iter().scan((0, 0), |sum, asset| {
        *sum = (sum.0 + u128::from(asset.profit), sum.1 + u128::from(asset.weight));
        Some(*sum)
    }));
    let before = before.collect();
    let count = assets.len();
    let mut search = Search {
        room,
        assets,
        before,
        nodes,
        best: 0,
        chosen: vec![false; count],
        kept: vec![false; count],
        open: 0,
    };
    search.greedy();
    search.follow(0, &mut empty.clone(), capacity, 0);
    let kept = search.assets.iter().zip(&search.kept).filter(|(_, is_kept)| **is_kept);
    Worth {
        items: kept.map(|(asset, _)| asset.item).collect(),
        most: search.best.max(search.open),
        rooms: prices,
    }
}

/// Weighs the assets by the prices of rooms, sorts them by what they are worth for it, and returns
/// what all rooms carry. Weights are rounded down and that is rounded up, so that all that fits is
/// carried.
fn weigh(assets: &mut [Asset<'_>], prices: &[u64], room: &[u64]) -> u128 {
    let of = |takes: &[u64]| -> u128 {
        let pairs = prices.iter().zip(takes);
        pairs.map(|(price, takes)| u128::from(*price) * u128::from(*takes)).sum()
    };
    let heaviest = assets.iter().map(|asset| of(asset.takes)).max().unwrap_or(0);
    let shift = (128 - heaviest.leading_zeros()).saturating_sub(60);
    for asset in assets.iter_mut() {
        asset.weight = u64::try_from(of(asset.takes) >> shift).unwrap_or(u64::MAX);
    }
    assets.sort_by(|one, other| {
        let left = u128::from(other.profit) * u128::from(one.weight);
        let right = u128::from(one.profit) * u128::from(other.weight);
        left.cmp(&right).then(one.item.cmp(&other.item))
    });
    (of(room) >> shift) + 1
}

impl Search<'_> {
    /// A first bin: the assets in their order, as long as they fit.
    fn greedy(&mut self) {
        let mut used = vec![0; self.room.len()];
        for at in 0..self.assets.len() {
            if self.fits(at, &used) {
                self.take(at, &mut used);
                self.kept[at] = true;
                self.best += self.assets[at].profit;
            }
        }
    }

    fn fits(&self, at: usize, used: &[u64]) -> bool {
        let all = self.room.iter().zip(used).zip(self.assets[at].takes);
        all.into_iter().all(|((room, used), takes)| takes <= &(room - used))
    }

    fn take(&self, at: usize, used: &mut [u64]) {
        used.iter_mut().zip(self.assets[at].takes).for_each(|(used, takes)| *used += takes);
    }

    /// What the assets from `depth` on are worth at most, if so much more is carried.
    fn most(&self, depth: usize, left: u128) -> u64 {
        let (profit, weight) = self.before[depth];
        // The first that is cut.
        let cut = self.before.partition_point(|(_, sum)| *sum <= weight + left) - 1;
        let (sum, carried) = self.before[cut];
        let whole = sum - profit;
        let part = self.assets.get(cut).map_or(0, |asset| {
            let rest = left - (carried - weight);
            (u128::from(asset.profit) * rest).div_ceil(u128::from(asset.weight.max(1)))
        });
        u64::try_from(whole + part).unwrap_or(u64::MAX)
    }

    /// Decides on the asset at `depth`, of a bin that is worth `value` and carries `left` more.
    fn follow(&mut self, depth: usize, used: &mut Vec<u64>, left: u128, value: u64) {
        if value > self.best {
            self.best = value;
            self.kept.clone_from(&self.chosen);
        }
        if depth == self.assets.len() {
            return;
        }
        let bound = value.saturating_add(self.most(depth, left));
        if bound <= self.best {
            return;
        }
        if self.nodes == 0 {
            self.open = self.open.max(bound);
            return;
        }
        self.nodes -= 1;
        if self.fits(depth, used) {
            let Asset { profit, takes, weight, .. } = self.assets[depth];
            self.take(depth, used);
            self.chosen[depth] = true;
            // What fits is carried, by the way weights are rounded.
            let rest = left.saturating_sub(u128::from(weight));
            self.follow(depth + 1, used, rest, value + profit);
            self.chosen[depth] = false;
            used.iter_mut().zip(takes).for_each(|(used, takes)| *used -= takes);
        }
        self.follow(depth + 1, used, left, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Fit, Item, Kind};

    fn value_of_all(problem: &Problem<'_>, prices: &[u64]) -> u64 {
        let count = problem.items.len();
        let subsets = (0..1_u32 << count).map(|bits| {
            let items: Vec<usize> = (0..count).filter(|at| bits >> at & 1 == 1).collect();
            if !problem.fits(0, &items) {
                return 0;
            }
            items
                .iter()
                .map(|item| prices[*item].saturating_sub(problem.fit(0, *item).unwrap().cost))
                .sum()
        });
        subsets.max().unwrap()
    }

    #[test]
    fn the_best_bin_is_that_of_all_subsets() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..300 {
            let count = 1 + usize::try_from(next(10)).unwrap();
            let room = vec![20 + next(30), 20 + next(30), 5];
            let item = |next: &mut dyn FnMut(u64) -> u64| Item {
                fits: vec![Some(Fit { cost: next(4), takes: vec![next(20), next(20), 1] })],
            };
            let items: Vec<Item> = (0..count).map(|_| item(&mut next)).collect();
            let prices: Vec<u64> = (0..count).map(|_| next(100)).collect();
            let kinds = vec![Kind { cost: 50, room }];
            let problem = Problem { kinds, items, bill: &|_, _| u64::MAX };
            let all: Vec<usize> = (0..count).collect();
            let expected = value_of_all(&problem, &prices);
            let look = |nodes| Look { items: &all, prices: &prices, rooms: None, nodes };
            let value = |worth: &Worth| -> u64 {
                let cost = |item: usize| problem.fit(0, item).unwrap().cost;
                worth.items.iter().map(|item| prices[*item] - cost(*item)).sum()
            };
            let found = best(&problem, 0, look(1_000_000));
            assert_eq!((value(&found), found.most), (expected, expected), "round {round}");
            assert!(problem.fits(0, &found.items));
            // Who does not look may be wrong, and says by how much at most.
            let quick = best(&problem, 0, look(0));
            assert!(value(&quick) <= expected && expected <= quick.most, "round {round}");
            let short = best(&problem, 0, look(3));
            assert!(value(&short) <= expected && expected <= short.most, "round {round}");
        }
    }
}
