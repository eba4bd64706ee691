//! Rows, shards and merges of a fleet.

use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_fleet::example::Example;
use weir_fleet::row::{Status, row};
#[cfg(feature = "parquet")]
use weir_fleet::table::{Described, Table};
use weir_fleet::{Fleet, FleetError, Journal, Merged, Options, Results, Row, Summary};
use weir_report::fleet_diagnosis::FleetDiagnosisReport;
use weir_sweep::Shard;

/// A day in samples of ten minutes.
const SMALL: Example = Example { servers: 12, samples: 144, interval_s: 600, seed: 1 };

fn options(edition: Option<&str>) -> Options {
    Options {
        layout: None,
        edition: edition.map(str::to_owned),
        mapping: Vec::new(),
        joins_days: false,
        catalog: Catalog::builtin(),
        editions: Vec::new(),
        version: "test",
    }
}

fn fleet(root: &Path) -> Fleet {
    Fleet::find(root, options(None)).expect("a fleet")
}

fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    SMALL.write(folder.path()).expect("a fleet");
    folder
}

fn shard(fleet: &Fleet, shard: &str, path: &Path) -> Vec<Row> {
    let shard: Shard = shard.parse().expect("a shard");
    let rows: Vec<Row> =
        shard.points(fleet.count()).into_iter().map(|number| row(fleet, number)).collect();
    let mut results = Results::new(fs::File::create(path).expect("a file"));
    rows.iter().for_each(|row| results.row(row).expect("a row"));
    results.finish().expect("results");
    rows
}

fn merged(paths: &[PathBuf]) -> Result<Vec<Row>, FleetError> {
    Merged::open(paths)?.collect()
}

fn report(rows: &[Row]) -> FleetDiagnosisReport {
    let mut summary = Summary::default();
    rows.iter().for_each(|row| summary.add(row).expect("a row"));
    summary.finish()
}

#[test]
fn a_fleet_has_a_row_for_each_server() {
    let folder = example();
    let fleet = fleet(folder.path());
    let rows: Vec<Row> = (0..fleet.count()).map(|number| row(&fleet, number)).collect();
    for (number, row) in (0..).zip(&rows) {
        assert_eq!((&row.server, row.status), (&Example::name(number), Status::Ok), "{row:?}");
        assert_eq!(row.is_throttled(), number % 3 == 0, "{row:?}");
    }
    let first = &rows[0];
    assert_eq!((first.cap.as_deref(), first.limit), (Some("disk_iops"), Some(5_000.0)));
    assert!(
        first.throttled_s.is_some_and(|s| (8.0 * 3_600.0..=11.0 * 3_600.0).contains(&s)),
        "{first:?}"
    );
    assert!(first.currency.is_some() && first.fix.is_some(), "{first:?}");
    let report = report(&rows);
    assert_eq!((report.servers, report.throttled_servers, report.verdicts.healthy), (12, 4, 8));
    // Server 9 has no layout, and so no price.
    assert_eq!((report.fixes.len(), report.unpriced_servers), (1, 1));
    assert_eq!(report.fixes[0].servers, 3);
    assert_eq!(report.caps[0].cap, "disk_iops");
    let waits: f64 = rows.iter().filter_map(|row| row.wait_s).sum();
    assert!((report.wait_s - waits).abs() < 1e-6 * waits, "{} {waits}", report.wait_s);
    // Most samples do not wait, so the median is the latency of the medium.
    let latency = report.latency.expect("latencies");
    assert!(latency.p50_ns < 3_000_000 && latency.p99_ns > 10_000_000, "{latency:?}");
}

