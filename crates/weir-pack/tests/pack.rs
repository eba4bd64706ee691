//! Packings beside those of all ways to pack, and large ones within their bound.

use std::cell::RefCell;
use weir_pack::{
    Bin, Effort, Fit, Item, Kind, PackError, Phase, Problem, Progress, solve, solve_watched,
};

/// A generator of its own, so that the tests share nothing with what they test.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (n ^ (n >> 31)) % most
    }
}

fn linear<'a>(kinds: &'a [Kind], items: &'a [Item]) -> impl Fn(usize, &[usize]) -> u64 + use<'a> {
    |kind, some| {
        let own = some.iter().map(|at| items[*at].fits[kind].as_ref().map_or(0, |fit| fit.cost));
        kinds[kind].cost + own.sum::<u64>()
    }
}

/// Kinds of which the larger is a little cheaper for its room, and items of all sizes.
fn random(draws: &mut Draws, items: u64, measures: usize, largest: u64) -> (Vec<Kind>, Vec<Item>) {
    let kinds: Vec<Kind> = (0..3_u64)
        .map(|at| Kind {
            cost: 1_000 * (1 << at) - 100 * at + draws.below(50),
            room: (0..measures).map(|_| (60 + draws.below(40)) << at).collect(),
        })
        .collect();
    let item = |draws: &mut Draws| Item {
        fits: (0..3)
            .map(|kind| {
                let takes = (0..measures).map(|_| draws.below(largest)).collect();
                (kind > 0 || draws.below(4) > 0).then_some(Fit { cost: draws.below(30), takes })
            })
            .collect(),
    };
    let items = (0..items).map(|_| item(draws)).collect();
    (kinds, items)
}

fn check(kinds: &[Kind], items: &[Item], bins: &[Bin]) {
    let mut seen: Vec<usize> = bins.iter().flat_map(|bin| bin.items.iter().copied()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..items.len()).collect::<Vec<_>>(), "each item is in one bin");
    for bin in bins {
        for (measure, room) in kinds[bin.kind].room.iter().enumerate() {
            let fits = bin.items.iter().map(|at| items[*at].fits[bin.kind].as_ref());
            let used = fits.map(|fit| fit.map_or(u64::MAX / 999, |fit| fit.takes[measure]));
            assert!(used.sum::<u64>() <= *room, "{bin:?}");
        }
    }
}

