//! Every layout of a small cloud, compiled to what an engine would hold, against the plan.

use crate::world::{need_text, planned, taken};
use std::collections::HashMap;
use weir_catalog::{Catalog, Edition};
use weir_core::{CacheMode, GateLimits, Place};
use weir_layout::{Layout, Role};
use weir_plan::Outcome;
use weir_plan::need::{Need, RoleNeed};
use weir_random::Rng;
use weir_units::Money;

/// Number of needs.
const NEEDS: u64 = 2_000;

/// The most disks that a machine of the small cloud takes.
const MOST: u64 = 4;

const MACHINES: [&str; 3] = ["m2", "m4", "m4n"];
const TIERS: [&str; 3] = ["F1", "F2", "F3"];

/// A small cloud; its prices by chance.
fn edition(rng: &mut Rng) -> Edition {
    let tiers = [
        "{ name = \"F1\", size = \"100 GiB\", iops = 1000, throughput = \"50 MB/s\" }",
        "{ name = \"F2\", size = \"400 GiB\", iops = 2500, throughput = \"120 MB/s\" }",
        "{ name = \"F3\", size = \"1 TiB\", iops = 6000, throughput = \"250 MB/s\" }",
    ];
    let machines = [
        "{ name = \"m2\", vcpus = 2, memory = \"8 GiB\", max_data_disks = 2, temp = { size = \"60 GiB\", iops = 5000, throughput = \"100 MB/s\" }, cache = \"64 GiB\", uncached = { iops = 4000, throughput = \"130 MB/s\" }, cached = { iops = 7000, throughput = \"100 MB/s\" } }",
        "{ name = \"m4\", vcpus = 4, memory = \"16 GiB\", max_data_disks = 4, temp = { size = \"120 GiB\" }, cache = \"128 GiB\", uncached = { iops = 9000, throughput = \"300 MB/s\" }, cached = { iops = 14000, throughput = \"350 MB/s\" } }",
        "{ name = \"m4n\", vcpus = 4, memory = \"16 GiB\", max_data_disks = 4, uncached = { iops = 14000, throughput = \"500 MB/s\" } }",
    ];
    let cite = "source = \"made up\"\nas_of = \"2026-11-22\"\n";
    let quantiles = "{ p0 = \"1 ms\", p50 = \"2 ms\", p100 = \"20 ms\" }";
    let rows: String = [
        ("none", "read-miss", true, true, false),
        ("none", "write", true, true, false),
        ("read-only", "read-hit", false, false, true),
        ("read-only", "read-miss", true, true, true),
        ("read-only", "write", true, true, true),
        ("read-write", "read-hit", false, false, true),
        ("read-write", "read-miss", true, true, true),
        ("read-write", "write", false, false, true),
        ("read-write", "flush", true, true, false),
    ]
    .iter()
    .map(|(mode, op, disk, uncached, cached)| {
        format!("{{ mode = \"{mode}\", op = \"{op}\", disk = {disk}, uncached = {uncached}, cached = {cached} }},\n")
    })
    .collect();
    let mut prices = String::new();
    for (tier, most) in TIERS.iter().zip([10, 30, 60]) {
        let (whole, cents) = (rng.within(3, most), rng.within(0, 99));
        prices += &format!("{{ tier = \"{tier}\", month = \"{whole}.{cents:02}\" }},\n");
    }
    for host in MACHINES {
        prices += &format!("{{ host = \"{host}\", month = \"{}\" }},\n", rng.within(50, 150));
    }
    let text = format!(
        "name = \"small\"\ntitle = \"A small cloud\"\nas_of = \"now\"\nscope = \"tests\"\n\
         [io_unit]\nsize = \"256 KiB\"\n{cite}\
         [[tier_set]]\nname = \"fast\"\nfamily = \"fast\"\n{cite}rows = [{}]\n\
         [[series]]\nname = \"m\"\n{cite}rows = [{}]\n\
         [host_cache]\nos_disk_default = \"none\"\ndata_disk_default = \"none\"\nmax_disk_exclusive = \"800 GiB\"\n{cite}rows = [\n{rows}]\n\
         [[latency]]\nname = \"remote\"\nfamilies = [\"fast\", \"host-cache\", \"local-ssd\"]\nbasis = \"assumed\"\nreason = \"a test\"\n{cite}read = {quantiles}\nwrite = {quantiles}\n\
         [[price]]\nregion = \"here\"\ncurrency = \"EUR\"\n{cite}rows = [\n{prices}]\n",
        tiers.join(",\n"),
        machines.join(",\n"),
    );
    Edition::from_toml("small.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Disks of some roles in a layout.
#[derive(Debug, Clone)]
struct Pool {
    roles: Vec<Role>,
    tier: Option<&'static str>,
    count: u64,
    /// The stripe unit in KiB.
    unit: u64,
    mode: CacheMode,
}

/// Every layout of some roles.
fn layouts(roles: &[Role], catalog: &Catalog) -> Vec<(&'static str, Vec<Pool>, Layout)> {
    let mut found = Vec::new();
    for groups in groups(roles) {
        let mut pools: Vec<Vec<Pool>> = vec![Vec::new()];
        for group in groups {
            let options = options(&group);
            pools = pools
                .into_iter()
                .flat_map(|pools| {
                    options.iter().map(move |option| {
                        let mut pools = pools.clone();
                        pools.push(option.clone());
                        pools
                    })
                })
                .collect();
        }
        pools.retain(|pools| pools.iter().map(|pool| pool.count).sum::<u64>() <= MOST);
        for machine in MACHINES {
            for pools in &pools {
                // Layouts beyond the machine's limits are skipped.
                if let Ok(layout) = Layout::parse("small", &text(machine, pools), catalog) {
                    found.push((machine, pools.clone(), layout));
                }
            }
        }
    }
    found
}

fn groups(roles: &[Role]) -> Vec<Vec<Vec<Role>>> {
    use Role::{Data, Log, Tempdb};
    match roles {
        [one] => vec![vec![vec![*one]]],
        [one, two] => vec![vec![vec![*one, *two]], vec![vec![*one], vec![*two]]],
        _ => vec![
            vec![vec![Data, Log, Tempdb]],
            vec![vec![Data, Log], vec![Tempdb]],
            vec![vec![Data, Tempdb], vec![Log]],
            vec![vec![Log, Tempdb], vec![Data]],
            vec![vec![Data], vec![Log], vec![Tempdb]],
        ],
    }
}

fn options(group: &[Role]) -> Vec<Pool> {
    let roles = group.to_vec();
    let mut all = Vec::new();
    for tier in TIERS {
        for (count, unit) in (1..=MOST).flat_map(|count| [(count, 64), (count, 256)]) {
            let of = |mode| Pool { roles: roles.clone(), tier: Some(tier), count, unit, mode };
            if count == 1 && unit > 64 {
                continue;
            }
            all.push(of(CacheMode::None));
            if !group.contains(&Role::Log) {
                all.push(of(CacheMode::ReadOnly));
            }
        }
    }
    if group == [Role::Tempdb] {
        all.push(Pool { roles, tier: None, count: 0, unit: 64, mode: CacheMode::None });
    }
    all
}

fn text(machine: &str, pools: &[Pool]) -> String {
    let mut text = format!("edition = \"small\"\nhost = {{ size = \"{machine}\" }}\n");
    for (at, pool) in pools.iter().enumerate() {
        let cache = if pool.mode == CacheMode::None { "none" } else { "read-only" };
        let unit = pool.unit;
        text += &match (pool.tier, pool.count) {
            (None, _) => format!("[[volume]]\nname = \"p{at}\"\nplace = \"local\"\n"),
            (Some(tier), 1) => {
                format!("[[volume]]\nname = \"p{at}\"\ntier = \"{tier}\"\ncache = \"{cache}\"\n")
            }
            (Some(tier), count) => format!(
                "[[stripe]]\nname = \"p{at}\"\nunit = \"{unit} KiB\"\nvolumes = {{ count = {count}, tier = \"{tier}\", cache = \"{cache}\" }}\n"
            ),
        };
    }
    text
}

/// Load on a limit: requests per second, each with its operations and bytes.
pub(crate) type Pieces = (f64, f64, f64);

/// A role's requests as they come to a disk; they are powers of two, so that the borders of units
/// cut them where they cut.
pub(crate) fn pieces(need: &RoleNeed, unit: Option<u64>, is_peak_of_bytes: bool) -> Vec<Pieces> {
    let of_operations = need.iops * need.request;
    if is_peak_of_bytes && need.throughput > of_operations {
        let once = unit.unwrap_or(u64::MAX).min(256 << 10) as f64;
        return vec![((need.throughput as f64 / once).ceil(), 1.0, once)];
    }
    let mut found = Vec::new();
    let mut left = need.request;
    while left > 0 {
        let part = left.min(unit.unwrap_or(u64::MAX));
        found.push((need.iops as f64, part.div_ceil(256 << 10) as f64, part as f64));
        left -= part;
    }
    found
}

/// Returns whether a compiled layout meets a need.
fn meets(need: &Need, pools: &[Pool], layout: &Layout) -> bool {
    let host = &layout.hosts[0];
    let cached = pools.iter().filter(|pool| pool.mode != CacheMode::None);
    let sets: u64 = cached
        .flat_map(|pool| &pool.roles)
        .map(|role| need.role(*role).expect("a role"))
        .map(|own| own.working_set.unwrap_or(own.size).get())
        .sum();
    let capacity = host.spec.cache.as_ref().map_or(0, |cache| cache.capacity.get());
    let sharing = pools.iter().filter(|pool| pool.mode != CacheMode::None);
    if sharing.map(|pool| pool.roles.len()).sum::<usize>() > 1 && capacity < sets {
        return false;
    }
    let hits = if sets == 0 { 0.0 } else { (capacity as f64 / sets as f64).min(1.0) };
    [false, true].into_iter().all(|is_peak_of_bytes| {
        let (mut uncached, mut local) = (Vec::new(), Vec::new());
        for (at, pool) in pools.iter().enumerate() {
            let own = || pool.roles.iter().map(|role| need.role(*role).expect("a role"));
            // A role without a working set cannot use a cache.
            if pool.mode != CacheMode::None && own().any(|own| own.working_set.is_none()) {
                return false;
            }
            let export = host.exports.iter().find(|export| export.name == format!("p{at}"));
            let export = export.expect("an export");
            if own().map(|own| own.size.get()).sum::<u64>() > export.size.get() {
                return false;
            }
            let volume = &host.spec.volumes[export.volumes[0].0];
            let mut disk = Vec::new();
            for own in own() {
                let reads = own.reads as f64 / 1e6;
                let served = if pool.mode == CacheMode::None { 0.0 } else { reads * hits };
                let all = pieces(own, export.unit.map(|unit| unit.get()), is_peak_of_bytes);
                disk.extend(all.iter().map(|own| (own.0 * (1.0 - served), own.1, own.2)));
                if volume.place == Place::Local || pool.mode != CacheMode::None {
                    local.extend(all);
                }
            }
            if !holds(&volume.limits.gate, &disk, export.volumes.len() as f64) {
                return false;
            }
            if volume.place == Place::Remote {
                uncached.extend(disk);
            }
        }
        holds(&host.spec.uncached, &uncached, 1.0) && holds(&host.spec.cached, &local, 1.0)
    })
}

/// Returns whether `count` equal gates carry the pieces.
fn holds(gate: &GateLimits, pieces: &[Pieces], count: f64) -> bool {
    let is_within = |limit: Option<weir_core::Limit>, asked: f64| {
        limit.is_none_or(|limit| asked <= count * limit.rate.get() as f64 * (1.0 + 1e-12))
    };
    is_within(gate.iops, pieces.iter().map(|own| own.0 * own.1).sum())
        && is_within(gate.bytes, pieces.iter().map(|own| own.0 * own.2).sum())
}

#[test]
fn no_layout_is_cheaper_than_the_plan() {
    let mut rng = Rng::from_state(600_001);
    let structures: [(&[&str], &[Role], u64); 4] = [
        (&["data"], &[Role::Data], 700),
        (&["data", "log"], &[Role::Data, Role::Log], 700),
        (&["data", "tempdb"], &[Role::Data, Role::Tempdb], 500),
        (&["data", "log", "tempdb"], &[Role::Data, Role::Log, Role::Tempdb], 100),
    ];
    assert_eq!(structures.iter().map(|(.., needs)| needs).sum::<u64>(), NEEDS);
    let (mut met, mut unmet) = (0, 0);
    for (names, roles, needs) in structures {
        let mut catalog = Catalog::builtin();
        catalog.add(edition(&mut rng)).unwrap();
        let all = layouts(roles, &catalog);
        let edition = catalog.edition("small").unwrap();
        let price: HashMap<&str, Money> = edition
            .prices()
            .take(1)
            .flat_map(|list| &list.rows)
            .map(|row| match &row.item {
                weir_catalog::price::Item::Tier(name) | weir_catalog::price::Item::Host(name) => {
                    (name.as_str(), row.month)
                }
                weir_catalog::price::Item::Unit { .. } => unreachable!("none is sold by the unit"),
            })
            .collect();
        for _ in 0..needs {
            let text = need_text(&mut rng, names, 30_000);
            let (need, outcome) = planned(&text, &catalog, "small").unwrap();
            let meeting = all.iter().filter(|(_, pools, layout)| meets(&need, pools, layout));
            let priced = meeting.map(|(machine, pools, _)| {
                let disks =
                    pools.iter().filter_map(|pool| Some(price[pool.tier?].times(pool.count)));
                (pools.iter().map(|pool| pool.count).sum(), price[machine] + disks.sum())
            });
            match (&outcome, taken(priced)) {
                (Outcome::Met(answer), Some(best)) => {
                    let own = (answer.plan.disks, answer.plan.cost.month);
                    assert_eq!(own, best, "{}\n{text}", answer.plan.title);
                    met += 1;
                }
                (Outcome::NotMet(_), None) => unmet += 1,
                (outcome, best) => panic!("{best:?}, but {outcome:#?}\n{text}"),
            }
        }
    }
    assert!(met > 800 && unmet > 100, "{met} met, {unmet} not");
}
