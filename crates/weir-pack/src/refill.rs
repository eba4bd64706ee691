//! All items anew, into another mix of kinds.
//!
//! What the relaxation takes is what costs least by the least part: small bins by the dozen, of
//! which each wastes a little. A mix of fewer and larger bins often costs nearly the same, and is far
//! easier to fill. So mixes are compared by how much room they leave for each bin, and the easiest
//! of those that cost no more than so much are filled: items go where they fit, or are too much by
//! least, and then are exchanged as long as nothing gets worse, until nothing is too much. There are
//! so many exchanges that change nothing that the search does not stand still; to allow for worse
//! ones, as annealing does, brought less.

use crate::draws::Draws;
use crate::problem::{Bin, Problem, WHOLE, cost, part};

/// The range of what a mix may cost, between what is proven and what is known, is halved so often.
const HALVINGS: usize = 12;

/// So many mixes are filled at one cost.
const FILLED: usize = 3;

/// How many exchanges are looked at to fill one mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchanges {
    /// As many as fill most of what can be filled.
    Quick,
    /// As many as fill some of the rest.
    Long,
}

impl Exchanges {
    const fn count(self) -> usize {
        match self {
            Self::Quick => 1_000_000,
            Self::Long => 6_000_000,
        }
    }
}

/// So many mixes are compared at one cost.
const COMPARED: usize = 2_000_000;

/// So many kinds a mix has at most.
const KINDS: usize = 3;

/// Of so many exchanges one is of items that are not too much where they are.
const ELSEWHERE: usize = 8;

/// Of so many exchanges one is of an item with nothing.
const ALONE: usize = 6;

/// Bins for all items that cost less than `best`, if such are found; less than `low` is not looked
/// for.
pub(crate) fn cheaper(
    problem: &Problem<'_>,
    items: &[usize],
    best: &[Bin],
    mut low: u64,
    exchanges: Exchanges,
) -> Option<Vec<Bin>> {
    let mut high = cost(best);
    if !is_small(problem, items) {
        return None;
    }
    let kinds = all_kinds(problem, items);
    let mut found = None;
    for _ in 0..HALVINGS {
        if low >= high {
            break;
        }
        let middle = low + (high - low) / 2;
        let mut filled = easiest(problem, items, &kinds, low, middle).into_iter();
        let filled = filled
            .find_map(|mix| fill(problem, items, &mix, exchanges).filter(|bins| cost(bins) < high));
        match filled {
            Some(bins) => {
                high = cost(&bins);
                found = Some(bins);
            }
            None => low = middle,
        }
    }
    found
}

/// All items in so many bins of each kind; `None` if they are not found to fit.
pub(crate) fn within(
    problem: &Problem<'_>,
    items: &[usize],
    counts: &[u64],
    exchanges: Exchanges,
) -> Option<Vec<Bin>> {
    let all: u64 = counts.iter().sum();
    if !is_small(problem, items) || all > items.len() as u64 {
        return None;
    }
    let bins = counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    fill(problem, items, &Mix { ease: 0, bins }, exchanges)
}

/// Whether all items together take no more than numbers hold, so that a bin may have too much.
fn is_small(problem: &Problem<'_>, items: &[usize]) -> bool {
    (0..problem.kinds.len()).all(|kind| {
        let fits = items.iter().filter_map(|item| problem.fit(kind, *item));
        let mut sums = vec![0_u64; problem.kinds[kind].room.len()];
        fits.flat_map(|fit| fit.takes.iter().enumerate()).all(|(measure, takes)| {
            let sum = sums[measure].checked_add(*takes);
            sums[measure] = sum.unwrap_or_default();
            sum.is_some()
        })
    })
}

/// A mix: of each of a few kinds so many.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mix {
    /// The room that is left for each bin in the scarcest measure, in parts of a mean item.
    ease: u128,
    bins: Vec<(usize, u64)>,
}

/// The easiest mixes of those that cost `low` or more, and `high` at most.
fn easiest(
    problem: &Problem<'_>,
    items: &[usize],
    kinds: &[Kinds],
    low: u64,
    high: u64,
) -> Vec<Mix> {
    let mut some = Easiest { problem, items, low, high, found: Vec::new(), compared: 0 };
    for own in kinds {
        some.count(own, &mut vec![0; own.kinds.len()], own.kinds.len() - 1, own.base);
    }
    some.found
}

