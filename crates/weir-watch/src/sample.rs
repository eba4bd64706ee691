//! The rates between two readings: one row of numbers for each volume and host.

use std::collections::BTreeMap;
use weir_report::number::float;
use weir_report::run::CAPS;
use weir_report::status::{
    CapStatus, ExportStatus, HostStatus, LATENCY_BOUNDS_NS, OpLatency, Status, VolumeStatus,
    quantile_ns,
};

/// The rates of a volume or host, before its limits.
const RATES: [&str; 9] = [
    "read_iops",
    "write_iops",
    "read_bytes",
    "write_bytes",
    "latency_ms",
    "depth",
    "hit_rate",
    "p50_ms",
    "p99_ms",
];

/// Column of reads per second.
pub const READ_IOPS: usize = 0;
/// Column of writes and discards per second.
pub const WRITE_IOPS: usize = 1;
/// Column of bytes read per second.
pub const READ_BYTES: usize = 2;
/// Column of bytes written per second.
pub const WRITE_BYTES: usize = 3;
/// Column of the mean latency in milliseconds.
pub const LATENCY_MS: usize = 4;
/// Column of the queue depth.
pub const DEPTH: usize = 5;
/// Column of the share of reads that the host cache served.
pub const HIT_RATE: usize = 6;
/// Column of the 99th percentile of the latency in milliseconds.
pub const P99_MS: usize = 8;
/// The first of the columns of seconds waited per second, in the order of [`CAPS`].
pub const WAITS: usize = RATES.len() + 4 + CAPS.len();

/// The number of columns: rates, what the limits allow now, credits, limits and waits.
pub const WIDTH: usize = RATES.len() + 4 + 2 * CAPS.len();

/// One row. A number that does not exist is NaN.
pub type Row = [f32; WIDTH];

/// Returns the names of the columns.
#[must_use]
pub fn columns() -> Vec<String> {
    let now = ["now_iops", "now_bytes", "credits_iops", "credits_bytes"];
    let plain = RATES.iter().chain(&now).map(|name| (*name).to_owned());
    let of = |kind: &'static str| CAPS.iter().map(move |cap| format!("{kind}:{cap}"));
    plain.chain(of("limit")).chain(of("wait")).collect()
}

/// A volume or host with its row.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The host.
    pub host: String,
    /// `None` for the host itself.
    pub volume: Option<String>,
    /// The numbers, by column.
    pub row: Row,
}

/// Returns the rates between two readings, host by host, each before its volumes.
#[must_use]
pub fn between(old: &Status, new: &Status) -> Vec<Sampled> {
    let seconds = float(new.uptime_ns.saturating_sub(old.uptime_ns)) / 1e9;
    let mut all = Vec::new();
    for host in &new.hosts {
        let before = old.hosts.iter().find(|own| own.name == host.name);
        let none = HostStatus::default();
        let before = before.unwrap_or(&none);
        let old: BTreeMap<&str, &VolumeStatus> =
            before.volumes.iter().map(|v| (v.name.as_str(), v)).collect();
        // A volume without an earlier reading began at zero.
        let zero = VolumeStatus::default();
        let deltas: Vec<Delta> = host
            .volumes
            .iter()
            .map(|v| Delta::between(old.get(v.name.as_str()).copied().unwrap_or(&zero), v))
            .collect();
        let mut sum = Delta::default();
        deltas.iter().for_each(|delta| sum.add(delta));
        let latencies = Latencies::between(&before.exports, &host.exports);
        let mut numbers = Numbers::rates(&sum, seconds, &latencies.all());
        numbers.host_limits(&host.caps);
        all.push(Sampled { host: host.name.clone(), volume: None, row: numbers.row() });
        for (v, delta) in host.volumes.iter().zip(&deltas) {
            let mut numbers = Numbers::rates(delta, seconds, &latencies.of_volume(&v.name));
            numbers.volume_limits(v);
            let volume = Some(v.name.clone());
            all.push(Sampled { host: host.name.clone(), volume, row: numbers.row() });
        }
    }
    all
}

/// Counters of an interval.
#[derive(Debug, Default)]
struct Delta {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    hits: u64,
    /// Time that requests took, waits and medium.
    taken_ns: u64,
    waits_ns: [u64; CAPS.len()],
}

impl Delta {
    fn between(old: &VolumeStatus, new: &VolumeStatus) -> Self {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let waits_ns = CAPS.map(|cap| {
            let at = |v: &VolumeStatus| v.waits_ns.get(cap).copied().unwrap_or(0);
            since(at(new), at(old))
        });
        Self {
            reads: since(new.reads, old.reads),
            writes: since(new.writes + new.discards, old.writes + old.discards),
            read_bytes: since(new.read_bytes, old.read_bytes),
            write_bytes: since(new.write_bytes, old.write_bytes),
            hits: since(new.hits, old.hits),
            taken_ns: since(new.medium_ns, old.medium_ns) + waits_ns.iter().sum::<u64>(),
            waits_ns,
        }
    }

    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.hits += other.hits;
        self.taken_ns += other.taken_ns;
        for (own, more) in self.waits_ns.iter_mut().zip(other.waits_ns) {
            *own += more;
        }
    }
}

