//! Column generation: solves the linear relaxation with columns of negative reduced cost until
//! there are none, and derives lower bounds from its dual prices.

use crate::counts::{Cuts, Solution};
use crate::pricing::{self, Knapsack};
use crate::problem::{Bin, Problem};
use crate::relaxed::{Limits, Relaxed, relax, relax_splittable};

/// Maximum number of columns. Beyond it, those with the lowest reduced costs are kept.
const MAX_COLUMNS: usize = 2_400;

/// Node limit of pricing at smoothed dual prices.
const SMOOTHED_NODES: u64 = 2_000;

/// Node limit of pricing in the greedy heuristic, whose bins need not be optimal.
const GREEDY_NODES: u64 = 300;

/// One, in the fixed-point format of [`SMOOTHING`].
const PERCENT: u64 = 100;

/// Weights of the stability center in the dual prices, in percent, round by round.
const SMOOTHING: [u64; 4] = [70, 45, 20, 0];

/// The settings of column generation.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'w> {
    /// Maximum number of rounds.
    pub(crate) round_limit: usize,
    /// Node limit of the pricing problem; 0 if no bound is needed.
    pub(crate) node_limit: u64,
    /// Generation ends at this gap between relaxation and bound, in millionths.
    pub(crate) gap: u64,
    /// Generation ends if the lower bound reaches this.
    pub(crate) cutoff: u64,
    /// Limits of the numbers of bins, if they are fixed.
    pub(crate) limits: Option<&'w Limits>,
    /// Receives the number of columns and the lower bound.
    pub(crate) report: &'w dyn Fn(usize, u64),
}

/// The state of column generation.
#[derive(Debug, Clone)]
pub(crate) struct Generation {
    pub(crate) columns: Vec<Bin>,
    /// The last solution of the relaxation; `None` if the solver failed.
    pub(crate) relaxed: Option<Relaxed>,
    /// Lower bound of the cost of any packing of the items.
    pub(crate) bound: u64,
    /// Cuts on the numbers of bins per kind.
    pub(crate) cuts: Cuts,
    /// The cheapest numbers of bins that satisfy the cuts.
    pub(crate) solution: Solution,
    /// Best bound since the last restart. With limits it excludes the costs of empty bins.
    pub(crate) limited_bound: u64,
    /// Capacity prices by kind, as far as they are known.
    pub(crate) capacity_prices: Vec<Option<Vec<u64>>>,
    /// The stability center: the dual prices with the best bound so far.
    pub(crate) center: Option<Vec<u64>>,
}

/// Generates columns for `items`. The initial columns must cover each of them.
pub(crate) fn generate(
    problem: &Problem<'_>,
    items: &[usize],
    columns: Vec<Bin>,
    settings: Settings<'_>,
) -> Generation {
    run(problem, items, start(problem, items, columns, settings), settings)
}

/// Starts column generation with the dual prices of the relaxation in which items may be split.
pub(crate) fn start(
    problem: &Problem<'_>,
    items: &[usize],
    columns: Vec<Bin>,
    settings: Settings<'_>,
) -> Generation {
    let mut state = Generation {
        columns,
        relaxed: None,
        bound: 0,
        cuts: Cuts::default(),
        solution: Solution::default(),
        limited_bound: 0,
        capacity_prices: vec![None; problem.kinds.len()],
        center: None,
    };
    if settings.node_limit > 0 {
        state.cuts = Cuts::new(problem, items);
        solve_counts(problem, items, settings, &mut state);
    }
    restart(problem, items, settings, &mut state);
    state
}

/// Starts again with other limits, from the relaxation in which items may be split.
pub(crate) fn restart(
    problem: &Problem<'_>,
    items: &[usize],
    settings: Settings<'_>,
    state: &mut Generation,
) {
    (state.limited_bound, state.center) = (0, None);
    let Some(prices) = relax_splittable(problem, items, settings.limits) else { return };
    let quick = Settings { node_limit: settings.node_limit.min(SMOOTHED_NODES), ..settings };
    let found = bound_and_price(problem, items, &prices, quick, state);
    state.columns.extend(found);
    state.columns.extend(greedy(problem, items, &prices, &state.capacity_prices));
}

/// Solves the integer program over the cuts, and raises the bound.
fn solve_counts(
    problem: &Problem<'_>,
    items: &[usize],
    settings: Settings<'_>,
    state: &mut Generation,
) {
    state.solution = state.cuts.solve(&problem.kinds, items.len(), settings.cutoff);
    state.bound = state.bound.max(state.solution.cost);
}

/// Derives a bound and a cut from dual prices, and returns columns of high value at them.
fn bound_and_price(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    settings: Settings<'_>,
    state: &mut Generation,
) -> Vec<Bin> {
    let (found, upper_bounds) = price_kinds(problem, items, prices, settings.node_limit, state);
    if settings.node_limit > 0 {
        let values = items.iter().map(|item| prices[*item]);
        if state.cuts.add(values, &upper_bounds, &state.solution) {
            solve_counts(problem, items, settings, state);
        }
    }
    let proven = match settings.limits {
        Some(limits) => lagrangian_bound(items, prices, &upper_bounds, limits),
        None => farley_bound(problem, items, prices, &upper_bounds),
    };
    if settings.limits.is_none() {
        state.bound = state.bound.max(proven);
    }
    if proven >= state.limited_bound {
        state.limited_bound = proven;
        state.center = Some(prices.to_vec());
    }
    found
}

