//! The status of a running server.

use crate::cells;
use crate::number::{float, gib, grouped, mib, percent, rate, time, whole};
use crate::table::{Cell, Report, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A reading of a running server. Counters run since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Nanoseconds since the server started.
    pub uptime_ns: u64,
    /// Process id.
    pub pid: u32,
    /// The edition, if the layout has one.
    pub edition: Option<String>,
    /// The hosts.
    pub hosts: Vec<HostStatus>,
    /// Volumes that are not served, with the reason.
    pub refused: Vec<Refused>,
}

/// A volume that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Name.
    pub name: String,
    /// Reason and fix.
    pub reason: String,
    /// Set if the layout is invalid; otherwise an operation failed.
    #[serde(default)]
    pub input: bool,
}

impl Refused {
    /// Makes an entry. A reason that begins with the name of the volume loses it.
    pub fn new(name: impl Into<String>, reason: &str, input: bool) -> Self {
        let name = name.into();
        let reason = reason.strip_prefix(&format!("volume {name:?}: ")).unwrap_or(reason);
        Self { reason: reason.to_owned(), name, input }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Name.
    pub name: String,
    /// Machine size in the edition.
    pub size: Option<String>,
    /// Bytes in the host cache.
    pub cache_resident_bytes: u64,
    /// Limits of the host.
    #[serde(default)]
    pub caps: Vec<CapStatus>,
    /// Crashes so far.
    #[serde(default)]
    pub crashes: u64,
    /// Exports.
    pub exports: Vec<ExportStatus>,
    /// Volumes.
    pub volumes: Vec<VolumeStatus>,
}

impl HostStatus {
    /// Returns the limits of the machine that burst, in the form of volumes.
    fn bursts(&self) -> Vec<VolumeStatus> {
        let mut all = self.limits();
        all.retain(VolumeStatus::bursts);
        all
    }

    /// Returns the limits of the machine, in the form of volumes.
    fn limits(&self) -> Vec<VolumeStatus> {
        let find = |name: String| self.caps.iter().find(|own| own.cap == name);
        let side = |side: &str| {
            let of = |unit: &str| find(format!("host_{side}_{unit}"));
            let burst = |unit: &str| Some(find(format!("host_{side}_burst_{unit}"))?.limit);
            VolumeStatus {
                name: format!("{} ({side})", self.name),
                limit_iops: of("iops").map(|own| own.limit),
                limit_bytes_per_s: of("bytes").map(|own| own.limit),
                burst_iops: burst("iops"),
                burst_bytes_per_s: burst("bytes"),
                credits_operations: of("iops").and_then(|own| own.credits),
                credits_bytes: of("bytes").and_then(|own| own.credits),
                full_operations: of("iops").and_then(|own| own.full),
                full_bytes: of("bytes").and_then(|own| own.full),
                ..VolumeStatus::default()
            }
        };
        let log = VolumeStatus {
            name: format!("{} (log)", self.name),
            limit_bytes_per_s: find("log_rate".to_owned()).map(|own| own.limit),
            ..VolumeStatus::default()
        };
        let mut all = vec![side("uncached"), side("cached"), log];
        all.retain(|own| own.limit_iops.is_some() || own.limit_bytes_per_s.is_some());
        all
    }
}

/// A limit of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapStatus {
    /// Name of the cap.
    pub cap: String,
    /// Operations or bytes per second.
    pub limit: u64,
    /// Remaining burst credits, of a limit that bursts on credits.
    pub credits: Option<u64>,
    /// Credits of a full bucket.
    pub full: Option<u64>,
}

/// Upper bounds of the buckets in which latencies are counted, in nanoseconds.
pub const LATENCY_BOUNDS_NS: [u64; 19] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Returns a quantile in nanoseconds of latencies that are counted by [`LATENCY_BOUNDS_NS`],
/// interpolated within its bucket; `None` if there are none.
#[must_use]
pub fn quantile_ns(counts: &[u64], share: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    let mut wanted = float(total) * share;
    let mut lower = 0;
    for (count, upper) in counts.iter().zip(LATENCY_BOUNDS_NS) {
        let count = float(*count);
        if count > 0.0 && wanted <= count {
            let width = float(upper - lower);
            return Some(float(lower) + width * wanted / count);
        }
        wanted -= count;
        lower = upper;
    }
    (total > 0).then(|| float(lower))
}

/// Latencies of one kind of operation, from the arrival to the reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpLatency {
    /// `read`, `write` (also trims and zeroes) or `flush`.
    pub op: String,
    /// Requests up to each of [`LATENCY_BOUNDS_NS`], and at the end those beyond.
    pub counts: Vec<u64>,
    /// Their sum.
    pub sum_ns: u64,
}

/// The values of [`BackendStatus::state`].
pub const BACKEND_STATES: [&str; 3] = ["connected", "lost", "failed"];

/// The place of a volume's bytes outside of Weir.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendStatus {
    /// URI of the NBD server, or path of the device or file.
    pub address: String,
    /// `connected`, `lost` (requests wait, and fail after the timeout) or `failed` (all requests fail
    /// until Weir is started again).
    pub state: String,
    /// Reason, unless it is connected.
    pub reason: Option<String>,
    /// Nanoseconds since it is in this state.
    pub since_ns: u64,
}