/// Requests of exports by latency, in an interval.
struct Latencies<'a>(Vec<(&'a ExportStatus, Vec<u64>)>);

impl<'a> Latencies<'a> {
    fn between(old: &[ExportStatus], new: &'a [ExportStatus]) -> Self {
        let counts = |export: &'a ExportStatus| {
            let before = old.iter().find(|own| own.name == export.name);
            let before = before.map_or(&[][..], |own| &own.latencies);
            let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
            add(&mut counts, &export.latencies, u64::saturating_add);
            add(&mut counts, before, u64::saturating_sub);
            (export, counts)
        };
        Self(new.iter().map(counts).collect())
    }

    fn all(&self) -> Vec<u64> {
        self.sum(|_| true)
    }

    fn of_volume(&self, name: &str) -> Vec<u64> {
        self.sum(|export| export.volumes.iter().any(|own| own == name))
    }

    fn sum(&self, is_of: impl Fn(&ExportStatus) -> bool) -> Vec<u64> {
        let mut sum = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        for (_, counts) in self.0.iter().filter(|(export, _)| is_of(export)) {
            sum.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
        sum
    }
}

fn add(counts: &mut [u64], latencies: &[OpLatency], put: fn(u64, u64) -> u64) {
    for latency in latencies.iter().filter(|own| own.op != "flush") {
        counts.iter_mut().zip(&latency.counts).for_each(|(sum, own)| *sum = put(*sum, *own));
    }
}

/// Returns a quantile in milliseconds.
fn quantile_ms(counts: &[u64], share: f64) -> f64 {
    quantile_ns(counts, share).map_or(f64::NAN, |ns| ns / 1e6)
}

/// The numbers of a row, by column.
struct Numbers {
    rates: [f64; RATES.len()],
    now: [f64; 4],
    limits: [f64; CAPS.len()],
    waits: [f64; CAPS.len()],
}

impl Numbers {
    fn rates(delta: &Delta, seconds: f64, latencies: &[u64]) -> Self {
        let per_s = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
        let ratio = |part: f64, whole: u64| match whole {
            0 => f64::NAN,
            whole => part / float(whole),
        };
        // No request takes no time: the time of observed requests may be unknown.
        let is_unknown = delta.taken_ns == 0 && delta.reads + delta.writes > 0;
        let taken = if is_unknown { f64::NAN } else { float(delta.taken_ns) };
        Self {
            rates: [
                per_s(delta.reads),
                per_s(delta.writes),
                per_s(delta.read_bytes),
                per_s(delta.write_bytes),
                ratio(taken, delta.reads + delta.writes) / 1e6,
                if seconds > 0.0 { taken / seconds / 1e9 } else { 0.0 },
                ratio(float(delta.hits), delta.reads),
                quantile_ms(latencies, 0.5),
                quantile_ms(latencies, 0.99),
            ],
            now: [f64::NAN; 4],
            limits: [f64::NAN; CAPS.len()],
            waits: delta.waits_ns.map(|ns| per_s(ns) / 1e9),
        }
    }

    fn limit(&mut self, cap: &str, limit: Option<u64>) {
        let at = CAPS.iter().position(|own| *own == cap);
        if let (Some(at), Some(limit)) = (at, limit) {
            self.limits[at] = float(limit);
        }
    }

    fn volume_limits(&mut self, v: &VolumeStatus) {
        self.limit("disk_iops", v.limit_iops);
        self.limit("disk_bytes", v.limit_bytes_per_s);
        self.limit("disk_burst_iops", v.burst_iops);
        self.limit("disk_burst_bytes", v.burst_bytes_per_s);
        let known = |n: Option<u64>| n.map_or(f64::NAN, float);
        self.now = [
            known(v.iops_now()),
            known(v.bytes_per_s_now()),
            share(v.credits_operations, v.full_operations),
            share(v.credits_bytes, v.full_bytes),
        ];
    }

    fn host_limits(&mut self, caps: &[CapStatus]) {
        caps.iter().for_each(|own| self.limit(&own.cap, Some(own.limit)));
        // Cached and uncached limits have buckets of their own; the emptier one runs out first.
        let least = |end: &str| {
            let own = caps.iter().filter(|own| own.cap.ends_with(end));
            own.map(|own| share(own.credits, own.full)).fold(f64::NAN, f64::min)
        };
        self.now[2] = least("_iops");
        self.now[3] = least("_bytes");
    }

