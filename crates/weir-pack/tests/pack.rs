//! Small packings compared with enumeration, and large ones with their lower bound.

use std::cell::RefCell;
use weir_pack::{
    Bin, Effort, Fit, Item, Kind, PackError, Phase, Problem, Progress, solve, solve_watched,
};
use weir_random::Rng;

fn linear<'a>(kinds: &'a [Kind], items: &'a [Item]) -> impl Fn(usize, &[usize]) -> u64 + use<'a> {
    |kind, some| {
        let own = some.iter().map(|at| items[*at].fits[kind].as_ref().map_or(0, |fit| fit.cost));
        kinds[kind].cost + own.sum::<u64>()
    }
}

/// Returns kinds of which the larger are slightly cheaper per unit of capacity, and items of all sizes.
fn random(rng: &mut Rng, items: u64, dimensions: usize, largest: u64) -> (Vec<Kind>, Vec<Item>) {
    let kinds: Vec<Kind> = (0..3_u64)
        .map(|at| Kind {
            cost: 1_000 * (1 << at) - 100 * at + rng.within(0, 49),
            capacity: (0..dimensions).map(|_| (60 + rng.within(0, 39)) << at).collect(),
        })
        .collect();
    let item = |rng: &mut Rng| Item {
        fits: (0..3)
            .map(|kind| {
                let demand = (0..dimensions).map(|_| rng.within(0, largest - 1)).collect();
                (kind > 0 || rng.within(0, 3) > 0)
                    .then_some(Fit { cost: rng.within(0, 29), demand })
            })
            .collect(),
    };
    let items = (0..items).map(|_| item(rng)).collect();
    (kinds, items)
}

fn check(kinds: &[Kind], items: &[Item], bins: &[Bin]) {
    let mut seen: Vec<usize> = bins.iter().flat_map(|bin| bin.items.iter().copied()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..items.len()).collect::<Vec<_>>(), "each item is in one bin");
    for bin in bins {
        for (dimension, capacity) in kinds[bin.kind].capacity.iter().enumerate() {
            let fits = bin.items.iter().map(|at| items[*at].fits[bin.kind].as_ref());
            let used = fits.map(|fit| fit.map_or(u64::MAX / 999, |fit| fit.demand[dimension]));
            assert!(used.sum::<u64>() <= *capacity, "{bin:?}");
        }
    }
}

/// Returns the cost of an optimal packing, by dynamic programming over all subsets.
fn cheapest(kinds: &[Kind], items: &[Item], bin_cost: &dyn Fn(usize, &[usize]) -> u64) -> u64 {
    let sets = 1_usize << items.len();
    let mut one = vec![u64::MAX; sets];
    for (set, least) in one.iter_mut().enumerate() {
        let some: Vec<usize> = (0..items.len()).filter(|at| set >> at & 1 == 1).collect();
        for (at, kind) in kinds.iter().enumerate() {
            let fits: Option<Vec<&Fit>> =
                some.iter().map(|item| items[*item].fits[at].as_ref()).collect();
            let Some(fits) = fits else { continue };
            if kind.capacity.iter().enumerate().all(|(dimension, capacity): (usize, &u64)| {
                fits.iter().map(|fit| fit.demand[dimension]).sum::<u64>() <= *capacity
            }) {
                *least = (*least).min(bin_cost(at, &some));
            }
        }
    }
    let mut all = vec![u64::MAX; sets];
    all[0] = 0;
    for set in 1..sets {
        let first = set & set.wrapping_neg();
        let mut part = set;
        while part > 0 {
            if part & first > 0 && one[part] < u64::MAX && all[set ^ part] < u64::MAX {
                all[set] = all[set].min(one[part] + all[set ^ part]);
            }
            part = (part - 1) & set;
        }
    }
    all[sets - 1]
}