impl BackendStatus {
    /// Returns whether requests are answered.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state == "connected"
    }

    /// Returns the state in words.
    #[must_use]
    pub fn words(&self) -> String {
        let lasting = lasting(float(self.since_ns) / 1e9);
        match &self.reason {
            None => format!("{} for {lasting}", self.state),
            Some(reason) => format!("{} for {lasting}: {reason}", self.state),
        }
    }
}

/// An export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportStatus {
    /// Name.
    pub name: String,
    /// Addresses for clients.
    pub uris: Vec<String>,
    /// Its volume, or the columns of its stripe.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Completed requests, including failed ones.
    pub requests: u64,
    /// Failed requests.
    pub errors: u64,
    /// The last error of its storage.
    #[serde(default)]
    pub last_failure: Option<FailureStatus>,
    /// Requests to a page blob that were rejected because they would have waited too long. Clients
    /// retry them.
    #[serde(default)]
    pub rejected: u64,
    /// Service time of all requests: waits at limits and the medium.
    pub service_ns: u64,
    /// Server overhead of all requests: time beyond the service time.
    pub overhead_ns: u64,
    /// Waits of all requests for a backend beyond the service time.
    #[serde(default)]
    pub backend_ns: u64,
    /// Latencies by operation.
    #[serde(default)]
    pub latencies: Vec<OpLatency>,
    /// Its NBD connections, the oldest first.
    #[serde(default)]
    pub clients: Vec<ClientStatus>,
    /// The clients that may reach it over TCP; all if absent.
    #[serde(default)]
    pub allowed_clients: Option<String>,
}

/// A request that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureStatus {
    /// The error.
    pub reason: String,
    /// Nanoseconds since its answer.
    pub ago_ns: u64,
}

/// An NBD connection to an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// A number that no other connection to the host gets.
    pub id: u64,
    /// The address of a client over TCP, the process of one over a Unix socket.
    pub peer: String,
    /// Requests that the server has taken from it.
    pub requests: u64,
    /// Bytes that these read and write.
    pub bytes: u64,
    /// Requests under way.
    pub in_flight: u64,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Name.
    pub name: String,
    /// Tier.
    pub tier: Option<String>,
    /// The performance tier whose limits apply, if one is set.
    #[serde(default)]
    pub performance_tier: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Write-backs that passed the limits but are not stored, for example because the disk is full.
    /// Flushes fail until they are.
    #[serde(default)]
    pub pending_writeback_bytes: u64,
    /// Place of the bytes, if they are on a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendStatus>,
    /// Damaged blocks that requests met, if blocks have checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<DamageStatus>,
    /// The reason why the volume is not served; `None` if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unserved: Option<String>,
    /// Host cache: `none`, `read-only` or `read-write`.
    pub cache: String,
    /// Set if it is on the host's own SSD, which the limits for uncached I/O do not count.
    #[serde(default)]
    pub is_local: bool,
    /// Sustained IOPS limit, if any.
    pub limit_iops: Option<u64>,
    /// Sustained throughput limit, if any.
    pub limit_bytes_per_s: Option<u64>,
    /// Burst IOPS limit, if any.
    #[serde(default)]
    pub burst_iops: Option<u64>,
    /// Burst throughput limit, if any.
    #[serde(default)]
    pub burst_bytes_per_s: Option<u64>,
    /// Remaining IOPS burst credits.
    pub credits_operations: Option<u64>,
    /// Remaining throughput burst credits.
    pub credits_bytes: Option<u64>,
    /// IOPS burst credits of a full bucket.
    #[serde(default)]
    pub full_operations: Option<u64>,
    /// Throughput burst credits of a full bucket.
    #[serde(default)]
    pub full_bytes: Option<u64>,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Discards completed: trims, and zeroes that may become a hole.
    #[serde(default)]
    pub discards: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Host cache hits.
    pub hits: u64,
    /// Operations that counted against the limit.
    pub counted: u64,
    /// Billed transactions of on-demand bursting.
    #[serde(default)]
    pub burst_transactions: u64,
    /// Service time of the medium.
    pub medium_ns: u64,
    /// Busy time: at least one request in flight.
    #[serde(default)]
    pub busy_ns: u64,
    /// Wait time at each limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Write-backs of the host cache.
    #[serde(default)]
    pub writebacks: u64,
    /// Bytes of these operations.
    #[serde(default)]
    pub written_back_bytes: u64,
    /// Service time of the medium for write-backs.
    #[serde(default)]
    pub writeback_medium_ns: u64,
    /// Wait time of write-backs at each limit: the cause of `cache_writeback`.
    #[serde(default)]
    pub writeback_waits_ns: BTreeMap<String, u64>,
}

/// The requests of a volume that failed on a damaged block since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageStatus {
    /// Reads that failed, and writes that would have kept a part of a damaged block.
    pub failed_requests: u64,
    /// Offsets of the blocks in the volume, without those after the first thousand. A block that was written anew
    /// since then stays listed.
    pub blocks: Vec<u64>,
}

impl VolumeStatus {
    /// Returns the tier in words: `P20`, or `P20 as P30` with a performance tier.
    #[must_use]
    pub fn tier_words(&self) -> Option<String> {
        let tier = self.tier.as_deref()?;
        let higher = self.performance_tier.as_deref();
        Some(higher.map_or_else(|| tier.to_owned(), |higher| format!("{tier} as {higher}")))
    }

