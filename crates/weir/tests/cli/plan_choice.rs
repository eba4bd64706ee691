//! `weir plan`: which of several layouts is taken, and what is said of the others.

use crate::common::{Place, run};
use serde_json::Value;

/// Runs `weir plan --verbose`.
fn answer(place: &Place, args: &[&str]) -> (String, Option<i32>) {
    let (stdout, stderr, code) = run(place.weir(&[&["plan", "--verbose"], args].concat()));
    assert_eq!(stderr, "", "{args:?}: {stdout}");
    (stdout, code)
}

fn met(place: &Place, args: &[&str]) -> String {
    let (stdout, code) = answer(place, args);
    assert_eq!(code, Some(0), "{args:?}: {stdout}");
    stdout
}

fn json(place: &Place, args: &[&str]) -> Value {
    let stdout = met(place, &[args, &["-o", "json"]].concat());
    serde_json::from_str(&stdout).expect("JSON")
}

const PREMIUM: [&str; 2] = ["--disks", "premium-ssd"];

#[test]
fn a_throughput_exactly_at_a_cap_is_no_more_than_the_cap() {
    let place = Place::new();
    let rate = ["--size", "900GiB", "--request", "64KiB", "--verify", "--throughput"];
    let host = ["--host", "D8s_v3"];
    let at = |rate_of: &str| json(&place, &[&PREMIUM[..], &rate, &[rate_of], &host].concat());
    // A D8s_v3 lets 192 MB/s through: 280.32 and 135.17.
    let report = at("192 MB/s");
    assert_eq!(report["plan"]["title"], "Standard_D8s_v3: data on 1 x P30");
    assert_eq!(report["plan"]["month"], 415.49);
    assert_eq!(report["plan"]["caps"][4]["needed"], 192e6);
    assert_eq!(report["verified"][0]["is_met"], true);
    let more = [&["plan"], &PREMIUM[..], &rate, &["192000001 B/s", "--host", "D8s_v3"]].concat();
    assert_eq!(run(place.weir(&more)).2, Some(1));
    // Operations are given, and requests derived: the throughput stays what it is.
    let need = ["--size", "900GiB", "--iops", "5001", "--throughput", "192 MB/s"];
    let words = met(&place, &[&need[..], &host].concat());
    assert!(words.contains("192 MB/s of 192 MB/s, 0.0 % left"), "{words}");
    let note = "at 5001 IOPS means requests of 38400 B, rounded up to whole sectors; the throughput \
                counts as stated";
    assert!(words.contains(note), "{words}");
}

#[test]
fn needs_without_rates_and_of_odd_sizes_are_verified_and_compared() {
    let place = Place::new();
    for (size, rates) in [("4TiB", &[][..]), ("1B", &["--iops", "1"]), ("1000B", &["--iops", "1"])]
    {
        let need = [&["--size", size][..], rates].concat();
        let report = json(&place, &[&need[..], &["--edition", "aws", "--verify"]].concat());
        assert_eq!(report["verified"][0]["is_met"], true, "{size}");
        let report = json(&place, &[&need[..], &["--compare", "aws,gcp"]].concat());
        assert_eq!(report["is_met"], true, "{size}");
    }
    // A request that is derived has the maximum of one that is stated.
    let need = [
        "plan",
        "--size",
        "1GiB",
        "--iops",
        "1",
        "--throughput",
        "100 GB/s",
        "--compare",
        "aws,gcp",
    ];
    let (_, said, code) = run(place.weir(&need));
    assert!(
        said.contains("means requests of") && said.contains("above the maximum of 1 GiB"),
        "{said}"
    );
    assert_eq!(code, Some(2));
}

#[test]
fn a_small_rate_gets_more_capacity_for_a_short_latency() {
    let place = Place::new();
    // A limit of 500 IOPS delays one of two requests that arrive together by up to 2 ms. PLAN.md has these figures.
    for (reads, planned) in [("100%", 738.0), ("50%", 1_250.0)] {
        let need = ["--edition", "aws", "--size", "100GiB", "--iops", "500", "--latency", "500us"];
        let report = json(&place, &[&need[..], &["--reads", reads, "--verify"]].concat());
        assert_eq!(report["verified"][0]["is_met"], true, "{report}");
        let limits = report["plan"]["caps"].as_array().expect("limits").iter();
        let rates = limits.filter(|cap| cap["unit"] == "IOPS");
        let most = rates.filter_map(|cap| cap["needed"].as_f64()).fold(0.0, f64::max);
        assert_eq!(most, planned, "{report}");
    }
}

