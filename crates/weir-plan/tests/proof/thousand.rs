//! A cloud of a thousand machines: the plan is as cheap as the best plan of any machine alone, and most
//! machines are excluded before any disks are picked for them.

use crate::world::need_text;
use std::fmt::Write as _;
use weir_catalog::{Catalog, Edition, PriceBook};
use weir_plan::need::{Need, NeedFile, Wishes};
use weir_plan::{Outcome, Plan, PlanError, Question, plan, plan_alone};
use weir_random::Rng;
use weir_units::Money;

/// Number of machines.
const MACHINES: u64 = 1_000;
/// One machine in so many has no price.
const UNPRICED: u64 = 20;
/// Number of needs.
const NEEDS: u64 = 6;

const TIERS: [(&str, u64, u64, u64, u64); 6] = [
    ("F1", 128, 500, 100, 20),
    ("F2", 256, 1_100, 125, 38),
    ("F3", 512, 2_300, 150, 73),
    ("F4", 1_024, 5_000, 200, 135),
    ("F5", 2_048, 7_500, 250, 259),
    ("F6", 4_096, 16_000, 500, 495),
];

/// The rows of the machines, and of their prices. Limits, caches and prices are by chance.
fn machines(rng: &mut Rng) -> (String, String) {
    let (mut rows, mut prices) = (String::new(), String::new());
    for at in 0..MACHINES {
        let vcpus = *rng.one(&[2, 4, 8, 16, 32, 48, 64, 96]);
        let (iops, mb) = (vcpus * rng.within(400, 1_600), vcpus * rng.within(10, 40));
        let (more, much) = (iops + rng.within(0, iops), mb + rng.within(0, mb));
        let _ = write!(
            rows,
            "{{ name = \"m{at}\", vcpus = {vcpus}, memory = \"{} GiB\", max_data_disks = {}, \
             uncached = {{ iops = {iops}, throughput = \"{mb} MB/s\" }}, \
             cached = {{ iops = {}, throughput = \"{} MB/s\" }}",
            vcpus * rng.within(2, 8),
            (vcpus * 2).min(64),
            iops * 2,
            mb * 2
        );
        if rng.chance(60) {
            let _ = write!(rows, ", cache = \"{} GiB\"", vcpus * rng.within(10, 30));
        }
        if rng.chance(50) {
            let _ = write!(rows, ", temp = {{ size = \"{} GiB\" }}", vcpus * rng.within(5, 40));
        }
        if rng.chance(50) {
            let _ = write!(rows, ", v2 = {{ iops = {more}, throughput = \"{much} MB/s\" }}");
        }
        if rng.chance(15) {
            rows += ", takes = [\"fast\"]";
        }
        rows += " },\n";
        if at % UNPRICED != 0 {
            let cents = vcpus * rng.within(2_500, 6_000);
            let (whole, cents) = (cents / 100, cents % 100);
            let _ = writeln!(prices, "{{ host = \"m{at}\", month = \"{whole}.{cents:02}\" }},");
        }
    }
    (rows, prices)
}

