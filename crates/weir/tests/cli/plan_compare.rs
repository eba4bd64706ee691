//! `weir plan --compare`, and machines without a price.

use crate::common::{Place, run};
use serde_json::Value;

/// A cloud with two disks and these machines: name, IOPS, and price if it has one.
fn cloud(name: &str, currency: &str, machines: &[(&str, u64, Option<u64>)]) -> String {
    let cite = "source = \"made up\"\nas_of = \"2026-11-25\"\n";
    let quantiles = "{ p0 = \"500 us\", p50 = \"900 us\", p100 = \"20 ms\" }";
    let (mut rows, mut prices) = (String::new(), String::new());
    for (machine, iops, month) in machines {
        rows += &format!(
            "{{ name = \"{machine}\", vcpus = 8, memory = \"64 GiB\", max_data_disks = 16, \
             uncached = {{ iops = {iops}, throughput = \"800 MB/s\" }} }},\n"
        );
        if let Some(month) = month {
            prices += &format!("{{ host = \"{machine}\", month = \"{month}\" }},\n");
        }
    }
    format!(
        "name = \"{name}\"\ntitle = \"A cloud\"\nas_of = \"now\"\nscope = \"tests\"\n\
         [io_unit]\nsize = \"256 KiB\"\n{cite}\
         [[tier_set]]\nname = \"fast\"\nfamily = \"fast\"\n{cite}rows = [\n\
         {{ name = \"F1\", size = \"100 GiB\", iops = 1000, throughput = \"50 MB/s\" }},\n\
         {{ name = \"F2\", size = \"1 TiB\", iops = 6000, throughput = \"250 MB/s\" }},\n]\n\
         [[series]]\nname = \"m\"\n{cite}rows = [\n{rows}]\n\
         [[latency]]\nname = \"remote\"\nfamilies = [\"fast\", \"local-ssd\"]\nbasis = \"assumed\"\nreason = \"a test\"\n\
         {cite}read = {quantiles}\nwrite = {quantiles}\n\
         [[price]]\nregion = \"here\"\ncurrency = \"{currency}\"\n{cite}rows = [\n{prices}\
         {{ tier = \"F1\", month = \"20\" }},\n{{ tier = \"F2\", month = \"50\" }},\n]\n"
    )
}

fn place() -> Place {
    let place = Place::new();
    place.file("north.toml", &cloud("north", "EUR", &[("n8", 12_000, Some(100))]));
    let machines = [("s8", 12_000, Some(60)), ("s16", 24_000, None), ("s2", 900, None)];
    place.file("south.toml", &cloud("south", "EUR", &machines));
    place.file("west.toml", &cloud("west", "USD", &[("w8", 12_000, Some(80))]));
    place
}

/// The output of `weir plan` with the clouds in the catalog, which ends with `code`.
fn plan(place: &Place, args: &[&str], code: i32) -> String {
    let catalogs =
        ["--catalog", "north.toml", "--catalog", "south.toml", "--catalog", "west.toml", "plan"];
    let (stdout, stderr, ended) = run(place.weir(&[&catalogs[..], args].concat()));
    assert_eq!(ended, Some(code), "{args:?}: {stdout}{stderr}");
    stdout + &stderr
}

const NEED: [&str; 4] = ["--size", "500GiB", "--iops", "5000"];

fn compare(place: &Place, clouds: &str, more: &[&str], code: i32) -> String {
    plan(place, &[&["--compare", clouds], &NEED[..], more].concat(), code)
}

