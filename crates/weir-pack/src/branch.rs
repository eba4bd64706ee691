//! Whole numbers of bins: the relaxation takes two thirds of a large bin, and no packing does.
//!
//! What is whole is not only the number of bins of a kind. Where a large bin is two small ones in
//! room and price, the relaxation is free to take any mix of them; but together they are a whole
//! number of small ones. So bins are counted with weights, too: how many times the largest common
//! part of all rooms each has, in any measure.
//!
//! Either there are at most so many, or one more at least. The lower bound of the two cases holds
//! for all packings, and the lower one is split again.

use crate::columns::{Dual, Generated, Rounds, follow, prove};
use crate::problem::{Bin, Problem};
use crate::relaxed::{Counted, cut, relax};
use std::collections::HashSet;

/// So many of the weights that look best are compared by what the relaxation says of both cases.
const COMPARED: usize = 16;

/// The most weight of a kind.
const HEAVIEST: u64 = 64;

/// One less than the relaxation wants is worth so many times what one costs, at most. It has to be many:
/// a relaxation that wants a thousandth more than there may be misses little, and shows that there is no
/// packing only if that is dear.
const DEAR: u64 = 4_096;

/// One more than the relaxation wants is worth what one costs, less such a part of it: at prices by which
/// a bin costs nothing, what prices are rounded by is all that there is.
const LEFT: u64 = 64;

/// A number of bins is whole if it is so near to one.
const WHOLE: f64 = 1e-3;

/// Packings that are in some cases.
struct Node {
    cases: Vec<Counted>,
    /// None of them costs less.
    bound: u64,
    /// How many bins of each kind their relaxation has.
    counts: Vec<f64>,
    /// What proves it.
    found: Generated,
}

/// How the cases of a node are relaxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Items may be cut: quick, and nearly as sharp where bins hold many.
    Cut,
    /// Bins are whole, a part of each is taken.
    Bins,
}

/// A problem, and how its cases are told apart.
struct Branch<'p> {
    problem: &'p Problem<'p>,
    items: &'p [usize],
    rounds: Rounds<'p>,
    weights: Vec<Vec<u64>>,
    way: Way,
}

/// So many splits there are where items may be cut, and where bins are whole.
const SPLITS: (usize, usize) = (12, 5);

/// What no packing costs less than, by cases in which items may be cut: the bound of `root` or more.
pub(crate) fn cut_bound(
    problem: &Problem<'_>,
    items: &[usize],
    root: &Generated,
    rounds: Rounds<'_>,
) -> u64 {
    let own = Branch { problem, items, rounds, weights: weights(problem), way: Way::Cut };
    let Some(cut) = cut(problem, items, &[]) else { return root.bound };
    own.follow(root, cut.counts, SPLITS.0).0
}

/// What no packing costs less than, by cases in which bins are whole: the bound of `root` or more. And
/// the bins that are cheapest in them, which are nearer to whole ones.
pub(crate) fn bound(
    problem: &Problem<'_>,
    items: &[usize],
    root: &Generated,
    rounds: Rounds<'_>,
) -> (u64, Option<Generated>) {
    let own = Branch { problem, items, rounds, weights: weights(problem), way: Way::Bins };
    let Some(relaxed) = &root.relaxed else { return (root.bound, None) };
    own.follow(root, relaxed.counts.clone(), SPLITS.1)
}

impl Branch<'_> {
    /// The bound after so many splits, and what proves it.
    fn follow(
        &self,
        root: &Generated,
        counts: Vec<f64>,
        splits: usize,
    ) -> (u64, Option<Generated>) {
        let root = Node { cases: Vec::new(), bound: root.bound, counts, found: root.clone() };
        let mut open = vec![root];
        for _ in 0..splits {
            let at = lowest(&open).filter(|at| open[*at].bound < self.rounds.enough);
            let Some(at) = at else { break };
            let Some((less, more)) = self.split(&open[at]) else { break };
            let node = open.swap_remove(at);
            for case in [less, more] {
                open.push(self.side(&node, case));
            }
        }
        let Some(at) = lowest(&open) else { return (0, None) };
        let Node { cases, bound, found, .. } = open.swap_remove(at);
        (bound, (!cases.is_empty()).then_some(found))
    }
}

fn lowest(open: &[Node]) -> Option<usize> {
    (0..open.len()).min_by_key(|at| (open[*at].bound, *at))
}

/// What bins may be counted by: how many times the largest common part of all rooms each has; each
/// kind with those that are dearer; each kind alone.
fn weights(problem: &Problem<'_>) -> Vec<Vec<u64>> {
    let kinds = &problem.kinds;
    let measures = kinds.first().map_or(0, |kind| kind.room.len());
    let by_room = (0..measures).map(|measure| {
        let rooms = kinds.iter().map(|kind| kind.room[measure]);
        let part = rooms.clone().fold(0, common).max(1);
        rooms.map(|room| room / part).collect::<Vec<u64>>()
    });
    let dearer = kinds.iter().map(|least| {
        kinds.iter().map(|kind| u64::from(kind.cost >= least.cost)).collect::<Vec<u64>>()
    });
    let alone = (0..kinds.len())
        .map(|kind| (0..kinds.len()).map(|other| u64::from(other == kind)).collect::<Vec<u64>>());
    let mut all: Vec<Vec<u64>> = Vec::new();
    for own in by_room.chain(dearer).chain(alone) {
        if own.iter().all(|weight| *weight <= HEAVIEST) && !all.contains(&own) {
            all.push(own);
        }
    }
    all
}

