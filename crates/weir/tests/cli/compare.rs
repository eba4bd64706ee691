//! `weir compare`: observations, results and layouts side by side, and invalid input.

use crate::common::{Place, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[volume]]\n\
    name = \"data\"\ntier = \"P10\"\n[[volume]]\nname = \"log\"\ntier = \"P20\"\n";

fn jobs(rate: u32) -> String {
    format!(
        "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
         ioengine=libaio\niodepth=16\nrate_iops={rate}\nrate_process=poisson\n"
    )
}

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("faster.toml", &LAYOUT.replace("P10", "P20"));
    place.file("job.fio", &jobs(300));
    place.file("less.fio", &jobs(200));
    place.file("held.fio", &jobs(900));
    place
}

/// Simulates jobs and returns the JSON of the result.
#[track_caller]
fn sim(place: &Place, args: &[&str]) -> String {
    let all = [&["sim", "layout.toml"], args, &["-o", "json"]].concat();
    let (stdout, stderr, code) = run(place.weir(&all));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    stdout
}

#[track_caller]
fn check(place: &Place, args: &[&str], code: i32, expect: &str) -> String {
    let (stdout, stderr, got) = run(place.weir(&[&["compare"], args].concat()));
    assert_eq!(got, Some(code), "{stdout}{stderr}");
    let shown = if code == 2 { &stderr } else { &stdout };
    assert!(shown.contains(expect), "{shown}");
    if code == 2 {
        assert_eq!((stdout.as_str(), stderr.lines().count()), ("", 1), "{stderr}");
        assert!(stderr.starts_with("weir: "), "{stderr}");
    }
    stdout
}

#[test]
fn observations_of_the_same_thing_are_alike_and_a_slower_one_is_worse() {
    let place = place();
    sim(&place, &["job.fio", "--seed", "1", "--observe", "a.weirobs"]);
    sim(&place, &["job.fio", "--seed", "2", "--observe", "b.weirobs"]);
    sim(&place, &["less.fio", "--seed", "3", "--observe", "c.weirobs"]);
    let same = check(&place, &["a.weirobs", "b.weirobs"], 0, "is like A");
    assert!(same.starts_with("B is like A: no tested rate or latency differs"), "{same}");
    assert!(same.contains("Welch's t test of 10 batch means"), "{same}");
    let worse = "B is worse than A: throughput of data is 3";
    let told = check(&place, &["a.weirobs", "c.weirobs", "--metric", "throughput"], 1, worse);
    assert!(told.contains("than the tolerance of 5.0 %"), "{told}");
    check(&place, &["a.weirobs", "c.weirobs", "--tolerance", "50%"], 0, "within the tolerance");
    // The order of the sides decides what is better.
    check(&place, &["c.weirobs", "a.weirobs", "--metric", "iops"], 0, "is better than A");
    let three = check(&place, &["a.weirobs", "b.weirobs", "c.weirobs"], 1, "C is worse than A");
    assert!(three.contains("\nB and A\n") && three.contains("\nC and A\n"), "{three}");
}

#[test]
fn all_formats_have_the_verdict_diagnosis_and_price() {
    let place = place();
    sim(&place, &["job.fio", "--observe", "a.weirobs"]);
    sim(&place, &["held.fio", "--observe", "b.weirobs"]);
    let sides = ["a.weirobs", "b.weirobs", "--html", "out.html", "-o"];
    let json = check(&place, &[&sides[..], &["json"]].concat(), 1, "");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["sides"][0]["diagnosis"], "healthy");
    assert_eq!(report["sides"][1]["diagnosis"], "throttled");
    assert_eq!(report["decided_by"]["metric"], "latency");
    let metrics = report["comparisons"][0]["metrics"].as_array().expect("metrics");
    let waiting = metrics.iter().find(|own| own["metric"] == "waiting at disk_iops");
    assert_eq!(waiting.expect("waits by cap")["outcome"], "worse");
    let page = fs::read_to_string(place.path("out.html")).expect("a page");
    assert!(page.contains("<h1>B is worse than A: latency of data"), "{page}");
    let csv = check(&place, &[&sides[..], &["csv"]].concat(), 1, "change_low");
    assert!(csv.lines().filter(|line| line.starts_with("metrics,")).count() > 3, "{csv}");
    check(&place, &[&sides[..], &["markdown"]].concat(), 1, "**B is worse than A");
    let mut narrow = place.weir(&["compare", "a.weirobs", "b.weirobs"]);
    narrow.env("COLUMNS", "80");
    let (text, _, _) = run(narrow);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn layouts_are_compared_by_simulation_with_several_seeds() {
    let place = place();
    let layouts = ["layout.toml", "faster.toml", "--workload", "held.fio", "--runtime", "5s"];
    let json = check(&place, &[&layouts[..], &["-o", "json"]].concat(), 0, "");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["sides"][0]["samples"], 10);
    assert_eq!(report["sides"][0]["diagnosis"], "throttled");
    assert!(report["sides"][1]["month_difference"].as_f64().is_some_and(|own| own > 0.0), "{json}");
    let metrics = report["comparisons"][0]["metrics"].as_array().expect("metrics");
    let outcome = |name: &str| {
        metrics.iter().find(|own| own["metric"] == name).map(|own| own["outcome"].clone())
    };
    assert_eq!(outcome("read p99"), Some("better".into()));
    assert_eq!(outcome("price"), Some("worse".into()));
    // A price decides only if it is asked for.
    let by_price = [&layouts[..], &["--metric", "price", "--tolerance", "1%"]].concat();
    check(&place, &by_price, 1, "B is worse than A: price of layout is");
    let same = ["layout.toml", "layout.toml", "--workload", "job.fio", "--runtime", "5s"];
    check(&place, &same, 0, "B is like A");
}

