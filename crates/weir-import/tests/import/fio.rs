//! Results and logs of fio.

use crate::bed::{input, read, refused, survives, try_read};
use crate::samples::{sample, try_sample};
use weir_import::Options;
use weir_observe::Attribute;

const NEW: &str = r#"fio: a warning before it
{
  "fio version" : "fio-3.28",
  "timestamp" : 1600000000,
  "timestamp_ms" : 1600000000500,
  "global options" : { "iodepth" : "32" },
  "jobs" : [
    {
      "jobname" : "db {1}",
      "error" : 0,
      "job options" : { "rw" : "randrw", "rwmixread" : "70", "bs" : "8k", "size" : "1g" },
      "read" : {
        "io_bytes" : 8192000, "io_kbytes" : 8000, "bw_bytes" : 819200, "bw" : 800, "iops" : 100.5,
        "total_ios" : 1000,
        "slat_ns" : { "min" : 1, "max" : 2, "mean" : 1000.0 },
        "clat_ns" : { "mean" : 2000.4, "percentile" : { "50.000000" : 1900, "99.900000" : 9000 },
                      "bins" : { "1900" : 3 } },
        "lat_ns" : { "min" : 700, "max" : 9100, "mean" : 3000.4, "stddev" : 12.0 }
      },
      "write" : { "io_bytes" : 0, "io_kbytes" : 0, "bw_bytes" : 0, "iops" : 0.0, "total_ios" : 0,
                  "lat_ns" : { "min" : 0, "max" : 0, "mean" : 0.0 } },
      "trim" : { "io_bytes" : 0, "io_kbytes" : 0, "bw_bytes" : 0, "iops" : 0.0, "total_ios" : 0 },
      "sync" : { "total_ios" : 4, "lat_ns" : { "mean" : 500.0 } },
      "usr_cpu" : 1.5, "sys_cpu" : 3.0
    },
    { "jobname" : "db {1}", "error" : 5, "read" : { "iops" : 7.0, "total_ios" : 70 } }
  ],
  "disk_util" : [
    { "name" : "sda", "read_ios" : 500, "write_ios" : 0, "read_ticks" : 1000, "write_ticks" : 0,
      "read_sectors" : 16, "in_queue" : 1200, "util" : 92.5 }
  ]
}
"#;

#[test]
fn json_of_fio_3() {
    let read = read(NEW);
    assert_eq!((read.kind(), read.summary.samples), ("fio", 1));
    assert_eq!(read.start().as_deref(), Some("2020-09-13T12:26:40.5Z"));
    for (metric, value) in [
        ("reads_per_s", 100.5),
        ("read_bytes_per_s", 819_200.0),
        ("reads", 1000.0),
        ("read_bytes", 8_192_000.0),
        ("read_latency_ns", 3000.0),
        ("read_submission_latency_ns", 1000.0),
        ("read_completion_latency_ns", 2000.0),
        ("read_latency_p50_ns", 1900.0),
        ("read_latency_p99_9_ns", 9000.0),
        ("read_latency_max_ns", 9100.0),
        ("writes_per_s", 0.0),
        ("flushes", 4.0),
        ("flush_latency_ns", 500.0),
        ("cpu_system", 0.03),
    ] {
        assert_eq!(read.all("db {1}", metric), [value], "{metric}");
    }
    let contents = read.observation.contents();
    assert_eq!(contents.find(read.entity("db {1}"), "write_latency_ns"), None, "of no writes");
    assert_eq!(contents.find(read.entity("db {1}"), "discards_per_s"), None);
    for (name, value) in [
        ("block_bytes", Attribute::Number(8192)),
        ("size_bytes", Attribute::Number(1 << 30)),
        ("outstanding", Attribute::Number(32)),
        ("read_percent", Attribute::Number(70)),
        ("random_percent", Attribute::Number(100)),
    ] {
        assert_eq!(read.attribute("db {1}", name), Some(value), "{name}");
    }
    assert_eq!(read.all("db {1} #2", "reads_per_s"), [7.0]);
    assert_eq!(read.all("sda", "busy"), [0.925]);
    assert_eq!(read.all("sda", "read_latency_ns"), [2e6]);
    assert_eq!(read.all("sda", "read_bytes"), [8192.0]);
    for note in ["db {1} #2 ended with error 5", "(clat)", "bins of latencies"] {
        assert!(read.notes(note), "{note}: {:?}", read.summary.notes);
    }
}

/// Builds a result of fio: a job with options and 64 reads in flight for a minute, and another row.
fn result(options: &str, other: &str) -> String {
    format!(
        r#"{{"fio version":"fio-3.28","timestamp_ms":1600000060000,
        "global options":{{"ioengine":"libaio","iodepth":"16"}},
        "jobs":[{{"jobname":"a","job options":{{{options}}},"job_runtime":240000,
        "read":{{"io_bytes":2457600000,"io_kbytes":2400000,"bw_bytes":40960000,"iops":5000.0,
        "total_ios":300000,"runtime":60000,"lat_ns":{{"mean":12800000.0}}}}}}{other}]}}"#
    )
}