/// All sets of kinds that a mix may have and that are enough for all items.
fn all_kinds(problem: &Problem<'_>, items: &[usize]) -> Vec<Kinds> {
    let mut order: Vec<usize> = (0..problem.kinds.len()).collect();
    order.sort_by_key(|kind| (problem.kinds[*kind].cost, *kind));
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..KINDS.min(order.len()) {
        let longer = sets.iter().flat_map(|set| {
            let next =
                order.iter().position(|kind| set.last() == Some(kind)).map_or(0, |at| at + 1);
            order[next..].iter().map(|kind| [set.as_slice(), &[*kind]].concat())
        });
        sets = longer.collect();
    }
    sets.into_iter().filter_map(|set| Kinds::new(problem, items, set)).collect()
}

/// What those items take that are in no cheaper kind of a mix.
#[derive(Debug, Clone)]
struct Group {
    /// In every measure, each in the kind where it takes least.
    takes: Vec<u128>,
    count: u128,
}

/// Kinds of a mix, the cheapest first.
struct Kinds {
    kinds: Vec<usize>,
    /// By kind: the items that are in it or in those after it, and in none before.
    groups: Vec<Group>,
    /// What the items cost at least beside their bins.
    base: u64,
}

impl Kinds {
    /// What of the items is in which kinds; `None` if one is in none.
    fn new(problem: &Problem<'_>, items: &[usize], kinds: Vec<usize>) -> Option<Self> {
        let measures = problem.kinds[kinds[0]].room.len();
        let none = Group { takes: vec![0; measures], count: 0 };
        let mut groups = vec![none; kinds.len()];
        let mut base = 0_u64;
        for item in items {
            let fits = kinds.iter().map(|kind| problem.fit(*kind, *item));
            let first = fits.clone().position(|fit| fit.is_some())?;
            let fits = fits.flatten();
            base = base.saturating_add(fits.clone().map(|fit| fit.cost).min().unwrap_or(0));
            for (measure, sum) in groups[first].takes.iter_mut().enumerate() {
                let takes = fits.clone().map(|fit| u128::from(fit.takes[measure]));
                *sum += takes.min().unwrap_or(0);
            }
            groups[first].count += 1;
        }
        // What is in a kind may be in those after it, and leaves room to who is in those only.
        for at in (1..groups.len()).rev() {
            let (before, after) = groups.split_at_mut(at);
            let (own, next) = (&mut before[at - 1], &after[0]);
            own.count += next.count;
            own.takes.iter_mut().zip(&next.takes).for_each(|(own, next)| *own += next);
        }
        Some(Self { kinds, groups, base })
    }
}

/// The easiest mixes so far, the easiest first.
struct Easiest<'p> {
    problem: &'p Problem<'p>,
    items: &'p [usize],
    low: u64,
    high: u64,
    found: Vec<Mix>,
    compared: usize,
}

