//! vmstat and `vmstat -d`.

use crate::bed::{read, refused};
use crate::samples::sample;

const PLAIN: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 2  0      0 2794696  2108 312736    0    0     1     3   29   57  0  0 99  0  1
 5  3      0 2794000  2108 312740    1    2  4096   100   29   57 10  5 60 25  0
 1  0      0 2794000  2108 312740    0    0     0     0   29   57  0  0 100  0  0
";

#[test]
fn plain_output_without_its_first_row() {
    let read = read(PLAIN);
    assert_eq!(read.kind(), "vmstat");
    assert_eq!((read.start(), read.seconds()), (None, vec![1.0, 2.0]));
    for (metric, expect) in [
        ("runnable", [5.0, 1.0]),
        ("blocked", [3.0, 0.0]),
        ("memory_free_bytes", [2_861_056_000.0; 2]),
        ("memory_cache_bytes", [320_245_760.0; 2]),
        ("swap_in_bytes_per_s", [1024.0, 0.0]),
        ("swap_out_bytes_per_s", [2048.0, 0.0]),
        ("read_bytes_per_s", [4_194_304.0, 0.0]),
        ("write_bytes_per_s", [102_400.0, 0.0]),
        ("cpu", [0.15, 0.0]),
        ("cpu_user", [0.1, 0.0]),
        ("cpu_iowait", [0.25, 0.0]),
        ("cpu_idle", [0.6, 1.0]),
    ] {
        assert_eq!(read.all("host", metric), expect, "{metric}");
    }
    assert!(read.notes("since boot and is left out"), "{:?}", read.summary.notes);
    assert!(read.notes("swpd"), "{:?}", read.summary.notes);
}

#[test]
fn times_before_and_after_the_columns() {
    let stamp = |(at, line): (usize, &str)| format!("2015-01-03 16:40:{:02}.5\t{line}\n", at * 5);
    let before: String = PLAIN.lines().enumerate().map(stamp).collect();
    let before = read(&before);
    assert_eq!(before.start().as_deref(), Some("2015-01-03T16:40:15.5Z"));
    assert_eq!(before.seconds(), [0.0, 5.0]);
    let stamp = |line: &str| match line {
        line if line.contains('p') => format!("{line}\n"),
        line => format!("2015-01-03 16:40:0{} {line}\n", &line[1..2]),
    };
    let rows: String = PLAIN.lines().map(stamp).collect();
    let rows = read(&rows.replace("16:40:01", "16:40:07"));
    assert_eq!(rows.start().as_deref(), Some("2015-01-03T16:40:05Z"));
    assert_eq!(rows.all("host", "blocked"), [3.0, 0.0]);
    let behind = |line: &str| match line {
        line if line.starts_with("procs") => format!("{line} -----timestamp-----\n"),
        line if line.contains("swpd") => format!("{line}                 CET\n"),
        line => format!("{line} 2015-01-03 16:40:0{}\n", &line[1..2]),
    };
    let text: String = PLAIN.lines().map(behind).collect();
    let text = text.replace("16:40:01", "16:40:07");
    let behind = read(&text);
    assert_eq!(behind.start().as_deref(), Some("2015-01-03T16:40:05Z"));
    assert_eq!(behind.seconds(), [0.0, 2.0]);
    assert!(behind.notes("the zone of its times is CET"), "{:?}", behind.summary.notes);
    assert_eq!(before.all("host", "blocked"), behind.all("host", "blocked"));
}

#[test]
fn malformed_input_is_reported() {
    let short = PLAIN.replace(" 2  0      0 2794696", " 2  0 2794696");
    assert_eq!(refused(&short), "line 3: a row has 16 columns, but its header has 17");
    let wrong = PLAIN.replace("4096", "4o96");
    assert_eq!(refused(&wrong), "line 4: \"4o96\" is not a number");
    let cut = read(&PLAIN[..PLAIN.len() - 20]);
    assert!(cut.notes("its last line was truncated"), "{:?}", cut.summary.notes);
    assert_eq!(cut.all("host", "runnable"), [5.0]);
}

