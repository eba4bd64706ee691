//! `weir observe import` and `show` of what other systems say.

use crate::common::{Place, run};
use serde_json::Value;

#[track_caller]
fn imported(place: &Place, files: &[&str], rest: &[&str]) -> String {
    let args = [&["observe", "import"], files, rest, &["--out", "o.weirobs"]].concat();
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    stderr
}

#[track_caller]
fn shown(place: &Place, format: &str) -> String {
    let (stdout, stderr, code) = run(place.weir(&["observe", "show", "o.weirobs", "-o", format]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    stdout
}

fn show(place: &Place) -> Value {
    serde_json::from_str(&shown(place, "json")).expect("JSON")
}

const VMSTAT: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
    2  0      0 279469   2108  31273    0    0 90000 80000   29   57  0  0 99  0  1\n \
    5  3      0 279400   2108  31274    0    0  4096   100   29   57 10  5 60 25  0\n \
    1  0      0 279400   2108  31274    0    0  2048   300   29   57  0  0 100  0  0\n";

#[test]
fn blocks_of_vmstat_are_the_throughput_of_the_machine() {
    let place = Place::new();
    place.file("vmstat.txt", VMSTAT);
    let notes = imported(&place, &["vmstat.txt"], &[]);
    assert!(notes.contains("the first row is an average since boot"), "{notes}");
    let show = show(&place);
    let host = &show["hosts"][0];
    // 4,196 and 2,348 KiB a second; the row since the start has 170,000.
    assert_eq!((&host["name"], &host["iops"]), (&"host".into(), &Value::Null));
    assert_eq!(host["bytes_per_s"]["mean"].as_f64(), Some(3272.0 * 1024.0));
    assert_eq!(host["bytes_per_s"]["max"].as_f64(), Some(4196.0 * 1024.0));
    let text = shown(&place, "text");
    assert!(text.contains("machine") && text.contains("3.20"), "{text}");
}

/// Inputs with one snapshot of counters, and where in the report what they count is.
fn snapshots() -> [(&'static str, String, &'static str); 4] {
    let diskstats = "   8       0 sda 5000 3 40000 900 700 1 5600 200 0 800 1100\n".to_owned();
    let vmstat_d =
        "disk- ------------reads------------ ------------writes----------- -----IO------\n       \
        total merged sectors      ms  total merged sectors      ms    cur    sec\n\
        sda   5000      3   40000     900    700      1    5600     200      0      8\n"
            .to_owned();
    let stall = "database_name,file_name,num_of_reads,num_of_bytes_read,io_stall_read_ms,\
        num_of_writes,num_of_bytes_written,io_stall_write_ms\n\
        db,data,5000,40960000,900,700,5734400,200\n"
        .to_owned();
    let fio = r#"{"fio version":"fio-3.28","timestamp":1700000000,"jobs":[{"jobname":"t",
        "read":{"iops":0.0,"total_ios":0}}],"disk_util":[{"name":"sda","read_ios":5000,
        "write_ios":700,"read_sectors":40000,"write_sectors":5600,"read_ticks":900,
        "write_ticks":200,"in_queue":1100,"util":8.0}]}"#
        .to_owned();
    [
        ("diskstats", diskstats, "volumes"),
        ("vmstat-d", vmstat_d, "volumes"),
        ("stall.csv", stall, "files"),
        ("fio.json", fio, "volumes"),
    ]
}

#[test]
fn one_snapshot_of_counters_has_no_rate_in_any_format() {
    for (name, input, of) in snapshots() {
        let place = Place::new();
        place.file(name, &input);
        imported(&place, &[name], &[]);
        let show = show(&place);
        let own = &show[of][0];
        assert!(own["name"] == "sda" || own["name"] == "data", "{name}: {show}");
        for figure in ["iops", "bytes_per_s", "near_iops_limit_share"] {
            assert_eq!(own[figure], Value::Null, "{name}: {figure}");
        }
        for format in ["text", "csv", "markdown"] {
            let text = shown(&place, format);
            // A rate of nothing would be printed as 0 or 0.00.
            let is_own = |line: &&str| line.contains("sda") || line.contains("data");
            let rates = text.lines().filter(is_own).flat_map(|line| line.split(['|', ',', ' ']));
            let zeros: Vec<&str> =
                rates.filter(|cell| matches!(cell.trim(), "0" | "0.0" | "0.00")).collect();
            assert!(zeros.is_empty(), "{name} as {format}: {text}");
        }
    }
}