#[test]
fn the_verdict_comes_first_and_counts_machines_without_a_price() {
    let place = place();
    let text = compare(&place, "north,south", &[], 0);
    // (150 - 110) / 150
    let verdict = "south is cheapest: 110.00 EUR a month, 26 % below north; 1 machine without a price \
                   may be cheaper (south)";
    assert_eq!(
        text.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ").trim_end(),
        verdict,
        "{text}"
    );
    // Prose is not wrapped in a pipe.
    let table = text.lines().filter(|line| line.starts_with(' ') && !line.starts_with("  "));
    assert_eq!(table.clone().count(), 5, "{text}");
    assert!(table.into_iter().all(|line| line.chars().count() <= 80), "{text}");
    // s2 does not carry the need.
    assert!(text.contains("without a price: s16"), "{text}");
    assert!(!text.contains("s2"), "{text}");
    let report: Value =
        serde_json::from_str(&compare(&place, "north,south", &["-o", "json"], 0)).unwrap();
    assert_eq!((&report["is_met"], &report["cheapest"]), (&true.into(), &"south".into()));
    let [north, south] = [0, 1].map(|at| &report["clouds"][at]);
    assert_eq!(south["unpriced_machines"][0]["machine"], "s16");
    assert_eq!(south["unpriced_machines"][0]["month_without_machine"], 50.0);
    let own = &south["cheapest"];
    assert_eq!(
        (&own["month"], &own["iops"], &own["share_of_need"]),
        (&110.0.into(), &5_000.into(), &1.0.into())
    );
    assert_eq!(own["latency_ns"], 900_000);
    let slack = own["slack"].as_f64().unwrap();
    assert!((slack - 1.0 / 6.0).abs() < 1e-4, "{slack}");
    assert_eq!(own["binding_limit"]["cap"], "disk operations");
    assert_eq!(own["verified"][0]["is_met"], true);
    assert!(own["layout"].as_str().unwrap().contains("s8"));
    // 40 / 110 above.
    let above = north["above_cheapest"].as_f64().unwrap();
    assert!((above - 40.0 / 110.0).abs() < 1e-6, "{above}");
    // The machine's limit, by two F2.
    let fastest = north["fastest"]["iops"].as_u64().unwrap();
    assert!((11_990..=12_000).contains(&fastest), "{fastest}");
    let csv = compare(&place, "north,south", &["-o", "csv"], 0);
    assert!(csv.contains("comparison,south,cheapest,5000,110"), "{csv}");
    assert!(csv.contains("unpriced,south,"), "{csv}");
    let markdown = compare(&place, "north,south", &["-o", "markdown"], 0);
    assert_eq!(markdown.lines().next(), Some(format!("**{verdict}**").as_str()), "{markdown}");
}

#[test]
fn a_layout_that_is_cheapest_but_for_its_disks_is_noted() {
    let place = place();
    // Five F1 are 49.90, one F2 is 50.
    let own = cloud("north", "EUR", &[("n8", 12_000, Some(100))]);
    place.file("north.toml", &own.replace("month = \"20\"", "month = \"9.98\""));
    let text = compare(&place, "north,south", &["-o", "markdown"], 0);
    let words =
        "north: 5 disks instead of 1 save 0.10, which is less than 1 %: fewer disks are preferred";
    assert!(text.contains(words) && text.contains("150.00"), "{text}");
    assert!(!text.contains("south: 5 disks"), "{text}");
}

#[test]
fn prices_of_two_currencies_are_not_compared() {
    let place = place();
    let text = compare(&place, "north,west", &["-o", "markdown"], 0);
    let words = "prices are in different currencies, so none is called cheapest: north 150.00 EUR a month, \
                 west 130.00 USD a month";
    assert!(text.contains(words), "{text}");
    let text = compare(&place, "north,west", &["--currency", "USD", "-o", "markdown"], 0);
    assert!(text.contains("north has no prices in USD, so they are in EUR"), "{text}");
    // Where no cloud has the currency, all have another in common and are compared.
    let text = compare(&place, "north,south", &["--currency", "USD", "-o", "markdown"], 0);
    let note = "south has no prices in USD, so they are in EUR";
    assert!(text.contains(note) && text.contains("south is cheapest: 110.00 EUR"), "{text}");
    // A budget is not spent in another currency.
    let more = ["--currency", "USD", "--budget", "190", "-o", "json"];
    let report: Value = serde_json::from_str(&compare(&place, "north,west", &more, 0)).unwrap();
    let [north, west] = [0, 1].map(|at| &report["clouds"][at]);
    assert!(north["fastest"].is_null() && west["fastest"].is_object(), "{report}");
    let note = north["notes"].to_string();
    assert!(note.contains("its prices are in EUR and the budget is in USD"), "{note}");
}

#[test]
fn a_cloud_that_cannot_meet_the_need_says_what_it_can() {
    let place = place();
    let more = ["--iops", "20000", "--size", "500GiB", "-o", "markdown"];
    let text = plan(&place, &[&["--compare", "north,south"], &more[..]].concat(), 0);
    let words = "south meets the need, but prices are missing, so none is called cheapest; north cannot meet \
                 the need";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("without a price: machine s16\n"), "{text}");
    assert!(
        text.contains("cannot meet the need: the most is 60.0 % of its rates, limited by"),
        "{text}"
    );
    assert!(text.contains("feasible with 60 % of the rates"), "{text}");
    let text = plan(&place, &[&["--compare", "north,west"], &more[..]].concat(), 1);
    assert!(text.contains("none of north, west meets the need"), "{text}");
    // A budget that does not pay for the sizes.
    let text = compare(&place, "north", &["--budget", "20", "-o", "markdown"], 1);
    assert!(text.contains("within a budget of "), "{text}");
    let words = "the cheapest layout found costs more than the budget of 20.00 EUR a month";
    assert!(text.contains(words), "{text}");
    // It costs 150.00. Case does not matter, and prices are compared as they are printed.
    for (budget, code) in [("150", 0), ("149.996", 0), ("149.99", 1)] {
        compare(&place, "north", &["--budget", budget, "--currency", "eur"], code);
    }
}

