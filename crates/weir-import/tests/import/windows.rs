//! Performance counters of Windows: logs of PerfMon, and output of Get-Counter.

use crate::bed::{input, read, refused, try_read};
use crate::samples::sample;
use weir_import::Options;
use weir_observe::EntityKind;

/// Rounds values to millionths.
pub(crate) fn rounded(values: Vec<Option<f64>>) -> Vec<Option<f64>> {
    values.into_iter().map(|value| value.map(|value| (value * 1e6).round() / 1e6)).collect()
}

const WIDE: &str = r#""(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\DB1\PhysicalDisk(1 D:)\Disk Reads/sec","\\DB1\PhysicalDisk(1 D:)\Disk Writes/sec","\\DB1\PhysicalDisk(1 D:)\Disk Transfers/sec","\\DB1\PhysicalDisk(1 D:)\Avg. Disk sec/Read","\\DB1\PhysicalDisk(1 D:)\% Idle Time","\\DB1\PhysicalDisk(_Total)\Disk Reads/sec","\\DB1\Processor(_Total)\% Processor Time","\\DB1\SQLServer:Databases(tpcc)\Log Bytes Flushed/sec","\\DB1\SQLServer:Databases(_Total)\Log Bytes Flushed/sec","\\DB1\SQLServer:Buffer Manager\Page life expectancy"
"12/29/2020 18:34:28.500"," "," "," "," "," "," "," "," "," ","300"
"12/29/2020 18:34:38.500","100.5","20","120.5","0.0025","12.5","100.5","40","4096","8192","310"
"12/29/2020 18:34:48.500","0","4.0000000000000002E-1","0.4","0","99","0","1","0","0","320"
"#;

#[test]
fn a_log_with_a_zone_and_an_empty_first_sample() {
    let read = read(WIDE);
    assert_eq!(read.kind(), "perfmon");
    assert_eq!(read.start().as_deref(), Some("2020-12-29T17:34:28.5Z"));
    assert_eq!(read.seconds(), [0.0, 10.0, 20.0]);
    assert_eq!(rounded(read.values("1 D:", "reads_per_s")), [None, Some(100.5), Some(0.0)]);
    assert_eq!(rounded(read.values("1 D:", "writes_per_s"))[2], Some(0.4));
    // Nothing was read: there is no mean.
    assert_eq!(read.values("1 D:", "read_latency_ns"), [None, Some(2.5e6), None]);
    assert_eq!(rounded(read.values("1 D:", "busy"))[1], Some(0.875));
    assert_eq!(rounded(read.values("DB1", "cpu"))[1], Some(0.4));
    assert_eq!(read.values("tpcc", "log_bytes_per_s")[1], Some(4096.0));
    assert_eq!(read.all("DB1", "page_life_expectancy_s"), [300.0, 310.0, 320.0]);
    let names: Vec<_> =
        read.observation.contents().entities.iter().map(|entity| &*entity.name).collect();
    assert_eq!(names, ["DB1", "1 D:", "tpcc"]);
    assert!(read.notes(r"PhysicalDisk\Disk Transfers/sec"), "{:?}", read.summary.notes);
}

#[test]
fn a_restarted_log_holds_no_rate_over_the_gap() {
    let again = WIDE.replace(" 18:", " 20:").replace("\"300\"", "\"330\"");
    let (head, rows) = again.split_once('\n').expect("a head");
    for text in [format!("{WIDE}{head}\n{rows}"), format!("{WIDE}{rows}")] {
        let read = read(&text);
        let reads = rounded(read.values("1 D:", "reads_per_s"));
        assert_eq!(reads, [None, Some(100.5), Some(0.0), None, Some(100.5), Some(0.0)]);
        let intervals = read.values("1 D:", "interval_ns");
        assert_eq!(intervals[4], Some(1e10), "{intervals:?}");
        assert!(read.notes("1 gaps between its samples"), "{:?}", read.summary.notes);
    }
}

