//! Whole numbers of bins: the relaxation takes two thirds of a large bin, and no packing does.
//!
//! Either there are at most so many bins of a kind, or one more at least. In each case what such a
//! bin costs is changed by what the relaxation would give for another: whoever has `count` of them
//! or more pays at least the bound at `cost - gift`, and `gift` for each of `count`; whoever has
//! `count` or fewer pays at least the bound at `cost + toll`, less `toll` for each of `count`
//! (Lagrange). The lower of both holds for all packings.

use crate::columns::{Generated, Rounds, generate};
use crate::problem::Problem;
use crate::relaxed::{Counted, worth};
use std::collections::HashSet;

/// So often what another bin is worth is worked out anew, with the bins that were found.
const TURNS: usize = 3;

/// A toll that was too low is so many times higher the next time.
const HIGHER: u64 = 8;

/// A gain of less than such a part of the bound is the last.
const SMALL: u64 = 1_000;

/// A number of bins is whole if it is so near to one.
const WHOLE: f64 = 1e-3;

/// What no packing costs less than, by the kind whose number of bins is least whole, weighed by what
/// one costs: the bound of `root` or more. More than `enough` is not looked for.
pub(crate) fn bound(
    problem: &Problem<'_>,
    items: &[usize],
    root: &Generated,
    rounds: Rounds,
    enough: u64,
) -> u64 {
    let Some((kind, below)) = least_whole(problem, root) else { return root.bound };
    let cases = [(below, false), (below + 1, true)];
    let mut least = u64::MAX;
    for (count, is_least) in cases {
        let case = Counted { kind, count, is_least };
        least = least.min(side(problem, items, root, case, rounds, enough));
        // The other cannot bring more than this one.
        if least <= root.bound {
            return root.bound;
        }
    }
    least
}

/// The kind whose number in the relaxation is least whole, and the whole number below it.
fn least_whole(problem: &Problem<'_>, root: &Generated) -> Option<(usize, u64)> {
    let mut counts = vec![0.0_f64; problem.kinds.len()];
    for (bin, part) in root.columns.iter().zip(&root.relaxed.as_ref()?.parts) {
        counts[bin.kind] += part.max(0.0);
    }
    let part = |kind: usize| (counts[kind] - counts[kind].round()).abs();
    #[expect(clippy::cast_precision_loss, reason = "to choose by, nothing else")]
    let weight = |kind: usize| part(kind) * problem.kinds[kind].cost as f64;
    let kind = (0..counts.len()).max_by(|one, other| weight(*one).total_cmp(&weight(*other)))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of bins")]
    let below = counts[kind].floor() as u64;
    (part(kind) > WHOLE).then_some((kind, below))
}

/// What no packing of one case costs less than, or `enough`.
fn side(
    problem: &Problem<'_>,
    items: &[usize],
    root: &Generated,
    case: Counted,
    rounds: Rounds,
    enough: u64,
) -> u64 {
    let mut best = root.bound;
    let mut columns = root.columns.clone();
    // Where there are no columns for fewer bins there may be no packing either; a toll that is high
    // enough shows it, and whatever it is, what it shows holds.
    let mut toll = problem.kinds[case.kind].cost;
    for _ in 0..TURNS {
        let known = worth(problem, items, &columns, case);
        let is_known = known.is_some();
        let change = match known {
            Some(gift) if case.is_least => gift.min(problem.kinds[case.kind].cost),
            Some(toll) => toll,
            None if case.is_least => break,
            None => {
                toll = toll.saturating_mul(HIGHER);
                toll
            }
        };
        let found = changed(problem, case, change, |problem| {
            let own = columns.iter().map(|bin| problem.bin(bin.kind, bin.items.clone()));
            generate(problem, items, own.collect(), rounds)
        });
        let sum = change.saturating_mul(case.count);
        let own = match case.is_least {
            true => found.bound.saturating_add(sum),
            false => found.bound.saturating_sub(sum),
        };
        let is_little = own > root.bound && own.saturating_sub(best) < best / SMALL;
        best = best.max(own);
        if best >= enough || is_little {
            break;
        }
        let mut seen: HashSet<(usize, Vec<usize>)> =
            columns.iter().map(|bin| (bin.kind, bin.items.clone())).collect();
        let new = found.columns.into_iter();
        let new = new.filter(|bin| seen.insert((bin.kind, bin.items.clone())));
        let before = columns.len();
        columns.extend(new.map(|bin| problem.bin(bin.kind, bin.items)));
        // The same bins have the same worth.
        if columns.len() == before && is_known {
            break;
        }
    }
    best
}

/// The problem with another cost of one kind. What bins cost is changed as much as what they cost
/// empty, so a bill is still no less than its parts.
fn changed<T>(
    problem: &Problem<'_>,
    case: Counted,
    change: u64,
    of: impl FnOnce(&Problem<'_>) -> T,
) -> T {
    let cost = |kind: usize, cost: u64| match (kind == case.kind, case.is_least) {
        (true, true) => cost.saturating_sub(change),
        (true, false) => cost.saturating_add(change),
        (false, _) => cost,
    };
    let bill = |kind: usize, items: &[usize]| cost(kind, (problem.bill)(kind, items));
    let mut kinds = problem.kinds.clone();
    for (kind, own) in kinds.iter_mut().enumerate() {
        own.cost = cost(kind, own.cost);
    }
    of(&Problem { kinds, items: problem.items.clone(), bill: &bill })
}
