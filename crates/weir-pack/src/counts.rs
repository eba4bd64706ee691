//! The integer program over the numbers of bins per kind, with one variable per kind.
//!
//! Its constraints are cuts, valid for every packing. Any dual prices yield one: the bins of a
//! packing contain all items, so with each bin counted at an upper bound of its value they reach
//! the sum of the prices. There are three sources of prices:
//!
//! - each dimension (the price of an item is its demand);
//! - large items (a bin holds at most one of those above half its capacity);
//! - relaxations (Benders 1962).
//!
//! A single cut allows two thirds of a large bin. All cuts together, in integers, exclude it.

use crate::cut::Cut;
use crate::problem::{Kind, Problem};
use crate::relaxed;
use std::collections::BTreeSet;

/// Node limit of the branch-and-bound search.
const NODE_LIMIT: u64 = 60_000;

/// Maximum multiple at which kinds are compared for dominance.
const MAX_MULTIPLE: u64 = 64;

/// Items are large if a bin holds at most this many of them.
const LARGE_PER_BIN: u64 = 4;

/// Maximum number of sets of kinds for which separate cuts are derived.
const MAX_KIND_SETS: usize = 8;

/// One, in the fixed-point format of the multipliers.
const ONE: f64 = 1_099_511_627_776.0;

/// A solution of the integer program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Solution {
    /// Lower bound of the cost of any packing.
    pub(crate) cost: u64,
    /// Numbers of bins by kind: the optimum, or the best solution found within the node limit.
    /// `None` if no solution costs less than the cutoff.
    pub(crate) counts: Option<Vec<u64>>,
    /// Lower bound of the items' costs with these bins.
    costs: u64,
}

impl Solution {
    fn violates(&self, cut: &Cut) -> bool {
        self.counts.as_ref().is_some_and(|counts| cut.is_violated_by(counts, self.costs))
    }
}

/// The cuts of a problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cuts {
    cuts: Vec<Cut>,
    /// Cuts that no solution has violated yet.
    pool: Vec<Cut>,
    /// Sum of each item's lowest cost, without bins.
    base: u64,
}

impl Cuts {
    /// Derives the cuts from the items' demands.
    pub(crate) fn new(problem: &Problem<'_>, items: &[usize]) -> Self {
        let costs = items.iter().map(|item| {
            let fits = problem.items[*item].fits.iter().flatten();
            fits.map(|fit| fit.cost).min().unwrap_or(0)
        });
        let base = costs.fold(0, u64::saturating_add);
        let mut cuts = BTreeSet::new();
        for group in items_by_kind_set(problem, items) {
            let dimensions = problem.kinds.first().map_or(0, |kind| kind.capacity.len());
            for dimension in 0..dimensions {
                cuts.extend(dimension_cuts(problem, items, &group, dimension));
            }
        }
        Self { cuts: Vec::new(), pool: cuts.into_iter().collect(), base }
    }

    /// Adds the cut of dual prices with upper bounds `most` of a bin's value by kind. Returns
    /// whether `now` violates it; otherwise the cut is dropped.
    pub(crate) fn add(
        &mut self,
        prices: impl Iterator<Item = u64>,
        most: &[u64],
        now: &Solution,
    ) -> bool {
        let sum = prices.fold(0_u128, |sum, price| sum + u128::from(price));
        // A lower right-hand side is weaker but still valid.
        let rhs = u64::try_from(sum).unwrap_or(u64::MAX);
        let cut = Cut { weights: most.to_vec(), has_costs: true, rhs };
        let is_new = now.violates(&cut);
        if is_new {
            self.cuts.push(cut);
        }
        is_new
    }

