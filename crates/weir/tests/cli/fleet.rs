//! `weir diagnose --fleet` and `--merge`: results, interruptions, shards and exit codes.

use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Child;
use weir_fleet::example::Example;

/// A day in samples of ten minutes.
fn place(servers: u64) -> Place {
    let place = Place::new();
    let fleet = Example { servers, samples: 144, interval_s: 600, seed: 1 };
    fleet.write(&place.path("all")).expect("a fleet");
    place
}

fn fleet(place: &Place, args: &[&str]) -> (String, String, Option<i32>) {
    run(place.weir(&[&["diagnose", "--fleet", "all"], args].concat()))
}

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).expect("a file")
}

#[test]
fn merged_shards_of_a_fleet_equal_the_whole() {
    let place = place(40);
    let (told, stderr, code) = fleet(&place, &["--out", "all.csv"]);
    assert_eq!((stderr.as_str(), code), ("", Some(1)), "{told}");
    assert!(
        told.starts_with("14 of 40 servers are throttled.\n  disk_iops has the longest waits"),
        "{told}"
    );
    assert!(told.contains("the fixes of "), "{told}");
    let all = text(&place, "all.csv");
    assert!(all.starts_with("fleet,observations,observation,server,day,file,status,"), "{all}");
    assert_eq!(all.lines().count(), 41);
    for shard in ["1", "2", "3"] {
        let out = format!("{shard}.csv");
        let (told, ..) = fleet(&place, &["--shard", &format!("{shard}/3"), "--out", &out]);
        assert!(told.starts_with(&format!("Shard {shard}/3: ")), "{told}");
    }
    let merge = |args: &[&str]| run(place.weir(&[&["diagnose", "--merge"], args].concat()));
    let (again, stderr, code) = merge(&["3.csv", "1.csv", "2.csv", "--out", "merged.csv"]);
    assert_eq!((stderr.as_str(), code), ("", Some(1)));
    assert_eq!(again, told);
    assert!(text(&place, "merged.csv") == all, "the bytes differ");
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = merge(args);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect) && stderr.lines().count() == 1, "{stderr}");
        assert!(!place.path("x.csv").exists());
    };
    check(&["1.csv", "3.csv", "--out", "x.csv"], "observation 1 of 40 missing");
    check(&["1.csv", "1.csv", "2.csv", "3.csv", "--out", "x.csv"], "observation 0 is in both");
    check(&["1.csv", "--out", "1.csv"], "is one of the shards");
    let (_, stderr, code) = fleet(&place, &["--shard", "1/3", "--out", "all.csv"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("has the results of 40 observations, and this run has 14"), "{stderr}");
}

