//! The pricing problem: the bin of highest value at given dual prices, a knapsack with several
//! dimensions.
//!
//! Branch and bound solves it. Each dimension has a dual price as well, from the knapsack's linear
//! relaxation; the weight of an item is its demand at these prices. A set of items that fits in
//! every dimension is thus no heavier than the capacity at these prices. This surrogate knapsack
//! has one dimension. With its items in order of value per weight, its relaxation takes items in
//! that order and a fraction of the next one, which bounds every node (Dantzig 1957). All
//! arithmetic is in integers.

use crate::problem::Problem;
use crate::relaxed;

/// The result for one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Priced {
    /// The items of the best bin found.
    pub(crate) items: Vec<usize>,
    /// Upper bound of the value of any bin.
    pub(crate) upper_bound: u64,
    /// Dual prices of the capacities, to reuse in another search.
    pub(crate) capacity_prices: Vec<u64>,
}

/// The input of a search, beside the kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knapsack<'p> {
    /// The items to choose from.
    pub(crate) items: &'p [usize],
    /// The dual price of each item of the problem.
    pub(crate) prices: &'p [u64],
    /// Dual prices of the capacities from an earlier search, if there are any.
    pub(crate) capacity_prices: Option<&'p [u64]>,
    pub(crate) node_limit: u64,
}

/// An item whose dual price exceeds its cost in the bin.
#[derive(Debug, Clone, Copy)]
struct Candidate<'p> {
    item: usize,
    profit: u64,
    demand: &'p [u64],
    weight: u64,
}

/// The branch-and-bound search for one kind.
struct Search<'p> {
    capacity: &'p [u64],
    /// In descending order of value per weight.
    candidates: Vec<Candidate<'p>>,
    /// By depth: total profit and weight of the candidates before it.
    prefix: Vec<(u128, u128)>,
    nodes_left: u64,
    /// Value of the best solution.
    best: u64,
    chosen: Vec<bool>,
    best_chosen: Vec<bool>,
    /// Highest upper bound of the nodes left unexplored at the node limit.
    open_bound: u64,
}

/// Finds the set of items of highest value that fits a bin of `kind`.
pub(crate) fn solve(problem: &Problem<'_>, kind: usize, knapsack: Knapsack<'_>) -> Priced {
    let Knapsack { items, prices, capacity_prices, node_limit } = knapsack;
    let capacity = problem.kinds[kind].capacity.as_slice();
    let empty = vec![0; capacity.len()];
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for item in items {
        let Some(fit) = problem.fit(kind, *item) else { continue };
        let profit = prices[*item].saturating_sub(fit.cost);
        if profit > 0 && problem.fits_beside(kind, *item, &empty) {
            candidates.push(Candidate { item: *item, profit, demand: &fit.demand, weight: 0 });
        }
    }
    if candidates.is_empty() {
        return Priced::default();
    }
    // Any capacity prices give a valid bound; those of the relaxation give the tightest.
    let capacity_prices = capacity_prices
        .map(<[u64]>::to_vec)
        .or_else(|| {
            let pairs: Vec<(u64, &[u64])> =
                candidates.iter().map(|candidate| (candidate.profit, candidate.demand)).collect();
            relaxed::capacity_prices(capacity, &pairs)
        })
        .unwrap_or_else(|| vec![0; capacity.len()]);
    let weight_limit = weigh(&mut candidates, &capacity_prices, capacity);
    let prefix = std::iter::once((0, 0)).chain(candidates.iter().scan((0, 0), |sum, candidate| {
        *sum = (sum.0 + u128::from(candidate.profit), sum.1 + u128::from(candidate.weight));
        Some(*sum)
    }));
    let count = candidates.len();
    let mut search = Search {
        capacity,
        prefix: prefix.collect(),
        candidates,
        nodes_left: node_limit,
        best: 0,
        chosen: vec![false; count],
        best_chosen: vec![false; count],
        open_bound: 0,
    };
    search.greedy();
    search.branch(0, &mut empty.clone(), weight_limit, 0);
    let best =
        search.candidates.iter().zip(&search.best_chosen).filter(|(_, is_chosen)| **is_chosen);
    Priced {
        items: best.map(|(candidate, _)| candidate.item).collect(),
        upper_bound: search.best.max(search.open_bound),
        capacity_prices,
    }
}

