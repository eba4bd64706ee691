//! The phases of a solution, the diving heuristic, and repacking.

use crate::columns::{Generation, Settings, generate, greedy, run, start, value};
use crate::lcg::Lcg;
use crate::problem::{Bin, Effort, Kind, PackError, Packing, Phase, Problem, Progress, cost};
use crate::refill::Swaps;
use crate::{benders, exact, mix, refill};

/// Diving fixes the columns whose value in the relaxation is at least this.
const FIX_THRESHOLD: f64 = 0.7;

/// Packings of up to this many bins are repacked as a whole.
const MAX_WHOLE_REPACK: usize = 8;

/// Problems with more items than this use [`Effort::large_gap`].
const LARGE: usize = 200;

/// Maximum number of items that are repacked by column generation.
const MAX_REPACKED_ITEMS: usize = 70;

/// Returns the cheapest packing found, and a lower bound of the cost of any packing.
///
/// # Errors
///
/// [`PackError`] if an item fits no bin, or if the sum of costs would overflow.
///
/// # Panics
///
/// If [`Problem::bin_cost`] is below the cost of the bin and its items, which would invalidate the
/// bound, or if an item does not have a fit per kind or a fit not a demand per dimension.
pub fn solve(problem: &Problem<'_>, effort: &Effort) -> Result<Packing, PackError> {
    solve_watched(problem, effort, &|_| {})
}

/// As [`solve`], and reports its progress to `watch`, which does not affect the result. Phases are
/// reported in order, each whenever there is news.
///
/// # Errors
///
/// As [`solve`].
///
/// # Panics
///
/// As [`solve`].
pub fn solve_watched(
    problem: &Problem<'_>,
    effort: &Effort,
    watch: &dyn Fn(Progress),
) -> Result<Packing, PackError> {
    let all: Vec<usize> = (0..problem.items.len()).collect();
    let columns = singletons(problem, &all)?;
    if all.is_empty() {
        return Ok(Packing { bins: Vec::new(), cost: 0, bound: 0 });
    }
    let total = columns.iter().try_fold(0_u64, |sum, bin| sum.checked_add(bin.cost));
    let Some(total) = total.filter(|total| *total <= 1 << 56) else {
        return Err(PackError::TooLarge);
    };
    // Impossible fits would weaken the relaxation: it could split an item larger than a bin.
    let items = problem.without_impossible_fits(total);
    // A kind above the total cost is in no optimal packing. Limiting its cost avoids overflow.
    let kinds = problem
        .kinds
        .iter()
        .map(|kind| Kind { cost: kind.cost.min(total), capacity: kind.capacity.clone() })
        .collect();
    let problem = &Problem { kinds, items, bin_cost: problem.bin_cost };
    if all.len() <= effort.exact_items
        && let Some(bins) = exact::pack(problem, &all)
    {
        let cost = cost(&bins);
        return Ok(Packing { cost, bound: cost, bins: sorted(bins) });
    }
    // An initial packing, at dual prices proportional to each item's share of its cheapest bin.
    let prices = initial_prices(problem);
    let first = greedy(problem, &all, &prices, &vec![None; problem.kinds.len()]);
    let mut best = columns.clone();
    let mut columns = columns;
    columns.extend(first.iter().cloned());
    keep_cheaper(&mut best, first);
    let bound = Solve { problem, all: &all, effort, watch }.phases(&mut best, columns);
    assert!(bound <= cost(&best), "the packing costs less than its lower bound");
    Ok(Packing { cost: cost(&best), bound, bins: sorted(best) })
}

/// The inputs shared by all phases.
struct Solve<'p> {
    problem: &'p Problem<'p>,
    all: &'p [usize],
    effort: &'p Effort,
    watch: &'p dyn Fn(Progress),
}

