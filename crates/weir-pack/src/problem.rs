//! The problem, its limits of effort, and its solution.

/// A kind of bin. The number of bins of a kind is unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Cost of an empty bin.
    pub cost: u64,
    /// Capacity in each dimension.
    pub capacity: Vec<u64>,
}

/// Cost and demand of an item in bins of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Cost in addition to the bin's.
    pub cost: u64,
    /// Demand in each dimension.
    pub demand: Vec<u64>,
}

/// An item. A kind whose bins it may not be in has `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// By kind.
    pub fits: Vec<Option<Fit>>,
}

/// A packing problem.
pub struct Problem<'a> {
    /// The kinds of bins.
    pub kinds: Vec<Kind>,
    /// The items to pack.
    pub items: Vec<Item>,
    /// Cost of a bin of a kind with some items: at least the sum of the bin's and the items' costs.
    /// It may be higher, for example if a vendor rounds sums up; if it were lower, no lower bound
    /// would hold.
    pub bin_cost: &'a dyn Fn(usize, &[usize]) -> u64,
}

impl std::fmt::Debug for Problem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kinds, items, bin_cost: _ } = self;
        f.debug_struct("Problem")
            .field("kinds", kinds)
            .field("items", items)
            .finish_non_exhaustive()
    }
}

/// A bin with its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// Index of its kind.
    pub kind: usize,
    /// Indices of its items, ascending.
    pub items: Vec<usize>,
    /// Cost including the items.
    pub cost: u64,
}

/// Limits of the search. They count steps and not time, so a problem always has the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Optimality gap at which the search ends, in millionths of the lower bound.
    pub gap: u64,
    /// As `gap`, for problems with more than 200 items, whose later phases take long. The larger of
    /// the two counts.
    pub large_gap: u64,
    /// Maximum number of rounds of column generation.
    pub rounds: usize,
    /// Maximum number of times that a few bins are repacked.
    pub tries: usize,
    /// Node limit of the branch-and-bound search for one bin. A lower limit weakens the bound.
    pub node_limit: u64,
    /// Problems with up to this many items are solved by enumeration. The maximum is 12.
    pub exact_items: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            gap: 2_000,
            large_gap: 8_000,
            rounds: 60,
            tries: 100,
            node_limit: 200_000,
            exact_items: 12,
        }
    }
}

/// A phase of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Initial packings are built.
    Filling,
    /// Column generation solves the linear relaxation.
    Relaxing,
    /// Cuts strengthen the lower bound.
    Bounding,
    /// The relaxation is rounded to whole bins.
    Rounding,
    /// A few bins are repacked.
    Repacking,
}

/// State of a running search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Number of columns generated so far.
    pub columns: usize,
    /// Cost of the best packing so far.
    pub cost: u64,
    /// Lower bound proven so far.
    pub bound: u64,
}

impl Progress {
    /// Returns the optimality gap so far; see [`Packing::gap`].
    #[must_use]
    pub fn gap(&self) -> u64 {
        gap(self.cost, self.bound)
    }
}

/// A packing of all items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// The bins, the most expensive first.
    pub bins: Vec<Bin>,
    /// Total cost.
    pub cost: u64,
    /// Lower bound of the cost of any packing.
    pub bound: u64,
}

impl Packing {
    /// Returns the optimality gap in millionths of the cost, rounded up.
    #[must_use]
    pub fn gap(&self) -> u64 {
        gap(self.cost, self.bound)
    }
}

fn gap(cost: u64, bound: u64) -> u64 {
    let above = u128::from(cost.saturating_sub(bound)) * 1_000_000;
    u64::try_from(above.div_ceil(u128::from(cost.max(1)))).unwrap_or(u64::MAX)
}

/// Reasons why a problem has no packing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Some items fit no bin of any kind.
    #[error("{} items fit no bin", .items.len())]
    NoBin {
        /// Their indices.
        items: Vec<usize>,
    },
    /// Sums of costs would overflow.
    #[error("the total cost with each item in its own bin exceeds 2^56 units")]
    TooLarge,
}

/// Returns the total cost of bins, saturating.
pub(crate) fn cost(bins: &[Bin]) -> u64 {
    bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.cost))
}

