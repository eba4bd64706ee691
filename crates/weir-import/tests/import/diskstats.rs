//! `/proc/diskstats`.

use crate::bed::{read, refused};
use crate::samples::{sample, try_sample};
use weir_observe::Attribute;

/// Lines with discards and flushes, with discards, without either, and an old partition.
const ALL: &str = "\
   8       0 sda 100 5 2048 300 50 6 1024 400 2 500 700 10 1 16 20 30 40
   8       1 sda1 90 5 2000 300 50 6 1024 400 0 500 700 10 1 16 20
 259       0 nvme0n1 100 0 8 3 1 0 8 4 0 5 7
   3       1 hda1 10 80 20 160
";

#[test]
fn one_snapshot_of_any_kernel() {
    let read = read(ALL);
    assert_eq!(read.kind(), "diskstats");
    assert_eq!((read.start(), read.seconds()), (None, vec![0.0]));
    for (name, metric, expect) in [
        ("sda", "reads", 100.0),
        ("sda", "reads_merged", 5.0),
        ("sda", "read_bytes", 1_048_576.0),
        ("sda", "io_stall_read_ms", 300.0),
        ("sda", "writes", 50.0),
        ("sda", "write_bytes", 524_288.0),
        ("sda", "io_stall_write_ms", 400.0),
        ("sda", "queue_length", 2.0),
        ("sda", "busy_ms", 500.0),
        ("sda", "queued_ms", 700.0),
        ("sda", "discards", 10.0),
        ("sda", "discard_bytes", 8192.0),
        ("sda", "io_stall_discard_ms", 20.0),
        ("sda", "flushes", 30.0),
        ("sda", "io_stall_flush_ms", 40.0),
        ("sda1", "discards", 10.0),
        ("nvme0n1", "io_stall_write_ms", 4.0),
        ("hda1", "reads", 10.0),
        ("hda1", "read_bytes", 40_960.0),
        ("hda1", "write_bytes", 81_920.0),
    ] {
        assert_eq!(read.all(name, metric), [expect], "{name} {metric}");
    }
    assert_eq!(read.attribute("sda1", "partition_of"), Some(Attribute::from("sda")));
    assert_eq!(read.attribute("nvme0n1", "partition_of"), None);
    assert!(read.notes("one snapshot"), "{:?}", read.summary.notes);
    assert!(read.notes("it has no times"), "{:?}", read.summary.notes);
}

/// Builds snapshots of one disk, each with a line before it.
fn snapshots(marks: &[&str]) -> String {
    let line = |(at, mark): (usize, &&str)| format!("{mark}\n8 0 sda {at} 0 8 1 0 0 0 0 0 1 1\n");
    marks.iter().enumerate().map(line).collect()
}

#[test]
fn snapshots_with_lines_of_times() {
    let times = |marks: &[&str]| {
        let read = read(&snapshots(marks));
        let count: Vec<_> = (0_u8..).map(f64::from).take(marks.len()).collect();
        assert_eq!(read.all("sda", "reads"), count);
        (read.start(), read.seconds())
    };
    let second = Some("2020-08-28T21:34:57Z".to_owned());
    assert_eq!(times(&["1598650497", "1598650507"]), (second.clone(), vec![0.0, 10.0]));
    assert_eq!(
        times(&["zzz ***Fri Aug 28 21:34:57 UTC 2020", "zzz ***Fri Aug 28 21:35:00 UTC 2020"]),
        (second.clone(), vec![0.0, 3.0])
    );
    let both = ["1598650497\n90.00 80.00", "1598650507\n100.00 85.00"];
    assert_eq!(times(&both), (second, vec![0.0, 10.0]));
    assert_eq!(times(&["90.50 80.00", "100.75 85.00"]), (None, vec![0.0, 10.25]));
    // The machine was started again.
    assert_eq!(times(&["90.00 80.00", "100.00 85.00", "5.00 4.00"]).1, [0.0, 10.0, 15.0]);
    assert_eq!(times(&["", ""]), (None, vec![0.0, 1.0]));
}

#[test]
fn times_in_each_line() {
    let text = "\
2020-08-28 21:34:57.5\t   8 0 sda 1 0 8 1 0 0 0 0 0 1 1
2020-08-28 21:34:57.6\t   8 16 sdb 1 0 8 1 0 0 0 0 4294967295 1 1
2020-08-28 21:34:58.5\t   8 0 sda 2 0 8 1 0 0 0 0 0 1 1
";
    let read = read(text);
    assert_eq!(read.start().as_deref(), Some("2020-08-28T21:34:57.5Z"));
    assert_eq!(read.seconds(), [0.0, 1.0]);
    assert_eq!(read.values("sdb", "reads"), [Some(1.0), None]);
    assert_eq!(read.values("sdb", "queue_length"), [None, None], "below zero");
}

#[test]
fn malformed_input_is_reported() {
    let short = ALL.replace("nvme0n1 100 0 8 3 1 0", "nvme0n1");
    assert_eq!(refused(&short), "line 3: a device has 8 columns instead of 14, 18 or 20");
    let wrong = ALL.replace(" 1024 400 2", " 1024 4o0 2");
    assert_eq!(refused(&wrong), "line 1: \"4o0\" is not a whole number");
    let cut = ALL.split(" 8 4 0 5 7").next().expect("a part");
    let read = read(cut);
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
    assert_eq!(read.all("sda1", "reads"), [90.0]);
}