#[test]
fn small_packings_agree_with_enumeration() {
    let effort = Effort { gap: 0, ..Effort::default() };
    // The phases for large problems are checked as well.
    let large = Effort { gap: 0, large_gap: 0, exact_items: 0, ..Effort::default() };
    let (mut best, mut count) = (0, 0);
    for seed in 0..120 {
        let mut rng = Rng::from_state(seed);
        let size = 2 + rng.within(0, 7);
        let (kinds, items) = random(&mut rng, size, 3, 50);
        let whole = linear(&kinds, &items);
        // In odd rounds sums are rounded up, as vendors round storage.
        let bin_cost = |kind: usize, some: &[usize]| {
            let sum = whole(kind, some);
            if seed % 2 == 0 { sum } else { sum.next_multiple_of(64) }
        };
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
        let least = cheapest(&kinds, &items, &bin_cost);
        let found = solve(&problem, &effort).unwrap();
        assert_eq!((found.cost, found.bound), (least, least), "seed {seed}");
        let found = solve(&problem, &large).unwrap();
        check(&kinds, &items, &found.bins);
        assert_eq!(
            found.cost,
            found.bins.iter().map(|bin| bin_cost(bin.kind, &bin.items)).sum::<u64>()
        );
        assert!(found.bound <= least, "seed {seed}: bound {} above {least}", found.bound);
        assert!(least <= found.cost, "seed {seed}: {} below {least}", found.cost);
        count += 1;
        best += u32::from(found.cost == least);
    }
    println!("{best} of {count} are optimal");
    assert!(best >= count - 1, "{best} of {count} are optimal");
}

/// A bin holds a whole number of equal items, so part of its capacity stays unused.
#[test]
fn equal_items_are_counted() {
    let kind = |cost: u64, one: u64, two: u64| Kind { cost, capacity: vec![one, two] };
    let kinds = vec![kind(1_000, 100, 80), kind(1_900, 200, 160), kind(3_700, 400, 330)];
    let fit = Some(Fit { cost: 3, demand: vec![17, 13] });
    let items = vec![Item { fits: vec![fit; 3] }; 100];
    let bin_cost = linear(&kinds, &items);
    let problem = Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
    let found = solve(&problem, &Effort::default()).unwrap();
    check(&kinds, &items, &found.bins);
    // Bins hold 5, 11 and 23 items: four large ones hold 92, and one medium bin the rest.
    assert_eq!((found.cost, found.bound), (17_000, 17_000));
}

#[test]
fn items_that_fit_no_bin_are_listed() {
    let kinds = vec![Kind { cost: 10, capacity: vec![5] }];
    let item = |demand| Item { fits: vec![Some(Fit { cost: 0, demand: vec![demand] })] };
    let items = vec![item(3), item(6), item(5), Item { fits: vec![None] }];
    let problem = Problem { kinds, items, bin_cost: &|_, _| 10 };
    let error = solve(&problem, &Effort::default()).unwrap_err();
    assert_eq!(error, PackError::NoBin { items: vec![1, 3] });
    let none = Problem { kinds: Vec::new(), items: Vec::new(), bin_cost: &|_, _| 0 };
    assert_eq!(solve(&none, &Effort::default()).unwrap().bins, []);
}

/// A bin holds two items, so 25 of them need 13 bins. The relaxation uses twelve and a half.
#[test]
fn bins_are_whole() {
    let count = 25;
    let kinds = vec![Kind { cost: 1_000, capacity: vec![8] }];
    let item = Item { fits: vec![Some(Fit { cost: 0, demand: vec![3] })] };
    let problem =
        Problem { kinds, items: vec![item; count], bin_cost: &|_, some| 1_000 + some.len() as u64 };
    let found = solve(&problem, &Effort::default()).unwrap();
    assert_eq!(found.cost, 13_025);
    assert!(12_950 < found.bound && found.bound <= 13_025, "{}", found.bound);
}

/// Returns a lower bound from one dimension: each item pays for its share of the cheapest kind.
fn one_measure(kinds: &[Kind], items: &[Item], dimension: usize) -> u64 {
    items
        .iter()
        .map(|item: &Item| {
            let fits = item.fits.iter().zip(kinds);
            let costs = fits.filter_map(|(fit, kind)| {
                let fit = fit.as_ref()?;
                let part = kind.cost * 1_000_000 * fit.demand[dimension] / kind.capacity[dimension];
                Some(part + fit.cost * 1_000_000)
            });
            costs.min().unwrap_or(u64::MAX / 1_000)
        })
        .sum::<u64>()
        / 1_000_000
}