#[test]
fn merged_shards_are_the_whole() {
    let folder = example();
    let fleet = fleet(folder.path());
    let out = tempfile::tempdir().expect("a folder");
    let path = |name: &str| out.path().join(name);
    let whole = shard(&fleet, "1/1", &path("whole.csv"));
    let parts: Vec<PathBuf> = (1..=3).map(|n| path(&format!("{n}.csv"))).collect();
    for (n, part) in (1..).zip(&parts) {
        shard(&fleet, &format!("{n}/3"), part);
    }
    let back = merged(&parts).expect("rows");
    assert_eq!(back, whole);
    assert_eq!(report(&back), report(&whole));
    let check = |paths: &[PathBuf], expect: &str| {
        let told = merged(paths).expect_err("an error").to_string();
        assert!(told.contains(expect), "{told}");
    };
    check(&parts[..2], "observation 2 of 12 missing; add the shards that have them");
    let twice = [&parts[..], &parts[1..2]].concat();
    check(&twice, "observation 1 is in both");
    fs::write(folder.path().join("another.weirobs"), "hello").expect("a file");
    let other = path("other.csv");
    shard(&self::fleet(folder.path()), "2/3", &other);
    check(&[parts[0].clone(), other], "is of the fleet");
    fs::write(path("x.csv"), "a,b\n1,2\n").expect("a file");
    check(&[path("x.csv")], "these are no results of weir diagnose --fleet");
}

#[test]
fn damaged_observations_are_rows_with_reasons() {
    let folder = example();
    let file = |number| folder.path().join(format!("{}.weirobs", Example::name(number)));
    fs::write(file(1), "hello").expect("a file");
    let bytes = fs::read(file(2)).expect("bytes");
    fs::write(file(2), &bytes[..bytes.len() - 5]).expect("a file");
    fs::write(folder.path().join("notes.txt"), "hello").expect("a file");
    let fleet = fleet(folder.path());
    assert_eq!((fleet.count(), fleet.ignored()), (12, 1));
    let rows: Vec<Row> = (0..3).map(|number| row(&fleet, number)).collect();
    let status: Vec<Status> = rows.iter().map(|row| row.status).collect();
    assert_eq!(status, [Status::Ok, Status::Failed, Status::Partial]);
    let reason = |number: usize| rows[number].reason.clone().unwrap_or_default();
    assert!(reason(1).contains("this is not an observation"), "{}", reason(1));
    assert!(reason(2).contains("no end mark"), "{}", reason(2));
    assert!(rows[1].verdict.is_none() && rows[2].verdict.is_some());
    let report = report(&rows);
    assert_eq!((report.failed, report.partial, report.failures.len()), (1, 1, 1));
}

#[test]
fn a_journal_continues_its_own_fleet_only() {
    let folder = example();
    let fleet = fleet(folder.path());
    let out = tempfile::tempdir().expect("a folder");
    let path = out.path().join("x.csv.journal");
    let open = |fleet: &Fleet, shard: Shard| Journal::open(&path, fleet, shard);
    let mut journal = open(&fleet, Shard::WHOLE).expect("a journal");
    let rows: Vec<Row> = [3, 0].map(|number| row(&fleet, number)).into();
    rows.iter().for_each(|row| journal.add(row).expect("a row"));
    assert!(open(&fleet, Shard::WHOLE).expect_err("in use").to_string().contains("another weir"));
    drop(journal);
    // A line that a kill cut off.
    let mut bytes = fs::read(&path).expect("bytes");
    bytes.extend_from_slice(b"{\"fleet\":\"");
    fs::write(&path, bytes).expect("a file");
    let journal = open(&fleet, Shard::WHOLE).expect("a journal");
    assert_eq!((journal.completed(), journal.has(3), journal.has(1)), (2, true, false));
    let back: Vec<Row> = journal.rows().map(|row| row.expect("a row")).collect();
    assert_eq!(back, [rows[1].clone(), rows[0].clone()]);
    drop(journal);
    let told = open(&fleet, "1/2".parse().expect("a shard")).expect_err("another shard");
    assert!(told.to_string().contains("belongs to shard 1/1, and this is shard 1/2"), "{told}");
    let other = Fleet::find(folder.path(), options(Some("azure-now"))).expect("a fleet");
    let told = open(&other, Shard::WHOLE).expect_err("other options").to_string();
    assert!(told.contains("belongs to another fleet"), "{told}");
}

#[test]
fn folders_without_observations_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let find = |path: &Path| Fleet::find(path, options(None)).expect_err("an error").to_string();
    assert!(find(folder.path()).contains("there is no observation"));
    assert!(find(&folder.path().join("none")).contains("No such file"));
    let file = folder.path().join("a.txt");
    fs::write(&file, "hello").expect("a file");
    assert!(find(&file).contains("it is not a folder"));
}

