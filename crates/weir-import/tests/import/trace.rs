//! Block traces.

use crate::bed::{Read, input, read, refused, try_read};
use crate::samples::sample;
use weir_import::{ImportError, Options, TimeUnit};
use weir_units::Span;

/// Reads bytes and detects their kind.
fn try_bytes(bytes: Vec<u8>) -> Result<Read, ImportError> {
    try_read(vec![input("input", bytes, None)], &Options::default())
}

#[track_caller]
fn refused_as(kind: &str, bytes: impl Into<Vec<u8>>) -> String {
    let inputs = vec![input("input", bytes, Some(kind))];
    try_read(inputs, &Options::default()).expect_err("it is refused").to_string()
}

#[track_caller]
fn last(read: &Read, device: &str, metric: &str) -> f64 {
    *read.all(device, metric).last().expect("a sample")
}

#[track_caller]
fn check(read: &Read, device: &str, expect: &[(&str, &[f64])]) {
    for (metric, values) in expect {
        assert_eq!(read.all(device, metric), *values, "{device} {metric}");
    }
}

const MSR: &str = "\
128166372000000000,web,0,Read,0,4096,5000000
128166372002500000,web,0,Write,4096,4096,20000000
128166372005000000,web,1,Read,8192,512,10000
128166372035000000,web,0,Write,8192,8192,5000000
";