#[test]
fn a_job_has_its_runtime_and_queue_depth() {
    let grouped = read(&result(r#""numjobs":"4","group_reporting":"""#, ""));
    assert_eq!(grouped.attribute("a", "target_queue_depth"), Some(Attribute::Number(64)));
    // The run time of four jobs that were put together is a sum; that of their reads is not.
    assert_eq!(grouped.all("a", "interval_ns"), [60e9]);
    assert_eq!(grouped.first_interval(), 60.0);
    let depth = |options: &str, other: &str| {
        let read = read(&result(options, other));
        read.attribute("a", "target_queue_depth")
    };
    let clone = r#",{"jobname":"a","read":{"iops":7.0,"total_ios":70}}"#;
    assert_eq!(depth(r#""numjobs":"2""#, clone), Some(Attribute::Number(16)));
    assert_eq!(depth(r#""ioengine":"psync""#, ""), Some(Attribute::Number(1)));
    // A job that is limited by its own options has no full queue.
    assert_eq!(depth(r#""rate_iops":"100""#, ""), None);
}

#[test]
fn json_of_fio_2_has_microseconds_and_kib() {
    let text = r#"{"fio version":"fio-2.2.10","timestamp":1600000000,"jobs":[{"jobname":"a",
        "write":{"io_bytes":1024,"bw":512,"iops":128.0,"total_ios":256,
        "slat":{"mean":2.5},"clat":{"mean":10.0,"percentile":{"99.000000":20,"0.00":0}},
        "lat":{"min":5,"max":30,"mean":12.5}}}]}"#;
    let read = read(text);
    assert_eq!(read.all("a", "write_bytes"), [1_048_576.0]);
    assert_eq!(read.all("a", "write_bytes_per_s"), [524_288.0]);
    assert_eq!(read.all("a", "write_latency_ns"), [12_500.0]);
    assert_eq!(read.all("a", "write_submission_latency_ns"), [2500.0]);
    assert_eq!(read.all("a", "write_latency_p99_ns"), [20_000.0]);
}

#[test]
fn several_reports_are_several_samples_without_a_truncated_one() {
    let later = NEW
        .replace("1600000000500", "1600000010500")
        .replace("\"iops\" : 100.5", "\"iops\" : 90.0");
    let both = format!("{NEW}{later}");
    let read = read(&both[..both.len() - 20]);
    assert_eq!(read.all("db {1}", "reads_per_s"), [100.5]);
    assert!(
        read.notes(
            "its last report is left out: line 62: the JSON that begins in line 34 is truncated \
             here"
        ),
        "{:?}",
        read.summary.notes
    );
    let read = crate::bed::read(&both);
    assert_eq!(read.seconds(), [0.0, 10.0]);
    assert_eq!(read.all("db {1}", "reads_per_s"), [100.5, 90.0]);
    assert!(read.notes("covers the time since the start"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_input_is_rejected_with_its_line() {
    assert_eq!(
        refused(&NEW[..NEW.len() - 20]),
        "line 30: the JSON that begins in line 2 is truncated here, within 3 brackets"
    );
    assert_eq!(
        refused(&NEW.replace("\"bw\" : 800", "\"bw\" : 8k0")),
        "line 13: the JSON is wrong at column 80: expected `,` or `}`"
    );
    assert_eq!(
        refused("{\"fio version\": \"fio-3.1\"}\n"),
        "line 1: a JSON document without \"jobs\" and without \"client_stats\""
    );
    assert_eq!(
        refused("seq: (g=0): rw=read, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.28\n"),
        "there is no JSON in this output of fio; run fio with --output-format=json"
    );
    assert_eq!(
        refused("3;fio-3.7;job;0;0;1;2;3\n"),
        "it is the terse output of fio, which is not read: its fields have no names; run fio \
         with --output-format=json"
    );
}

#[test]
fn job_files_are_rejected_by_name() {
    let told = "it is a job file of fio, which is not read: it describes jobs and has no results; \
                run it with `weir sim`";
    assert_eq!(refused("[global]\nbs=4k\n[a]\nrw=read\n"), told);
    for path in ["fio_1mbs_clients.fio", "fio_zipf.fio", "kochaika_write.ini", "fio_flow.fio"] {
        let Some(result) = try_sample(&format!("fio_jobs/{path}")) else { return };
        assert_eq!(result.expect_err(path).to_string(), told, "{path}");
    }
    let Some(result) = try_sample("fio_jobs/vc_expectedoltp-c.fio1.jobfile") else { return };
    assert_eq!(result.expect_err("it is refused").to_string(), told);
}

#[test]
fn genuine_results() {
    let Some(read) = sample("fio_json/pbench_fio-0_fio-result.txt") else { return };
    let jobs = read.observation.contents().entities.iter().filter(|e| e.kind.name() == "job");
    assert_eq!(jobs.count(), 10);
    let series = read.observation.contents().series.iter().zip(&read.observation.columns);
    let rates = series.filter(|(series, _)| series.metric == "reads_per_s");
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let sum: f64 =
        rates.filter_map(|(_, column)| column.get(read.lead())).map(|v| v as f64 / 1e3).sum();
    // The totals of all clients refer to the longest runtime, 93,198 ms.
    assert!((93_198.0..93_400.0).contains(&sum), "{sum}");
    assert!(read.notes("All clients"), "{:?}", read.summary.notes);

    let Some(read) = sample("fio_json/vc_Results_FIO_ReadWrite.json") else { return };
    assert_eq!(read.all("disk_fill", "reads_per_s"), [569.699]);
    assert_eq!(read.all("disk_fill", "write_bytes_per_s"), [67_267_937.0]);
    assert_eq!(read.all("disk_fill", "write_latency_p99_ns"), [151_864_912.0]);
    assert_eq!(read.all("sdd", "busy"), [0.922]);

    let name = "fio_randrw_1GB_4k_d1_th1_direct";
    let (Some(plain), Some(wide)) =
        (sample("fio_json/vc_Results_FIO.json"), sample("derived_variants/fio_utf16le_bom.json"))
    else {
        return;
    };
    assert_eq!(plain.all(name, "reads_per_s"), [2160.562]);
    assert_eq!(plain.all(name, "write_latency_ns"), [459_323.0]);
    assert_eq!(plain.observation.columns, wide.observation.columns);
    let Some(result) = try_sample("derived_variants/fio_truncated.json") else { return };
    let message = result.expect_err("it is cut").to_string();
    assert!(message.ends_with("is truncated here, within 5 brackets"), "{message}");
}

fn log(name: &str, text: &str, kind: Option<&str>) -> crate::bed::Read {
    try_read(vec![input(name, text, kind)], &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn logs_by_the_names_of_their_files() {
    let text = "1000, 2048, 0, 0\n1000, 7, 1, 0, 0\n2001, 1024, 0, 0\n";
    for (name, kind, job, metric, values) in [
        ("x_bw.1.log", None, "x.1", "read_bytes_per_s", [2_097_152.0, 1_048_576.0]),
        ("x_iops.2.log", None, "x.2", "reads_per_s", [2048.0, 1024.0]),
        ("x_lat.log", None, "x", "read_latency_ns", [2048.0, 1024.0]),
        ("x_clat.log", None, "x", "read_completion_latency_ns", [2048.0, 1024.0]),
        ("y", Some("fio-bw-log"), "fio", "read_bytes_per_s", [2_097_152.0, 1_048_576.0]),
        ("y", Some("fio-iops-log"), "fio", "reads_per_s", [2048.0, 1024.0]),
    ] {
        let read = log(name, text, kind);
        assert_eq!(read.all(job, metric), values, "{name}");
        assert_eq!(read.seconds(), [1.0, 2.001]);
    }
    let read = log("x_iops.2.log", text, None);
    assert_eq!(read.values("x.2", "writes_per_s"), [Some(7.0), None]);
    let read = log("y", text, None);
    assert_eq!(
        (read.kind(), read.all("fio", "read_latency_ns")),
        ("fio-log", vec![2048.0, 1024.0])
    );
    assert!(read.notes("latencies in nanoseconds are assumed"), "{:?}", read.summary.notes);
}

#[test]
fn logs_of_single_requests_are_summed() {
    let text = "1, 100, 0, 4096, 0\n1, 300, 0, 4096, 0\n999, 50, 1, 8192, 0\n1000, 10, 0, 4096, 0\n2500, 9, 0, 4096";
    let read = log("x_lat.1.log", text, None);
    assert_eq!(read.seconds(), [1.0, 2.0]);
    assert_eq!(read.all("x.1", "read_latency_ns"), [200.0, 10.0]);
    assert_eq!(read.all("x.1", "reads_per_s"), [2.0, 1.0]);
    assert_eq!(read.values("x.1", "write_bytes_per_s"), [Some(8192.0), None]);
    assert!(read.notes("may be truncated"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_lines_of_logs() {
    let check = |line: &str, expect: &str| {
        let text = format!("1, 2, 0, 0\n{line}\n");
        let result = try_read(vec![input("a_lat.log", text, Some("fio-log"))], &Options::default());
        assert_eq!(result.expect_err("it is wrong").to_string(), expect);
    };
    check("2, x, 0, 0", "line 2: value \"x\" is not a whole number");
    check("2, 3", "line 2: there is no direction");
    check("2, 3, 7, 0", "line 2: direction 7 is none of 0, 1 and 2");
}

#[test]
fn a_genuine_log() {
    let Some(read) = sample("fio_json/pbench_fio-0_fio_slat.1.log") else { return };
    assert_eq!(read.kind(), "fio-log");
    let values = read.all("pbench_fio-0_fio.1", "read_submission_latency_ns");
    assert_eq!((values.len(), values[0], values[14]), (15, 12_609.0, 40_071.0));
}

#[test]
fn malformed_and_truncated_input() {
    survives(&NEW[..1100], "fio");
    survives("1000, 2048, 0, 0\n1000, 7, 1, 4096, 0\n", "fio-log");
}
