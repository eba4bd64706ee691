//! Invalid input of `weir sweep`: one message each, and nothing is written.

use super::{SWEEP, place, sweep};
use crate::common::{Place, run};
use std::fs;

/// Expects exit code 2 and one message.
#[track_caller]
fn check(place: &Place, args: &[&str], expect: &str) {
    let names = || {
        let entries = fs::read_dir(place.dir()).expect("a folder");
        let mut names: Vec<_> = entries.map(|own| own.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let (stdout, stderr, code) = run(place.weir(&[&["sweep"], args].concat()));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains(expect), "{stderr}");
    assert!(stderr.starts_with("weir: ") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(names(), before, "files were left behind");
}

/// Expects a message about a sweep file.
#[track_caller]
fn check_file(from: &str, to: &str, expect: &str) {
    let place = place();
    assert!(SWEEP.contains(from), "{from}");
    place.file("sweep.toml", &SWEEP.replace(from, to));
    check(&place, &["sweep.toml", "--out", "out.csv"], expect);
}

#[test]
fn wrong_files_are_named() {
    check_file("layout.toml", "none.toml", "cannot read none.toml");
    check_file("\"job.fio\"", "[]", "workload = []");
    check_file("P20", "P21", "sweep.toml: parameter \"tier\", value \"P21\": layout.toml:6:1: ");
    check_file(
        "volume.data",
        "volume.date",
        "parameter \"tier\", value \"P20\": layout.toml: volume.date.tier: there is no \"date\" in volume; did you mean \"data\"?",
    );
    check_file(
        "job.iodepth",
        "job.iodeph",
        "parameter \"depth\", value \"1\": job.fio:8: unknown option \"iodeph\"; did you mean \"iodepth\"?",
    );
    check_file("to = 16", "to = \"16 KiB\"", "different units");
    check_file("steps = 5", "stepps = 5", "sweep.toml:14:1: ");
    check_file("steps = 5\n", "", "a grid needs step or steps");
    check_file("name = \"tier\"", "name = \"iops\"", "rename it");
    check_file("layout = \"volume", "catalog = \"volume", "catalog = \"FILE\"");
}

#[test]
fn a_wrong_base_is_said_without_a_parameter() {
    let place = place();
    place.file("layout.toml", "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\n");
    check(&place, &["sweep.toml", "--out", "out.csv"], "weir: layout.toml:2:1: ");
    let place = super::place();
    place.file("job.fio", "[job]\nbs=4q\n");
    check(&place, &["sweep.toml", "--out", "out.csv"], "weir: job.fio:2: ");
}

#[test]
fn a_sweep_without_a_valid_point_has_no_results() {
    let place = place();
    place.file("job.fio", &super::JOB.replace("/mnt/data", "/mnt/other"));
    let expect = "sweep.toml: none of the 10 points can be simulated; point 0: ";
    check(&place, &["sweep.toml", "--out", "out.csv"], expect);
}

#[test]
fn a_journal_of_another_sweep_is_refused() {
    let place = place();
    let journal = "{\"journal\":\"weir sweep 1\",\"sweep\":\"0123456789abcdef\",\"points\":10,\"shard\":\"1/1\"}\n";
    place.file("out.csv.journal", journal);
    check(
        &place,
        &["sweep.toml", "--out", "out.csv"],
        "out.csv.journal: this journal belongs to another sweep (0123456789abcdef, and this is ",
    );
    place.file("out.csv.journal", "notes\n");
    check(&place, &["sweep.toml", "--out", "out.csv"], "this is no journal of weir sweep");
    assert_eq!(fs::read(place.path("out.csv.journal")).expect("a file"), b"notes\n");
}

#[test]
fn wrong_options_are_refused_before_the_simulations() {
    let place = place();
    let with = |more: &[&str], expect: &str| {
        check(&place, &[&["sweep.toml", "--out", "out.csv"], more].concat(), expect);
    };
    with(&["--of", "p98"], "--of \"p98\": the results have no such column");
    with(&["--of", "tier"], "--of \"tier\": this column is no metric");
    with(&["--html", "x.html", "--plot", "x=depth,y=tier"], "the values of y are texts");
    with(&["--html", "x.html", "--plot", "x=dept,y=iops"], "did you mean \"depth\"?");
    with(&["--html", "out.csv"], "--html out.csv: is another file of this run");
    with(&["--shard", "11/11"], "shard 11/11: the sweep has 10 points only");
    let (_, stderr, code) = run(place.weir(&["sweep", "sweep.toml", "--out", "none/x.csv"]));
    assert!(code == Some(3) && stderr.contains("make it first"), "{stderr}");
    // The command line refuses these.
    for args in [&["sweep.toml", "--out", "results.txt"][..], &["sweep.toml"], &["--out", "x.csv"]]
    {
        let (stdout, stderr, code) = run(place.weir(&[&["sweep"], args].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_the_message_says_how_to_build_it() {
    let expect = "out.parquet: this build of weir lacks Parquet; build it with: cargo build --release \
                  --features parquet";
    check(&place(), &["sweep.toml", "--out", "out.parquet"], expect);
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "a.csv"]);
    check(&place, &["--merge", "a.csv", "--out", "out.parquet"], expect);
    check(&place, &["--merge", "a.parquet"], "a.parquet: this build of weir lacks Parquet");
}

#[test]
fn shards_that_are_no_whole_are_refused() {
    let place = place();
    for shard in ["1/2", "2/2"] {
        let out = format!("{}.csv", &shard[..1]);
        sweep(&place, &["sweep.toml", "--shard", shard, "--out", &out]);
    }
    place.file("other.toml", &format!("seed = 2\n{SWEEP}"));
    sweep(&place, &["other.toml", "--shard", "2/2", "--out", "other.csv"]);
    let merged = |shards: &[&str], expect: &str| {
        check(&place, &[&["--merge"], shards, &["--out", "all.csv"]].concat(), expect);
    };
    merged(&["1.csv"], "points 1, 3, 5, 7, 9 of 10 missing; add the shards that have them");
    merged(
        &["1.csv", "2.csv", "1.csv"],
        "there is twice: points 0, 2, 4, 6, 8 of both 1.csv and 1.csv",
    );
    merged(&["1.csv", "other.csv"], "1.csv is of the sweep ");
    merged(&["1.csv", "none.csv"], "cannot read none.csv");
    merged(&["1.csv", "job.fio"], "job.fio: these are no results of weir sweep");
    check(&place, &["--merge", "1.csv", "2.csv", "--out", "1.csv"], "is one of the shards");
}