/// Sets the candidates' weights from capacity prices, sorts them by value per weight, and returns
/// the weight of the capacity. Weights are rounded down and the capacity up, so that the surrogate
/// knapsack admits every set that fits.
fn weigh(candidates: &mut [Candidate<'_>], prices: &[u64], capacity: &[u64]) -> u128 {
    let weight = |demand: &[u64]| -> u128 {
        let pairs = prices.iter().zip(demand);
        pairs.map(|(price, demand)| u128::from(*price) * u128::from(*demand)).sum()
    };
    let heaviest = candidates.iter().map(|candidate| weight(candidate.demand)).max().unwrap_or(0);
    let shift = (128 - heaviest.leading_zeros()).saturating_sub(60);
    for candidate in candidates.iter_mut() {
        candidate.weight = u64::try_from(weight(candidate.demand) >> shift).unwrap_or(u64::MAX);
    }
    candidates.sort_by(|one, other| {
        let left = u128::from(other.profit) * u128::from(one.weight);
        let right = u128::from(one.profit) * u128::from(other.weight);
        left.cmp(&right).then(one.item.cmp(&other.item))
    });
    (weight(capacity) >> shift) + 1
}

impl Search<'_> {
    /// Finds an initial solution: candidates in order, as long as they fit.
    fn greedy(&mut self) {
        let mut used = vec![0; self.capacity.len()];
        for at in 0..self.candidates.len() {
            if self.fits(at, &used) {
                self.take(at, &mut used);
                self.best_chosen[at] = true;
                self.best += self.candidates[at].profit;
            }
        }
    }

    fn fits(&self, at: usize, used: &[u64]) -> bool {
        let all = self.capacity.iter().zip(used).zip(self.candidates[at].demand);
        all.into_iter().all(|((capacity, used), demand)| demand <= &(capacity - used))
    }

    fn take(&self, at: usize, used: &mut [u64]) {
        used.iter_mut().zip(self.candidates[at].demand).for_each(|(used, demand)| *used += demand);
    }

    /// Returns Dantzig's bound: the value of the candidates from `depth` on that the surrogate
    /// knapsack holds with `left` weight to spare, the last one in part.
    fn dantzig_bound(&self, depth: usize, left: u128) -> u64 {
        let (profit, weight) = self.prefix[depth];
        let critical = self.prefix.partition_point(|(_, sum)| *sum <= weight + left) - 1;
        let (sum, carried) = self.prefix[critical];
        let whole = sum - profit;
        let part = self.candidates.get(critical).map_or(0, |candidate| {
            let rest = left - (carried - weight);
            (u128::from(candidate.profit) * rest).div_ceil(u128::from(candidate.weight.max(1)))
        });
        u64::try_from(whole + part).unwrap_or(u64::MAX)
    }

    /// Branches on the candidate at `depth`, in a bin of value `value` with `left` weight to spare.
    fn branch(&mut self, depth: usize, used: &mut Vec<u64>, left: u128, value: u64) {
        if value > self.best {
            self.best = value;
            self.best_chosen.clone_from(&self.chosen);
        }
        if depth == self.candidates.len() {
            return;
        }
        let bound = value.saturating_add(self.dantzig_bound(depth, left));
        if bound <= self.best {
            return;
        }
        if self.nodes_left == 0 {
            self.open_bound = self.open_bound.max(bound);
            return;
        }
        self.nodes_left -= 1;
        if self.fits(depth, used) {
            let Candidate { profit, demand, weight, .. } = self.candidates[depth];
            self.take(depth, used);
            self.chosen[depth] = true;
            // An item that fits is within the weight left, because of the rounding of weights.
            let rest = left.saturating_sub(u128::from(weight));
            self.branch(depth + 1, used, rest, value + profit);
            self.chosen[depth] = false;
            used.iter_mut().zip(demand).for_each(|(used, demand)| *used -= demand);
        }
        self.branch(depth + 1, used, left, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Fit, Item, Kind};

    fn best_value_of_subsets(problem: &Problem<'_>, prices: &[u64]) -> u64 {
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
    fn branch_and_bound_agrees_with_enumeration() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..300 {
            let count = 1 + usize::try_from(next(10)).unwrap();
            let capacity = vec![20 + next(30), 20 + next(30), 5];
            let item = |next: &mut dyn FnMut(u64) -> u64| Item {
                fits: vec![Some(Fit { cost: next(4), demand: vec![next(20), next(20), 1] })],
            };
            let items: Vec<Item> = (0..count).map(|_| item(&mut next)).collect();
            let prices: Vec<u64> = (0..count).map(|_| next(100)).collect();
            let kinds = vec![Kind { cost: 50, capacity }];
            let problem = Problem { kinds, items, bin_cost: &|_, _| u64::MAX };
            let all: Vec<usize> = (0..count).collect();
            let expected = best_value_of_subsets(&problem, &prices);
            let knapsack = |node_limit| Knapsack {
                items: &all,
                prices: &prices,
                capacity_prices: None,
                node_limit,
            };
            let value = |priced: &Priced| -> u64 {
                let cost = |item: usize| problem.fit(0, item).unwrap().cost;
                priced.items.iter().map(|item| prices[*item] - cost(*item)).sum()
            };
            let found = solve(&problem, 0, knapsack(1_000_000));
            assert_eq!((value(&found), found.upper_bound), (expected, expected), "round {round}");
            assert!(problem.fits(0, &found.items));
            // A search that reaches its node limit still returns a valid upper bound.
            let quick = solve(&problem, 0, knapsack(0));
            assert!(value(&quick) <= expected && expected <= quick.upper_bound, "round {round}");
            let short = solve(&problem, 0, knapsack(3));
            assert!(value(&short) <= expected && expected <= short.upper_bound, "round {round}");
        }
    }
}
