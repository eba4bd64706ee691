//! Every set of disks of a small cloud, with every number of stripes and size of transfers, simulated
//! by the texts that a person would write, against the plan.

use weir_catalog::{Catalog, Edition, PriceBook};
use weir_layout::Layout;
use weir_pipeline::Description;
use weir_plan::backup::{
    Base, Compression, MOST_STRIPES, Outcome, Question, STRIPES, TRANSFERS, plan,
};
use weir_random::Rng;
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Bytes, Instant, Money, Span};

/// Number of layouts.
const LAYOUTS: u64 = 500;
/// The most target disks.
const MOST: u64 = 4;
const TIERS: [&str; 3] = ["F1", "F2", "F3"];

/// A small cloud whose prices, limits and latencies are by chance.
fn edition(rng: &mut Rng) -> (Edition, [Money; 3]) {
    let mut tiers = String::new();
    let mut prices = String::new();
    let mut months = [Money::ZERO; 3];
    for (at, (tier, rate)) in TIERS.iter().zip([50, 110, 230]).enumerate() {
        let rate = rate + rng.within(0, 20);
        let iops = rng.within(300, 3_000);
        let size = 100 << at;
        tiers += &format!(
            "{{ name = \"{tier}\", size = \"{size} GiB\", iops = {iops}, throughput = \"{rate} MB/s\" }},\n"
        );
        let cents = rng.within(300, 3_000 * (at as u64 + 1));
        months[at] = Money::from_micros(cents * 10_000);
        prices +=
            &format!("{{ tier = \"{tier}\", month = \"{}.{:02}\" }},\n", cents / 100, cents % 100);
    }
    let cite = "source = \"made up\"\nas_of = \"2026-11-22\"\n";
    let median = rng.within(1, 12);
    let quantiles = format!(
        "{{ p0 = \"{} us\", p50 = \"{median} ms\", p100 = \"{} ms\" }}",
        median * 600,
        median * 3
    );
    let host = rng.within(150, 900);
    let text = format!(
        "name = \"small\"\ntitle = \"A small cloud\"\nas_of = \"now\"\nscope = \"tests\"\n\
         [io_unit]\nsize = \"256 KiB\"\n{cite}\
         [[tier_set]]\nname = \"fast\"\nfamily = \"fast\"\n{cite}rows = [\n{tiers}]\n\
         [[series]]\nname = \"m\"\n{cite}rows = [{{ name = \"m\", vcpus = 4, memory = \"16 GiB\", max_data_disks = 16, \
         uncached = {{ iops = 20000, throughput = \"{host} MB/s\" }} }}]\n\
         [[latency]]\nname = \"remote\"\nfamilies = [\"fast\", \"local-ssd\"]\nbasis = \"assumed\"\nreason = \"a test\"\n{cite}\
         read = {quantiles}\nwrite = {quantiles}\n\
         [[price]]\nregion = \"here\"\ncurrency = \"EUR\"\n{cite}rows = [\n{prices}]\n"
    );
    let edition = Edition::from_toml("small.toml", &text);
    (edition.unwrap_or_else(|error| panic!("{error}\n{text}")), months)
}

/// A case: sources, their size, compression and the window.
struct Case {
    base: String,
    sources: Vec<String>,
    readers: u32,
    size: Bytes,
    compression: Option<Compression>,
    within: Span,
}

fn case(rng: &mut Rng) -> Case {
    let mut base = "edition = \"small\"\nhost = { size = \"m\" }\n".to_owned();
    let count = rng.within(1, 3);
    let mut sources = Vec::new();
    for at in 0..count {
        let tier = rng.one(&TIERS);
        base += &match rng.within(1, 3) {
            1 => format!("[[volume]]\nname = \"s{at}\"\ntier = \"{tier}\"\n"),
            columns => format!(
                "[[stripe]]\nname = \"s{at}\"\nunit = \"64 KiB\"\nvolumes = {{ count = {columns}, tier = \"{tier}\" }}\n"
            ),
        };
        sources.push(format!("s{at}"));
    }
    let size = Bytes::mib(rng.within(48, 160));
    let compression = rng.chance(30).then(|| Compression {
        ratio: rng.within(20, 90) as f64 / 100.0,
        rate: Bytes::mib(rng.within(50, 800)),
        threads: 2,
    });
    // About the duration on a machine of 300 MB/s.
    let within = Span::from_micros(size.get() / 150 * rng.within(20, 250) / 100);
    Case { base, sources, readers: *rng.one(&[1, 2, 3]), size, compression, within }
}