impl Solve<'_> {
    /// Runs the phases until the optimality gap is reached, and returns the lower bound. The quick
    /// phases, which usually suffice, come first.
    fn phases(&self, best: &mut Vec<Bin>, columns: Vec<Bin>) -> u64 {
        self.report(Phase::Filling, best, 0, 0);
        let settings = Settings { cutoff: cost(best), ..self.settings(&|_, _| {}) };
        let mut found = start(self.problem, self.all, columns, settings);
        self.refill(best, found.bound, Swaps::Quick);
        found.columns.extend(best.iter().cloned());
        self.report(Phase::Relaxing, best, found.columns.len(), found.bound);
        let settings = Settings { cutoff: self.cutoff(best), ..settings };
        benders::add_splittable_cuts(self.problem, self.all, &mut found, settings);
        if let (Some(counts), false) = (&found.solution.counts, self.is_enough(best, found.bound))
            && let Some(bins) = refill::fill_counts(self.problem, self.all, counts, Swaps::Quick)
        {
            keep_cheaper(best, bins);
        }
        if !self.is_enough(best, found.bound) {
            found = self.strengthen(best, found);
        }
        // The relaxation has not been solved yet if no Benders cut was needed.
        if !self.is_enough(best, found.bound) && found.relaxed.is_none() {
            let report = |columns, bound| self.report(Phase::Relaxing, best, columns, bound);
            found = run(self.problem, self.all, found, Settings { report: &report, ..settings });
        }
        let bound = found.bound;
        if !is_within_gap(best, bound, self.effort.gap) {
            self.refill(best, bound, Swaps::Long);
        }
        if !self.is_enough(best, bound) {
            self.round(best, &found, bound);
            self.repack(best, &found, bound);
        }
        bound
    }

    /// Tries to pack all items into cheaper mixes of kinds.
    fn refill(&self, best: &mut Vec<Bin>, low: u64, swaps: Swaps) {
        if let Some(other) = refill::cheaper(self.problem, self.all, best, low, swaps) {
            *best = other;
        }
    }

    /// Rounds the relaxation to whole bins.
    fn round(&self, best: &mut Vec<Bin>, found: &Generation, bound: u64) {
        let Some(relaxed) = &found.relaxed else { return };
        self.report(Phase::Rounding, best, found.columns.len(), bound);
        keep_cheaper(best, greedy(self.problem, self.all, &relaxed.prices, &found.capacity_prices));
        if !is_within_gap(best, bound, self.effort.gap) {
            keep_cheaper(best, dive(self.problem, self.all, found));
        }
        if let Some(other) =
            mix::repack(self.problem, best).filter(|_| best.len() <= MAX_WHOLE_REPACK)
        {
            keep_cheaper(best, other);
        }
    }

    /// Repacks a few bins at a time.
    fn repack(&self, best: &mut Vec<Bin>, found: &Generation, bound: u64) {
        let Some(relaxed) = &found.relaxed else { return };
        let mut repacking =
            Repacking { problem: self.problem, prices: &relaxed.prices, rng: Lcg::new() };
        for _ in 0..self.effort.tries {
            if is_within_gap(best, bound, self.effort.gap) || best.len() < 2 {
                break;
            }
            self.report(Phase::Repacking, best, found.columns.len(), bound);
            repacking.attempt(best);
        }
    }

    /// Strengthens the lower bound by Benders cuts, and rounds the relaxation that resulted.
    fn strengthen(&self, best: &mut Vec<Bin>, found: Generation) -> Generation {
        let report = |columns, bound| self.report(Phase::Bounding, best, columns, bound);
        let settings = self.settings(&report);
        let settings = Settings {
            round_limit: settings.round_limit / 2,
            cutoff: self.cutoff(best),
            ..settings
        };
        let found = benders::add_column_cuts(self.problem, self.all, found, settings);
        if !self.is_enough(best, found.bound) && found.relaxed.is_some() {
            keep_cheaper(best, dive(self.problem, self.all, &found));
        }
        found
    }

    /// Returns whether the long phases are not worth their time.
    fn is_enough(&self, best: &[Bin], bound: u64) -> bool {
        let Effort { gap, large_gap, .. } = *self.effort;
        is_within_gap(best, bound, if self.all.len() > LARGE { gap.max(large_gap) } else { gap })
    }

    /// Returns the lower bound that would reach the optimality gap.
    fn cutoff(&self, best: &[Bin]) -> u64 {
        let cost = u128::from(cost(best)) * 1_000_000;
        let bound = cost.div_ceil(1_000_000 + u128::from(self.effort.gap));
        u64::try_from(bound).unwrap_or(u64::MAX)
    }

    fn settings<'w>(&self, report: &'w dyn Fn(usize, u64)) -> Settings<'w> {
        let Effort { rounds, node_limit, gap, .. } = *self.effort;
        Settings {
            round_limit: rounds,
            node_limit,
            gap: gap / 2,
            cutoff: u64::MAX,
            limits: None,
            report,
        }
    }

    fn report(&self, phase: Phase, best: &[Bin], columns: usize, bound: u64) {
        (self.watch)(Progress { phase, columns, cost: cost(best), bound });
    }
}

