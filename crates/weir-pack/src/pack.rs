//! Whole bins: from the relaxation by taking what it is surest of, and then a few bins anew.

use crate::columns::{Generated, Rounds, follow, generate, greedy, start};
use crate::draws::Draws;
use crate::problem::{Bin, Effort, Kind, PackError, Packing, Phase, Problem, Progress, cost};
use crate::refill::Exchanges;
use crate::{benders, exact, mix, refill};

/// A bin of which the relaxation takes so much is taken.
const SURE: f64 = 0.7;

/// So many bins are packed anew at once, at most.
const FEW: usize = 8;

/// With more items than this, some phases are long.
const MANY: usize = 200;

/// So many items are relaxed anew at once, at most.
const SOME: usize = 70;

/// The packing that costs least, as far as it was looked for, and what none costs less than.
///
/// # Errors
///
/// [`PackError`] if an item fits no bin, or if costs are too large to be added up.
///
/// # Panics
///
/// If a bill is less than what a bin and its items cost, so that there is no bound; and if items do
/// not have a fit for each kind, or fits not as many measures as rooms.
pub fn solve(problem: &Problem<'_>, effort: &Effort) -> Result<Packing, PackError> {
    solve_watched(problem, effort, &|_| {})
}

/// As [`solve`], and says how far it has come: the phases in their order, each as often as there is
/// something new. What is said changes nothing of the answer.
///
/// # Errors
///
/// As [`solve`].
///
/// # Panics
///
/// As [`solve`].
pub fn solve_watched(
    problem: &Problem<'_>,
    effort: &Effort,
    watch: &dyn Fn(Progress),
) -> Result<Packing, PackError> {
    let all: Vec<usize> = (0..problem.items.len()).collect();
    let columns = alone(problem, &all)?;
    if all.is_empty() {
        return Ok(Packing { bins: Vec::new(), cost: 0, bound: 0 });
    }
    let total = columns.iter().try_fold(0_u64, |sum, bin| sum.checked_add(bin.cost));
    let Some(total) = total.filter(|total| *total <= 1 << 56) else {
        return Err(PackError::TooLarge);
    };
    // What cannot be is not relaxed either: an item of more than a bin is no part of two.
    let items = problem.possible(total);
    // A kind that costs more is in no packing, whatever it costs: numbers stay small.
    let kind = |kind: &Kind| Kind { cost: kind.cost.min(total), room: kind.room.clone() };
    let kinds = problem.kinds.iter().map(kind).collect();
    let problem = &Problem { kinds, items, bill: problem.bill };
    if all.len() <= effort.split
        && let Some(bins) = exact::pack(problem, &all)
    {
        let cost = cost(&bins);
        return Ok(Packing { cost, bound: cost, bins: sorted(bins) });
    }
    // A first packing at prices by what an item takes of its cheapest bin.
    let prices = shares(problem);
    let first = greedy(problem, &all, &prices, &vec![None; problem.kinds.len()]);
    let mut best = columns.clone();
    let mut columns = columns;
    columns.extend(first.iter().cloned());
    keep(&mut best, first);
    let own = Solve { problem, all: &all, effort, watch };
    let bound = own.phases(&mut best, columns);
    assert!(bound <= cost(&best), "a packing that costs less than the bound");
    Ok(Packing { cost: cost(&best), bound, bins: sorted(best) })
}

/// The phases of one answer.
struct Solve<'p> {
    problem: &'p Problem<'p>,
    all: &'p [usize],
    effort: &'p Effort,
    watch: &'p dyn Fn(Progress),
}

