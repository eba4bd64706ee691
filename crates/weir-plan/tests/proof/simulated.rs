//! Simulated plans: each holds, and the next cheaper layout does not.

use crate::world::{need_text, planned};
use weir_catalog::Catalog;
use weir_plan::share::WHOLE;
use weir_plan::verify::{Got, How, TOLERANCE, verify};
use weir_plan::{CapUse, Outcome};
use weir_random::Rng;

/// Number of needs.
const NEEDS: u64 = 500;

/// Number of needs for the other clouds and services.
const OTHER_NEEDS: u64 = 300;

/// A market to plan in.
#[derive(Debug, Clone, Copy)]
struct Kind {
    edition: &'static str,
    /// The keys before the roles of the need.
    head: &'static str,
    most_roles: usize,
}

const OTHERS: [Kind; 4] = [
    Kind { edition: "azure-postgres", head: "", most_roles: 2 },
    Kind { edition: "aws", head: "families = [\"vm\"]\n", most_roles: 3 },
    Kind { edition: "aws", head: "families = [\"rds\"]\n", most_roles: 2 },
    Kind { edition: "gcp", head: "", most_roles: 3 },
];

const EDITIONS: [&str; 4] = ["azure-premium-2015", "azure-now", "azure-mi-2018", "azure-mi-now"];

#[test]
fn a_plan_meets_the_need_in_simulation_and_the_next_cheaper_does_not() {
    let kinds = EDITIONS.map(|edition| Kind { edition, head: "", most_roles: 3 });
    let count = check(700_001, NEEDS, &kinds);
    println!("{count:?}");
    assert!(count.plans >= 490 && count.missing >= 150 && count.least <= 15, "{count:?}");
}

#[test]
fn a_plan_of_another_cloud_meets_the_need_and_the_next_cheaper_does_not() {
    let count = check(710_001, OTHER_NEEDS, &OTHERS);
    println!("{count:?}");
    assert!(count.plans >= 295 && count.missing >= 100 && count.least <= 15, "{count:?}");
}

/// Data has no working set: a cache that it shared with tempdb would not serve half of its reads.
#[test]
fn roles_that_share_a_cache_meet_the_need() {
    let catalog = Catalog::builtin();
    let log = "[log]\nsize = \"115 GiB\"\niops = 1205\nrequest = \"64 KiB\"\n";
    let tempdb = "[tempdb]\nsize = \"50 GiB\"\niops = 1311\nrequest = \"64 KiB\"\nreads = \"70 %\"\n\
                  working_set = \"47 GiB\"\n";
    for set in ["", "working_set = \"200 GiB\"\n", "working_set = \"400 GiB\"\n"] {
        let text = format!(
            "[data]\nsize = \"542 GiB\"\niops = 5835\nrequest = \"4 KiB\"\nreads = \"70 %\"\n{set}{log}{tempdb}"
        );
        let (need, outcome) = planned(&text, &catalog, "azure-premium-2015").expect("a need");
        let Outcome::Met(answer) = outcome else { panic!("{text}: no plan") };
        let how = How { seed: 1, bursts: false, ..How::default() };
        let got = verify("plan.toml", &answer.plan.layout, &need, &catalog, how).expect("a run");
        assert!(got.iter().all(|got| got.is_met()), "{got:#?}\n{text}\n{}", answer.plan.layout);
    }
}

/// They cross a border now and then, and no more is bought than for that.
#[test]
fn requests_that_do_not_fit_the_stripe_unit_meet_the_need() {
    let catalog = Catalog::builtin();
    let mut rng = Rng::from_state(720_001);
    for edition in ["azure-premium-2015", "azure-now", "aws"] {
        for kib in [9, 12, 24, 40, 96, 200] {
            let iops = rng.within(2_000, 120_000) / kib;
            let text = format!(
                "families = [\"vm\"]\n[data]\nsize = \"900 GiB\"\niops = {iops}\nrequest = \"{kib} KiB\"\n"
            );
            let (need, outcome) = planned(&text, &catalog, edition).expect("a need");
            let Outcome::Met(answer) = outcome else { panic!("{text}: no plan") };
            let layout = &answer.plan.layout;
            let how = How { seed: kib, bursts: false, ..How::default() };
            let got = verify("plan.toml", layout, &need, &catalog, how).expect("a run");
            assert!(got.iter().all(Got::is_met), "{got:#?}\n{text}\n{layout}");
            let caps = answer.plan.caps.iter().filter(|cap| cap.cap == "disk operations");
            let used = caps.map(|cap| cap.used).max().expect("disks");
            let most = iops + iops * kib / 64 + 1;
            assert!((iops..=most).contains(&used), "{used} for {iops} of {kib} KiB");
        }
    }
}

