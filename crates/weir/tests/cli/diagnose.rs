//! `weir diagnose`: from runs, from what others say, and from what is no observation.

use crate::common::{Place, run};
use serde_json::Value;
use std::fmt::Write as _;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS3\" }\n[[volume]]\n\
    name = \"data\"\ntier = \"P10\"\n[[volume]]\nname = \"log\"\ntier = \"P20\"\n";

const HELD: &str = "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
    ioengine=libaio\niodepth=32\n";

const CALM: &str = "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
    ioengine=libaio\niodepth=4\nrate_iops=100\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("held.fio", HELD);
    place.file("calm.fio", CALM);
    place
}

#[track_caller]
fn observed(place: &Place, jobs: &str) {
    let (_, stderr, code) =
        run(place.weir(&["sim", "layout.toml", jobs, "--observe", "run.weirobs"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
}

/// iostat's report of a minute on one device: reads a second, and how long each took.
fn iostat(device: &str, reads: u32, await_ms: f64) -> String {
    let mut text = "Linux 5.10.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n".to_owned();
    for second in 0..60 {
        let depth = f64::from(reads) * await_ms / 1e3;
        let kib = reads * 8;
        let _ = write!(
            text,
            "\n11/22/26 10:{:02}:{:02}\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           \
             5.00    0.00    1.00    4.00    0.00   90.00\n\nDevice            r/s     rkB/s   rrqm/s  \
             %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   \
             drqm/s  %drqm d_await dareq-sz  aqu-sz  %util\n{device}  {reads}.00 {kib}.00 0.00 0.00 \
             {await_ms:.2} 8.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 {depth:.2} 99.00\n",
            second / 60,
            second % 60
        );
    }
    text
}

#[test]
fn a_run_that_is_held_is_called_so_and_the_exit_code_says_it() {
    let place = place();
    observed(&place, "held.fio");
    let (stdout, stderr, code) = run(place.weir(&["diagnose", "run.weirobs", "-o", "json"]));
    assert_eq!((stderr.as_str(), code), ("", Some(1)));
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["verdict"], "throttled");
    let first = &report["findings"][0];
    assert_eq!((&first["check_id"], &first["subject"]), (&101.into(), &"data".into()));
    assert_eq!((&first["cap"], &first["confidence"]), (&"disk_iops".into(), &"high".into()));
    // By simulation: a P20 has 2,300 instead of 500, and 32 requests under way are enough.
    let effect = &first["effect"];
    let (before, after) = (effect["iops_before"].as_f64(), effect["iops_after"].as_f64());
    assert!(before.is_some_and(|iops| (495.0..=505.0).contains(&iops)), "{effect}");
    assert!(after.is_some_and(|iops| (2_250.0..=2_310.0).contains(&iops)), "{effect}");
}

#[test]
fn a_run_that_is_not_is_healthy() {
    let place = place();
    observed(&place, "calm.fio");
    let (stdout, stderr, code) = run(place.weir(&["diagnose", "run.weirobs"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.starts_with("healthy: nothing holds requests back"), "{stdout}");
}

#[test]
fn what_others_say_is_diagnosed_with_a_layout() {
    let place = place();
    place.file("iostat.txt", &iostat("sdc", 498, 63.0));
    let args = ["diagnose", "iostat.txt", "--layout", "layout.toml", "--map", "sdc=data"];
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("throttled: data is held at its limit in operations"), "{stdout}");
    // The same, far from the limit.
    place.file("iostat.txt", &iostat("sdc", 60, 2.0));
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stdout}");
}

#[test]
fn all_formats_and_the_page() {
    let place = place();
    observed(&place, "held.fio");
    let as_format = |format: &str| {
        run(place.weir(&["diagnose", "run.weirobs", "-o", format, "--html", "r.html"])).0
    };
    let csv = as_format("csv");
    assert!(
        csv.starts_with("CheckID,Priority,FindingsGroup,Finding,URL,Details\n101,10,"),
        "{csv}"
    );
    assert!(as_format("markdown").starts_with("# throttled\n"));
    let page = std::fs::read_to_string(place.path("r.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("disk-operations"));
}

#[track_caller]
fn refused(place: &Place, args: &[&str], says: &[&str]) {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    for word in says {
        assert!(stderr.contains(word), "{word} is not in {stderr}");
    }
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let place = place();
    observed(&place, "held.fio");
    place.file("nothing.txt", "nothing that anybody knows\n");
    place.file("iostat.txt", &iostat("sdc", 498, 63.0));
    refused(&place, &["diagnose", "missing.weirobs"], &["missing.weirobs"]);
    refused(&place, &["diagnose", "nothing.txt"], &["nothing.txt"]);
    let with = |rest: &[&'static str]| -> Vec<&'static str> {
        ["diagnose", "iostat.txt"].into_iter().chain(rest.iter().copied()).collect()
    };
    refused(&place, &with(&["--edition", "azure-mi"]), &["azure-mi-2018"]);
    refused(&place, &with(&["--layout", "layout.toml"]), &["sdc", "data, host, log", "--map"]);
    let map = |map: &'static str| with(&["--layout", "layout.toml", "--map", map]);
    refused(&place, &map("sdc"), &["OBSERVED=LAYOUT"]);
    refused(&place, &map("sdb=data"), &["sdb", "sdc"]);
    refused(&place, &map("sdc=dat"), &["\"dat\"", "\"data\""]);
}