#[test]
fn results_are_deterministic_and_above_their_bound() {
    for (seed, largest) in [(2, 90), (3, 120)] {
        let mut rng = Rng::from_state(seed);
        let (kinds, items) = random(&mut rng, 70, 3, largest);
        let bin_cost = linear(&kinds, &items);
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
        let effort = Effort { gap: 5_000, ..Effort::default() };
        let found = solve(&problem, &effort).unwrap();
        check(&kinds, &items, &found.bins);
        println!("{largest}: {} bins, gap {} millionths", found.bins.len(), found.gap());
        let cost: u64 = found.bins.iter().map(|bin| bin_cost(bin.kind, &bin.items)).sum();
        assert_eq!(found.cost, cost);
        // The gap depends on the kinds; weir-plan tests 1 % for fleets. In general, the bound is
        // at least that of any single dimension.
        let single = (0..3).map(|dimension| one_measure(&kinds, &items, dimension)).max().unwrap();
        println!("{largest}: cost {cost}, bound {}, of one dimension {single}", found.bound);
        assert!(single <= found.bound && found.bound <= cost);
        assert_eq!(solve(&problem, &effort).unwrap(), found);
    }
}

/// Capacities and costs are multiples of the smallest kind's, which the relaxation mixes freely. The
/// bound still has to see that their total is a whole number of the smallest kind.
#[test]
fn the_bound_sees_whole_bins_of_kinds_that_are_multiples() {
    for seed in 0..3 {
        let mut rng = Rng::from_state(seed);
        let kinds: Vec<Kind> = [1, 2, 4]
            .iter()
            .map(|n| Kind { cost: 1_000 * n + n, capacity: vec![100 * n] })
            .collect();
        let item = |rng: &mut Rng| {
            let demand = 5 + rng.within(0, 14);
            Item { fits: vec![Some(Fit { cost: 0, demand: vec![demand] }); 3] }
        };
        let items: Vec<Item> = (0..40).map(|_| item(&mut rng)).collect();
        let bin_cost = linear(&kinds, &items);
        let all: u64 = items.iter().map(|item| item.fits[0].as_ref().unwrap().demand[0]).sum();
        let least = all.div_ceil(100);
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
        let effort = Effort {
            gap: 0,
            large_gap: 0,
            rounds: 8,
            tries: 4,
            node_limit: 20_000,
            exact_items: 12,
        };
        let found = solve(&problem, &effort).unwrap();
        check(&kinds, &items, &found.bins);
        let used: u64 = found.bins.iter().map(|bin| 1 << bin.kind).sum();
        println!("seed {seed}: {used} of {least}, cost {}, bound {}", found.cost, found.bound);
        assert!(found.bound <= found.cost);
        // The unit costs at least 1,001 and cannot be split.
        assert!(found.bound > 1_001 * (least - 1) + 900, "seed {seed}: {}", found.bound);
    }
}

#[test]
fn progress_reports_all_phases_and_does_not_change_the_result() {
    let mut rng = Rng::from_state(2);
    let (kinds, items) = random(&mut rng, 50, 3, 90);
    let bin_cost = linear(&kinds, &items);
    let problem = Problem { kinds: kinds.clone(), items: items.clone(), bin_cost: &bin_cost };
    let effort = Effort { gap: 0, large_gap: 0, rounds: 10, tries: 5, ..Effort::default() };
    let seen: RefCell<Vec<Progress>> = RefCell::default();
    let found = solve_watched(&problem, &effort, &|now| seen.borrow_mut().push(now)).unwrap();
    assert_eq!(solve(&problem, &effort).unwrap(), found);
    let seen = seen.into_inner();
    assert!(seen.windows(2).all(|pair| pair[0].phase <= pair[1].phase), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[1].cost <= pair[0].cost), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0].bound <= pair[1].bound), "{seen:?}");
    for phase in
        [Phase::Filling, Phase::Relaxing, Phase::Bounding, Phase::Rounding, Phase::Repacking]
    {
        assert!(seen.iter().any(|now| now.phase == phase), "{phase:?}: {seen:?}");
    }
    let last = seen.last().unwrap();
    assert!(last.columns > 0 && last.bound <= found.bound && found.gap() <= last.gap());
}
