//! Column generation: bins that the prices of the items say are worth having, until there are
//! none; and what no packing can cost less than.

use crate::bin::{self, Look};
use crate::problem::{Bin, Kind, Problem};
use crate::relaxed::{Counted, Relaxed, cut, relax};

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
    /// The packings that it is about: those that are in all of these.
    pub(crate) cases: &'w [Counted],
    /// Is told how many columns there are, and the bound.
    pub(crate) say: &'w dyn Fn(usize, u64),
}

/// What bins are looked for at, and what is proven with it.
#[derive(Debug, Clone)]
pub(crate) struct Dual {
    /// What each item of the problem is worth.
    pub(crate) prices: Vec<u64>,
    /// What one more or less is worth, by case.
    pub(crate) worths: Vec<u64>,
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
    /// By kind: what its rooms are worth.
    pub(crate) rooms: Vec<Option<Vec<u64>>>,
    /// What gave the bound.
    pub(crate) center: Option<Dual>,
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
    let rooms = vec![None; problem.kinds.len()];
    let mut all = Generated { columns, relaxed: None, bound: 0, rooms, center: None };
    if let Some(cut) = cut(problem, items, rounds.cases) {
        let quick = Rounds { nodes: rounds.nodes.min(QUICK), ..rounds };
        let prices = cut.prices.clone();
        prove(problem, items, Dual { prices: cut.prices, worths: cut.worths }, quick, &mut all);
        all.columns.extend(greedy(problem, items, &prices, &all.rooms));
    }
    all
}

/// Proves what it can with these prices, and keeps the bins that were found.
pub(crate) fn prove(
    problem: &Problem<'_>,
    items: &[usize],
    own: Dual,
    rounds: Rounds<'_>,
    all: &mut Generated,
) {
    let (found, steepest) = look(problem, items, &own.prices, rounds.nodes, all);
    let proven = bound(problem, items, &own, &steepest, rounds.cases);
    all.columns.extend(found);
    if proven >= all.bound {
        all.bound = proven;
        all.center = Some(own);
    }
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
    let cases = rounds.cases;
    let mut is_stuck = false;
    for round in 0..rounds.most {
        (rounds.say)(all.columns.len(), all.bound);
        let Some(relaxed) = relax(problem, items, &all.columns, cases) else { break };
        // Nearer and nearer, and back; at once where what is far away brings nothing.
        let far = if is_stuck { 0 } else { FAR[round % FAR.len()] };
        let own = between(all.center.as_ref(), &relaxed, far);
        let nodes = if far == 0 { rounds.nodes } else { rounds.nodes.min(QUICK) };
        let (found, steepest) = look(problem, items, &own.prices, nodes, &mut all);
        let proven = bound(problem, items, &own, &steepest, cases);
        let greedy = greedy(problem, items, &own.prices, &all.rooms);
        if proven > all.bound {
            all.bound = proven;
            all.center = Some(own);
        }
        let left = u128::from(relaxed.cost.saturating_sub(all.bound)) * 1_000_000;
        let is_close = left <= u128::from(relaxed.cost) * u128::from(rounds.gap);
        let net = net(problem, cases, &relaxed.worths);
        let is_better = |bin: &Bin| {
            let change = i128::from(problem.kinds[bin.kind].cost) - net[bin.kind];
            i128::from(price(&relaxed.prices, bin)) + change > i128::from(bin.cost)
        };
        is_stuck = !found.iter().any(is_better);
        let is_done = is_close || is_stuck && far == 0 || all.bound >= rounds.enough;
        prune(&mut all.columns, &relaxed);
        all.columns.extend(found);
        // Bins that go together.
        all.columns.extend(greedy);
        all.relaxed = Some(relaxed);
        if is_done {
            return all;
        }
    }
    if let Some(relaxed) = relax(problem, items, &all.columns, cases) {
        all.relaxed = Some(relaxed);
    }
    all
}

/// Between what gave the best bound and what the relaxation says, so far from the latter.
fn between(center: Option<&Dual>, relaxed: &Relaxed, far: u64) -> Dual {
    let Relaxed { prices, worths, .. } = relaxed;
    let Some(center) = center else {
        return Dual { prices: prices.clone(), worths: worths.clone() };
    };
    let mean = |old: &[u64], new: &[u64]| {
        let pairs = old.iter().zip(new);
        pairs.map(|(old, new)| (old * far + new * (WHOLE - far)) / WHOLE).collect()
    };
    Dual { prices: mean(&center.prices, prices), worths: mean(&center.worths, worths) }
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
    while !left.is_empty() {
        let of = |kind: usize| {
            let rooms = rooms[kind].as_deref();
            let look = Look { items: &left, prices, rooms, nodes: FEW };
            let worth = bin::best(problem, kind, look);
            (!worth.items.is_empty()).then(|| problem.bin(kind, worth.items))
        };
        let worth = |bin: &Bin| -> u128 {
            bin.items.iter().map(|item| u128::from(prices[*item])).sum::<u128>().max(1)
        };
        let found = (0..problem.kinds.len()).filter_map(of).min_by(|one, other| {
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

/// What no packing that is in all of the cases costs less than.
///
/// Farley's bound: if the bins of a kind are worth `most` beyond what their items cost in them, and
/// cost `cost` empty, they are worth no more than they cost if of each price what is above the least
/// that the item costs anywhere is taken `cost / most` times; and at such prices any packing costs
/// what its items are worth. What is not above needs no such part: it is worth nothing to a bin.
///
/// The cases come in by what a bin costs (Lagrange): whoever has `count` or more pays at least the
/// bound at `cost - worth` and `worth` for each of `count`; whoever has `count` or less pays at least
/// the bound at `cost + worth`, less `worth` for each of `count`.
fn bound(
    problem: &Problem<'_>,
    items: &[usize],
    dual: &Dual,
    most: &[u64],
    cases: &[Counted],
) -> u64 {
    let (mut base, mut above) = (0_u128, 0_u128);
    for item in items {
        let price = dual.prices[*item];
        let costs = problem.items[*item].fits.iter().flatten().map(|fit| fit.cost);
        let least = costs.min().unwrap_or(0).min(price);
        base += u128::from(least);
        above += u128::from(price - least);
    }
    let net = net(problem, cases, &dual.worths);
    let of = |(net, most): (&i128, &u64)| {
        // A kind that costs less than nothing: there is no end to what it saves.
        let cost = u128::try_from(*net).ok()?;
        Some(if u128::from(*most) <= cost { above } else { above * cost / u128::from(*most) })
    };
    let parts: Option<Vec<u128>> = net.iter().zip(most).map(of).collect();
    let Some(least) = parts.map(|parts| parts.into_iter().min().unwrap_or(0)) else { return 0 };
    let sum = cases.iter().zip(&dual.worths).map(|(case, worth)| {
        let all = i128::from(*worth) * i128::from(case.count);
        if case.is_least { all } else { -all }
    });
    let all = i128::try_from(base + least).unwrap_or(0) + sum.sum::<i128>();
    u64::try_from(all.max(0)).unwrap_or(u64::MAX)
}

/// What an empty bin of each kind costs with gifts and tolls.
fn net(problem: &Problem<'_>, cases: &[Counted], worths: &[u64]) -> Vec<i128> {
    let of = |(kind, own): (usize, &Kind)| {
        let changes = cases.iter().zip(worths).map(|(case, worth)| {
            let change = i128::from(*worth) * i128::from(case.weights[kind]);
            if case.is_least { -change } else { change }
        });
        i128::from(own.cost) + changes.sum::<i128>()
    };
    problem.kinds.iter().enumerate().map(of).collect()
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