impl Solve<'_> {
    /// Phase after phase, until the packing is within the gap; returns the bound. What is quick and
    /// mostly enough comes first.
    fn phases(&self, best: &mut Vec<Bin>, columns: Vec<Bin>) -> u64 {
        self.say(Phase::Filling, best, 0, 0);
        let rounds = Rounds { enough: cost(best), ..self.rounds(&|_, _| {}) };
        let mut found = start(self.problem, self.all, columns, rounds);
        self.refill(best, found.bound, Exchanges::Quick);
        found.columns.extend(best.iter().cloned());
        self.say(Phase::Relaxing, best, found.columns.len(), found.bound);
        let rounds = Rounds { enough: self.enough(best), ..rounds };
        benders::cut(self.problem, self.all, &mut found, rounds);
        if let (Some(counts), false) = (&found.whole.counts, self.is_enough(best, found.bound))
            && let Some(bins) = refill::within(self.problem, self.all, counts, Exchanges::Quick)
        {
            keep(best, bins);
        }
        if !self.is_enough(best, found.bound) {
            found = self.bound(best, found);
        }
        // Without numbers that are too few nothing was relaxed yet.
        if !self.is_enough(best, found.bound) && found.relaxed.is_none() {
            let say = |columns, bound| self.say(Phase::Relaxing, best, columns, bound);
            found = follow(self.problem, self.all, found, Rounds { say: &say, ..rounds });
        }
        let bound = found.bound;
        if !is_within(best, bound, self.effort.gap) {
            self.refill(best, bound, Exchanges::Long);
        }
        if !self.is_enough(best, bound) {
            self.round(best, &found, bound);
            self.anew(best, &found, bound);
        }
        bound
    }

    /// All items into other mixes of kinds.
    fn refill(&self, best: &mut Vec<Bin>, low: u64, exchanges: Exchanges) {
        if let Some(other) = refill::cheaper(self.problem, self.all, best, low, exchanges) {
            *best = other;
        }
    }

    /// Whole bins from the relaxation.
    fn round(&self, best: &mut Vec<Bin>, found: &Generated, bound: u64) {
        let Some(relaxed) = &found.relaxed else { return };
        self.say(Phase::Rounding, best, found.columns.len(), bound);
        keep(best, greedy(self.problem, self.all, &relaxed.prices, &found.rooms));
        if !is_within(best, bound, self.effort.gap) {
            keep(best, dive(self.problem, self.all, found));
        }
        if let Some(other) = mix::anew(self.problem, best).filter(|_| best.len() <= FEW) {
            keep(best, other);
        }
    }

    /// A few bins anew, over and over.
    fn anew(&self, best: &mut Vec<Bin>, found: &Generated, bound: u64) {
        let Some(relaxed) = &found.relaxed else { return };
        let mut anew = Anew { problem: self.problem, prices: &relaxed.prices, draws: Draws::new() };
        for _ in 0..self.effort.tries {
            if is_within(best, bound, self.effort.gap) || best.len() < 2 {
                break;
            }
            self.say(Phase::Anew, best, found.columns.len(), bound);
            anew.attempt(best);
        }
    }

    /// A better bound than what is proven, and whole bins of what proves it.
    fn bound(&self, best: &mut Vec<Bin>, found: Generated) -> Generated {
        let say = |columns, bound| self.say(Phase::Bounding, best, columns, bound);
        let rounds = self.rounds(&say);
        let rounds = Rounds { most: rounds.most / 2, enough: self.enough(best), ..rounds };
        let found = benders::bins(self.problem, self.all, found, rounds);
        if !self.is_enough(best, found.bound) && found.relaxed.is_some() {
            keep(best, dive(self.problem, self.all, &found));
        }
        found
    }

    /// Whether long phases are not worth their time.
    fn is_enough(&self, best: &[Bin], bound: u64) -> bool {
        let Effort { gap, long, .. } = *self.effort;
        is_within(best, bound, if self.all.len() > MANY { gap.max(long) } else { gap })
    }

    /// A bound of so much is enough.
    fn enough(&self, best: &[Bin]) -> u64 {
        let least = u128::from(cost(best)) * 1_000_000;
        let least = least.div_ceil(1_000_000 + u128::from(self.effort.gap));
        u64::try_from(least).unwrap_or(u64::MAX)
    }

    fn rounds<'w>(&self, say: &'w dyn Fn(usize, u64)) -> Rounds<'w> {
        let Effort { rounds, nodes, gap, .. } = *self.effort;
        Rounds { most: rounds, nodes, gap: gap / 2, enough: u64::MAX, limits: None, say }
    }

    fn say(&self, phase: Phase, best: &[Bin], columns: usize, bound: u64) {
        (self.watch)(Progress { phase, columns, cost: cost(best), bound });
    }
}