/// The duration of a backup by the texts of a layout and of its description.
pub(crate) fn simulated(catalog: &Catalog, layout: &str, backup: &str) -> Span {
    let layout = Layout::parse("layout.toml", layout, catalog).expect("a layout");
    let backups = [Description::parse("backup.toml", backup).expect("a backup")];
    let options = OltpOptions { seed: 1, backups: &backups, ..OltpOptions::default() };
    let mut simulation = OltpSimulation::new(&layout, &[], &options).expect("it fits");
    assert_eq!(simulation.run_until(Instant::FAR), None);
    let seconds = simulation.report().backups[0].elapsed_s;
    assert!(simulation.report().backups[0].is_complete);
    Span::from_nanos(format!("{:.0}", seconds * 1e9).parse().expect("nanoseconds"))
}

fn names(all: &[String]) -> String {
    all.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Returns whether any stripes and transfers on `count` disks of a tier meet the window.
fn meets(case: &Case, catalog: &Catalog, tier: &str, count: u64) -> bool {
    let mut layout = case.base.clone();
    let mut targets = Vec::new();
    for at in 0..count {
        layout += &format!("[[volume]]\nname = \"t{at}\"\ntier = \"{tier}\"\n");
        targets.push(format!("t{at}"));
    }
    for stripes in STRIPES.map(|own| own * count).into_iter().filter(|own| *own <= MOST_STRIPES) {
        for transfer in TRANSFERS {
            let mut backup = format!(
                "[backup]\nsources = [{}]\nto = [{}]\nstripes = {stripes}\nreaders = {}\nsize = \"{} B\"\nmax_transfer_size = \"{} B\"\n",
                names(&case.sources),
                names(&targets),
                case.readers,
                case.size.get(),
                transfer.get()
            );
            if let Some(own) = &case.compression {
                backup += &format!(
                    "compression = {{ ratio = {:?}, rate = \"{} B\", threads = {} }}\n",
                    own.ratio,
                    own.rate.get(),
                    own.threads
                );
            }
            if simulated(catalog, &layout, &backup) <= case.within {
                return true;
            }
        }
    }
    false
}

#[test]
fn no_cheaper_disks_meet_the_window() {
    let mut rng = Rng::from_state(220_004);
    let (mut met, mut unmet, mut beaten) = (0, 0, 0);
    for number in 0..LAYOUTS {
        let mut catalog = Catalog::builtin();
        let (edition, months) = edition(&mut rng);
        catalog.add(edition).expect("an edition");
        let case = case(&mut rng);
        let edition = catalog.edition("small").expect("it was added");
        let book = PriceBook::of(edition.prices(), None, None, None).expect("prices");
        let question = Question {
            catalog: &catalog,
            edition,
            prices: book.as_ref(),
            base: Base {
                name: "layout.toml".to_owned(),
                text: case.base.clone(),
                is_assumed: false,
            },
            sources: case.sources.clone(),
            readers: case.readers,
            size: case.size,
            within: case.within,
            setup: Span::ZERO,
            compression: case.compression,
            families: Vec::new(),
            limit: None,
            max_disks: Some(MOST),
            latency: None,
            beside: None,
        };
        let outcome = plan(&question).expect("a plan");
        let price = |at: usize, count: u64| months[at].times(count);
        let bound = match &outcome {
            Outcome::Met(answer) => {
                let own = &answer.plan;
                let took = simulated(&catalog, &own.layout, &own.backup);
                assert!(took <= case.within && took == own.duration, "{number}: {took} {own:?}");
                met += 1;
                Some(own.cost.month)
            }
            Outcome::NotMet(shortest) => {
                let own = &shortest.fastest;
                assert!(own.duration > case.within, "{number}: {own:?}");
                assert_eq!(simulated(&catalog, &own.layout, &own.backup), own.duration);
                unmet += 1;
                None
            }
        };
        for (at, tier) in TIERS.iter().enumerate() {
            for count in 1..=MOST {
                // Within 1 % of the cheapest price fewer disks come first.
                let own = u128::from(price(at, count).micros()) * 101;
                let is_cheaper =
                    bound.is_none_or(|bound: Money| own < u128::from(bound.micros()) * 100);
                beaten += u64::from(is_cheaper && bound.is_some());
                let is_missed = is_cheaper && meets(&case, &catalog, tier, count);
                assert!(!is_missed, "{number}: {count} x {tier} is cheaper than {outcome:#?}");
            }
        }
    }
    assert!(met > 200 && unmet > 100, "{met} met, {unmet} not");
    // Most plans had cheaper disks to reject.
    assert!(beaten > 150, "{beaten} sets of disks are cheaper than their plans");
}
