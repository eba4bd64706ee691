//! Machine-readable output: every figure is a number in the unit that its name states.

use crate::common::{Place, run};
use serde_json::{Value, json};

/// The JSON and the CSV of a verb.
fn outputs(place: &Place, args: &[&str]) -> (Value, String) {
    let output = |format: &str| {
        let (stdout, stderr, code) = run(place.weir(&[args, &["-o", format]].concat()));
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    };
    (serde_json::from_str(&output("json")).expect("JSON"), output("csv"))
}

/// Every value whose name ends in a unit or is a rate is a number or null.
#[track_caller]
fn check_figures(value: &Value, found: &mut usize) {
    let units = ["iops", "_bytes", "_per_s", "_s", "_ns", "vcpus", "max_data_disks", "columns"];
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if units.iter().any(|unit| name.ends_with(unit)) && !value.is_array() {
                    assert!(value.is_number() || value.is_null(), "{name}: {value}");
                    *found += 1;
                }
                check_figures(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| check_figures(value, found)),
        _ => {}
    }
}

/// One table: one header, and every row as long as it.
#[track_caller]
fn check_csv(text: &str) {
    let columns = |line: &str| {
        let mut quoted = false;
        line.chars()
            .filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .count()
    };
    let heads = columns(text.lines().next().expect("a header"));
    for line in text.lines() {
        assert!(!line.is_empty() && columns(line) == heads, "{line}");
    }
}

#[test]
fn a_layout_in_numbers() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"v\"\n\
         tier = \"P10\"\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\n\
         volumes = { count = 2, tier = \"P30\" }\n",
    );
    let (json, csv) = outputs(&place, &["layout", "check", "layout.toml"]);
    assert_eq!(
        json["volumes"][0],
        json!({
            "volume": "v", "host": "host", "tier": "P10", "size_bytes": 128_u64 << 30,
            "iops": 500, "throughput_bytes_per_s": 100_000_000, "burst_kind": "credit",
            "burst_iops": 3_500,
            "burst_throughput_bytes_per_s": 170_000_000, "burst_duration_s": 1_800, "reserve_s": null,
            "reserve_refill_s": null, "cache": "none",
        })
    );
    assert_eq!(json["volumes"][1]["burst_iops"], Value::Null);
    assert_eq!(json["hosts"][0]["iops"], 12_800);
    assert_eq!(
        json["exports"][1],
        json!({
            "export": "s", "host": "host", "size_bytes": 2_u64 << 40, "columns": 2,
            "unit_bytes": 65_536, "clients": "all",
        })
    );
    check_figures(&json, &mut 0);
    check_csv(&csv);
    assert!(
        csv.contains("\nvolumes,host,,,500,100000000,credit,3500,170000000,1800,,,v,P10,"),
        "{csv}"
    );
}

#[test]
fn a_reserve_is_a_figure_and_a_note() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "edition = \"aws\"\n[host]\nsize = \"m6i.xlarge\"\n[[volume]]\nname = \"v\"\nfamily = \"gp3\"\n\
         size = \"200 GiB\"\niops = 3000\nthroughput = \"125 MiB/s\"\n",
    );
    let (json, _) = outputs(&place, &["layout", "check", "layout.toml"]);
    for own in [&json["volumes"][0], &json["hosts"][0]] {
        assert_eq!((&own["reserve_s"], &own["reserve_refill_s"]), (&json!(1), &json!(80)), "{own}");
    }
    let (text, _, _) = run(place.weir(&["layout", "check", "layout.toml"]));
    let note = "limits have a reserve: they admit 1 s of their rate at once, and 80 s without load refill it";
    assert!(text.contains(note), "{text}");
}

#[test]
fn the_catalog_in_numbers() {
    let place = Place::new();
    let (mut tiers, mut hosts) = (0, 0);
    let editions = [
        "azure-premium-2015",
        "azure-mi-2018",
        "azure-2018",
        "azure-now",
        "azure-mi-now",
        "azure-postgres",
        "aws",
        "gcp-2022",
        "gcp",
    ];
    for edition in editions {
        let (json, csv) = outputs(&place, &["catalog", "tiers", edition]);
        for table in ["tiers", "provisioned", "remarks"] {
            assert!(json[table].is_array(), "{edition} {table}");
        }
        check_figures(&json, &mut tiers);
        check_csv(&csv);
        let (json, csv) = outputs(&place, &["catalog", "hosts", edition]);
        assert!(json.is_array());
        check_figures(&json, &mut hosts);
        check_csv(&csv);
    }
    assert!(tiers > 500 && hosts > 2_000, "{tiers} {hosts}");
    let (json, _) = outputs(&place, &["catalog", "tiers", "azure-now"]);
    let tier = |name: &str| {
        let rows = json["tiers"].as_array().expect("rows");
        rows.iter().find(|row| row["tier"] == name).cloned().expect("a tier")
    };
    let p10 = tier("P10");
    assert_eq!((&p10["iops"], &p10["throughput_bytes_per_s"]), (&json!(500), &json!(100_000_000)));
    assert_eq!((&p10["burst_kind"], &p10["burst_duration_s"]), (&json!("credit"), &json!(1_800)));
    let s4 = tier("S4");
    assert_eq!((&s4["burst_kind"], &s4["burst_iops"]), (&Value::Null, &Value::Null));
}