#[test]
fn a_latency_that_is_missed_is_not_called_a_rate() {
    let place = place();
    let need =
        ["--iops", "500", "--size", "100GiB", "--latency", "0.47ms", "--verify", "--reads", "10%"];
    let text = plan(&place, &[&["--compare", "aws", "-o", "markdown"], &need[..]].concat(), 1);
    assert!(text.contains("cannot meet the need in simulation"), "{text}");
    assert!(text.contains("instead of 470 us"), "{text}");
    assert!(!text.contains("the most is"), "{text}");
}

/// West Europe has a price of the size of Premium SSD v2, and none of its operations and throughput.
#[test]
fn disks_without_all_prices_that_may_be_cheaper_are_named() {
    let place = place();
    let need = ["--iops", "1000", "--size", "500GiB"];
    let own = ["--edition", "azure-now", "--region", "westeurope", "-o", "markdown"];
    let text = plan(&place, &[&own[..], &need[..]].concat(), 0);
    let expect = "data on 1 x premium-ssd-v2 of 500 GiB, 3000 IOPS and 125 MB/s, at ";
    assert!(text.contains("may be cheaper: ") && text.contains(expect), "{text}");
    let lacks =
        "without the prices of data: IOPS of 1 premium-ssd-v2; data: MB/s of 1 premium-ssd-v2";
    assert!(text.contains(lacks), "{text}");
    let both = "azure=westeurope,azure-premium-2015";
    let text = plan(&place, &[&["--compare", both, "-o", "markdown"], &need[..]].concat(), 0);
    assert!(text.contains("disks without all prices may be cheaper (azure)"), "{text}");
    // East US has all prices.
    let own = ["--edition", "azure-now", "--region", "East US", "-o", "markdown"];
    let text = plan(&place, &[&own[..], &need[..]].concat(), 0);
    assert!(!text.contains("without the prices of"), "{text}");
}

#[test]
fn regions_of_one_cloud_have_names_of_their_own() {
    let place = place();
    let need = ["--iops", "500", "--size", "100GiB", "-o", "csv"];
    let both = "azure=East US,azure=West Europe";
    let csv = plan(&place, &[&["--compare", both], &need[..]].concat(), 0);
    for name in ["azure in East US", "azure in westeurope"] {
        assert!(csv.contains(&format!("comparison,{name},cheapest")), "{csv}");
    }
}

#[test]
fn what_belongs_to_one_cloud_is_refused() {
    let place = place();
    let check = |args: &[&str], words: &str| {
        let said = compare(&place, "north,south", args, 2);
        assert!(said.contains(words), "{said}");
    };
    check(&["--edition", "aws"], "cannot be used with");
    check(&["--family", "tape"], "no family");
    check(&["--currency", "euro"], "\"euro\" is not a currency code; use three letters");
    let said = compare(&place, "north,north", &[], 2);
    assert!(said.contains("both are north"), "{said}");
    let said = compare(&place, "north=Mars", &[], 2);
    assert!(said.contains("Mars"), "{said}");
    let said = compare(&place, "nroth", &[], 2);
    assert!(said.contains("north"), "{said}");
    place.file("need.toml", "host = \"n8\"\n[data]\nsize = \"500 GiB\"\niops = 5000\n");
    let said = plan(&place, &["--compare", "north,south", "--need", "need.toml"], 2);
    assert!(said.contains("host does not apply to --compare"), "{said}");
}

#[test]
fn machines_without_a_price_are_in_the_headline_of_a_plan() {
    let place = place();
    let args = [&["--edition", "south"], &NEED[..]].concat();
    let text = plan(&place, &args, 0);
    let words =
        "plan: s8: data on 1 x F2: 110.00 EUR a month; 1 machine without a price may be cheaper";
    assert!(text.replace("\n  ", " ").starts_with(words), "{text}");
    let text = plan(&place, &[&args[..], &["-o", "markdown"]].concat(), 0);
    assert!(
        text.contains("without a price: s16; the rest of such a layout costs 50.00 EUR"),
        "{text}"
    );
    // With its price it is the plan.
    let priced = cloud("south", "EUR", &[("s8", 12_000, Some(60)), ("s16", 24_000, Some(59))]);
    place.file("south.toml", &priced);
    let text = plan(&place, &args, 0);
    assert!(text.starts_with("plan: s16: ") && !text.contains("without a price"), "{text}");
}