#[test]
fn servers_in_different_folders_are_different_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [
        "us/server=db1/day=2025-11-28/part.parquet",
        "eu/server=db1/day=2025-11-29/part.parquet",
        "eu/server=db1/day=2025-11-28/part.parquet",
        "server=a%20b/day=2025-11-28/part.parquet",
        // Rows of one server would not follow each other.
        "day=2025-11-28/server=db1/part.parquet",
        "eu/db1.weirobs",
    ];
    for path in paths.map(|own| folder.path().join(own)) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "hello").expect("a file");
    }
    let fleet = fleet(folder.path());
    let found: Vec<_> =
        fleet.observations().iter().map(|own| (&*own.server, own.day.as_deref())).collect();
    let expect = [
        ("a b", Some("2025-11-28")),
        ("day=2025-11-28/server=db1/part", None),
        ("eu/db1", None),
        ("eu/server=db1", Some("2025-11-28")),
        ("eu/server=db1", Some("2025-11-29")),
        ("us/server=db1", Some("2025-11-28")),
    ];
    assert_eq!(found, expect);
    let rows: Vec<Row> = (0..fleet.count()).map(|number| row(&fleet, number)).collect();
    let report = report(&rows);
    assert_eq!((report.servers, report.undiagnosed_servers), (5, 5));
}

#[test]
fn results_have_exactly_the_columns_of_a_row() {
    let folder = example();
    let path = folder.path().join("1.csv");
    shard(&fleet(folder.path()), "1/1", &path);
    let text = fs::read_to_string(&path).expect("results");
    let (header, rows) = text.split_once('\n').expect("a header");
    let told = |header: &str| {
        fs::write(&path, format!("{header}\n{rows}")).expect("a file");
        merged(std::slice::from_ref(&path)).expect_err("an error").to_string()
    };
    let foreign = told(&header.replace("currency", "money"));
    assert!(foreign.contains("the column \"currency\" is missing"), "{foreign}");
    let swapped = told(&header.replace("subject,cap", "cap,subject"));
    assert!(swapped.contains("the columns are in another order"), "{swapped}");
}

/// Replaces the table of a server by that of a file.
#[cfg(feature = "parquet")]
fn export_again(file: &Path, server: &Path) {
    let own = weir_observe::Observation::read(fs::File::open(file).expect("a file"));
    let own = own.expect("an observation");
    let described = Described::new(own.header, own.notes, &own.ending);
    let path = server.join("day=2025-11-28/part.parquet");
    let mut table =
        Table::new(fs::File::create(path).expect("a file"), &described).expect("a table");
    for (sample, at) in own.times.iter().enumerate() {
        let row: Vec<_> = own.columns.iter().map(|column| column.get(sample)).collect();
        table.sample(*at, &row).expect("a row");
    }
    table.finish().expect("a table");
}

#[cfg(feature = "parquet")]
#[test]
fn tables_have_the_same_rows_as_files() {
    let folder = example();
    let tables = tempfile::tempdir().expect("a folder");
    SMALL.write_tables(tables.path()).expect("tables");
    // A recording that was interrupted, and one whose writer was killed.
    let file = |number| folder.path().join(format!("{}.weirobs", Example::name(number)));
    let mut own = SMALL.observation(1);
    own.ending = weir_observe::Ending::Interrupted;
    own.write(fs::File::create(file(1)).expect("a file")).expect("an observation");
    let bytes = fs::read(file(2)).expect("bytes");
    fs::write(file(2), &bytes[..bytes.len() - 5]).expect("a file");
    for number in [1, 2] {
        let server = tables.path().join(format!("server={}", Example::name(number)));
        export_again(&file(number), &server);
    }
    let (files, tables) = (fleet(folder.path()), fleet(tables.path()));
    assert_eq!((tables.count(), tables.ignored()), (12, 0));
    for number in 0..files.count() {
        let (one, other) = (row(&files, number), row(&tables, number));
        assert_eq!(other.day.as_deref(), Some("2025-11-28"));
        assert_eq!(one.status, if number == 2 { Status::Partial } else { Status::Ok });
        let (fleet, day, file) = (one.fleet.clone(), one.day.clone(), one.file.clone());
        assert_eq!(Row { fleet, day, file, ..other }, one);
    }
}