/// Generates further columns.
///
/// With few columns, dual prices oscillate between rounds. Pricing therefore uses a mean of them
/// and of the stability center, the prices with the best bound so far (Wentges 1997). The first
/// center is the solution of the relaxation in which items may be split.
pub(crate) fn run(
    problem: &Problem<'_>,
    items: &[usize],
    mut state: Generation,
    settings: Settings<'_>,
) -> Generation {
    let limits = settings.limits;
    let mut is_stuck = false;
    for round in 0..settings.round_limit {
        (settings.report)(state.columns.len(), state.bound);
        let Some(relaxed) = relax(problem, items, &state.columns, limits) else { break };
        // The smoothing cycles from strong to none. It is skipped if the last round found no
        // column.
        let weight = if is_stuck { 0 } else { SMOOTHING[round % SMOOTHING.len()] };
        let prices = smooth(state.center.as_ref(), &relaxed.prices, weight);
        let node_limit =
            if weight == 0 { settings.node_limit } else { settings.node_limit.min(SMOOTHED_NODES) };
        let found = bound_and_price(
            problem,
            items,
            &prices,
            Settings { node_limit, ..settings },
            &mut state,
        );
        let greedy = greedy(problem, items, &prices, &state.capacity_prices);
        let left = u128::from(relaxed.cost.saturating_sub(state.limited_bound)) * 1_000_000;
        let is_close = left <= u128::from(relaxed.cost) * u128::from(settings.gap);
        is_stuck = !found.iter().any(|bin: &Bin| {
            let value = value(&relaxed.prices, bin);
            match (limits, relaxed.limit_prices.get(bin.kind)) {
                (Some(_), Some(limit_price)) => {
                    let costs = bin.cost.saturating_sub(problem.kinds[bin.kind].cost);
                    value > costs.saturating_add(*limit_price)
                }
                _ => value > bin.cost,
            }
        });
        // Stop as soon as a cut excludes the numbers of bins under test.
        let is_excluded =
            limits.is_some_and(|limits| state.solution.counts.as_ref() != Some(&limits.counts));
        let is_done =
            is_close || is_stuck && weight == 0 || state.bound >= settings.cutoff || is_excluded;
        if !is_done {
            prune(&mut state.columns, &relaxed);
        }
        state.columns.extend(found);
        // These columns together form a packing.
        state.columns.extend(greedy);
        state.relaxed = Some(relaxed);
        if is_done {
            return state;
        }
    }
    if let Some(relaxed) = relax(problem, items, &state.columns, limits) {
        state.relaxed = Some(relaxed);
    }
    state
}

/// Returns the weighted mean of the stability center and the dual prices; `weight` is the center's.
fn smooth(center: Option<&Vec<u64>>, prices: &[u64], weight: u64) -> Vec<u64> {
    let Some(center) = center else { return prices.to_vec() };
    let pairs = center.iter().zip(prices);
    pairs.map(|(old, new)| (old * weight + new * (PERCENT - weight)) / PERCENT).collect()
}

/// Solves the pricing problem of each kind: the columns found, and upper bounds of any bin's value.
fn price_kinds(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    node_limit: u64,
    state: &mut Generation,
) -> (Vec<Bin>, Vec<u64>) {
    let (mut found, mut upper_bounds) = (Vec::new(), Vec::new());
    for kind in 0..problem.kinds.len() {
        let priced = pricing::solve(
            problem,
            kind,
            Knapsack { items, prices, capacity_prices: None, node_limit },
        );
        upper_bounds.push(priced.upper_bound);
        if !priced.capacity_prices.is_empty() {
            state.capacity_prices[kind] = Some(priced.capacity_prices);
        }
        if !priced.items.is_empty() {
            let bin = problem.bin(kind, priced.items);
            if !state.columns.contains(&bin) {
                found.push(bin);
            }
        }
    }
    (found, upper_bounds)
}

