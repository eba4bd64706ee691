//! Column generation: bins that the prices of the items say are worth having, until there are
//! none; and what no packing can cost less than.

use crate::bin::{self, Look};
use crate::problem::{Bin, Problem};
use crate::relaxed::{Relaxed, cut, relax};

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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    /// How many at most.
    pub(crate) most: usize,
    /// Nodes of a search that is to prove something; 0 if nothing is to be proven.
    pub(crate) nodes: u64,
    /// What is left between relaxation and bound may be so much, in millionths.
    pub(crate) gap: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Generated {
    /// The bins that were found worth having.
    pub(crate) columns: Vec<Bin>,
    /// The last relaxation; `None` if the solver failed.
    pub(crate) relaxed: Option<Relaxed>,
    /// No packing of the items costs less.
    pub(crate) bound: u64,
    /// By kind: what its rooms are worth.
    pub(crate) rooms: Vec<Option<Vec<u64>>>,
}

/// Generates columns for `items` from those that there are, which hold each of them.
///
/// The prices of a relaxation with few columns leap from round to round. So bins are looked for
/// between them and the prices that gave the best bound so far (Wentges 1997), which begin as those
/// of the relaxation in which items may be cut.
pub(crate) fn generate(
    problem: &Problem<'_>,
    items: &[usize],
    columns: Vec<Bin>,
    rounds: Rounds,
) -> Generated {
    let rooms = vec![None; problem.kinds.len()];
    let mut all = Generated { columns, relaxed: None, bound: 0, rooms };
    let mut center = cut(problem, items);
    if let Some(prices) = &center {
        let (found, steepest) = look(problem, items, prices, rounds.nodes.min(QUICK), &mut all);
        all.bound = bound(problem, items, prices, &steepest);
        all.columns.extend(found);
        all.columns.extend(greedy(problem, items, prices, &all.rooms));
    }
    let mut is_stuck = false;
    for round in 0..rounds.most {
        let Some(relaxed) = relax(problem, items, &all.columns) else { break };
        let cost = cost(&all.columns, &relaxed);
        // Nearer and nearer, and back; at once where what is far away brings nothing.
        let far = if is_stuck { 0 } else { FAR[round % FAR.len()] };
        let between = |center: &Vec<u64>| {
            let pairs = center.iter().zip(&relaxed.prices);
            pairs.map(|(old, new)| (old * far + new * (WHOLE - far)) / WHOLE).collect()
        };
        let prices: Vec<u64> = center.as_ref().map_or_else(|| relaxed.prices.clone(), between);
        let nodes = if far == 0 { rounds.nodes } else { rounds.nodes.min(QUICK) };
        let (found, steepest) = look(problem, items, &prices, nodes, &mut all);
        let own = bound(problem, items, &prices, &steepest);
        if own > all.bound {
            all.bound = own;
            center = Some(prices.clone());
        }
        let left = u128::from(cost.saturating_sub(all.bound)) * 1_000_000;
        let is_close = left <= u128::from(cost) * u128::from(rounds.gap);
        let is_better = |bin: &Bin| price(&relaxed.prices, bin) > bin.cost;
        is_stuck = !found.iter().any(is_better);
        let is_done = is_close || is_stuck && far == 0;
        prune(&mut all.columns, &relaxed);
        all.columns.extend(found);
        // Bins that go together.
        all.columns.extend(greedy(problem, items, &prices, &all.rooms));
        all.relaxed = Some(relaxed);
        if is_done {
            return all;
        }
    }
    if let Some(relaxed) = relax(problem, items, &all.columns) {
        all.relaxed = Some(relaxed);
    }
    all
}

/// The bin of each kind that is worth most, if it pays; and what none of a kind is worth more than.
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

/// What the relaxation costs, near enough.
fn cost(columns: &[Bin], relaxed: &Relaxed) -> u64 {
    let parts = columns.iter().zip(&relaxed.parts).map(|(bin, part)| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "to see when to stop, nothing else"
        )]
        let cost = (bin.cost as f64 * part.clamp(0.0, 1.0)) as u64;
        cost
    });
    parts.fold(0, u64::saturating_add)
}

/// What no packing costs less than: Farley's bound. If the bins of a kind are worth `most` at
/// these prices where they cost `cost` empty, they are worth no more than they cost at
/// `cost / most` of the prices; and at such prices any packing costs what its items are worth.
fn bound(problem: &Problem<'_>, items: &[usize], prices: &[u64], most: &[u64]) -> u64 {
    let all: u128 = items.iter().map(|item| u128::from(prices[*item])).sum();
    let of = |(kind, most): (usize, &u64)| {
        let cost = problem.kinds[kind].cost;
        if *most <= cost { all } else { all * u128::from(cost) / u128::from(*most) }
    };
    let least = most.iter().enumerate().map(of).min().unwrap_or(0);
    u64::try_from(least).unwrap_or(u64::MAX)
}

/// Drops columns that are of no use at these prices, the dearest first.
fn prune(columns: &mut Vec<Bin>, relaxed: &Relaxed) {
    if columns.len() < MOST_COLUMNS {
        return;
    }
    let is_used = |at: usize| relaxed.parts.get(at).is_some_and(|part| *part > 1e-6);
    let rest = |bin: &Bin| bin.cost.saturating_sub(price(&relaxed.prices, bin));
    let mut order: Vec<usize> = (0..columns.len()).collect();
    // A column with one item alone is what keeps the relaxation from having no solution.
    order.sort_by_key(|at| {
        let bin = &columns[*at];
        (bin.items.len() > 1 && !is_used(*at), rest(bin), *at)
    });
    order.truncate(MOST_COLUMNS / 2);
    let mut is_kept = vec![false; columns.len()];
    order.iter().for_each(|at| is_kept[*at] = true);
    let mut is_kept = is_kept.iter();
    columns.retain(|bin| is_kept.next().is_some_and(|kept| *kept) || bin.items.len() == 1);
}