/// Both figures of a conflict and both documents, for people and for machines.
#[test]
fn a_conflict_is_shown_with_both_sources() {
    let place = Place::new();
    let (text, _, _) = run(place.weir(&["catalog", "show", "DS14"]));
    let conflict = "uncached IOPS: 50,000 in virtual-machines-size-specs.md of 2015-09-02 (used), \
                    51,200 in sizes-previous-gen.md of 2020-11-01, as on all pages from 2018 on";
    assert!(text.contains(&format!("\nconflict: {conflict}\n")), "{text}");
    let (json, csv) = outputs(&place, &["catalog", "show", "DS14"]);
    let remark = json!({
        "edition": "azure-premium-2015", "name": "DS14", "kind": "conflict", "text": conflict,
    });
    assert!(json["remarks"].as_array().expect("remarks").contains(&remark), "{json}");
    let figures = json["figures"].as_array().expect("figures");
    let figure = figures.iter().find(|f| f["figure"] == "uncached.iops").expect("the limit");
    assert_eq!((&figure["value"], &figure["unit"]), (&json!(50_000), &json!("iops")));
    check_csv(&csv);
}

/// Series that share a name are shown under their distinguishing names.
#[test]
fn a_machine_of_several_series_is_shown_with_each() {
    let place = Place::new();
    let (text, _, _) = run(place.weir(&["catalog", "show", "E16bds_v5"]));
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("azure-now ")).collect();
    let series = ["nvme", "scsi", "2021"];
    assert_eq!(titles, series.map(|s| format!("azure-now ebdsv5-{s}/Standard_E16bds_v5")));
    for title in titles {
        let name = title.trim_start_matches("azure-now ");
        let (one, _, code) = run(place.weir(&["catalog", "show", name]));
        assert!(code == Some(0) && one.starts_with("azure-now Standard_E16bds_v5\n"), "{one}");
    }
    let (json, _) = outputs(&place, &["catalog", "show", "E16bds_v5"]);
    assert_eq!(json["figures"][0]["name"], "ebdsv5-nvme/Standard_E16bds_v5");
}

#[test]
fn the_host_cache_is_shown_with_its_latency_and_its_accounting() {
    let place = Place::new();
    let (json, csv) = outputs(&place, &["catalog", "show", "host-cache"]);
    check_csv(&csv);
    let rows = json["accounting"].as_array().expect("rows");
    let miss = json!({
        "edition": "azure-now", "cache": "read-only", "operation": "read-miss", "disk": "yes",
        "uncached": "yes", "cached": "yes", "note": null,
    });
    assert!(rows.contains(&miss) && rows.len() == 18, "{rows:?}");
    let figures = json["figures"].as_array().expect("figures");
    for (figure, name) in [("read.p50", "local"), ("max_disk_exclusive", "host-cache")] {
        assert!(figures.iter().any(|f| f["figure"] == figure && f["name"] == name), "{figure}");
    }
    for name in ["local-ssd", "standard-ssd", "ultra", "credit", "striping", "performance-tiers"] {
        let (_, stderr, code) = run(place.weir(&["catalog", "show", name]));
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{name}");
    }
}

#[test]
fn an_edition_without_machines_says_so() {
    let place = Place::new();
    place.file(
        "own.toml",
        "name = \"own\"\ntitle = \"t\"\nas_of = \"2026-01-01\"\nscope = \"s\"\n\
        [io_unit]\nsize = \"256 KiB\"\nsource = \"s\"\nas_of = \"2026-01-01\"\n",
    );
    let (text, _, code) = run(place.weir(&["--catalog", "own.toml", "catalog", "hosts", "own"]));
    assert_eq!((text.as_str(), code), ("own has no hosts\n", Some(0)));
}

#[test]
fn managed_instances_have_vcores_and_storage() {
    let (text, _, code) = run(Place::new().weir(&["catalog", "hosts", "azure-mi-2018"]));
    let heads = text.lines().next().map(|line| line.split_whitespace().take(5).collect::<Vec<_>>());
    assert_eq!(heads.as_deref(), Some(&["machine", "series", "vCPUs", "storage", "GiB"][..]));
    assert!(
        text.lines().any(|line| line.starts_with(" gp-8     gp          8        8,192 ")),
        "{text}"
    );
    assert_eq!(code, Some(0));
}

