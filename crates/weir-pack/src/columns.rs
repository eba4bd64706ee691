//! Column generation: bins that the prices of the items say are worth having, until there are
//! none; and what no packing can cost less than.

use crate::bin::{self, Look};
use crate::counts::{Rows, Whole};
use crate::problem::{Bin, Kind, Problem};
use crate::relaxed::{Limits, Relaxed, cut, relax};

/// So many columns are kept; of more, those that are of use or new.
const MOST_COLUMNS: usize = 2_400;

/// Where a search for a bin is one of many, it has so many nodes.
const QUICK: u64 = 2_000;

/// Nodes of a search whose bin is taken or left.
const FEW: u64 = 300;

/// The whole of a part.
const WHOLE: u64 = 100;

/// How far from the prices of the relaxation bins are looked for, in parts of [`WHOLE`].
const FAR: [u64; 4] = [70, 45, 20, 0];

/// How to generate.
#[derive(Clone, Copy)]
pub(crate) struct Rounds<'w> {
    /// How many at most.
    pub(crate) most: usize,
    /// Nodes of a search that is to prove something; 0 if nothing is to be proven.
    pub(crate) nodes: u64,
    /// What is left between relaxation and bound may be so much, in millionths.
    pub(crate) gap: u64,
    /// A bound of so much is enough.
    pub(crate) enough: u64,
    /// The bins that there are, if not as many as one pays for.
    pub(crate) limits: Option<&'w Limits>,
    /// Is told how many columns there are, and the bound.
    pub(crate) say: &'w dyn Fn(usize, u64),
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Generated {
    /// The bins that were found worth having.
    pub(crate) columns: Vec<Bin>,
    /// The last relaxation; `None` if the solver failed.
    pub(crate) relaxed: Option<Relaxed>,
    /// No packing of the items costs less.
    pub(crate) bound: u64,
    /// What holds of the numbers of bins.
    pub(crate) rows: Rows,
    /// The numbers of bins that cost least by them.
    pub(crate) whole: Whole,
    /// No packing within the limits costs less, beside what its bins do.
    pub(crate) within: u64,
    /// By kind: what its rooms are worth.
    pub(crate) rooms: Vec<Option<Vec<u64>>>,
    /// The prices that gave it.
    pub(crate) center: Option<Vec<u64>>,
}

/// Generates columns for `items` from those that there are, which hold each of them.
pub(crate) fn generate(
    problem: &Problem<'_>,
    items: &[usize],
    columns: Vec<Bin>,
    rounds: Rounds<'_>,
) -> Generated {
    follow(problem, items, start(problem, items, columns, rounds), rounds)
}

/// What the relaxation proves in which items may be cut, and the bins that are worth having at its
/// prices.
pub(crate) fn start(
    problem: &Problem<'_>,
    items: &[usize],
    columns: Vec<Bin>,
    rounds: Rounds<'_>,
) -> Generated {
    let mut all = Generated {
        columns,
        relaxed: None,
        bound: 0,
        rows: Rows::default(),
        whole: Whole::default(),
        within: 0,
        rooms: vec![None; problem.kinds.len()],
        center: None,
    };
    if rounds.nodes > 0 {
        all.rows = Rows::new(problem, items);
        count(problem, items, rounds, &mut all);
    }
    restart(problem, items, rounds, &mut all);
    all
}

/// Other limits: what the relaxation proves in which items may be cut, and the bins that are worth
/// having at its prices.
pub(crate) fn restart(
    problem: &Problem<'_>,
    items: &[usize],
    rounds: Rounds<'_>,
    all: &mut Generated,
) {
    (all.within, all.center) = (0, None);
    let Some(prices) = cut(problem, items, rounds.limits) else { return };
    let quick = Rounds { nodes: rounds.nodes.min(QUICK), ..rounds };
    let found = prove(problem, items, &prices, quick, all);
    all.columns.extend(found);
    all.columns.extend(greedy(problem, items, &prices, &all.rooms));
}

/// The numbers of bins that cost least by all rows.
fn count(problem: &Problem<'_>, items: &[usize], rounds: Rounds<'_>, all: &mut Generated) {
    all.whole = all.rows.least(&problem.kinds, items.len(), rounds.enough);
    all.bound = all.bound.max(all.whole.cost);
}

/// Proves what it can at some prices, and returns bins that are worth having there.
fn prove(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    rounds: Rounds<'_>,
    all: &mut Generated,
) -> Vec<Bin> {
    let (found, steepest) = look(problem, items, prices, rounds.nodes, all);
    if rounds.nodes > 0 {
        let worths = items.iter().map(|item| prices[*item]);
        if all.rows.add(worths, &steepest, &all.whole) {
            count(problem, items, rounds, all);
        }
    }
    let proven = match rounds.limits {
        Some(limits) => bound_within(items, prices, &steepest, limits),
        None => bound(problem, items, prices, &steepest),
    };
    if rounds.limits.is_none() {
        all.bound = all.bound.max(proven);
    }
    if proven >= all.within {
        all.within = proven;
        all.center = Some(prices.to_vec());
    }
    found
}