const DISKS: &str = "\
disk- ------------reads------------ ------------writes----------- -----IO------
       total merged sectors      ms  total merged sectors      ms    cur    sec
sda    15257    100  841035    8395  50851   5502 1648657  146540      3     44
sr0        0      0       0       0      0      0       0       0      0      0
sda    15258    100  841043    8396  50851   5502 1648657  146540      0     45
";

#[test]
fn counters_of_disks() {
    let read = read(DISKS);
    assert_eq!((read.kind(), read.seconds()), ("vmstat-d", vec![0.0, 1.0]));
    assert_eq!(read.all("sda", "reads"), [15_257.0, 15_258.0]);
    assert_eq!(read.all("sda", "read_bytes"), [430_609_920.0, 430_614_016.0]);
    assert_eq!(read.all("sda", "io_stall_read_ms"), [8395.0, 8396.0]);
    assert_eq!(read.all("sda", "writes_merged"), [5502.0, 5502.0]);
    assert_eq!(read.all("sda", "queue_length"), [3.0, 0.0]);
    assert_eq!(read.all("sda", "busy_ms"), [44_000.0, 45_000.0]);
    assert_eq!(read.values("sr0", "reads"), [Some(0.0), None]);
    let short = DISKS.replace("      3     44", "      3");
    assert_eq!(refused(&short), "line 3: a device has 9 columns, but its header has 10");
    let wrong = DISKS.replace(" 8395 ", " 83.5 ");
    assert_eq!(refused(&wrong), "line 3: \"83.5\" is not a whole number");
}

#[test]
fn samples_have_the_published_figures() {
    let Some(read) = sample("vmstat/pgbenchtools_vmstat.log") else { return };
    assert_eq!(read.start().as_deref(), Some("2015-01-03T16:40:48.759277Z"));
    let bytes = read.all("host", "read_bytes_per_s");
    assert_eq!(bytes[..2], [68_891.0 * 1024.0, 61_250.0 * 1024.0]);
    let Some(read) = sample("vmstat/jc_centos-7.7_vmstat-a.out") else { return };
    assert_eq!(read.all("host", "memory_free_bytes"), [2_794_696.0 * 1024.0]);
    let Some(read) = sample("vmstat/jc_generic_vmstat-extra-wide.out") else { return };
    assert_eq!(read.all("host", "memory_cache_bytes"), [22_658_240.0 * 1024.0]);
    let Some(read) = sample("vmstat/jc_centos-7.7_vmstat-d.out") else { return };
    assert_eq!(read.all("dm-0", "io_stall_write_ms"), [180_880.0]);
}

#[test]
fn a_report_since_the_start_of_the_machine_has_no_rates() {
    let first: String = PLAIN.lines().take(3).map(|line| format!("{line}\n")).collect();
    let read = read(&first);
    assert_eq!(read.all("host", "memory_free_bytes"), [2_861_768_704.0]);
    let contents = read.observation.contents();
    for metric in ["read_bytes_per_s", "write_bytes_per_s", "swap_in_bytes_per_s", "cpu"] {
        assert_eq!(contents.find(read.entity("host"), metric), None, "{metric}");
    }
    assert!(read.notes("an average since boot and is left out"));
}

