//! Disks whose limits are bought or shared, and services with one store: every size and every rate
//! that there is, on a small cloud, against the plan.

use crate::exhaustive::{Pieces, pieces};
use crate::world::{need_text, planned, taken};
use weir_catalog::{Catalog, Edition};
use weir_plan::Outcome;
use weir_plan::need::Need;
use weir_random::Rng;
use weir_units::Money;

/// Number of needs for each of the four: machines, two services, disks with shared limits.
const NEEDS: u64 = 150;

/// The machines: vCPUs, operations and MB/s.
const MACHINES: [(&str, u64, u64); 3] = [("a", 1_500, 60), ("b", 4_000, 130), ("c", 9_000, 300)];

/// Prices, in thousandths.
#[derive(Debug, Clone, Copy)]
struct Prices {
    machines: [u64; 3],
    gib: u64,
    iops: u64,
    mib: u64,
    /// The price of each operation above 500, for disks whose throughput follows.
    iops_above: u64,
    tier: u64,
    pools: [u64; 2],
}

impl Prices {
    fn of(rng: &mut Rng) -> Self {
        Self {
            machines: [(); 3].map(|()| rng.within(20, 90) * 1_000),
            gib: rng.within(20, 300),
            iops: rng.within(1, 60),
            mib: rng.within(10, 900),
            iops_above: rng.within(1, 60),
            tier: rng.within(20, 300),
            pools: [(); 2].map(|()| rng.within(20, 300)),
        }
    }
}

/// In the unit of money, millionths.
fn money(thousandths: u64) -> Money {
    Money::from_micros(thousandths * 1_000)
}