/// The cheapest of all ways: the cheapest bin of every set, then of sets of sets.
fn cheapest(kinds: &[Kind], items: &[Item], bill: &dyn Fn(usize, &[usize]) -> u64) -> u64 {
    let sets = 1_usize << items.len();
    let mut one = vec![u64::MAX; sets];
    for (set, least) in one.iter_mut().enumerate() {
        let some: Vec<usize> = (0..items.len()).filter(|at| set >> at & 1 == 1).collect();
        for (at, kind) in kinds.iter().enumerate() {
            let fits: Option<Vec<&Fit>> =
                some.iter().map(|item| items[*item].fits[at].as_ref()).collect();
            let Some(fits) = fits else { continue };
            let is_in = |(measure, room): (usize, &u64)| {
                fits.iter().map(|fit| fit.takes[measure]).sum::<u64>() <= *room
            };
            if kind.room.iter().enumerate().all(is_in) {
                *least = (*least).min(bill(at, &some));
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
fn small_packings_beside_all_ways_to_pack() {
    let effort = Effort { gap: 0, ..Effort::default() };
    // The way of large problems, on small ones: its bound holds, and its packings are good.
    let large = Effort { gap: 0, long: 0, split: 0, ..Effort::default() };
    let (mut best, mut count) = (0, 0);
    for seed in 0..120 {
        let mut draws = Draws(seed);
        let size = 2 + draws.below(8);
        let (kinds, items) = random(&mut draws, size, 3, 50);
        let whole = linear(&kinds, &items);
        // Every second time sums are rounded up, as a vendor rounds storage.
        let bill = |kind: usize, some: &[usize]| {
            let sum = whole(kind, some);
            if seed % 2 == 0 { sum } else { sum.next_multiple_of(64) }
        };
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
        let least = cheapest(&kinds, &items, &bill);
        let found = solve(&problem, &effort).unwrap();
        assert_eq!((found.cost, found.bound), (least, least), "seed {seed}");
        let found = solve(&problem, &large).unwrap();
        check(&kinds, &items, &found.bins);
        assert_eq!(
            found.cost,
            found.bins.iter().map(|bin| bill(bin.kind, &bin.items)).sum::<u64>()
        );
        assert!(found.bound <= least, "seed {seed}: bound {} above {least}", found.bound);
        assert!(least <= found.cost, "seed {seed}: {} below {least}", found.cost);
        count += 1;
        best += u32::from(found.cost == least);
    }
    println!("{best} of {count} are the cheapest of all");
    assert!(best >= count - 1, "{best} of {count} are the cheapest of all");
}

/// A bin holds a whole number of equal items, and less than its room.
#[test]
fn equal_items_are_counted() {
    let kind = |cost: u64, one: u64, two: u64| Kind { cost, room: vec![one, two] };
    let kinds = vec![kind(1_000, 100, 80), kind(1_900, 200, 160), kind(3_700, 400, 330)];
    let fit = Some(Fit { cost: 3, takes: vec![17, 13] });
    let items = vec![Item { fits: vec![fit; 3] }; 100];
    let bill = linear(&kinds, &items);
    let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
    let found = solve(&problem, &Effort::default()).unwrap();
    check(&kinds, &items, &found.bins);
    // 5, 11 and 23 in a bin: four large ones hold 92, and one of the middle the rest.
    assert_eq!((found.cost, found.bound), (17_000, 17_000));
}

#[test]
fn what_fits_nowhere_is_named() {
    let kinds = vec![Kind { cost: 10, room: vec![5] }];
    let item = |takes| Item { fits: vec![Some(Fit { cost: 0, takes: vec![takes] })] };
    let items = vec![item(3), item(6), item(5), Item { fits: vec![None] }];
    let problem = Problem { kinds, items, bill: &|_, _| 10 };
    let error = solve(&problem, &Effort::default()).unwrap_err();
    assert_eq!(error, PackError::NoBin { items: vec![1, 3] });
    let none = Problem { kinds: Vec::new(), items: Vec::new(), bill: &|_, _| 0 };
    assert_eq!(solve(&none, &Effort::default()).unwrap().bins, []);
}

/// Two items fit a bin, so 25 of them need 13; the relaxation is content with twelve and a half.
#[test]
fn bins_are_whole() {
    let count = 25;
    let kinds = vec![Kind { cost: 1_000, room: vec![8] }];
    let item = Item { fits: vec![Some(Fit { cost: 0, takes: vec![3] })] };
    let problem =
        Problem { kinds, items: vec![item; count], bill: &|_, some| 1_000 + some.len() as u64 };
    let found = solve(&problem, &Effort::default()).unwrap();
    assert_eq!(found.cost, 13_025);
    assert!(12_950 < found.bound && found.bound <= 13_025, "{}", found.bound);
}

/// What all items cost at least by one measure: each pays for the part that it takes of the room,
/// of the kind where that is least.
fn one_measure(kinds: &[Kind], items: &[Item], measure: usize) -> u64 {
    let of = |item: &Item| {
        let fits = item.fits.iter().zip(kinds);
        let costs = fits.filter_map(|(fit, kind)| {
            let fit = fit.as_ref()?;
            let part = kind.cost * 1_000_000 * fit.takes[measure] / kind.room[measure];
            Some(part + fit.cost * 1_000_000)
        });
        costs.min().unwrap_or(u64::MAX / 1_000)
    };
    items.iter().map(of).sum::<u64>() / 1_000_000
}

#[test]
fn dozens_of_items_have_one_answer_between_bound_and_bill() {
    for (seed, largest) in [(2, 90), (3, 120)] {
        let mut draws = Draws(seed);
        let (kinds, items) = random(&mut draws, 70, 3, largest);
        let bill = linear(&kinds, &items);
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
        let effort = Effort { gap: 5_000, ..Effort::default() };
        let found = solve(&problem, &effort).unwrap();
        check(&kinds, &items, &found.bins);
        println!("{largest}: {} bins, gap {} millionths", found.bins.len(), found.gap());
        let cost: u64 = found.bins.iter().map(|bin| bill(bin.kind, &bin.items)).sum();
        assert_eq!(found.cost, cost);
        // How large the gap is depends on the kinds: those of a fleet are held to one hundredth
        // by the tests of weir-plan. What holds for all: no single measure proves more.
        let single = (0..3).map(|measure| one_measure(&kinds, &items, measure)).max().unwrap();
        println!("{largest}: cost {cost}, bound {}, of one measure {single}", found.bound);
        assert!(single <= found.bound && found.bound <= cost);
        // One problem, one answer.
        assert_eq!(solve(&problem, &effort).unwrap(), found);
    }
}

/// Kinds whose rooms and costs are multiples of the smallest's, which the relaxation mixes at will:
/// what it cannot mix away is that all of them together are a whole number of the smallest.
#[test]
fn rooms_are_whole_where_kinds_are_multiples_of_each_other() {
    for seed in 0..3 {
        let mut draws = Draws(seed);
        let kinds: Vec<Kind> =
            [1, 2, 4].iter().map(|n| Kind { cost: 1_000 * n + n, room: vec![100 * n] }).collect();
        let item = |draws: &mut Draws| {
            let takes = 5 + draws.below(15);
            Item { fits: vec![Some(Fit { cost: 0, takes: vec![takes] }); 3] }
        };
        let items: Vec<Item> = (0..40).map(|_| item(&mut draws)).collect();
        let bill = linear(&kinds, &items);
        let all: u64 = items.iter().map(|item| item.fits[0].as_ref().unwrap().takes[0]).sum();
        let least = all.div_ceil(100);
        let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
        let effort = Effort { gap: 0, long: 0, rounds: 8, tries: 4, nodes: 20_000, split: 12 };
        let found = solve(&problem, &effort).unwrap();
        check(&kinds, &items, &found.bins);
        let used: u64 = found.bins.iter().map(|bin| 1 << bin.kind).sum();
        println!("seed {seed}: {used} of {least}, cost {}, bound {}", found.cost, found.bound);
        assert!(found.bound <= found.cost);
        // In units of which no part is sold, and nothing is cheaper than 1,001 for one.
        assert!(found.bound > 1_001 * (least - 1) + 900, "seed {seed}: {}", found.bound);
    }
}

#[test]
fn who_watches_sees_the_phases_and_changes_nothing() {
    let mut draws = Draws(2);
    let (kinds, items) = random(&mut draws, 50, 3, 90);
    let bill = linear(&kinds, &items);
    let problem = Problem { kinds: kinds.clone(), items: items.clone(), bill: &bill };
    let effort = Effort { gap: 0, long: 0, rounds: 10, tries: 5, ..Effort::default() };
    let seen: RefCell<Vec<Progress>> = RefCell::default();
    let found = solve_watched(&problem, &effort, &|now| seen.borrow_mut().push(now)).unwrap();
    assert_eq!(solve(&problem, &effort).unwrap(), found);
    let seen = seen.into_inner();
    assert!(seen.windows(2).all(|pair| pair[0].phase <= pair[1].phase), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[1].cost <= pair[0].cost), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0].bound <= pair[1].bound), "{seen:?}");
    for phase in [Phase::Filling, Phase::Relaxing, Phase::Bounding, Phase::Rounding, Phase::Anew] {
        assert!(seen.iter().any(|now| now.phase == phase), "{phase:?}: {seen:?}");
    }
    let last = seen.last().unwrap();
    assert!(last.columns > 0 && last.bound <= found.bound && found.gap() <= last.gap());
}