/// Returns whether the cost exceeds the bound by at most `gap` millionths of the bound.
fn is_within_gap(best: &[Bin], bound: u64, gap: u64) -> bool {
    let left = u128::from(cost(best).saturating_sub(bound)) * 1_000_000;
    left <= u128::from(bound) * u128::from(gap)
}

fn sorted(mut bins: Vec<Bin>) -> Vec<Bin> {
    bins.sort_by_key(|bin| (std::cmp::Reverse(bin.cost), bin.items.clone()));
    bins
}

fn keep_cheaper(best: &mut Vec<Bin>, other: Vec<Bin>) {
    if cost(&other) < cost(best) {
        *best = other;
    }
}

/// Returns each item in its own cheapest bin.
fn singletons(problem: &Problem<'_>, items: &[usize]) -> Result<Vec<Bin>, PackError> {
    let bins: Vec<Option<Bin>> = items.iter().map(|item| problem.cheapest(&[*item])).collect();
    let without_bin: Vec<usize> =
        items.iter().zip(&bins).filter(|(_, bin)| bin.is_none()).map(|(item, _)| *item).collect();
    if without_bin.is_empty() {
        Ok(bins.into_iter().flatten().collect())
    } else {
        Err(PackError::NoBin { items: without_bin })
    }
}

/// Returns initial dual prices: an item's share of its cheapest bin, plus its own cost.
fn initial_prices(problem: &Problem<'_>) -> Vec<u64> {
    (0..problem.items.len())
        .map(|item: usize| {
            let prices = (0..problem.kinds.len()).filter_map(|index| {
                let fit = problem.fit(index, item)?;
                let kind = &problem.kinds[index];
                let shares = fit.demand.iter().zip(&kind.capacity).map(|(demand, capacity)| {
                    u128::from(kind.cost) * u128::from(*demand) / u128::from((*capacity).max(1))
                });
                Some(shares.max().unwrap_or(0) + u128::from(fit.cost))
            });
            u64::try_from(prices.min().unwrap_or(0)).unwrap_or(u64::MAX)
        })
        .collect()
}

/// The diving heuristic: fixes the columns with the highest values in the relaxation, and solves
/// the relaxation of the remaining items, until none remain.
fn dive(problem: &Problem<'_>, items: &[usize], found: &Generation) -> Vec<Bin> {
    let mut left = items.to_vec();
    let mut bins: Vec<Bin> = Vec::new();
    let mut columns = found.columns.clone();
    let mut values = found.relaxed.as_ref().map_or(Vec::new(), |relaxed| relaxed.values.clone());
    while !left.is_empty() {
        let mut order: Vec<usize> = (0..columns.len().min(values.len())).collect();
        order.sort_by(|one, other| values[*other].total_cmp(&values[*one]).then(one.cmp(other)));
        let mut taken = 0;
        for at in order {
            let bin = &columns[at];
            let is_unpacked = bin.items.iter().all(|item| left.binary_search(item).is_ok());
            if bin.items.is_empty() || !is_unpacked || (taken > 0 && values[at] < FIX_THRESHOLD) {
                continue;
            }
            left.retain(|item| bin.items.binary_search(item).is_err());
            bins.push(problem.cheapest(&bin.items).unwrap_or_else(|| bin.clone()));
            taken += 1;
        }
        if taken == 0 {
            break;
        }
        if left.is_empty() {
            return bins;
        }
        columns = restrict(problem, &columns, &left);
        let settings = Settings {
            round_limit: 4,
            node_limit: 0,
            gap: 0,
            cutoff: u64::MAX,
            limits: None,
            report: &|_, _| {},
        };
        let next = generate(problem, &left, columns, settings);
        columns = next.columns;
        values = next.relaxed.map_or(Vec::new(), |relaxed| relaxed.values);
    }
    bins.extend(left.iter().filter_map(|item| problem.cheapest(&[*item])));
    bins
}

