//! Packs all items into another mix of kinds.
//!
//! The relaxation prefers many small bins, each of which leaves a little capacity unused when
//! filled with whole items. A mix of fewer and larger bins often costs nearly the same, and is far
//! easier to fill. Mixes are therefore compared by their slack per bin, and those with the most
//! slack below a cost limit are filled by local search.
//!
//! The local search starts with every item in a bin, some of which exceed their capacity. It then
//! swaps items as long as the excess does not grow, until there is none. Swaps that leave the
//! excess equal are frequent enough to escape local minima; accepting worse ones, as simulated
//! annealing does, gave worse results.

use crate::lcg::Lcg;
use crate::problem::{Bin, Problem, WHOLE, cost, share};

/// Number of times that the range between lower bound and best cost is halved.
const HALVINGS: usize = 12;

/// Number of mixes filled at each cost limit.
const MIXES_FILLED: usize = 3;

/// Number of swaps tried for one mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swaps {
    /// Fills most mixes that can be filled.
    Quick,
    /// Fills some of the others.
    Long,
}

impl Swaps {
    const fn count(self) -> usize {
        match self {
            Self::Quick => 1_000_000,
            Self::Long => 6_000_000,
        }
    }
}

/// Maximum number of mixes compared at each cost limit.
const MIXES_COMPARED: usize = 2_000_000;

/// Maximum number of kinds in a mix.
const MAX_KINDS: usize = 3;

/// One of this many swaps starts in any bin instead of one that exceeds its capacity.
const ANY_BIN_EVERY: usize = 8;

/// One of this many swaps moves an item without another in return.
const ONE_WAY_EVERY: usize = 6;

/// Returns bins for all items that cost less than `best`, if any are found. Mixes that cost less
/// than the lower bound `low` are skipped.
pub(crate) fn cheaper(
    problem: &Problem<'_>,
    items: &[usize],
    best: &[Bin],
    mut low: u64,
    swaps: Swaps,
) -> Option<Vec<Bin>> {
    let mut high = cost(best);
    if !sums_fit(problem, items) {
        return None;
    }
    let kinds = all_kinds(problem, items);
    let mut found = None;
    for _ in 0..HALVINGS {
        if low >= high {
            break;
        }
        let middle = low + (high - low) / 2;
        let mut mixes = most_slack(problem, items, &kinds, low, middle).into_iter();
        let filled = mixes
            .find_map(|mix| fill(problem, items, &mix, swaps).filter(|bins| cost(bins) < high));
        match filled {
            Some(bins) => {
                high = cost(&bins);
                found = Some(bins);
            }
            None => low = middle,
        }
    }
    found
}

/// Packs all items into given numbers of bins per kind; `None` if the search fails.
pub(crate) fn fill_counts(
    problem: &Problem<'_>,
    items: &[usize],
    counts: &[u64],
    swaps: Swaps,
) -> Option<Vec<Bin>> {
    let all: u64 = counts.iter().sum();
    if !sums_fit(problem, items) || all > items.len() as u64 {
        return None;
    }
    let bins = counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    fill(problem, items, &Mix { slack: 0, bins }, swaps)
}

/// Returns whether the items' total demand fits in 64 bits, so that a bin may exceed its capacity.
fn sums_fit(problem: &Problem<'_>, items: &[usize]) -> bool {
    (0..problem.kinds.len()).all(|kind| {
        let fits = items.iter().filter_map(|item| problem.fit(kind, *item));
        let mut sums = vec![0_u64; problem.kinds[kind].capacity.len()];
        fits.flat_map(|fit| fit.demand.iter().enumerate()).all(|(dimension, demand)| {
            let sum = sums[dimension].checked_add(*demand);
            sums[dimension] = sum.unwrap_or_default();
            sum.is_some()
        })
    })
}

/// The numbers of bins of a few kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mix {
    /// Slack per bin in the scarcest dimension, as a share of a mean item.
    slack: u128,
    bins: Vec<(usize, u64)>,
}

/// Returns the mixes with the most slack that cost between `low` and `high`.
fn most_slack(
    problem: &Problem<'_>,
    items: &[usize],
    kinds: &[Kinds],
    low: u64,
    high: u64,
) -> Vec<Mix> {
    let mut best = MostSlack { problem, items, low, high, found: Vec::new(), compared: 0 };
    for set in kinds {
        best.compare(set, &mut vec![0; set.kinds.len()], set.kinds.len() - 1, set.base);
    }
    best.found
}