/// 500 GiB of pd-balanced have 3,000 + 6 x 500 IOPS by the documents, and a tenth more as measured.
#[test]
fn operations_that_are_not_documented_are_pointed_out() {
    let place = Place::new();
    let disks = ["--edition", "gcp", "--size", "500GiB", "--disks", "pd-balanced", "--iops"];
    let words =
        "6000 IOPS are documented for 500 GiB of pd-balanced; the plan counts on up to 10 % more";
    for (iops, is_told) in [("6000", false), ("6500", true)] {
        let text = met(&place, &[&disks[..], &[iops, "-o", "markdown"]].concat());
        assert_eq!(text.contains(words), is_told, "{text}");
    }
}

#[test]
fn fewer_disks_are_taken_for_a_price_close_to_the_cheapest() {
    let place = Place::new();
    // An operation beyond the 3,000 of a disk costs half a cent, and 61 disks have enough of them.
    let host = "Standard_M176bds_v3";
    let need = ["--size", "61GiB", "--iops", "3001", "--host", host];
    let report = json(&place, &need);
    let title = "Standard_M176bds_v3: data on 1 x premium-ssd-v2 of 61 GiB, 3001 IOPS and 125 MB/s";
    assert_eq!(report["plan"]["title"], title);
    assert_eq!(report["plan"]["disks"], 1);
    let passed = &report["passed_over"];
    let other = "Standard_M176bds_v3: data on 61 x premium-ssd-v2 of 1 GiB, 3000 IOPS and 125 MB/s";
    assert_eq!((&passed["title"], &passed["disks"]), (&other.into(), &61.into()));
    let saved = passed["savings"].as_f64().expect("a number");
    assert!((0.004..0.006).contains(&saved), "{saved}");
    let words =
        "61 disks instead of 1 save 0.01, which is less than 1 %: fewer disks are preferred";
    let text = met(&place, &need);
    assert_eq!(text.matches("\npassed over: ").count(), 1, "{text}");
    assert!(text.contains(&format!("passed over: {other}: ")) && text.contains(words), "{text}");
    for format in ["csv", "markdown"] {
        let text = met(&place, &[&need[..], &["-o", format]].concat());
        assert!(text.contains("passed over") && text.contains(words), "{text}");
    }
    // More than 1 % is worth a disk, and a budget is kept: two disks are 353.25, one is 355.94.
    let need =
        ["--size", "900GiB", "--throughput", "192 MB/s", "--request", "64KiB", "--host", "D8s_v3"];
    assert!(
        met(&place, &need)
            .lines()
            .next()
            .is_some_and(|line| line.ends_with(": 355.94 USD a month"))
    );
    let cheapest = json(&place, &[&need[..], &["--budget", "355"]].concat());
    assert!(cheapest["plan"]["month"].as_f64().expect("a price") <= 355.0, "{cheapest}");
    let many = json(&place, &["--size", "300GiB", "--iops", "6000"]);
    assert_eq!(many["plan"]["disks"], 2, "{many}");
    assert_eq!(many["passed_over"], Value::Null, "{many}");
}