#[test]
fn samples_have_the_published_figures() {
    let Some(read) = sample("diskstats/jc_linux-proc_diskstats") else { return };
    assert_eq!(read.all("sda", "reads"), [14_200.0]);
    assert_eq!(read.all("sda", "read_bytes"), [892_828.0 * 512.0]);
    assert_eq!(read.all("dm-0", "io_stall_write_ms"), [13_140.0]);
    assert_eq!(read.attribute("sda3", "partition_of"), Some(Attribute::from("sda")));
    let Some(read) = sample("diskstats/sysstat_root1/diskstats") else { return };
    assert_eq!(read.all("sdq", "reads"), [49_401.0]);
    assert_eq!(read.all("sdq", "discards"), [8638.0]);
    let Some(result) = try_sample("diskstats/sysstat_root2/uptime") else { return };
    let error = result.expect_err("it is refused").to_string();
    assert!(error.contains("unknown kind of input"), "{error}");
}

/// Output of jc for a line of /proc/diskstats.
fn jc(device: &str, reads: u64) -> String {
    format!(
        r#"{{"maj":8,"min":0,"device":"{device}","reads_completed":{reads},"reads_merged":3,
        "sectors_read":{},"read_time_ms":{},"writes_completed":7,"writes_merged":1,
        "sectors_written":16,"write_time_ms":2,"io_in_progress":4,"io_time_ms":5,
        "weighted_io_time_ms":6,"discards_completed_successfully":1}}"#,
        reads * 8,
        reads * 2
    )
}

#[test]
fn json_of_jc_has_rates_from_two_snapshots_on() {
    let one = read(&format!("[{},{}]", jc("sda", 100), jc("sda1", 90)));
    assert_eq!((one.kind(), one.summary.samples), ("diskstats-json", 1));
    assert!(one.notes("one snapshot of counters: rates need two"), "{:?}", one.summary.notes);
    assert_eq!(one.all("sda", "read_bytes"), [409_600.0]);
    assert_eq!(one.all("sda", "queue_length"), [4.0]);
    let two = read(&format!("[{}]\n[{}]\n", jc("sda", 100), jc("sda", 150)));
    assert_eq!(two.all("sda", "reads"), [100.0, 150.0]);
    assert_eq!(two.all("sda", "io_stall_read_ms"), [200.0, 300.0]);
    assert_eq!(two.seconds(), [0.0, 1.0]);
    assert!(two.notes("it has no times"), "{:?}", two.summary.notes);
    // An object around the list says when.
    let dated =
        |at: &str, reads| format!(r#"{{"timestamp":"{at}","disks":[{}]}}"#, jc("sda", reads));
    let dated = [dated("2024-01-02T03:04:05Z", 1), dated("2024-01-02T03:04:15Z", 2)].join("\n");
    let dated = read(&dated);
    assert_eq!(dated.start().as_deref(), Some("2024-01-02T03:04:05Z"));
    assert_eq!(dated.seconds(), [0.0, 10.0]);
}

/// A line of Telegraf with a device of the input diskio.
fn telegraf(host: &str, device: &str, reads: u64, at: u64) -> String {
    format!(
        r#"{{"fields":{{"io_time":5,"iops_in_progress":0,"merged_reads":3,"read_bytes":{},"read_time":9,"reads":{reads},"weighted_io_time":6,"write_bytes":512,"write_time":2,"writes":1}},"name":"diskio","tags":{{"host":"{host}","name":"{device}"}},"timestamp":{at}}}"#,
        reads * 4096
    )
}

#[test]
fn json_of_telegraf() {
    let (begin, end) = (1_700_000_000, 1_700_000_010);
    let lines = [
        telegraf("db1", "sda", 100, begin),
        telegraf("db1", "sdb", 10, begin),
        telegraf("db1", "sda", 200, end),
        telegraf("db1", "sdb", 10, end),
    ];
    let read = read(&lines.join("\n"));
    assert_eq!(read.start().as_deref(), Some("2023-11-14T22:13:20Z"));
    assert_eq!((read.seconds(), read.all("sda", "reads")), (vec![0.0, 10.0], vec![100.0, 200.0]));
    assert_eq!(read.all("sda", "read_bytes"), [409_600.0, 819_200.0]);
    assert_eq!(read.all("sdb", "writes"), [1.0, 1.0]);
    let both = [telegraf("db1", "sda", 1, begin), telegraf("db2", "sda", 1, begin)].join("\n");
    assert!(refused(&both).contains("it contains disks of db1 and of db2"));
}

#[test]
fn malformed_and_truncated_json() {
    let text = format!("[{}]\n[{}]\n", jc("sda", 100), jc("sda", 150));
    let cut = read(&text[..text.len() - 30]);
    assert_eq!(cut.all("sda", "reads"), [100.0]);
    assert!(cut.notes("its last document was truncated"), "{:?}", cut.summary.notes);
    let wrong = jc("sda", 100).replace("\"read_time_ms\":200", "\"read_time_ms\":\"x\"");
    assert!(refused(&format!("[{wrong}]")).contains("which is not a number"));
    crate::bed::survives(&format!("[{}]", jc("sda", 100)), "diskstats-json");
}
