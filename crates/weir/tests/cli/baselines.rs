//! `weir observe snapshot`, `snapshots`, `between` and `percentiles`.

use crate::common::{IOSTAT, Place, run};
use crate::tools;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;

const HEAD: &str = "collection_time,database_name,file_name,type_desc,num_of_reads,\
    num_of_bytes_read,io_stall_read_ms,io_stall_queued_read_ms,num_of_writes,\
    num_of_bytes_written,io_stall_write_ms,io_stall_queued_write_ms,size_on_disk_bytes\n";
const WAITS: &str = "\ncollection_time,wait_type,waiting_tasks_count,wait_time_ms,\
    max_wait_time_ms,signal_wait_time_ms\n";

/// Returns the counters of a server's files and waits.
fn before() -> String {
    format!(
        "{HEAD}2026-11-22 10:00:00,tpcc,data,ROWS,1000,8192000,5000,1000,100,1638400,900,500,\
         107374182400\n\
         2026-11-22 10:00:00,tpcc,log,LOG,7,57344,14,0,2000,8192000,4000,0,1073741824\n{WAITS}\
         2026-11-22 10:00:00,PAGEIOLATCH_SH,50,100000,3000,10\n\
         2026-11-22 10:00:00,SLEEP_TASK,10,90000,3000,10\n"
    )
}

/// 100 s later: 40,000 reads of 8 KiB that took 2,000 ms each, 1,997 of it in a queue, and
/// 8,900 writes of 16 KiB that took 1,800 ms, all but 4 of it in a queue.
fn after() -> String {
    format!(
        "{HEAD}2026-11-22 10:01:40,tpcc,data,ROWS,41000,335872000,80005000,79881000,9000,\
         147456000,16020900,15984900,107374182400\n\
         2026-11-22 10:01:40,tpcc,log,LOG,7,57344,14,0,2500,12288000,5500,0,2147483648\n{WAITS}\
         2026-11-22 10:01:40,PAGEIOLATCH_SH,40050,80100000,4500,410\n\
         2026-11-22 10:01:40,SLEEP_TASK,20,190000,3000,10\n\
         2026-11-22 10:01:40,WRITELOG,1500,3500,40,5\n"
    )
}

fn place() -> Place {
    let place = Place::new();
    place.file("before.csv", &before());
    place.file("after.csv", &after());
    place
}

/// The answer to arguments that are fine.
#[track_caller]
fn ok(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!(code, Some(0), "{stderr}");
    stdout
}

#[track_caller]
fn refused(place: &Place, args: &[&str], expect: &str) {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    let last = stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("weir: {expect}")), "{stderr}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn snapshot(place: &Place, name: &str, file: &str) -> String {
    ok(place, &["observe", "snapshot", "--name", name, file])
}

fn between(place: &Place, args: &[&str]) -> Value {
    json(&ok(place, &[&["observe", "between"], args, &["-o", "json"]].concat()))
}

/// The figures of the two captures, by hand.
#[track_caller]
fn is_by_hand(report: &Value) {
    assert_eq!(report["interval_s"], 100.0);
    let data = &report["file_stats"][0];
    let expect = serde_json::json!({
        "db_name": "tpcc", "file_name": "data", "type": "ROWS", "size_gb": 100.0,
        "throughput_mbps": 4.515625, "read_mbps": 3.125, "write_mbps": 1.390625,
        "iops": 489.0, "read_iops": 400.0, "write_iops": 89.0,
        "latency_ms": 96_020_000.0 / 48_900.0, "read_latency_ms": 2000.0,
        "write_latency_ms": 1800.0, "read_io_latency_ms": 3.0, "write_io_latency_ms": 4.0,
        "kb_per_read": 8.0, "kb_per_write": 16.0, "kb_per_io": 462_400.0 / 48_900.0,
        "read_mb": 312.5, "write_mb": 139.0625, "num_of_reads": 40_000.0,
        "num_of_writes": 8_900.0, "interval_mi": 100.0 / 60.0,
    });
    assert_eq!(data.as_object().expect("a file").len(), 23);
    for (key, value) in expect.as_object().expect("figures") {
        match (value.as_f64(), data[key].as_f64()) {
            (Some(value), Some(own)) => assert!((own / value - 1.0).abs() < 1e-12, "{key}: {own}"),
            _ => assert_eq!(&data[key], value, "{key}"),
        }
    }
    let log = &report["file_stats"][1];
    assert_eq!((&log["type"], &log["num_of_reads"]), (&"LOG".into(), &0.0.into()));
    // Nothing was read, so there is no latency.
    for key in ["read_latency_ms", "read_io_latency_ms", "kb_per_read"] {
        assert_eq!(log[key], Value::Null, "{key}");
    }
    assert_eq!((&log["write_latency_ms"], &log["size_gb"]), (&3.0.into(), &2.0.into()));
    let waits = report["wait_stats"].as_array().expect("waits");
    assert_eq!(waits.len(), 1);
    let wait = serde_json::json!({
        "category": "Buffer IO", "wait_type": "PAGEIOLATCH_SH", "waiting_tasks_count": 40_000.0,
        "wait_time_s": 80_000.0, "wait_per_task_ms": 2000.0, "max_wait_time_ms": 4500.0,
        "signal_wait_time_s": 0.4, "category_id": 6, "parent": "host",
        "info": "www.sqlskills.com/help/waits/PAGEIOLATCH_SH",
    });
    assert_eq!(waits[0], wait);
}

