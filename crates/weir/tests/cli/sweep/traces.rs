//! `weir sweep` of traces.

use super::{column, sweep, text};
use crate::common::{Place, run};
use serde_json::Value;
use std::fs;

const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\n\
    limits = { iops = 500 }\n";
const SWEEP: &str = "layout = \"layout.toml\"\nworkload = \"web.weirtrace\"\n\
    map = { \"web/0\" = \"data\" }\n\n[replay]\nfrom = \"1s\"\nto = \"11s\"\n\n[[parameter]]\n\
    name = \"limit\"\nlayout = \"volume.data.limits.iops\"\nvalues = [50, 500]\n\n[[parameter]]\n\
    name = \"pace\"\nworkload = \"pace\"\nvalues = [1, 2, 10]\n";

/// A write each 10 ms, in the format of MSR Cambridge.
fn msr(seconds: u64) -> String {
    let row = |n: u64| {
        let tick = 128_166_372_000_000_000 + n * 100_000;
        format!("{tick},web,0,Write,{},4096,20000\n", n * 4096)
    };
    (0..seconds * 100).map(row).collect()
}

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("web.csv", &msr(20));
    place.file("sweep.toml", SWEEP);
    record(&place, &[]);
    place
}

fn record(place: &Place, more: &[&str]) {
    let args = [&["record", "web.csv", "--out", "web.weirtrace"], more].concat();
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stderr}");
}

#[track_caller]
fn refused(place: &Place, args: &[&str], expect: &str) {
    let (stdout, stderr, code) = run(place.weir(&[&["sweep"], args].concat()));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains(expect) && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn the_row_of_a_trace_has_the_figures_of_its_replay() {
    let place = place();
    let told = sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    assert!(told.contains(" moves latency_mean_ns most"), "{told}");
    let all = text(&place, "all.csv");
    assert_eq!(column(&all, "pace"), ["1", "2", "10"].repeat(2));
    // A request each 10, 5 and 1 ms, for limits of 50 and 500 a second.
    assert_eq!(column(&all, "keeps_up"), ["false", "false", "false", "true", "true", "false"]);
    let sim = |limit: &str, pace: &str| -> Value {
        place.file("one.toml", &LAYOUT.replace("500", limit));
        let args = ["sim", "one.toml", "web.weirtrace", "--from", "1s", "--to", "11s"];
        let more = ["--map", "web/0=data", "--pace", pace, "-o", "json"];
        let (sim, stderr, _) = run(place.weir(&[&args[..], &more].concat()));
        assert_eq!(stderr, "");
        serde_json::from_str(&sim).expect("JSON")
    };
    for (at, (limit, pace)) in [("50", "1x"), ("500", "10x")].into_iter().enumerate() {
        let (sim, at) = (sim(limit, pace), at * 5);
        let number = |own: &Value| own.as_f64().expect("a number").to_string();
        let write = &sim["jobs"][0]["write"];
        let own = |name| column(&all, name)[at].clone();
        assert_eq!(own("iops"), number(&write["iops"]));
        assert_eq!(own("latency_mean_ns"), number(&write["latency"]["mean_ns"]));
        assert_eq!(own("latency_p99_ns"), number(&write["latency"]["p99_ns"]));
        assert_eq!(own("elapsed_s"), number(&sim["elapsed_s"]));
        assert_eq!(own("behind_most_ns"), number(&sim["behind_most_ns"]));
        assert_eq!(own("binding_limit"), "disk_iops");
    }
}

#[test]
fn traces_of_other_tools_are_replayed_without_a_recording() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "own.csv"]);
    place.file("foreign.toml", &SWEEP.replace("web.weirtrace", "web.csv"));
    sweep(&place, &["foreign.toml", "--out", "foreign.csv"]);
    for name in ["iops", "latency_mean_ns", "elapsed_s"] {
        let of = |file| column(&text(&place, file), name);
        assert_eq!(of("own.csv"), of("foreign.csv"), "{name}");
    }
}

