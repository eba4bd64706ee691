//! Fleets: every database has a place, every instance is a layout that carries its databases, and
//! nothing could be much cheaper.

use std::collections::BTreeSet;
use weir_catalog::{Catalog, PriceBook};
use weir_layout::{Layout, Role};
use weir_plan::fleet::{Effort, Goal};
use weir_plan::need::NeedFile;
use weir_plan::verify::{How, Load, verify_all};
use weir_plan::{
    FleetOutcome, FleetPlan, FleetQuestion, Member, Need, RoleNeed, Wishes, plan_fleet,
    plan_fleet_watched,
};
use weir_random::Rng;
use weir_units::Bytes;

fn role(role: Role, gib: u64, iops: u64, request: u64) -> RoleNeed {
    let (size, throughput) = (Bytes::gib(gib), iops * request);
    let reads = if role == Role::Log { 0 } else { 700_000 };
    RoleNeed {
        role,
        size,
        iops,
        is_derived: false,
        request,
        throughput,
        reads,
        latency: None,
        working_set: None,
    }
}

/// Databases of all sizes: most are small, a few are large.
fn members(count: u64, seed: u64) -> Vec<Member> {
    let mut rng = Rng::from_state(seed);
    (0..count)
        .map(|at: u64| {
            let scale = *rng.one(&[1, 2, 4, 8, 16, 32]);
            let gib = 4 + rng.within(0, 40 * scale);
            let mut roles = vec![
                role(Role::Data, gib, 20 + rng.within(0, 60 * scale), 8 << 10),
                role(Role::Log, 1 + gib / 8, 5 + rng.within(0, 20 * scale), 16 << 10),
            ];
            if rng.chance(33) {
                roles.push(role(Role::Tempdb, 1 + rng.within(0, 4), rng.within(0, 100), 64 << 10));
            }
            let need = Need { roles, ..Need::default() };
            Member { name: format!("db{at}"), need, millicores: 20 + rng.within(0, 60 * scale) }
        })
        .collect()
}

fn fleet(members: &[Member], edition: &str, families: &[&str], is_fewest: bool) -> FleetOutcome {
    let catalog = Catalog::builtin();
    let edition = catalog.edition(edition).expect("an edition");
    let book = PriceBook::of(edition.prices(), None, None, None).expect("prices of one place");
    let families = families.iter().map(|name| (*name).to_owned()).collect();
    let wishes = Wishes { families, ..Wishes::default() };
    let prices = book.as_ref();
    let effort = Effort { rounds: 20, tries: 20, ..Effort::default() };
    let question = FleetQuestion {
        catalog: &catalog,
        edition,
        prices,
        members,
        wishes: &wishes,
        is_fewest,
        effort,
    };
    plan_fleet(&question).expect("a fleet")
}

fn met(outcome: FleetOutcome) -> FleetPlan {
    match outcome {
        FleetOutcome::Met(plan) => *plan,
        FleetOutcome::NotMet(lacking) => panic!("{lacking:?}"),
    }
}

/// Checks that each database is on one instance and that the layouts hold them all.
fn check(plan: &FleetPlan, members: &[Member]) {
    let catalog = Catalog::builtin();
    let mut seen = BTreeSet::new();
    for own in &plan.instances {
        let layout = Layout::parse("instance", &own.plan.layout, &catalog).expect("a layout");
        let host = &layout.hosts[0];
        for member in &own.members {
            assert!(seen.insert(*member), "{} twice", members[*member].name);
            for need in members[*member].need.roles.iter().filter(|own| own.role != Role::Tempdb) {
                let name = members[*member].name.as_str();
                let files = host.files.iter().filter(|file| {
                    file.role == need.role && file.database.as_deref() == Some(name)
                });
                let size: u64 = files.map(|file| file.size.get()).sum();
                assert!(size >= need.size.get(), "{name}: {size}");
            }
        }
        let used: u64 = own.members.iter().map(|member| members[*member].millicores).sum();
        assert!(used <= u64::from(host.instance.as_ref().expect("an instance").vcores) * 1_000);
    }
    assert_eq!(seen.len(), members.len());
}