#[test]
fn a_baseline_is_taken_and_compared() {
    let place = place();
    assert_eq!(
        snapshot(&place, "before", "before.csv"),
        "snapshots/before.weirobs: taken 2026-11-22 10:00:00Z, files: 2, volumes: 0, waits: 2\n"
    );
    snapshot(&place, "after", "after.csv");
    let report = between(&place, &["before", "after"]);
    is_by_hand(&report);
    assert_eq!(
        report["notes"],
        serde_json::json!([
            "background waits left out, as in qpi.wait_stats: 1; --all-waits lists them",
            "waits only in after, so their times are unknown: WRITELOG (at most 3.5 s)",
        ])
    );
    let moment = &report["from"];
    assert_eq!(
        (&moment["name"], &moment["taken"]),
        (&"before".into(), &"2026-11-22 10:00:00Z".into())
    );
    let all = between(&place, &["before", "after", "--all-waits"]);
    assert_eq!(all["wait_stats"][1]["wait_type"], "SLEEP_TASK");
    let text = ok(&place, &["observe", "between", "before", "after"]);
    let head = "from before (2026-11-22 10:00:00Z) to after (2026-11-22 10:01:40Z): 100 s\n";
    assert!(text.starts_with(head) && text.contains(" read_io_latency_ms "), "{text}");
    let csv = ok(&place, &["observe", "between", "before", "after", "-o", "csv"]);
    let row = "file_stats,,,,,,tpcc,data,100,4.515625,3.125,1.390625,489,400,89,";
    assert!(csv.lines().any(|line| line.starts_with(row)), "{csv}");
    let markdown = ok(&place, &["observe", "between", "before", "after", "-o", "markdown"]);
    assert!(markdown.contains("| db_name | file_name |"), "{markdown}");
}

#[test]
fn files_and_times_of_one_observation_come_to_the_same() {
    let place = place();
    is_by_hand(&between(&place, &["before.csv", "after.csv"]));
    snapshot(&place, "before", "before.csv");
    is_by_hand(&between(&place, &["before", "after.csv"]));
    let import = ["observe", "import", "before.csv", "after.csv", "--out", "both.weirobs"];
    ok(&place, &import);
    for (from, to) in [
        ("both.weirobs@first", "both.weirobs@last"),
        ("both.weirobs@first", "both.weirobs"),
        ("both.weirobs@0s", "both.weirobs@100s"),
        ("both.weirobs@10:01", "both.weirobs@2026-11-22 10:01:40"),
        ("both.weirobs@11:00:00+01:00", "both.weirobs@2026-11-22T10:01:40Z"),
        ("before", "both.weirobs@last"),
    ] {
        is_by_hand(&between(&place, &[from, to]));
    }
    // As they were imported.
    let import = [&import[..], &["--utc-offset", "+01:00"]].concat();
    ok(&place, &import);
    let report = between(&place, &["both.weirobs@10:00", "both.weirobs@10:01:40"]);
    is_by_hand(&report);
    assert_eq!(report["to"]["taken"], "2026-11-22 10:01:40+01:00");
}