/// Statistics of the simulations.
#[derive(Debug, Default)]
struct Count {
    /// Plans that hold.
    plans: u32,
    /// Next cheaper layouts that miss by more than the tolerance ...
    missing: u32,
    /// ... by less ...
    near: u32,
    /// ... and that have no room for the data, so that nothing can be run.
    small: u32,
    /// Plans that nothing is one step below.
    least: u32,
    /// Needs that nothing meets.
    unmet: u32,
}

/// Plans this number of needs, and simulates each plan and the next cheaper layout.
fn check(seed: u64, needs: u64, kinds: &[Kind]) -> Count {
    let catalog = Catalog::builtin();
    let mut rng = Rng::from_state(seed);
    let mut count = Count::default();
    for seed in 0..needs {
        let Kind { edition, head, most_roles } = *rng.one(kinds);
        let all = ["data", "log", "tempdb"];
        let roles = &all[..*rng.one(&[1, 2, 3]).min(&most_roles)];
        let text = format!("{head}{}", need_text(&mut rng, roles, 12_000));
        let (need, outcome) = planned(&text, &catalog, edition).expect("a need");
        let Outcome::Met(answer) = outcome else {
            count.unmet += 1;
            continue;
        };
        let simulated = |layout: &str| {
            verify("a.toml", layout, &need, &catalog, How { seed, bursts: false, ..How::default() })
        };
        let layout = &answer.plan.layout;
        let got = simulated(layout).unwrap_or_else(|error| panic!("{error}\n{text}\n{layout}"));
        assert!(got.iter().all(|got| got.is_met()), "{got:#?}\n{text}\n{layout}");
        count.plans += 1;
        let Some(next) = answer.cheaper else {
            count.least += 1;
            continue;
        };
        let is_small = next.fails.iter().any(|cap| !cap.is_rate);
        let Some(layout) = next.layout.as_ref() else {
            assert!(is_small, "{:#?}\n{text}", next.fails);
            count.small += 1;
            continue;
        };
        let got = match simulated(layout) {
            Ok(got) => got,
            // No layout, or no job on it, where the data has no room.
            Err(error) if is_small => {
                let error = error.to_string();
                let no_room = [" more than ", " past the end of its "];
                assert!(
                    no_room.iter().any(|said| error.contains(said)),
                    "{error}\n{text}\n{layout}"
                );
                count.small += 1;
                continue;
            }
            Err(error) => panic!("{error}\n{:#?}\n{text}\n{layout}", next.fails),
        };
        let said = format!("{got:#?}\n{:#?}\n{text}\n{layout}", next.fails);
        let lacking = next.fails.iter().filter(|cap| cap.is_rate).map(CapUse::share).max();
        let carried = WHOLE as f64 / lacking.unwrap_or_else(|| panic!("{said}")) as f64;
        // A role is short by at least half of the lack that is stated: of two peaks or two rates, the one
        // that lacks most may be another role's. The run at the throughput of some roles does not measure
        // the others, which bear a part of the lack of a shared limit.
        let least = got.iter().map(Got::part).fold(f64::MAX, f64::min);
        let is_partly_measured = got.iter().any(|own| own.bytes.is_some());
        let most = if is_partly_measured { 1.0 } else { 1.0 - (1.0 - carried) / 2.0 };
        assert!(least < most, "{least}\n{said}");
        assert_eq!(TOLERANCE, 20_000, "the 2 % that the documentation promises");
        if carried < 1.0 - TOLERANCE as f64 / WHOLE as f64 {
            assert!(!got.iter().all(|got| got.is_met()), "{said}");
            count.missing += 1;
        } else {
            // It passes for met.
            count.near += 1;
        }
    }
    count
}