/// Returns all sets of kinds that together fit all items.
fn all_kinds(problem: &Problem<'_>, items: &[usize]) -> Vec<Kinds> {
    let mut order: Vec<usize> = (0..problem.kinds.len()).collect();
    order.sort_by_key(|kind| (problem.kinds[*kind].cost, *kind));
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..MAX_KINDS.min(order.len()) {
        let longer = sets.iter().flat_map(|set| {
            let next =
                order.iter().position(|kind| set.last() == Some(kind)).map_or(0, |at| at + 1);
            order[next..].iter().map(|kind| [set.as_slice(), &[*kind]].concat())
        });
        sets = longer.collect();
    }
    sets.into_iter().filter_map(|set| Kinds::new(problem, items, set)).collect()
}

/// Total demand of items that fit no cheaper kind of a mix.
#[derive(Debug, Clone)]
struct Group {
    /// By dimension, each item in the kind where its demand is lowest.
    demand: Vec<u128>,
    count: u128,
}

/// The kinds of a mix, ascending by cost.
struct Kinds {
    kinds: Vec<usize>,
    /// By kind: the items that fit it or a later one, and none before.
    groups: Vec<Group>,
    /// Sum of each item's lowest cost, without bins.
    base: u64,
}

impl Kinds {
    /// Groups the items by the first kind they fit; `None` if one fits none.
    fn new(problem: &Problem<'_>, items: &[usize], kinds: Vec<usize>) -> Option<Self> {
        let dimensions = problem.kinds[kinds[0]].capacity.len();
        let empty = Group { demand: vec![0; dimensions], count: 0 };
        let mut groups = vec![empty; kinds.len()];
        let mut base = 0_u64;
        for item in items {
            let fits = kinds.iter().map(|kind| problem.fit(*kind, *item));
            let first = fits.clone().position(|fit| fit.is_some())?;
            let fits = fits.flatten();
            base = base.saturating_add(fits.clone().map(|fit| fit.cost).min().unwrap_or(0));
            for (dimension, sum) in groups[first].demand.iter_mut().enumerate() {
                let demand = fits.clone().map(|fit| u128::from(fit.demand[dimension]));
                *sum += demand.min().unwrap_or(0);
            }
            groups[first].count += 1;
        }
        // Items of a kind may also use the bins of later kinds, and compete there with later
        // groups.
        for at in (1..groups.len()).rev() {
            let (before, after) = groups.split_at_mut(at);
            let (own, next) = (&mut before[at - 1], &after[0]);
            own.count += next.count;
            own.demand.iter_mut().zip(&next.demand).for_each(|(own, next)| *own += next);
        }
        Some(Self { kinds, groups, base })
    }
}

/// The mixes with the most slack so far, in descending order.
struct MostSlack<'p> {
    problem: &'p Problem<'p>,
    items: &'p [usize],
    low: u64,
    high: u64,
    found: Vec<Mix>,
    compared: usize,
}