#[test]
fn a_machine_whose_limits_are_not_published_is_taken_only_if_it_is_named() {
    let place = Place::new();
    let rates = ["--size", "1TiB", "--iops", "1000"];
    let unknown = "Standard_E192ids_v6";
    let note = "left out because limits are not published: Standard_E192ids_v6 (premium-ssd)";
    let budget = ["--budget", "100000"];
    for mode in [&["--fastest"][..], &budget, &["--vcpus", "190"]] {
        let (text, _) = answer(&place, &[&PREMIUM[..], &rates, mode].concat());
        assert!(!text.contains(&format!("{unknown}: ")) && text.contains(note), "{text}");
    }
    // More than any published limit has no plan, and says what is left out.
    let most = ["--size", "1TiB", "--iops", "900000"];
    let (text, code) = answer(&place, &[&PREMIUM[..], &most].concat());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(note), "{text}");
    let named = met(&place, &[&PREMIUM[..], &most, &["--host", unknown]].concat());
    assert!(named.starts_with(&format!("plan: {unknown}: ")), "{named}");
    assert!(named.contains("no limits of Standard_E192ids_v6 itself are published"), "{named}");
    // The fastest layout counts on no limit that is unknown: 400,000 IOPS are published for Premium SSD v2.
    let fast = ["--size", "4TiB", "--iops", "40000", "--host", unknown, "--fastest"];
    let fastest = json(&place, &fast);
    let title = fastest["plan"]["title"].as_str().expect("a title");
    assert!(title.contains("premium-ssd-v2"), "{title}");
    let binding = fastest["plan"]["caps"].as_array().expect("limits").iter();
    assert!(binding.clone().all(|cap| cap["needed"].as_f64() <= cap["limit"].as_f64()));
    assert!(binding.clone().any(|cap| cap["limit"] == 400_000.0), "{fastest}");
    for mode in [&["--fastest"][..], &budget] {
        let args = [&["plan"], &PREMIUM[..], &fast[..6], mode].concat();
        let (_, stderr, code) = run(place.weir(&args));
        let why = "weir: Standard_E192ids_v6: its limits are not published, so the highest rates on it are not known";
        assert!(code == Some(2) && stderr.contains(why), "{stderr}");
    }
    // Where nothing is said of rates no limit matters.
    let stored = met(&place, &[&PREMIUM[..], &["--size", "1TiB", "--vcpus", "190"]].concat());
    assert!(!stored.contains("(premium-ssd)"), "{stored}");
}

#[test]
fn the_rates_that_a_budget_or_the_fastest_layout_promise_are_simulated() {
    let place = Place::new();
    let need = ["--size", "4TiB", "--iops", "40000", "--throughput", "600 MB/s", "--verify"];
    let rows = |more: &[&str]| -> Vec<(String, f64, f64)> {
        let report = json(&place, &[&need, more].concat());
        let rows = report["verified"].as_array().expect("rows").iter().map(|row| {
            assert_eq!(row["is_met"], true, "{row}");
            let rate = |key: &str| row[key].as_f64().expect("a rate");
            let layout = row["layout"].as_str().expect("a layout");
            (layout.to_owned(), rate("target_per_s"), rate("achieved_per_s"))
        });
        rows.collect()
    };
    let holds = |row: &(String, f64, f64), times: f64| {
        assert_eq!(row.0, "plan at its limits");
        assert!((row.1 / 39_063.0 / times - 1.0).abs() < 0.01, "{row:?}");
        assert!(row.2 >= row.1 * 0.98, "{row:?}");
    };
    // A small budget carries 30.2 % of the need, a large one 327.8 %.
    let little = rows(&["--budget", "500"]);
    assert_eq!(little.len(), 1);
    holds(&little[0], 0.302);
    let much = rows(&["--budget", "2500"]);
    assert_eq!((much.len(), much[0].0.as_str(), much[0].1), (2, "plan", 39_063.0));
    holds(&much[1], 3.278);
}

#[test]
fn the_highest_rates_rest_on_limits_that_are_known() {
    let place = Place::new();
    // The number of disks of this machine is not published.
    let uncounted =
        ["plan", "--size", "4TiB", "--iops", "40000", "--host", "E128-32ds_v6", "--fastest"];
    let (_, stderr, code) = run(place.weir(&uncounted));
    let why = "weir: Standard_E128-32ds_v6: its limits are not published";
    assert!(code == Some(2) && stderr.starts_with(why), "{stderr}");
    // Nor are those of the tempdb of an instance, which is not scaled.
    let tempdb = "[tempdb]\nsize = \"20 GiB\"\niops = 200\n";
    let rest = "[data]\nsize = \"100 GiB\"\niops = 200\n[log]\nsize = \"20 GiB\"\niops = 20\n";
    place.file("need.toml", &format!("edition = \"azure-mi-2018\"\n{rest}{tempdb}"));
    let report = json(&place, &["--need", "need.toml", "--family", "gp", "--fastest", "--verify"]);
    let rows = report["verified"].as_array().expect("rows");
    let rate = |layout: &str, role: &str| {
        let row = rows.iter().find(|row| row["layout"] == layout && row["role"] == role);
        row.unwrap_or_else(|| panic!("{report}"))["target_per_s"].as_f64().expect("a rate")
    };
    assert_eq!(rate("plan at its limits", "tempdb"), rate("plan", "tempdb"));
    assert!(rate("plan at its limits", "data") > rate("plan", "data"), "{report}");
    // Business Critical counts tempdb with the rest.
    let both = ["--need", "need.toml", "--family", "bc", "--verify"];
    let bc = json(&place, &[&both[..], &["--fastest"]].concat());
    let rows = bc["verified"].as_array().expect("rows").iter();
    let of_tempdb = rows.filter(|row| row["role"] == "tempdb");
    let rates: Vec<f64> = of_tempdb.filter_map(|row| row["target_per_s"].as_f64()).collect();
    assert!(rates.len() == 2 && rates[1] > rates[0], "{bc}");
    assert!(!bc.to_string().contains("not published and not checked"), "{bc}");
    let only = "[data]\nsize = \"100 GiB\"\n[log]\nsize = \"20 GiB\"\n";
    place.file("need.toml", &format!("edition = \"azure-mi-2018\"\n{only}{tempdb}"));
    let (_, stderr, code) =
        run(place.weir(&["plan", "--need", "need.toml", "--family", "gp", "--fastest"]));
    assert!(code == Some(2) && stderr.contains("limits are not published"), "{stderr}");
}