    /// Returns the operations that the limit allows in the next second: those of the burst as far
    /// as credits last.
    #[must_use]
    pub fn iops_now(&self) -> Option<u64> {
        allowed_now(self.limit_iops, self.burst_iops, self.credits_operations)
    }

    /// Returns the bytes that the limit allows in the next second.
    #[must_use]
    pub fn bytes_per_s_now(&self) -> Option<u64> {
        allowed_now(self.limit_bytes_per_s, self.burst_bytes_per_s, self.credits_bytes)
    }

    /// Returns the time until the first bucket of credits is empty, at the rate since an earlier
    /// reading; `None` if no bucket becomes emptier.
    #[must_use]
    pub fn credits_last_s(&self, earlier: &Self, interval_s: f64) -> Option<f64> {
        let last = |now: Option<u64>, old: Option<u64>| {
            let (now, spent) = (now?, old?.checked_sub(now?)?);
            (spent > 0).then(|| float(now) * interval_s / float(spent))
        };
        let operations = last(self.credits_operations, earlier.credits_operations);
        let bytes = last(self.credits_bytes, earlier.credits_bytes);
        operations.into_iter().chain(bytes).reduce(f64::min)
    }

    /// Returns the smaller part of its credits that the volume has, from 0 to 1.
    #[must_use]
    pub fn credits_share(&self) -> Option<f64> {
        let share = |left: Option<u64>, full: Option<u64>| {
            full.filter(|full| *full > 0).map(|full| float(left.unwrap_or(0)) / float(full))
        };
        let operations = share(self.credits_operations, self.full_operations);
        let bytes = share(self.credits_bytes, self.full_bytes);
        operations.into_iter().chain(bytes).reduce(f64::min)
    }

    fn state(&self) -> &'static str {
        if self.unserved.is_some() { "not served" } else { "served" }
    }

    fn bursts(&self) -> bool {
        self.burst_iops.is_some() || self.burst_bytes_per_s.is_some()
    }

    /// Returns the operations completed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.discards
    }

    /// Returns the bytes read and written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

/// Returns what a limit allows in the next second. A burst without credits is one on demand.
#[must_use]
pub fn allowed_now(limit: Option<u64>, burst: Option<u64>, credits: Option<u64>) -> Option<u64> {
    let limit = limit?;
    Some(match (burst, credits) {
        (Some(burst), Some(credits)) => limit.saturating_add(credits).min(burst),
        (Some(burst), None) => burst,
        (None, _) => limit,
    })
}

/// A reading, with the rates since an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusReport {
    /// The later reading.
    #[serde(flatten)]
    pub now: Status,
    /// Seconds between the two readings.
    pub interval_s: f64,
    /// Rates between them, by volume.
    pub rates: BTreeMap<String, Rates>,
    /// Seconds until the first bucket of credits of a machine is empty at the present rate, for
    /// machines with one that becomes emptier.
    pub machine_credits_last_s: BTreeMap<String, f64>,
}

/// Rates of a volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Reads, writes and discards per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// The limit with the longest wait time, or `medium` if the service time of the medium exceeds
    /// all wait times; `None` without requests.
    pub binding_limit: Option<String>,
    /// Share of the latency.
    pub binding_share: Option<f64>,
    /// The same for write-backs: the cause of `cache_writeback`.
    pub writeback_binding_limit: Option<String>,
    /// Share of the latency of write-backs.
    pub writeback_binding_share: Option<f64>,
    /// Operations that the limit allows in the next second.
    pub iops_now: Option<u64>,
    /// Bytes that the limit allows in the next second.
    pub bytes_per_s_now: Option<u64>,
    /// Seconds until the first bucket of credits is empty at the present rate; `None` if none
    /// becomes emptier.
    pub credits_last_s: Option<f64>,
}

impl StatusReport {
    /// Computes the rates between `earlier` and `now`.
    #[must_use]
    pub fn between(earlier: &Status, now: Status) -> Self {
        let interval_s = float(now.uptime_ns.saturating_sub(earlier.uptime_ns)) / 1e9;
        let before: BTreeMap<&str, &VolumeStatus> = volumes(earlier).collect();
        let rates = volumes(&now)
            .map(|(name, volume)| {
                let zero = VolumeStatus::default();
                let old = before.get(name).copied().unwrap_or(&zero);
                let per_s = |new: u64, old: u64| match interval_s > 0.0 {
                    true => float(new.saturating_sub(old)) / interval_s,
                    false => 0.0,
                };
                let held = binding_limit(
                    (&volume.waits_ns, &old.waits_ns),
                    volume.medium_ns.saturating_sub(old.medium_ns),
                );
                let behind = binding_limit(
                    (&volume.writeback_waits_ns, &old.writeback_waits_ns),
                    volume.writeback_medium_ns.saturating_sub(old.writeback_medium_ns),
                );
                let rates = Rates {
                    iops: per_s(volume.operations(), old.operations()),
                    bytes_per_s: per_s(volume.bytes(), old.bytes()),
                    binding_share: held.as_ref().map(|(_, share)| *share),
                    binding_limit: held.map(|(name, _)| name),
                    writeback_binding_share: behind.as_ref().map(|(_, share)| *share),
                    writeback_binding_limit: behind.map(|(name, _)| name),
                    iops_now: volume.iops_now(),
                    bytes_per_s_now: volume.bytes_per_s_now(),
                    credits_last_s: volume.credits_last_s(old, interval_s),
                };
                (name.to_owned(), rates)
            })
            .collect();
        let machines = |status: &Status| -> Vec<VolumeStatus> {
            status.hosts.iter().flat_map(HostStatus::bursts).collect()
        };
        let old: BTreeMap<String, VolumeStatus> =
            machines(earlier).into_iter().map(|own| (own.name.clone(), own)).collect();
        let last = machines(&now).into_iter().filter_map(|own| {
            let last_s = own.credits_last_s(old.get(&own.name)?, interval_s)?;
            Some((own.name, last_s))
        });
        let machine_credits_last_s = last.collect();
        Self { now, interval_s, rates, machine_credits_last_s }
    }
}