impl Easiest<'_> {
    /// Compares the mixes with so many of the kinds after `place`; of the first there are as many as
    /// it takes. Whether it takes none.
    fn count(&mut self, kinds: &Kinds, counts: &mut Vec<u64>, place: usize, cost: u64) -> bool {
        let own = self.problem.kinds[kinds.kinds[place]].cost;
        if place == 0 {
            self.compared += 1;
            let Some(least) = self.least(kinds, counts) else { return false };
            // More bins than items are of no use.
            if least > self.items.len() as u64 {
                return false;
            }
            counts[0] = least;
            let cost = cost.saturating_add(own.saturating_mul(least));
            if self.low <= cost && cost <= self.high {
                self.keep(kinds, counts);
            }
            return least == 0;
        }
        let mut is_enough = false;
        for count in 0..=self.items.len() as u64 {
            let cost = cost.saturating_add(own.saturating_mul(count));
            if is_enough || cost > self.high || self.compared > COMPARED {
                break;
            }
            counts[place] = count;
            is_enough = self.count(kinds, counts, place - 1, cost);
        }
        counts[place] = 0;
        false
    }

    /// How many of the first kind are needed beside the others; `None` if no number is enough.
    fn least(&self, kinds: &Kinds, counts: &[u64]) -> Option<u64> {
        let own = &self.problem.kinds[kinds.kinds[0]].room;
        let mut least = 0;
        for (measure, takes) in kinds.groups[0].takes.iter().enumerate() {
            let rest = takes.saturating_sub(self.room(kinds, counts, 1, measure));
            if rest > 0 && own[measure] == 0 {
                return None;
            }
            least = least.max(rest.div_ceil(u128::from(own[measure].max(1))));
        }
        u64::try_from(least).ok()
    }

    /// The room in the kinds from `first` on.
    fn room(&self, kinds: &Kinds, counts: &[u64], first: usize, measure: usize) -> u128 {
        let pairs = kinds.kinds.iter().zip(counts).skip(first);
        let room = |kind: &usize| u128::from(self.problem.kinds[*kind].room[measure]);
        pairs.map(|(kind, count)| room(kind) * u128::from(*count)).sum()
    }

    /// Keeps a mix if it is one of the easiest.
    fn keep(&mut self, kinds: &Kinds, counts: &[u64]) {
        let mut ease = u128::MAX;
        for (first, group) in kinds.groups.iter().enumerate() {
            let bins: u64 = counts.iter().skip(first).sum();
            for (measure, takes) in group.takes.iter().enumerate().filter(|(_, takes)| **takes > 0)
            {
                let room = self.room(kinds, counts, first, measure);
                let Some(left) = room.checked_sub(*takes) else { return };
                let whole = u128::from(WHOLE) * group.count;
                ease = ease.min(left.saturating_mul(whole) / (takes * u128::from(bins.max(1))));
            }
        }
        let pairs = kinds.kinds.iter().zip(counts).filter(|(_, count)| **count > 0);
        let bins: Vec<(usize, u64)> = pairs.map(|(kind, count)| (*kind, *count)).collect();
        let at = self.found.partition_point(|mix| mix.ease >= ease);
        if at < FILLED && !self.found.iter().any(|mix| mix.bins == bins) {
            self.found.insert(at, Mix { ease, bins });
            self.found.truncate(FILLED);
        }
    }
}

/// The bins of a mix with all items; `None` if they are not found to fit.
fn fill(
    problem: &Problem<'_>,
    items: &[usize],
    mix: &Mix,
    exchanges: Exchanges,
) -> Option<Vec<Bin>> {
    let kinds = mix.bins.iter().flat_map(|(kind, count)| (0..*count).map(|_| *kind));
    let mut filled = Filled::new(problem, kinds.collect());
    filled.put(items)?;
    filled.exchange(items, exchanges.count()).then(|| filled.bins())
}

/// Bins that may hold too much.
struct Filled<'p> {
    problem: &'p Problem<'p>,
    kinds: Vec<usize>,
    /// By bin and measure.
    used: Vec<Vec<u64>>,
    /// By bin: its items.
    items: Vec<Vec<usize>>,
    /// By item of the problem: where it is.
    places: Vec<usize>,
    /// By bin: how much is too much, in parts of its rooms.
    over: Vec<u64>,
    /// The bins with too much, and by bin where it is among them.
    full: Vec<usize>,
    place_in_full: Vec<usize>,
}

impl<'p> Filled<'p> {
    fn new(problem: &'p Problem<'p>, kinds: Vec<usize>) -> Self {
        let count = kinds.len();
        Self {
            problem,
            used: kinds.iter().map(|kind| vec![0; problem.kinds[*kind].room.len()]).collect(),
            items: vec![Vec::new(); count],
            places: vec![usize::MAX; problem.items.len()],
            over: vec![0; count],
            full: Vec::new(),
            place_in_full: vec![usize::MAX; count],
            kinds,
        }
    }

