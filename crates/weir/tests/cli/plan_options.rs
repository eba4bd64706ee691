//! `weir plan`: no option is passed over, and a latency is held.

use crate::common::{Place, run};
use serde_json::Value;

fn refused(place: &Place, args: &[&str], words: &str) {
    let (stdout, stderr, code) = run(place.weir(&[&["plan"], args].concat()));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
    assert!(stderr.contains(words), "{args:?}: {stderr}");
}

fn met(place: &Place, args: &[&str]) -> String {
    // A fleet has no further details.
    let details: &[&str] = if args.contains(&"--fleet") { &[] } else { &["--verbose"] };
    let (stdout, stderr, code) = run(place.weir(&[&["plan"], details, args].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}: {stdout}");
    stdout
}

/// A machine with one disk of 100 GiB of data.
fn layout(edition: &str, host: &str, disk: &str) -> String {
    format!(
        "edition = \"{edition}\"\nhost = {{ size = \"{host}\" }}\n[[volume]]\nname = \"d\"\n{disk}\n\
         [[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"100 GiB\"\non = \"d\"\n"
    )
}

#[test]
fn options_without_effect_are_refused() {
    let place = Place::new();
    let check = |args: &[&str], words: &str| refused(&place, args, words);
    let size = ["--size", "400GiB", "--iops", "3000"];
    let with = |more: &[&'static str]| [&size[..], more].concat();
    check(&["--iops", "16000"], "give --size SIZE with rates, or --need FILE, --from OBSERVATION");
    check(
        &with(&["--os", "beos"]),
        "there are no prices of os \"beos\"; there are: East US in USD (linux), East",
    );
    check(&with(&["--max-disks", "0"]), "\"0\" is not a whole number of at least 1");
    check(&["--size", "4TiB", "--iops", "1,5"], "\"1,5\" is ambiguous; write 1.5 or 15");
    check(
        &["--size", "4TiB", "--throughput", "600 Mbps"],
        "\"600 Mbps\" is ambiguous; write bytes per second, for example 200 MB/s",
    );
    check(&with(&["--vcpus", "0"]), "\"0\" is not a whole number of at least 1");
    check(&with(&["--max-files", "0"]), "\"0\" is not a whole number of at least 1");
    check(&["--from", "x", "--percentile", "0"], "is not a number above 0 and up to 100");
    check(
        &with(&["--bursting", "31min"]),
        "no burst credits last 31 min; the longest last 30 min (P1, P2, P3, P4, P6, P10, P15, P20)",
    );
    check(
        &with(&["--bursting", "20min", "--edition", "aws"]),
        "bursting: no disks of gp3, io1, io2 have burst credits",
    );
    check(
        &with(&["--edition", "azure-mi-now", "--family", "bc", "--max-files", "3"]),
        "max_files: does not apply to bc",
    );
    for (key, words) in [
        ("vcpus = 0", "vcpus: is 0; use a larger value, or leave it out"),
        ("max_disks = 0", "max_disks: is 0"),
        ("max_files = 0", "max_files: is 0"),
        ("bursting = \"0s\"", "bursting: is 0"),
        ("memory = \"0 GiB\"", "memory: is 0"),
        ("storage = \"0 GiB\"", "storage: is 0"),
        ("families = []", "the list is empty; name some, or leave it out"),
        (
            "max_disks = -1",
            "need.toml:1:13: invalid value: integer `-1`, expected a whole number of 0 or more",
        ),
        ("headroom = \"0.2\"", "headroom: \"0.2\" is ambiguous; write 0.2 % or 20 %"),
        ("headroom = \"20000 %\"", "headroom: \"20000 %\" is above the maximum of 10000 %"),
    ] {
        place.file("need.toml", &format!("{key}\n[data]\nsize = \"1 TiB\"\niops = 5\n"));
        check(&["--need", "need.toml"], words);
    }
    place.file("need.toml", "[data]\nsize = \"1 TiB\"\nworking_set = \"0 B\"\n");
    check(&["--need", "need.toml"], "need.toml: [data]: working_set is 0");
    check(&["--size", "1TiB", "--iops", "-5"], "invalid value '-5' for '--iops <N>'");
    check(
        &with(&["--edition", "aws", "--family", "rds", "--licence-owned"]),
        "licence_owned: postgresql of rds includes no licence that could be owned; leave it out",
    );
}

#[test]
fn assumptions_are_reported() {
    let place = Place::new();
    let stdout = met(&place, &["--size", "400GiB"]);
    assert!(stdout.contains("no rates are given, so only the size counts"), "{stdout}");
    let size = ["--size", "400GiB", "--iops", "3000"];
    let with = |more: &[&'static str]| met(&place, &[&size[..], more].concat());
    let stdout = with(&["--reads", "0%", "--working-set", "9GiB"]);
    assert!(
        stdout.contains("data: there are no reads, so the working set has no effect"),
        "{stdout}"
    );
    let stdout = with(&["--bursting", "20min"]);
    assert!(stdout.contains("burst credits are not needed: disks that carry the load"), "{stdout}");
    // A share may be said without its sign where it can be nothing else.
    assert_eq!(with(&["--headroom", "20"]), with(&["--headroom", "20 %"]));
}

/// Every figure is a number, and its unit stands beside it.
#[test]
fn a_plan_in_numbers() {
    let place = Place::new();
    let args = ["--edition", "azure-premium-2015", "--size", "4TiB", "--iops", "16000", "-o"];
    let report = met(&place, &[&args[..], &["json"]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let cap = &report["plan"]["caps"][0];
    assert_eq!((&cap["needed"], &cap["unit"]), (&16_000.0.into(), &"IOPS".into()));
    let lacking = &report["cheaper"]["exceeded"][0];
    assert_eq!(
        (&lacking["limit"], &lacking["unit"]),
        (&(3_584.0 * 1_073_741_824.0).into(), &"B".into())
    );
    assert_eq!(report["cheaper"]["month"], 1516.20);
    let rows = met(&place, &[&args[..], &["csv"]].concat());
    let mut lines = rows.lines();
    let heads: Vec<&str> = lines.next().expect("heads").split(',').collect();
    // No cell before those that are looked at has a comma.
    let row = |first: &str| -> Vec<String> {
        let line = rows
            .lines()
            .find(|line| line.starts_with(first))
            .unwrap_or_else(|| panic!("{first} in {rows}"));
        line.split(',').map(str::to_owned).collect()
    };
    let at = |name: &str| heads.iter().position(|head| *head == name).expect(name);
    assert_eq!(&row("price,")[at("USD a month")], "1003.66");
    assert_eq!(&row("layout,plan,")[at("USD a month")], "1548");
    let cheaper = row("layout,next cheaper,");
    assert_eq!(&cheaper[at("USD a month")], "1516.2");
    assert_eq!(&cheaper[at("reason")], "size of data: 3.5 TiB of 4 TiB");
    let cap = row("cap,");
    assert_eq!(
        [&cap[at("needed")], &cap[at("limit")], &cap[at("unit")]],
        ["16000", "20000", "IOPS"]
    );
    let rows = met(&place, &[&args[..], &["csv", "--verify", "--latency", "50ms"]].concat());
    let heads = rows.lines().next().expect("heads");
    assert!(
        heads.contains(",request_kib,target/s,achieved/s,median_target_ns,median_ns,latency_ns,"),
        "{heads}"
    );
    let simulated = rows.lines().find(|row| row.starts_with("simulated,,plan,"));
    assert!(simulated.is_some_and(|row| row.contains(",data,8,16000,")), "{rows}");
}

#[test]
fn keys_without_effect_on_the_cheapest_family_are_reported() {
    let place = Place::new();
    let args = ["--edition", "aws", "--size", "1TiB", "--iops", "5000", "--storage", "2TiB"];
    let stdout = met(&place, &args);
    assert!(stdout.contains("without effect on vm, the family of the plan: storage"), "{stdout}");
    let args = ["--edition", "azure-mi-now", "--size", "1TiB", "--working-set", "9GiB"];
    let stdout = met(&place, &args);
    assert!(stdout.contains("data: the working set has no effect"), "{stdout}");
}

#[test]
fn options_that_a_fleet_does_not_use_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path("fleet")).expect("a folder");
    place.file("fleet/a.toml", "vcpus = 1\n[data]\nsize = \"10 GiB\"\niops = 50\n");
    let check = |args: &[&str], words: &str| {
        refused(&place, &[&["--fleet", "fleet"], args].concat(), words);
    };
    let stray: [&[&str]; 21] = [
        &["--need", "fleet/a.toml"],
        &["--from", "fleet/a.toml"],
        &["--size", "1TiB"],
        &["--throughput", "9 MB/s"],
        &["--request", "8KiB"],
        &["--reads", "70%"],
        &["--latency", "5ms"],
        &["--working-set", "9GiB"],
        &["--headroom", "20%"],
        &["--disks", "premium-ssd"],
        &["--vcpus", "3"],
        &["--memory", "9GiB"],
        &["--max-disks", "3"],
        &["--apart"],
        &["--os", "linux"],
        &["--engine", "mysql"],
        &["--budget", "900"],
        &["--fastest"],
        &["--keep", "fleet/a.toml"],
        &["--no-downtime"],
        &["--bursting", "20min"],
    ];
    for args in stray {
        check(args, "cannot be used with");
    }
    check(&["--verify", "--present", "fleet/a.toml"], "cannot be used with");
    check(&["--role", "a=data"], "need observations");
    check(&["--family", "bc", "--max-files", "3"], "--max-files applies to gp, not to bc");
    check(&["--host", "huge"], "unknown host size \"huge\"");
    check(&["--host", "gp-8", "--family", "bc"], "--host gp-8: is not in the families bc");
    let stdout = met(&place, &["--fleet", "fleet", "--edition", "azure-mi-2018"]);
    assert!(stdout.starts_with("plan: 1 database on 1 instance: price unknown"), "{stdout}");
    assert!(!stdout.contains("0.00"), "{stdout}");
    place.file("fleet/a.toml", "engine = \"mysql\"\n[data]\nsize = \"10 GiB\"\n");
    check(&[], "a: engine: does not apply to a fleet, which gets new instances; leave");
}

#[test]
fn the_layout_in_use_determines_the_edition() {
    let place = Place::new();
    place.file("now.toml", &layout("azure-premium-2015", "DS13", "tier = \"P10\""));
    let keep = ["--keep", "now.toml", "--size", "400GiB", "--iops", "4000"];
    let stdout = met(&place, &keep);
    assert!(stdout.starts_with("plan: DS13: data on 1 x P30"), "{stdout}");
    // One disk stays one disk in what is cheaper, too.
    assert!(stdout.contains("next cheaper: DS13: data on 1 x P20: "), "{stdout}");
    refused(
        &place,
        &[&keep[..], &["--edition", "azure-now"]].concat(),
        "edition azure-now: the layout to keep has the edition azure-premium-2015; leave out",
    );
    let least = ["--keep", "now.toml", "--size", "100GiB", "--iops", "400", "--no-downtime"];
    let stdout = met(&place, &least);
    assert!(stdout.starts_with("plan: DS13: data on 1 x P10"), "{stdout}");
    assert!(!stdout.contains("next cheaper"), "{stdout}");
    assert!(stdout.contains("no cheaper layout one step away keeps the disks"), "{stdout}");
    let disk = "family = \"pd-balanced\"\nsize = \"500 GiB\"";
    place.file("gcp.toml", &layout("gcp", "n1-standard-16", disk));
    refused(
        &place,
        &["--keep", "gcp.toml", "--size", "400GiB", "--iops", "3000"],
        "d of the layout to keep: is on pd-balanced, whose disks share their limits",
    );
    let disk = "size = \"500 GiB\"\nlimits = { iops = 5000 }";
    let own = layout("", "", disk).replace("edition = \"\"\nhost = { size = \"\" }\n", "");
    place.file("own.toml", &format!("host = {{ unlimited = true }}\n{own}"));
    refused(
        &place,
        &["--keep", "own.toml", "--size", "400GiB"],
        "own.toml: the layout to keep has no edition",
    );
}

#[test]
fn prices_of_another_place_are_said_and_never_passed_over() {
    let place = Place::new();
    place.file(
        "own.toml",
        "[[price]]\nregion = \"West Europe\"\ncurrency = \"EUR\"\nos = \"linux\"\nsource = \"contract\"\n\
         as_of = \"2026\"\nrows = [\n{ host = \"Standard_D4s_v3\", month = \"150\" },\n\
         { tier = \"P30\", month = \"140\" },\n]\n",
    );
    let args =
        ["--size", "1TiB", "--iops", "5000", "--disks", "premium-ssd", "--prices", "own.toml"];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    let stdout = met(&place, &args);
    assert!(stdout.starts_with("plan: Standard_D4s_v3: data on 1 x P30: 290.00 EUR"), "{stdout}");
    assert!(
        stdout.contains(
            "prices are from own.toml (West Europe in EUR); those of other regions or currencies are left \
             out: East US in USD (linux), East US in USD, East US in USD (windows)"
        ),
        "{stdout}"
    );
    for (more, asked) in [
        (["--region", "East US"], "East US"),
        (["--currency", "USD"], "USD"),
        (["--os", "windows"], "windows"),
    ] {
        let words = format!(
            "--prices own.toml: has no prices for {asked}; it has West Europe in EUR (linux); leave"
        );
        refused(&place, &with(&more), &words);
    }
}

#[test]
fn a_price_of_nothing_is_told() {
    let place = Place::new();
    place.file(
        "own.toml",
        "[[price]]\nregion = \"East US\"\ncurrency = \"USD\"\nsource = \"contract\"\nas_of = \"2026\"\n\
         rows = [\n{ host = \"Standard_D4s_v3\", month = \"150\" },\n{ tier = \"P30\", month = \"140\" },\n\
         { tier = \"P31\", month = \"1\" },\n{ of = \"premium-ssd-v3\", per = \"GiB\", month = \"1\" },\n\
         { of = \"premium-ssd-v2\", per = \"GiB\", month = \"1\" },\n]\n",
    );
    let args = ["--size", "1TiB", "--iops", "5000", "--disks", "premium-ssd"];
    let stdout = met(&place, &[&args[..], &["--prices", "own.toml"]].concat());
    let words =
        "own.toml: azure-now has no \"P31\", \"premium-ssd-v3, GiB\", so the price is not used";
    assert!(stdout.contains(words), "{stdout}");
}

#[test]
fn a_latency_is_held_against_the_simulation() {
    let place = Place::new();
    let verify = |args: &[&str]| {
        let all = [&["plan", "--size", "4TiB", "--verify", "-o", "json"], args].concat();
        let (stdout, stderr, code) = run(place.weir(&all));
        assert_eq!(stderr, "", "{args:?}");
        (serde_json::from_str::<Value>(&stdout).expect("JSON"), code)
    };
    // Four of 5,000 IOPS have them, but what comes to them by chance waits for 18 ms at the limit.
    let rates = ["--edition", "azure-premium-2015", "--iops", "20000"];
    let (report, code) = verify(&rates);
    assert_eq!(code, Some(0));
    assert_eq!(report["plan"]["title"], "DS13: data on 4 x P30");
    let median = report["verified"][0]["median_ns"].as_u64().expect("a time");
    assert!((17_000_000..20_000_000).contains(&median), "{median}");
    assert!(report["verified"][0]["median_target_ns"].is_null());
    let queue = "requests of data queue at these rates: their simulated median latency is";
    assert!(report["plan"]["key_points"].to_string().contains(queue), "{report}");
    // One more has room, and the median is that of the medium, 1.9 ms, and a little.
    let (report, code) = verify(&[&rates[..], &["--latency", "3ms"]].concat());
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["plan"]["title"], "DS13: data on 5 x P30");
    let reasons = report["plan"]["reasons"].to_string();
    assert!(
        reasons.contains("rates are planned 5 % above the need, to shorten waits"),
        "{reasons}"
    );
    assert!(!reasons.contains("data queue"), "{reasons}");
    let own = &report["verified"][0];
    let median = own["median_ns"].as_u64().expect("a time");
    assert!((1_900_000..3_060_000).contains(&median), "{median}");
    assert_eq!(
        (own["median_target_ns"].as_u64(), own["is_met"].as_bool(), own["target_per_s"].as_u64()),
        (Some(3_000_000), Some(true), Some(20_000))
    );
    // 25 ms after ten seconds are more after a minute: a queue that grows holds no latency. What has
    // the least room is looked for between the steps, and what is cheaper is told as it simulates.
    let (report, code) = verify(&[&rates[..], &["--latency", "30ms"]].concat());
    assert_eq!((&report["plan"]["title"], code), (&"DS13: data on 9 x P20".into(), Some(0)));
    let reasons = report["plan"]["reasons"].to_string();
    assert!(reasons.contains("2.5 % above") && reasons.contains("and rising"), "{reasons}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("next cheaper: DS13: data on 8 x P20, at 1,589.42 a month"), "{notes}");
    // Nothing waits for as little as the medium takes alone.
    let (report, code) = verify(&[&rates[..], &["--latency", "1910us"]].concat());
    assert_eq!(code, Some(1), "{report}");
    assert!(report["plan"].is_null() && report["cheaper"].is_null(), "{report}");
    assert_eq!(report["verified"][0]["is_met"], false);
    let notes = report["notes"].to_string();
    for words in [
        "DS13: data on 4 x P30 was found, but in simulation the median latency of data is",
        "instead of 1910 us: the limit disk operations of data is 100.0 % used",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    let args = ["--size", "4TiB", "--iops", "20000", "--latency", "3ms"];
    let stdout = met(&place, &args);
    assert!(stdout.contains("verify simulates the plan with them"), "{stdout}");
}

#[test]
fn a_plan_that_is_nearly_full_says_so_without_a_simulation() {
    let place = Place::new();
    let note = |iops| {
        let args = ["--edition", "azure-premium-2015", "--size", "4TiB", "--iops", iops];
        let stdout = met(&place, &args);
        stdout.contains("disk operations of data are ")
            && stdout.contains(" used, so requests may queue there")
    };
    // Four P30 have 20,000 IOPS.
    assert!(note("19000") && !note("18000"));
}

/// Machines that take the disks that are there, and none of a service.
#[test]
fn kept_disks_stay_where_possible() {
    let place = Place::new();
    let disk = "family = \"hyperdisk-balanced\"\nsize = \"100 GiB\"\niops = 3000\nthroughput = \"140 MiB/s\"";
    place.file("gcp.toml", &layout("gcp", "c3-4vcpu", disk));
    let args = ["--keep", "gcp.toml", "--size", "200GiB", "--iops", "5000", "--out", "new.toml"];
    met(&place, &args);
    let (_, stderr, code) = run(place.weir(&["layout", "check", "new.toml"]));
    assert_eq!(code, Some(0), "{stderr}");
    met(&place, &["--edition", "aws", "--family", "rds", "--size", "100GiB", "--out", "rds.toml"]);
    refused(
        &place,
        &["--keep", "rds.toml", "--size", "200GiB"],
        "the layout to keep: is a server of rds (db.",
    );
}

/// More disks than a machine has numbers for are written without.
#[test]
fn a_plan_of_very_many_disks_is_a_layout() {
    let place = Place::new();
    let size = ["--edition", "aws", "--size", "1500TiB", "--iops", "200000"];
    met(&place, &[&size[..], &["--max-disks", "100", "--out", "big.toml"]].concat());
    let text = std::fs::read_to_string(place.path("big.toml")).expect("a layout");
    assert!(text.contains("count = ") && !text.contains("lun"), "{text}");
    let (_, stderr, code) = run(place.weir(&["layout", "check", "big.toml"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
}

/// Databases have names that layouts can have, and a folder has no instances of another plan.
#[test]
fn a_fleet_is_written_as_one() {
    let place = Place::new();
    let need = "vcpus = 1\n[data]\nsize = \"10 GiB\"\niops = 100\n";
    std::fs::create_dir_all(place.path("fleet")).expect("a folder");
    place.file("fleet/a'b$(x).toml", need);
    refused(&place, &["--fleet", "fleet"], "the database \"a'b$(x)\": is not a valid name");
    std::fs::remove_file(place.path("fleet/a'b$(x).toml")).expect("a file");
    place.file("fleet/a.toml", need);
    std::fs::create_dir_all(place.path("out")).expect("a folder");
    place.file("out/instance2.toml", "an older one");
    refused(&place, &["--fleet", "fleet", "--out", "out"], "instance2.toml is not one of the");
    assert!(!place.path("out/instance1.toml").exists());
    std::fs::remove_file(place.path("out/instance2.toml")).expect("a file");
    for _ in 0..2 {
        met(&place, &["--fleet", "fleet", "--out", "out"]);
        assert!(place.path("out/instance1.toml").exists());
    }
}

/// Every file in the folder of a fleet is read, or named as one that is not a need.
#[test]
fn files_that_are_no_need_of_a_fleet_are_named() {
    let place = Place::new();
    let need = "vcpus = 1\n[data]\nsize = \"10 GiB\"\niops = 100\n";
    std::fs::create_dir_all(place.path("fleet/old")).expect("a folder");
    for file in ["a.toml", "b.TOML", "readme.txt"] {
        place.file(&format!("fleet/{file}"), need);
    }
    let args = ["plan", "--fleet", "fleet", "-o", "markdown"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stderr.as_str(), code), ("weir: ignored: old, readme.txt\n", Some(0)), "{stdout}");
    assert!(stdout.starts_with("**2 databases on 1 instance: "), "{stdout}");
    assert!(stdout.contains("\n**Instances**\n| instance"), "{stdout}");
    // Progress is for terminals.
    let (_, quiet, _) = run(place.weir(&[&args[..], &["--quiet"]].concat()));
    assert_eq!(quiet, stderr);
    place.file("fleet/b.toml", need);
    refused(&place, &["--fleet", "fleet"], "b exists twice, in upper and lower case");
    std::fs::remove_file(place.path("fleet/b.toml")).expect("a file");
    place.file("fleet/a.toml", "vcpus = 0\n[data]\nsize = \"10 GiB\"\niops = 100\n");
    let words = "a: vcpus: is 0; use a larger value, or leave it out";
    refused(&place, &["--fleet", "fleet"], words);
    refused(&place, &["--size", "1TiB", "--quiet"], "--quiet needs --fleet DIR");
}

#[test]
fn a_plan_is_a_page() {
    let place = Place::new();
    place.file("now.toml", &layout("azure-premium-2015", "DS13", "tier = \"P10\""));
    let keep = ["--keep", "now.toml", "--size", "400GiB", "--iops", "4000", "--html"];
    met(&place, &[&keep[..], &["plan.html"]].concat());
    let page = std::fs::read_to_string(place.path("plan.html")).expect("a page");
    assert!(page.contains("<h1>plan: DS13: data on 1 x P30: 1,139.75 USD a month; "), "{page}");
    let cost = "<p>cost: 1,023.37 USD a month at present (now.toml), 1,139.75 USD a month planned; \
                difference: 116.38 USD more</p>";
    assert!(page.contains(cost) && page.contains("<pre>edition = "), "{page}");
    refused(&place, &[&keep[..], &["now.toml"]].concat(), "--html now.toml: is an input file");
}

#[test]
fn the_default_output_has_the_answer_and_one_table() {
    let place = Place::new();
    let args = ["--edition", "azure-premium-2015", "--iops", "16000", "--size", "4TiB"];
    let (text, stderr, code) = run(place.weir(&[&["plan"], &args[..]].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{text}");
    assert!(text.starts_with("plan: DS13: data on 4 x P30: 1,548.00 USD a month; "), "{text}");
    let headings = |text: &str| -> Vec<String> {
        let lines = text.split("\n\n").filter_map(|block| block.lines().next());
        lines.skip(1).map(str::to_owned).collect()
    };
    assert_eq!(headings(&text)[..4], ["Price", "Alternative", "Notes", "Layout"], "{text}");
    assert!(text.contains("\nnext cheaper: ") && !text.contains("next better"), "{text}");
    // A risk is shown with the answer; the other reasons are details.
    assert!(text.contains("data: 4 TiB of the disks' 4 TiB are needed"), "{text}");
    assert!(!text.contains("data: needs "), "{text}");
    let verbose = met(&place, &args);
    let expected = [
        "Price",
        "Limits",
        "Machines without a price",
        "Reasons",
        "Alternatives",
        "Notes",
        "Layout",
    ];
    assert_eq!(headings(&verbose)[..7], expected, "{verbose}");
    assert!(verbose.contains("next better: ") && verbose.contains("data: needs "), "{verbose}");
}

#[test]
fn messages_name_the_value_and_the_file() {
    let place = Place::new();
    place.file("need.toml", "vcpus = -1\n[data]\nsize = \"1 TiB\"\n");
    let need = ["--need", "need.toml"];
    refused(&place, &need, "need.toml:1:9: -1 is not a number of virtual processors");
    place.file("need.toml", "[data]\niops = 100\n");
    refused(&place, &need, "need.toml: [data]: size is missing; give the stored size");
    place.file("need.toml", "vcpus = 2\n");
    refused(&place, &need, "need.toml: has no role; add [data], [log], [tempdb] or [backup]");
    let prices = "[[price]]\nregion = \"East US\"\ncurrency = \"XYZQ\"\nsource = \"us\"\n\
                  as_of = \"2026-11\"\nrows = [{ tier = \"P30\", month = \"1.00\" }]\n";
    place.file("prices.toml", prices);
    let args = ["--iops", "100", "--size", "1TiB", "--prices", "prices.toml"];
    refused(&place, &args, "\"XYZQ\" is not a currency code; use three letters, for example USD");
    refused(&place, &["--iops", "100", "--size", "1TiB", "--currency", "XYZQ"], "XYZQ");
}

#[test]
fn an_unknown_price_is_null_in_json() {
    let place = Place::new();
    let args = ["--edition", "azure-mi-2018", "--family", "gp", "--iops", "100", "--size", "1TiB"];
    let text = met(&place, &[&args[..], &["-o", "json"]].concat());
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert!(report["plan"]["unpriced"].as_u64() > Some(0), "{report}");
    assert!(report["plan"]["month"].is_null(), "{report}");
}
