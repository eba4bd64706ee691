//! Optimal packings of a few items, by dynamic programming over all subsets.

use crate::problem::{Bin, Problem};

/// Maximum number of items: 3^12 pairs of a set and a subset are examined.
pub(crate) const MAX_ITEMS: usize = 12;

/// Returns the cheapest packing of `items`. `None` if there is none, or if there are more than
/// [`MAX_ITEMS`].
pub(crate) fn pack(problem: &Problem<'_>, items: &[usize]) -> Option<Vec<Bin>> {
    if items.len() > MAX_ITEMS {
        return None;
    }
    let sets = 1_usize << items.len();
    // By set: its cheapest bin, and the cost of its cheapest packing with one of that packing's
    // sets.
    let mut one: Vec<Option<Bin>> = vec![None; sets];
    let mut all: Vec<Option<(u64, usize)>> = vec![None; sets];
    all[0] = Some((0, 0));
    for set in 1..sets {
        let members = (0..items.len()).filter(|at| set >> at & 1 == 1).map(|at| items[at]);
        one[set] = problem.cheapest(&members.collect::<Vec<usize>>());
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
