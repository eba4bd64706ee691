//! Benders decomposition over the numbers of bins per kind, which are integers. The linear
//! relaxation may use two thirds of a large bin; no packing does.
//!
//! The cuts found so far have a cheapest solution in whole numbers of bins. A relaxation with these
//! numbers as limits, in which each further bin costs a penalty, tests whether the items fit. If
//! they do not, its dual prices are a cut that the solution violates (Benders 1962), and the next
//! solution is tested.

use crate::columns::{Generation, Settings, restart, run};
use crate::problem::Problem;
use crate::relaxed::Limits;

/// The penalty for a bin beyond its limit is up to this multiple of its cost. It has to be high:
/// items that exceed the capacity by a thousandth of a bin cost only a thousandth of the penalty.
const PENALTY_FACTOR: u64 = 4_096;

/// Maximum number of solutions tested with splittable items.
const SPLITTABLE_ROUNDS: usize = 24;

/// Maximum number of solutions tested with columns.
const COLUMN_ROUNDS: usize = 6;

/// Adds cuts from the relaxation in which items may be split. It is quick, and nearly as tight as
/// columns if bins hold many items.
pub(crate) fn add_splittable_cuts(
    problem: &Problem<'_>,
    items: &[usize],
    state: &mut Generation,
    settings: Settings<'_>,
) {
    let unlimited = (state.limited_bound, state.center.clone());
    for _ in 0..SPLITTABLE_ROUNDS {
        let Some(limits) = limits(problem, items, state) else { break };
        restart(problem, items, Settings { limits: Some(&limits), ..settings }, state);
        if state.solution.counts.as_ref() == Some(&limits.counts) {
            break;
        }
    }
    (state.limited_bound, state.center) = unlimited;
}

/// Adds cuts from the relaxation over columns. The columns left are closer to whole bins than those
/// of a relaxation without limits.
pub(crate) fn add_column_cuts(
    problem: &Problem<'_>,
    items: &[usize],
    mut state: Generation,
    settings: Settings<'_>,
) -> Generation {
    for _ in 0..COLUMN_ROUNDS {
        let Some(limits) = limits(problem, items, &state) else { break };
        let settings = Settings { limits: Some(&limits), ..settings };
        restart(problem, items, settings, &mut state);
        state = run(problem, items, state, settings);
        if state.solution.counts.as_ref() == Some(&limits.counts) {
            break;
        }
    }
    state
}

/// Returns the cheapest numbers of bins, and the highest penalties at which sums of dual prices do
/// not overflow.
fn limits(problem: &Problem<'_>, items: &[usize], state: &Generation) -> Option<Limits> {
    let counts = state.solution.counts.clone()?;
    let fits = items.iter().flat_map(|item| problem.items[*item].fits.iter().flatten());
    let dearest = fits.map(|fit| u128::from(fit.cost)).max().unwrap_or(0);
    let bin = problem.kinds.iter().map(|kind| u128::from(kind.cost)).max().unwrap_or(0).max(1);
    let most = (1_u128 << 62) / (items.len() as u128 + 100);
    let factor =
        (most.saturating_sub(dearest) / bin).min(u128::from(PENALTY_FACTOR)).checked_sub(1)?;
    let factor = u64::try_from(factor).ok().filter(|factor| *factor > 0)?;
    let penalties = problem.kinds.iter().map(|kind| kind.cost.max(1) * factor).collect();
    Some(Limits { counts, penalties })
}