    /// Puts items where they fit best, the largest first; `None` if one can be in no bin.
    fn put(&mut self, items: &[usize]) -> Option<()> {
        let size = |item: usize| {
            let parts = self.kinds.iter().filter_map(|kind| {
                let room = &self.problem.kinds[*kind].room;
                let takes = &self.problem.fit(*kind, item)?.takes;
                takes.iter().zip(room).map(|(takes, room)| part(*takes, *room)).max()
            });
            parts.min()
        };
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            order.push((std::cmp::Reverse(size(*item)?), *item));
        }
        order.sort_unstable();
        for (_, item) in order {
            let score = |bin: usize| {
                let over = self.with(bin, Some(item), None)?;
                Some((over - self.over[bin], self.fullest(bin, item), bin))
            };
            let (.., bin) = (0..self.kinds.len()).filter_map(score).min()?;
            self.change(bin, Some(item), None);
        }
        Some(())
    }

    /// How full the fullest room of a bin is with one more item.
    fn fullest(&self, bin: usize, item: usize) -> u64 {
        let room = &self.problem.kinds[self.kinds[bin]].room;
        let takes = self.problem.fit(self.kinds[bin], item).map_or(&[][..], |fit| &fit.takes);
        let parts = self.used[bin].iter().zip(takes).zip(room);
        parts.map(|((used, takes), room)| part(used + takes, *room)).max().unwrap_or(0)
    }

    /// How much would be too much in a bin with one item more and one less; `None` if the one can
    /// not be in it.
    fn with(&self, bin: usize, more: Option<usize>, less: Option<usize>) -> Option<u64> {
        let kind = self.kinds[bin];
        let takes = |item: Option<usize>| match item {
            Some(item) => self.problem.fit(kind, item).map(|fit| Some(fit.takes.as_slice())),
            None => Some(None),
        };
        let (more, less) = (takes(more)?, takes(less)?);
        let mut over = 0;
        for (measure, (used, room)) in
            self.used[bin].iter().zip(&self.problem.kinds[kind].room).enumerate()
        {
            let used = used + more.map_or(0, |takes| takes[measure]);
            let used = used - less.map_or(0, |takes| takes[measure]);
            if used > *room {
                over += part(used - room, *room).max(1);
            }
        }
        Some(over)
    }

    /// Puts an item into a bin and takes one out.
    fn change(&mut self, bin: usize, more: Option<usize>, less: Option<usize>) {
        let kind = self.kinds[bin];
        if let Some(fit) = less.and_then(|item| self.problem.fit(kind, item)) {
            self.used[bin].iter_mut().zip(&fit.takes).for_each(|(used, takes)| *used -= takes);
            self.items[bin].retain(|item| Some(*item) != less);
        }
        if let Some(item) = more {
            self.problem.add(kind, item, &mut self.used[bin]);
            self.items[bin].push(item);
            self.places[item] = bin;
        }
        let over = self.with(bin, None, None).unwrap_or(0);
        match (self.over[bin] > 0, over > 0) {
            (false, true) => {
                self.place_in_full[bin] = self.full.len();
                self.full.push(bin);
            }
            (true, false) => {
                let place = self.place_in_full[bin];
                self.full.swap_remove(place);
                if let Some(moved) = self.full.get(place) {
                    self.place_in_full[*moved] = place;
                }
            }
            _ => {}
        }
        self.over[bin] = over;
    }

    /// Exchanges items until no bin has too much; whether it came to that.
    fn exchange(&mut self, items: &[usize], most: usize) -> bool {
        let mut draws = Draws::new();
        for _ in 0..most {
            if self.full.is_empty() {
                return true;
            }
            let bin = match draws.draw(ELSEWHERE) {
                0 => draws.draw(self.kinds.len()),
                _ => self.full[draws.draw(self.full.len())],
            };
            if self.items[bin].is_empty() {
                continue;
            }
            let item = self.items[bin][draws.draw(self.items[bin].len())];
            let (other, back) = match draws.draw(ALONE) {
                0 => (draws.draw(self.kinds.len()), None),
                _ => {
                    let back = items[draws.draw(items.len())];
                    (self.places[back], Some(back))
                }
            };
            if other == bin {
                continue;
            }
            let Some(own) = self.with(bin, back, Some(item)) else { continue };
            let Some(others) = self.with(other, Some(item), back) else { continue };
            if own + others <= self.over[bin] + self.over[other] {
                self.change(bin, back, Some(item));
                self.change(other, Some(item), back);
            }
        }
        self.full.is_empty()
    }

    fn bins(self) -> Vec<Bin> {
        let pairs = self.kinds.into_iter().zip(self.items).filter(|(_, items)| !items.is_empty());
        let bin = |(kind, items): (usize, Vec<usize>)| {
            let cheapest = self.problem.cheapest(&items);
            cheapest.unwrap_or_else(|| self.problem.bin(kind, items))
        };
        pairs.map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Fit, Item, Kind};

    /// Rooms cut into items, so that it is known how few bins hold all of them.
    fn cut(kinds: &[Kind], bins: usize, draws: &mut Draws) -> Vec<Item> {
        let mut items = Vec::new();
        for _ in 0..bins {
            let mut left = kinds[1].room.clone();
            for at in (0..8).rev() {
                let part = |left: &mut u64| {
                    let most = usize::try_from(*left).unwrap();
                    let takes = if at == 0 { most } else { draws.draw(most / 2 + 1) };
                    *left -= takes as u64;
                    takes as u64
                };
                let takes: Vec<u64> = left.iter_mut().map(part).collect();
                let fits = |kind: &Kind| {
                    let is_in = takes.iter().zip(&kind.room).all(|(takes, room)| takes <= room);
                    is_in.then(|| Fit { cost: 1, takes: takes.clone() })
                };
                items.push(Item { fits: kinds.iter().map(fits).collect() });
            }
        }
        items
    }

    #[test]
    fn a_mix_with_hardly_any_room_to_spare_is_filled() {
        let kind = |n: u64, more: u64| Kind { cost: 1_000 * n, room: vec![200 * n + more; 2] };
        // The dearer kind has one part in two hundred more than it is filled with.
        let kinds = vec![kind(1, 0), kind(4, 0)];
        let mut draws = Draws::new();
        let items = cut(&kinds, 10, &mut draws);
        let kinds = vec![kind(1, 0), kind(4, 4)];
        let bill = |kind: usize, some: &[usize]| kinds[kind].cost + some.len() as u64;
        let problem = Problem { kinds: kinds.clone(), items, bill: &bill };
        let all: Vec<usize> = (0..problem.items.len()).collect();
        let best: Vec<Bin> = all.iter().map(|item| problem.cheapest(&[*item]).unwrap()).collect();
        let bins = cheaper(&problem, &all, &best, 0, Exchanges::Quick).unwrap();
        assert!(bins.iter().all(|bin| problem.fits(bin.kind, &bin.items)));
        let mut seen: Vec<usize> = bins.iter().flat_map(|bin| bin.items.iter().copied()).collect();
        seen.sort_unstable();
        assert_eq!(seen, all);
        let cost: u64 = bins.iter().map(|bin| bin.cost).sum();
        assert!(cost <= 40_080, "{cost}");
        // With one part too little in all there is no mix, and numbers that are too large are left
        // alone.
        let sum = |measure: usize| {
            let takes =
                problem.items.iter().map(|item| item.fits[1].as_ref().unwrap().takes[measure]);
            takes.sum::<u64>()
        };
        let few = vec![
            Kind { cost: 1 << 40, room: kinds[0].room.clone() },
            Kind { cost: 4_000, room: (0..2).map(|at| sum(at).div_ceil(10) - 1).collect() },
        ];
        let bill = |kind: usize, some: &[usize]| few[kind].cost + some.len() as u64;
        let tight = Problem { kinds: few.clone(), items: problem.items.clone(), bill: &bill };
        let eleven = vec![Bin { kind: 1, items: Vec::new(), cost: 4_000 }; 11];
        assert_eq!(cheaper(&tight, &all, &eleven, 0, Exchanges::Quick), None);
        let fit = Fit { cost: 0, takes: vec![1 << 63; 2] };
        let item = Item { fits: vec![Some(fit.clone()), Some(fit)] };
        let problem = Problem { items: vec![item; 2], ..problem };
        assert_eq!(cheaper(&problem, &[0, 1], &best, 0, Exchanges::Quick), None);
    }
}