#[test]
fn a_head_after_a_gap_begins_another_run() {
    let head = "procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu---- \
                -----timestamp-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   \
                cs us sy id wa st                 UTC\n";
    let row = |minute: u32, second: u32, read_kib: u32| {
        format!(
            " 1  0      0 2794696   2108 770908    0    0   {read_kib}    38   88  134  2  1 97  0  \
             0 2026-11-22 10:{minute:02}:{second:02}\n"
        )
    };
    let run = |minute: u32, rows: u32, read_kib: u32| {
        let rows = (1..rows).map(|at| row(minute + at / 12, 5 * (at % 12), read_kib));
        head.to_owned() + &row(minute, 0, 7) + &rows.collect::<String>()
    };
    // A page is full after 21 rows.
    let read = read(&(run(0, 21, 100) + head + &row(1, 45, 100) + &run(30, 3, 300)));
    let kib = |value: f64| value * 1024.0;
    let expect = [[100.0; 21].map(kib).to_vec(), [300.0; 2].map(kib).to_vec()].concat();
    assert_eq!(read.all("host", "read_bytes_per_s"), expect);
    let intervals = read.values("host", "interval_ns");
    assert_eq!((intervals[21], intervals.iter().flatten().count()), (Some(5e9), 1));
    assert!(read.notes("the first rows of 1 later runs"), "{:?}", read.summary.notes);
}

/// The head of a run or of a page.
const HEAD: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----\n \
                    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";

/// Builds a row with these KiB read and interrupts per second.
fn row(read_kib: u32, interrupts: u32) -> String {
    format!(
        " 1  0      0 2794696   2108 770908    0    0   {read_kib}    38 {interrupts}  134  2  1 97  \
         0  0"
    )
}

#[test]
fn runs_shorter_than_their_gaps_begin_with_averages() {
    // vmstat -t 1 2, each minute by cron.
    let timed = |minute: u32, second: u32, read_kib: u32| {
        format!("{} 2026-11-22 10:{minute:02}:{second:02}\n", row(read_kib, 88))
    };
    let head = HEAD.replace("st\n", "st                 UTC\n");
    let run = |minute: u32| format!("{head}{}{}", timed(minute, 0, 7), timed(minute, 1, 500));
    let read = read(&(0..3).map(run).collect::<String>());
    assert_eq!(read.all("host", "read_bytes_per_s"), [512_000.0; 3]);
    let intervals = read.values("host", "interval_ns");
    assert_eq!(intervals, [None, Some(1e9), Some(1e9)]);
    assert_eq!(read.first_interval(), 1.0);
    assert!(read.notes("the first rows of 2 later runs"), "{:?}", read.summary.notes);
}

#[test]
fn runs_without_times_are_separated_by_their_heads() {
    let rows = |count: u32, read_kib: u32| -> String {
        (0..count).map(|at| row(read_kib, 1_000 + at) + "\n").collect()
    };
    let average = row(7, 88) + "\n";
    // vmstat 5 12, appended by cron.
    let run = |read_kib: u32| format!("{HEAD}{average}{}", rows(11, read_kib));
    let short = read(&(run(100) + &run(300)));
    let kib = [vec![100.0 * 1024.0; 11], vec![300.0 * 1024.0; 11]].concat();
    assert_eq!(short.all("host", "read_bytes_per_s"), kib);
    assert!(short.notes("the first rows of 1 later runs"), "{:?}", short.summary.notes);
    // One run of three pages, as vmstat writes them to a file.
    let pages = format!("{HEAD}{average}{}{HEAD}{}", rows(20, 100), rows(21, 300));
    let pages = read(&pages);
    assert_eq!(pages.summary.samples, 41);
    assert!(!pages.notes("later runs"), "{:?}", pages.summary.notes);
    // Each run has one row.
    let single = read(&format!("{HEAD}{average}{HEAD}{average}{HEAD}{average}"));
    assert_eq!(single.all("host", "memory_free_bytes").len(), 3);
    let contents = single.observation.contents();
    assert_eq!(contents.find(single.entity("host"), "read_bytes_per_s"), None);
    // A window of 50 lines, or runs of 47 rows each.
    let high = read(&format!("{HEAD}{average}{}{HEAD}{}", rows(46, 100), rows(5, 300)));
    let reads = high.values("host", "read_bytes_per_s");
    assert_eq!((reads[45], reads[46], reads[47]), (Some(102_400.0), None, Some(307_200.0)));
    assert!(high.notes("1 rows after a header may be"), "{:?}", high.summary.notes);
}
