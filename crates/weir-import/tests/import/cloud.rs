//! Metrics of clouds.

use crate::bed::{read, refused};
use crate::samples::{sample, try_sample};
use crate::windows::rounded;
use weir_observe::EntityKind;

/// A metric of Azure Monitor, as JSON.
fn azure(name: &str, dimensions: &str, data: &str) -> String {
    format!(
        r#"{{"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm1/providers/Microsoft.Insights/metrics/{name}",
             "type": "Microsoft.Insights/metrics", "unit": "Unspecified",
             "name": {{"value": "{name}", "localizedValue": "whatever"}},
             "timeseries": [{{"metadatavalues": [{dimensions}], "data": [{data}]}}]}}"#
    )
}

fn response(metrics: &[String]) -> String {
    format!(
        r#"{{"cost": 0, "interval": "PT1M", "namespace": "Microsoft.Compute/virtualMachines",
             "resourceregion": "westeurope", "timespan": "a/b", "value": [{}]}}"#,
        metrics.join(",")
    )
}

const LUN: &str = r#"{"name": {"value": "LUN", "localizedValue": "LUN"}, "value": "3"}"#;

#[test]
fn disks_of_a_machine_in_azure() {
    let text = response(&[
        azure(
            "Data Disk IOPS Consumed Percentage",
            LUN,
            r#"{"timeStamp": "2024-05-01T10:00:00Z", "average": 45.5, "maximum": 100.0},
               {"timeStamp": "2024-05-01T10:01:00Z", "average": null}"#,
        ),
        azure(
            "OS Disk Read Bytes/sec",
            "",
            r#"{"timeStamp": "2024-05-01T10:00:00Z", "average": 4096.5},
               {"timeStamp": "2024-05-01T10:01:00Z", "average": 8192}"#,
        ),
        azure("Disk Read Bytes", "", r#"{"timeStamp": "2024-05-01T10:01:00Z", "total": 600}"#),
        azure(
            "Data Disk Target IOPS",
            LUN,
            r#"{"timeStamp": "2024-05-01T10:01:00Z", "average": 500}"#,
        ),
        azure(
            "Data Disk Used Burst IO Credits Percentage",
            LUN,
            r#"{"timeStamp": "2024-05-01T10:01:00Z", "average": 25}"#,
        ),
        azure("Network In", "", r#"{"timeStamp": "2024-05-01T10:01:00Z", "total": 600}"#),
    ]);
    let read = read(&text);
    assert_eq!(read.kind(), "azure-monitor");
    // The value of the period from 10:00 is known at 10:01.
    assert_eq!(read.start().as_deref(), Some("2024-05-01T10:01:00Z"));
    assert_eq!(read.seconds(), [0.0, 60.0]);
    assert_eq!(rounded(read.values("LUN 3", "iops_share")), [Some(0.455), None]);
    assert_eq!(rounded(read.values("LUN 3", "iops_share_max")), [Some(1.0), None]);
    assert_eq!(rounded(read.values("LUN 3", "iops_limit")), [None, Some(500.0)]);
    assert_eq!(rounded(read.values("LUN 3", "burst_balance")), [None, Some(0.75)]);
    assert_eq!(read.all("OS disk", "read_bytes_per_s"), [4097.0, 8192.0]);
    assert_eq!(rounded(read.values("vm1", "read_bytes_per_s")), [None, Some(10.0)]);
    assert!(read.notes("not used: Network In"), "{:?}", read.summary.notes);
}

#[test]
fn a_managed_instance_and_databases_in_azure() {
    let of = |name: &str, data: &str| {
        azure(name, "", data)
            .replace("Microsoft.Compute/virtualMachines/vm1", "Microsoft.Sql/managedInstances/mi1")
    };
    let at = r#""timeStamp": "2024-05-01T10:00:00Z""#;
    let text = response(&[
        of("io_bytes_read", &format!(r#"{{{at}, "average": 1500}}"#)),
        of("io_bytes_written", &format!(r#"{{{at}, "total": 600}}"#)),
        of("avg_cpu_percent", &format!(r#"{{{at}, "maximum": 50}}"#)),
        of("log_write_percent", &format!(r#"{{{at}, "average": 12.5}}"#))
            .replace("mi1", "mi1/databases/db"),
    ]);
    let read = read(&text);
    assert_eq!(read.all("mi1", "read_bytes_per_s"), [100.0]);
    assert_eq!(read.all("mi1", "write_bytes_per_s"), [10.0]);
    assert_eq!(read.all("mi1", "cpu"), [0.5]);
    assert_eq!(read.all("db", "log_write_share"), [0.125]);
    assert!(read.notes("\"io_bytes_read\" is read as an average over 15 s"));
    assert!(read.notes("\"avg_cpu_percent\" has no averages"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_metrics_of_azure() {
    let wrong = azure("Percentage CPU", "", r#"{"timeStamp": "soon", "average": 1}"#);
    assert_eq!(
        refused(&response(&[wrong])),
        "\"Percentage CPU\" has a value without a time: \"\\\"soon\\\"\""
    );
    let foreign = azure("Network In", "", r#"{"timeStamp": "2024-05-01T10:00:00Z", "average": 1}"#);
    assert_eq!(refused(&response(&[foreign])), "none of its metrics is used: Network In");
    let cut = azure("Percentage CPU", "", "");
    let error = refused(&cut[..cut.len() - 10]);
    assert!(error.starts_with("line 4: incomplete JSON document: EOF"), "{error}");
    let blank = azure("Percentage CPU", "", r#"{"timeStamp": "2024-05-01T10:00:00Z"}"#);
    assert_eq!(
        refused(&response(&[blank])),
        "it has no samples: its time series have times, but no values"
    );
}

#[test]
fn volumes_of_aws_by_query_and_answer() {
    let text = r#"{"MetricDataQueries": [
        {"Id": "m1", "MetricStat": {"Metric": {"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps",
          "Dimensions": [{"Name": "VolumeId", "Value": "vol-1"}]}, "Period": 300, "Stat": "Sum"}}],
      "MetricDataResults": [
        {"Id": "m1", "Label": "anything", "StatusCode": "Complete",
         "Timestamps": ["2024-05-01T10:05:00+00:00", "2024-05-01T10:00:00+00:00"], "Values": [600.0, 300.0]},
        {"Id": "m2", "Label": "vol-1 VolumeTotalReadTime",
         "Timestamps": ["2024-05-01T10:05:00+00:00"], "Values": [1.5]},
        {"Id": "m3", "Label": "vol-2 BurstBalance",
         "Timestamps": ["2024-05-01T10:05:00+00:00"], "Values": [99.5]},
        {"Id": "m4", "Label": "vol-2 VolumeIdleTime",
         "Timestamps": ["2024-05-01T10:05:00+00:00"], "Values": [270]},
        {"Id": "m5", "Label": "VolumeStalledIOCheck", "Timestamps": [], "Values": []}],
      "Messages": []}"#;
    let read = read(text);
    assert_eq!((read.kind(), read.seconds()), ("cloudwatch", vec![0.0, 300.0]));
    assert_eq!(read.start().as_deref(), Some("2024-05-01T10:05:00Z"));
    assert_eq!(read.all("vol-1", "reads_per_s"), [1.0, 2.0]);
    assert_eq!(rounded(read.values("vol-1", "read_latency_ns")), [None, Some(2.5e6)]);
    assert_eq!(rounded(read.values("vol-2", "burst_balance")), [None, Some(0.995)]);
    assert_eq!(rounded(read.values("vol-2", "busy")), [None, Some(0.1)]);
    assert!(read.notes("counts are assumed to be sums"), "{:?}", read.summary.notes);
    assert!(read.notes("VolumeStalledIOCheck"), "{:?}", read.summary.notes);
}

#[test]
fn statistics_of_aws() {
    let text = r#"{"Label": "VolumeWriteBytes", "Datapoints": [
        {"Timestamp": "2024-05-01T10:01:00Z", "Average": 100.0, "SampleCount": 6.0, "Unit": "Bytes"},
        {"Timestamp": "2024-05-01T10:00:00Z", "Sum": 6000.0, "Unit": "Bytes"}]}"#;
    let read = read(text);
    assert_eq!(read.all("volume", "write_bytes_per_s"), [100.0, 10.0]);
    let text = text.replace("VolumeWriteBytes", "ReadLatency").replace("100.0", "0.002");
    let read = self::read(&text);
    assert_eq!(read.all("storage", "read_latency_ns"), [2e6]);
}

#[test]
fn answers_without_a_resource_stay_separate() {
    let one = |id: &str, value: u32| {
        format!(
            r#"{{"Id": "{id}", "Label": "VolumeQueueLength", "Timestamps": [1714557600], "Values": [{value}]}}"#
        )
    };
    let read = read(&format!(r#"{{"MetricDataResults": [{}, {}]}}"#, one("q1", 1), one("q2", 2)));
    assert_eq!(read.all("volume", "queue_depth"), [1.0]);
    assert_eq!(read.all("q2", "queue_depth"), [2.0]);
    assert!(read.notes("its period is not stated: one minute assumed"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_metrics_of_aws() {
    let check = |label: &str, points: &str, expect: &str| {
        assert_eq!(
            refused(&format!(r#"{{"Label": "{label}", "Datapoints": [{points}]}}"#)),
            expect
        );
    };
    check("VolumeReadOps", "", "it has no samples: there are no values of VolumeReadOps");
    check("Latency", "", "none of its metrics is used: Latency");
    check(
        "VolumeReadOps",
        r#"{"Timestamp": "soon", "Sum": 1}"#,
        "\"VolumeReadOps\" has \"soon\" in place of a time",
    );
    check(
        "VolumeReadOps",
        r#"{"Timestamp": 1714557600, "Average": 1}"#,
        "it has no samples: counts need their sums, and latencies their operations",
    );
    assert_eq!(
        refused(r#"{"MetricDataResults": []}"#),
        "metrics with their values were expected; there are none"
    );
}

#[test]
fn samples_are_read_or_rejected_by_name() {
    let Some(read) = sample("azure_monitor/c7n_SqlServerTest.test_metric_database.json") else {
        return;
    };
    assert_eq!((read.kind(), read.summary.samples, read.summary.series), ("azure-monitor", 3, 2));
    assert_eq!(read.all("MASTER", "dtu_share"), [0.0; 3]);
    assert_eq!(read.start().as_deref(), Some("2019-04-30T23:59:00Z"));
    assert_eq!(read.seconds(), [0.0, 86_400.0, 172_800.0]);
    let database = &read.observation.contents().entities[read.entity("CCTESTDB").0 as usize];
    assert_eq!(database.kind, EntityKind::Database);
    assert_eq!(database.parent, Some(read.entity("cctestsqlserverj6y6cbbtaphs4")));
    let check = |path: &str, expect: &str| {
        let Some(read) = try_sample(path) else { return };
        assert_eq!(read.expect_err("it is refused").to_string(), expect);
    };
    check(
        "azure_monitor/azps_metrics_empty_timeseries.json",
        "it has no samples: the time series of \"Data Disk Max Burst IOPS\" are empty",
    );
    check(
        "aws_cloudwatch/c7n_ebs_DescribeVolumes.json",
        "it is the answer of describe-volumes of AWS, which is not read: it lists volumes, but not \
         their activity",
    );
}

#[test]
fn values_after_a_gap_cover_only_their_interval() {
    let text = response(&[
        azure(
            "Data Disk Read Operations/Sec",
            LUN,
            r#"{"timeStamp": "2024-05-01T10:00:00Z", "average": 500},
               {"timeStamp": "2024-05-01T10:01:00Z", "average": null},
               {"timeStamp": "2024-05-01T10:30:00Z", "average": 20},
               {"timeStamp": "2024-05-01T10:31:00Z", "average": 30}"#,
        ),
        azure(
            "OS Disk Read Operations/Sec",
            "",
            r#"{"timeStamp": "2024-05-01T10:31:00Z", "average": 7}"#,
        ),
    ]);
    let read = read(&text);
    let minute = Some(60e9);
    assert_eq!(read.values("LUN 3", "interval_ns"), [None, minute, None]);
    assert_eq!(read.values("OS disk", "interval_ns"), [None, None, minute]);
}

/// Builds a record of a metric stream: minutes after 2021-01-29T14:00:00Z, count and sum.
fn streamed(metric: &str, owner: &str, minute: i64, (count, sum): (u32, f64)) -> String {
    let (space, key) = match owner.get(..2) {
        Some("vo") => ("AWS/EBS", "VolumeId"),
        Some("i-") => ("AWS/EC2", "InstanceId"),
        _ => ("AWS/RDS", "DBInstanceIdentifier"),
    };
    let ms = 1_611_928_800_000 + minute * 60_000;
    format!(
        r#"{{"metric_stream_name":"MyMetricStream","account_id":"1234567890","region":"us-east-1","namespace":"{space}","metric_name":"{metric}","dimensions":{{"{key}":"{owner}"}},"timestamp":{ms},"value":{{"count":{count}.0,"sum":{sum},"max":{sum},"min":0.0}},"unit":"None"}}"#
    )
}

/// Returns records of a volume, an instance and a database over two periods, in no order.
fn stream() -> Vec<String> {
    vec![
        streamed("VolumeReadOps", "vol-1", 1, (1, 600.0)),
        streamed("VolumeReadOps", "vol-1", 0, (1, 300.0)),
        streamed("VolumeTotalReadTime", "vol-1", 0, (1, 1.5)),
        streamed("VolumeIdleTime", "vol-1", 0, (1, 45.0)),
        streamed("VolumeQueueLength", "vol-1", 0, (4, 10.0)),
        streamed("EBSWriteBytes", "i-1", 0, (5, 30_000.0)),
        streamed("EBSWriteBytes", "i-1", 5, (5, 60_000.0)),
        streamed("WriteLatency", "db-1", 0, (2, 0.008)),
        streamed("WriteLatency", "db-1", 1, (2, 0.004)),
    ]
}

#[test]
fn a_metric_stream_of_aws() {
    let lines = stream().join("\n") + "\n";
    let read = read(&lines);
    assert_eq!(read.kind(), "cloudwatch-stream");
    // The value of the period from 14:00 is known at 14:01, or at 14:05 for a period of five minutes.
    assert_eq!(read.start().as_deref(), Some("2021-01-29T14:01:00Z"));
    assert_eq!(read.seconds(), [0.0, 60.0, 240.0, 540.0]);
    let none = None;
    assert_eq!(rounded(read.values("vol-1", "reads_per_s")), [Some(5.0), Some(10.0), none, none]);
    assert_eq!(rounded(read.values("vol-1", "read_latency_ns")), [Some(5e6), none, none, none]);
    assert_eq!(rounded(read.values("vol-1", "busy")), [Some(0.25), none, none, none]);
    assert_eq!(rounded(read.values("vol-1", "queue_depth")), [Some(2.5), none, none, none]);
    let bytes = [none, none, Some(100.0), Some(200.0)];
    assert_eq!(rounded(read.values("i-1", "write_bytes_per_s")), bytes);
    let latency = [Some(4e6), Some(2e6), none, none];
    assert_eq!(rounded(read.values("storage", "write_latency_ns")), latency);
    assert_eq!(read.attribute("vol-1", "region"), Some("us-east-1".into()));
    // Other metrics of the volume tell the period of one with a single value.
    assert!(!read.notes("assumed"), "{:?}", read.summary.notes);
    let single = self::read(&stream()[0]);
    assert!(single.notes("one minute assumed"), "{:?}", single.summary.notes);
    let joined = self::read(&stream().concat());
    assert_eq!(read.observation.columns, joined.observation.columns);
}

#[test]
fn a_metric_stream_of_aws_in_base64() {
    use base64::Engine;
    let code = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let (one, other) = (stream()[..4].join("\n") + "\n", stream()[4..].concat());
    let plain = read(&(one.clone() + &other));
    for (before, after) in [
        (r#"{"requestId": "r", "timestamp": 1, "records": [{"data": ""#, r#""}]}"#),
        (r#"{"records": [{"recordId": "1", "data": ""#, r#""}], "invocationId": "i"}"#),
        (r#"{"Records": [{"kinesis": {"partitionKey": "k", "data": ""#, r#""}}]}"#),
        (r#"{"data": ""#, r#""}"#),
    ] {
        let text = [&one, &other].map(|part| format!("{before}{}{after}", code(part))).join("\n");
        let read = read(&text);
        assert_eq!(read.kind(), "cloudwatch-stream", "{before}");
        assert_eq!(read.observation.columns, plain.observation.columns, "{before}");
    }
}

#[test]
fn a_metric_stream_counts_each_period_once() {
    let sum = streamed("VolumeReadOps", "vol-1", 0, (1, 60.0)).replace("VolumeId", "ImageId");
    let text = [
        streamed("VolumeReadOps", "vol-1", 0, (2, 600.0)),
        streamed("VolumeReadOps", "vol-1", 0, (1, 300.0)),
        streamed("VolumeReadOps", "vol-1", 1, (1, 300.0)),
        streamed("VolumeReadOps", "vol-1", 1, (2, 1200.0)),
        sum,
        streamed("NetworkIn", "i-1", 1, (2, 1200.0)),
    ];
    let read = read(&text.join("\n"));
    assert_eq!(read.all("vol-1", "reads_per_s"), [10.0, 20.0]);
    for unused in ["AWS/EBS VolumeReadOps by ImageId", "AWS/EC2 NetworkIn by InstanceId"] {
        assert!(read.notes(unused), "{:?}", read.summary.notes);
    }
}

#[test]
fn each_metric_of_an_instance_has_its_own_period() {
    let reads = |minutes: &[i64]| -> Vec<String> {
        minutes.iter().map(|at| streamed("EBSReadOps", "i-1", *at, (1, 600.0))).collect()
    };
    let writes = |minutes: &[i64]| -> Vec<String> {
        minutes.iter().map(|at| streamed("EBSWriteOps", "i-1", *at, (1, 3_000.0))).collect()
    };
    // Reads each minute, writes every five.
    let all = [reads(&(0..15).collect::<Vec<_>>()), writes(&[0, 5, 10])].concat();
    let read = self::read(&all.join("\n"));
    assert_eq!(read.values("i-1", "reads_per_s")[0], Some(10.0));
    assert_eq!(read.values("i-1", "writes_per_s")[4], Some(10.0));
    // Every five minutes, or each minute with gaps.
    let all = [reads(&[0, 1, 2]), writes(&[0, 5])].concat();
    let unknown = self::read(&all.join("\n"));
    let contents = unknown.observation.contents();
    assert_eq!(contents.find(unknown.entity("i-1"), "writes_per_s"), None);
    assert!(unknown.notes("its period is unknown"), "{:?}", unknown.summary.notes);
    // An answer of get-metric-data has the same content.
    let answer = |label: &str, minutes: &[i64], sum: f64| {
        let times = minutes.iter().map(|at| format!("\"2021-01-29T14:{at:02}:00Z\""));
        let (times, values) = (times.collect::<Vec<_>>().join(","), minutes.iter().map(|_| sum));
        let values = values.map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        format!(
            r#"{{"Id": "{}", "Label": "{label}", "Timestamps": [{times}], "Values": [{values}]}}"#,
            label.to_lowercase().replace(' ', "_")
        )
    };
    let minutes: Vec<i64> = (0..15).collect();
    let answers = [
        answer("i-1 EBSReadOps", &minutes, 600.0),
        answer("i-1 EBSWriteOps", &[0, 5, 10], 3_000.0),
    ];
    let read = self::read(&format!(r#"{{"MetricDataResults": [{}]}}"#, answers.join(",")));
    assert_eq!(read.values("i-1", "reads_per_s")[0], Some(10.0));
    assert_eq!(read.values("i-1", "writes_per_s")[4], Some(10.0));
}

#[test]
fn malformed_metric_streams() {
    let good = streamed("VolumeReadOps", "vol-1", 0, (1, 60.0));
    let check = |text: String, expect: &str| assert_eq!(refused(&text), expect);
    check(
        format!("{good}\n{}", good.replace("1611928800000", "\"soon\"")),
        "line 2: VolumeReadOps of vol-1 has \"soon\" where milliseconds were expected",
    );
    check(
        good.replace("\"count\":1.0,", ""),
        "line 1: VolumeReadOps of vol-1 has no count and sum",
    );
    check(
        good.replace("VolumeReadOps", "Other"),
        "none of its metrics is used: AWS/EBS Other by VolumeId",
    );
    check(good.replace("\"metric_name\"", "\"name\""), "it contains no record of a metric stream");
    check(format!("{good}\n{{\"a\": 1..2}}"), "line 2: invalid JSON: invalid number");
    let open = "it is metrics in a format of OpenTelemetry, which is not read: set the output \
                format of the metric stream to JSON";
    check("{\"resourceMetrics\": []}".to_owned(), open);
    check("\u{1}\naws.exporter.arn\u{12}arn:aws:cloudwatch".to_owned(), open);
    let cut = read(&format!("{good}\n{}", &good[..40]));
    assert_eq!(cut.all("vol-1", "reads_per_s"), [1.0]);
    assert!(cut.notes("its last record was truncated"), "{:?}", cut.summary.notes);
    crate::bed::survives(&good, "cloudwatch-stream");
}
