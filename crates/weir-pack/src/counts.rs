//! How many bins of each kind there have to be: an integer program with a variable for each kind.
//!
//! Whatever the items are said to be worth, the bins of a packing hold all of that. So each set of
//! prices, with what no bin of a kind is worth more than at them, makes a row that holds for every
//! packing: as many bins, each counted by its worth, as come to the worth of all items. Rows come
//! from each measure (an item is worth what it takes), from large items (of those above half of a
//! room, a bin holds one), and from the prices of the relaxations (Benders 1962). One row alone says
//! that there are two thirds of a large bin; all of them, in whole numbers, say more.

use crate::problem::{Kind, Problem};
use crate::relaxed;
use std::collections::BTreeSet;

/// So many nodes the search has.
const NODES: u64 = 60_000;

/// So many bins of one kind, and as many of a second, stand for one of another at most.
const FOR_ONE: u64 = 64;

/// Items are large if a room holds at most so many of them.
const LARGE: u64 = 4;

/// So many sets of kinds that some items are confined to are looked at, whichever come first.
const CONFINED: usize = 8;

/// Multipliers of rows are counted in so many parts of one.
const PARTS: f64 = 1_099_511_627_776.0;

/// What holds of the bins of every packing: each counted by its weight, and what items cost beside
/// their bins, come to `least`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    /// By kind.
    pub(crate) weights: Vec<u64>,
    /// Whether what items cost counts.
    pub(crate) has_costs: bool,
    pub(crate) least: u64,
}

impl Row {
    /// Of bins only, in the largest unit that all weights are multiples of.
    fn of_bins(mut weights: Vec<u64>, least: u64) -> Self {
        let unit = weights.iter().fold(0, |unit, weight| common(unit, *weight)).max(1);
        weights.iter_mut().for_each(|weight| *weight /= unit);
        Self { weights, has_costs: false, least: least.div_ceil(unit) }
    }

    /// Whether so many bins are too few by this row.
    fn is_broken(&self, whole: &Whole) -> bool {
        let Some(counts) = &whole.counts else { return false };
        let pairs = self.weights.iter().zip(counts);
        let sum: u128 = pairs.map(|(weight, count)| u128::from(*weight) * u128::from(*count)).sum();
        let costs = if self.has_costs { u128::from(whole.costs) } else { 0 };
        sum + costs < u128::from(self.least)
    }
}

/// The largest whole number that both are multiples of.
fn common(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common(other, one % other) }
}

/// Numbers of bins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Whole {
    /// No packing costs less.
    pub(crate) cost: u64,
    /// By kind, the numbers that cost that, or where the search ended early the best that it found;
    /// `None` if there are none below what is enough.
    pub(crate) counts: Option<Vec<u64>>,
    /// What the items cost with them at least.
    costs: u64,
}

/// The rows of a problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    /// Those that were not broken yet.
    rest: Vec<Row>,
    /// What the items cost at least beside their bins.
    base: u64,
}

impl Rows {
    /// What the sizes of the items say.
    pub(crate) fn new(problem: &Problem<'_>, items: &[usize]) -> Self {
        let costs = items.iter().map(|item| {
            let fits = problem.items[*item].fits.iter().flatten();
            fits.map(|fit| fit.cost).min().unwrap_or(0)
        });
        let base = costs.fold(0, u64::saturating_add);
        let mut rows = BTreeSet::new();
        for confined in confined(problem, items) {
            let measures = problem.kinds.first().map_or(0, |kind| kind.room.len());
            for measure in 0..measures {
                rows.extend(of_measure(problem, items, &confined, measure));
            }
        }
        Self { rows: Vec::new(), rest: rows.into_iter().collect(), base }
    }

