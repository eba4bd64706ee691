//! Times the fleet planner and prints its optimality gap:
//! `cargo run --release -p weir-plan --example fleet -- [DATABASES] [SEED] [FAMILY]`. Seed 0 means
//! large databases whose sizes and rates rise in steps, a few per instance; other seeds draw them.

#![expect(clippy::print_stdout, reason = "an example that prints what it measures")]

use std::time::Instant;
use weir_catalog::{Catalog, PriceBook};
use weir_layout::Role;
use weir_plan::{FleetOutcome, FleetQuestion, Member, Need, RoleNeed, Wishes, plan_fleet};
use weir_units::Bytes;

use weir_random::Rng;

fn role(role: Role, gib: u64, iops: u64, request: u64, reads: u64) -> RoleNeed {
    RoleNeed {
        role,
        size: Bytes::gib(gib),
        iops,
        is_derived: false,
        request,
        throughput: iops * request,
        reads,
        latency: None,
        working_set: None,
    }
}

/// Large databases, a few on each instance, whose sizes, rates and vCores go up in steps.
fn steps(count: u64) -> Vec<Member> {
    (1..=count)
        .map(|at: u64| {
            let roles = vec![
                role(Role::Data, 10 + at * 7 % 1_300, 20 + at * 13 % 900, 8 << 10, 700_000),
                role(Role::Log, 1 + at % 40, 5 + at % 200, 16 << 10, 0),
            ];
            let need = Need { roles, ..Need::default() };
            Member { name: format!("db{at}"), need, millicores: 100 * (1 + at % 9) }
        })
        .collect()
}

/// Databases of all sizes: most are small, a few are large.
fn members(count: u64, seed: u64) -> Vec<Member> {
    let mut rng = Rng::from_state(seed);
    (0..count)
        .map(|at: u64| {
            let scale = *rng.one(&[1, 2, 4, 8, 16, 32]);
            let gib = 4 + rng.within(0, 40 * scale);
            let roles = vec![
                role(Role::Data, gib, 20 + rng.within(0, 60 * scale), 8 << 10, 700_000),
                role(Role::Log, 1 + gib / 8, 5 + rng.within(0, 20 * scale), 16 << 10, 0),
            ];
            let need = Need { roles, ..Need::default() };
            let millicores = if rng.chance(90) { 20 + rng.within(0, 60 * scale) } else { 10 };
            Member { name: format!("db{at}"), need, millicores }
        })
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse::<u64>().ok());
    let (count, first) = (number(0).unwrap_or(400), number(1));
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-mi-now").unwrap_or_else(|error| panic!("{error}"));
    let book = PriceBook::of(edition.prices(), None, None, None).ok().flatten();
    let families = match args.get(2) {
        Some(family) => vec![vec![family.clone()]],
        None => vec![vec!["gp".to_owned()], vec!["bc".to_owned()], Vec::new()],
    };
    for seed in first.map_or(1..=5, |seed| seed..=seed) {
        for families in &families {
            let members = if seed == 0 { steps(count) } else { members(count, seed) };
            let wishes = Wishes { families: families.clone(), ..Wishes::default() };
            let question = FleetQuestion {
                catalog: &catalog,
                edition,
                prices: book.as_ref(),
                members: &members,
                wishes: &wishes,
                is_fewest: false,
                effort: weir_plan::fleet::Effort::default(),
            };
            let start = Instant::now();
            match plan_fleet(&question) {
                Ok(FleetOutcome::Met(plan)) => println!(
                    "{count} databases, seed {seed}, {families:?}: {} instances, {} a month, bound {:?}, gap {} %, {:.1} s",
                    plan.instances.len(),
                    plan.cost.month,
                    plan.bound.map(|bound| bound.to_string()),
                    plan.gap as f64 / 10_000.0,
                    start.elapsed().as_secs_f64()
                ),
                other => println!("{other:?}"),
            }
        }
    }
}