#[test]
fn json_has_the_summary_and_a_row_for_each_observation() {
    let place = place(12);
    let json = |args: &[&str]| -> serde_json::Value {
        let (stdout, stderr, code) = run(place.weir(&[args, &["-o", "json"]].concat()));
        assert_eq!((stderr.as_str(), code), ("", Some(1)), "{stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    };
    let whole = json(&["diagnose", "--fleet", "all", "--out", "all.csv"]);
    let rows = whole["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &whole["servers"]), (12, &12.into()));
    let csv = text(&place, "all.csv");
    for (line, row) in csv.lines().skip(1).zip(rows) {
        let server = row["server"].as_str().expect("a server");
        let verdict = row["verdict"].as_str().expect("a verdict");
        assert!(line.contains(&format!(",{server},")) && line.contains(&format!(",{verdict},")));
    }
    let throttled = rows.iter().filter(|row| row["verdict"] == "throttled").count();
    assert_eq!(whole["throttled_servers"], throttled);
    let waits = rows[0]["waits_s"].as_object().expect("waits").values().filter_map(|s| s.as_f64());
    let wait_s = rows[0]["wait_s"].as_f64().expect("a time");
    assert!((waits.sum::<f64>() - wait_s).abs() <= 1e-9 * wait_s, "{}", rows[0]);
    assert!(rows[0]["latency_histogram"][0]["lowest_ns"].is_u64(), "{}", rows[0]);
    assert_eq!(json(&["diagnose", "--merge", "all.csv"]), whole);
    let shard = json(&["diagnose", "--fleet", "all", "--shard", "1/3", "--out", "1.csv"]);
    let numbers: Vec<_> = shard["rows"].as_array().expect("rows").iter().collect();
    let numbers: Vec<_> = numbers.iter().filter_map(|row| row["observation"].as_u64()).collect();
    assert_eq!(numbers, [0, 3, 6, 9]);
}

#[test]
fn results_of_another_fleet_are_not_replaced() {
    let place = place(3);
    let (told, ..) = fleet(&place, &["--out", "all.csv"]);
    let before = text(&place, "all.csv");
    // The same results may be.
    assert_eq!(fleet(&place, &["--out", "all.csv"]), (told, String::new(), Some(1)));
    place.file("all/db00001.weirobs", "hello");
    for shard in ["1", "2", "3"] {
        let out = format!("{shard}.csv");
        fleet(&place, &["--shard", &format!("{shard}/3"), "--out", &out]);
    }
    let merge = ["diagnose", "--merge", "1.csv", "2.csv", "3.csv", "--out", "all.csv"];
    for (_, stderr, code) in [fleet(&place, &["--out", "all.csv"]), run(place.weir(&merge))] {
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("has results of the fleet "), "{stderr}");
    }
    assert!(text(&place, "all.csv") == before, "the bytes differ");
    let (_, stderr, code) = fleet(&place, &["--shard", "2/3", "--out", "1.csv"]);
    assert_eq!(code, Some(2));
    let expect = "has results from observation 0 on, and this run begins with 1";
    assert!(stderr.contains(expect), "{stderr}");
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, signal).expect("it is running");
}

/// Starts a diagnosis, and waits until it has completed some of the observations that are left.
fn started(place: &Place) -> Child {
    let journal = place.path("killed.csv.journal");
    let lines = || fs::read_to_string(&journal).unwrap_or_default().lines().count();
    let before = lines();
    let args = ["diagnose", "--fleet", "all", "--jobs", "1", "--out", "killed.csv"];
    let mut child = place.weir(&args).spawn().expect("a program");
    while lines() < before + 3 {
        let has_ended = child.try_wait().expect("a process").is_some();
        assert!(!has_ended, "it ended before three observations");
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_killed_diagnosis_continues_to_the_same_results() {
    let place = place(60);
    fleet(&place, &["--out", "whole.csv"]);
    for sent in [Signal::KILL, Signal::INT] {
        let mut child = started(&place);
        signal(&child, sent);
        child.wait().expect("an end");
        assert!(!place.path("killed.csv").exists(), "nothing half written");
    }
    // A line that the kill cut off.
    let journal = place.path("killed.csv.journal");
    let mut bytes = fs::read(&journal).expect("a journal");
    bytes.extend_from_slice(b"{\"fleet\":\"");
    fs::write(&journal, bytes).expect("a journal");
    let (told, stderr, code) = fleet(&place, &["--out", "killed.csv"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        stderr.starts_with("continuing after ") && stderr.ends_with(" of 60 observations\n"),
        "{stderr}"
    );
    assert!(text(&place, "killed.csv") == text(&place, "whole.csv"), "the bytes differ");
    assert!(!journal.exists());
}

#[test]
fn the_exit_code_of_a_fleet_tells_throttled_from_damaged() {
    let place = place(3);
    fs::remove_file(place.path("all/db00000.weirobs")).expect("a file");
    let (told, _, code) = fleet(&place, &["--out", "healthy.csv"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("None of 2 servers is throttled."), "{told}");
    place.file("all/db00000.weirobs", "hello");
    let (told, _, code) = fleet(&place, &["--out", "damaged.csv"]);
    assert_eq!(code, Some(2), "{told}");
    let line = "None of 2 diagnosed servers is throttled, 1 not diagnosed.";
    assert!(told.starts_with(line), "{told}");
    assert!(told.contains("not diagnosed: 1 of 3 observations"), "{told}");
    assert!(text(&place, "damaged.csv").contains("db00000.weirobs,failed,"));
    let (_, stderr, code) = fleet(&place, &["--html", "x.html", "--out", "x.csv"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cannot be used with"), "{stderr}");
    let (_, stderr, code) = fleet(&place, &["--shard", "4/4", "--out", "x.csv"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("the fleet has 3 observations only"), "{stderr}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_fleet_in_parquet_needs_a_build_with_it() {
    let place = place(1);
    place.file("all/x.parquet", "PAR1");
    let (_, stderr, code) = fleet(&place, &["--out", "x.csv"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cargo build --release --features parquet"), "{stderr}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_tree_of_tables_has_the_diagnosis_of_its_files() {
    let place = place(4);
    let export = |args: &[&str]| run(place.weir(&[&["observe", "export"], args].concat()));
    let files: Vec<String> = (0..4).map(|n| format!("all/{}.weirobs", Example::name(n))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let all = [&files[..], &["--parquet", "tree/"]].concat();
    assert_eq!(export(&all), (String::new(), String::new(), Some(0)));
    let part = "tree/server=db00000/day=2025-11-28/part.parquet";
    assert!(place.path(part).is_file());
    let (_, stderr, code) = export(&all);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("has this day already"), "{stderr}");
    assert_eq!(export(&[&all[..], &["--replace"]].concat()).2, Some(0));
    // The fleet of the tree, and the observation that returns.
    let (from_tables, _, code) =
        run(place.weir(&["diagnose", "--fleet", "tree", "--out", "tree.csv"]));
    assert_eq!(code, Some(1), "{from_tables}");
    let (from_files, ..) = fleet(&place, &["--out", "files.csv"]);
    let first = |text: &str| text.lines().take(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first(&from_tables), first(&from_files));
    let back = ["observe", "import", "--parquet", "tree/server=db00000", "--out", "back.weirobs"];
    let (told, stderr, code) = run(place.weir(&back));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(told.starts_with("back.weirobs: samples: 144, entities: "), "{told}");
    let diagnosis = |file: &str| {
        let (told, ..) = run(place.weir(&["diagnose", file, "-o", "json"]));
        told.replace(file, "FILE")
    };
    assert_eq!(diagnosis("back.weirobs"), diagnosis("all/db00000.weirobs"));
    let (_, stderr, code) =
        run(place.weir(&["observe", "import", "--parquet", "tree", "--out", "x.weirobs"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("there are 4 servers"), "{stderr}");
}

/// Another program takes the tree as one table, and what it writes is an observation again.
#[cfg(feature = "parquet")]
#[test]
fn duckdb_reads_a_tree_and_writes_tables() {
    let Some(python) = crate::tools::python_with("duckdb") else { return };
    let place = place(3);
    let files = ["all/db00000.weirobs", "all/db00001.weirobs", "all/db00002.weirobs"];
    let args = [&["observe", "export"], &files[..], &["--parquet", "tree/"]].concat();
    assert_eq!(run(place.weir(&args)).2, Some(0));
    let query = "import duckdb\n\
        tree = \"'tree/**/*.parquet'\"\n\
        print(duckdb.sql(f\"select server, day::varchar, count(distinct name) from {tree} where metric = \
        'num_of_reads' group by all order by all\").fetchall())\n\
        duckdb.sql(f\"copy (select * exclude (server, day) from {tree} where server = 'db00000' order by \
        offset_ns, series) to 'again.parquet'\")\n";
    let output = std::process::Command::new(python)
        .args(["-c", query])
        .current_dir(place.dir())
        .output()
        .expect("a program");
    let told = String::from_utf8_lossy(&output.stdout);
    let expect = "[('db00000', '2025-11-28', 10), ('db00001', '2025-11-28', 10), \
        ('db00002', '2025-11-28', 10)]\n";
    assert_eq!(told, expect, "{}", String::from_utf8_lossy(&output.stderr));
    let back = ["observe", "import", "--parquet", "again.parquet", "--out", "again.weirobs"];
    let (_, stderr, code) = run(place.weir(&back));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let diagnosis = |file: &str| {
        let (told, ..) = run(place.weir(&["diagnose", file, "-o", "json"]));
        told.replace(file, "FILE")
    };
    assert_eq!(diagnosis("again.weirobs"), diagnosis("all/db00000.weirobs"));
}