#[test]
fn folders_hold_repeated_runs() {
    let place = place();
    for (folder, jobs, seeds) in [("old", "job.fio", 1..6), ("new", "less.fio", 6..11)] {
        fs::create_dir(place.path(folder)).expect("a folder");
        for seed in seeds {
            let result = sim(&place, &[jobs, "--runtime", "5s", "--seed", &seed.to_string()]);
            place.file(&format!("{folder}/{seed}.json"), &result);
        }
    }
    check(&place, &["old", "new", "--metric", "iops"], 1, "B is worse than A: iops of a is 3");
    check(&place, &["old", "old"], 0, "Welch's t test of repeated runs");
    // One run alone shows no noise.
    check(&place, &["old/1.json", "new/6.json"], 2, "give folders with at least 3 results");
    fs::create_dir(place.path("empty")).expect("a folder");
    check(&place, &["old", "empty"], 2, "empty: the folder has no files");
    let over_time = sim(&place, &["job.fio", "--every", "1s"]);
    place.file("a.json", &over_time);
    check(&place, &["a.json", "a.json"], 0, "B is like A");
}

#[test]
fn labs_differ_by_more_than_the_tolerance_of_a_figure() {
    let place = Place::new();
    let lab = |value: f64| {
        format!(
            "[{{\"lab\":\"x\",\"figures\":[{{\"id\":\"iops\",\"unit\":\"IOPS\",\"virtual\":{value},\
             \"wall\":null,\"tolerance\":{{\"virtual\":0.02,\"wall\":0.02}}}}]}}]"
        )
    };
    place.file("a.json", &lab(500.0));
    place.file("b.json", &lab(505.0));
    place.file("c.json", &lab(560.0));
    check(&place, &["a.json", "b.json"], 0, "B is like A");
    check(&place, &["a.json", "c.json"], 1, "iops in IOPS, virtual of x is 12.0 % higher");
}

#[test]
fn options_of_imports_are_refused_where_nothing_is_imported() {
    let place = place();
    let layouts = ["layout.toml", "faster.toml", "--workload", "job.fio", "--day-first"];
    check(&place, &layouts, 2, "--day-first is for files of other tools, and no side is one");
    sim(&place, &["job.fio", "--observe", "a.weirobs"]);
    let observations = ["a.weirobs", "a.weirobs", "--time-unit", "s"];
    check(&place, &observations, 2, "--time-unit is for files of other tools");
}

#[test]
fn files_of_other_tools_are_imported() {
    let place = Place::new();
    let vmstat = |device: &str, count: u32| {
        let mut text = "Linux 5.10.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n".to_owned();
        for second in 0..count {
            let reads = 100 + second * 7 % 13;
            let _ = write!(
                text,
                "\n11/22/26 10:{:02}:{:02}\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await \
                 rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n{device}  \
                 {reads}.00 {}.00 0.00 0.00 2.00 8.00 0.00 0.00 0.00 0.00 0.00 0.00 0.20 20.00\n",
                second / 60,
                second % 60,
                reads * 8
            );
        }
        text
    };
    place.file("a.txt", &vmstat("sda", 60));
    place.file("b.txt", &vmstat("sdb", 60));
    place.file("short.txt", &vmstat("sda", 5));
    check(&place, &["a.txt", "a.txt"], 0, "B is like A");
    check(&place, &["a.txt", "short.txt"], 2, "short.txt is too short to compare: it has ");
    let none = "a.txt and b.txt have no common subject: a.txt has volume sda; b.txt has volume sdb";
    check(&place, &["a.txt", "b.txt"], 2, none);
    check(&place, &["a.txt", "b.txt", "--map", "sdb=sda"], 0, "B is like A");
    check(&place, &["a.txt", "b.txt", "--total"], 0, "all volumes");
    check(
        &place,
        &["a.txt", "b.txt", "--map", "sdx=sda"],
        2,
        "--map sdx: there is no such subject",
    );
    check(&place, &["a.txt", "a.txt", "--subject", "sdx"], 2, "did you mean \"sda\"");
    check(&place, &["a.txt", "a.txt", "--metric", "iop"], 2, "did you mean \"iops\"");
}