    /// What prices say at which no bin of a kind is worth more than `most`. Whether it is new: that
    /// the numbers as they are now are too few.
    pub(crate) fn add(
        &mut self,
        prices: impl Iterator<Item = u64>,
        most: &[u64],
        now: &Whole,
    ) -> bool {
        let sum = prices.fold(0_u128, |sum, price| sum + u128::from(price));
        // To say less than is so is right.
        let least = u64::try_from(sum).unwrap_or(u64::MAX);
        let row = Row { weights: most.to_vec(), has_costs: true, least };
        let is_new = row.is_broken(now);
        if is_new {
            self.rows.push(row);
        }
        is_new
    }

    /// What numbers of bins cost at least, as far as that is less than `enough`.
    pub(crate) fn least(&mut self, kinds: &[Kind], items: usize, enough: u64) -> Whole {
        loop {
            let known = self.rows.len();
            let whole = search(kinds, &self.rows, self.base, items as u64, enough);
            let (broken, rest) = std::mem::take(&mut self.rest)
                .into_iter()
                .partition::<Vec<Row>, _>(|row| row.is_broken(&whole));
            self.rest = rest;
            if whole.counts.is_none() && whole.cost < enough {
                // No numbers were found to test rows by.
                self.rows.append(&mut self.rest);
            }
            self.rows.extend(broken);
            if self.rows.len() == known {
                return whole;
            }
        }
    }
}

/// All items, and for some sets of kinds those that are in no other.
fn confined(problem: &Problem<'_>, items: &[usize]) -> Vec<(Vec<bool>, Vec<usize>)> {
    let of = |item: usize| -> Vec<bool> {
        problem.items[item].fits.iter().map(Option::is_some).collect()
    };
    let mut sets: BTreeSet<Vec<bool>> = items.iter().map(|item| of(*item)).collect();
    while sets.len() > CONFINED {
        sets.pop_last();
    }
    sets.insert(vec![true; problem.kinds.len()]);
    let with = |set: Vec<bool>| {
        let is_in = |item: &&usize| of(**item).iter().zip(&set).all(|(own, all)| !own || *all);
        let own = items.iter().filter(is_in).copied().collect();
        (set, own)
    };
    sets.into_iter().map(with).collect()
}

/// The rows of one measure, for items that are in some kinds only.
fn of_measure(
    problem: &Problem<'_>,
    items: &[usize],
    (kinds, own): &(Vec<bool>, Vec<usize>),
    measure: usize,
) -> Vec<Row> {
    let room = |kind: usize| problem.kinds[kind].room[measure];
    let takes = |item: usize| {
        let fits = problem.items[item].fits.iter().flatten();
        fits.map(|fit| fit.takes[measure]).min().unwrap_or(0)
    };
    let mut sizes: Vec<u64> = own.iter().map(|item| takes(*item)).collect();
    sizes.sort_unstable();
    let sum: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    let some = || (0..kinds.len()).filter(|kind| kinds[*kind]);
    let weights = |of: &dyn Fn(usize) -> u64| -> Vec<u64> {
        (0..kinds.len()).map(|kind| if kinds[kind] { of(kind) } else { 0 }).collect()
    };
    let mut rows = Vec::new();
    // A row that one bin of any kind comes up to says only that there is a bin.
    let says_more = |row: &Row| some().any(|kind| row.weights[kind] < row.least);
    if let Ok(sum) = u64::try_from(sum) {
        rows.push(Row::of_bins(weights(&room), sum));
    }
    // And all that take something: a bin holds so many of the smallest.
    let mut parts = BTreeSet::from([0]);
    for kind in some() {
        parts.extend((1..=LARGE).map(|held| room(kind) / (held + 1)));
    }
    for part in parts {
        let large = &sizes[sizes.partition_point(|size| *size <= part)..];
        // The smallest of them are those of which a room holds most.
        let held = |kind: usize| {
            let mut left = room(kind);
            let fits = |size: &&u64| {
                let is_in = **size <= left;
                left = left.saturating_sub(**size);
                is_in
            };
            large.iter().take_while(fits).count() as u64
        };
        rows.push(Row::of_bins(weights(&held), large.len() as u64));
    }
    rows.retain(|row| says_more(row) && !items.is_empty());
    rows
}