/// Whether bins cost no more than so much above the bound, in millionths of it.
fn is_within(best: &[Bin], bound: u64, gap: u64) -> bool {
    let left = u128::from(cost(best).saturating_sub(bound)) * 1_000_000;
    left <= u128::from(bound) * u128::from(gap)
}

fn sorted(mut bins: Vec<Bin>) -> Vec<Bin> {
    bins.sort_by_key(|bin| (std::cmp::Reverse(bin.cost), bin.items.clone()));
    bins
}

fn keep(best: &mut Vec<Bin>, other: Vec<Bin>) {
    if cost(&other) < cost(best) {
        *best = other;
    }
}

/// Each item in the cheapest bin of its own.
fn alone(problem: &Problem<'_>, items: &[usize]) -> Result<Vec<Bin>, PackError> {
    let bins: Vec<Option<Bin>> = items.iter().map(|item| problem.cheapest(&[*item])).collect();
    let without = items.iter().zip(&bins).filter(|(_, bin)| bin.is_none());
    let without: Vec<usize> = without.map(|(item, _)| *item).collect();
    if without.is_empty() {
        Ok(bins.into_iter().flatten().collect())
    } else {
        Err(PackError::NoBin { items: without })
    }
}

/// What an item costs if it pays for the part of a bin that it takes, where that is least.
fn shares(problem: &Problem<'_>) -> Vec<u64> {
    let of = |item: usize| {
        let kinds = (0..problem.kinds.len()).filter_map(|kind| {
            let fit = problem.fit(kind, item)?;
            let own = &problem.kinds[kind];
            let part = |(takes, room): (&u64, &u64)| {
                u128::from(own.cost) * u128::from(*takes) / u128::from((*room).max(1))
            };
            let share = fit.takes.iter().zip(&own.room).map(part).max().unwrap_or(0);
            Some(share + u128::from(fit.cost))
        });
        u64::try_from(kinds.min().unwrap_or(0)).unwrap_or(u64::MAX)
    };
    (0..problem.items.len()).map(of).collect()
}

/// Takes the bins that the relaxation is surest of, and relaxes what is left.
fn dive(problem: &Problem<'_>, items: &[usize], found: &Generated) -> Vec<Bin> {
    let mut left = items.to_vec();
    let mut bins: Vec<Bin> = Vec::new();
    let mut columns = found.columns.clone();
    let mut parts = found.relaxed.as_ref().map_or(Vec::new(), |own| own.parts.clone());
    while !left.is_empty() {
        let mut order: Vec<usize> = (0..columns.len().min(parts.len())).collect();
        order.sort_by(|one, other| parts[*other].total_cmp(&parts[*one]).then(one.cmp(other)));
        let mut taken = 0;
        for at in order {
            let bin = &columns[at];
            let is_whole = bin.items.iter().all(|item| left.binary_search(item).is_ok());
            if bin.items.is_empty() || !is_whole || (taken > 0 && parts[at] < SURE) {
                continue;
            }
            left.retain(|item| bin.items.binary_search(item).is_err());
            bins.push(problem.cheapest(&bin.items).unwrap_or_else(|| bin.clone()));
            taken += 1;
        }
        if taken == 0 {
            break;
        }
        if left.is_empty() {
            return bins;
        }
        columns = within(problem, &columns, &left);
        let rounds =
            Rounds { most: 4, nodes: 0, gap: 0, enough: u64::MAX, limits: None, say: &|_, _| {} };
        let next = generate(problem, &left, columns, rounds);
        columns = next.columns;
        parts = next.relaxed.map_or(Vec::new(), |own| own.parts);
    }
    bins.extend(left.iter().filter_map(|item| problem.cheapest(&[*item])));
    bins
}