    /// Solves the integer program, with violated cuts from the pool added until there are none. The
    /// result is exact below `cutoff`.
    pub(crate) fn solve(&mut self, kinds: &[Kind], items: usize, cutoff: u64) -> Solution {
        loop {
            let known = self.cuts.len();
            let solution = search(kinds, &self.cuts, self.base, items as u64, cutoff);
            let (violated, satisfied) = std::mem::take(&mut self.pool)
                .into_iter()
                .partition::<Vec<Cut>, _>(|cut| solution.violates(cut));
            self.pool = satisfied;
            if solution.counts.is_none() && solution.cost < cutoff {
                // Without a solution to test them, add all cuts.
                self.cuts.append(&mut self.pool);
            }
            self.cuts.extend(violated);
            if self.cuts.len() == known {
                return solution;
            }
        }
    }
}

/// Returns all items, and for some sets of kinds the items that fit no other kind.
fn items_by_kind_set(problem: &Problem<'_>, items: &[usize]) -> Vec<(Vec<bool>, Vec<usize>)> {
    let kind_set = |item: usize| -> Vec<bool> {
        problem.items[item].fits.iter().map(Option::is_some).collect()
    };
    let mut sets: BTreeSet<Vec<bool>> = items.iter().map(|item| kind_set(*item)).collect();
    while sets.len() > MAX_KIND_SETS {
        sets.pop_last();
    }
    sets.insert(vec![true; problem.kinds.len()]);
    sets.into_iter()
        .map(|set| {
            let is_subset =
                |item: &&usize| kind_set(**item).iter().zip(&set).all(|(own, all)| !own || *all);
            let members = items.iter().filter(is_subset).copied().collect();
            (set, members)
        })
        .collect()
}

/// Derives the cuts of one dimension for items restricted to a set of kinds.
fn dimension_cuts(
    problem: &Problem<'_>,
    items: &[usize],
    (kinds, members): &(Vec<bool>, Vec<usize>),
    dimension: usize,
) -> Vec<Cut> {
    let capacity = |kind: usize| problem.kinds[kind].capacity[dimension];
    let lowest_demands = members.iter().map(|item| {
        let fits = problem.items[*item].fits.iter().flatten();
        fits.map(|fit| fit.demand[dimension]).min().unwrap_or(0)
    });
    let mut sizes: Vec<u64> = lowest_demands.collect();
    sizes.sort_unstable();
    let sum: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    let allowed = || (0..kinds.len()).filter(|kind| kinds[*kind]);
    let weights = |weight: &dyn Fn(usize) -> u64| -> Vec<u64> {
        (0..kinds.len()).map(|kind| if kinds[kind] { weight(kind) } else { 0 }).collect()
    };
    let mut cuts = Vec::new();
    if let Ok(sum) = u64::try_from(sum) {
        cuts.push(Cut::bins_only(weights(&capacity), sum));
    }
    // Zero counts all items with a demand: a bin holds a limited number of the smallest.
    let mut thresholds = BTreeSet::from([0]);
    for kind in allowed() {
        thresholds.extend((1..=LARGE_PER_BIN).map(|count| capacity(kind) / (count + 1)));
    }
    for threshold in thresholds {
        let large = &sizes[sizes.partition_point(|size| *size <= threshold)..];
        // The smallest items give the highest number that a bin can hold.
        let max_count = |kind: usize| {
            let mut left = capacity(kind);
            large
                .iter()
                .take_while(|size: &&u64| {
                    let is_in = **size <= left;
                    left = left.saturating_sub(**size);
                    is_in
                })
                .count() as u64
        };
        cuts.push(Cut::bins_only(weights(&max_count), large.len() as u64));
    }
    // A cut that any single bin satisfies is redundant.
    cuts.retain(|cut| allowed().any(|kind| cut.weights[kind] < cut.rhs) && !items.is_empty());
    cuts
}