#[test]
fn a_log_in_other_encodings_is_the_same() {
    let plain = read(WIDE);
    let numbers = WIDE.replace("100.5", "100,5").replace("120.5", "120,5").replace("12.5", "12,5");
    let numbers = numbers.replace("0.0025", "0,0025").replace("0.4", "0,4").replace("4.0", "4,0");
    let tabs = WIDE.replace("\",\"", "\"\t\"").replace("CSV", "TSV").replace('\n', "\r\n");
    let semicolons = WIDE.replace("\",\"", ";").replace('"', "");
    let unended = format!("\r\n{}", WIDE.trim_end());
    let ended = format!("{WIDE}\r\nThe command completed successfully.\r\n");
    for text in [&numbers, &tabs, &semicolons, &unended, &ended] {
        let read = read(text);
        assert_eq!(read.observation.columns, plain.observation.columns, "{text}");
        assert_eq!(read.start(), plain.start(), "{text}");
    }
    let wide: Vec<u8> =
        format!("\u{feff}{WIDE}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let read = try_read(vec![input("wide", wide, None)], &Options::default()).expect("UTF-16");
    assert_eq!(read.observation.columns, plain.observation.columns);
}

#[test]
fn later_counters_have_another_head() {
    let text = r#""(PDH-CSV 4.0)","\\H\PhysicalDisk(0 C:)\Disk Reads/sec","\\H\PhysicalDisk(0 C:)\Disk Writes/sec"
"01/02/2020 00:00:00.000","1","2"
"(PDH-CSV 4.0)","\\H\PhysicalDisk(1 D:)\Disk Reads/sec","\\H\PhysicalDisk(0 C:)\Disk Reads/sec"
"01/02/2020 00:00:01.000","5","6"
"#;
    let read = read(text);
    assert_eq!(read.values("0 C:", "reads_per_s"), [Some(1.0), Some(6.0)]);
    assert_eq!(read.values("0 C:", "writes_per_s"), [Some(2.0), None]);
    assert_eq!(rounded(read.values("1 D:", "reads_per_s")), [None, Some(5.0)]);
    assert!(read.notes("its times have no zone: UTC is assumed"), "{:?}", read.summary.notes);
}

#[test]
fn names_in_german_and_french() {
    let german = r#""(PDH-CSV 4.0) (Mitteleuropäische Zeit)(-60)";"\\H\Physikalischer Datenträger(0 C:)\Lesevorgänge/s";"\\H\Physikalischer Datenträger(0 C:)\Mittlere Sek./Lesevorgänge";"\\H\Physikalischer Datenträger(0 C:)\Bytes geschrieben/s"
"01/02/2020 01:00:00.000";"12,5";"0,002";"4096"
"#;
    let french = r#""(PDH-CSV 4.0) (Paris, Madrid)(-60)","\\H\Disque physique(0 C:)\Lectures disque/s","\\H\Disque physique(0 C:)\Moyenne disque s/lecture","\\H\Disque physique(0 C:)\Écritures disque, octets/s"
"01/02/2020 01:00:00.000","12,5","0,002","4096"
"#;
    for text in [german, french] {
        let read = read(text);
        assert_eq!(read.start().as_deref(), Some("2020-01-02T00:00:00Z"), "{text}");
        assert_eq!(read.all("0 C:", "reads_per_s"), [12.5], "{text}");
        assert_eq!(read.all("0 C:", "read_latency_ns"), [2e6], "{text}");
        assert_eq!(read.all("0 C:", "write_bytes_per_s"), [4096.0], "{text}");
    }
}

#[test]
fn drives_are_parts_of_the_physical_disks_present() {
    let text = r#""(PDH-CSV 4.0)","\\H\LogicalDisk(D:)\Disk Reads/sec","\\H\PhysicalDisk(1 D: E:)\Disk Reads/sec"
"01/02/2020 00:00:00.000","1","2"
"#;
    let both = read(text);
    let drive = &both.observation.contents().entities[both.entity("D:").0 as usize];
    assert_eq!(drive.kind, EntityKind::Other("drive".to_owned()));
    assert_eq!(drive.parent, Some(both.entity("1 D: E:")));
    let alone = read(&text.replace("PhysicalDisk(1 D: E:)", "LogicalDisk(_Total)"));
    let drive = &alone.observation.contents().entities[alone.entity("D:").0 as usize];
    assert_eq!((&drive.kind, alone.summary.entities), (&EntityKind::Volume, 2));
    let total = read(&text.replace("(D:)", "(_Total)").replace("(1 D: E:)", "(_Total)"));
    assert_eq!(total.all("_Total", "reads_per_s"), [1.0]);
    assert!(total.notes("the volume _Total stands for all disks"), "{:?}", total.summary.notes);
}

#[test]
fn of_named_instances_and_resource_pools() {
    let text = r#""(PDH-CSV 4.0)","\\H\MSSQL$SALES:Databases(tpcc)\Transactions/sec","\\H\MSSQL$SALES:SQL Statistics\Batch Requests/sec","\\H\MSSQL$SALES:Resource Pool Stats(default)\Disk Read IO/sec","\\H\MSSQL$SALES:Resource Pool Stats(default)\Avg Disk Read IO (ms)"
"01/02/2020 00:00:00.000","1","2","3","4"
"#;
    let read = read(text);
    assert_eq!(read.all("SALES", "batch_requests_per_s"), [2.0]);
    assert_eq!(read.all("tpcc", "transactions_per_s"), [1.0]);
    assert_eq!(read.all("default", "reads_per_s"), [3.0]);
    assert_eq!(read.all("default", "read_latency_ns"), [4e6]);
}

#[test]
fn rows_one_field_wider_than_their_head() {
    let log = |head: &str, rows: [&str; 2]| {
        format!(
            "\"(PDH-CSV 4.0)\",\"\\\\H\\PhysicalDisk(0 C:)\\Disk Reads/sec\"{head}\n\
             \"01/02/2020 00:00:00.000\",\"1.5\"{}\n\"01/02/2020 00:00:01.000\",\"2.5\"{}\n",
            rows[0], rows[1]
        )
    };
    for (head, rows) in [
        ("", [",", ","]),
        ("", [",\"\"", ",\" \""]),
        (",", ["", ","]),
        (",\"\"", [",\"\"", ",\"begun by hand\""]),
        ("", [",\"begun by hand\"", ",\"\""]),
    ] {
        let read = read(&log(head, rows));
        assert_eq!(read.all("0 C:", "reads_per_s"), [1.5, 2.5], "{head} {rows:?}");
        let is_told = read.notes("comments after the values");
        assert_eq!(is_told, rows.concat().contains("hand"), "{:?}", read.summary.notes);
    }
}

#[test]
fn values_without_a_counter_name_are_left_out() {
    // typeperf writes -1 for a counter that fails, and may leave its name out of the head.
    let log = |rows: [&str; 2]| {
        format!(
            "\"(PDH-CSV 4.0)\",\"\\\\H\\PhysicalDisk(0 C:)\\Disk Reads/sec\",\"\\\\H\\PhysicalDisk(0 \
             C:)\\Disk Writes/sec\"\n\"01/02/2020 00:00:00.000\",{}\n\"01/02/2020 00:00:01.000\",{}\n",
            rows[0], rows[1]
        )
    };
    let one = log([r#""-1","1.500000","7.000000""#, r#""-1","2.500000","8.000000""#]);
    let two = log([r#""-1","-1","1.500000","7.000000""#, r#""2.500000","-1","8.000000","-1""#]);
    for text in [one, two] {
        let read = read(&text);
        assert_eq!(read.all("0 C:", "reads_per_s"), [1.5, 2.5], "{text}");
        assert_eq!(read.all("0 C:", "writes_per_s"), [7.0, 8.0], "{text}");
        assert!(read.notes("values of -1 without a counter"), "{:?}", read.summary.notes);
    }
    // A named counter may have failed as well: which one it is cannot be told.
    let both = log([r#""-1","-1","7.000000""#, r#""1.0","2.0""#]);
    assert!(refused(&both).contains("which value is the extra one"), "{}", refused(&both));
}

#[test]
fn input_other_than_a_log_is_rejected() {
    let row = "\"12/29/2020 18:34:38.500\",\"100.5\"";
    let check =
        |from: &str, to: &str, expect: &str| assert_eq!(refused(&WIDE.replace(from, to)), expect);
    check("\"100.5\",\"20\"", "\"1o0.5\",\"20\"", "line 3: \"1o0.5\" is not a number");
    check(row, "\"today\",\"100.5\"", "line 3: \"today\" is not a time");
    check("\"40\",\"4096\",", "", "line 3: a row has 8 values, but its header has 10 counters");
    check(
        "\"310\"",
        "\"310\",\"5\"",
        "line 3: a row has 11 values, but its header has 10 counters: it is unclear which value is \
         the extra one; write the log again with `relog LOG -f CSV -o NEW.csv`, or give typeperf \
         each counter by its whole path",
    );
    check(
        "\"310\"",
        "\"310\",\"a\",\"b\"",
        "line 3: a row has 12 values, but its header has 10 counters",
    );
    let foreign =
        "\"(PDH-CSV 4.0)\",\"\\\\H\\Fysieke schijf(0 C:)\\Geschreven bytes per seconde\"\n";
    assert_eq!(
        refused(foreign),
        "line 1: none of its 1 counters is used: \
         Fysieke schijf\\Geschreven bytes per seconde"
    );
    let head = WIDE.lines().next().expect("a head");
    assert_eq!(
        refused(head),
        "it has no samples: it was read as a log of PerfMon, relog or typeperf, as CSV or TSV, but \
         has no samples"
    );
}

#[test]
fn a_truncated_last_line_is_left_out() {
    for cut in [3, 20] {
        let read = read(&WIDE[..WIDE.len() - cut]);
        assert_eq!(read.summary.samples, 2, "{cut}");
        assert!(
            read.notes("its last line was truncated and is left out"),
            "{:?}",
            read.summary.notes
        );
    }
}

#[test]
fn an_unreadable_counter_is_missing() {
    let read = read(&WIDE.replace("\"40\",", "\"-1\",").replace("\"4096\"", "\"-1.#IND00\""));
    assert_eq!(read.values("DB1", "cpu")[1], None);
    assert_eq!(read.values("tpcc", "log_bytes_per_s")[1], None);
    assert!(read.notes("negative values"), "{:?}", read.summary.notes);
}

const LONG: &str = r##"#TYPE Microsoft.PowerShell.Commands.GetCounter.PerformanceCounterSample
"Path","InstanceName","CookedValue","RawValue","Timestamp","Status"
"\\db1\physicaldisk(0 c:)\disk reads/sec","0 c:","78.5","1234567","1/7/2020 8:00:39 PM","0"
"\\db1\physicaldisk(0 c:)\avg. disk sec/read","0 c:","0.001","99","1/7/2020 8:00:39 PM","0"
"\\db1\physicaldisk(_total)\disk reads/sec","_total","78.5","1234567","1/7/2020 8:00:39 PM","0"
"\\db1\physicaldisk(0 c:)\disk reads/sec","0 c:","2","1234569","1/7/2020 8:00:40 PM","0"
"\\db1\processor(0)\% processor time","0","2","1","1/7/2020 8:00:40 PM","0"
"##;

#[test]
fn rows_of_counters() {
    let read = read(LONG);
    assert_eq!(read.kind(), "get-counter");
    assert_eq!(read.start().as_deref(), Some("2020-01-07T20:00:39Z"));
    assert_eq!(read.seconds(), [0.0, 1.0]);
    assert_eq!(read.all("0 c:", "reads_per_s"), [78.5, 2.0]);
    assert_eq!(read.values("0 c:", "read_latency_ns"), [Some(1e6), None]);
    assert!(read.notes("UTC is assumed"), "{:?}", read.summary.notes);
    assert!(read.notes("RawValue"), "{:?}", read.summary.notes);
    assert!(read.notes(r"processor\% processor time"), "{:?}", read.summary.notes);
}

#[test]
fn rows_of_counters_with_their_parts_in_columns() {
    let text = "TimeGenerated [UTC],Computer,ObjectName,CounterName,InstanceName,CounterValue\n\
                2021-05-15T18:21:06.5Z,db1,LogicalDisk,Disk Reads/sec,C:,10\n\
                2021-05-15T18:21:06.5Z,db1,LogicalDisk,Disk Reads/sec,D:,20\n\
                2021-05-15T18:22:06.5Z,db1,LogicalDisk,Disk Reads/sec,D:,30\n";
    let read = read(text);
    assert_eq!((read.kind(), read.seconds()), ("get-counter", vec![0.0, 60.0]));
    assert_eq!(read.start().as_deref(), Some("2021-05-15T18:21:06.5Z"));
    assert_eq!(read.values("C:", "reads_per_s"), [Some(10.0), None]);
    assert_eq!(read.all("D:", "reads_per_s"), [20.0, 30.0]);
    assert!(!read.notes("UTC"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_rows() {
    let check =
        |from: &str, to: &str, expect: &str| assert_eq!(refused(&LONG.replace(from, to)), expect);
    check("\"78.5\",\"1234567\"", "\"x\",\"1\"", "line 3: \"x\" is not a number");
    check("1/7/2020 8:00:40 PM", "13/32/2020 8:00", "line 6: \"13/32/2020 8:00\" is not a time");
    check(",\"99\"", "", "line 4: a row has fewer columns than its header, 6");
    check(
        "\\\\db1\\processor(0)\\% processor time",
        "processor time",
        "line 7: \"processor time\" is not the path of a counter",
    );
    let read = read(&LONG[..LONG.len() - 10]);
    assert!(read.notes("its last line was truncated and is left out"), "{:?}", read.summary.notes);
    let backwards = LONG.replace("8:00:40", "8:00:38");
    assert!(self::read(&backwards).notes("not in order of time"));
}

#[test]
fn readings_as_printed_and_exported() {
    let printed = r"
Timestamp                 CounterSamples
---------                 --------------
1/7/2020 8:00:39 PM       \\db1\physicaldisk(0 c:)\disk reads/sec :
                          78.5

                          \\db1\physicaldisk(0 c:)\avg. disk
                          sec/read :
                          0.001

1/7/2020 8:00:40 PM       \\db1\physicaldisk(0 c:)\disk reads/sec :
                          2

";
    let before = "\"Timestamp\",\"Readings\"\n\
        \"1/7/2020 8:00:39 PM\",\"\\\\db1\\physicaldisk(0 c:)\\disk reads/sec :\n78.5\n\n\
        \\\\db1\\physicaldisk(0 c:)\\avg. disk sec/read :\n0.001\n\n\"\n\
        \"1/7/2020 8:00:40 PM\",\"\\\\db1\\physicaldisk(0 c:)\\disk reads/sec :\n2\n\n\"\n";
    let behind = "#TYPE Microsoft.PowerShell.Commands.GetCounter.PerformanceCounterSampleSet\n\
        \"Readings\",\"Timestamp\",\"CounterSamples\"\n\
        \"\\\\db1\\physicaldisk(0 c:)\\disk reads/sec :\n78.5\n\n\
        \\\\db1\\physicaldisk(0 c:)\\avg. disk sec/read :\n0.001\n\n\",\
        \"1/7/2020 8:00:39 PM\",\"Microsoft.PowerShell.Commands.PerformanceCounterSample[]\"\n\
        \"\\\\db1\\physicaldisk(0 c:)\\disk reads/sec :\n2\n\n\",\"1/7/2020 8:00:40 PM\",\"x[]\"\n";
    for text in [printed, before, behind] {
        let read = read(text);
        assert_eq!(
            (read.kind(), read.seconds()),
            ("get-counter-readings", vec![0.0, 1.0]),
            "{text}"
        );
        assert_eq!(read.start().as_deref(), Some("2020-01-07T20:00:39Z"));
        assert_eq!(read.all("0 c:", "reads_per_s"), [78.5, 2.0], "{text}");
        assert_eq!(read.values("0 c:", "read_latency_ns"), [Some(1e6), None], "{text}");
    }
    assert_eq!(refused(&printed.replace("78.5", "many")), "line 5: \"many\" is not a number");
    assert_eq!(
        refused(&printed.replacen("disk reads/sec :", "disk reads/sec", 1)),
        "line 4: the path of a counter with a colon was expected, not \
         \"\\\\\\\\db1\\\\physicaldisk(0 c:)\\\\disk reads/sec\""
    );
}

#[test]
fn samples_have_the_published_figures() {
    let Some(plain) = sample("perfmon/typeperf_block2.csv") else { return };
    assert_eq!((plain.kind(), plain.summary.entities), ("perfmon", 2));
    assert_eq!(plain.start().as_deref(), Some("2020-12-29T18:34:28.308Z"));
    let operations: Vec<_> = plain
        .all("0 C:", "reads_per_s")
        .iter()
        .zip(plain.all("0 C:", "writes_per_s"))
        .map(|(reads, writes)| ((reads + writes) * 10.0).round() / 10.0)
        .collect();
    let least = operations.iter().copied().fold(f64::MAX, f64::min);
    let most = operations.iter().copied().fold(0.0, f64::max);
    assert_eq!((least, most), (11.7, 21.9));
    for name in ["decimal_comma.csv", "tab.tsv", "utf16le_bom_crlf.csv", "utf8_bom.csv"] {
        let Some(read) = sample(&format!("derived_variants/perfmon_{name}")) else { return };
        assert_eq!(read.observation.columns, plain.observation.columns, "{name}");
        assert_eq!(read.observation.times, plain.observation.times, "{name}");
    }
    let Some(cut) = sample("derived_variants/perfmon_truncated_last_line.csv") else { return };
    assert_eq!(cut.summary.samples + 1, plain.summary.samples);
    assert!(cut.notes("its last line was truncated and is left out"), "{:?}", cut.summary.notes);
    let Some(zone) = sample("derived_variants/perfmon_tz_header_blank_first_sample.csv") else {
        return;
    };
    assert_eq!(zone.start().as_deref(), Some("2020-12-29T17:34:28.308Z"));
    assert_eq!(zone.values("0 C:", "reads_per_s")[0], None);
}

#[test]
fn a_disk_at_its_limit() {
    let Some(read) = sample("perfmon/aws_ec2_sqlserver_hammerdb_getcounter_long.csv") else {
        return;
    };
    assert_eq!((read.kind(), read.summary.samples), ("get-counter", 84));
    assert_eq!(read.start().as_deref(), Some("2020-01-07T20:00:39Z"));
    let (reads, writes) = (read.all("2 e:", "reads_per_s"), read.all("2 e:", "writes_per_s"));
    let latency = read.values("2 e:", "latency_ns");
    assert_eq!(latency.iter().flatten().count(), 50, "the rest of the time it was idle");
    let pinned = reads.iter().zip(&writes).zip(&latency);
    let mut pinned: Vec<_> = pinned
        .filter(|((reads, writes), _)| (2935.0..3065.0).contains(&(*reads + *writes)))
        .filter_map(|(_, latency)| *latency)
        .collect();
    pinned.sort_by(f64::total_cmp);
    assert_eq!(pinned.len(), 39);
    assert_eq!((pinned[19] / 1e6).round(), 602.0);
    assert_eq!(pinned.last().map(|most| (most / 1e6).round()), Some(3332.0));
    assert_eq!(rounded(read.values("ec2amaz-2k3pvvl", "cpu"))[0], Some(0.022929));
}

#[test]
fn truncated_text_never_panics() {
    let kinds = ["perfmon", "get-counter", "get-counter-readings", "azure-monitor", "cloudwatch"];
    let strange = WIDE.replace('\\', "é").replace("12/29/2020 ", "2020年1月2日 ");
    let quotes = LONG.replace(',', "\"\"");
    for text in [WIDE, LONG, strange.as_str(), quotes.as_str()] {
        let cuts = text.char_indices().map(|(at, _)| at).step_by(7);
        for cut in cuts {
            for kind in kinds {
                for part in [&text[..cut], &text[cut..]] {
                    let result =
                        try_read(vec![input("part", part, Some(kind))], &Options::default());
                    if let Err(error) = result {
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        }
    }
}
