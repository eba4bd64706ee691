//! A workload that ran, in virtual or wall time.

mod tables;

pub(crate) use tables::{held_by, wait_heads, waits};

use serde::Serialize;
use std::collections::BTreeMap;

/// The caps by the names that reports give them, in the order of a request's path.
pub const CAPS: [&str; 14] = [
    "log_rate",
    "disk_iops",
    "disk_bytes",
    "disk_burst_iops",
    "disk_burst_bytes",
    "host_uncached_iops",
    "host_uncached_bytes",
    "host_uncached_burst_iops",
    "host_uncached_burst_bytes",
    "host_cached_iops",
    "host_cached_bytes",
    "host_cached_burst_iops",
    "host_cached_burst_bytes",
    "cache_writeback",
];

/// Which clock drove a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// The simulator's.
    Virtual,
    /// The real one.
    Wall,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Which clock.
    pub clock: ClockName,
    /// The seed: the same one gives the same virtual run.
    pub seed: u64,
    /// From the first request to the last completion.
    pub elapsed_s: f64,
    /// Fingerprint of every admission, in hexadecimal; of virtual runs.
    pub trace_hash: Option<String>,
    /// The jobs; those of one reporting group are one entry.
    pub jobs: Vec<JobReport>,
    /// The volumes.
    pub volumes: Vec<VolumeReport>,
    /// The hosts.
    pub hosts: Vec<HostReport>,
    /// How it went over time.
    pub series: Vec<SeriesPoint>,
    /// What a reader should know, such as options that had no meaning.
    pub notes: Vec<String>,
}

/// A job, or a reporting group of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobReport {
    /// Its name; of a group the names of its jobs.
    pub name: String,
    /// Processes in it.
    pub processes: usize,
    /// Seconds that were measured, of the process that ran longest.
    pub measured_s: f64,
    /// Reads.
    pub read: OpReport,
    /// Writes.
    pub write: OpReport,
    /// Trims.
    pub trim: OpReport,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Share of reads that the host cache served; of virtual runs.
    pub hit_share: Option<f64>,
    /// Time waited per cap, of all requests together; of virtual runs.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the media took, of all requests together; of virtual runs.
    pub medium_ns: u64,
}

/// One kind of operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OpReport {
    /// Operations completed while measured.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Their latency.
    pub latency: LatencyReport,
}

/// A latency, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LatencyReport {
    /// The mean, exact.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// The shortest.
    #[serde(rename = "min_ns")]
    pub min: u64,
    /// Half are shorter. This and the other percentiles are within 1 %.
    #[serde(rename = "p50_ns")]
    pub p50: u64,
    /// 90 % are shorter.
    #[serde(rename = "p90_ns")]
    pub p90: u64,
    /// 95 % are shorter.
    #[serde(rename = "p95_ns")]
    pub p95: u64,
    /// 99 % are shorter.
    #[serde(rename = "p99_ns")]
    pub p99: u64,
    /// 99.9 % are shorter.
    #[serde(rename = "p99_9_ns")]
    pub p99_9: u64,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: u64,
}

/// A volume over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VolumeReport {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its tier.
    pub tier: Option<String>,
    /// Reads and writes that reached it, per second.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Operations per second as the disk counted them.
    pub counted_iops: f64,
    /// Share of reads that the host cache served.
    pub hit_share: f64,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Time waited per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took.
    pub medium_ns: u64,
    /// Write-backs of its ReadWrite cache that reached the disk, per second. They are
    /// in `counted_iops` and not in `iops`.
    pub writeback_iops: f64,
    /// Their bytes per second.
    pub writeback_bytes_per_s: f64,
    /// Time that they waited per cap: what is behind `cache_writeback`.
    pub writeback_waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took of them.
    pub writeback_medium_ns: u64,
    /// Transactions above the target that on-demand bursting is billed for.
    pub burst_transactions: u64,
}

/// A host over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Its size in the edition.
    pub size: Option<String>,
    /// Reads and writes of all its volumes, per second.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Bytes in the host cache at the end.
    pub cache_resident_bytes: u64,
    /// Time waited per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the media took.
    pub medium_ns: u64,
}

/// A simulated run: what the jobs saw, and what host caches did behind them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimReport {
    /// The run.
    #[serde(flatten)]
    pub run: RunReport,
    /// The volumes that a host cache wrote back to.
    pub writebacks: Vec<WritebackReport>,
}

/// What a host cache wrote back to a volume, over the whole run. Jobs wait for it as
/// `cache_writeback`; what the write-backs waited for is here.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WritebackReport {
    /// The volume.
    pub volume: String,
    /// Its host.
    pub host: String,
    /// Write-backs per second, of up to 256 KiB.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Time that they waited, per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took of them.
    pub medium_ns: u64,
}

/// A stretch of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Its start, in seconds from the run's.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Share of reads that the host cache served; of virtual runs.
    pub hit_share: Option<f64>,
}

impl JobReport {
    /// The operations of all kinds, per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.read.iops + self.write.iops + self.trim.iops
    }

    /// The bytes of all kinds, per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.read.bytes_per_s + self.write.bytes_per_s + self.trim.bytes_per_s
    }
}

impl RunReport {
    /// Operations per second of all jobs.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.jobs.iter().map(JobReport::iops).sum()
    }
}
