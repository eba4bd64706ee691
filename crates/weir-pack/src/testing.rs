//! Random problems, packings and dual prices for the tests.

use crate::lcg::Lcg;
use crate::pricing::{self, Knapsack};
use crate::problem::{Bin, Fit, Item, Kind, Problem, cost};

pub(crate) fn below(rng: &mut Lcg, below: u64) -> u64 {
    rng.below(usize::try_from(below).unwrap()) as u64
}

/// Returns kinds, some without capacity in a dimension, and items of all sizes.
pub(crate) fn random(rng: &mut Lcg, count: usize) -> (Vec<Kind>, Vec<Item>) {
    let kind = |at: u64, rng: &mut Lcg| Kind {
        cost: (50 + below(rng, 60)) << at,
        capacity: (0..3).map(|_| (below(rng, 10).min(1) * 40) << at).collect(),
    };
    let kinds: Vec<Kind> = (0..3).map(|at| kind(at, rng)).collect();
    let item = |rng: &mut Lcg| Item {
        fits: kinds
            .iter()
            .map(|kind| {
                let most = below(rng, 160) + 1;
                let demand: Vec<u64> = (0..3).map(|_| below(rng, most)).collect();
                let fits =
                    demand.iter().zip(&kind.capacity).all(|(demand, capacity)| demand <= capacity);
                fits.then(|| Fit { cost: below(rng, 30), demand })
            })
            .collect(),
    };
    let mut items = Vec::new();
    while items.len() < count {
        let own = item(rng);
        if own.fits.iter().any(Option::is_some) {
            items.push(own);
        }
    }
    (kinds, items)
}

/// Returns a random packing: each item joins a bin with enough capacity or gets its own.
pub(crate) fn packing(problem: &Problem<'_>, rng: &mut Lcg) -> Vec<Bin> {
    let mut bins: Vec<(usize, Vec<usize>)> = Vec::new();
    for item in 0..problem.items.len() {
        let is_in = |(kind, items): &(usize, Vec<usize>)| {
            problem.fits(*kind, &[items.as_slice(), &[item]].concat())
        };
        let places: Vec<usize> = (0..bins.len()).filter(|at| is_in(&bins[*at])).collect();
        if !places.is_empty() && rng.below(8) > 0 {
            bins[places[rng.below(places.len())]].1.push(item);
        } else {
            let fits = (0..problem.kinds.len()).filter(|kind| problem.fits(*kind, &[item]));
            let kinds: Vec<usize> = fits.collect();
            bins.push((kinds[rng.below(kinds.len())], vec![item]));
        }
    }
    bins.into_iter().map(|(kind, items)| problem.bin(kind, items)).collect()
}

pub(crate) fn bin_cost<'p>(
    kinds: &'p [Kind],
    items: &'p [Item],
) -> impl Fn(usize, &[usize]) -> u64 + use<'p> {
    |kind, some| {
        let fits = some.iter().map(|item| items[*item].fits[kind].as_ref().unwrap().cost);
        kinds[kind].cost + fits.sum::<u64>()
    }
}

/// Returns random prices below `most` and the upper bounds of a bin's value by kind at them,
/// from a search with a random node limit.
pub(crate) fn dual(problem: &Problem<'_>, rng: &mut Lcg, most: u64) -> (Vec<u64>, Vec<u64>) {
    let all: Vec<usize> = (0..problem.items.len()).collect();
    let prices: Vec<u64> = all.iter().map(|_| below(rng, most)).collect();
    let nodes = below(rng, 3) * 50;
    let most = |kind: usize| {
        let knapsack =
            Knapsack { items: &all, prices: &prices, capacity_prices: None, node_limit: nodes };
        pricing::solve(problem, kind, knapsack).upper_bound
    };
    let most = (0..problem.kinds.len()).map(most).collect();
    (prices, most)
}

/// Returns the number of bins of each kind, and the items' costs apart from them.
pub(crate) fn counts_and_costs(problem: &Problem<'_>, bins: &[Bin]) -> (Vec<u64>, u64) {
    let mut counts = vec![0; problem.kinds.len()];
    bins.iter().for_each(|bin| counts[bin.kind] += 1);
    let empty = bins.iter().map(|bin| problem.kinds[bin.kind].cost);
    (counts, cost(bins) - empty.sum::<u64>())
}