/// One, in the fixed-point format of [`share`].
pub(crate) const WHOLE: u64 = 1 << 20;

/// Returns a demand as a fixed-point share of a capacity. Shares are limited to 2^20, so that sums
/// of them do not overflow.
pub(crate) fn share(demand: u64, capacity: u64) -> u64 {
    let share = u128::from(demand) * u128::from(WHOLE) / u128::from(capacity.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(WHOLE << 20)
}

impl Problem<'_> {
    pub(crate) fn fit(&self, kind: usize, item: usize) -> Option<&Fit> {
        self.items[item].fits[kind].as_ref()
    }

    /// Returns whether an item fits beside the demand `used`.
    pub(crate) fn fits_beside(&self, kind: usize, item: usize, used: &[u64]) -> bool {
        let Some(fit) = self.fit(kind, item) else { return false };
        let capacity = self.kinds[kind].capacity.iter().zip(used);
        capacity.zip(&fit.demand).all(|((capacity, used), demand)| {
            used.checked_add(*demand).is_some_and(|used| used <= *capacity)
        })
    }

    /// Adds an item's demand to `used`.
    pub(crate) fn add(&self, kind: usize, item: usize, used: &mut [u64]) {
        if let Some(fit) = self.fit(kind, item) {
            used.iter_mut().zip(&fit.demand).for_each(|(used, demand)| *used += demand);
        }
    }

    /// Returns whether items fit one bin together.
    pub(crate) fn fits(&self, kind: usize, items: &[usize]) -> bool {
        let mut used = vec![0; self.kinds[kind].capacity.len()];
        items.iter().all(|item| {
            let fits = self.fits_beside(kind, *item, &used);
            if fits {
                self.add(kind, *item, &mut used);
            }
            fits
        })
    }

    /// Builds a bin of items that fit it, with its cost.
    pub(crate) fn bin(&self, kind: usize, mut items: Vec<usize>) -> Bin {
        items.sort_unstable();
        let cost = (self.bin_cost)(kind, &items);
        debug_assert!(
            cost >= self.linear_cost(kind, &items),
            "the bin cost is below the sum of the costs of the bin and its items"
        );
        Bin { kind, items, cost }
    }

    /// Returns the cost of a bin and its items without rounding.
    fn linear_cost(&self, kind: usize, items: &[usize]) -> u64 {
        let costs = items.iter().filter_map(|item| Some(self.fit(kind, *item)?.cost));
        self.kinds[kind].cost.saturating_add(costs.fold(0, u64::saturating_add))
    }

    /// Returns the cost of an item alone in its cheapest bin: an upper limit of its dual price.
    pub(crate) fn cost_alone(&self, item: usize) -> u64 {
        let kinds = self.kinds.iter().zip(&self.items[item].fits);
        let costs =
            kinds.filter_map(|(kind, fit)| Some(kind.cost.saturating_add(fit.as_ref()?.cost)));
        costs.min().unwrap_or(0)
    }

    /// Returns the items without the kinds that no packing of cost `most` or less can use for them:
    /// those in which an item does not fit, or costs more than `most`.
    pub(crate) fn without_impossible_fits(&self, most: u64) -> Vec<Item> {
        let possible = |kind: &Kind, fit: &Fit| {
            fit.demand.iter().zip(&kind.capacity).all(|(demand, capacity)| demand <= capacity)
                && kind.cost.saturating_add(fit.cost) <= most
        };
        let fits = |item: &Item| {
            let pairs = self.kinds.iter().zip(&item.fits);
            pairs.map(|(kind, fit)| fit.clone().filter(|fit| possible(kind, fit))).collect()
        };
        self.items.iter().map(|item| Item { fits: fits(item) }).collect()
    }

    /// Returns the cheapest bin that holds all of the items.
    pub(crate) fn cheapest(&self, items: &[usize]) -> Option<Bin> {
        let kinds = (0..self.kinds.len()).filter(|kind| self.fits(*kind, items));
        kinds.map(|kind| self.bin(kind, items.to_vec())).min_by_key(|bin| bin.cost)
    }
}