#[test]
fn an_invalid_interval_between_snapshots_is_refused() {
    let place = place();
    snapshot(&place, "before", "before.csv");
    snapshot(&place, "after", "after.csv");
    ok(&place, &["observe", "import", "before.csv", "after.csv", "--out", "both.weirobs"]);
    let check = |from: &str, to: &str, expect: &str| {
        refused(&place, &["observe", "between", from, to], expect);
    };
    check("after", "before", "before: it is the older one, by 100 s: give the older one first");
    check(
        "after",
        "after.csv",
        "after.csv: both have the same time, so there is no interval between them",
    );
    check("after", "after", "after: both have the same time, 2026-11-22 10:01:40Z; give two");
    check(
        "both.weirobs@last",
        "both.weirobs@first",
        "both.weirobs@first: it is 2026-11-22 10:00:00Z, before 2026-11-22 10:01:40Z: give the",
    );
    check(
        "both.weirobs@10s",
        "both.weirobs@20s",
        "both.weirobs@20s: there is no sample after 2026-11-22 10:00:10Z until",
    );
    check(
        "both.weirobs@9:00",
        "both.weirobs",
        "both.weirobs@9:00: no sample at that time: the samples",
    );
    check(
        "both.weirobs@soon",
        "both.weirobs",
        "both.weirobs@soon: \"soon\" is not a time; use first,",
    );
    check(
        "none",
        "after",
        "none: it is neither a snapshot in snapshots (there are: after, before) nor a file; write \
         a time",
    );
    check(
        "before@first",
        "after",
        "before@first: a snapshot has only one time; give its name alone",
    );
    place.file("before", &before());
    check(
        "before",
        "after",
        "before: it is both a snapshot, snapshots/before.weirobs, and a file; give",
    );
    ok(&place, &["observe", "between", "./before", "after"]);
    refused(
        &place,
        &["observe", "between", "after.csv", "before.csv", "--apart", "1h"],
        "before.csv: it is the older one",
    );
    refused(
        &place,
        &["observe", "between", "before.csv", "after.csv", "--apart", "1h"],
        "after.csv: both have times, so the time between them is known: 100 s",
    );
}

#[test]
fn after_a_restart_nothing_can_be_told() {
    let place = place();
    place.file("after.csv", &after().replace("ROWS,41000", "ROWS,900"));
    let (stdout, _, code) =
        run(place.weir(&["observe", "between", "before.csv", "after.csv", "-o", "json"]));
    assert_eq!(code, Some(1), "{stdout}");
    let report = json(&stdout);
    assert_eq!(report["file_stats"][0]["iops"], Value::Null);
    // Its server was started again, and so what looks like growth of the other is none.
    assert_eq!(report["file_stats"][1]["num_of_writes"], Value::Null);
    let notes = report["notes"].to_string();
    assert!(notes.contains("counters decreased, as after a restart: tpcc/data;"), "{notes}");
    assert!(notes.contains("nothing is known about this interval"), "{notes}");
}

