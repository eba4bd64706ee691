//! Whole numbers of bins: the relaxation takes two thirds of a large bin, and no packing does.
//!
//! The rows that were found so far have numbers of bins that cost least by them. Whether all items
//! fit those is asked of a relaxation in which each bin beyond them costs a toll; if they do not, its
//! prices make a row by which these numbers are too few (Benders 1962), and the next are asked about.

use crate::columns::{Generated, Rounds, follow, restart};
use crate::problem::Problem;
use crate::relaxed::Limits;

/// A bin beyond the limits costs so many times as much, at most. It has to be many: items that fit but
/// for a thousandth of a bin miss little, and show that they do not only if that is dear.
const DEAR: u64 = 4_096;

/// So many numbers are asked about where items may be cut.
const CUT: usize = 24;

/// So many are where bins are whole.
const BINS: usize = 6;

/// Asks a relaxation in which items may be cut: quick, and nearly as sharp where bins hold many.
pub(crate) fn cut(problem: &Problem<'_>, items: &[usize], all: &mut Generated, rounds: Rounds<'_>) {
    let free = (all.within, all.center.clone());
    for _ in 0..CUT {
        let Some(limits) = limits(problem, items, all) else { break };
        restart(problem, items, Rounds { limits: Some(&limits), ..rounds }, all);
        if all.whole.counts.as_ref() == Some(&limits.counts) {
            break;
        }
    }
    (all.within, all.center) = free;
}

/// Asks a relaxation in which bins are whole, and a part of each is taken. What is left of it is
/// nearer to whole bins than one without limits.
pub(crate) fn bins(
    problem: &Problem<'_>,
    items: &[usize],
    mut all: Generated,
    rounds: Rounds<'_>,
) -> Generated {
    for _ in 0..BINS {
        let Some(limits) = limits(problem, items, &all) else { break };
        let rounds = Rounds { limits: Some(&limits), ..rounds };
        restart(problem, items, rounds, &mut all);
        all = follow(problem, items, all, rounds);
        if all.whole.counts.as_ref() == Some(&limits.counts) {
            break;
        }
    }
    all
}

/// The numbers that cost least, and tolls with which sums of prices are still numbers.
fn limits(problem: &Problem<'_>, items: &[usize], all: &Generated) -> Option<Limits> {
    let counts = all.whole.counts.clone()?;
    let fits = items.iter().flat_map(|item| problem.items[*item].fits.iter().flatten());
    let dearest = fits.map(|fit| u128::from(fit.cost)).max().unwrap_or(0);
    let kinds = || problem.kinds.iter().map(|kind| u128::from(kind.cost));
    let bin = kinds().max().unwrap_or(0).max(1);
    let most = (1_u128 << 62) / (items.len() as u128 + 100);
    let times = (most.saturating_sub(dearest) / bin).min(u128::from(DEAR)).checked_sub(1)?;
    let times = u64::try_from(times).ok().filter(|times| *times > 0)?;
    let tolls = problem.kinds.iter().map(|kind| kind.cost.max(1) * times).collect();
    Some(Limits { counts, tolls })
}