    fn row(&self) -> Row {
        let all = self.rates.iter().chain(&self.now).chain(&self.limits).chain(&self.waits);
        let mut row = [f32::NAN; WIDTH];
        row.iter_mut().zip(all).for_each(|(to, from)| *to = narrow(*from));
        row
    }
}

/// Returns a part of a whole, from 0 to 1.
fn share(part: Option<u64>, whole: Option<u64>) -> f64 {
    match (part, whole) {
        (Some(part), Some(whole)) if whole > 0 => float(part) / float(whole),
        _ => f64::NAN,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for a picture")]
fn narrow(x: f64) -> f32 {
    x as f32
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A P10 that did `n` reads of 4 KiB since the start, and waited a millisecond for each.
    pub(crate) fn reading(seconds: u64, n: u64) -> Status {
        let volume = VolumeStatus {
            name: "data".into(),
            tier: Some("P10".into()),
            size_bytes: 128 << 30,
            cache: "none".into(),
            limit_iops: Some(500),
            burst_iops: Some(3_500),
            credits_operations: Some(2_700_000 - n),
            full_operations: Some(5_400_000),
            reads: n,
            read_bytes: n << 12,
            hits: n / 4,
            medium_ns: n * 1_000_000,
            waits_ns: [("disk_iops".to_owned(), n * 1_000_000)].into(),
            ..VolumeStatus::default()
        };
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        counts[7] = n;
        let export = ExportStatus {
            name: "data".into(),
            volumes: vec!["data".into()],
            latencies: vec![OpLatency { op: "read".into(), counts, sum_ns: n * 2_000_000 }],
            ..ExportStatus::default()
        };
        let cap = |cap: &str, limit, credits| CapStatus {
            cap: cap.into(),
            limit,
            credits,
            full: credits.map(|n| 4 * n),
        };
        let host = HostStatus {
            name: "host".into(),
            caps: vec![
                cap("host_uncached_iops", 6_400, Some(100)),
                cap("host_uncached_burst_iops", 16_000, None),
            ],
            volumes: vec![volume],
            exports: vec![export],
            ..HostStatus::default()
        };
        Status { uptime_ns: seconds * 1_000_000_000, hosts: vec![host], ..Status::default() }
    }

    /// Returns the columns of a row that have a number other than zero.
    fn shown(row: &Row) -> Vec<String> {
        let all = columns().into_iter().zip(row);
        let known = all.filter(|(_, value)| !value.is_nan() && **value != 0.0);
        known.map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn a_row_has_rates_limits_and_waits() {
        let all = between(&reading(10, 1_000), &reading(12, 2_000));
        let names = columns();
        assert_eq!(names.len(), WIDTH);
        let named = [
            (READ_IOPS, "read_iops"),
            (WRITE_IOPS, "write_iops"),
            (READ_BYTES, "read_bytes"),
            (WRITE_BYTES, "write_bytes"),
            (LATENCY_MS, "latency_ms"),
            (DEPTH, "depth"),
            (HIT_RATE, "hit_rate"),
            (P99_MS, "p99_ms"),
            (WAITS, "wait:log_rate"),
        ];
        named.iter().for_each(|(at, name)| assert_eq!(names[*at], *name));
        let names: Vec<_> =
            all.iter().map(|one| (one.host.as_str(), one.volume.as_deref())).collect();
        assert_eq!(names, [("host", None), ("host", Some("data"))]);
        let rates = [
            "read_iops=500",
            "read_bytes=2048000",
            "latency_ms=2",
            "depth=1",
            "hit_rate=0.25",
            "p50_ms=1.5",
            "p99_ms=1.99",
        ];
        let host = [
            "credits_iops=0.25",
            "limit:host_uncached_iops=6400",
            "limit:host_uncached_burst_iops=16000",
            "wait:disk_iops=0.5",
        ];
        assert_eq!(shown(&all[0].row), [&rates[..], &host].concat());
        let volume = [
            "now_iops=3500",
            "credits_iops=0.49962962",
            "limit:disk_iops=500",
            "limit:disk_burst_iops=3500",
            "wait:disk_iops=0.5",
        ];
        assert_eq!(shown(&all[1].row), [&rates[..], &volume].concat());
        // An idle volume has no latency.
        let idle = between(&reading(10, 0), &reading(11, 0));
        assert!(idle[1].row[4].is_nan() && idle[1].row[7].is_nan());
        assert!(idle[1].row[0] == 0.0);
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        assert!(quantile_ms(&counts, 0.5).is_nan());
        // 90 from 0.5 to 1 ms, 10 beyond the last bound.
        (counts[6], counts[19]) = (90, 10);
        assert!((quantile_ms(&counts, 0.45) - 0.75).abs() < 1e-9);
        assert!((quantile_ms(&counts, 0.9) - 1.0).abs() < 1e-9);
        assert!((quantile_ms(&counts, 0.99) - 10_000.0).abs() < 1e-9);
    }
}