impl MostSlack<'_> {
    /// Compares the mixes with the given counts after `place`; the count of the first kind follows
    /// from the demand. Returns whether it is zero.
    fn compare(&mut self, kinds: &Kinds, counts: &mut Vec<u64>, place: usize, cost: u64) -> bool {
        let own = self.problem.kinds[kinds.kinds[place]].cost;
        if place == 0 {
            self.compared += 1;
            let Some(least) = self.bins_needed(kinds, counts) else { return false };
            // A mix with more bins than items is never needed.
            if least > self.items.len() as u64 {
                return false;
            }
            counts[0] = least;
            let cost = cost.saturating_add(own.saturating_mul(least));
            if self.low <= cost && cost <= self.high {
                self.keep(kinds, counts);
            }
            return least == 0;
        }
        let mut is_enough = false;
        for count in 0..=self.items.len() as u64 {
            let cost = cost.saturating_add(own.saturating_mul(count));
            if is_enough || cost > self.high || self.compared > MIXES_COMPARED {
                break;
            }
            counts[place] = count;
            is_enough = self.compare(kinds, counts, place - 1, cost);
        }
        counts[place] = 0;
        false
    }

    /// Returns the necessary number of bins of the first kind; `None` if no number is enough.
    fn bins_needed(&self, kinds: &Kinds, counts: &[u64]) -> Option<u64> {
        let own = &self.problem.kinds[kinds.kinds[0]].capacity;
        let mut least = 0;
        for (dimension, demand) in kinds.groups[0].demand.iter().enumerate() {
            let rest = demand.saturating_sub(self.capacity(kinds, counts, 1, dimension));
            if rest > 0 && own[dimension] == 0 {
                return None;
            }
            least = least.max(rest.div_ceil(u128::from(own[dimension].max(1))));
        }
        u64::try_from(least).ok()
    }

    /// Returns the total capacity of the kinds from `first` on.
    fn capacity(&self, kinds: &Kinds, counts: &[u64], first: usize, dimension: usize) -> u128 {
        let pairs = kinds.kinds.iter().zip(counts).skip(first);
        let capacities = pairs.map(|(kind, count)| {
            u128::from(self.problem.kinds[*kind].capacity[dimension]) * u128::from(*count)
        });
        capacities.sum()
    }

    /// Keeps a mix if it is among those with the most slack.
    fn keep(&mut self, kinds: &Kinds, counts: &[u64]) {
        let mut slack = u128::MAX;
        for (first, group) in kinds.groups.iter().enumerate() {
            let bins: u64 = counts.iter().skip(first).sum();
            for (dimension, demand) in
                group.demand.iter().enumerate().filter(|(_, demand)| **demand > 0)
            {
                let capacity = self.capacity(kinds, counts, first, dimension);
                let Some(left) = capacity.checked_sub(*demand) else { return };
                let whole = u128::from(WHOLE) * group.count;
                slack = slack.min(left.saturating_mul(whole) / (demand * u128::from(bins.max(1))));
            }
        }
        let pairs = kinds.kinds.iter().zip(counts).filter(|(_, count)| **count > 0);
        let bins: Vec<(usize, u64)> = pairs.map(|(kind, count)| (*kind, *count)).collect();
        let at = self.found.partition_point(|mix| mix.slack >= slack);
        if at < MIXES_FILLED && !self.found.iter().any(|mix| mix.bins == bins) {
            self.found.insert(at, Mix { slack, bins });
            self.found.truncate(MIXES_FILLED);
        }
    }
}

/// Packs all items into the bins of a mix; `None` if the search fails.
fn fill(problem: &Problem<'_>, items: &[usize], mix: &Mix, swaps: Swaps) -> Option<Vec<Bin>> {
    let kinds = mix.bins.iter().flat_map(|(kind, count)| (0..*count).map(|_| *kind));
    let mut filled = Filling::new(problem, kinds.collect());
    filled.place(items)?;
    filled.swap_until_feasible(items, swaps.count()).then(|| filled.bins())
}

/// Bins that may exceed their capacity.
struct Filling<'p> {
    problem: &'p Problem<'p>,
    kinds: Vec<usize>,
    /// By bin and dimension.
    used: Vec<Vec<u64>>,
    /// Items by bin.
    items: Vec<Vec<usize>>,
    /// Bin by item of the problem.
    bins_by_item: Vec<usize>,
    /// By bin: the excess over its capacity, as a sum of shares.
    excess: Vec<u64>,
    /// The bins with excess, and by bin its index among them.
    overfull: Vec<usize>,
    index_in_overfull: Vec<usize>,
}

impl<'p> Filling<'p> {
    fn new(problem: &'p Problem<'p>, kinds: Vec<usize>) -> Self {
        let count = kinds.len();
        Self {
            problem,
            used: kinds.iter().map(|kind| vec![0; problem.kinds[*kind].capacity.len()]).collect(),
            items: vec![Vec::new(); count],
            bins_by_item: vec![usize::MAX; problem.items.len()],
            excess: vec![0; count],
            overfull: Vec::new(),
            index_in_overfull: vec![usize::MAX; count],
            kinds,
        }
    }