/// The kinds that are not as good as some others for the same price, by all rows; ascending by cost.
fn useful(kinds: &[Kind], rows: &[Row]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|kind| (kinds[*kind].cost, *kind));
    let mut kept: Vec<usize> = Vec::new();
    let times = |kind: usize, left: u64| match kinds[kind].cost {
        0 => FOR_ONE,
        cost => (left / cost).min(FOR_ONE),
    };
    for own in order {
        let is_covered = |one: usize, count: u64, other: usize, rest: u64| {
            rows.iter().all(|row| {
                let of =
                    |kind: usize, count: u64| u128::from(row.weights[kind]) * u128::from(count);
                of(one, count) + of(other, rest) >= u128::from(row.weights[own])
            })
        };
        let is_as_good = kept.iter().any(|one| {
            (1..=times(*one, kinds[own].cost)).any(|count| {
                let left = kinds[own].cost - kinds[*one].cost * count;
                kept.iter().any(|other| is_covered(*one, count, *other, times(*other, left)))
            })
        });
        if !is_as_good {
            kept.push(own);
        }
    }
    kept
}

/// Rows as one, each so many times.
#[derive(Debug, Clone, Default)]
struct Sum {
    /// By kind.
    weights: Vec<u128>,
    /// Of one that items cost.
    costs: u128,
    least: u128,
}

impl Sum {
    /// The rows times the multipliers of their relaxation, with which one row says most.
    fn new(kinds: &[Kind], rows: &[Row], base: u64) -> Self {
        let mut sum = Self { weights: vec![0; kinds.len()], ..Self::default() };
        for (row, times) in rows.iter().zip(relaxed::multipliers(kinds, rows, base)) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "any number that is not negative is right"
            )]
            let times = (times.max(0.0) * PARTS) as u128;
            let mut next = sum.clone();
            let add = |sum: &mut u128, own: u64| {
                let more = times.checked_mul(u128::from(own))?;
                *sum = sum.checked_add(more)?;
                Some(())
            };
            let mut all = next.weights.iter_mut().zip(&row.weights);
            let is_small = all.all(|(sum, own)| add(sum, *own).is_some())
                && add(&mut next.costs, u64::from(row.has_costs)).is_some()
                && add(&mut next.least, row.least).is_some();
            if is_small {
                sum = next;
            }
        }
        // What is left is multiplied by costs, which are less than 2^56. Weights are rounded up.
        let largest = sum.weights.iter().chain([&sum.costs, &sum.least]).max();
        let shift =
            (128 - largest.map_or(128, |largest| largest.leading_zeros())).saturating_sub(70);
        if shift > 0 {
            let all = sum.weights.iter_mut().chain([&mut sum.costs]);
            all.filter(|weight| **weight > 0).for_each(|weight| *weight = (*weight >> shift) + 1);
            sum.least >>= shift;
        }
        sum
    }
}

/// A search over the numbers of bins of each kind.
struct Search<'r> {
    rows: &'r [Row],
    /// Cost of a bin and its kind; what brings least for its cost comes first.
    kinds: Vec<(u64, usize)>,
    sum: Sum,
    /// By place: cost and weight of what brings most for its cost, from there on.
    after: Vec<(u64, u128)>,
    /// There are no more of a kind.
    most: u64,
    nodes: u64,
    now: Vec<u64>,
    best: Whole,
    /// The least that something costs that was not looked at.
    open: u64,
}