#[test]
fn a_wait_that_came_in_between_is_shown_with_all_of_it() {
    let place = Place::new();
    let head = "wait_type,waiting_tasks_count,wait_time_ms\n";
    place.file("before.csv", &format!("{head}WRITELOG,6,5\n"));
    place.file("after.csv", &format!("{head}WRITELOG,10,30\nLCK_M_X,3,900\n"));
    imported(&place, &["before.csv", "after.csv"], &["--every", "60s"]);
    let show = show(&place);
    let waits = show["databases"][0]["waits"].as_array().expect("waits");
    let waits: Vec<_> =
        waits.iter().map(|own| (own["wait"].as_str(), own["time_ms"].as_f64())).collect();
    assert_eq!(waits, [(Some("LCK_M_X"), Some(900.0)), (Some("WRITELOG"), Some(25.0))]);
}

#[test]
fn the_unit_of_times_is_told_and_said() {
    let place = Place::new();
    let rows: String = (0..200).map(|n| format!("{n},web,0,Read,{},4096,1\n", n * 4096)).collect();
    place.file("trace.csv", &rows);
    let args = ["observe", "import", "trace.csv", "--out", "o.weirobs"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("state the unit with --time-unit s, ms, us, ns or 100ns"), "{stderr}");
    imported(&place, &["trace.csv"], &["--time-unit", "ms"]);
    // 200 in 199 ms.
    let (_, stderr, code) = run(place.weir(&[&args[..], &["--time-unit", "min"]].concat()));
    assert_eq!(code, Some(2), "{stderr}");
}

const PROCESSORS: &str = "Linux 5.15.0 (db1)\t03/14/19\t_x86_64_\t(4 CPU)\n\n\
    03/14/19 00:42:24\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
    \x20          1.00    1.00    3.00    5.00    0.50   89.50\n\n\
    03/14/19 00:42:29\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
    \x20         10.00    0.00    5.00   35.00    0.00   50.00\n\n";

#[test]
fn processors_alone_are_observed_and_a_diagnosis_says_that_there_are_no_disks() {
    let place = Place::new();
    place.file("iostat.txt", PROCESSORS);
    let notes = imported(&place, &["iostat.txt"], &[]);
    assert!(notes.contains("iostat.txt: iostat, samples: 1"), "{notes}");
    assert!(notes.contains("say nothing about disks"), "{notes}");
    // The interval is that since the report that is left out.
    let text = shown(&place, "text");
    assert!(text.contains("2 samples from 0 s to 5.00 s"), "{text}");
    // Ten minutes are enough to say something, and disks are missing still.
    let report = &PROCESSORS[PROCESSORS.rfind("avg-cpu").unwrap()..];
    let place = Place::new();
    place.file("long.txt", &report.repeat(120));
    imported(&place, &["long.txt"], &["--every", "5s"]);
    let (stdout, _, code) = run(place.weir(&["diagnose", "o.weirobs"]));
    assert!(
        stdout.starts_with("not enough evidence: no disk and no file was observed: "),
        "{stdout}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn an_input_of_no_known_kind_is_told_the_nearest_ones() {
    let place = Place::new();
    place.file("disks.txt", "Disk r/s w/s rkB/s wkB/s %util\nsda 1.0 2.0 3.0 4.0 5.0\n");
    let args = ["observe", "import", "disks.txt", "--out", "o.weirobs"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stdout.as_str(), code), ("", Some(2)));
    let expect =
        "the nearest kinds are iostat (it has \"r/s\", \"w/s\", \"%util\", but lacks \"Device\")";
    assert!(stderr.contains(expect), "{stderr}");
}