    /// Places items where they add the least excess, the largest first; `None` if one fits no kind.
    fn place(&mut self, items: &[usize]) -> Option<()> {
        let size = |item: usize| {
            let sizes = self.kinds.iter().filter_map(|kind| {
                let capacity = &self.problem.kinds[*kind].capacity;
                let demand = &self.problem.fit(*kind, item)?.demand;
                demand
                    .iter()
                    .zip(capacity)
                    .map(|(demand, capacity)| share(*demand, *capacity))
                    .max()
            });
            sizes.min()
        };
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            order.push((std::cmp::Reverse(size(*item)?), *item));
        }
        order.sort_unstable();
        for (_, item) in order {
            let (.., bin) = (0..self.kinds.len())
                .filter_map(|bin: usize| {
                    let excess = self.excess_after(bin, Some(item), None)?;
                    Some((excess - self.excess[bin], self.fullest(bin, item), bin))
                })
                .min()?;
            self.change(bin, Some(item), None);
        }
        Some(())
    }

    /// Returns the highest share of a capacity used in a bin with one more item.
    fn fullest(&self, bin: usize, item: usize) -> u64 {
        let capacity = &self.problem.kinds[self.kinds[bin]].capacity;
        let demand = self.problem.fit(self.kinds[bin], item).map_or(&[][..], |fit| &fit.demand);
        let dimensions = self.used[bin].iter().zip(demand).zip(capacity);
        dimensions
            .map(|((used, demand), capacity)| share(used + demand, *capacity))
            .max()
            .unwrap_or(0)
    }

    /// Returns the excess of a bin with one item added and one removed; `None` if the first may not
    /// be in it.
    fn excess_after(&self, bin: usize, more: Option<usize>, less: Option<usize>) -> Option<u64> {
        let kind = self.kinds[bin];
        let demand = |item: Option<usize>| match item {
            Some(item) => self.problem.fit(kind, item).map(|fit| Some(fit.demand.as_slice())),
            None => Some(None),
        };
        let (more, less) = (demand(more)?, demand(less)?);
        let mut excess = 0;
        for (dimension, (used, capacity)) in
            self.used[bin].iter().zip(&self.problem.kinds[kind].capacity).enumerate()
        {
            let used = used + more.map_or(0, |demand| demand[dimension])
                - less.map_or(0, |demand| demand[dimension]);
            if used > *capacity {
                excess += share(used - capacity, *capacity).max(1);
            }
        }
        Some(excess)
    }

    /// Adds an item to a bin and removes one.
    fn change(&mut self, bin: usize, more: Option<usize>, less: Option<usize>) {
        let kind = self.kinds[bin];
        if let Some(fit) = less.and_then(|item| self.problem.fit(kind, item)) {
            self.used[bin].iter_mut().zip(&fit.demand).for_each(|(used, demand)| *used -= demand);
            self.items[bin].retain(|item| Some(*item) != less);
        }
        if let Some(item) = more {
            self.problem.add(kind, item, &mut self.used[bin]);
            self.items[bin].push(item);
            self.bins_by_item[item] = bin;
        }
        let excess = self.excess_after(bin, None, None).unwrap_or(0);
        match (self.excess[bin] > 0, excess > 0) {
            (false, true) => {
                self.index_in_overfull[bin] = self.overfull.len();
                self.overfull.push(bin);
            }
            (true, false) => {
                let place = self.index_in_overfull[bin];
                self.overfull.swap_remove(place);
                if let Some(moved) = self.overfull.get(place) {
                    self.index_in_overfull[*moved] = place;
                }
            }
            _ => {}
        }
        self.excess[bin] = excess;
    }

    /// Swaps items until no bin has excess. Returns whether that was reached.
    fn swap_until_feasible(&mut self, items: &[usize], most: usize) -> bool {
        let mut rng = Lcg::new();
        for _ in 0..most {
            if self.overfull.is_empty() {
                return true;
            }
            let bin = match rng.below(ANY_BIN_EVERY) {
                0 => rng.below(self.kinds.len()),
                _ => self.overfull[rng.below(self.overfull.len())],
            };
            if self.items[bin].is_empty() {
                continue;
            }
            let item = self.items[bin][rng.below(self.items[bin].len())];
            let (other, back) = match rng.below(ONE_WAY_EVERY) {
                0 => (rng.below(self.kinds.len()), None),
                _ => {
                    let back = items[rng.below(items.len())];
                    (self.bins_by_item[back], Some(back))
                }
            };
            if other == bin {
                continue;
            }
            let Some(own) = self.excess_after(bin, back, Some(item)) else { continue };
            let Some(others) = self.excess_after(other, Some(item), back) else { continue };
            if own + others <= self.excess[bin] + self.excess[other] {
                self.change(bin, back, Some(item));
                self.change(other, Some(item), back);
            }
        }
        self.overfull.is_empty()
    }

    fn bins(self) -> Vec<Bin> {
        let pairs = self.kinds.into_iter().zip(self.items).filter(|(_, items)| !items.is_empty());
        let bins = pairs.map(|(kind, items)| {
            let cheapest = self.problem.cheapest(&items);
            cheapest.unwrap_or_else(|| self.problem.bin(kind, items))
        });
        bins.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Fit, Item, Kind};

    /// Cuts capacities into items, so that the optimal number of bins is known.
    fn cut(kinds: &[Kind], bins: usize, rng: &mut Lcg) -> Vec<Item> {
        let mut items = Vec::new();
        for _ in 0..bins {
            let mut left = kinds[1].capacity.clone();
            for at in (0..8).rev() {
                let demand: Vec<u64> = left
                    .iter_mut()
                    .map(|left: &mut u64| {
                        let most = usize::try_from(*left).unwrap();
                        let demand = if at == 0 { most } else { rng.below(most / 2 + 1) };
                        *left -= demand as u64;
                        demand as u64
                    })
                    .collect();
                items.push(Item {
                    fits: kinds
                        .iter()
                        .map(|kind: &Kind| {
                            let fits = demand
                                .iter()
                                .zip(&kind.capacity)
                                .all(|(demand, capacity)| demand <= capacity);
                            fits.then(|| Fit { cost: 1, demand: demand.clone() })
                        })
                        .collect(),
                });
            }
        }
        items
    }

    #[test]
    fn a_mix_with_little_slack_is_filled() {
        let kind = |n: u64, more: u64| Kind { cost: 1_000 * n, capacity: vec![200 * n + more; 2] };
        // The larger kind gets half a percent more capacity than its items need.
        let kinds = vec![kind(1, 0), kind(4, 0)];
        let mut rng = Lcg::new();
        let items = cut(&kinds, 10, &mut rng);
        let kinds = vec![kind(1, 0), kind(4, 4)];
        let bin_cost = |kind: usize, some: &[usize]| kinds[kind].cost + some.len() as u64;
        let problem = Problem { kinds: kinds.clone(), items, bin_cost: &bin_cost };
        let all: Vec<usize> = (0..problem.items.len()).collect();
        let best: Vec<Bin> = all.iter().map(|item| problem.cheapest(&[*item]).unwrap()).collect();
        let bins = cheaper(&problem, &all, &best, 0, Swaps::Quick).unwrap();
        assert!(bins.iter().all(|bin| problem.fits(bin.kind, &bin.items)));
        let mut seen: Vec<usize> = bins.iter().flat_map(|bin| bin.items.iter().copied()).collect();
        seen.sort_unstable();
        assert_eq!(seen, all);
        let cost: u64 = bins.iter().map(|bin| bin.cost).sum();
        assert!(cost <= 40_080, "{cost}");
        // No mix remains if the total capacity is one unit short, and sums that overflow are
        // rejected.
        let sum = |dimension: usize| {
            let demand =
                problem.items.iter().map(|item| item.fits[1].as_ref().unwrap().demand[dimension]);
            demand.sum::<u64>()
        };
        let few = vec![
            Kind { cost: 1 << 40, capacity: kinds[0].capacity.clone() },
            Kind { cost: 4_000, capacity: (0..2).map(|at| sum(at).div_ceil(10) - 1).collect() },
        ];
        let bin_cost = |kind: usize, some: &[usize]| few[kind].cost + some.len() as u64;
        let tight =
            Problem { kinds: few.clone(), items: problem.items.clone(), bin_cost: &bin_cost };
        let eleven = vec![Bin { kind: 1, items: Vec::new(), cost: 4_000 }; 11];
        assert_eq!(cheaper(&tight, &all, &eleven, 0, Swaps::Quick), None);
        let fit = Fit { cost: 0, demand: vec![1 << 63; 2] };
        let item = Item { fits: vec![Some(fit.clone()), Some(fit)] };
        let problem = Problem { items: vec![item; 2], ..problem };
        assert_eq!(cheaper(&problem, &[0, 1], &best, 0, Swaps::Quick), None);
    }
}