fn in_words(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

fn edition(prices: &Prices) -> Edition {
    let cite = "source = \"made up\"\nas_of = \"2026-11-22\"\n";
    let hosts = |prefix: &str, more: &str| -> String {
        MACHINES.into_iter().map(|(name, iops, mb): (&str, u64, u64)| {
            format!(
                "{{ name = \"{prefix}{name}\", vcpus = 2, memory = \"8 GiB\", uncached = {{ iops = {iops}, throughput = \"{mb} MB/s\" }}{more} }},\n"
            )
        }).collect()
    };
    let pools = ", pools = { wide = { iops = 3000, throughput = \"90 MiB/s\" }, fast = { iops = 5000, throughput = \"120 MiB/s\" } }";
    let quantiles = "{ p0 = \"1 ms\", p50 = \"2 ms\", p100 = \"20 ms\" }";
    let text = [
        "name = \"small\"\ntitle = \"A small cloud\"\nas_of = \"now\"\nscope = \"tests\"\n",
        &format!("[io_unit]\nsize = \"256 KiB\"\n{cite}"),
        &format!(
            "[[tier_set]]\nname = \"steps\"\nfamily = \"steps\"\n{cite}rows = [\n\
             {{ name = \"S1\", size = \"100 GiB\", iops = 500, throughput = \"30 MB/s\" }},\n\
             {{ name = \"S2\", size = \"400 GiB\", iops = 2000, throughput = \"90 MB/s\" }},\n\
             {{ name = \"S3\", size = \"900 GiB\", iops = 6000, throughput = \"200 MB/s\" }},\n]\n"
        ),
        &format!(
            "[[provisioned]]\nfamily = \"flex\"\nmin_size = \"1 GiB\"\nmax_size = \"400 GiB\"\n\
             size_step = \"1 GiB\"\nio_unit = \"256 KiB\"\n\
             minimum = {{ iops = 200, throughput = \"20 MiB/s\" }}\nminimum_included = true\n\
             maximum = {{ iops = 2000, throughput = \"80 MiB/s\" }}\niops_per_gib = 20\n\
             throughput_per_iops = \"256 KiB/s\"\nthroughput_step = \"1 MiB/s\"\n{cite}"
        ),
        &format!(
            "[[provisioned]]\nfamily = \"follow\"\nmin_size = \"4 GiB\"\nmax_size = \"400 GiB\"\n\
             size_step = \"1 GiB\"\nio_unit = \"256 KiB\"\n\
             minimum = {{ iops = 100, throughput = \"10 MiB/s\" }}\nminimum_included = false\n\
             maximum = {{ iops = 3000, throughput = \"100 MiB/s\" }}\niops_per_gib = 50\n\
             throughput_per_iops = \"128 KiB/s\"\nthroughput_follows = true\n\
             bend = {{ throughput = \"60 MiB/s\", throughput_per_iops = \"32 KiB/s\" }}\n{cite}"
        ),
        &format!(
            "[[pooled]]\nfamily = \"wide\"\nbase = {{ iops = 300, throughput = \"10 MiB/s\" }}\n\
             per_100_gib = {{ iops = 150, throughput = \"7 MiB/s\" }}\n{cite}\
             [[pooled]]\nfamily = \"fast\"\nper_100_gib = {{ iops = 700, throughput = \"9 MiB/s\" }}\n{cite}"
        ),
        &format!(
            "[[store]]\nname = \"kept\"\nservice = \"rds\"\nfamily = \"flex\"\n{cite}rows = [\n\
             {{ engines = [\"postgresql\"], min_size = \"10 GiB\", max_size = \"99 GiB\", volumes = 1, minimum = {{ iops = 200, throughput = \"20 MiB/s\" }} }},\n\
             {{ engines = [\"postgresql\"], min_size = \"100 GiB\", max_size = \"1200 GiB\", volumes = 4, minimum = {{ iops = 800, throughput = \"80 MiB/s\" }}, maximum = {{ iops = 4000, throughput = \"240 MiB/s\" }} }},\n]\n\
             [[store]]\nname = \"own\"\nservice = \"postgres\"\nfamily = \"flex\"\n{cite}rows = [\n\
             {{ min_size = \"10 GiB\", max_size = \"400 GiB\", volumes = 1, minimum = {{ iops = 300, throughput = \"30 MiB/s\" }}, maximum = {{ iops = 2000, throughput = \"80 MiB/s\" }} }},\n]\n"
        ),
        &format!("[[series]]\nname = \"m\"\n{cite}rows = [{}]\n", hosts("", pools)),
        &format!("[[series]]\nname = \"r\"\nservice = \"rds\"\n{cite}rows = [{}]\n", hosts("r", "")),
        &format!("[[series]]\nname = \"p\"\nservice = \"postgres\"\n{cite}rows = [{}]\n", hosts("p", "")),
        &format!(
            "[[latency]]\nname = \"all\"\nfamilies = [\"steps\", \"flex\", \"follow\", \"wide\", \"fast\", \"local-ssd\"]\n\
             basis = \"assumed\"\nreason = \"a test\"\n{cite}read = {quantiles}\nwrite = {quantiles}\n"
        ),
        &price_rows(prices),
    ]
    .concat();
    Edition::from_toml("small.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The price list of the small cloud.
fn price_rows(prices: &Prices) -> String {
    let cite = "source = \"made up\"\nas_of = \"2026-11-22\"\n";
    let per_host = |prefix: &str| -> String {
        MACHINES
            .iter()
            .zip(prices.machines)
            .map(|((name, ..), month): (&(&str, u64, u64), u64)| {
                format!("{{ host = \"{prefix}{name}\", month = \"{}\" }},\n", in_words(month))
            })
            .collect()
    };
    let [gib, iops, mib, above] =
        [prices.gib, prices.iops, prices.mib, prices.iops_above].map(in_words);
    let sold = |of: &str, free: (&str, &str)| {
        format!(
            "{{ of = \"{of}\", per = \"GiB\", month = \"{gib}\" }},\n\
             {{ of = \"{of}\", per = \"IOPS\", {}month = \"{iops}\" }},\n\
             {{ of = \"{of}\", per = \"MiB/s\", {}month = \"{mib}\" }},\n",
            free.0, free.1
        )
    };
    let by_gib = |of: &str, month: u64| {
        format!("{{ of = \"{of}\", per = \"GiB\", month = \"{}\" }},\n", in_words(month))
    };
    [
        &*format!("[[price]]\nregion = \"here\"\ncurrency = \"EUR\"\n{cite}rows = [\n"),
        &[per_host(""), per_host("r"), per_host("p")].concat(),
        &sold("flex", ("free = 200, ", "free = 20, ")),
        &[sold("kept", ("", "")), sold("own", ("", ""))].concat(),
        &format!(
            "{{ of = \"follow\", per = \"GiB\", month = \"{gib}\" }},\n\
             {{ of = \"follow\", per = \"IOPS\", month = \"{iops}\", steps = [{{ above = 500, month = \"{above}\" }}] }},\n"
        ),
        &by_gib("wide", prices.pools[0]),
        &by_gib("fast", prices.pools[1]),
        &by_gib("steps", prices.tier),
        "]\n",
    ]
    .concat()
}

/// Returns the load on the disks at both peaks.
fn peaks(need: &Need, unit: Option<u64>) -> [Vec<Pieces>; 2] {
    [false, true]
        .map(|of_bytes| need.roles.iter().flat_map(|own| pieces(own, unit, of_bytes)).collect())
}

/// Returns whether `count` limits of these operations and bytes carry all pieces.
fn holds(peaks: &[Vec<Pieces>; 2], iops: f64, bytes: f64, count: u64) -> bool {
    peaks.iter().all(|pieces| {
        let most = count as f64 * (1.0 + 1e-12);
        pieces.iter().map(|own| own.0 * own.1).sum::<f64>() <= iops * most
            && pieces.iter().map(|own| own.0 * own.2).sum::<f64>() <= bytes * most
    })
}

const MIB: f64 = 1_048_576.0;

fn gib_of(need: &Need) -> u64 {
    need.roles.iter().map(|own| own.size.get() >> 30).sum()
}

/// The cheapest disks like `flex` by every throughput and every number of operations: `count` of at
/// least so much, of which so much is included. In thousandths.
fn cheapest_flex(
    need: &Need,
    prices: &Prices,
    count: u64,
    unit: Option<u64>,
    iops: (u64, u64),
    mib: (u64, u64),
    gib: (u64, u64),
) -> Option<u64> {
    let peaks = peaks(need, unit);
    let mut best = None;
    for rate in mib.0..=mib.1 {
        // A quarter of a MiB/s for each operation, but for what comes anyway.
        let allowed = |own: u64| own * 256 / 1024 >= rate || rate == mib.0;
        let fits =
            |own: &u64| allowed(*own) && holds(&peaks, *own as f64, rate as f64 * MIB, count);
        let Some(own) = (iops.0..=iops.1).find(fits) else { continue };
        let of_iops = if own > iops.0 { own.div_ceil(20) } else { 0 };
        let size = gib_of(need).div_ceil(count).max(of_iops).max(gib.0);
        if size <= gib.1 {
            let each =
                size * prices.gib + (own - iops.0) * prices.iops + (rate - mib.0) * prices.mib;
            best = Some(best.map_or(each * count, |best: u64| best.min(each * count)));
        }
    }
    best
}

fn cheapest_follow(need: &Need, prices: &Prices, count: u64, unit: Option<u64>) -> Option<u64> {
    let peaks = peaks(need, unit);
    let kib = |own: u64| (own * 128).min((60 << 10).max(own * 32)).clamp(10 << 10, 100 << 10);
    let own =
        (100..=3_000).find(|own| holds(&peaks, *own as f64, kib(*own) as f64 * 1024.0, count))?;
    let of_iops = if own > 100 { own.div_ceil(50) } else { 0 };
    let size = gib_of(need).div_ceil(count).max(of_iops).max(4);
    let operations = own.min(500) * prices.iops + own.saturating_sub(500) * prices.iops_above;
    (size <= 400).then_some((size * prices.gib + operations) * count)
}

/// The cheapest machine that carries the need, in thousandths.
fn machine(need: &Need, prices: &Prices, unit: Option<u64>) -> Option<u64> {
    let peaks = peaks(need, unit);
    let fit = MACHINES
        .iter()
        .zip(prices.machines)
        .filter(|((_, iops, mb), _)| holds(&peaks, *iops as f64, *mb as f64 * 1e6, 1));
    fit.map(|(_, month)| month).min()
}

fn with_machine(
    need: &Need,
    prices: &Prices,
    unit: Option<u64>,
    disks: Option<u64>,
) -> Option<u64> {
    Some(machine(need, prices, unit)? + disks?)
}

/// Compares plans of random needs of a family with what `cheapest` finds.
fn compare(
    seed: u64,
    head: &str,
    roles: &[&str],
    cheapest: impl Fn(&Need, &Prices) -> Option<u64>,
) {
    let mut rng = Rng::from_state(seed);
    let (mut met, mut unmet) = (0, 0);
    let mut catalog = Catalog::builtin();
    let mut prices = Prices::of(&mut rng);
    catalog.add(edition(&prices)).expect("a new edition");
    for n in 0..NEEDS {
        // Other prices now and then.
        if n % 10 == 0 {
            prices = Prices::of(&mut rng);
            catalog = Catalog::builtin();
            catalog.add(edition(&prices)).expect("a new edition");
        }
        let text = format!("{head}{}", need_text(&mut rng, roles, 3_000));
        let (need, outcome) = planned(&text, &catalog, "small").expect("a need");
        match (outcome, cheapest(&need, &prices)) {
            (Outcome::Met(answer), Some(best)) => {
                assert_eq!(answer.plan.cost.unpriced, 0, "{text}");
                let title = &answer.plan.title;
                assert_eq!(answer.plan.cost.month, money(best), "{title}\n{text}\n{prices:?}");
                met += 1;
            }
            (Outcome::NotMet(_), None) => unmet += 1,
            (outcome, best) => panic!("{best:?}, but {outcome:#?}\n{text}\n{prices:?}"),
        }
    }
    assert!(met > 60 && unmet > 0, "{met} met, {unmet} not");
}

#[test]
fn no_cheaper_provisioned_disks_carry_the_need() {
    let head = "families = [\"vm\"]\ndisks = [\"flex\", \"follow\"]\nmax_disks = 3\n";
    compare(800_001, head, &["data"], |need, prices| {
        let ways = (1..=3).flat_map(|count| {
            let units = if count == 1 { vec![None] } else { vec![Some(64 << 10), Some(256 << 10)] };
            units.into_iter().map(move |unit| (count, unit))
        });
        let ways: Vec<(u64, Money)> = ways
            .filter_map(|(count, unit)| {
                let flex =
                    cheapest_flex(need, prices, count, unit, (200, 2_000), (20, 80), (1, 400));
                let follow = cheapest_follow(need, prices, count, unit);
                let month = with_machine(need, prices, unit, flex.into_iter().chain(follow).min())?;
                Some((count, Money::from_micros(month)))
            })
            .collect();
        taken(ways.into_iter()).map(|(_, month)| month.micros())
    });
}

#[test]
fn no_cheaper_striped_store_carries_the_need() {
    compare(810_001, "families = [\"rds\"]\n", &["data", "log"], |need, prices| {
        let small = (gib_of(need) <= 99).then(|| {
            // A limit that cannot be raised is included in full.
            cheapest_flex(need, prices, 1, None, (200, 200), (20, 20), (10, 99))
        });
        let large =
            cheapest_flex(need, prices, 4, Some(256 << 10), (200, 1_000), (20, 60), (25, 300));
        let small = with_machine(need, prices, None, small.flatten());
        let large = with_machine(need, prices, Some(256 << 10), large);
        small.into_iter().chain(large).min()
    });
}

#[test]
fn no_cheaper_postgres_storage_carries_the_need() {
    compare(820_001, "families = [\"postgres\"]\n", &["data", "log"], |need, prices| {
        let peaks = peaks(need, None);
        let tiers = [(100, 500.0, 30e6), (400, 2_000.0, 90e6), (900, 6_000.0, 200e6)]
            .into_iter()
            .filter(|(gib, iops, bytes)| gib_of(need) <= *gib && holds(&peaks, *iops, *bytes, 1));
        let tiers = tiers.map(|(gib, ..)| gib * prices.tier);
        let own = cheapest_flex(need, prices, 1, None, (300, 2_000), (30, 80), (10, 400));
        with_machine(need, prices, None, tiers.chain(own).min())
    });
}

#[test]
fn no_cheaper_shared_disks_carry_the_need() {
    let head = "families = [\"vm\"]\ndisks = [\"wide\", \"fast\"]\n";
    compare(830_001, head, &["data", "log"], |need, prices| {
        let peaks = peaks(need, None);
        // For each pool: the base, the increase per 100 GiB, and the machine's limit, each as
        // operations and bytes.
        let pools: [[[u64; 2]; 3]; 2] = [
            [[300, 10 << 20], [150, 7 << 20], [3_000, 90 << 20]],
            [[0, 0], [700, 9 << 20], [5_000, 120 << 20]],
        ];
        let of = |([base, each, most], price): ([[u64; 2]; 3], u64)| {
            let limit = |base: u64, each: u64, most: u64, gib: u64| {
                (base + each * gib / 100).min(most).max(1) as f64
            };
            let gib = (gib_of(need)..=2_000).find(|gib| {
                let iops = limit(base[0], each[0], most[0], *gib);
                holds(&peaks, iops, limit(base[1], each[1], most[1], *gib), 1)
            })?;
            Some(gib * price)
        };
        let disks = pools.into_iter().zip(prices.pools).filter_map(of).min();
        // The machines have no limit beside that of the pool.
        Some(prices.machines.into_iter().min()? + disks?)
    });
}

/// One of the volumes of an EC2 instance is its root volume.
#[test]
fn a_plan_leaves_a_place_for_the_root_volume() {
    let catalog = Catalog::builtin();
    let disks = |host: &str, iops: u64| {
        let text = format!(
            "host = \"{host}\"\ndisks = [\"gp3\"]\n[data]\nsize = \"1 TiB\"\niops = {iops}\n"
        );
        let (_, outcome) = planned(&text, &catalog, "aws").expect("a need");
        let Outcome::Met(answer) = outcome else { panic!("{text}: no plan") };
        let mut caps = answer.plan.caps.iter();
        let disks = caps.find(|cap| cap.cap == "data disks").expect("a number of disks");
        (disks.used, disks.most)
    };
    assert_eq!(disks("d3.8xlarge", 20_000).1, 2);
    assert_eq!(disks("g5.48xlarge", 20_000).1, 8);
    // The instance takes 32. Each gp3 comes with 3,000 IOPS, so more of them would cost less.
    assert_eq!(disks("c8gb.4xlarge", 120_000), (31, 31));
}