#[test]
fn without_times_there_are_counts_and_no_rates() {
    let place = Place::new();
    let undated = |text: String| {
        let lines = text.lines().map(|line| line.split_once(',').map_or("", |(_, rest)| rest));
        lines.collect::<Vec<_>>().join("\n")
    };
    place.file("before.csv", &undated(before()));
    place.file("after.csv", &undated(after()));
    let (_, stderr, code) = run(place.weir(&["observe", "snapshot", "--name", "b", "before.csv"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("before.csv: it does not state its time, so later rates"), "{stderr}");
    let report = between(&place, &["b", "after.csv"]);
    let data = &report["file_stats"][0];
    assert_eq!((&data["iops"], &data["interval_mi"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&data["num_of_reads"], &data["read_latency_ms"]),
        (&40_000.0.into(), &2000.0.into())
    );
    assert_eq!(report["interval_s"], Value::Null);
    is_by_hand(&between(&place, &["b", "after.csv", "--apart", "100s"]));
    // `now` is read at the time of the call.
    let mut command = place.weir(&["observe", "snapshot", "--name", "now", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("a program");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(undated(before()).as_bytes()).expect("a reader");
    drop(input);
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("-: it does not state its time: the current time is used"), "{said}");
    let list = json(&ok(&place, &["observe", "snapshots", "-o", "json"]));
    assert_eq!((&list[0]["name"], list[0]["taken"].is_string()), (&"now".into(), true));
    assert_eq!((&list[1]["name"], &list[1]["taken"]), (&"b".into(), &Value::Null));
}

#[test]
fn snapshots_are_listed_and_names_stay_in_the_folder() {
    let place = place();
    let none = ok(&place, &["observe", "snapshots"]);
    assert!(
        none.starts_with("there are no snapshots in snapshots; weir observe snapshot"),
        "{none}"
    );
    snapshot(&place, "late", "after.csv");
    snapshot(&place, "early one", "before.csv");
    let list = json(&ok(&place, &["observe", "snapshots", "-o", "json"]));
    let early = serde_json::json!({
        "name": "early one", "taken": "2026-11-22 10:00:00Z", "source": "sqlserver", "files": 2,
        "volumes": 0, "waits": 2, "others": 0, "what": "before.csv",
    });
    assert_eq!((&list[0], &list[1]["name"]), (&early, &"late".into()));
    let names = ["", "../x", "a/b", "..", ".hidden", "a@b", "/tmp/x", "a\\b"];
    for name in names {
        let expect =
            format!("{name:?} is not a name for a snapshot: use 1 to 100 bytes that do not");
        refused(&place, &["observe", "snapshot", "--name", name, "before.csv"], &expect);
    }
    let there = "--name late: a snapshot of this name exists in snapshots; choose another name, or add --replace";
    refused(&place, &["observe", "snapshot", "--name", "late", "before.csv"], there);
    ok(&place, &["observe", "snapshot", "--name", "late", "before.csv", "--replace"]);
    let list = json(&ok(&place, &["observe", "snapshots", "-o", "json"]));
    assert_eq!(list[1]["taken"], "2026-11-22 10:00:00Z");
    fs::write(place.path("snapshots/bad.weirobs"), "Dear Sir").expect("a file");
    let (stdout, stderr, code) = run(place.weir(&["observe", "snapshots"]));
    assert_eq!((stdout.lines().count(), code), (3, Some(0)));
    assert!(
        stderr.starts_with("weir: snapshots/bad.weirobs: this is not an observation"),
        "{stderr}"
    );
}

#[test]
fn rates_are_of_a_stretch_and_make_no_snapshot() {
    let place = Place::new();
    place.file("iostat.txt", IOSTAT);
    let expect =
        "iostat.txt: it has rates and no counters, and the rates of one sample say nothing";
    refused(&place, &["observe", "snapshot", "--name", "a", "iostat.txt"], expect);
    ok(&place, &["observe", "import", "iostat.txt", "--out", "db1.weirobs"]);
    let report = between(&place, &["db1.weirobs@first", "db1.weirobs@last"]);
    let sda = &report["io_stats"][0];
    assert_eq!(
        (&sda["name"], &sda["parent"], &sda["kind"]),
        (&"sda".into(), &"db1".into(), &"volume".into())
    );
    assert_eq!((&sda["iops"], &sda["read_mbps"]), (&350.0.into(), &(2400.0 / 1024.0).into()));
    // By operations: 400 of 2 ms, 100 of 7 ms and 200 of 4 ms.
    let latency = sda["latency_ms"].as_f64().expect("a figure");
    assert!((latency - 2_300.0 / 700.0).abs() < 1e-9, "{latency}");
    assert_eq!(sda["read_io_latency_ms"], Value::Null);
    let last = between(&place, &["db1.weirobs@5s", "db1.weirobs@last"]);
    assert_eq!(last["io_stats"][0]["iops"], 200.0);
    fs::copy(place.path("db1.weirobs"), place.path("two.weirobs")).expect("a copy");
    refused(
        &place,
        &["observe", "between", "db1.weirobs@first", "two.weirobs@last"],
        "two.weirobs@last: it and db1.weirobs@first have rates and no counters",
    );
}

#[test]
fn a_snapshot_that_is_killed_leaves_the_old_one() {
    let place = place();
    snapshot(&place, "a", "before.csv");
    let old = fs::read(place.path("snapshots/a.weirobs")).expect("a file");
    let mut command = place.weir(&["observe", "snapshot", "--name", "a", "--replace", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("a program");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(after().as_bytes()).expect("a reader");
    // It has begun with its file, and waits for more input.
    let parts = || {
        let all = fs::read_dir(place.path("snapshots")).expect("a folder");
        all.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().ends_with(".part")
        })
        .count()
    };
    while parts() == 0 {
        assert_eq!(child.try_wait().expect("a state"), None, "it ended by itself");
        thread::yield_now();
    }
    child.kill().expect("it runs");
    child.wait().expect("an end");
    assert_eq!(fs::read(place.path("snapshots/a.weirobs")).expect("a file"), old);
    // The file that it left is no snapshot and does not disturb others.
    assert_eq!(parts(), 1);
    let list = json(&ok(&place, &["observe", "snapshots", "-o", "json"]));
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    ok(&place, &["observe", "snapshot", "--name", "a", "--replace", "after.csv"]);
    assert_ne!(fs::read(place.path("snapshots/a.weirobs")).expect("a file"), old);
}

#[test]
fn a_snapshot_that_fails_leaves_nothing() {
    let place = place();
    place.file("letter.txt", "Dear Sir,\n");
    snapshot(&place, "a", "before.csv");
    let expect = "letter.txt: unknown kind of input";
    refused(&place, &["observe", "snapshot", "--name", "a", "--replace", "letter.txt"], expect);
    refused(&place, &["observe", "snapshot", "--name", "b", "none.txt"], "cannot read none.txt: ");
    assert_eq!(fs::read_dir(place.path("snapshots")).expect("a folder").count(), 1);
    ok(&place, &["observe", "import", "before.csv", "--out", "o.weirobs"]);
    refused(
        &place,
        &["observe", "snapshot", "--name", "b", "o.weirobs", "after.csv"],
        "o.weirobs: it is an observation, and only one can be given",
    );
    refused(
        &place,
        &["observe", "snapshot", "--name", "b", "o.weirobs", "--every", "5s"],
        "o.weirobs: it is an observation, and --every is for files of other tools; leave it out",
    );
    ok(&place, &["observe", "snapshot", "--name", "b", "o.weirobs"]);
    is_by_hand(&between(&place, &["b", "after.csv"]));
}

#[test]
fn percentiles_are_of_stretches_by_the_clock() {
    let place = Place::new();
    // A minute of samples a second: 100 IOPS until the minute is full, then 200, of 2 and 4 ms.
    let mut text = "Linux 5.15.0 (db1)\t03/14/19\t_x86_64_\t(4 CPU)\n".to_owned();
    for second in 0..=60 {
        let (minute, second) = (42 + (30 + second) / 60, (30 + second) % 60);
        let rate = if minute == 42 || second == 0 { 100 } else { 200 };
        text += &format!(
            "\n03/14/19 00:{minute}:{second:02}\n\
             Device r/s w/s rkB/s wkB/s r_await w_await aqu-sz %util\n\
             sda {rate} 0 {} 0 {} 0 1 50\n",
            rate * 8,
            rate / 50
        );
    }
    place.file("iostat.txt", &text);
    ok(&place, &["observe", "import", "iostat.txt", "--out", "o.weirobs"]);
    let percentiles = ["observe", "percentiles", "o.weirobs", "--each", "1min"];
    let report = json(&ok(&place, &[&percentiles[..], &["-o", "json"]].concat()));
    let rows = report["rows"].as_array().expect("rows");
    let figures: Vec<(&str, &str, f64, u64)> = rows
        .iter()
        .map(|row| {
            let (from, of) = (row["from"].as_str(), row["name"].as_str());
            let p99 = row["p99"].as_f64().expect("a figure");
            (
                from.expect("a time"),
                of.expect("a name"),
                p99,
                row["samples"].as_u64().expect("a count"),
            )
        })
        .collect();
    assert_eq!(rows.len(), 6, "{figures:?}");
    let near = |value: f64, expect: f64| assert!((value / expect - 1.0).abs() < 0.01, "{value}");
    let text = ok(&place, &percentiles);
    for (row, expect) in rows.iter().zip([100.0, 819_200.0, 2e6, 200.0, 1_638_400.0, 4e6]) {
        near(row["p50"].as_f64().expect("a figure"), expect);
        near(row["p99"].as_f64().expect("a figure"), expect);
        near(row["max"].as_f64().expect("a figure"), expect);
        assert_eq!(row["samples"], 30, "{text}");
    }
    let begins: Vec<_> = rows.iter().step_by(3).map(|row| row["from"].clone()).collect();
    assert_eq!(begins, ["2019-03-14 00:42:30Z", "2019-03-14 00:43:00Z"]);
    let one = [&percentiles[..], &["--of", "read-latency", "--only", "sda", "-o", "csv"]].concat();
    let csv = ok(&place, &one);
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.lines().nth(1).is_some_and(|line| line.contains(",sda,read latency,nanoseconds,")));
    refused(
        &place,
        &["observe", "percentiles", "o.weirobs", "--of", "speed"],
        "--of speed: there is no such figure; there are: iops, throughput, reads,",
    );
    refused(
        &place,
        &["observe", "percentiles", "o.weirobs", "--each", "1ms"],
        "--each 1 ms: this gives 60000 intervals, and at most 10000 are shown; give a longer time",
    );
    refused(
        &place,
        &["observe", "percentiles", "o.weirobs", "--only", "sdb"],
        "--only sdb: nothing has that name",
    );
}

/// The report of an interval equals the one that qpi itself printed.
#[test]
fn a_genuine_result_of_qpi_comes_out_as_it_was() {
    let Some(samples) = tools::samples() else { return };
    let path = samples.join("sql_qpi/mi_gp_cell31_2020-01-22T133520_file_stats.csv");
    let text = fs::read_to_string(path).expect("a sample");
    let place = Place::new();
    place.file("qpi.csv", &text);
    ok(&place, &["observe", "import", "qpi.csv", "--out", "qpi.weirobs"]);
    let report = between(&place, &["qpi.weirobs@first", "qpi.weirobs@last"]);
    let heads: Vec<&str> = text.lines().next().expect("a head").trim().split(',').collect();
    let files = report["file_stats"].as_array().expect("files");
    assert_eq!(files.len(), text.trim().lines().count() - 1);
    for line in text.trim().lines().skip(1) {
        let cells: Vec<&str> = line.trim().split(',').collect();
        let is_it = |file: &&Value| file["db_name"] == cells[0] && file["file_name"] == cells[1];
        let file = files.iter().find(is_it).unwrap_or_else(|| panic!("no {line}"));
        let said = |head: &str| {
            let at = heads.iter().position(|own| *own == head).expect("a column");
            cells[at].parse::<f64>().unwrap_or(0.0)
        };
        for (head, cell) in heads.iter().zip(&cells).skip(2) {
            let own = &file[*head];
            let Ok(cell) = cell.parse::<f64>() else {
                let expect = if *cell == "NULL" { Value::Null } else { (*cell).into() };
                assert_eq!(own, &expect, "{head} of {line}");
                continue;
            };
            let own = own.as_f64().unwrap_or_else(|| panic!("{head} of {line}: {own}"));
            let near = near_qpi(head, cell, said);
            assert!((own - cell).abs() <= near, "{head}: {own}, not within {near} of {line}");
        }
    }
}

/// How near a figure can be to what qpi has printed: half of its last digit, and what follows
/// from that for what is worked out from others (of MB there are two decimals, of rates an
/// import keeps three; how long it was, its fastest file tells to four digits).
fn near_qpi(head: &str, cell: f64, said: impl Fn(&str) -> f64) -> f64 {
    let seconds = (said("interval_mi") + 1.0) * 60.0;
    let of_counts = 0.0005 * seconds;
    let per = |bytes_kb: f64, count: f64| {
        0.06 + bytes_kb / count.max(1.0) + cell * of_counts / count.max(1.0)
    };
    match head {
        "size_gb" => 1e-6,
        "iops" | "read_iops" | "write_iops" => 0.51,
        "throughput_mbps" => 0.0101 + cell * 0.0005,
        "read_mbps" | "write_mbps" => 0.0051 + cell * 0.0005,
        "read_mb" | "write_mb" => 0.001,
        "kb_per_read" => per(5.13, said("num_of_reads")),
        "kb_per_write" => per(5.13, said("num_of_writes")),
        "kb_per_io" => per(10.25, said("num_of_reads") + said("num_of_writes")),
        "num_of_reads" | "num_of_writes" => of_counts,
        // Minutes that have begun, there.
        "interval_mi" => 1.0,
        _ => 0.051,
    }
}