/// Returns the kinds that no pair of cheaper kinds dominates in all cuts; ascending by cost.
fn undominated(kinds: &[Kind], cuts: &[Cut]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|kind| (kinds[*kind].cost, *kind));
    let mut kept: Vec<usize> = Vec::new();
    let times = |kind: usize, left: u64| match kinds[kind].cost {
        0 => MAX_MULTIPLE,
        cost => (left / cost).min(MAX_MULTIPLE),
    };
    for own in order {
        let is_dominated_by = |one: usize, count: u64, other: usize, rest: u64| {
            cuts.iter().all(|cut| {
                let weight =
                    |kind: usize, count: u64| u128::from(cut.weights[kind]) * u128::from(count);
                weight(one, count) + weight(other, rest) >= u128::from(cut.weights[own])
            })
        };
        let is_dominated = kept.iter().any(|one| {
            (1..=times(*one, kinds[own].cost)).any(|count| {
                let left = kinds[own].cost - kinds[*one].cost * count;
                kept.iter().any(|other| is_dominated_by(*one, count, *other, times(*other, left)))
            })
        });
        if !is_dominated {
            kept.push(own);
        }
    }
    kept
}

/// A surrogate constraint: a weighted sum of cuts.
#[derive(Debug, Clone, Default)]
struct Surrogate {
    /// By kind.
    weights: Vec<u128>,
    /// Weight of the items' costs.
    costs: u128,
    rhs: u128,
}

impl Surrogate {
    /// Combines cuts with the multipliers of the linear relaxation, which give the highest bound.
    fn new(kinds: &[Kind], cuts: &[Cut], base: u64) -> Self {
        let mut sum = Self { weights: vec![0; kinds.len()], ..Self::default() };
        for (cut, times) in cuts.iter().zip(relaxed::multipliers(kinds, cuts, base)) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "any nonnegative multiplier is valid"
            )]
            let times = (times.max(0.0) * ONE) as u128;
            let mut next = sum.clone();
            let add = |sum: &mut u128, own: u64| {
                let more = times.checked_mul(u128::from(own))?;
                *sum = sum.checked_add(more)?;
                Some(())
            };
            let mut all = next.weights.iter_mut().zip(&cut.weights);
            let is_small = all.all(|(sum, own)| add(sum, *own).is_some())
                && add(&mut next.costs, u64::from(cut.has_costs)).is_some()
                && add(&mut next.rhs, cut.rhs).is_some();
            if is_small {
                sum = next;
            }
        }
        // Products with costs, which are less than 2^56, must not overflow. Weights are rounded up.
        let largest = sum.weights.iter().chain([&sum.costs, &sum.rhs]).max();
        let shift =
            (128 - largest.map_or(128, |largest| largest.leading_zeros())).saturating_sub(70);
        if shift > 0 {
            let all = sum.weights.iter_mut().chain([&mut sum.costs]);
            all.filter(|weight| **weight > 0).for_each(|weight| *weight = (*weight >> shift) + 1);
            sum.rhs >>= shift;
        }
        sum
    }
}

/// The branch-and-bound search over the numbers of bins per kind.
struct Search<'r> {
    cuts: &'r [Cut],
    /// Cost and index by kind, in ascending order of surrogate weight per cost.
    kinds: Vec<(u64, usize)>,
    sum: Surrogate,
    /// By depth: cost and weight of the kind with the highest weight per cost from there on.
    after: Vec<(u64, u128)>,
    /// Maximum number of bins of a kind.
    most: u64,
    nodes_left: u64,
    /// Counts of the current node by kind.
    counts: Vec<u64>,
    best: Solution,
    /// Lowest bound of the nodes left unexplored at the node limit.
    open_bound: u64,
}