#[test]
fn shards_of_another_trace_are_refused() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "whole.csv"]);
    sweep(&place, &["sweep.toml", "--shard", "1/2", "--out", "1.csv"]);
    sweep(&place, &["sweep.toml", "--shard", "2/2", "--out", "2.csv"]);
    sweep(&place, &["--merge", "1.csv", "2.csv", "--out", "merged.csv"]);
    assert_eq!(text(&place, "merged.csv"), text(&place, "whole.csv"));
    let journal = format!(
        "{{\"journal\":\"weir sweep 1\",\"sweep\":\"{}\",\"points\":6,\"shard\":\"2/2\"}}\n",
        column(&text(&place, "whole.csv"), "sweep")[0]
    );
    record(&place, &["--to", "19s"]);
    place.file("other.csv.journal", &journal);
    let args = ["sweep.toml", "--shard", "2/2", "--out", "other.csv"];
    refused(&place, &args, "this journal belongs to another sweep");
    fs::remove_file(place.path("other.csv.journal")).expect("a journal");
    sweep(&place, &args);
    refused(&place, &["--merge", "1.csv", "other.csv", "--out", "x.csv"], "1.csv is of the sweep ");
}

#[test]
fn closed_replays_have_no_verdict() {
    let place = place();
    let depth = SWEEP.replace("\"pace\"", "\"depth\"").replace("[1, 2, 10]", "[1, 8]");
    place.file("sweep.toml", &depth.replace("[replay]\n", "[replay]\npace = \"closed\"\n"));
    sweep(&place, &["sweep.toml", "--out", "all.csv", "--of", "elapsed"]);
    let all = text(&place, "all.csv");
    assert_eq!(column(&all, "status"), ["ok"; 4]);
    assert_eq!(column(&all, "keeps_up"), [""; 4]);
    assert_eq!(column(&all, "behind_most_ns"), [""; 4]);
    // The limit of 500 a second is reached at any depth, since a request takes 1 ms.
    let elapsed = column(&all, "elapsed_s");
    let seconds = |at: usize| elapsed[at].parse::<f64>().expect("a time");
    assert!(seconds(0) > 5.0 * seconds(2), "{elapsed:?}");
    place.file("sweep.toml", &depth);
    refused(&place, &["sweep.toml", "--out", "x.csv"], "depth = 1 needs pace = \"closed\"");
}

#[test]
fn wrong_options_of_traces_are_named() {
    let check = |from: &str, to: &str, expect: &str| {
        let place = place();
        assert!(SWEEP.contains(from), "{from}");
        place.file("sweep.toml", &SWEEP.replace(from, to));
        refused(&place, &["sweep.toml", "--out", "all.csv"], expect);
        assert!(!place.path("all.csv").exists() && !place.path("all.csv.journal").exists());
    };
    check("from = \"1s\"", "from = \"soon\"", "sweep.toml:6:8: \"soon\": ");
    check("from = \"1s\"", "start = \"1s\"", "sweep.toml:6:1: unknown field `start`");
    check("to = \"11s\"", "to = \"1s\"", "the window from 1 s to 1 s is empty");
    check("[1, 2, 10]", "[1, 0]", "parameter \"pace\", value \"0\": [replay]: pace = ");
    check("workload = \"pace\"", "workload = \"speed\"", "[replay]: unknown field `speed`");
    check("workload = \"pace\"", "workload = \"a.pace\"", "names no option of a replay");
    check("map =", "runtime = \"5s\"\nmap =", "[replay] from and to select a window");
    check("\"web/0\" =", "\"web/1\" =", "map: no trace has the device \"web/1\"; there are: web/0");
    check("to = \"11s\"", "devices = [\"web/2\"]", "devices: no trace has the device \"web/2\"");
    check("\"1s\"\nto = \"11s\"", "\"30s\"", "has no requests");
    check("web.weirtrace\"", "none.weirtrace\"", "none.weirtrace");
}

#[test]
fn a_damaged_trace_ends_the_sweep_before_the_first_point() {
    let place = place();
    let path = place.path("web.weirtrace");
    let mut bytes = fs::read(&path).expect("a trace");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("a trace");
    refused(&place, &["sweep.toml", "--out", "all.csv"], "web.weirtrace: ");
    assert!(!place.path("all.csv.journal").exists());
}