/// Returns the limit with the longest wait time since an earlier reading, or `medium` if its
/// service time exceeds all wait times, with its share of the latency. `None` if no time was
/// counted.
fn binding_limit(
    (now, old): (&BTreeMap<String, u64>, &BTreeMap<String, u64>),
    medium_ns: u64,
) -> Option<(String, f64)> {
    let since = |(cap, ns): (&String, &u64)| ns.saturating_sub(*old.get(cap).unwrap_or(&0));
    let waited: u64 = now.iter().map(since).sum();
    let longest = now.iter().map(|entry| (entry.0.as_str(), since(entry))).max_by_key(|cap| cap.1);
    let (name, ns) = longest.filter(|_| medium_ns <= waited).unwrap_or(("medium", medium_ns));
    (ns > 0).then(|| (name.to_owned(), float(ns) / float(waited + medium_ns)))
}

impl Rates {
    /// Returns the binding limit and its share, as `weir sim` prints it.
    fn binding_words(&self) -> String {
        let one = |name: &Option<String>, share: Option<f64>| {
            let (name, share) = (name.as_ref()?, percent(share?));
            Some(format!("{name} {share}"))
        };
        let held = one(&self.binding_limit, self.binding_share).unwrap_or_else(none);
        let behind = one(&self.writeback_binding_limit, self.writeback_binding_share);
        match behind.filter(|_| self.binding_limit.as_deref() == Some("cache_writeback")) {
            Some(behind) => format!("{held}; write-backs: {behind}"),
            None => held,
        }
    }
}

fn volumes(status: &Status) -> impl Iterator<Item = (&str, &VolumeStatus)> {
    status.hosts.iter().flat_map(|host| &host.volumes).map(|v| (v.name.as_str(), v))
}

/// Returns a cell with an optional limit.
fn limit(limit: Option<u64>) -> Cell {
    limit.map_or_else(Cell::none, grouped)
}

/// Returns a cell with an optional amount of bytes in MiB.
fn some_mib(bytes: Option<u64>) -> Cell {
    bytes.map_or_else(Cell::none, |bytes| mib(float(bytes)))
}

/// Returns how long credits last, in words.
#[must_use]
pub fn credits_words(volume: &VolumeStatus, last_s: Option<f64>) -> String {
    match (volume.credits_share(), last_s) {
        (None, _) => "bursts on demand".to_owned(),
        // An empty bucket that earns and spends.
        (Some(_), Some(last)) if last < 1.0 => "used up".to_owned(),
        (Some(_), Some(last)) if last >= 86_400.0 => "last over a day".to_owned(),
        (Some(_), Some(last)) => format!("last {}", lasting(last)),
        (Some(share), None) if share >= 1.0 => "full".to_owned(),
        (Some(share), None) if share > 0.0 => "not spent".to_owned(),
        (Some(_), None) => "used up".to_owned(),
    }
}