/// The figures of a part of a report by the columns that they have in CSV.
fn columns(value: &Value, found: &mut Vec<(String, Value)>) {
    for (name, value) in value.as_object().expect("a map") {
        match (name.as_str(), value) {
            ("waits_ns", Value::Object(waits)) => {
                found.extend(waits.iter().map(|(cap, ns)| (format!("wait_{cap}_ns"), ns.clone())));
            }
            ("latency", latency) => columns(latency, found),
            // These have rows of their own.
            (_, Value::Object(_) | Value::Array(_)) => {}
            (name, _) if name.starts_with("writeback_") => {}
            ("name", name) => found.push((String::new(), name.clone())),
            (name, value) => found.push((name.to_owned(), value.clone())),
        }
    }
}

/// Each figure of the JSON is a column of the CSV, and nothing in it is prose.
#[test]
fn a_simulation_in_numbers() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"v\"\n\
         tier = \"P30\"\non_demand_burst = true\n[[volume]]\nname = \"w\"\ntier = \"P10\"\n\
         cache = \"read-write\"\n",
    );
    place.file(
        "jobs.fio",
        "[global]\nbs=4k\nioengine=libaio\niodepth=64\ndirect=1\nruntime=4\ntime_based\n\
         [a]\nfilename=/dev/v\nrw=randrw\nrate_iops=3000\n[b]\nfilename=/dev/w\nrw=randwrite\n",
    );
    let sim = ["sim", "layout.toml", "jobs.fio", "--every", "1s", "--seed", "18446744073709551615"];
    let (json, csv) = outputs(&place, &sim);
    check_csv(&csv);
    let cells = |line: &'_ str| line.split(',').map(str::to_owned).collect::<Vec<String>>();
    let mut lines = csv.lines().map(cells);
    let heads = lines.next().expect("a header");
    let rows: Vec<Vec<String>> = lines.collect();
    // The nth row of a table has what the JSON has.
    let check = |table: &str, nth: usize, json: &Value| {
        let row = rows.iter().filter(|row| row[0] == table).nth(nth).expect("a row");
        let mut figures = Vec::new();
        columns(json, &mut figures);
        for (name, value) in figures {
            let at = heads.iter().position(|head| *head == name);
            match (value, at) {
                (Value::String(text), None) => assert!(row.contains(&text), "{table}: {text}"),
                (Value::String(text), Some(at)) => assert_eq!(row[at], text, "{table}: {name}"),
                (Value::Null, Some(at)) => assert_eq!(row[at], "", "{table}: {name}"),
                (number, Some(at)) if number.as_u64() > Some(1 << 53) => {
                    assert_eq!(row[at], number.to_string(), "{table}: {name}");
                }
                // The JSON reader rounds the last digit its own way.
                (number, Some(at)) => {
                    let (csv, json): (f64, _) =
                        (row[at].parse().unwrap_or(f64::NAN), number.as_f64());
                    let json = json.expect("a number");
                    assert!(
                        (csv - json).abs() <= json.abs() * 1e-15,
                        "{table}: {name}: {csv} {json}"
                    );
                }
                (_, None) => panic!("{table}: there is no column {name}"),
            }
        }
    };
    check("run", 0, &json);
    let jobs = &json["jobs"];
    for (nth, op) in [&jobs[0]["read"], &jobs[0]["write"], &jobs[1]["write"]].iter().enumerate() {
        check("jobs", nth, op);
    }
    for nth in 0..2 {
        check("waits", nth, &jobs[nth]);
        check("volumes", nth, &json["volumes"][nth]);
        check("series", nth, &json["series"][nth]);
    }
    check("hosts", 0, &json["hosts"][0]);
    check("writebacks", 0, &json["writebacks"][0]);
    assert!(json["volumes"][0]["burst_transactions"].as_u64() > Some(3_000), "{json}");
    assert!(!csv.contains('%') && !csv.contains(' '), "{csv}");
    let (text, _, _) = run(place.weir(&sim));
    assert!(text.contains("  queue depth  billed bursts  latency by limit\n"), "{text}");
}

#[test]
fn the_help_says_what_the_defaults_are() {
    let place = Place::new();
    let help = |args: &[&str]| {
        let mut weir = place.weir(args);
        weir.env_remove("WEIR_CONTROL").env("XDG_RUNTIME_DIR", "/run/user/7");
        // Lines are wrapped to the width of the terminal.
        run(weir).0.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for verb in [&["serve"][..], &["status"], &["volume", "list"], &["host", "crash"]] {
        let text = help(&[verb, &["--help"]].concat());
        assert!(text.contains("[default: /run/user/7/weir.sock]"), "{text}");
    }
    assert!(help(&["serve", "-h"]).contains("[default: tcp:127.0.0.1:10809]"));
    let text = help(&["completions", "bash"]);
    assert!(text.contains("none read-only read-write"), "no completion of cache modes");
}
