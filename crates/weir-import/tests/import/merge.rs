//! Several inputs side by side.

use crate::bed::{Read, input, try_read};
use weir_import::Options;
use weir_observe::rates::{Track, Tracker};
use weir_units::Span;

/// Reports of iostat, five seconds each. The first is an average since the start of the machine, so
/// the first sample is at 00:42:29, and its rates hold since 00:42:24.
const RATES: &str = "\
03/14/19 00:42:24
Device r/s w/s
sda 0.13 3.27

03/14/19 00:42:29
Device r/s w/s
sda 100.00 20.00

03/14/19 00:42:34
Device r/s w/s
sda 50.00 10.00
";

/// Counters of another disk at those times.
fn counters(times: &[&str]) -> String {
    let snapshot = |(at, time): (usize, &&str)| {
        format!("2019-03-14 {time}\n8 0 sdb {} 0 8 1 0 0 0 0 0 1 1\n", at * 1000)
    };
    times.iter().enumerate().map(snapshot).collect()
}

fn beside(times: &[&str]) -> Read {
    let inputs = vec![
        input("iostat", RATES, Some("iostat")),
        input("diskstats", counters(times), Some("diskstats")),
    ];
    try_read(inputs, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the times of all rows, in seconds from the first.
fn rows(read: &Read) -> Vec<u64> {
    let times = &read.observation.times;
    times.iter().map(|at| (*at - times[0]).nanos() / 1_000_000_000).collect()
}

/// Returns the intervals of a metric in seconds from the first row, and its values.
fn readings(read: &Read, entity: &str, metric: &str) -> Vec<(u64, u64, f64)> {
    let contents = read.observation.contents();
    let series = contents.find(read.entity(entity), metric).expect("a series");
    let mut tracker = Tracker::new(contents, &[Track(vec![series])]);
    let mut all = Vec::new();
    let second = |at: weir_units::Instant| {
        (at - read.observation.times[0]).nanos() / Span::from_secs(1).nanos()
    };
    for (sample, at) in read.observation.times.iter().enumerate() {
        let columns = read.observation.columns.iter();
        let row: Vec<_> = columns.map(|column| column.get(sample)).collect();
        tracker.sample(*at, &row, |_, reading| {
            all.push((second(reading.from), second(reading.to), reading.rate()));
        });
    }
    all
}

const EXPECT: [(u64, u64, f64); 2] = [(0, 5, 100.0), (5, 10, 50.0)];

#[test]
fn an_empty_row_starts_the_first_interval() {
    let read = try_read(vec![input("iostat", RATES, None)], &Options::default()).expect("rates");
    assert_eq!((rows(&read), read.summary.samples), (vec![0, 5, 10], 2));
    assert_eq!(readings(&read, "sda", "reads_per_s"), EXPECT);
}

#[test]
fn counters_that_begin_with_the_first_interval() {
    let read = beside(&["00:42:24", "00:42:29", "00:42:34"]);
    assert_eq!((rows(&read), read.summary.samples), (vec![0, 5, 10], 3));
    assert_eq!(read.observation.header.start_unix_ns, Some(1_552_524_144_000_000_000));
    assert_eq!(readings(&read, "sda", "reads_per_s"), EXPECT);
    assert_eq!(readings(&read, "sdb", "reads"), [(0, 5, 200.0), (5, 10, 200.0)]);
}

#[test]
fn earlier_counters_do_not_stretch_the_first_interval() {
    let read = beside(&["00:02:24", "00:42:34"]);
    assert_eq!((rows(&read), read.summary.samples), (vec![0, 2400, 2405, 2410], 3));
    let first = readings(&read, "sda", "reads_per_s")[0];
    assert_eq!(first, (2400, 2405, 100.0));
}

#[test]
fn counters_that_begin_after_the_first_interval() {
    let read = beside(&["00:42:31", "00:42:34"]);
    assert_eq!(rows(&read), [0, 5, 7, 10]);
    assert_eq!(readings(&read, "sda", "reads_per_s"), EXPECT);
}

#[test]
fn inputs_without_dates_begin_with_the_first_input() {
    let rates = "Device r/s w/s\nsda 1.00 2.00\n\nDevice r/s w/s\nsda 3.00 4.00\n\n\
                 Device r/s w/s\nsda 5.00 6.00\n";
    let one = "8 0 sdb 0 0 8 1 0 0 0 0 0 1 1\n";
    let inputs =
        vec![input("diskstats", one, Some("diskstats")), input("iostat", rates, Some("iostat"))];
    let read = try_read(inputs, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    // The first rates are beside the snapshot, and hold since a second before it.
    assert_eq!(rows(&read), [0, 1, 2]);
    assert_eq!(read.start(), None);
}

#[test]
fn an_impossible_time_is_rejected() {
    for year in ["1969", "2101"] {
        let text = RATES.replace("03/14/19", &format!("03/14/{year}"));
        let error = crate::bed::refused(&text);
        let expect = format!("a sample is of {year}-");
        assert!(error.starts_with(&expect) && error.contains("between 1990 and 2100"), "{error}");
    }
}