#[test]
fn requests_count_at_completion_and_queues_over_time() {
    let read = read(MSR);
    assert_eq!(read.kind(), "msr-cambridge");
    assert_eq!(read.start().as_deref(), Some("2007-02-22T17:00:00Z"));
    // The first takes half a second, the second two seconds from 0.25 s on, the last half a
    // second from 3.5 s on.
    assert_eq!(read.seconds(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    check(
        &read,
        "0",
        &[
            ("reads", &[0.0, 1.0, 1.0, 1.0, 1.0]),
            ("writes", &[0.0, 0.0, 0.0, 1.0, 2.0]),
            ("write_bytes", &[0.0, 0.0, 0.0, 4096.0, 12288.0]),
            ("io_stall_read_ms", &[0.0, 500.0, 500.0, 500.0, 500.0]),
            ("io_stall_write_ms", &[0.0, 0.0, 0.0, 2000.0, 2500.0]),
            ("sequential_writes", &[0.0, 1.0, 1.0, 1.0, 2.0]),
            ("sequential_reads", &[0.0, 0.0, 0.0, 0.0, 0.0]),
        ],
    );
    let gauges = |metric: &str| read.values("0", metric)[1..].to_vec();
    assert_eq!(gauges("queue_depth"), [1.25, 1.0, 0.25, 0.5].map(Some));
    assert_eq!(gauges("busy"), [1.0, 1.0, 0.25, 0.5].map(Some));
    check(&read, "1", &[("reads", &[0.0, 1.0, 1.0, 1.0, 1.0])]);
}

#[test]
fn a_short_remainder_is_joined_and_idle_time_has_two_samples() {
    let rows = |times: &[u64]| {
        let row = |ms: &u64| format!("{},web,0,Read,0,512,0\n", 128166372000000000 + ms * 10_000);
        read(&times.iter().map(row).collect::<String>())
    };
    let joined = rows(&[0, 500, 1000, 1500, 2100]);
    assert_eq!(joined.seconds(), [0.0, 1.0, 2.1]);
    check(&joined, "0", &[("reads", &[0.0, 2.0, 5.0])]);
    let rest = rows(&[0, 500, 1000, 1700]);
    assert_eq!(rest.seconds(), [0.0, 1.0, 1.7]);
    let idle = rows(&[0, 500, 3_600_200, 3_600_900]);
    assert_eq!(idle.seconds(), [0.0, 1.0, 3600.0, 3600.9]);
    check(&idle, "0", &[("reads", &[0.0, 2.0, 2.0, 4.0])]);
    let single = rows(&[0]);
    assert_eq!(single.seconds(), [0.0, 1.0]);
    check(&single, "0", &[("reads", &[0.0, 1.0])]);
}

#[test]
fn a_new_device_was_idle_before() {
    let row = |half: u64| {
        let disk = if half == 17 { 7 } else { 0 };
        format!("{},web,{disk},Read,0,512,0\n", 128_166_372_000_000_000 + half * 5_000_000)
    };
    let read = read(&(0..20).map(row).collect::<String>());
    let values = read.values("7", "reads");
    assert_eq!(values.len(), 11);
    let there: Vec<_> = values.into_iter().flatten().collect();
    assert_eq!((there.first(), there.last()), (Some(&0.0), Some(&1.0)), "{there:?}");
}

#[test]
fn samples_have_the_requested_interval() {
    let options = Options { every: Some(Span::from_secs(2)), ..Options::default() };
    let read = try_read(vec![input("input", MSR, None)], &options).expect("it is read");
    assert_eq!(read.seconds(), [0.0, 2.0, 4.0]);
    check(&read, "0", &[("writes", &[0.0, 0.0, 2.0])]);
}

#[test]
fn slightly_late_requests_count_and_much_earlier_ones_do_not() {
    let text = format!(
        "{MSR}128166372034000000,web,0,Read,0,512,0\n128166371000000000,web,0,Read,0,512,0\n"
    );
    let read = read(&text);
    assert_eq!(last(&read, "0", "reads"), 2.0);
    assert!(read.notes("1 requests were earlier than a previous one, by at most 100 ms"));
    assert!(read.notes("1 requests that were more than 60 s earlier"));
}

/// Builds requests in the format of MSR Cambridge, one every `step` from `first` on.
fn msr_like(first: u64, step: u64, count: u64) -> String {
    let row = |n: u64| format!("{},web,0,Read,{},4096,{step}\n", first + n * step, n * 8192);
    (0..count).map(row).collect()
}

#[track_caller]
fn read_in(text: &str, unit: &str) -> Read {
    let time_unit = TimeUnit::named(unit);
    assert!(time_unit.is_some(), "{unit}");
    let options = Options { time_unit, ..Options::default() };
    try_read(vec![input("input", text, None)], &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn times_without_a_unit_are_reported_and_can_be_stated() {
    // 200 requests from 0 on, 20,000 apart: 2 ms if these are ticks.
    let text = msr_like(0, 20_000, 201);
    let ticks = read(&text);
    assert_eq!(ticks.kind(), "msr-cambridge");
    assert_eq!(ticks.seconds().last(), Some(&0.402));
    assert!(ticks.notes("assumed to be ticks of 100 ns, the unit of the format"));
    for (unit, end) in [("us", 4.02), ("ns", 0.00402), ("100ns", 0.402), ("ms", 4020.0)] {
        let read = read_in(&text, unit);
        let last = *read.seconds().last().expect("a sample");
        assert!(last == end || (unit == "ns" && last == 1.0), "{unit}: {last}");
        assert!(!read.notes("--time-unit"), "{unit}");
    }
    // Since 1970 in microseconds: what it counts from says the unit.
    let since = read(&msr_like(1_700_000_000_000_000, 10_000, 101));
    assert_eq!(since.start().as_deref(), Some("2023-11-14T22:13:20Z"));
    assert!(since.notes("its times are microseconds since 1970"));
    // In ticks since 1601 nothing is assumed.
    assert!(!read(MSR).notes("--time-unit"));
}

#[test]
fn an_impossible_time_unit_is_rejected() {
    // Microseconds 1 apart, read as ticks: 10 million IOPS.
    let text = msr_like(0, 1, 1000);
    let message = refused(&text);
    assert!(
        message.contains("assumed to be ticks of 100 ns, 1000 requests in 0.000100 s"),
        "{message}"
    );
    assert!(message.contains("state the unit with --time-unit"), "{message}");
    assert_eq!(last(&read_in(&text, "ms"), "0", "reads"), 1000.0);
    // Nanoseconds taken for seconds: longer than any trace.
    let table = |n: u64| format!("{},R,{},4096\n", n * 5_000_000, n * 4096);
    let rows: String = (0..200).map(table).collect();
    let text = format!("time,op,offset,size\n{rows}");
    assert!(refused(&text).contains("200 requests take 32 years"), "{}", refused(&text));
    assert_eq!(last(&read_in(&text, "ns"), "disk", "reads"), 200.0);
    // A few requests at once are no rate.
    assert!(read(&msr_like(0, 1, 5)).notes("--time-unit"));
}

#[test]
fn malformed_msr() {
    let wrong = MSR.replace("8192,8192,5000000\n", "8192,8k,5000000\n");
    assert_eq!(refused(&wrong), "line 4: the length is \"8k\", which is not a number");
    let wrong = MSR.replace("Write,8192,8192,5000000", "Write");
    assert_eq!(refused_as("msr-cambridge", wrong), "line 4: a row has 4 fields, and 7 are needed");
    let cut = &MSR[..MSR.len() - 15];
    assert!(read(cut).notes("its last line was truncated"));
    let head = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let twice = read(&format!("{head}{MSR}{head}{}", MSR.lines().last().expect("one")));
    assert_eq!((twice.kind(), last(&twice, "0", "writes")), ("msr-cambridge", 3.0));
}

#[test]
fn tables_by_the_names_of_their_columns() {
    let table = |head: &str, rows: &str| read(&format!("{head}\n{rows}\n"));
    let systor = table(
        "Timestamp,Response,IOType,LUN,Offset,Size",
        "1455592866.261180,0.000500,Read,4,0,4096\n\
         1455592866.500000,0.25,W,4,4096,512\n\
         1455592866.900000,,Read,4,4096,512\n\
         1455592867.000000,0.1,,4,4096,512",
    );
    assert_eq!(systor.kind(), "trace-csv");
    assert_eq!(systor.start().as_deref(), Some("2016-02-16T03:21:06.26118Z"));
    check(
        &systor,
        "4",
        &[
            ("reads", &[0.0, 2.0]),
            ("io_stall_read_ms", &[0.0, 0.5]),
            ("io_stall_write_ms", &[0.0, 250.0]),
            ("sequential_writes", &[0.0, 1.0]),
        ],
    );
    assert!(systor.notes("rows without an operation"), "{:?}", systor.summary.notes);
    assert!(systor.notes("Response has no unit: assumed to be seconds"));
    let told = table(
        "rw;latency_us;lba;Time (ms);sectors;device",
        "R;100;0;0,5;8;sda\nW;300;8;700,5;16;sda\nD;1;8;800;16;sda\nF;1;;900;0;sda",
    );
    check(
        &told,
        "sda",
        &[
            ("write_bytes", &[0.0, 8192.0]),
            ("io_stall_write_ms", &[0.0, 0.3]),
            ("sequential_writes", &[0.0, 1.0]),
            ("discard_bytes", &[0.0, 8192.0]),
            ("flushes", &[0.0, 1.0]),
        ],
    );
    assert_eq!(told.seconds(), [0.0, 0.899_501]);
    let dates = table(
        "timestamp,op,offset,size",
        "2020-01-02 03:04:05.5,read,0,512\n2020-01-02 03:04:06.5,write,0,512",
    );
    assert_eq!(dates.start().as_deref(), Some("2020-01-02T03:04:05.5Z"));
    assert!(dates.notes("no zone"));
    let numbers = table(
        "timestamp offset size iotype volume_id",
        "1538323200 0 8 0 1283\n1538323201 8 8 1 1283",
    );
    assert!(numbers.notes("iotype has no unit: assumed to be 0 for a read"));
    assert_eq!(numbers.seconds(), [0.0, 1.0, 2.0]);
}

#[test]
fn text_that_is_no_table() {
    assert_eq!(
        refused("time,op,offset,size\nsoon,R,0,512\n"),
        "line 2: the time is \"soon\", which is not a time"
    );
    assert_eq!(
        refused_as("trace-csv", "time,op,offset\n1,R,0\n"),
        "line 1: no column is named as a length is; there are time, op, offset"
    );
    assert_eq!(
        refused("time,op,offset,size\n1,R,0,512\n2,R,x,512\n"),
        "line 3: the offset is \"x\", which is not a number"
    );
    assert_eq!(
        refused("time,op,offset,size\n1,inquiry,0,512\n"),
        "it has no samples: it was read as a block trace as a table with named columns, but has no \
         samples"
    );
}

#[test]
fn cloudphysics_as_text() {
    let text = "version,time,op,size,lbn\n1,100,2a,512,7\n1,100,28,1024,8\n1,103,12,0,0\n1,103,88,512,10\n";
    let read_text = read(text);
    assert_eq!(read_text.kind(), "cloudphysics");
    assert_eq!(read_text.seconds(), [0.0, 1.0, 3.0, 4.0]);
    check(
        &read_text,
        "disk",
        &[
            ("reads", &[0.0, 1.0, 1.0, 2.0]),
            ("read_bytes", &[0.0, 1024.0, 1024.0, 1536.0]),
            ("sequential_reads", &[0.0, 1.0, 1.0, 2.0]),
        ],
    );
    assert!(read_text.notes("rows whose operation is 12"));
    assert_eq!(
        refused(&text.replace("103,88,512,10", "later,88,512,10")),
        "line 5: the time is \"later\", which is not a time"
    );
    assert_eq!(
        refused_as("cloudphysics", "version,time\n1,2\n"),
        "line 1: a header with version, time, op, size and lbn was expected"
    );
}

#[test]
fn spc_disksim_and_mqsim() {
    let spc = read("0,20941264,8192,W,0.551706\n0,20941280,512,r,0.554041\n1,0,512,R,0.6\n");
    assert_eq!((spc.kind(), last(&spc, "0", "sequential_reads")), ("spc", 1.0));
    let disksim = read("13.25\t30\t0\t5\t1\n17.5\t30\t5\t6\t0\n");
    assert_eq!((disksim.kind(), last(&disksim, "30", "write_bytes")), ("disksim", 3072.0));
    assert_eq!(disksim.seconds(), [0.0, 0.00425]);
    let mqsim = read("938513000 4 264719034 16 0\n938828000 4 197570570 16 1\n");
    assert_eq!((mqsim.kind(), last(&mqsim, "4", "write_bytes")), ("mqsim", 8192.0));
    assert_eq!(mqsim.seconds(), [0.0, 0.000_315]);
    assert_eq!(
        refused_as("spc", "0,1,x,W,0.5\n"),
        "line 1: the length is \"x\", which is not a number"
    );
    assert_eq!(refused_as("spc", "0,1\n"), "line 1: a row has 2 fields, and 5 are needed");
    assert_eq!(refused_as("disksim", "1.5 2\n"), "line 1: a row has 2 fields, and 5 are needed");
    assert_eq!(
        refused_as("disksim", "x 0 0 1 1\n"),
        "line 1: the time is \"x\", which is not a time"
    );
    assert_eq!(refused_as("mqsim", "1 2\n"), "line 1: a row has 2 fields, and 5 are needed");
    assert_eq!(
        refused_as("mqsim", "5 0 z 1 1\n"),
        "line 1: the offset is \"z\", which is not a number"
    );
}

const BLKPARSE: &str = "\
  8,0    1        1     0.000000000   100  Q  WS 1000 + 8 [postgres]
  8,0    1        2     0.000001000   100  G  WS 1000 + 8 [postgres]
  8,0    1        3     0.000002000   100  Q  WS 1008 + 8 [postgres]
  8,0    1        4     0.000002500   100  M  WS 1008 + 8 [postgres]
  8,0    1        5     0.000010000   100  D  WS 1000 + 16 [postgres]
  8,0    1        6     0.100010000     0  C  WS 1000 + 16 [0]
  8,0    1        7     0.200000000   100  Q FWS [jbd2/sda-8]
  8,0    1        8     0.200000000   100  D FWS [jbd2/sda-8]
  8,0    1        9     0.250000000     0  C FWS 0 [0]
  8,0    1       10     0.300000000   100  Q   R 1016 + 8 [postgres]
  8,0    1       11     0.300000000   100  D   R 1016 + 8 [postgres]
  8,0    1       12     0.310000000     0  C   R 1016 + 8 [0]
253,0    1       13     0.400000000   100  Q   R 64 + 8 [postgres]
253,0    1       14     0.420000000     0  C   R 64 + 8 [0]
253,0    1       15     0.500000000   100  Q  DS 64 + 8 [fstrim]
253,0    1       16     0.600000000     0  C  DS 64 + 8 [0]
  8,0    1       17     0.700000000     0  C   R 9999 + 8 [0]
  8,0    1       18     0.800000000   100  D   R 5000 + 8 [postgres]
";

#[test]
fn blkparse_starts_at_dispatch_or_at_the_queue() {
    let read = read(&format!("{BLKPARSE}CPU0 (sda):\n Reads Queued:  2, 8KiB\n"));
    assert_eq!(read.kind(), "blkparse");
    check(
        &read,
        "8,0",
        &[
            ("writes", &[0.0, 1.0]),
            ("write_bytes", &[0.0, 8192.0]),
            ("io_stall_write_ms", &[0.0, 100.0]),
            ("reads", &[0.0, 2.0]),
            ("io_stall_read_ms", &[0.0, 10.0]),
            ("sequential_reads", &[0.0, 1.0]),
            ("flushes", &[0.0, 1.0]),
        ],
    );
    check(&read, "253,0", &[("io_stall_read_ms", &[0.0, 20.0]), ("discard_bytes", &[0.0, 4096.0])]);
    assert!(read.notes("requests are in flight at its end: 1 at devices, 0 in queues"));
    assert!(read.notes("1 requests have only a completion"));
    assert!(read.notes("lines that are not events (2 times)"));
}

#[test]
fn malformed_blkparse() {
    assert_eq!(
        refused(&BLKPARSE.replace("WS 1008 + 8 [", "WS 1008 - 8 [")),
        "line 3: a sector and a number of sectors were expected, but found \"1008 - 8 [postgres]\""
    );
    assert_eq!(
        refused(&BLKPARSE.replace("0.100010000 ", "0.1000l0000 ")),
        "line 6: the time is \"0.1000l0000\", which is not a time"
    );
    let cut = read(&BLKPARSE[..BLKPARSE.len() - 30]);
    assert!(cut.notes("its last line was truncated"), "{:?}", cut.summary.notes);
}

#[test]
fn iologs_of_fio() {
    let three = read(
        "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n10 /dev/sdb write 0 4096\n\
         500010 /dev/sdb read 4096 4096\n600000 /dev/sdb datasync 0 0\n700010 /dev/sdb trim 0 8192\n\
         800000 /dev/sdb close\n",
    );
    assert_eq!(three.kind(), "fio-iolog");
    assert_eq!(three.seconds(), [0.0, 0.7]);
    check(
        &three,
        "/dev/sdb",
        &[
            ("reads", &[0.0, 1.0]),
            ("write_bytes", &[0.0, 4096.0]),
            ("sequential_reads", &[0.0, 1.0]),
            ("flushes", &[0.0, 1.0]),
            ("discard_bytes", &[0.0, 8192.0]),
        ],
    );
    let two = "fio version 2 iolog\n/f add\n/f open\n/f read 0 512\n/f wait 2500000 0\n/f read 512 512\n/f close\n";
    let read_two = read(two);
    assert_eq!(read_two.seconds(), [0.0, 1.0, 2.0, 2.5]);
    check(&read_two, "/f", &[("reads", &[0.0, 1.0, 1.0, 2.0])]);
    assert_eq!(
        refused(&two.replace("/f wait 2500000 0\n", "")),
        "version 2 of an iolog has no times unless something waits in it, and nothing does; \
         fio 3.31 and later write version 3, which has"
    );
    assert_eq!(
        refused(&two.replace("version 2", "version 9")),
        "line 1: it is of version 9; versions 2 and 3 are read"
    );
    assert_eq!(
        refused("fio version 3 iolog\n1 /f read 0 4k\n"),
        "line 2: the length is \"4k\", which is not a number"
    );
}

/// A record of a vscsi trace.
fn vscsi(version: u16, command: u16, length: u32, sector: u64, micros: u64) -> Vec<u8> {
    let (command, said) = (command.to_le_bytes(), (version << 8).to_le_bytes());
    let numbers = [[1, 0, 0, 0], length.to_le_bytes(), [1, 0, 0, 0]].concat();
    let places = [sector.to_le_bytes(), micros.to_le_bytes()].concat();
    if version == 1 {
        return [&numbers[..], &command, &said, &places].concat();
    }
    [&command[..], &said, &numbers, &places, &[9; 8]].concat()
}

#[test]
fn vscsi_of_both_versions() {
    for version in [1, 2] {
        let records = [
            vscsi(version, 0x28, 4096, 100, 5_000_000),
            vscsi(version, 0x2a, 512, 108, 5_100_000),
            vscsi(version, 0x12, 96, 0, 5_100_000),
            vscsi(version, 0x88, 512, 108, 6_500_000),
        ];
        let read = try_bytes(records.concat()).expect("it is read");
        assert_eq!((read.kind(), read.seconds()), ("vscsi", vec![0.0, 1.0, 1.5]));
        check(
            &read,
            "disk",
            &[
                ("reads", &[0.0, 1.0, 2.0]),
                ("read_bytes", &[0.0, 4096.0, 4608.0]),
                ("sequential_writes", &[0.0, 1.0, 1.0]),
            ],
        );
        assert!(read.notes("requests whose command is 12"));
        let mut cut = records.concat();
        cut.truncate(cut.len() - 3);
        let cut = try_bytes(cut).expect("it is read");
        assert!(cut.notes("its last record was truncated"));
    }
    let mut wrong = vec![vscsi(1, 0x28, 512, 0, 0); 600].concat();
    wrong[500 * 32 + 15] = 7;
    let error = try_bytes(wrong).expect_err("it is refused").to_string();
    assert_eq!(error, "record 501: it is not of the version before");
    assert_eq!(
        refused_as(
            "vscsi",
            "a text that is none of them, but long enough for two of their records"
        ),
        "records of a vscsi trace of version 1 or 2 were expected"
    );
}

/// Builds records of a trace for caches.
fn oracle_general(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let bytes = |(seconds, object, size, next): &(u32, u64, u32, i64)| {
        let (seconds, object) = (seconds.to_le_bytes(), object.to_le_bytes());
        [&seconds[..], &object, &size.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    records.iter().flat_map(bytes).collect()
}

#[test]
fn oracle_general_is_recognized_by_consistent_records() {
    let records: Vec<(u32, u64, u32, i64)> = (0..40)
        .map(|n| (n / 20, u64::from(n % 10), 4096, if n < 30 { i64::from(n) + 10 } else { -1 }))
        .collect();
    let read = try_bytes(oracle_general(&records)).expect("it is read");
    assert_eq!((read.kind(), read.seconds()), ("oracle-general", vec![0.0, 1.0, 2.0]));
    check(
        &read,
        "disk",
        &[("operations", &[0.0, 20.0, 40.0]), ("bytes", &[0.0, 81920.0, 163_840.0])],
    );
    assert!(read.notes("does not distinguish reads from writes"));
    // From 1, and with more behind what is in sight.
    let other: Vec<_> = records.iter().map(|(s, o, b, _)| (*s, *o, *b, -1)).take(10).collect();
    let other: Vec<_> = other.into_iter().map(|(s, o, b, _)| (s, o, b, 1_000_000)).collect();
    assert_eq!(try_bytes(oracle_general(&other)).expect("it is read").kind(), "oracle-general");
    let mut wrong = records.clone();
    wrong[3].3 = 12;
    let error = try_bytes(oracle_general(&wrong)).expect_err("it is refused").to_string();
    assert!(error.contains("it is not text"), "{error}");
    let mut large = records;
    large[39].2 = u32::MAX;
    assert_eq!(
        refused_as("oracle-general", oracle_general(&large)),
        "record 40: an object of 4294967295 bytes"
    );
    assert_eq!(
        refused_as("oracle-general", "short"),
        "records of 24 bytes were expected, and there is not one"
    );
}

#[test]
fn unsupported_formats_are_rejected_by_name() {
    let refused = |bytes: &[u8]| try_bytes(bytes.to_vec()).expect_err("it is refused").to_string();
    assert_eq!(
        refused(b"\x28\xb5\x2f\xfd\0\0"),
        "it is compressed with zstd, which is not read: decompress it, and import the result"
    );
}

#[test]
fn samples_have_the_known_figures() {
    let Some(read) = sample("block_traces/blkparse_nvme_259-2.txt") else { return };
    assert_eq!((read.kind(), read.seconds()), ("blkparse", vec![0.0, 0.679_741_681]));
    assert_eq!(last(&read, "259,2", "reads"), 1694.0);
    assert_eq!(last(&read, "259,2", "read_bytes"), 198_029_312.0);
    assert_eq!(last(&read, "259,2", "io_stall_read_ms"), 273.798);
    assert_eq!(last(&read, "259,2", "sequential_reads"), 27.0);
    assert!(read.notes("0 at devices, 1 in queues"), "{:?}", read.summary.notes);
    let Some(read) = sample("block_traces/cloudPhysicsIO.csv") else { return };
    assert_eq!((read.kind(), read.seconds().last()), ("cloudphysics", Some(&7201.0)));
    assert_eq!(last(&read, "disk", "reads"), 46_974.0);
    assert_eq!(last(&read, "disk", "writes"), 66_898.0);
    assert_eq!(last(&read, "disk", "read_bytes"), 1_797_412_352.0);
    assert_eq!(last(&read, "disk", "sequential_reads"), 9931.0);
    assert_eq!(last(&read, "disk", "sequential_writes"), 19_627.0);
    let Some(read) = sample("block_traces/disksim_ascii.trace") else { return };
    assert_eq!((read.kind(), read.summary.entities), ("disksim", 15));
    assert_eq!(last(&read, "30", "reads"), 2219.0);
    assert_eq!(last(&read, "30", "read_bytes"), 1_850_368.0);
    assert_eq!(last(&read, "30", "sequential_reads"), 1164.0);
    let Some(read) = sample("block_traces/mqsim_tpcc-small.trace") else { return };
    assert_eq!((read.kind(), read.summary.entities), ("mqsim", 17));
    assert_eq!(last(&read, "4", "reads"), 284.0);
    assert_eq!(last(&read, "4", "writes"), 169.0);
    assert_eq!(last(&read, "4", "read_bytes"), 2_326_528.0);
}

/// A generator of reproducible random numbers.
fn noise(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).expect("31 bits")
}

#[test]
fn readers_never_panic() {
    let kinds = ["msr-cambridge", "blkparse", "fio-iolog", "vscsi", "oracle-general", "trace-csv"];
    let records = [vscsi(1, 0x28, 512, 9, 7), vscsi(1, 0x2a, 512, 9, 1 << 50)].concat();
    let table = b"time,op,offset,size,latency\n1,R,0,512,3\n2,W,9,512,1e9\n".to_vec();
    let objects = oracle_general(&[(1, 2, 3, 4); 9]);
    let iolog = b"fio version 3 iolog\n1 /f read 0 512\n9 /f write 512 512\n".to_vec();
    let inputs = [MSR.into(), BLKPARSE.into(), iolog, records, objects, table];
    let mut state = 1;
    for (kind, bytes) in kinds.iter().zip(inputs) {
        for _ in 0..400 {
            let mut bytes = bytes.clone();
            for _ in 0..noise(&mut state) % 6 {
                let at = noise(&mut state) % bytes.len();
                bytes[at] = match noise(&mut state) % 3 {
                    0 => b"0123456789 ,\n\t.-+"[noise(&mut state) % 17],
                    1 => b'9',
                    _ => u8::try_from(noise(&mut state) % 256).expect("a byte"),
                };
            }
            bytes.truncate(bytes.len() - noise(&mut state) % 40);
            let read = try_read(vec![input("input", bytes, Some(kind))], &Options::default());
            if let Err(error) = read {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// The byte order of a trace.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

/// Actions: queued, sent to the device, completed.
const Q: u32 = 1 | 1 << 20;
const D: u32 = 7 | 1 << 22;
const C: u32 = 8 | 1 << 23;
const READS: u32 = 1 << 16;
const WRITES: u32 = 1 << 17;

/// Builds a record of blktrace for device 8,16, as in `struct blk_io_trace`.
fn blktrace(order: Order, ns: u64, sector: u64, bytes: u32, action: u32, more: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let mut put = |bytes: &[u8]| match order {
        Order::Little => record.extend_from_slice(bytes),
        Order::Big => record.extend(bytes.iter().rev()),
    };
    put(&0x6561_7407_u32.to_le_bytes());
    put(&1_u32.to_le_bytes());
    put(&ns.to_le_bytes());
    put(&sector.to_le_bytes());
    put(&bytes.to_le_bytes());
    put(&action.to_le_bytes());
    put(&4020_u32.to_le_bytes());
    put(&(8_u32 << 20 | 16).to_le_bytes());
    put(&0_u32.to_le_bytes());
    put(&0_u16.to_le_bytes());
    put(&u16::try_from(more.len()).expect("short").to_le_bytes());
    record.extend_from_slice(more);
    record
}

/// Events of two processors: a read that one queued and sent and the other completed, and a write.
fn processors(order: Order) -> [Vec<u8>; 2] {
    let ms = 1_000_000;
    let event = |at: u64, sector, action| blktrace(order, at * ms, sector, 4096, action, &[]);
    // The name of a process, which is no event.
    let name = blktrace(order, 0, 0, 0, 1 << 26, b"fio\0");
    let first =
        [name, event(0, 800, Q | READS), event(100, 800, D | READS), event(300, 64, Q | WRITES)];
    let second =
        [event(200, 800, C | READS), event(400, 64, D | WRITES), event(700, 64, C | WRITES)];
    [first.concat(), second.concat()]
}

#[test]
fn a_trace_of_an_idle_processor_is_empty() {
    let [first, second] = processors(Order::Little);
    let read = |parts: Vec<Vec<u8>>| {
        let name = |at| format!("sdb.blktrace.{at}");
        let inputs = (0..).zip(parts).map(|(at, part)| input(&name(at), part, None));
        try_read(inputs.collect(), &Options::default()).expect("a trace")
    };
    let with = read(vec![first.clone(), Vec::new(), second.clone()]);
    assert_eq!((with.kind(), with.summary.inputs.len()), ("blktrace", 1));
    assert_eq!(with.observation.columns, read(vec![first, second]).observation.columns);
}

#[test]
fn binary_traces_of_several_processors() {
    for order in [Order::Little, Order::Big] {
        let [first, second] = processors(order);
        let named = |first: &[u8], second: &[u8]| {
            // In whatever order they are given.
            let inputs =
                vec![input("sdb.blktrace.1", second, None), input("sdb.blktrace.0", first, None)];
            try_read(inputs, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
        };
        let read = named(&first, &second);
        assert_eq!((read.kind(), read.summary.inputs.len()), ("blktrace", 1));
        for (metric, value) in [
            ("reads", 1.0),
            ("writes", 1.0),
            ("read_bytes", 4096.0),
            ("io_stall_read_ms", 100.0),
            ("io_stall_write_ms", 300.0),
        ] {
            assert_eq!(last(&read, "8,16", metric), value, "{metric}");
        }
        // One file alone has a completion without its beginning.
        let alone = try_bytes(second.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert!(alone.notes("1 requests have only a completion"));
        // The last record of the second processor is cut: the write does not end.
        let cut = named(&first, &second[..second.len() - 10]);
        assert!(
            cut.notes("its last record was truncated and is left out"),
            "{:?}",
            cut.summary.notes
        );
        assert!(cut.notes("1 at devices"), "{:?}", cut.summary.notes);
        assert_eq!(last(&cut, "8,16", "reads"), 1.0);
    }
}

#[test]
fn malformed_binary_traces() {
    let [first, _] = processors(Order::Little);
    let mut wrong = first.clone();
    wrong[52] = 0;
    assert_eq!(refused_as("blktrace", wrong), "record 2 does not begin like a record of blktrace");
    assert_eq!(refused_as("blktrace", "text"), "records of blktrace, version 7, were expected");
    assert_eq!(refused_as("blktrace", ""), "records of blktrace, version 7, were expected");
    // Another version is none that is known.
    let mut other = first.clone();
    other[0] = 6;
    assert!(try_bytes(other).is_err());
    for end in 0..first.len() {
        let _ = try_bytes(first[..end].to_vec());
    }
}

/// The trace has 10,000 requests in 5 s; its nanoseconds could be seconds since 1970.
#[test]
fn nanoseconds_that_resemble_seconds_since_1970_are_reported() {
    let at = |n: u64| 1_000_000_000 + n * 500_000;
    let msr: String =
        (0..10_000).map(|n| format!("{},web,0,Read,{},4096,90000\n", at(n), n * 4096)).collect();
    let csv: String = (0..10_000).map(|n| format!("{},R,{},4096\n", at(n), n * 4096)).collect();
    for text in [msr, format!("timestamp,op,offset,size\n{csv}")] {
        let told = refused(&text);
        assert!(told.contains("seconds since 1970"), "{told}");
        assert!(told.contains("158 years") && told.contains("--time-unit"), "{told}");
        let read = read_in(&text, "ns");
        let seconds = read.seconds();
        let span = seconds[seconds.len() - 1] - seconds[0];
        assert!((4.9..5.1).contains(&span), "{seconds:?}");
    }
}