#[test]
fn databases_go_onto_instances_that_carry_them() {
    let members = members(60, 1);
    for family in ["gp", "bc", "next-gen-gp"] {
        let plan = met(fleet(&members, "azure-mi-now", &[family], false));
        check(&plan, &members);
        println!("{family}: {} instances, gap {} millionths", plan.instances.len(), plan.gap);
        // The simulation must confirm the plan.
        let catalog = Catalog::builtin();
        for own in &plan.instances {
            let loads: Vec<Load<'_>> = own
                .members
                .iter()
                .map(|at: &usize| Load {
                    database: Some(members[*at].name.as_str()),
                    need: &members[*at].need,
                })
                .collect();
            for (at, got) in
                verify_all(family, &own.plan.layout, &loads, &catalog, How::default()).unwrap()
            {
                let name = loads[at].database;
                assert!(got.is_met(), "{family}: {name:?} {got:?}");
            }
        }
    }
}

#[test]
fn a_fleet_is_within_one_per_cent_of_its_lower_bound() {
    for (count, family) in [(150, "gp"), (400, "gp"), (400, "bc")] {
        let members = members(count, 2);
        let plan = met(fleet(&members, "azure-mi-now", &[family], false));
        println!("{count}, {family}: gap {} millionths", plan.gap);
        check(&plan, &members);
        assert_eq!(plan.goal, Goal::Price);
        assert!(plan.gap <= 10_000, "{count}, {family}: {} millionths", plan.gap);
        assert!(plan.bound.unwrap() <= plan.cost.month);
    }
}

/// Large databases whose sizes, rates and vCores go up in steps, two or a dozen on an instance.
#[test]
fn a_fleet_of_large_databases_is_within_one_per_cent_of_its_lower_bound() {
    let members: Vec<Member> = (1..=300)
        .map(|at: u64| {
            let roles = vec![
                role(Role::Data, 10 + at * 7 % 1_300, 20 + at * 13 % 900, 8 << 10),
                role(Role::Log, 1 + at % 40, 5 + at % 200, 16 << 10),
            ];
            let need = Need { roles, ..Need::default() };
            Member { name: format!("db{at}"), need, millicores: 100 * (1 + at % 9) }
        })
        .collect();
    for family in ["bc", "gp", "next-gen-gp"] {
        let plan = met(fleet(&members, "azure-mi-now", &[family], false));
        println!("{family}: gap {} millionths", plan.gap);
        check(&plan, &members);
        assert!(plan.gap <= 10_000, "{family}: {} millionths", plan.gap);
    }
}

#[test]
fn the_fewest_instances_are_no_more_than_the_cheapest() {
    let members = members(40, 3);
    let cheapest = met(fleet(&members, "azure-mi-now", &["gp"], false));
    let fewest = met(fleet(&members, "azure-mi-now", &["gp"], true));
    check(&fewest, &members);
    assert!(fewest.instances.len() <= cheapest.instances.len());
    assert_eq!(fewest.goal, Goal::Instances);
    // Without prices vCores are what is compared.
    let without = met(fleet(&members, "azure-mi-2018", &[], false));
    assert_eq!((without.goal, without.bound), (Goal::Vcores, None));
}

#[test]
fn a_database_that_fits_no_instance_is_named_with_the_limits_it_exceeds() {
    let mut members = members(3, 4);
    members[1].millicores = 90_000;
    members[2].need.roles[1].size = Bytes::gib(3 << 10);
    let FleetOutcome::NotMet(lacking) = fleet(&members, "azure-mi-now", &["gp"], false) else {
        panic!("there is a plan");
    };
    let names: Vec<&str> = lacking.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["db1", "db2"]);
    // A log has 2 TB at most, whatever the instance has.
    assert_eq!(lacking[1].1[0].cap, "size of the largest log file", "{lacking:?}");
    let (_, caps) = &lacking[0];
    assert_eq!((caps[0].cap, caps[0].used, caps[0].most), ("vCores", 90_000, 80_000));
}

