//! The counters of a server in OpenMetrics.
//!
//! `docs/METRICS.md` describes each name, and a test compares the two.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelKey, EncodeLabelSet, EncodeLabelValue, LabelSetEncoder,
    LabelValueEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use weir_report::number::float;
use weir_report::status::{
    BACKEND_STATES, BackendStatus, ExportStatus, HostStatus, LATENCY_BOUNDS_NS, Status,
    VolumeStatus,
};

/// The media type of the answer.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Name without `weir_` and, for a counter, without `_total`.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    kind: Kind,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// The source of a metric's values.
#[derive(Debug)]
enum Of {
    Server(fn(&Status) -> Points<'_>),
    Host(fn(&HostStatus) -> Points<'_>),
    Volume(fn(&VolumeStatus) -> Points<'_>),
    /// A host and its volumes; a host has the volume "".
    Both(fn(&HostStatus) -> Points<'_>, fn(&VolumeStatus) -> Points<'_>),
    Export(fn(&ExportStatus) -> Points<'_>),
    Latency,
}

/// Values with the label that tells them apart.
type Points<'a> = Vec<(Option<(&'static str, &'a str)>, Value)>;

#[derive(Debug, Clone, Copy)]
enum Value {
    Count(u64),
    Seconds(f64),
}

impl Metric {
    /// Returns the name in queries; of a histogram, that of its buckets.
    #[must_use]
    pub fn full_name(&self) -> String {
        let end = match self.kind {
            Counter => "_total",
            Gauge => "",
            Histogram => "_bucket",
        };
        format!("weir_{}{end}", self.name)
    }
}

/// All metrics, in the order of the answer.
pub static METRICS: [Metric; 28] = [
    metric(
        "uptime_seconds",
        Gauge,
        "Time since the server started",
        Of::Server(|s| seconds(s.uptime_ns)),
    ),
    metric(
        "volume_io",
        Counter,
        "Operations completed",
        Of::Volume(|v| {
            let ops = [("read", v.reads), ("write", v.writes), ("discard", v.discards)];
            by("op", ops.map(|(op, n)| (op, Some(n))))
        }),
    ),
    metric(
        "volume_bytes",
        Counter,
        "Bytes read and written",
        Of::Volume(|v| by("op", [("read", Some(v.read_bytes)), ("write", Some(v.write_bytes))])),
    ),
    metric(
        "volume_counted_io",
        Counter,
        "Operations that counted against the limits of the disk",
        Of::Volume(|v| count(v.counted)),
    ),
    metric(
        "volume_burst_transactions",
        Counter,
        "Transactions above the target, which on-demand bursting is billed for",
        Of::Volume(|v| count(v.burst_transactions)),
    ),
    metric(
        "throttle_wait_seconds",
        Counter,
        "Time that requests waited, by cap",
        Of::Volume(|v| by_cap(&v.waits_ns)),
    ),
    metric(
        "writeback_wait_seconds",
        Counter,
        "Time that write-backs waited, by cap",
        Of::Volume(|v| by_cap(&v.writeback_waits_ns)),
    ),
    metric(
        "medium_seconds",
        Counter,
        "Service time of the medium",
        Of::Volume(|v| seconds(v.medium_ns)),
    ),
    metric(
        "volume_busy_seconds",
        Counter,
        "Time with at least one request in flight",
        Of::Volume(|v| seconds(v.busy_ns)),
    ),
    metric(
        "cache_hits",
        Counter,
        "Reads that the host cache served",
        Of::Volume(|v| count(v.hits)),
    ),
    metric(
        "cache_writebacks",
        Counter,
        "Write-backs of the host cache that reached the disk",
        Of::Volume(|v| count(v.writebacks)),
    ),
    metric(
        "volume_served",
        Gauge,
        "1 if the volume is served, 0 if it or another column of its stripe could not be opened",
        Of::Volume(|v| count(u64::from(v.unserved.is_none()))),
    ),
    metric("volume_size_bytes", Gauge, "Size of the volume", Of::Volume(|v| count(v.size_bytes))),
    metric(
        "volume_allocated_bytes",
        Gauge,
        "Allocated bytes of the volume",
        Of::Volume(|v| count(v.allocated_bytes)),
    ),
    metric(
        "limit",
        Gauge,
        "Limit of a volume or host by cap, in operations or bytes per second; sustained and burst \
         limits are caps of their own",
        Of::Both(
            |h| h.caps.iter().map(|own| cap(&own.cap, own.limit)).collect(),
            |v| {
                let caps = [
                    ("disk_iops", v.limit_iops),
                    ("disk_bytes", v.limit_bytes_per_s),
                    ("disk_burst_iops", v.burst_iops),
                    ("disk_burst_bytes", v.burst_bytes_per_s),
                ];
                by("cap", caps)
            },
        ),
    ),
    metric(
        "limit_now",
        Gauge,
        "Operations or bytes that a limit of a volume allows in the next second: those of the burst, \
         as far as credits cover it",
        Of::Volume(|v| {
            by("cap", [("disk_iops", v.iops_now()), ("disk_bytes", v.bytes_per_s_now())])
        }),
    ),
    metric(
        "burst_credits",
        Gauge,
        "Burst credits left by cap, in operations or bytes",
        Of::Both(
            |h| h.caps.iter().filter_map(|own| Some(cap(&own.cap, own.credits?))).collect(),
            |v| by("cap", [("disk_iops", v.credits_operations), ("disk_bytes", v.credits_bytes)]),
        ),
    ),
    metric(
        "burst_credits_full",
        Gauge,
        "Burst credits of a full bucket by cap, in operations or bytes",
        Of::Both(
            |h| h.caps.iter().filter_map(|own| Some(cap(&own.cap, own.full?))).collect(),
            |v| by("cap", [("disk_iops", v.full_operations), ("disk_bytes", v.full_bytes)]),
        ),
    ),
    metric(
        "backend_state",
        Gauge,
        "State of the backend of a volume: 1 for the present one, 0 for the others",
        Of::Volume(backend_states),
    ),
    metric(
        "volume_damaged_reads",
        Counter,
        "Reads, and writes of parts of blocks, that failed on a damaged block",
        Of::Volume(|v| v.damage.iter().flat_map(|own| count(own.failed_requests)).collect()),
    ),
    metric(
        "cache_resident_bytes",
        Gauge,
        "Bytes in the host cache",
        Of::Host(|h| count(h.cache_resident_bytes)),
    ),
    metric("host_crashes", Counter, "Crashes of the host", Of::Host(|h| count(h.crashes))),
    metric("export_requests", Counter, "Requests answered", Of::Export(|e| count(e.requests))),
    metric(
        "export_errors",
        Counter,
        "Requests answered with an error",
        Of::Export(|e| count(e.errors)),
    ),
    metric(
        "export_rejected",
        Counter,
        "Requests to a page blob that were rejected because of their expected wait",
        Of::Export(|e| count(e.rejected)),
    ),
    metric(
        "backend_wait_seconds",
        Counter,
        "Waits of requests for a backend, beyond their deadline",
        Of::Export(|e| seconds(e.backend_ns)),
    ),
    metric(
        "server_overhead_seconds",
        Counter,
        "Time between the deadline of requests and their reply",
        Of::Export(|e| seconds(e.overhead_ns)),
    ),
    metric(
        "io_latency_seconds",
        Histogram,
        "Latency of requests from their arrival to the reply",
        Of::Latency,
    ),
];

const fn metric(name: &'static str, kind: Kind, help: &'static str, of: Of) -> Metric {
    Metric { name, help, kind, of }
}

fn count(n: u64) -> Points<'static> {
    vec![(None, Value::Count(n))]
}

fn seconds(nanos: u64) -> Points<'static> {
    vec![(None, Value::Seconds(float(nanos) / 1e9))]
}

fn cap(name: &str, value: u64) -> (Option<(&'static str, &str)>, Value) {
    (Some(("cap", name)), Value::Count(value))
}

/// Returns the values that there are.
fn by<const N: usize>(
    label: &'static str,
    values: [(&'static str, Option<u64>); N],
) -> Points<'static> {
    let one = |(name, value): (_, Option<u64>)| Some((Some((label, name)), Value::Count(value?)));
    values.into_iter().filter_map(one).collect()
}

fn backend_states(volume: &VolumeStatus) -> Points<'_> {
    let of = |backend: &BackendStatus| {
        by("state", BACKEND_STATES.map(|state| (state, Some((backend.state == state).into()))))
    };
    volume.backend.as_ref().map(of).unwrap_or_default()
}

fn by_cap(nanos: &BTreeMap<String, u64>) -> Points<'_> {
    let one = |(cap, ns): (_, &u64)| (Some(("cap", cap)), Value::Seconds(float(*ns) / 1e9));
    nanos.iter().map(|(cap, ns)| (cap.as_str(), ns)).map(one).collect()
}

/// Returns a reading in OpenMetrics.
///
/// # Errors
///
/// [`fmt::Error`], which writing to a string does not give.
pub fn exposition(status: Status) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("weir");
    registry.register_collector(Box::new(Reading(status)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The labels of a time series.
#[derive(Debug)]
struct Labels<'a>(Vec<(&'static str, &'a str)>);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (name, value) in &self.0 {
            let mut label = encoder.encode_label();
            let mut key = label.encode_label_key()?;
            EncodeLabelKey::encode(name, &mut key)?;
            let mut own = key.encode_label_value()?;
            Escaped(value).encode(&mut own)?;
            own.finish()?;
        }
        Ok(())
    }
}

/// A value in which quotes, backslashes and line ends are escaped. The encoder writes values as
/// they are.
struct Escaped<'a>(&'a str);