#[test]
fn a_latency_that_the_highest_rates_miss_is_said() {
    let place = Place::new();
    place.file("need.toml", "[data]\nsize = \"4 TiB\"\niops = 16000\nlatency = \"3ms\"\n");
    let report =
        json(&place, &["--need", "need.toml", "--fastest", "--host", "D8s_v3", "--verify"]);
    let row = &report["verified"][0];
    assert_eq!(
        (&row["layout"], &row["is_met"]),
        (&"plan at its limits".into(), &false.into()),
        "{row}"
    );
    let notes = report["notes"].to_string();
    assert!(notes.contains("at the limits of the plan, the median latency of data is "), "{notes}");
    let text = met(&place, &["--need", "need.toml", "--fastest", "--host", "D8s_v3"]);
    assert!(text.contains("carries 80 % of the need"), "{text}");
}

#[test]
fn budgets_are_compared_as_prices_are_printed() {
    let place = Place::new();
    let need = ["--size", "4TiB", "--iops", "16000", "--budget"];
    let little = run(place.weir(&[&["plan"], &need[..], &["100"]].concat()));
    assert_eq!(little.2, Some(1), "{}", little.0);
    let least =
        little.0.split("a budget of ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    let least = least.unwrap_or_else(|| panic!("{}", little.0));
    met(&place, &[&need[..], &[least]].concat());
    // Sizes alone have a cheapest layout, and no fastest one.
    let (stdout, _, code) = run(place.weir(&["plan", "--size", "4TiB", "--budget", "100"]));
    assert_eq!(code, Some(1), "{stdout}");
    let least = stdout.split("a budget of ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    met(&place, &["--size", "4TiB", "--budget", least.unwrap_or_else(|| panic!("{stdout}"))]);
    let (_, stderr, code) = run(place.weir(&["plan", "--size", "4TiB", "--fastest"]));
    assert!(code == Some(2) && stderr.contains("the need has no rates"), "{stderr}");
}

const THERE: &str = "edition = \"azure-now\"\nhost = { size = \"Standard_D8s_v3\" }\n[[volume]]\n\
                     name = \"d\"\ntier = \"P30\"\n[[file]]\nname = \"f\"\nrole = \"data\"\n\
                     size = \"400 GiB\"\non = \"d\"\n";

/// The processors of a machine, by its name.
fn is_arm(answer: &Value) -> bool {
    let title = answer["plan"]["title"].as_str().expect("a title");
    let machine = title.split(':').next().expect("a machine").trim_start_matches("Standard_");
    machine.trim_start_matches(|c: char| !c.is_ascii_digit()).contains('p')
}

/// The cheapest machine of all has Arm processors at present; if that changes, so does the first plan.
#[test]
fn a_plan_on_arm_says_so_and_the_architecture_can_be_chosen() {
    let place = Place::new();
    let need =
        ["--edition", "azure-now", "--size", "1TiB", "--iops", "5000", "--request", "300KiB"];
    let plan = |more: &[&str]| json(&place, &[&need[..], more].concat());
    let told = |answer: &Value| {
        answer["plan"]["key_points"]
            .to_string()
            .contains("has Arm processors, and software for x64")
    };
    let any = plan(&[]);
    assert_eq!(told(&any), is_arm(&any), "{any:#}");
    let arm = plan(&["--architecture", "arm64"]);
    assert!(is_arm(&arm) && !told(&arm), "{arm:#}");
    for more in [&["--architecture", "x64"][..], &["--filesystem", "ntfs"]] {
        let x64 = plan(more);
        assert!(!is_arm(&x64), "{more:?}: {x64:#}");
    }
    // A machine in use keeps its processors, and another size may have obstacles.
    for (host, expect) in [("Standard_D4s_v5", false), ("Standard_D4ps_v5", true)] {
        place.file("now.toml", &THERE.replace("Standard_D8s_v3", host));
        let keep = ["--size", "400GiB", "--iops", "8000", "--keep", "now.toml"];
        let kept = json(&place, &keep);
        assert_eq!((is_arm(&kept), told(&kept)), (expect, false), "{kept:#}");
        let other = [&keep[..], &["--host", "Standard_D8ds_v5"]].concat();
        let points = json(&place, &other)["plan"]["key_points"].to_string();
        let obstacle = if expect { "has x64 processors" } else { "it has a local temporary disk" };
        assert!(points.contains(obstacle), "{points}");
    }
    // A machine that is named is meant, and one that contradicts the architecture is no plan.
    let named = plan(&["--host", "Standard_D32pls_v6", "--filesystem", "ntfs"]);
    assert!(is_arm(&named) && told(&named), "{named:#}");
    let wrong = [&need[..], &["--host", "Standard_D32pls_v6", "--architecture", "x64"]].concat();
    let (text, code) = answer(&place, &wrong);
    assert!(code == Some(1) && text.contains("machines with other processors"), "{text}");
    for (more, words) in [
        (
            &["--architecture", "arm64", "--os", "windows"][..],
            "architecture: is arm64, and Windows Server",
        ),
        (
            &["--keep", "now.toml", "--os", "windows"],
            "the layout to keep: has a machine with Arm processors",
        ),
    ] {
        let (stdout, stderr, code) = run(place.weir(&[&["plan"], &need[..], more].concat()));
        assert!(code == Some(2) && stderr.contains(words), "{more:?}: {stdout}{stderr}");
    }
}

/// It named mac2.metal first of the machines without a price, and a server of RDS for Arm.
#[test]
fn macs_are_not_proposed_and_services_have_an_architecture() {
    let place = Place::new();
    let need = ["--edition", "aws", "--size", "4TiB", "--iops", "16000"];
    let report = json(&place, &need);
    let machines = report["unpriced_machines"].as_array().expect("machines");
    let is_mac = |own: &Value| own["machine"].as_str().is_some_and(|name| name.starts_with("mac"));
    assert!(!machines.is_empty() && !machines.iter().any(is_mac), "{report:#}");
    // All servers of RDS in the catalog have x64 processors.
    let (text, code) =
        answer(&place, &[&need[..], &["--family", "rds", "--architecture", "arm64"]].concat());
    assert!(code == Some(1) && text.contains("machines with other processors"), "{text}");
}

/// A machine of 2 vCPUs carries this load for less.
#[test]
fn a_machine_in_use_does_not_shrink_nor_become_burstable_unasked() {
    let place = Place::new();
    place.file("now.toml", &THERE.replace("Standard_D8s_v3", "Standard_D16s_v5"));
    let keep = |more: &[&str]| {
        let need = ["--size", "400GiB", "--iops", "4000", "--keep", "now.toml"];
        met(&place, &[&need[..], more].concat())
    };
    let vcpus = |text: &str| {
        let name =
            text.split_whitespace().nth(1).expect("a machine").trim_start_matches("Standard_");
        let digits = |c: char| c.is_ascii_digit();
        let count: String =
            name.chars().skip_while(|c| !digits(*c)).take_while(|c| digits(*c)).collect();
        (name.starts_with('B'), count.parse::<u32>().expect("a number"))
    };
    let note = "the machine gets no smaller than Standard_D16s_v5 (16 vCPUs, 64 GiB)";
    let same = keep(&[]);
    assert!(same.contains(note), "{same}");
    let (is_burstable, count) = vcpus(&same);
    assert!(!is_burstable && count >= 16, "{same}");
    let (is_burstable, _) = vcpus(&keep(&["--architecture", "x64"]));
    assert!(!is_burstable, "the architecture changes nothing else");
    let smaller = keep(&["--vcpus", "1"]);
    assert!(!smaller.contains(note), "{smaller}");
    assert!(vcpus(&smaller).1 < 16, "{smaller}");
    let burstable = keep(&["--host", "Standard_B16ms"]);
    assert!(burstable.contains("Standard_B16ms is burstable: its processors run"), "{burstable}");
}

#[test]
fn performance_plus_is_proposed_for_new_disks_and_only_for_them() {
    let place = Place::new();
    let need = ["--size", "1000GiB", "--iops", "8000", "--host", "D8s_v3", "--verify"];
    let new = met(&place, &[&PREMIUM[..], &need].concat());
    let title = "plan: Standard_D8s_v3: data on 1 x P30 with performance plus: 415.49 USD a month";
    assert!(new.starts_with(title), "{new}");
    assert!(new.contains("tier = \"P30\"\nperformance_plus = true\n"), "{new}");
    assert!(new.contains("is free and can only be chosen when a disk is created"), "{new}");
    // Where the disk's own limits suffice, it is not chosen.
    let need = ["--size", "1000GiB", "--iops", "5000", "--host", "D8s_v3"];
    let less = met(&place, &[&PREMIUM[..], &need].concat());
    assert!(less.contains("data on 1 x P30: 415.49 USD"), "{less}");
    // A disk that is there keeps what it was made with.
    let keep = [
        "--size", "400GiB", "--iops", "8000", "--keep", "now.toml", "--host", "D8s_v3", "--verify",
    ];
    place.file("now.toml", THERE);
    let without = met(&place, &keep);
    assert!(without.starts_with("plan: Standard_D8s_v3: data on 1 x P60: "), "{without}");
    assert!(!without.contains("performance_plus"), "{without}");
    place.file("now.toml", &THERE.replace("\"P30\"", "\"P30\"\nperformance_plus = true"));
    let with = met(&place, &keep);
    assert!(
        with.starts_with("plan: Standard_D8s_v3: data on 1 x P30 with performance plus"),
        "{with}"
    );
    assert!(with.contains("performance_plus = true\n"), "{with}");
}

#[test]
fn disks_of_google_are_no_smaller_than_they_are_offered() {
    let place = Place::new();
    let small = |more: &[&str]| met(&place, &[&["--edition", "gcp", "--size"], more].concat());
    let shared = small(&["2GiB", "--disks", "pd-ssd"]);
    assert!(shared.contains(": data on pd-ssd of 10 GiB: "), "{shared}");
    assert!(shared.contains("a disk of pd-ssd has at least 10 GiB"), "{shared}");
    assert!(!shared.contains("next cheaper: "), "{shared}");
    let own = small(&["2GiB", "--disks", "hyperdisk-balanced"]);
    assert!(own.contains("data on 1 x hyperdisk-balanced of 4 GiB, "), "{own}");
    // Each disk has its least size where roles are apart.
    place.file(
        "need.toml",
        "edition = \"gcp\"\napart = true\ndisks = [\"pd-ssd\"]\n[data]\nsize = \"50 GiB\"\n[log]\nsize = \"3 GiB\"\n",
    );
    let apart = met(&place, &["--need", "need.toml"]);
    assert!(apart.contains(": data on pd-ssd of 50 GiB, log on pd-ssd of 10 GiB: "), "{apart}");
}

#[test]
fn the_next_cheaper_disk_of_google_is_called_by_its_own_size() {
    let place = Place::new();
    let args = ["--edition", "gcp", "--size", "1000GiB", "--disks", "pd-standard"];
    let text = met(&place, &args);
    assert!(text.contains(": data on pd-standard of 1000 GiB: "), "{text}");
    // A tenth less than is stored; it said 1000 GiB.
    assert!(
        text.contains("next cheaper: n1-standard-1: data on pd-standard of 900 GiB: "),
        "{text}"
    );
    assert!(text.contains(
        "  fails: size of pd-standard of n1-standard-1: 1,000 GiB needed, limit 900 GiB"
    ));
}