/// The largest whole number that both are multiples of.
fn common(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common(other, one % other) }
}

impl Branch<'_> {
    /// The two cases that say most, as far as the relaxation goes.
    fn split(&self, node: &Node) -> Option<(Counted, Counted)> {
        let mut broken: Vec<(f64, &Vec<u64>, f64)> = Vec::new();
        for weights in &self.weights {
            let pairs = node.counts.iter().zip(weights).filter(|(count, _)| **count > WHOLE);
            #[expect(clippy::cast_precision_loss, reason = "to choose by, nothing else")]
            let sum: f64 = pairs.map(|(count, weight)| count * *weight as f64).sum();
            let part = (sum - sum.round()).abs();
            #[expect(clippy::cast_precision_loss, reason = "to choose by, nothing else")]
            let is_worth = part * each(self.problem, weights) as f64;
            if part > WHOLE {
                broken.push((is_worth, weights, sum));
            }
        }
        let left = match self.way {
            Way::Cut => u64::MAX,
            Way::Bins => LEFT,
        };
        // What all kinds count in is what no mix of them gets around.
        let is_whole = |weights: &[u64]| weights.iter().all(|weight| *weight > 0);
        broken.sort_by(|one, other| {
            let all = is_whole(other.1).cmp(&is_whole(one.1));
            all.then(other.0.total_cmp(&one.0))
        });
        let cases = broken.into_iter().take(COMPARED).filter_map(|(.., weights, sum)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bins")]
            let below = sum.floor() as u64;
            let each = each(self.problem, weights);
            let own = |count, is_least| {
                let most = if is_least { each - each / left } else { each.saturating_mul(DEAR) };
                Counted { weights: weights.clone(), count, is_least, most }
            };
            let (less, more) = (own(below, false), own(below + 1, true));
            // What a case misses it misses again.
            if node.cases.iter().any(|case| *case == less || *case == more) {
                return None;
            }
            let least = self.cost(node, &less)?.min(self.cost(node, &more)?);
            Some((least, less, more))
        });
        let (_, less, more) = cases.max_by_key(|(least, ..)| *least)?;
        Some((less, more))
    }

    /// What the relaxation of a node costs in one more case, near enough.
    fn cost(&self, node: &Node, case: &Counted) -> Option<u64> {
        let cases: Vec<Counted> = node.cases.iter().chain([case]).cloned().collect();
        if !is_small(self.problem, self.items, &cases) {
            return None;
        }
        match self.way {
            Way::Cut => cut(self.problem, self.items, &cases).map(|own| own.cost),
            Way::Bins => {
                relax(self.problem, self.items, &node.found.columns, &cases).map(|own| own.cost)
            }
        }
    }

    /// The packings of a node that are in one more case.
    fn side(&self, node: &Node, case: Counted) -> Node {
        let mut cases = node.cases.clone();
        cases.push(case);
        let mut found = node.found.clone();
        // Where the case is worth nothing, what held before holds.
        if let Some(center) = &mut found.center {
            center.worths.push(0);
        }
        let rounds = Rounds { cases: &cases, ..self.rounds };
        let mut counts = node.counts.clone();
        if let Some(cut) = cut(self.problem, self.items, &cases) {
            let own = Dual { prices: cut.prices, worths: cut.worths };
            prove(self.problem, self.items, own, rounds, &mut found);
            counts = cut.counts;
        }
        if self.way == Way::Bins && found.bound < self.rounds.enough {
            let mut seen: HashSet<(usize, Vec<usize>)> = HashSet::new();
            found.columns.retain(|bin: &Bin| seen.insert((bin.kind, bin.items.clone())));
            found = follow(self.problem, self.items, found, rounds);
            if let Some(relaxed) = &found.relaxed {
                counts.clone_from(&relaxed.counts);
            }
        }
        Node { cases, bound: found.bound.max(node.bound), counts, found }
    }
}

/// What one costs at least of what is counted.
fn each(problem: &Problem<'_>, weights: &[u64]) -> u64 {
    let kinds = problem.kinds.iter().zip(weights).filter(|(_, weight)| **weight > 0);
    kinds.map(|(kind, weight)| kind.cost / weight).min().unwrap_or(0)
}

/// Whether sums of prices are no larger than numbers are.
fn is_small(problem: &Problem<'_>, items: &[usize], cases: &[Counted]) -> bool {
    let tolls = cases.iter().map(|case| {
        let heaviest = case.weights.iter().max().copied().unwrap_or(0);
        u128::from(case.most) * u128::from(heaviest)
    });
    let fits = items.iter().flat_map(|item| problem.items[*item].fits.iter().flatten());
    let dearest = fits.map(|fit| u128::from(fit.cost)).max().unwrap_or(0)
        + problem.kinds.iter().map(|kind| u128::from(kind.cost)).max().unwrap_or(0);
    let most = (dearest + tolls.sum::<u128>()) * (items.len() as u128 + 100);
    most < 1 << 62
}