/// What numbers of bins cost at least by all rows, if that is less than `enough`.
fn search(kinds: &[Kind], rows: &[Row], base: u64, items: u64, enough: u64) -> Whole {
    let sum = Sum::new(kinds, rows, base);
    let order = useful(kinds, rows).into_iter().map(|kind| (kinds[kind].cost, kind));
    let mut order: Vec<(u64, usize)> = order.filter(|(cost, _)| *cost < enough).collect();
    order.sort_by(|one, other| {
        // What costs nothing and brings nothing has no ratio, and stands before all that has one.
        let has_ratio = |(cost, kind): &(u64, usize)| *cost > 0 || sum.weights[*kind] > 0;
        let of = |cost: u64, kind: usize| u128::from(cost) * sum.weights[kind];
        let ratio = of(other.0, one.1).cmp(&of(one.0, other.1));
        has_ratio(one).cmp(&has_ratio(other)).then(ratio).then(one.1.cmp(&other.1))
    });
    let mut after = vec![(1, sum.costs)];
    for (cost, kind) in order.iter().rev() {
        let (best, weight) = after[after.len() - 1];
        let own = sum.weights[*kind];
        let is_more = own * u128::from(best) > weight * u128::from(*cost);
        after.push(if is_more { (*cost, own) } else { (best, weight) });
    }
    after.reverse();
    let left: Vec<u128> = rows
        .iter()
        .map(|row| {
            u128::from(row.least).saturating_sub(if row.has_costs { u128::from(base) } else { 0 })
        })
        .collect();
    let rest = sum.least.saturating_sub(sum.costs.saturating_mul(u128::from(base)));
    let mut search = Search {
        rows,
        now: vec![0; kinds.len()],
        kinds: order,
        sum,
        after,
        most: items.saturating_mul(2 * FOR_ONE),
        nodes: NODES,
        best: Whole { cost: enough, counts: None, costs: base },
        open: u64::MAX,
    };
    search.follow(0, base, &left, rest, base);
    let Search { mut best, open, .. } = search;
    best.cost = best.cost.min(open);
    best
}

