//! sar as text.

use crate::bed::{Read, read, refused};
use crate::samples::sample;

/// Live output: all tables of a time together.
const LIVE: &str = "\
Linux 3.16.6 (db1) \t02/25/2015 \t_x86_64_\t(8 CPU)

11:59:54 PM     CPU      %usr     %nice      %sys   %iowait    %steal      %irq     %soft    %guest    %gnice     %idle
11:59:57 PM     all     10.00      1.00      4.00     20.00      0.00      0.50      0.50      4.00      0.00     60.00
11:59:57 PM       0      1.68      0.00     10.44     42.09      0.00      0.67      1.01     12.46      0.00     31.65

11:59:54 PM       tps      rtps      wtps   bread/s   bwrtn/s
11:59:57 PM    177.00     87.33     89.67      8.00     16.00

11:59:54 PM     IFACE   rxpck/s   txpck/s
11:59:57 PM      eth0      1.00      2.00

11:59:54 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
11:59:57 PM    dev8-0    177.00      8.00     16.00    188.20     42.81    132.66      5.15     91.07

11:59:57 PM     CPU      %usr     %nice      %sys   %iowait    %steal      %irq     %soft    %guest    %gnice     %idle
12:00:00 AM     all      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00    100.00

11:59:57 PM       tps      rtps      wtps   bread/s   bwrtn/s
12:00:00 AM      0.00      0.00      0.00      0.00      0.00

11:59:57 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
12:00:00 AM    dev8-0      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00

Average:          DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
Average:       dev8-0     88.50      4.00      8.00    188.20     42.81    132.66      5.15     91.07
";

/// Output from a file: each table with all times up to a restart of the machine.
const FILE: &str = "\
Linux 1.2.3-TEST (db2) \t04/18/19 \t_x86_64_\t(9 CPU)

13:20:09       CPU     %user     %nice   %system   %iowait    %steal     %idle
13:20:19       all     10,00      5,00      5,00     20,00      0,00     60,00
13:20:29       all      0,00      0,00      0,00      0,00      0,00    100,00
Moyenne :      all      5,00      2,50      2,50     10,00      0,00     80,00

13:20:09    kbmemfree   kbavail  kbcached
13:20:19         1000      2000      3000
13:20:29         1001      2001      3001
Moyenne :        1001      2001      3001

13:20:09          tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util DEV
13:20:19         9,62      7,50      0,00     16,00      2,50      0,01     13,00      0,96 sda
13:20:19         4,81      4,81     16,04      0,00      4,33      0,06     15,33      6,42 sdb
13:20:29         6,40      1,60      1,60      0,00      0,50      0,00      1,00      0,32 sda
Moyenne :        8,01      4,55      0,80      8,00      1,50      0,00      7,00      0,64 sda

13:37:29     LINUX RESTART\t(9 CPU)

13:54:15          tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util DEV
13:54:35         1,60      0,00      0,00      0,80      0,50      0,00      1,00      0,00 sda
";

/// Returns the values of a metric, rounded to thousandths; some can be missing.
#[track_caller]
pub(crate) fn rounded(read: &Read, name: &str, metric: &str) -> Vec<Option<f64>> {
    let round = |value: f64| (value * 1e3).round() / 1e3;
    read.values(name, metric).into_iter().map(|value| value.map(round)).collect()
}

#[test]
fn live_output_over_midnight() {
    let read = read(LIVE);
    assert_eq!(read.kind(), "sar");
    assert_eq!(read.start().as_deref(), Some("2015-02-25T23:59:57Z"));
    assert_eq!(read.seconds(), [0.0, 3.0]);
    for (name, metric, expect) in [
        ("dev8-0", "operations_per_s", [177.0, 0.0]),
        ("dev8-0", "read_bytes_per_s", [4096.0, 0.0]),
        ("dev8-0", "request_bytes", [96_358.0, 0.0]),
        ("dev8-0", "latency_ns", [132_660_000.0, 0.0]),
        ("dev8-0", "busy", [0.911, 0.0]),
        ("db1", "writes_per_s", [89.67, 0.0]),
        ("db1", "write_bytes_per_s", [8192.0, 0.0]),
        ("db1", "cpu", [0.2, 0.0]),
        ("db1", "cpu_user", [0.15, 0.0]),
        ("db1", "cpu_system", [0.05, 0.0]),
    ] {
        assert_eq!(read.all(name, metric), expect, "{name} {metric}");
    }
    assert!(read.notes("the table of IFACE"), "{:?}", read.summary.notes);
    assert!(read.notes("svctm"), "{:?}", read.summary.notes);
}