/// Solves the integer program by branch and bound, for solutions below `cutoff`.
fn search(kinds: &[Kind], cuts: &[Cut], base: u64, items: u64, cutoff: u64) -> Solution {
    let sum = Surrogate::new(kinds, cuts, base);
    let mut order: Vec<(u64, usize)> = undominated(kinds, cuts)
        .into_iter()
        .map(|kind| (kinds[kind].cost, kind))
        .filter(|(cost, _)| *cost < cutoff)
        .collect();
    order.sort_by(|one, other| {
        // A kind without cost and weight has no ratio. It is sorted before the others.
        let has_ratio = |(cost, kind): &(u64, usize)| *cost > 0 || sum.weights[*kind] > 0;
        let ratio = (u128::from(other.0) * sum.weights[one.1])
            .cmp(&(u128::from(one.0) * sum.weights[other.1]));
        has_ratio(one).cmp(&has_ratio(other)).then(ratio).then(one.1.cmp(&other.1))
    });
    let mut after = vec![(1, sum.costs)];
    for (cost, kind) in order.iter().rev() {
        let (best, weight) = after[after.len() - 1];
        let own = sum.weights[*kind];
        let is_more = own * u128::from(best) > weight * u128::from(*cost);
        after.push(if is_more { (*cost, own) } else { (best, weight) });
    }
    after.reverse();
    let left: Vec<u128> = cuts
        .iter()
        .map(|cut| {
            u128::from(cut.rhs).saturating_sub(if cut.has_costs { u128::from(base) } else { 0 })
        })
        .collect();
    let rest = sum.rhs.saturating_sub(sum.costs.saturating_mul(u128::from(base)));
    let mut search = Search {
        cuts,
        counts: vec![0; kinds.len()],
        kinds: order,
        sum,
        after,
        most: items.saturating_mul(2 * MAX_MULTIPLE),
        nodes_left: NODE_LIMIT,
        best: Solution { cost: cutoff, counts: None, costs: base },
        open_bound: u64::MAX,
    };
    search.branch(0, base, &left, rest, base);
    let Search { mut best, open_bound, .. } = search;
    best.cost = best.cost.min(open_bound);
    best
}