/// Returns a time in hours, minutes and seconds, the largest two of them.
#[must_use]
pub fn lasting(seconds: f64) -> String {
    let s = whole(seconds);
    match (s / 3_600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

fn none() -> String {
    "-".to_owned()
}

impl Status {
    /// Returns the configuration of the volumes.
    #[must_use]
    pub fn volume_list(&self) -> Table {
        let heads = [
            "volume",
            "host",
            "tier|",
            "|tier",
            ">size GiB|size_bytes",
            ">IOPS|limit_iops",
            ">MiB/s|limit_bytes_per_s",
            ">burst IOPS|burst_iops",
            ">burst MiB/s|burst_bytes_per_s",
            ">credits IOs|credits_operations",
            ">credits MiB|credits_bytes",
            "cache",
            "|state",
            "|reason",
            "|performance_tier",
        ];
        let mut table = Table::new("", &heads);
        for host in &self.hosts {
            for v in &host.volumes {
                table.row(cells![
                    v.name.clone(),
                    host.name.clone(),
                    v.tier_words().unwrap_or_else(none),
                    name(&v.tier),
                    gib(v.size_bytes),
                    limit(v.limit_iops),
                    some_mib(v.limit_bytes_per_s),
                    limit(v.burst_iops),
                    some_mib(v.burst_bytes_per_s),
                    limit(v.credits_operations),
                    some_mib(v.credits_bytes),
                    v.cache.clone(),
                    v.state(),
                    v.unserved.as_deref().map_or_else(Cell::none, Cell::from),
                    name(&v.performance_tier),
                ]);
            }
        }
        table.notes.extend(self.not_served());
        table
    }

    /// Returns a sentence for each volume that is not served.
    fn not_served(&self) -> impl Iterator<Item = String> {
        self.refused.iter().map(|own| format!("not served: {own}"))
    }
}

/// Returns a cell with a name, if there is one.
fn name(name: &Option<String>) -> Cell {
    name.as_deref().map_or_else(Cell::none, Cell::from)
}

impl StatusReport {
    fn volumes_table(&self) -> Table {
        let heads = [
            "volume",
            "host",
            "tier|",
            "|tier",
            ">size GiB|size_bytes",
            ">used MiB|allocated_bytes",
            "cache",
            ">limit IOPS|",
            "|limit_iops",
            ">limit MiB/s|",
            "|limit_bytes_per_s",
            ">IOPS|iops",
            ">MiB/s|bytes_per_s",
            "binding limit|",
            "|binding_limit",
            "|binding_share",
            "|writeback_binding_limit",
            "|writeback_binding_share",
            "|state",
            "|performance_tier",
        ];
        let mut table = Table::new("", &heads).named("volumes");
        for host in &self.now.hosts {
            for v in &host.volumes {
                let rates = self.rates.get(&v.name).cloned().unwrap_or_default();
                let share = |share: Option<f64>| share.map_or_else(Cell::none, percent);
                table.row(cells![
                    v.name.clone(),
                    host.size.clone().unwrap_or_else(|| host.name.clone()),
                    v.tier_words().unwrap_or_else(none),
                    name(&v.tier),
                    gib(v.size_bytes),
                    mib(float(v.allocated_bytes)),
                    v.cache.clone(),
                    limit(v.iops_now()),
                    limit(v.limit_iops),
                    some_mib(v.bytes_per_s_now()),
                    some_mib(v.limit_bytes_per_s),
                    rate(rates.iops),
                    mib(rates.bytes_per_s),
                    rates.binding_words(),
                    name(&rates.binding_limit),
                    share(rates.binding_share),
                    name(&rates.writeback_binding_limit),
                    share(rates.writeback_binding_share),
                    v.state(),
                    name(&v.performance_tier),
                ]);
            }
        }
        table.notes.extend(self.now.not_served());
        table
    }

    /// Returns the volumes and machines that burst: what they may do in the next second, what they fall back to,
    /// and how long their credits last.
    fn bursts_table(&self) -> Table {
        let heads = [
            "bursting|volume",
            ">IOPS now|iops_now",
            ">then|",
            ">MiB/s now|bytes_per_s_now",
            ">then|",
            ">credits|credits_share",
            "at this rate|",
            "|burst_iops",
            "|burst_bytes_per_s",
            "|credits_operations",
            "|credits_bytes",
            "|credits_last_s",
        ];
        let mut table = Table::new("", &heads).named("bursts");
        let mut all = Vec::new();
        for (name, v) in volumes(&self.now).filter(|(_, v)| v.bursts()) {
            let last_s = self.rates.get(name).and_then(|rates| rates.credits_last_s);
            all.push((v.clone(), last_s));
        }
        for host in &self.now.hosts {
            let last_s = |v: &VolumeStatus| self.machine_credits_last_s.get(&v.name).copied();
            all.extend(host.bursts().into_iter().map(|v| (v.clone(), last_s(&v))));
        }
        for (v, last_s) in &all {
            let last_s = *last_s;
            table.row(cells![
                v.name.as_str(),
                limit(v.iops_now()),
                limit(v.limit_iops),
                some_mib(v.bytes_per_s_now()),
                some_mib(v.limit_bytes_per_s),
                v.credits_share().map_or_else(Cell::none, percent),
                credits_words(v, last_s),
                limit(v.burst_iops),
                some_mib(v.burst_bytes_per_s),
                limit(v.credits_operations),
                some_mib(v.credits_bytes),
                last_s.map_or_else(Cell::none, |last| Cell::number(String::new(), last)),
            ]);
        }
        table
    }

    /// Returns the limits of machines and instances that do not burst.
    fn machines_table(&self) -> Table {
        let heads = ["limits of|volume", ">IOPS|limit_iops", ">MiB/s|limit_bytes_per_s"];
        let mut table = Table::new("", &heads).named("machines");
        for host in &self.now.hosts {
            for v in host.limits().into_iter().filter(|own| !own.bursts()) {
                table.row(cells![
                    v.name.as_str(),
                    limit(v.limit_iops),
                    some_mib(v.limit_bytes_per_s),
                ]);
            }
        }
        table
    }

    fn pending_table(&self) -> Table {
        let heads = ["volume", ">pending MiB|pending_writeback_bytes"];
        let mut table = Table::new("", &heads).named("pending_writebacks");
        for (name, v) in volumes(&self.now).filter(|(_, v)| v.pending_writeback_bytes > 0) {
            table.row(cells![name, mib(float(v.pending_writeback_bytes))]);
        }
        table
    }

    fn damage_table(&self) -> Table {
        let heads = [
            "with checksums|volume",
            ">failed requests|failed_requests",
            ">damaged blocks|damaged_blocks",
            "offsets",
        ];
        let mut table = Table::new("", &heads).named("damage");
        for (name, v) in volumes(&self.now) {
            let Some(damage) = &v.damage else { continue };
            let shown: Vec<String> = damage.blocks.iter().take(8).map(u64::to_string).collect();
            let more = if damage.blocks.len() > 8 { " ..." } else { "" };
            table.row(cells![
                name,
                grouped(damage.failed_requests),
                grouped(damage.blocks.len() as u64),
                format!("{}{more}", shown.join(" ")),
            ]);
        }
        table
    }

    fn backends_table(&self) -> Table {
        let heads = ["volume", "backend|address", "state|", "|state", "|reason", "|since_ns"];
        let mut table = Table::new("", &heads).named("backends");
        for (name, v) in volumes(&self.now) {
            let Some(backend) = &v.backend else { continue };
            table.row(cells![
                name,
                backend.address.as_str(),
                backend.words(),
                backend.state.as_str(),
                backend.reason.clone().unwrap_or_default(),
                grouped(backend.since_ns),
            ]);
        }
        table
    }

    fn failures_table(&self) -> Table {
        let heads = ["export", "last error|reason", "ago|", "|ago_ns"];
        let mut table = Table::new("", &heads).named("failures");
        for e in self.now.hosts.iter().flat_map(|host| &host.exports) {
            let Some(last) = &e.last_failure else { continue };
            let ago = lasting(float(last.ago_ns) / 1e9);
            table.row(cells![e.name.as_str(), last.reason.as_str(), ago, grouped(last.ago_ns)]);
        }
        table
    }

    fn exports_table(&self) -> Table {
        let heads = [
            "export",
            ">requests",
            ">errors",
            ">rejected",
            ">service time|mean_service_ns",
            ">backend|mean_backend_ns",
            ">server overhead|mean_overhead_ns",
            "uri",
            "allowed clients|allowed_clients",
        ];
        let mut table = Table::new("", &heads).named("exports");
        for e in self.now.hosts.iter().flat_map(|host| &host.exports) {
            let mean = |sum: u64| match e.requests {
                0 => Cell::none(),
                n => time(float(sum) / float(n)),
            };
            table.row(cells![
                e.name.clone(),
                grouped(e.requests),
                grouped(e.errors),
                grouped(e.rejected),
                mean(e.service_ns),
                mean(e.backend_ns),
                mean(e.overhead_ns),
                e.uris.join(" "),
                e.allowed_clients.clone().unwrap_or_else(|| "all".to_owned()),
            ]);
        }
        table
    }
}

impl Report for StatusReport {
    fn tables(&self) -> Vec<Table> {
        vec![
            self.volumes_table(),
            self.bursts_table(),
            self.machines_table(),
            self.pending_table(),
            self.damage_table(),
            self.exports_table(),
            self.failures_table(),
            self.backends_table(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn reading(uptime_ns: u64, reads: u64) -> Status {
        let plain = VolumeStatus {
            name: "data".into(),
            tier: Some("P30".into()),
            size_bytes: 1 << 40,
            cache: "none".into(),
            limit_iops: Some(5_000),
            limit_bytes_per_s: Some(200_000_000),
            reads,
            read_bytes: reads << 12,
            ..VolumeStatus::default()
        };
        let bursting = VolumeStatus {
            name: "log".into(),
            burst_iops: Some(30_000),
            burst_bytes_per_s: Some(1_000_000_000),
            credits_operations: Some(5_400_000),
            credits_bytes: Some(80 << 20),
            full_operations: Some(10_800_000),
            full_bytes: Some(80 << 20),
            ..plain.clone()
        };
        let volumes = vec![plain, bursting];
        let host = HostStatus { name: "host".into(), volumes, ..HostStatus::default() };
        Status { uptime_ns, hosts: vec![host], ..Status::default() }
    }

    #[test]
    fn volumes_with_bursting_show_their_credits() {
        let report = StatusReport::between(&reading(0, 0), reading(1_000_000_000, 100));
        let text = report.render(Format::Text);
        let expect = " bursting  IOPS now   then  MiB/s now  then  credits  at this rate\n \
                      log         30,000  5,000        271   191   50.0 %  not spent\n";
        assert!(text.contains(expect), "{text}");
        let csv = report.render(Format::Csv);
        assert!(csv.starts_with("table,volume,host,tier,size_bytes,allocated_bytes,cache,limit_iops,limit_bytes_per_s,iops,bytes_per_s,binding_limit,binding_share,writeback_binding_limit,writeback_binding_share,state,performance_tier,iops_now,bytes_per_s_now,credits_share,burst_iops,burst_bytes_per_s,credits_operations,credits_bytes,credits_last_s,pending_writeback_bytes,failed_requests,damaged_blocks,offsets,export,"), "{csv}");
        let row =
            "\nvolumes,data,host,P30,1099511627776,0,none,5000,200000000,100,409600,,,,,served,,";
        assert!(csv.contains(row), "{csv}");
        assert!(
            csv.contains(
                "\nbursts,log,,,,,,,,,,,,,,,,30000,283886080,0.5,30000,1000000000,5400000,83886080,,"
            ),
            "{csv}"
        );
        let list = reading(0, 0).volume_list();
        let json = serde_json::to_value(crate::table::Listing(vec![list])).expect("JSON");
        assert_eq!(json[0]["credits_operations"], serde_json::Value::Null);
        assert_eq!(json[1]["credits_operations"], 5_400_000);
        assert_eq!(json[1]["credits_bytes"], 80 << 20);
    }

    #[test]
    fn a_performance_tier_stands_beside_the_tier_of_the_size() {
        let mut now = reading(1_000_000_000, 0);
        now.hosts[0].volumes[0].performance_tier = Some("P50".into());
        let list = crate::table::Listing(vec![now.volume_list()]);
        let json = serde_json::to_value(&list).expect("JSON");
        let tiers = |row: usize| [&json[row]["tier"], &json[row]["performance_tier"]];
        assert_eq!(tiers(0), [&serde_json::Value::from("P30"), &"P50".into()]);
        assert_eq!(tiers(1), [&serde_json::Value::from("P30"), &serde_json::Value::Null]);
        let text = StatusReport::between(&reading(0, 0), now).render(Format::Text);
        assert!(text.contains(" P30 as P50 "), "{text}");
    }

    #[test]
    fn a_reason_does_not_repeat_the_name_of_its_volume() {
        let of = |reason: &str| Refused::new("log", reason, false).to_string();
        assert_eq!(of("volume \"log\": no server answers"), "log: no server answers");
        assert_eq!(
            of("volume \"data\": no server answers"),
            "log: volume \"data\": no server answers"
        );
    }

    #[test]
    fn a_volume_that_is_not_served_is_listed_with_its_reason() {
        let mut now = reading(1_000_000_000, 0);
        let reason = "its metadata is damaged".to_owned();
        now.hosts[0].volumes[1].unserved = Some(reason.clone());
        now.refused = vec![Refused { name: "log".into(), reason, input: false }];
        let note = "\nnot served: log: its metadata is damaged\n";
        let list = now.volume_list();
        assert_eq!(list.notes, [note.trim()]);
        let json = serde_json::to_value(crate::table::Listing(vec![list])).expect("JSON");
        assert_eq!(
            (&json[0]["state"], &json[1]["state"]),
            (&"served".into(), &"not served".into())
        );
        let text = StatusReport::between(&reading(0, 0), now).render(Format::Text);
        assert!(text.contains(note), "{text}");
    }

    #[test]
    fn volumes_with_checksums_are_listed_with_the_damage_that_requests_met() {
        let mut now = reading(1_000_000_000, 100);
        let text =
            |now: &Status| StatusReport::between(&reading(0, 0), now.clone()).render(Format::Text);
        assert!(!text(&now).contains("checksums"));
        now.hosts[0].volumes[0].damage = Some(DamageStatus::default());
        let expect = " with checksums  failed requests  damaged blocks  offsets\n \
                      data                          0               0\n";
        assert!(text(&now).contains(expect), "{}", text(&now));
        let blocks = (2..12).map(|block| block * 4096).collect();
        now.hosts[0].volumes[0].damage = Some(DamageStatus { failed_requests: 1234, blocks });
        let expect = " with checksums  failed requests  damaged blocks  offsets\n \
                      data                      1,234              10  8192 12288 16384 20480 24576 28672 32768 36864 ...\n";
        assert!(text(&now).contains(expect), "{}", text(&now));
    }

    #[test]
    fn a_machine_shows_its_credits_by_side() {
        let at = |uptime_s: u64, credits: u64| {
            let mut reading = reading(uptime_s * 1_000_000_000, 0);
            let cap = |cap: &str, limit, credits: Option<u64>| {
                let full = credits.map(|_| 7_200_000);
                CapStatus { cap: cap.into(), limit, credits, full }
            };
            reading.hosts[0].caps = vec![
                cap("host_uncached_iops", 6_400, Some(credits)),
                cap("host_uncached_burst_iops", 16_000, None),
                cap("host_uncached_bytes", 96_000_000, None),
                cap("host_cached_iops", 16_000, None),
                cap("log_rate", 96 << 20, None),
            ];
            reading
        };
        let report = StatusReport::between(&at(10, 3_610_000), at(12, 3_600_000));
        assert_eq!(report.machine_credits_last_s["host (uncached)"], 720.0);
        assert_eq!(report.machine_credits_last_s.len(), 1);
        let text = report.render(Format::Text);
        let line = " host (uncached)    16,000  6,400       91.6  91.6   50.0 %  last 12 min 0 s\n";
        assert!(text.contains(line), "{text}");
        let others = " limits of        IOPS  MiB/s\n \
                      host (cached)  16,000      -\n \
                      host (log)          -   96.0\n";
        assert!(text.contains(others), "{text}");
        assert_eq!((text.matches("(cached)").count(), text.matches("(uncached)").count()), (1, 1));
    }

    #[test]
    fn a_burst_shows_its_present_limit_and_how_long_it_lasts() {
        // A P10: 500 IOPS and 100 MB/s, 3,500 and 170 for 30 min.
        let at = |uptime_s: u64, credits: u64| {
            let mut reading = reading(uptime_s * 1_000_000_000, 0);
            let volume = &mut reading.hosts[0].volumes[1];
            volume.limit_iops = Some(500);
            volume.limit_bytes_per_s = Some(100_000_000);
            volume.burst_iops = Some(3_500);
            volume.burst_bytes_per_s = Some(170_000_000);
            (volume.credits_operations, volume.full_operations) = (Some(credits), Some(5_400_000));
            (volume.credits_bytes, volume.full_bytes) = (Some(7 << 30), Some(126_000_000_000));
            reading
        };
        let check = |before: u64, now: u64, line: &str, limit: &str, last_s: Option<f64>| {
            let report = StatusReport::between(&at(10, before), at(12, now));
            let text = report.render(Format::Text);
            assert!(text.contains(line), "{text}");
            // The limits of the volume are those that apply now.
            assert!(text.contains(limit), "{text}");
            assert_eq!(report.rates["log"].credits_last_s, last_s);
        };
        let full = " log          3,500   500        162  95.4    6.0 %  last 29 min 58 s\n";
        check(5_400_000, 5_394_000, full, " 3,500          162 ", Some(1_798.0));
        let low = " log          1,100   500        162  95.4    0.0 %  last 2 s\n";
        check(1_200, 600, low, " 1,100          162 ", Some(2.0));
        let spent = " log            503   500        162  95.4    0.0 %  used up\n";
        check(13, 3, spent, " 503          162 ", Some(0.6));
        let slow = " log          3,500   500        162  95.4    6.0 %  last over a day\n";
        check(5_400_000, 5_399_999, slow, " 3,500          162 ", Some(10_799_998.0));
        let none = " log            500   500        162  95.4    0.0 %  used up\n";
        check(0, 0, none, " 500          162 ", None);
        let earned = " log          3,500   500        162  95.4    6.0 %  not spent\n";
        check(2_700_000, 2_701_000, earned, " 3,500          162 ", None);
        assert_eq!(lasting(7_384.4), "2 h 3 min");
    }

    #[test]
    fn a_volume_that_is_trimmed_is_busy() {
        let mut now = reading(2_000_000_000, 100);
        now.hosts[0].volumes[0].discards = 4_000;
        let report = StatusReport::between(&reading(1_000_000_000, 0), now);
        assert!((report.rates["data"].iops - 4_100.0).abs() < 1e-9, "{:?}", report.rates);
        assert!((report.rates["data"].bytes_per_s - 409_600.0).abs() < 1e-9, "{:?}", report.rates);
    }

    /// Checks the text and the CSV columns of a volume with these wait and service times.
    #[track_caller]
    fn check_binding(waits: &[(&str, u64)], medium_ns: u64, text: &str, csv: &str) {
        let at = |uptime_ns, waited: &[(&str, u64)], medium_ns| {
            let mut reading = reading(uptime_ns, 0);
            let volume = &mut reading.hosts[0].volumes[0];
            volume.waits_ns = waited.iter().map(|(cap, ns)| ((*cap).to_owned(), *ns)).collect();
            volume.medium_ns = medium_ns;
            reading
        };
        let old = [("disk_bytes", 5_000), ("disk_iops", 7_000)];
        let new = old.map(|(cap, ns)| {
            let more = waits.iter().find(|(of, _)| *of == cap).map_or(0, |(_, ns)| *ns);
            (cap, ns + more)
        });
        let before = at(1_000_000_000, &old, 900);
        let now = at(2_000_000_000, &new, 900 + medium_ns);
        let report = StatusReport::between(&before, now);
        let shown = report.render(Format::Text);
        let line = shown.lines().nth(1).unwrap_or_default();
        assert!(line.ends_with(text), "{shown}");
        let shown = report.render(Format::Csv);
        let line = shown.lines().nth(1).unwrap_or_default();
        assert!(line.contains(&format!(",0,0,{csv},,")), "{shown}");
    }

    /// A limit with a hundredth of the latency does not bind.
    #[test]
    fn the_binding_limit_has_its_share() {
        check_binding(&[("disk_bytes", 20)], 980, "  medium 98.0 %", "medium,0.98");
        check_binding(
            &[("disk_iops", 700), ("disk_bytes", 50)],
            250,
            "  disk_iops 70.0 %",
            "disk_iops,0.7",
        );
        check_binding(&[("disk_iops", 300), ("disk_bytes", 300)], 400, " %", "disk_iops,0.3");
        check_binding(&[], 0, "  -", ",");
        let report = StatusReport::between(&reading(0, 0), reading(1, 0));
        let json: serde_json::Value =
            serde_json::from_str(&report.render(Format::Json)).expect("JSON");
        assert_eq!(json["rates"]["data"]["binding_share"], serde_json::Value::Null);
    }

    #[test]
    fn the_binding_limit_of_write_backs_is_shown_behind_them() {
        let mut now = reading(1_000_000_000, 0);
        let waits = |cap: &str, ns| BTreeMap::from([(cap.to_owned(), ns)]);
        let volume = &mut now.hosts[0].volumes[0];
        volume.waits_ns = waits("cache_writeback", 900);
        volume.medium_ns = 100;
        volume.writeback_waits_ns = waits("disk_iops", 750);
        volume.writeback_medium_ns = 250;
        let mut later = now.clone();
        later.uptime_ns *= 2;
        let text = |old: &Status, now| StatusReport::between(old, now).render(Format::Text);
        let busy = text(&reading(0, 0), now.clone());
        let expect = "  cache_writeback 90.0 %; write-backs: disk_iops 75.0 %\n";
        assert!(busy.contains(expect), "{busy}");
        later.hosts[0].volumes[0].waits_ns = waits("cache_writeback", 901);
        let moved_on = text(&now, later);
        assert!(moved_on.contains("  cache_writeback 100.0 %\n"), "{moved_on}");
    }

    #[test]
    fn an_answer_of_an_older_server_is_read() {
        let mut old = serde_json::to_value(reading(1, 2)).expect("JSON");
        let volume = old["hosts"][0]["volumes"][0].as_object_mut().expect("a volume");
        let new = |name: &String| {
            name.starts_with("writ") && name.contains("back")
                || name.starts_with("full_")
                || ["discards", "burst_transactions"].contains(&name.as_str())
        };
        let before = volume.len();
        volume.retain(|name, _| !new(name));
        assert_eq!(before - volume.len(), 8);
        assert_eq!(serde_json::from_value::<Status>(old).expect("a status"), reading(1, 2));
    }
}