/// Writes a recording as tables of several days each.
#[cfg(feature = "parquet")]
fn write_days(root: &Path, server: &str, own: &weir_observe::Observation, day_samples: usize) {
    let described = Described::new(own.header.clone(), own.notes.clone(), &own.ending);
    for (day, times) in own.times.chunks(day_samples).enumerate() {
        let folder = root.join(format!("server={server}/day=2025-11-{}", 28 + day));
        fs::create_dir_all(&folder).expect("a folder");
        let file = fs::File::create(folder.join("part.parquet")).expect("a file");
        let mut table = Table::new(file, &described).expect("a table");
        for (at, time) in times.iter().enumerate() {
            let sample = day * day_samples + at;
            let row: Vec<_> = own.columns.iter().map(|column| column.get(sample)).collect();
            table.sample(*time, &row).expect("a row");
        }
        table.finish().expect("a table");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn the_days_of_a_recording_are_diagnosed_each_or_together() {
    let tree = tempfile::tempdir().expect("a folder");
    let files = tempfile::tempdir().expect("a folder");
    let long = Example { samples: 288, ..SMALL };
    for (number, server) in [(0, "db0"), (1, "db1")] {
        let own = long.observation(number);
        write_days(tree.path(), server, &own, 144);
        let file = fs::File::create(files.path().join(format!("{server}.weirobs")));
        own.write(file.expect("a file")).expect("an observation");
    }
    let joined = Options { joins_days: true, ..options(None) };
    let joined = Fleet::find(tree.path(), joined).expect("a fleet");
    let days = fleet(tree.path());
    assert_eq!((days.count(), joined.count()), (4, 2));
    let rows = |fleet: &Fleet| (0..fleet.count()).map(|own| row(fleet, own)).collect::<Vec<_>>();
    let (by_day, by_server) = (rows(&days), rows(&joined));
    let found: Vec<_> = by_day.iter().map(|own| (&*own.server, own.samples)).collect();
    let half = Some(144);
    assert_eq!(found, [("db0", half), ("db0", half), ("db1", half), ("db1", half)]);
    // All days together are the recording.
    for (whole, own) in rows(&fleet(files.path())).into_iter().zip(&by_server) {
        let (fleet, file) = (own.fleet.clone(), own.file.clone());
        assert_eq!(&Row { fleet, file, ..whole }, own);
    }
    assert_eq!((by_server[1].day.as_deref(), &*by_server[1].file), (None, "server=db1"));
    let [each, together] = [&by_day, &by_server].map(|rows| report(rows));
    assert_eq!((each.servers, each.completed, each.throttled_servers), (2, 4, 1));
    assert_eq!((together.servers, together.completed, together.throttled_servers), (2, 2, 1));
    // A server with one day is named like the others.
    fs::remove_dir_all(tree.path().join("server=db1/day=2025-11-29")).expect("a folder");
    let one_day = Options { joins_days: true, ..options(None) };
    let one_day = rows(&Fleet::find(tree.path(), one_day).expect("a fleet"));
    assert_eq!((one_day[1].day.as_deref(), &*one_day[1].file), (None, "server=db1"));
    // Results of the two are not mixed.
    let [one, other] = ["1.csv", "2.csv"].map(|name| files.path().join(name));
    shard(&days, "1/2", &one);
    shard(&joined, "2/2", &other);
    let error = merged(&[one, other]).expect_err("an error").to_string();
    assert!(error.contains("is of the fleet"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn days_of_several_recordings_are_not_joined() {
    let tree = tempfile::tempdir().expect("a folder");
    write_days(tree.path(), "db0", &SMALL.observation(0), 144);
    let other = tempfile::tempdir().expect("a folder");
    write_days(other.path(), "db0", &SMALL.observation(1), 144);
    let from = other.path().join("server=db0/day=2025-11-28");
    fs::rename(from, tree.path().join("server=db0/day=2025-11-29")).expect("a folder");
    let joined = Options { joins_days: true, ..options(None) };
    let row = row(&Fleet::find(tree.path(), joined).expect("a fleet"), 0);
    assert_eq!(row.status, Status::Failed);
    let reason = row.reason.expect("a reason");
    assert!(reason.ends_with("the days are of several recordings; use --by day"), "{reason}");
}
