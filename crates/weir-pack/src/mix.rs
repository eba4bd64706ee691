//! Repacks a few bins: enumerates cheaper mixes of kinds, and fills them from the cheapest on until
//! one holds all items.
//!
//! If bins hold dozens of items, almost any mix with enough total capacity can be filled. The
//! choice of the mix therefore matters more than the filling, for which simple rules do.

use crate::problem::{Bin, Problem, WHOLE, cost, share};

/// Maximum number of bins of a mix beyond those replaced.
const EXTRA_BINS: usize = 2;

/// Maximum numbers of mixes that are examined, and filled.
const MAX_EXAMINED: usize = 20_000;
const MAX_FILLED: usize = 160;

/// Returns cheaper bins for the items of some bins, if any are found.
pub(crate) fn repack(problem: &Problem<'_>, some: &[Bin]) -> Option<Vec<Bin>> {
    let mut items: Vec<usize> = some.iter().flat_map(|bin| bin.items.iter().copied()).collect();
    items.sort_unstable();
    let old = cost(some);
    let mut mixes = Mixes {
        problem,
        demand_by_kind: demand_by_kind(problem, &items),
        cost_limit: old,
        max_bins: some.len() + EXTRA_BINS,
        found: Vec::new(),
        examined: 0,
    };
    let base = lowest_item_costs(problem, &items);
    mixes.extend(&mut Vec::new(), 0, base);
    let mut found = mixes.found;
    found.sort();
    for (_, mix) in found.into_iter().take(MAX_FILLED) {
        for rule in Rule::ALL {
            let Some(filled) = fill(problem, &mix, &items, rule) else { continue };
            let bins: Vec<Bin> = filled.into_iter().filter(|bin| !bin.items.is_empty()).collect();
            if cost(&bins) < old {
                return Some(bins);
            }
        }
    }
    None
}

/// Returns the total demand of the items by kind and dimension. For a mix, the lowest of its kinds
/// counts.
fn demand_by_kind(problem: &Problem<'_>, items: &[usize]) -> Vec<Vec<u64>> {
    (0..problem.kinds.len())
        .map(|kind: usize| {
            let mut sum = vec![0_u64; problem.kinds[kind].capacity.len()];
            for item in items {
                // An item that may not be in this kind adds nothing.
                let Some(fit) = problem.fit(kind, *item) else { continue };
                sum.iter_mut()
                    .zip(&fit.demand)
                    .for_each(|(sum, own)| *sum = sum.saturating_add(*own));
            }
            sum
        })
        .collect()
}

/// Returns the items' costs apart from bins, each in its cheapest kind.
fn lowest_item_costs(problem: &Problem<'_>, items: &[usize]) -> u64 {
    let costs = items.iter().map(|item| {
        let fits = problem.items[*item].fits.iter().flatten();
        fits.map(|fit| fit.cost).min().unwrap_or(0)
    });
    costs.fold(0, u64::saturating_add)
}

/// The enumeration of mixes with enough total capacity.
struct Mixes<'p> {
    problem: &'p Problem<'p>,
    demand_by_kind: Vec<Vec<u64>>,
    /// Mixes of this cost or more are skipped.
    cost_limit: u64,
    max_bins: usize,
    found: Vec<(u64, Vec<usize>)>,
    examined: usize,
}

impl Mixes<'_> {
    /// Extends a mix of cost `cost` by kinds from `first` on.
    fn extend(&mut self, mix: &mut Vec<usize>, first: usize, cost: u64) {
        for kind in first..self.problem.kinds.len() {
            let cost = cost.saturating_add(self.problem.kinds[kind].cost);
            if cost >= self.cost_limit
                || mix.len() >= self.max_bins
                || self.examined >= MAX_EXAMINED
            {
                continue;
            }
            self.examined += 1;
            mix.push(kind);
            if self.may_fit(mix) {
                // A mix with further bins would only cost more.
                self.found.push((cost, mix.clone()));
            } else {
                self.extend(mix, kind, cost);
            }
            mix.pop();
        }
    }

    /// Returns whether the total capacity is enough for the lowest demand of the items.
    fn may_fit(&self, mix: &[usize]) -> bool {
        let dimensions = self.problem.kinds[mix[0]].capacity.len();
        (0..dimensions).all(|dimension| {
            let capacities = mix.iter().map(|kind| self.problem.kinds[*kind].capacity[dimension]);
            let capacity = capacities.fold(0, u64::saturating_add);
            let least = mix.iter().map(|kind| self.demand_by_kind[*kind][dimension]).min();
            least.is_some_and(|least| least <= capacity)
        })
    }
}

/// The choice of a bin for an item among those with enough capacity.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The most capacity left in the scarcest dimension (worst fit).
    Even,
    /// The least capacity left in the scarcest dimension (best fit).
    Tight,
    /// The first bin (first fit).
    First,
}

impl Rule {
    const ALL: [Self; 3] = [Self::Even, Self::Tight, Self::First];
}

/// Packs all items into the bins of a mix, the largest first. `None` if an item does not fit.
fn fill(problem: &Problem<'_>, mix: &[usize], items: &[usize], rule: Rule) -> Option<Vec<Bin>> {
    let mut used: Vec<Vec<u64>> =
        mix.iter().map(|kind| vec![0; problem.kinds[*kind].capacity.len()]).collect();
    let mut packed: Vec<Vec<usize>> = vec![Vec::new(); mix.len()];
    let size = |item: usize| {
        let sizes = mix.iter().filter_map(|kind| {
            let fit = problem.fit(*kind, item)?;
            let capacities = &problem.kinds[*kind].capacity;
            let shares = fit
                .demand
                .iter()
                .zip(capacities)
                .map(|(demand, capacity)| share(*demand, *capacity));
            Some(shares.clone().max().unwrap_or(0) * 4 + shares.sum::<u64>())
        });
        sizes.min()
    };
    let mut order: Vec<(u64, usize)> = Vec::with_capacity(items.len());
    for item in items {
        order.push((size(*item)?, *item));
    }
    order.sort_by_key(|(size, item)| (std::cmp::Reverse(*size), *item));
    for (_, item) in order {
        let score = |at: usize| {
            let kind = mix[at];
            let fit = problem.fit(kind, item)?;
            if !problem.fits_beside(kind, item, &used[at]) {
                return None;
            }
            let dimensions = problem.kinds[kind].capacity.iter().zip(&used[at]).zip(&fit.demand);
            let fullest = dimensions
                .map(|((capacity, used), demand)| share(used + demand, *capacity))
                .max()?;
            let score = match rule {
                Rule::Even => fullest,
                Rule::Tight => WHOLE.saturating_sub(fullest),
                Rule::First => 0,
            };
            // Prefer the bins in which the item itself costs least.
            Some((fit.cost, score, at))
        };
        let (.., at) = (0..mix.len()).filter_map(score).min()?;
        problem.add(mix[at], item, &mut used[at]);
        packed[at].push(item);
    }
    Some(mix.iter().zip(packed).map(|(kind, items)| problem.bin(*kind, items)).collect())
}