/// Returns the columns restricted to the items that are left, and a bin for each of these alone.
fn restrict(problem: &Problem<'_>, columns: &[Bin], left: &[usize]) -> Vec<Bin> {
    let mut seen = std::collections::HashSet::new();
    let restricted = columns.iter().filter_map(|bin| {
        let items: Vec<usize> =
            bin.items.iter().copied().filter(|item| left.binary_search(item).is_ok()).collect();
        let is_new = items.len() > 1 && seen.insert((bin.kind, items.clone()));
        is_new.then(|| problem.bin(bin.kind, items))
    });
    let mut all: Vec<Bin> = restricted.collect();
    all.extend(left.iter().filter_map(|item| problem.cheapest(&[*item])));
    all
}

/// Repacking of a few bins at a time.
struct Repacking<'p> {
    problem: &'p Problem<'p>,
    prices: &'p [u64],
    rng: Lcg,
}

impl Repacking<'_> {
    /// Repacks some bins. Those with high reduced costs are chosen more often.
    fn attempt(&mut self, best: &mut Vec<Bin>) {
        best.sort_by_key(|bin| {
            let reduced_cost = i128::from(bin.cost) - i128::from(value(self.prices, bin));
            (std::cmp::Reverse(reduced_cost), bin.items.clone())
        });
        let chosen = self.choose(best);
        let now: Vec<Bin> = chosen.iter().map(|at| best[*at].clone()).collect();
        let other = if now.iter().map(|bin| bin.items.len()).sum::<usize>() <= exact::MAX_ITEMS {
            let mut items: Vec<usize> = now.iter().flat_map(|bin| bin.items.clone()).collect();
            items.sort_unstable();
            exact::pack(self.problem, &items)
        } else {
            let mixed = if now.len() < 6 { mix::repack(self.problem, &now) } else { None };
            mixed.or_else(|| self.relaxed(&now))
        };
        if let Some(other) = other.filter(|other| cost(other) < cost(&now)) {
            chosen.iter().rev().for_each(|at| {
                best.swap_remove(*at);
            });
            best.extend(other);
        }
    }

    /// Chooses two to ten bins; each is the worse of two drawn at random.
    fn choose(&mut self, best: &[Bin]) -> Vec<usize> {
        let count = 2 + self.rng.below(9).min(best.len() - 2);
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..4 * count {
            let at = self.rng.below(best.len()).min(self.rng.below(best.len()));
            if !chosen.contains(&at) && chosen.len() < count {
                chosen.push(at);
            }
        }
        chosen.sort_unstable();
        chosen
    }

    /// Solves the items of a few bins as a problem of its own.
    fn relaxed(&self, now: &[Bin]) -> Option<Vec<Bin>> {
        let mut pool: Vec<usize> = now.iter().flat_map(|bin| bin.items.iter().copied()).collect();
        if pool.len() > MAX_REPACKED_ITEMS {
            return None;
        }
        pool.sort_unstable();
        let mut columns = restrict(self.problem, now, &pool);
        columns.extend(now.iter().cloned());
        let settings = Settings {
            round_limit: 10,
            node_limit: 0,
            gap: 0,
            cutoff: u64::MAX,
            limits: None,
            report: &|_, _| {},
        };
        let found = generate(self.problem, &pool, columns, settings);
        let mut other = dive(self.problem, &pool, &found);
        if let Some(relaxed) = &found.relaxed {
            keep_cheaper(
                &mut other,
                greedy(self.problem, &pool, &relaxed.prices, &found.capacity_prices),
            );
        }
        (cost(&other) < cost(now)).then_some(other)
    }
}