/// Generates more columns from what there is.
///
/// The prices of a relaxation with few columns leap from round to round. So bins are looked for
/// between them and the prices that gave the best bound so far (Wentges 1997), which begin as those
/// of the relaxation in which items may be cut.
pub(crate) fn follow(
    problem: &Problem<'_>,
    items: &[usize],
    mut all: Generated,
    rounds: Rounds<'_>,
) -> Generated {
    let limits = rounds.limits;
    let mut is_stuck = false;
    for round in 0..rounds.most {
        (rounds.say)(all.columns.len(), all.bound);
        let Some(relaxed) = relax(problem, items, &all.columns, limits) else { break };
        // Nearer and nearer, and back; at once where what is far away brings nothing.
        let far = if is_stuck { 0 } else { FAR[round % FAR.len()] };
        let prices = between(all.center.as_ref(), &relaxed.prices, far);
        let nodes = if far == 0 { rounds.nodes } else { rounds.nodes.min(QUICK) };
        let found = prove(problem, items, &prices, Rounds { nodes, ..rounds }, &mut all);
        let greedy = greedy(problem, items, &prices, &all.rooms);
        let left = u128::from(relaxed.cost.saturating_sub(all.within)) * 1_000_000;
        let is_close = left <= u128::from(relaxed.cost) * u128::from(rounds.gap);
        let is_better = |bin: &Bin| {
            let own = price(&relaxed.prices, bin);
            match (limits, relaxed.worths.get(bin.kind)) {
                (Some(_), Some(worth)) => {
                    let costs = bin.cost.saturating_sub(problem.kinds[bin.kind].cost);
                    own > costs.saturating_add(*worth)
                }
                _ => own > bin.cost,
            }
        };
        is_stuck = !found.iter().any(is_better);
        // Of numbers of bins that are too few nothing more is asked.
        let is_other = |limits: &Limits| all.whole.counts.as_ref() != Some(&limits.counts);
        let is_done = is_close
            || is_stuck && far == 0
            || all.bound >= rounds.enough
            || limits.is_some_and(is_other);
        if !is_done {
            prune(&mut all.columns, &relaxed);
        }
        all.columns.extend(found);
        // Bins that go together.
        all.columns.extend(greedy);
        all.relaxed = Some(relaxed);
        if is_done {
            return all;
        }
    }
    if let Some(relaxed) = relax(problem, items, &all.columns, limits) {
        all.relaxed = Some(relaxed);
    }
    all
}

/// Between the prices that gave the best bound and those of the relaxation, so far from the latter.
fn between(center: Option<&Vec<u64>>, prices: &[u64], far: u64) -> Vec<u64> {
    let Some(center) = center else { return prices.to_vec() };
    let pairs = center.iter().zip(prices);
    pairs.map(|(old, new)| (old * far + new * (WHOLE - far)) / WHOLE).collect()
}

/// The bin of each kind that is worth most; and what none of a kind is worth more than.
fn look(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    nodes: u64,
    all: &mut Generated,
) -> (Vec<Bin>, Vec<u64>) {
    let (mut found, mut steepest) = (Vec::new(), Vec::new());
    for kind in 0..problem.kinds.len() {
        let worth = bin::best(problem, kind, Look { items, prices, rooms: None, nodes });
        steepest.push(worth.most);
        if !worth.rooms.is_empty() {
            all.rooms[kind] = Some(worth.rooms);
        }
        if !worth.items.is_empty() {
            let bin = problem.bin(kind, worth.items);
            if !all.columns.contains(&bin) {
                found.push(bin);
            }
        }
    }
    (found, steepest)
}

/// Bin after bin, each the one that costs least for what its items are worth.
pub(crate) fn greedy(
    problem: &Problem<'_>,
    items: &[usize],
    prices: &[u64],
    rooms: &[Option<Vec<u64>>],
) -> Vec<Bin> {
    let mut left = items.to_vec();
    let mut bins = Vec::new();
    let (mut rooms, mut known) = (rooms.to_vec(), items.len());
    while !left.is_empty() {
        if left.len() * 2 < known {
            known = left.len();
            rooms.fill(None);
        }
        let mut of = |kind: usize| {
            let look = Look { items: &left, prices, rooms: rooms[kind].as_deref(), nodes: FEW };
            let worth = bin::best(problem, kind, look);
            if worth.items.is_empty() {
                return None;
            }
            // What rooms are worth takes long to know and changes little from bin to bin.
            rooms[kind] = Some(worth.rooms);
            Some(problem.bin(kind, worth.items))
        };
        let worth = |bin: &Bin| -> u128 {
            bin.items.iter().map(|item| u128::from(prices[*item])).sum::<u128>().max(1)
        };
        let found = (0..problem.kinds.len()).filter_map(&mut of).min_by(|one, other| {
            let (dear, other_dear) = (u128::from(one.cost), u128::from(other.cost));
            (dear * worth(other)).cmp(&(other_dear * worth(one)))
        });
        // Items that are worth nothing are in no bin that was found.
        let Some(bin) = found else { break };
        let bin = problem.cheapest(&bin.items).unwrap_or(bin);
        left.retain(|item| bin.items.binary_search(item).is_err());
        bins.push(bin);
    }
    let rest = left.iter().filter_map(|item| problem.cheapest(&[*item]));
    bins.extend(rest);
    bins
}