/// Text of iostat, in which the latency of each disk is given for each second.
fn iostat(disks: &[&str], latency: impl Fn(u32, &str) -> f64) -> String {
    let mut text = "Linux 5.10.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n".to_owned();
    for second in 0..300 {
        let _ = write!(
            text,
            "\n11/22/26 10:{:02}:{:02}\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await \
             rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n",
            second / 60,
            second % 60
        );
        for disk in disks {
            let (reads, wait) = (100 + second * 7 % 13, latency(second, disk));
            let _ = writeln!(
                text,
                "{disk}  {reads}.00 {}.00 0.00 0.00 {wait:.2} 8.00 0.00 0.00 0.00 0.00 0.00 0.00 0.20 \
                 20.00",
                reads * 8
            );
        }
    }
    text
}

#[test]
fn a_regression_that_cannot_be_tested_is_not_alike() {
    let place = Place::new();
    // A latency that drifts by a factor of ten cannot be tested, however much it grows.
    let drifting = |factor: f64| {
        iostat(&["sda"], |second, _| factor * (1.0 + 9.0 * f64::from(second) / 300.0))
    };
    place.file("a.txt", &drifting(1.0));
    place.file("b.txt", &drifting(10.0));
    let told = |args: &[&str]| {
        let (stdout, stderr, code) = run(place.weir(&[&["compare"], args].concat()));
        assert_eq!((stderr.as_str(), code), ("", Some(2)), "{stdout}");
        stdout
    };
    let text = told(&["a.txt", "b.txt"]);
    assert!(text.starts_with("Cannot tell whether B is worse than A: latency"), "{text}");
    assert!(text.contains("not tested") && !text.contains("is like A"), "{text}");
    let text = told(&["a.txt", "a.txt", "--metric", "latency"]);
    assert!(text.contains("no metric that decides could be tested"), "{text}");
}

#[test]
fn names_can_be_exchanged_and_what_one_side_lacks_is_noted() {
    let place = Place::new();
    let disks = |slow: &'static str| {
        iostat(&["sda", "sdb"], move |second, disk| {
            f64::from(second * 7 % 13) / 100.0 + if disk == slow { 9.0 } else { 2.0 }
        })
    };
    place.file("a.txt", &disks("sda"));
    place.file("b.txt", &disks("sdb"));
    check(&place, &["a.txt", "b.txt"], 1, "B is worse than A: latency");
    let swap = ["a.txt", "b.txt", "--map", "sda=sdb", "--map", "sdb=sda"];
    check(&place, &swap, 0, "B is like A");
    let merged = ["a.txt", "b.txt", "--map", "sdb=sda"];
    check(&place, &merged, 2, "would both be called sda");
    let twice = ["a.txt", "b.txt", "--map", "sdb=sda", "--map", "sda=sda"];
    check(&place, &twice, 2, "--map: sda is given twice");
    place.file("one.txt", &iostat(&["sda"], |second, _| f64::from(second * 7 % 13) / 100.0 + 9.0));
    check(&place, &["a.txt", "one.txt"], 1, "only A has them: volume sdb");
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let place = place();
    sim(&place, &["job.fio", "--observe", "a.weirobs"]);
    let kinds =
        "layout.toml is a layout and a.weirobs is an observation: compare inputs of one kind";
    check(&place, &["layout.toml", "a.weirobs"], 2, kinds);
    check(&place, &["layout.toml", "faster.toml"], 2, "give the workload with --workload FILE");
    let useless = ["a.weirobs", "a.weirobs", "--workload", "job.fio"];
    check(&place, &useless, 2, "--workload is for layouts, and the inputs are observations");
    check(&place, &["a.weirobs", "none"], 2, "none");
    let twice = [
        "a.weirobs",
        "a.weirobs",
        "a.weirobs",
        "--layout",
        "layout.toml",
        "--layout",
        "layout.toml",
    ];
    check(&place, &twice, 2, "--layout is given 2 times for 3 sides");
    check(&place, &["a.weirobs", "a.weirobs", "--html", "a.weirobs"], 2, "is an input file");
    let missing = ["layout.toml", "faster.toml", "--workload", "x.fio"];
    place.file("x.fio", &jobs(10).replace("/mnt/data", "/mnt/other"));
    check(&place, &missing, 2, "layout.toml: ");
    let (_, stderr, code) = run(place.weir(&["compare", "a.weirobs"]));
    assert_eq!(code, Some(2), "{stderr}");
}