#[test]
fn output_of_a_file_table_by_table() {
    let read = read(FILE);
    assert_eq!(read.start().as_deref(), Some("2019-04-18T13:20:19Z"));
    assert_eq!(read.seconds(), [0.0, 10.0, 2056.0]);
    assert_eq!(read.all("sda", "operations_per_s"), [9.62, 6.4, 1.6]);
    assert_eq!(read.all("sda", "read_bytes_per_s"), [7680.0, 1638.0, 0.0]);
    // No device is ever reported idle, so that one without a row is: sar ran with -z.
    assert_eq!(rounded(&read, "sdb", "busy"), [Some(0.064), Some(0.0), Some(0.0)]);
    assert_eq!(read.values("sda", "interval_ns"), [None, None, Some(20e9)]);
    assert_eq!(rounded(&read, "db2", "cpu"), [Some(0.2), Some(0.0), None]);
    let free = [Some(1_024_000.0), Some(1_025_024.0), None];
    assert_eq!(read.values("db2", "memory_free_bytes"), free);
    assert!(read.notes("restarted"), "{:?}", read.summary.notes);
}

#[test]
fn a_missing_first_line_leaves_the_date_unknown() {
    let text = LIVE.lines().skip(2).collect::<Vec<_>>().join("\n") + "\n";
    let read = read(&text);
    assert_eq!((read.start(), read.seconds()), (None, vec![3.0, 6.0]));
    assert!(read.notes("no date"), "{:?}", read.summary.notes);
}

#[test]
fn rows_with_earlier_times_are_left_out_with_a_note() {
    let text = FILE.replace("13:20:29         6,40", "13:10:29         6,40");
    let read = read(&text);
    assert_eq!(rounded(&read, "sda", "busy"), [Some(0.01), None, Some(0.0)]);
    assert!(read.notes("1 rows whose times decreased are left out"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_input_is_reported() {
    let short = LIVE.replace("5.15     91.07\n\n11", "91.07\n\n11");
    assert_eq!(refused(&short), "line 14: a row has 8 columns, but its header has 9");
    let wrong = LIVE.replace("89.67 ", "89.6x ");
    assert_eq!(refused(&wrong), "line 8: \"89.6x\" is not a number");
    let wrong = LIVE.replace("12:00:00 AM      0.00", "12:60:00 AM      0.00");
    assert_eq!(refused(&wrong), "line 20: a line begins with \"12:60:00 AM\", which is not a time");
    let cut = FILE.split("      0,50      0,00      1,00      0,00 sda").next().expect("a part");
    let read = read(cut);
    assert_eq!(read.all("sda", "operations_per_s"), [9.62, 6.4]);
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
}

#[test]
fn samples_have_the_published_figures() {
    let Some(read) = sample("sar/pbench_sar-0.txt") else { return };
    assert_eq!(read.start().as_deref(), Some("2015-02-25T17:48:52Z"));
    assert_eq!(read.all("dev8-0", "operations_per_s")[..2], [177.0, 259.33]);
    assert_eq!(rounded(&read, "dev8-0", "busy")[0], Some(0.911));
    assert_eq!(read.all("a.foo.example.com", "swap_out_bytes_per_s")[0], 27_485_512.0);
    assert_eq!(read.all("a.foo.example.com", "blocked")[0], 30.0);
    let Some(read) = sample("sar/pbench_sar-4.txt") else { return };
    assert_eq!(read.start().as_deref(), Some("2016-02-17T08:49:59Z"));
    assert_eq!(read.all("dev252-0", "operations_per_s")[0], 47.16);
    let Some(read) = sample("sar/sysstat_expected.sar-pretty") else { return };
    let operations = rounded(&read, "sda", "operations_per_s");
    assert_eq!(operations[..3], [Some(0.0), Some(6.4), Some(1604.7)]);
    assert_eq!(read.seconds(), [0.0, 10.0, 20.0, 30.0, 2056.0]);
    // The sample before the last was taken after a restart, 20 s before it.
    assert_eq!(read.values("sda", "interval_ns")[4], Some(20e9));
    let Some(read) = sample("sar/sysstat_expected.sar-D") else { return };
    assert_eq!(read.all("SYSSTAT.TEST", "cpu_idle"), [0.829, 0.953]);
}