/// What of the columns concerns the items that are left, and each of those alone.
fn within(problem: &Problem<'_>, columns: &[Bin], left: &[usize]) -> Vec<Bin> {
    let mut seen = std::collections::HashSet::new();
    let own = columns.iter().filter_map(|bin| {
        let items = bin.items.iter().copied().filter(|item| left.binary_search(item).is_ok());
        let items: Vec<usize> = items.collect();
        let is_new = items.len() > 1 && seen.insert((bin.kind, items.clone()));
        is_new.then(|| problem.bin(bin.kind, items))
    });
    let mut all: Vec<Bin> = own.collect();
    all.extend(left.iter().filter_map(|item| problem.cheapest(&[*item])));
    all
}

/// Packs a few bins anew.
struct Anew<'p> {
    problem: &'p Problem<'p>,
    prices: &'p [u64],
    draws: Draws,
}

impl Anew<'_> {
    /// One attempt: the bins that waste most are tried more often.
    fn attempt(&mut self, best: &mut Vec<Bin>) {
        let waste = |bin: &Bin| {
            let worth: u64 = bin.items.iter().map(|item| self.prices[*item]).sum();
            i128::from(bin.cost) - i128::from(worth)
        };
        best.sort_by_key(|bin| (std::cmp::Reverse(waste(bin)), bin.items.clone()));
        let some = self.choose(best);
        let now: Vec<Bin> = some.iter().map(|at| best[*at].clone()).collect();
        let of = self.problem;
        let other = if now.iter().map(|bin| bin.items.len()).sum::<usize>() <= exact::FEW {
            let mut items: Vec<usize> = now.iter().flat_map(|bin| bin.items.clone()).collect();
            items.sort_unstable();
            exact::pack(of, &items)
        } else {
            let mixed = if now.len() < 6 { mix::anew(of, &now) } else { None };
            mixed.or_else(|| self.relaxed(&now))
        };
        if let Some(other) = other.filter(|other| cost(other) < cost(&now)) {
            some.iter().rev().for_each(|at| {
                best.swap_remove(*at);
            });
            best.extend(other);
        }
    }

    /// Two to ten bins, of each two draws the one that wastes more.
    fn choose(&mut self, best: &[Bin]) -> Vec<usize> {
        let count = 2 + self.draws.draw(9).min(best.len() - 2);
        let mut some: Vec<usize> = Vec::new();
        for _ in 0..4 * count {
            let at = self.draws.draw(best.len()).min(self.draws.draw(best.len()));
            if !some.contains(&at) && some.len() < count {
                some.push(at);
            }
        }
        some.sort_unstable();
        some
    }

    /// The items of a few bins as a problem of its own.
    fn relaxed(&self, now: &[Bin]) -> Option<Vec<Bin>> {
        let mut pool: Vec<usize> = now.iter().flat_map(|bin| bin.items.iter().copied()).collect();
        if pool.len() > SOME {
            return None;
        }
        pool.sort_unstable();
        let mut columns = within(self.problem, now, &pool);
        columns.extend(now.iter().cloned());
        let rounds =
            Rounds { most: 10, nodes: 0, gap: 0, enough: u64::MAX, limits: None, say: &|_, _| {} };
        let found = generate(self.problem, &pool, columns, rounds);
        let mut other = dive(self.problem, &pool, &found);
        if let Some(relaxed) = &found.relaxed {
            keep(&mut other, greedy(self.problem, &pool, &relaxed.prices, &found.rooms));
        }
        (cost(&other) < cost(now)).then_some(other)
    }
}
