//! A few items into the cheapest bins of all: every set of them, and every way to split it.

use crate::problem::{Bin, Problem};

/// So many items are split in every way: 3^12 pairs of sets.
pub(crate) const FEW: usize = 12;

/// The cheapest packing of `items`, of which there are [`FEW`] at most; `None` if there is none,
/// or if there are more.
pub(crate) fn pack(problem: &Problem<'_>, items: &[usize]) -> Option<Vec<Bin>> {
    if items.len() > FEW {
        return None;
    }
    let of = |set: usize| -> Vec<usize> {
        (0..items.len()).filter(|at| set >> at & 1 == 1).map(|at| items[at]).collect()
    };
    let sets = 1_usize << items.len();
    // The cheapest bin for a set, and the cheapest bins: what they cost, and the set in the first.
    let mut one: Vec<Option<Bin>> = vec![None; sets];
    let mut all: Vec<Option<(u64, usize)>> = vec![None; sets];
    all[0] = Some((0, 0));
    for set in 1..sets {
        one[set] = problem.cheapest(&of(set));
        let first = set & set.wrapping_neg();
        let mut part = set;
        while part > 0 {
            let is_first = part & first > 0;
            if let (true, Some(bin), Some((rest, _))) = (is_first, &one[part], all[set ^ part]) {
                let cost = bin.cost.saturating_add(rest);
                if all[set].is_none_or(|(least, _)| cost < least) {
                    all[set] = Some((cost, part));
                }
            }
            part = (part - 1) & set;
        }
    }
    let (mut left, mut bins) = (sets - 1, Vec::new());
    while left > 0 {
        let (_, part) = all[left]?;
        bins.extend(one[part].clone());
        left ^= part;
    }
    Some(bins)
}