/// What the items of a bin are worth.
pub(crate) fn price(prices: &[u64], bin: &Bin) -> u64 {
    bin.items.iter().map(|item| prices[*item]).sum()
}

/// What no packing costs less than.
///
/// Farley's bound: if the bins of a kind are worth `most` beyond what their items cost in them, and
/// cost `cost` empty, they are worth no more than they cost if of each price what is above the least
/// that the item costs anywhere is taken `cost / most` times; and at such prices any packing costs
/// what its items are worth. What is not above needs no such part: it is worth nothing to a bin.
fn bound(problem: &Problem<'_>, items: &[usize], prices: &[u64], most: &[u64]) -> u64 {
    let (mut base, mut above) = (0_u128, 0_u128);
    for item in items {
        let costs = problem.items[*item].fits.iter().flatten().map(|fit| fit.cost);
        let least = costs.min().unwrap_or(0).min(prices[*item]);
        base += u128::from(least);
        above += u128::from(prices[*item] - least);
    }
    let of = |(kind, most): (&Kind, &u64)| {
        if *most <= kind.cost { above } else { above * u128::from(kind.cost) / u128::from(*most) }
    };
    let least = problem.kinds.iter().zip(most).map(of).min().unwrap_or(0);
    u64::try_from(base + least).unwrap_or(u64::MAX)
}

/// What items cost at least in so many bins, whatever those cost: what they are worth, less what the
/// bins are worth at most.
fn bound_within(items: &[usize], prices: &[u64], most: &[u64], limits: &Limits) -> u64 {
    let worth: u128 = items.iter().map(|item| u128::from(prices[*item])).sum();
    let pairs = limits.counts.iter().zip(most);
    let bins = pairs.fold(0_u128, |sum, (count, most)| {
        sum.saturating_add(u128::from(*count) * u128::from(*most))
    });
    u64::try_from(worth.saturating_sub(bins)).unwrap_or(u64::MAX)
}

/// Drops columns that are of no use at these prices, the dearest first.
fn prune(columns: &mut Vec<Bin>, relaxed: &Relaxed) {
    if columns.len() < MOST_COLUMNS {
        return;
    }
    let is_used = |at: usize| relaxed.parts.get(at).is_some_and(|part| *part > 1e-6);
    let rest = |bin: &Bin| bin.cost.saturating_sub(price(&relaxed.prices, bin));
    // A column with one item alone is what keeps the relaxation from having no solution.
    let mut order: Vec<usize> =
        (0..columns.len()).filter(|at| columns[*at].items.len() > 1).collect();
    order.sort_by_key(|at| (!is_used(*at), rest(&columns[*at]), *at));
    order.truncate(MOST_COLUMNS / 2);
    let mut is_kept = vec![false; columns.len()];
    order.iter().for_each(|at| is_kept[*at] = true);
    let mut is_kept = is_kept.iter();
    columns.retain(|bin| is_kept.next().is_some_and(|kept| *kept) || bin.items.len() == 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tests::{bill, dual, packing, random, whole};
    use crate::draws::Draws;
    use crate::problem::cost;

    #[test]
    fn whatever_items_are_said_to_be_worth_no_packing_costs_less_than_the_bound() {
        let mut draws = Draws::new();
        let mut proven = 0;
        for round in 0..150 {
            let (kinds, items) = random(&mut draws, 9);
            let bill = bill(&kinds, &items);
            let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
            let all: Vec<usize> = (0..items.len()).collect();
            let (prices, most) = dual(&problem, &mut draws, 120);
            let least = bound(&problem, &all, &prices, &most);
            proven += u64::from(least > 0);
            for _ in 0..200 {
                let bins = packing(&problem, &mut draws);
                assert!(least <= cost(&bins), "round {round}: {least} for {bins:?}");
                let (counts, costs) = whole(&problem, &bins);
                let limits = Limits { counts, tolls: Vec::new() };
                let within = bound_within(&all, &prices, &most, &limits);
                assert!(within <= costs, "round {round}: {within} for {bins:?}");
            }
        }
        assert!(proven > 140, "{proven}");
    }
}