impl Search<'_> {
    /// Returns the lower bound of a node, from the surrogate constraint with `rest` still to reach.
    fn bound(&self, depth: usize, cost: u64, rest: u128) -> u64 {
        let (dear, weight) = self.after[depth];
        if rest == 0 {
            return cost;
        }
        if weight == 0 {
            return u64::MAX;
        }
        let more = (rest * u128::from(dear)).div_ceil(weight);
        cost.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// Branches on the number of bins of the kind at a depth.
    fn branch(&mut self, depth: usize, cost: u64, left: &[u128], rest: u128, base: u64) {
        let bound = self.bound(depth, cost, rest);
        if bound >= self.best.cost {
            return;
        }
        if self.nodes_left == 0 {
            self.open_bound = self.open_bound.min(bound);
            return;
        }
        self.nodes_left -= 1;
        let Some((own, kind)) = self.kinds.get(depth).copied() else { return };
        if depth + 1 == self.kinds.len() {
            self.complete(cost, left, base);
            return;
        }
        let (mut cost, mut left, mut rest) = (cost, left.to_vec(), rest);
        for count in 0..=self.most {
            // Bounds increase with the count, because later kinds have more weight per cost.
            let bound = self.bound(depth, cost, rest);
            if bound >= self.best.cost {
                break;
            }
            if self.nodes_left == 0 {
                self.open_bound = self.open_bound.min(bound);
                break;
            }
            self.counts[kind] = count;
            self.branch(depth + 1, cost, &left, rest, base);
            if left.iter().all(|left| *left == 0) {
                break;
            }
            cost = cost.saturating_add(own);
            rest = rest.saturating_sub(self.sum.weights[kind]);
            for (left, cut) in left.iter_mut().zip(self.cuts) {
                *left = left.saturating_sub(u128::from(cut.weights[kind]));
            }
        }
        self.counts[kind] = 0;
    }

    /// Completes a solution with the best number of bins of the last kind.
    fn complete(&mut self, cost: u64, left: &[u128], base: u64) {
        let Some((own, kind)) = self.kinds.last().copied() else { return };
        let mut least = 0_u128;
        for (left, cut) in left.iter().zip(self.cuts).filter(|(_, cut)| !cut.has_costs) {
            let weight = u128::from(cut.weights[kind]);
            if *left > 0 && weight == 0 {
                return;
            }
            least = least.max(left.div_ceil(weight.max(1)));
        }
        let Ok(least) = u64::try_from(least) else { return };
        // The items' costs above their base.
        let beyond = |count: u64| {
            let cuts = left.iter().zip(self.cuts).filter(|(_, cut)| cut.has_costs);
            let missing = cuts.map(|(left, cut)| {
                left.saturating_sub(u128::from(cut.weights[kind]) * u128::from(count))
            });
            missing.max().unwrap_or(0)
        };
        let total =
            |count: u64| u128::from(cost) + u128::from(own) * u128::from(count) + beyond(count);
        // The cost is convex in the count.
        let (mut count, mut most) = (least, self.most.max(least));
        while count < most {
            let middle = count + (most - count) / 2;
            if total(middle + 1) < total(middle) {
                count = middle + 1;
            } else {
                most = middle;
            }
        }
        if let (Ok(sum), Ok(beyond)) = (u64::try_from(total(count)), u64::try_from(beyond(count)))
            && sum < self.best.cost
        {
            let mut counts = self.counts.clone();
            counts[kind] = count;
            let costs = base.saturating_add(beyond);
            self.best = Solution { cost: sum, counts: Some(counts), costs };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lcg::Lcg;
    use crate::problem::{Fit, Item, cost};
    use crate::testing::{below, bin_cost, counts_and_costs, dual, packing, random};

    #[test]
    fn every_packing_satisfies_the_cuts() {
        let mut rng = Lcg::new();
        let (mut from_demand, mut from_prices) = (0, 0);
        for round in 0..150 {
            let (kinds, items) = random(&mut rng, 9);
            let bin_cost = bin_cost(&kinds, &items);
            let problem =
                Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
            let all: Vec<usize> = (0..items.len()).collect();
            let mut cuts = Cuts::new(&problem, &all);
            from_demand += cuts.pool.len();
            let no_bins = Solution { cost: 0, counts: Some(vec![0; 3]), costs: 0 };
            for _ in 0..4 {
                let (prices, most) = dual(&problem, &mut rng, 90);
                from_prices += usize::from(cuts.add(prices.iter().copied(), &most, &no_bins));
            }
            let known: Vec<Cut> = cuts.pool.iter().chain(&cuts.cuts).cloned().collect();
            let least = cuts.solve(&kinds, items.len(), u64::MAX >> 8).cost;
            for _ in 0..200 {
                let bins = packing(&problem, &mut rng);
                let (counts, costs) = counts_and_costs(&problem, &bins);
                let solution = Solution { cost: 0, counts: Some(counts), costs };
                for cut in &known {
                    assert!(!solution.violates(cut), "round {round}: {cut:?} for {bins:?}");
                }
                assert!(least <= cost(&bins), "round {round}: {least} for {bins:?}");
            }
        }
        // Guards against a test without cuts.
        assert!(from_demand > 1_000 && from_prices > 400, "{from_demand} {from_prices}");
    }

    /// Returns the minimum cost over all numbers up to `most` of each kind.
    fn minimum_by_enumeration(kinds: &[Kind], cuts: &[Cut], base: u64, most: u64) -> u64 {
        let mut least = u64::MAX;
        for one in 0..=most {
            for two in 0..=most {
                for three in 0..=most {
                    let counts = [one, two, three];
                    let missing = |cut: &Cut| {
                        let pairs = cut.weights.iter().zip(&counts);
                        cut.rhs.saturating_sub(pairs.map(|(weight, n)| weight * n).sum())
                    };
                    if cuts.iter().any(|cut| !cut.has_costs && missing(cut) > 0) {
                        continue;
                    }
                    let costs = cuts.iter().filter(|cut| cut.has_costs).map(missing).max();
                    let bins = kinds.iter().zip(&counts).map(|(kind, n)| kind.cost * n);
                    least = least.min(bins.sum::<u64>() + costs.unwrap_or(0).max(base));
                }
            }
        }
        least
    }

    #[test]
    fn branch_and_bound_agrees_with_enumeration() {
        let mut rng = Lcg::new();
        let mut found = 0;
        for round in 0..400 {
            let kinds: Vec<Kind> =
                (0..3).map(|_| Kind { cost: below(&mut rng, 40), capacity: Vec::new() }).collect();
            let cut = |rng: &mut Lcg| {
                let has_costs = below(rng, 3) == 0;
                // The first kind has weight in every cut, so that a solution exists.
                let mut weights: Vec<u64> = (0..3).map(|_| below(rng, 9)).collect();
                weights[0] += 1;
                let times = if has_costs { 20 } else { 1 };
                weights.iter_mut().for_each(|weight| *weight *= times);
                Cut { weights, has_costs, rhs: below(rng, 13) * times }
            };
            let cuts: Vec<Cut> = (0..1 + rng.below(6)).map(|_| cut(&mut rng)).collect();
            let base = below(&mut rng, 30);
            let expected = minimum_by_enumeration(&kinds, &cuts, base, 12);
            let solution = search(&kinds, &cuts, base, 100, 1_000_000);
            assert_eq!(solution.cost, expected, "round {round}: {kinds:?} {cuts:?} {base}");
            assert!(cuts.iter().all(|cut| !solution.violates(cut)), "round {round}: {solution:?}");
            found += usize::from(solution.counts.is_some());
            // No solution is found at a cutoff equal to the optimum.
            let cut_off = search(&kinds, &cuts, base, 100, expected);
            assert_eq!((cut_off.cost, cut_off.counts), (expected, None), "round {round}");
        }
        assert_eq!(found, 400);
    }

    /// A kind without cost and weight has no ratio. Comparing by ratio alone is not a total order,
    /// and sorting more than twenty such kinds panics.
    #[test]
    fn free_kinds_among_many_are_sorted() {
        let mut rng = Lcg::new();
        for round in 0..100 {
            let count = 24 + rng.below(30);
            let kind = |at: usize, rng: &mut Lcg| Kind {
                cost: if at % 9 == round % 9 { 0 } else { 1 + below(rng, 1_000) },
                capacity: Vec::new(),
            };
            let kinds: Vec<Kind> = (0..count).map(|at| kind(at, &mut rng)).collect();
            let cut = |own: usize, rng: &mut Lcg| {
                // Each kind is the best for one cut, so that none is dominated.
                let mut weights: Vec<u64> =
                    kinds.iter().map(|kind| below(rng, 1 + kind.cost.min(5))).collect();
                weights[own] += 50;
                Cut { weights, has_costs: false, rhs: 40 + below(rng, 20) }
            };
            let cuts: Vec<Cut> = (0..count).map(|own| cut(own, &mut rng)).collect();
            let solution = search(&kinds, &cuts, 3, 100, 1 << 40);
            // Two bins of each kind satisfy every cut, whether or not the search finds a solution.
            let two: u64 = kinds.iter().map(|kind| 2 * kind.cost).sum();
            assert!(solution.cost <= 3 + two, "round {round}: {solution:?}");
        }
    }

    #[test]
    fn large_numbers_and_zeros_do_not_overflow() {
        let kinds = vec![
            Kind { cost: 1 << 54, capacity: vec![1 << 60, 0] },
            Kind { cost: 0, capacity: vec![1, 0] },
        ];
        let fit = |demand: u64| Some(Fit { cost: 1 << 50, demand: vec![demand, 0] });
        let items = vec![
            Item { fits: vec![fit(1 << 60), None] },
            Item { fits: vec![fit(1 << 59), fit(1)] },
        ];
        let problem = Problem { kinds: kinds.clone(), items, bin_cost: &|_, _| u64::MAX };
        let mut cuts = Cuts::new(&problem, &[0, 1]);
        let solution = cuts.solve(&kinds, 2, 1 << 56);
        // One large bin for the item restricted to that kind, plus the items' costs.
        assert_eq!(solution.cost, (1 << 54) + (1 << 51));
        cuts.add([u64::MAX, u64::MAX].into_iter(), &[u64::MAX, u64::MAX], &solution);
        assert!(cuts.solve(&kinds, 2, 1 << 56).cost >= solution.cost);
    }
}