/// A large cloud.
fn edition(rng: &mut Rng) -> Edition {
    let (rows, mut prices) = machines(rng);
    let mut tiers = String::new();
    for (name, gib, iops, mb, month) in TIERS {
        let _ = writeln!(
            tiers,
            "{{ name = \"{name}\", size = \"{gib} GiB\", iops = {iops}, throughput = \"{mb} MB/s\" }},"
        );
        let _ = writeln!(prices, "{{ tier = \"{name}\", month = \"{month}\" }},");
    }
    for (per, month) in [("GiB", "0.081"), ("IOPS", "0.0051"), ("MB/s", "0.041")] {
        let _ = writeln!(prices, "{{ of = \"bought\", per = \"{per}\", month = \"{month}\" }},");
    }
    let cite = "source = \"made up\"\nas_of = \"2026-11-25\"\n";
    let quantiles = "{ p0 = \"1 ms\", p50 = \"2 ms\", p100 = \"20 ms\" }";
    let counts = [
        ("none", "read-miss", [true, true, false]),
        ("none", "write", [true, true, false]),
        ("read-only", "read-hit", [false, false, true]),
        ("read-only", "read-miss", [true, true, true]),
        ("read-only", "write", [true, true, true]),
        ("read-write", "read-hit", [false, false, true]),
        ("read-write", "read-miss", [true, true, true]),
        ("read-write", "write", [false, false, true]),
        ("read-write", "flush", [true, true, false]),
    ];
    let mut cache = String::new();
    for (mode, op, [disk, uncached, cached]) in counts {
        let _ = writeln!(
            cache,
            "{{ mode = \"{mode}\", op = \"{op}\", disk = {disk}, uncached = {uncached}, \
             cached = {cached} }},"
        );
    }
    let text = format!(
        "name = \"large\"\ntitle = \"A large cloud\"\nas_of = \"now\"\nscope = \"tests\"\n\
         [io_unit]\nsize = \"256 KiB\"\n{cite}\
         [[tier_set]]\nname = \"fast\"\nfamily = \"fast\"\n{cite}rows = [\n{tiers}]\n\
         [[provisioned]]\nfamily = \"bought\"\nmin_size = \"1 GiB\"\nmax_size = \"65536 GiB\"\n\
         size_step = \"1 GiB\"\nminimum = {{ iops = 3000, throughput = \"125 MB/s\" }}\n\
         minimum_included = true\nmaximum = {{ iops = 80000, throughput = \"1200 MB/s\" }}\n\
         iops_per_gib = 500\nthroughput_per_iops = \"250 KB/s\"\n{cite}\
         [[series]]\nname = \"m\"\n{cite}rows = [\n{rows}]\n\
         [host_cache]\nos_disk_default = \"none\"\ndata_disk_default = \"none\"\n\
         max_disk_exclusive = \"4 TiB\"\n{cite}rows = [\n{cache}]\n\
         [[latency]]\nname = \"remote\"\nfamilies = [\"fast\", \"bought\", \"host-cache\", \"local-ssd\"]\n\
         basis = \"assumed\"\nreason = \"a test\"\n{cite}read = {quantiles}\nwrite = {quantiles}\n\
         [[price]]\nregion = \"here\"\ncurrency = \"EUR\"\n{cite}rows = [\n{prices}]\n",
    );
    Edition::from_toml("large.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Asks for the plan on all machines, or on one of them.
fn ask<T>(
    catalog: &Catalog,
    need: &Need,
    host: Option<&str>,
    answer: impl Fn(&Question<'_>) -> Result<T, PlanError>,
) -> T {
    let edition = catalog.edition("large").expect("an edition");
    let book = PriceBook::of(edition.prices(), None, None, None).expect("prices");
    let wishes = Wishes { host: host.map(str::to_owned), ..Wishes::default() };
    let question = Question { catalog, edition, prices: book.as_ref(), need, wishes: &wishes };
    answer(&question).expect("a question")
}

/// Returns the lowest price, which the plan may exceed by less than 1 % for fewer disks.
fn lowest(plan: &Plan) -> Money {
    plan.passed_over.as_ref().map_or(plan.cost.month, |own| own.cost.month)
}

#[test]
fn a_plan_among_a_thousand_machines_is_the_cheapest_of_all() {
    let mut rng = Rng::from_state(7_001);
    let mut catalog = Catalog::empty();
    catalog.add(edition(&mut rng)).expect("an edition");
    let machines: Vec<String> = (0..MACHINES).map(|at| format!("m{at}")).collect();
    let structures: [&[&str]; 3] = [&["data"], &["data", "log"], &["data", "log", "tempdb"]];
    let mut met = 0;
    for at in 0..NEEDS {
        let roles = structures[usize::try_from(at % 3).expect("small")];
        let text = need_text(&mut rng, roles, 40_000);
        let (need, _) =
            NeedFile::read("need.toml", &text).and_then(|own| own.need()).expect("a need");
        let Outcome::Met(answer) = ask(&catalog, &need, None, plan) else { continue };
        met += 1;
        // A thousand machines in every arrangement would be many more.
        assert!(answer.compared < MACHINES * 8, "{} layouts compared\n{text}", answer.compared);
        let own = lowest(&answer.plan);
        let (mut least, mut unpriced) = (None, Vec::new());
        for name in &machines {
            let Some(alone) = ask(&catalog, &need, Some(name), plan_alone) else { continue };
            let month = lowest(&alone);
            match alone.cost.unpriced {
                0 => least = Some(least.map_or(month, |least: Money| least.min(month))),
                _ if month < answer.plan.cost.month => unpriced.push(name.clone()),
                _ => {}
            }
        }
        assert_eq!(Some(own), least, "{}\n{text}", answer.plan.title);
        assert!(answer.plan.cost.month.micros() * 100 <= own.micros() * 101);
        let mut told: Vec<String> = answer.unpriced.iter().map(|own| own.host.clone()).collect();
        told.sort();
        unpriced.sort();
        assert_eq!(told, unpriced, "{text}");
    }
    assert!(met >= 4, "{met} met");
}
