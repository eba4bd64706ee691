//! Plans simulated: each holds, and the next cheaper does not.

use crate::rng::Rng;
use crate::world::{need_text, planned};
use weir_catalog::Catalog;
use weir_plan::Outcome;
use weir_plan::verify::{How, TOLERANCE, verify};

/// How many needs.
const NEEDS: u64 = 500;

/// How many needs of the other clouds and services.
const OTHER_NEEDS: u64 = 300;

/// What is planned with.
#[derive(Debug, Clone, Copy)]
struct Kind {
    edition: &'static str,
    /// What comes before the roles of the need.
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
fn a_plan_holds_and_the_next_cheaper_does_not() {
    let kinds = EDITIONS.map(|edition| Kind { edition, head: "", most_roles: 3 });
    println!("{}", check(700_001, NEEDS, &kinds, [350, 100]));
}

#[test]
fn a_plan_of_another_cloud_holds_and_the_next_cheaper_does_not() {
    println!("{}", check(710_001, OTHER_NEEDS, &OTHERS, [200, 40]));
}

/// Data has no working set: a cache that it shared with tempdb would not serve half of its reads.
#[test]
fn roles_that_share_a_cache_hold() {
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
        let how = How { seed: 1, bursts: false };
        let got = verify("plan.toml", &answer.plan.layout, &need, &catalog, how).expect("a run");
        assert!(got.iter().all(|got| got.is_met()), "{got:#?}\n{text}\n{}", answer.plan.layout);
    }
}

/// Plans so many needs, and simulates each plan and what is next cheaper; at least so many of
/// both.
fn check(seed: u64, needs: u64, kinds: &[Kind], least: [u32; 2]) -> String {
    let catalog = Catalog::builtin();
    let mut rng = Rng(seed);
    let (mut plans, mut cheaper, mut unmet) = (0, 0, 0);
    for seed in 0..needs {
        let Kind { edition, head, most_roles } = *rng.one(kinds);
        let all = ["data", "log", "tempdb"];
        let roles = &all[..*rng.one(&[1, 2, 3]).min(&most_roles)];
        let text = format!("{head}{}", need_text(&mut rng, roles, 12_000));
        let (need, outcome) = planned(&text, &catalog, edition).expect("a need");
        let Outcome::Met(answer) = outcome else {
            unmet += 1;
            continue;
        };
        let got =
            verify("plan.toml", &answer.plan.layout, &need, &catalog, How { seed, bursts: false });
        let got = got.unwrap_or_else(|error| panic!("{error}\n{text}\n{}", answer.plan.layout));
        assert!(got.iter().all(|got| got.is_met()), "{got:#?}\n{text}\n{}", answer.plan.layout);
        plans += 1;
        let Some(next) = answer.cheaper else { continue };
        // What is too small for the data fails before it is asked for any rate, and what lacks
        // less than the tolerance cannot be told apart. What only mixed requests lack depends on
        // how they are interleaved: evenly spread, a small one uses the operations that a large one
        // leaves while it waits for bytes.
        let is_seen = |cap: &weir_plan::CapUse| {
            cap.is_rate
                && cap.unit != "of its time"
                && u128::from(cap.used) * 1_000_000
                    > u128::from(cap.most) * u128::from(1_000_000 + 2 * TOLERANCE)
        };
        let is_small = next.fails.iter().any(|cap| !cap.is_rate);
        if is_small || !next.fails.iter().any(is_seen) {
            continue;
        }
        let layout = next.layout.expect("a layout");
        let got = verify("next.toml", &layout, &need, &catalog, How { seed, bursts: false });
        let got = got.expect("a layout that can be simulated");
        assert!(
            !got.iter().all(|got| got.is_met()),
            "{got:#?}\n{:#?}\n{text}\n{layout}",
            next.fails
        );
        cheaper += 1;
    }
    let enough = plans >= least[0] && cheaper >= least[1];
    assert!(enough, "{plans} plans, {cheaper} cheaper, {unmet} not met");
    format!("{plans} plans hold, {cheaper} cheaper ones do not; {unmet} needs cannot be met")
}