impl EncodeLabelValue for Escaped<'_> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                '\n' => encoder.write_str("\\n")?,
                other => encoder.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A reading that encodes itself.
#[derive(Debug)]
struct Reading(Status);

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in &METRICS {
            let kind = match metric.kind {
                Counter => MetricType::Counter,
                Gauge => MetricType::Gauge,
                Histogram => MetricType::Histogram,
            };
            let mut series = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            self.values(metric, &mut series)?;
        }
        Ok(())
    }
}

impl Reading {
    fn values(&self, metric: &Metric, series: &mut MetricEncoder<'_>) -> fmt::Result {
        let kind = metric.kind;
        if let Of::Server(of) = metric.of {
            write(series, kind, &[], of(&self.0))?;
        }
        for host in &self.0.hosts {
            let own = ("host", host.name.as_str());
            match metric.of {
                Of::Host(of) => write(series, kind, &[own], of(host))?,
                Of::Both(of, _) => write(series, kind, &[own, ("volume", "")], of(host))?,
                _ => {}
            }
            if let Of::Volume(of) | Of::Both(_, of) = metric.of {
                for volume in &host.volumes {
                    write(series, kind, &[own, ("volume", &volume.name)], of(volume))?;
                }
            }
            for export in &host.exports {
                let labels = [own, ("export", export.name.as_str())];
                match metric.of {
                    Of::Export(of) => write(series, kind, &labels, of(export))?,
                    Of::Latency => latencies(series, &labels, export)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn write(
    series: &mut MetricEncoder<'_>,
    kind: Kind,
    labels: &[(&'static str, &str)],
    points: Points<'_>,
) -> fmt::Result {
    for (label, value) in points {
        if labels.is_empty() && label.is_none() {
            point(series, kind, value)?;
            continue;
        }
        let set = Labels(labels.iter().copied().chain(label).collect());
        point(&mut series.encode_family(&set)?, kind, value)?;
    }
    Ok(())
}

fn point(series: &mut MetricEncoder<'_>, kind: Kind, value: Value) -> fmt::Result {
    match (kind, value) {
        (Gauge, Value::Seconds(value)) => series.encode_gauge(&value),
        // Whole numbers of a gauge are signed.
        (Gauge, Value::Count(value)) => series.encode_gauge(&float(value)),
        (_, Value::Seconds(value)) => series.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (_, Value::Count(value)) => series.encode_counter::<NoLabelSet, _, u64>(&value, None),
    }
}

fn latencies(
    series: &mut MetricEncoder<'_>,
    labels: &[(&'static str, &str)],
    export: &ExportStatus,
) -> fmt::Result {
    for latency in &export.latencies {
        let set = Labels(labels.iter().copied().chain([("op", latency.op.as_str())]).collect());
        let bounds = LATENCY_BOUNDS_NS.map(|ns| float(ns) / 1e9).into_iter().chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(latency.counts.iter().copied()).collect();
        let count = latency.counts.iter().sum();
        let sum = float(latency.sum_ns) / 1e9;
        let mut own = series.encode_family(&set)?;
        own.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use weir_report::status::{CapStatus, DamageStatus, OpLatency};

    /// A host with a bursting volume of a bad name, which has waited.
    fn reading() -> Status {
        let volume = VolumeStatus {
            name: "<script>\"a\\b\n\"".into(),
            limit_iops: Some(500),
            burst_iops: Some(3_500),
            credits_operations: Some(1_000),
            full_operations: Some(5_400_000),
            reads: 7,
            read_bytes: 28_672,
            hits: 2,
            waits_ns: [("disk_iops".to_owned(), 1_500_000_000)].into(),
            backend: Some(BackendStatus { state: "lost".into(), ..BackendStatus::default() }),
            damage: Some(DamageStatus { failed_requests: 3, blocks: vec![0] }),
            unserved: Some("damaged metadata".to_owned()),
            ..VolumeStatus::default()
        };
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        (counts[6], counts[8], counts[19]) = (4, 2, 1);
        let latency = OpLatency { op: "read".into(), counts, sum_ns: 16_000_000_000 };
        let export = ExportStatus {
            name: "e".into(),
            requests: 7,
            latencies: vec![latency],
            ..ExportStatus::default()
        };
        let cap =
            CapStatus { cap: "host_uncached_iops".into(), limit: 6_400, ..CapStatus::default() };
        let host = HostStatus {
            name: "h".into(),
            caps: vec![cap],
            volumes: vec![volume],
            exports: vec![export],
            ..HostStatus::default()
        };
        Status { uptime_ns: 2_500_000_000, hosts: vec![host], ..Status::default() }
    }

    #[test]
    fn a_reading_has_its_counters_and_labels_are_escaped() {
        let text = exposition(reading()).expect("text");
        let volume = r#"host="h",volume="<script>\"a\\b\n\"""#;
        for line in [
            "# TYPE weir_volume_io counter",
            "weir_uptime_seconds 2.5",
            &format!("weir_volume_io_total{{{volume},op=\"read\"}} 7"),
            &format!("weir_volume_bytes_total{{{volume},op=\"read\"}} 28672"),
            &format!("weir_throttle_wait_seconds_total{{{volume},cap=\"disk_iops\"}} 1.5"),
            &format!("weir_limit{{{volume},cap=\"disk_burst_iops\"}} 3500.0"),
            &format!("weir_limit_now{{{volume},cap=\"disk_iops\"}} 1500.0"),
            &format!("weir_burst_credits{{{volume},cap=\"disk_iops\"}} 1000.0"),
            &format!("weir_cache_hits_total{{{volume}}} 2"),
            &format!("weir_volume_served{{{volume}}} 0.0"),
            &format!("weir_backend_state{{{volume},state=\"connected\"}} 0.0"),
            &format!("weir_backend_state{{{volume},state=\"lost\"}} 1.0"),
            &format!("weir_backend_state{{{volume},state=\"failed\"}} 0.0"),
            &format!("weir_volume_damaged_reads_total{{{volume}}} 3"),
            "weir_limit{host=\"h\",volume=\"\",cap=\"host_uncached_iops\"} 6400.0",
            "weir_export_requests_total{host=\"h\",export=\"e\"} 7",
            "weir_io_latency_seconds_sum{host=\"h\",export=\"e\",op=\"read\"} 16.0",
            "weir_io_latency_seconds_count{host=\"h\",export=\"e\",op=\"read\"} 7",
            "weir_io_latency_seconds_bucket{le=\"0.001\",host=\"h\",export=\"e\",op=\"read\"} 4",
            "weir_io_latency_seconds_bucket{le=\"0.005\",host=\"h\",export=\"e\",op=\"read\"} 6",
            "weir_io_latency_seconds_bucket{le=\"+Inf\",host=\"h\",export=\"e\",op=\"read\"} 7",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert!(!text.contains("disk_bytes"), "it has no such limit: {text}");
        assert_eq!(exposition(Status::default()).expect("text").lines().last(), Some("# EOF"));
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Returns the words of a text that are names of metrics.
    fn names(text: &str) -> Vec<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("weir_")).collect()
    }

    #[test]
    fn the_documentation_has_all_metrics_and_no_others() {
        let text = std::fs::read_to_string(root().join("docs/METRICS.md")).expect("the page");
        let row = |line: &str| line.strip_prefix("| `")?.split('`').next().map(str::to_owned);
        let documented: Vec<String> =
            text.lines().filter_map(row).filter(|name| name.starts_with("weir_")).collect();
        let exported = METRICS.each_ref().map(|metric| {
            let name = metric.full_name();
            name.strip_suffix("_bucket").map(str::to_owned).unwrap_or(name)
        });
        assert_eq!(documented, exported);
    }

    #[test]
    fn the_dashboard_queries_only_metrics_that_are_exported() {
        let path = root().join("packaging/grafana/weir.json");
        let text = std::fs::read_to_string(path).expect("the dashboard");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let panels = json["panels"].as_array().expect("panels");
        let exported = METRICS.each_ref().map(Metric::full_name);
        let mut queries = 0;
        for panel in panels {
            let targets = panel["targets"].as_array().into_iter().flatten();
            for expr in targets.map(|target| target["expr"].as_str().expect("a query")) {
                let used = names(expr);
                assert!(!used.is_empty(), "{expr}");
                for name in used {
                    assert!(exported.iter().any(|own| own == name), "{name} in {expr}");
                }
                queries += 1;
            }
        }
        assert!(queries >= 10, "{queries} queries");
        let variables = json["templating"]["list"].as_array().expect("variables");
        for query in variables.iter().filter_map(|own| own["query"]["query"].as_str()) {
            let used = names(query);
            assert!(used.iter().all(|name| exported.iter().any(|own| own == name)), "{query}");
        }
    }
}