/// Greedy heuristic: repeatedly takes the bin with the lowest ratio of cost to value.
pub(crate) fn greedy(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    capacity_prices: &[Option<Vec<u64>>],
) -> Vec<Bin> {
    let mut left = items.to_vec();
    let mut bins = Vec::new();
    let (mut capacity_prices, mut known) = (capacity_prices.to_vec(), items.len());
    while !left.is_empty() {
        if left.len() * 2 < known {
            known = left.len();
            capacity_prices.fill(None);
        }
        let mut best_bin = |kind: usize| {
            let knapsack = Knapsack {
                items: &left,
                prices,
                capacity_prices: capacity_prices[kind].as_deref(),
                node_limit: GREEDY_NODES,
            };
            let priced = pricing::solve(problem, kind, knapsack);
            if priced.items.is_empty() {
                return None;
            }
            // Capacity prices are expensive to compute and change little from bin to bin.
            capacity_prices[kind] = Some(priced.capacity_prices);
            Some(problem.bin(kind, priced.items))
        };
        let value = |bin: &Bin| -> u128 {
            bin.items.iter().map(|item| u128::from(prices[*item])).sum::<u128>().max(1)
        };
        let found = (0..problem.kinds.len()).filter_map(&mut best_bin).min_by(|one, other| {
            let (cost, other_cost) = (u128::from(one.cost), u128::from(other.cost));
            (cost * value(other)).cmp(&(other_cost * value(one)))
        });
        // Items with a dual price of zero are in no bin found.
        let Some(bin) = found else { break };
        let bin = problem.cheapest(&bin.items).unwrap_or(bin);
        left.retain(|item| bin.items.binary_search(item).is_err());
        bins.push(bin);
    }
    let rest = left.iter().filter_map(|item| problem.cheapest(&[*item]));
    bins.extend(rest);
    bins
}

/// Returns the sum of the dual prices of a bin's items.
pub(crate) fn value(prices: &[u64], bin: &Bin) -> u64 {
    bin.items.iter().map(|item| prices[*item]).sum()
}

/// Returns Farley's lower bound.
///
/// A kind whose bins have a value of up to `most` beyond their items' costs, and cost `cost` empty,
/// satisfies the dual constraints if the values are scaled by `cost / most`. Only the part of a
/// dual price above the lowest cost of its item needs scaling; the rest adds no value to a bin. The
/// sum of feasible dual prices is a lower bound.
fn farley_bound(problem: &Problem<'_>, items: &[usize], prices: &[u64], most: &[u64]) -> u64 {
    let (mut base, mut above) = (0_u128, 0_u128);
    for item in items {
        let costs = problem.items[*item].fits.iter().flatten().map(|fit| fit.cost);
        let least = costs.min().unwrap_or(0).min(prices[*item]);
        base += u128::from(least);
        above += u128::from(prices[*item] - least);
    }
    let scaled = problem.kinds.iter().zip(most).map(|(kind, most)| {
        if *most <= kind.cost { above } else { above * u128::from(kind.cost) / u128::from(*most) }
    });
    u64::try_from(base + scaled.min().unwrap_or(0)).unwrap_or(u64::MAX)
}

/// Returns the Lagrangian bound of the items' costs for given numbers of bins: the sum of the dual
/// prices less the highest value of the bins.
fn lagrangian_bound(items: &[usize], prices: &[u64], most: &[u64], limits: &Limits) -> u64 {
    let value: u128 = items.iter().map(|item| u128::from(prices[*item])).sum();
    let pairs = limits.counts.iter().zip(most);
    let bins = pairs.fold(0_u128, |sum, (count, most)| {
        sum.saturating_add(u128::from(*count) * u128::from(*most))
    });
    u64::try_from(value.saturating_sub(bins)).unwrap_or(u64::MAX)
}

/// Drops the columns with the highest reduced costs.
fn prune(columns: &mut Vec<Bin>, relaxed: &Relaxed) {
    if columns.len() < MAX_COLUMNS {
        return;
    }
    let is_used = |at: usize| relaxed.values.get(at).is_some_and(|part| *part > 1e-6);
    let reduced_cost = |bin: &Bin| bin.cost.saturating_sub(value(&relaxed.prices, bin));
    // Columns of a single item keep the relaxation feasible.
    let mut order: Vec<usize> =
        (0..columns.len()).filter(|at| columns[*at].items.len() > 1).collect();
    order.sort_by_key(|at| (!is_used(*at), reduced_cost(&columns[*at]), *at));
    order.truncate(MAX_COLUMNS / 2);
    let mut is_kept = vec![false; columns.len()];
    order.iter().for_each(|at| is_kept[*at] = true);
    let mut flags = is_kept.iter();
    columns.retain(|bin| flags.next().is_some_and(|is_kept| *is_kept) || bin.items.len() == 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lcg::Lcg;
    use crate::problem::cost;
    use crate::testing::{bin_cost, counts_and_costs, dual, packing, random};

    #[test]
    fn bounds_hold_for_arbitrary_dual_prices() {
        let mut rng = Lcg::new();
        let mut proven = 0;
        for round in 0..150 {
            let (kinds, items) = random(&mut rng, 9);
            let bin_cost = bin_cost(&kinds, &items);
            let problem =
                Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
            let all: Vec<usize> = (0..items.len()).collect();
            let (prices, most) = dual(&problem, &mut rng, 120);
            let least = farley_bound(&problem, &all, &prices, &most);
            proven += u64::from(least > 0);
            for _ in 0..200 {
                let bins = packing(&problem, &mut rng);
                assert!(least <= cost(&bins), "round {round}: {least} for {bins:?}");
                let (counts, costs) = counts_and_costs(&problem, &bins);
                let limits = Limits { counts, penalties: Vec::new() };
                let item_bound = lagrangian_bound(&all, &prices, &most, &limits);
                assert!(item_bound <= costs, "round {round}: {item_bound} for {bins:?}");
            }
        }
        assert!(proven > 140, "{proven}");
    }
}