impl Search<'_> {
    /// What it costs at least to come up to what is left of the sum, with the kinds from a place on.
    fn bound(&self, place: usize, cost: u64, rest: u128) -> u64 {
        let (dear, weight) = self.after[place];
        if rest == 0 {
            return cost;
        }
        if weight == 0 {
            return u64::MAX;
        }
        let more = (rest * u128::from(dear)).div_ceil(weight);
        cost.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// Decides how many there are of the kind at a place.
    fn follow(&mut self, place: usize, cost: u64, left: &[u128], rest: u128, base: u64) {
        let bound = self.bound(place, cost, rest);
        if bound >= self.best.cost {
            return;
        }
        if self.nodes == 0 {
            self.open = self.open.min(bound);
            return;
        }
        self.nodes -= 1;
        let Some((own, kind)) = self.kinds.get(place).copied() else { return };
        if place + 1 == self.kinds.len() {
            self.close(cost, left, base);
            return;
        }
        let (mut cost, mut left, mut rest) = (cost, left.to_vec(), rest);
        for count in 0..=self.most {
            // More of what brings less than others costs more.
            let bound = self.bound(place, cost, rest);
            if bound >= self.best.cost {
                break;
            }
            if self.nodes == 0 {
                self.open = self.open.min(bound);
                break;
            }
            self.now[kind] = count;
            self.follow(place + 1, cost, &left, rest, base);
            if left.iter().all(|left| *left == 0) {
                break;
            }
            cost = cost.saturating_add(own);
            rest = rest.saturating_sub(self.sum.weights[kind]);
            for (left, row) in left.iter_mut().zip(self.rows) {
                *left = left.saturating_sub(u128::from(row.weights[kind]));
            }
        }
        self.now[kind] = 0;
    }

    /// As many of the last kind as cost least.
    fn close(&mut self, cost: u64, left: &[u128], base: u64) {
        let Some((own, kind)) = self.kinds.last().copied() else { return };
        let mut least = 0_u128;
        for (left, row) in left.iter().zip(self.rows).filter(|(_, row)| !row.has_costs) {
            let weight = u128::from(row.weights[kind]);
            if *left > 0 && weight == 0 {
                return;
            }
            least = least.max(left.div_ceil(weight.max(1)));
        }
        let Ok(least) = u64::try_from(least) else { return };
        // What items cost beyond what they cost at least.
        let beyond = |count: u64| {
            let rows = left.iter().zip(self.rows).filter(|(_, row)| row.has_costs);
            let of = |(left, row): (&u128, &Row)| {
                left.saturating_sub(u128::from(row.weights[kind]) * u128::from(count))
            };
            rows.map(of).max().unwrap_or(0)
        };
        let all =
            |count: u64| u128::from(cost) + u128::from(own) * u128::from(count) + beyond(count);
        // First less and less, then more and more.
        let (mut count, mut most) = (least, self.most.max(least));
        while count < most {
            let middle = count + (most - count) / 2;
            if all(middle + 1) < all(middle) {
                count = middle + 1;
            } else {
                most = middle;
            }
        }
        if let (Ok(sum), Ok(beyond)) = (u64::try_from(all(count)), u64::try_from(beyond(count)))
            && sum < self.best.cost
        {
            let mut counts = self.now.clone();
            counts[kind] = count;
            let costs = base.saturating_add(beyond);
            self.best = Whole { cost: sum, counts: Some(counts), costs };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bin::{self, Look};
    use crate::draws::Draws;
    use crate::problem::{Bin, Fit, Item, cost};

    pub(crate) fn draw(draws: &mut Draws, below: u64) -> u64 {
        draws.draw(usize::try_from(below).unwrap()) as u64
    }

    /// Items of all sizes, and kinds of which one may have no room in a measure.
    pub(crate) fn random(draws: &mut Draws, count: usize) -> (Vec<Kind>, Vec<Item>) {
        let kind = |at: u64, draws: &mut Draws| Kind {
            cost: (50 + draw(draws, 60)) << at,
            room: (0..3).map(|_| (draw(draws, 10).min(1) * 40) << at).collect(),
        };
        let kinds: Vec<Kind> = (0..3).map(|at| kind(at, draws)).collect();
        let item = |draws: &mut Draws| Item {
            fits: kinds
                .iter()
                .map(|kind| {
                    let most = draw(draws, 160) + 1;
                    let takes: Vec<u64> = (0..3).map(|_| draw(draws, most)).collect();
                    let fits = takes.iter().zip(&kind.room).all(|(takes, room)| takes <= room);
                    fits.then(|| Fit { cost: draw(draws, 30), takes })
                })
                .collect(),
        };
        let mut items = Vec::new();
        while items.len() < count {
            let own = item(draws);
            if own.fits.iter().any(Option::is_some) {
                items.push(own);
            }
        }
        (kinds, items)
    }

    /// A packing, whatever comes: each item goes where it has room, or into a bin of its own.
    pub(crate) fn packing(problem: &Problem<'_>, draws: &mut Draws) -> Vec<Bin> {
        let mut bins: Vec<(usize, Vec<usize>)> = Vec::new();
        for item in 0..problem.items.len() {
            let is_in = |(kind, items): &(usize, Vec<usize>)| {
                problem.fits(*kind, &[items.as_slice(), &[item]].concat())
            };
            let places: Vec<usize> = (0..bins.len()).filter(|at| is_in(&bins[*at])).collect();
            if !places.is_empty() && draws.draw(8) > 0 {
                bins[places[draws.draw(places.len())]].1.push(item);
            } else {
                let fits = (0..problem.kinds.len()).filter(|kind| problem.fits(*kind, &[item]));
                let kinds: Vec<usize> = fits.collect();
                bins.push((kinds[draws.draw(kinds.len())], vec![item]));
            }
        }
        bins.into_iter().map(|(kind, items)| problem.bin(kind, items)).collect()
    }

    /// What a bin and its items cost.
    pub(crate) fn bill<'p>(
        kinds: &'p [Kind],
        items: &'p [Item],
    ) -> impl Fn(usize, &[usize]) -> u64 + use<'p> {
        |kind, some| {
            let fits = some.iter().map(|item| items[*item].fits[kind].as_ref().unwrap().cost);
            kinds[kind].cost + fits.sum::<u64>()
        }
    }

    /// Some prices below `most`, and what no bin of a kind is worth more than at them, by a search
    /// that may end early.
    pub(crate) fn dual(
        problem: &Problem<'_>,
        draws: &mut Draws,
        most: u64,
    ) -> (Vec<u64>, Vec<u64>) {
        let all: Vec<usize> = (0..problem.items.len()).collect();
        let prices: Vec<u64> = all.iter().map(|_| draw(draws, most)).collect();
        let nodes = draw(draws, 3) * 50;
        let most = |kind: usize| {
            let look = Look { items: &all, prices: &prices, rooms: None, nodes };
            bin::best(problem, kind, look).most
        };
        let most = (0..problem.kinds.len()).map(most).collect();
        (prices, most)
    }

    /// How many bins of each kind there are, and what their items cost beside them.
    pub(crate) fn whole(problem: &Problem<'_>, bins: &[Bin]) -> (Vec<u64>, u64) {
        let mut counts = vec![0; problem.kinds.len()];
        bins.iter().for_each(|bin| counts[bin.kind] += 1);
        let empty = bins.iter().map(|bin| problem.kinds[bin.kind].cost);
        (counts, cost(bins) - empty.sum::<u64>())
    }

    #[test]
    fn rows_hold_for_every_packing() {
        let mut draws = Draws::new();
        let (mut of_bins, mut of_prices) = (0, 0);
        for round in 0..150 {
            let (kinds, items) = random(&mut draws, 9);
            let bill = bill(&kinds, &items);
            let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
            let all: Vec<usize> = (0..items.len()).collect();
            let mut rows = Rows::new(&problem, &all);
            of_bins += rows.rest.len();
            let nothing = Whole { cost: 0, counts: Some(vec![0; 3]), costs: 0 };
            for _ in 0..4 {
                let (prices, most) = dual(&problem, &mut draws, 90);
                of_prices += usize::from(rows.add(prices.iter().copied(), &most, &nothing));
            }
            let known: Vec<Row> = rows.rest.iter().chain(&rows.rows).cloned().collect();
            let least = rows.least(&kinds, items.len(), u64::MAX >> 8).cost;
            for _ in 0..200 {
                let bins = packing(&problem, &mut draws);
                let (counts, costs) = whole(&problem, &bins);
                let whole = Whole { cost: 0, counts: Some(counts), costs };
                for row in &known {
                    assert!(!row.is_broken(&whole), "round {round}: {row:?} for {bins:?}");
                }
                assert!(least <= cost(&bins), "round {round}: {least} for {bins:?}");
            }
        }
        // Both kinds of row were there to be broken.
        assert!(of_bins > 1_000 && of_prices > 400, "{of_bins} {of_prices}");
    }

    /// What all numbers up to `most` of each kind cost at least.
    fn of_all(kinds: &[Kind], rows: &[Row], base: u64, most: u64) -> u64 {
        let mut least = u64::MAX;
        for one in 0..=most {
            for two in 0..=most {
                for three in 0..=most {
                    let counts = [one, two, three];
                    let of = |row: &Row| {
                        let pairs = row.weights.iter().zip(&counts);
                        row.least.saturating_sub(pairs.map(|(weight, n)| weight * n).sum())
                    };
                    if rows.iter().any(|row| !row.has_costs && of(row) > 0) {
                        continue;
                    }
                    let costs = rows.iter().filter(|row| row.has_costs).map(of).max();
                    let bins = kinds.iter().zip(&counts).map(|(kind, n)| kind.cost * n);
                    least = least.min(bins.sum::<u64>() + costs.unwrap_or(0).max(base));
                }
            }
        }
        least
    }

    #[test]
    fn the_numbers_that_cost_least_are_those_of_all_numbers() {
        let mut draws = Draws::new();
        let mut found = 0;
        for round in 0..400 {
            let kinds: Vec<Kind> =
                (0..3).map(|_| Kind { cost: draw(&mut draws, 40), room: Vec::new() }).collect();
            let row = |draws: &mut Draws| {
                let has_costs = draw(draws, 3) == 0;
                // Of each row some kind is enough, so that there is an answer in the box.
                let mut weights: Vec<u64> = (0..3).map(|_| draw(draws, 9)).collect();
                weights[0] += 1;
                let times = if has_costs { 20 } else { 1 };
                weights.iter_mut().for_each(|weight| *weight *= times);
                Row { weights, has_costs, least: draw(draws, 13) * times }
            };
            let rows: Vec<Row> = (0..1 + draws.draw(6)).map(|_| row(&mut draws)).collect();
            let base = draw(&mut draws, 30);
            let expected = of_all(&kinds, &rows, base, 12);
            let whole = search(&kinds, &rows, base, 100, 1_000_000);
            assert_eq!(whole.cost, expected, "round {round}: {kinds:?} {rows:?} {base}");
            assert!(rows.iter().all(|row| !row.is_broken(&whole)), "round {round}: {whole:?}");
            found += usize::from(whole.counts.is_some());
            // Nothing is looked for that is not less than enough.
            let enough = search(&kinds, &rows, base, 100, expected);
            assert_eq!((enough.cost, enough.counts), (expected, None), "round {round}");
        }
        assert_eq!(found, 400);
    }

    /// Kinds that cost nothing and bring nothing have no place among ratios: to sort them by ratio
    /// alone is no order, and panics with more than twenty.
    #[test]
    fn kinds_that_cost_nothing_are_among_many() {
        let mut draws = Draws::new();
        for round in 0..100 {
            let count = 24 + draws.draw(30);
            let kind = |at: usize, draws: &mut Draws| Kind {
                cost: if at % 9 == round % 9 { 0 } else { 1 + draw(draws, 1_000) },
                room: Vec::new(),
            };
            let kinds: Vec<Kind> = (0..count).map(|at| kind(at, &mut draws)).collect();
            let row = |own: usize, draws: &mut Draws| {
                // Each kind is the best of one row, so that none stands for another.
                let mut weights: Vec<u64> =
                    kinds.iter().map(|kind| draw(draws, 1 + kind.cost.min(5))).collect();
                weights[own] += 50;
                Row { weights, has_costs: false, least: 40 + draw(draws, 20) }
            };
            let rows: Vec<Row> = (0..count).map(|own| row(own, &mut draws)).collect();
            let whole = search(&kinds, &rows, 3, 100, 1 << 40);
            // Two of each come up to every row, whether the search found any that do or not.
            let two: u64 = kinds.iter().map(|kind| 2 * kind.cost).sum();
            assert!(whole.cost <= 3 + two, "round {round}: {whole:?}");
        }
    }

    #[test]
    fn numbers_that_are_large_or_nothing_are_no_matter() {
        let kinds = vec![
            Kind { cost: 1 << 54, room: vec![1 << 60, 0] },
            Kind { cost: 0, room: vec![1, 0] },
        ];
        let fit = |takes: u64| Some(Fit { cost: 1 << 50, takes: vec![takes, 0] });
        let items = vec![
            Item { fits: vec![fit(1 << 60), None] },
            Item { fits: vec![fit(1 << 59), fit(1)] },
        ];
        let problem = Problem { kinds: kinds.clone(), items, bill: &|_, _| u64::MAX };
        let mut rows = Rows::new(&problem, &[0, 1]);
        let whole = rows.least(&kinds, 2, 1 << 56);
        // One large bin for the item that is in no other, beside what both cost.
        assert_eq!(whole.cost, (1 << 54) + (1 << 51));
        rows.add([u64::MAX, u64::MAX].into_iter(), &[u64::MAX, u64::MAX], &whole);
        assert!(rows.least(&kinds, 2, 1 << 56).cost >= whole.cost);
    }
}
