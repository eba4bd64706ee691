//! Items into a few bins anew: mixes of kinds that cost less than what there is, the cheapest
//! first, until the items fit one.
//!
//! Where a bin holds dozens of items, there is nearly always a way to fill a mix whose rooms are
//! large enough in sum; so what matters is the mix, and simple rules fill it.

use crate::problem::{Bin, Problem, WHOLE, cost, part};

/// So many bins a mix has at most beyond those that there are.
const MORE: usize = 2;

/// So many mixes are looked at, and so many of them filled.
const LOOKED_AT: usize = 20_000;
const FILLED: usize = 160;

/// Bins for the items of some bins that cost less together, if such are found.
pub(crate) fn anew(problem: &Problem<'_>, some: &[Bin]) -> Option<Vec<Bin>> {
    let mut items: Vec<usize> = some.iter().flat_map(|bin| bin.items.iter().copied()).collect();
    items.sort_unstable();
    let old = cost(some);
    let mut mixes = Mixes {
        problem,
        least: least(problem, &items),
        below: old,
        most: some.len() + MORE,
        found: Vec::new(),
        looked: 0,
    };
    let base = cheapest(problem, &items);
    mixes.extend(&mut Vec::new(), 0, base);
    let mut found = mixes.found;
    found.sort();
    for (_, mix) in found.into_iter().take(FILLED) {
        for rule in Rule::ALL {
            let Some(filled) = fill(problem, &mix, &items, rule) else { continue };
            let bins: Vec<Bin> = filled.into_iter().filter(|bin| !bin.items.is_empty()).collect();
            if cost(&bins) < old {
                return Some(bins);
            }
        }
    }
    None
}

/// What items take at least, by measure and kind: of the kinds that a mix has, the least counts.
fn least(problem: &Problem<'_>, items: &[usize]) -> Vec<Vec<u64>> {
    let of = |kind: usize| {
        let mut sum = vec![0_u64; problem.kinds[kind].room.len()];
        for item in items {
            // What cannot be in this kind takes nothing of it.
            let Some(fit) = problem.fit(kind, *item) else { continue };
            sum.iter_mut().zip(&fit.takes).for_each(|(sum, own)| *sum = sum.saturating_add(*own));
        }
        sum
    };
    (0..problem.kinds.len()).map(of).collect()
}

/// What items cost beside their bins, each where it is cheapest.
fn cheapest(problem: &Problem<'_>, items: &[usize]) -> u64 {
    let of = |item: &usize| {
        let fits = problem.items[*item].fits.iter().flatten();
        fits.map(|fit| fit.cost).min().unwrap_or(0)
    };
    items.iter().map(of).fold(0, u64::saturating_add)
}

/// Mixes of kinds whose rooms are large enough in sum.
struct Mixes<'p> {
    problem: &'p Problem<'p>,
    least: Vec<Vec<u64>>,
    below: u64,
    most: usize,
    found: Vec<(u64, Vec<usize>)>,
    looked: usize,
}

impl Mixes<'_> {
    /// Extends a mix that costs so much by kinds from `first` on.
    fn extend(&mut self, mix: &mut Vec<usize>, first: usize, cost: u64) {
        for kind in first..self.problem.kinds.len() {
            let cost = cost.saturating_add(self.problem.kinds[kind].cost);
            if cost >= self.below || mix.len() >= self.most || self.looked >= LOOKED_AT {
                continue;
            }
            self.looked += 1;
            mix.push(kind);
            if self.is_enough(mix) {
                // What has more rooms costs more.
                self.found.push((cost, mix.clone()));
            } else {
                self.extend(mix, kind, cost);
            }
            mix.pop();
        }
    }

    /// Whether the items may fit: their parts of the rooms, where they take least.
    fn is_enough(&self, mix: &[usize]) -> bool {
        let measures = self.problem.kinds[mix[0]].room.len();
        (0..measures).all(|measure| {
            let room = |kind: &usize| self.problem.kinds[*kind].room[measure];
            let rooms: u64 = mix.iter().map(room).fold(0, u64::saturating_add);
            let least = mix.iter().map(|kind| self.least[*kind][measure]).min();
            least.is_some_and(|least| least <= rooms)
        })
    }
}

/// Where an item goes of the bins that have room for it.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// Where most is left in the scarcest measure.
    Even,
    /// Where least is left.
    Tight,
    /// The first.
    First,
}

impl Rule {
    const ALL: [Self; 3] = [Self::Even, Self::Tight, Self::First];
}

/// Fills the bins of a mix with all items, the largest first; `None` if one has no room.
fn fill(problem: &Problem<'_>, mix: &[usize], items: &[usize], rule: Rule) -> Option<Vec<Bin>> {
    let mut used: Vec<Vec<u64>> =
        mix.iter().map(|kind| vec![0; problem.kinds[*kind].room.len()]).collect();
    let mut own: Vec<Vec<usize>> = vec![Vec::new(); mix.len()];
    let size = |item: usize| {
        let of = |kind: &usize| {
            let fit = problem.fit(*kind, item)?;
            let rooms = &problem.kinds[*kind].room;
            let parts = fit.takes.iter().zip(rooms).map(|(takes, room)| part(*takes, *room));
            Some(parts.clone().max().unwrap_or(0) * 4 + parts.sum::<u64>())
        };
        mix.iter().filter_map(of).min()
    };
    let mut order: Vec<(u64, usize)> = Vec::with_capacity(items.len());
    for item in items {
        order.push((size(*item)?, *item));
    }
    order.sort_by_key(|(size, item)| (std::cmp::Reverse(*size), *item));
    for (_, item) in order {
        let score = |at: usize| {
            let kind = mix[at];
            let fit = problem.fit(kind, item)?;
            if !problem.has_room(kind, item, &used[at]) {
                return None;
            }
            let rooms = problem.kinds[kind].room.iter().zip(&used[at]).zip(&fit.takes);
            let fullest = rooms.map(|((room, used), takes)| part(used + takes, *room)).max()?;
            let score = match rule {
                Rule::Even => fullest,
                Rule::Tight => WHOLE.saturating_sub(fullest),
                Rule::First => 0,
            };
            // Where an item costs more, only if there is no other way.
            Some((fit.cost, score, at))
        };
        let (.., at) = (0..mix.len()).filter_map(score).min()?;
        problem.add(mix[at], item, &mut used[at]);
        own[at].push(item);
    }
    Some(mix.iter().zip(own).map(|(kind, items)| problem.bin(*kind, items)).collect())
}