#[test]
fn keys_of_the_whole_fleet_are_rejected_in_a_database() {
    let read = |text: &str| NeedFile::read("db.toml", text).and_then(|file| file.member("db"));
    let check = |text: &str, message: &str| {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    };
    let (member, _) = read("vcpus = 0.25\n[data]\nsize = \"1 GiB\"\niops = 10\n").unwrap();
    assert_eq!(member.millicores, 250);
    let (member, _) = read("vcpus = 3\n[data]\nsize = \"1 GiB\"\n").unwrap();
    assert_eq!(member.millicores, 3_000);
    check(
        "edition = \"azure-now\"\n[data]\nsize = \"1 GiB\"\n",
        "db: edition: applies to the whole fleet",
    );
    check("vcpus = 0.0001\n[data]\nsize = \"1 GiB\"\n", "up to three decimals");
    check(
        "vcpus = -1\n[data]\nsize = \"1 GiB\"\n",
        "-1 is not a number of virtual processors, for example 8 or 0.25",
    );
    check("[data]\niops = 10\n", "db.toml: [data]: size is missing");
    check("", "db.toml: has no role");
}

/// Checks that a fleet of one equals the plan of its database, for prices at which IOPS cost more
/// than the storage that includes them.
#[test]
fn a_fleet_of_one_database_costs_the_same_as_its_plan() {
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-mi-now").expect("an edition");
    for iops_price in ["0.038", "0.12"] {
        let text = format!(
            "[[price]]\nregion = \"here\"\ncurrency = \"USD\"\nsource = \"a test\"\nas_of = \"2026-11-22\"\nrows = [\n\
             {{ of = \"next-gen-gp\", per = \"vCore\", month = \"100\" }},\n\
             {{ of = \"next-gen-gp\", per = \"vCore licence\", month = \"50\" }},\n\
             {{ of = \"next-gen-gp\", per = \"GiB\", month = \"0.115\" }},\n\
             {{ of = \"next-gen-gp\", per = \"IOPS\", month = \"{iops_price}\" }},\n]\n"
        );
        let own = weir_catalog::PriceList::read("prices.toml", &text).expect("prices");
        let book = PriceBook::of(&own, None, None, None).expect("prices of one place");
        let wishes = Wishes { families: vec!["next-gen-gp".to_owned()], ..Wishes::default() };
        let need = Need { roles: vec![role(Role::Data, 500, 20_000, 8 << 10)], ..Need::default() };
        let prices = book.as_ref();
        let alone = weir_plan::plan(&weir_plan::Question {
            catalog: &catalog,
            edition,
            prices,
            need: &need,
            wishes: &wishes,
        });
        let weir_plan::Outcome::Met(alone) = alone.expect("a plan") else { panic!("no plan") };
        let members = [Member { name: "one".to_owned(), need, millicores: 0 }];
        let effort = Effort::default();
        let question = FleetQuestion {
            catalog: &catalog,
            edition,
            prices,
            members: &members,
            wishes: &wishes,
            is_fewest: false,
            effort,
        };
        let fleet = met(plan_fleet(&question).expect("a fleet"));
        assert_eq!(fleet.cost.month, alone.plan.cost.month, "{iops_price}");
    }
}

#[test]
fn a_fleet_plan_reports_its_progress() {
    let members = members(40, 3);
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-mi-now").expect("an edition");
    let book = PriceBook::of(edition.prices(), None, None, None).expect("prices of one place");
    let wishes = Wishes { families: vec!["gp".to_owned()], ..Wishes::default() };
    let question = FleetQuestion {
        catalog: &catalog,
        edition,
        prices: book.as_ref(),
        members: &members,
        wishes: &wishes,
        is_fewest: false,
        effort: Effort { rounds: 10, tries: 5, ..Effort::default() },
    };
    let last = std::cell::Cell::new(None);
    let watched = plan_fleet_watched(&question, &|now| last.set(Some(now))).expect("a fleet");
    assert_eq!(watched, plan_fleet(&question).expect("a fleet"));
    let last = last.get().expect("something is said");
    assert!(last.columns > 0 && met(watched).gap <= last.gap(), "{last:?}");
}
