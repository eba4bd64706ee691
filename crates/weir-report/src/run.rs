//! A workload that ran, in virtual or wall time.

mod tables;
mod verdict;

pub(crate) use tables::{latency_shares, wait_heads, waits};
pub use verdict::throttled;

use serde::Serialize;
use std::collections::BTreeMap;

/// The names of limits in reports.
pub const CAPS: [&str; 16] = [
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
    "host_write_iops",
    "host_write_bytes",
];

/// The clock of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// The clock of the simulator.
    Virtual,
    /// The real clock.
    Wall,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The clock.
    pub clock: ClockName,
    /// The seed. It determines a virtual run.
    pub seed: u64,
    /// Time from the first request to the last completion.
    pub elapsed_s: f64,
    /// Hash of all admissions, in hexadecimal; virtual runs only.
    pub trace_hash: Option<String>,
    /// The jobs. A reporting group is one entry.
    pub jobs: Vec<JobReport>,
    /// The volumes.
    pub volumes: Vec<VolumeReport>,
    /// The hosts.
    pub hosts: Vec<HostReport>,
    /// The run over time.
    pub series: Vec<SeriesPoint>,
    /// Notes, for example on options without effect.
    pub notes: Vec<String>,
}

/// A job, or a reporting group of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobReport {
    /// Name, or the names of the jobs of a group.
    pub name: String,
    /// Number of processes.
    pub processes: usize,
    /// Measured time of the longest process, in seconds.
    pub measured_s: f64,
    /// Reads.
    pub read: OpReport,
    /// Writes.
    pub write: OpReport,
    /// Trims.
    pub trim: OpReport,
    /// Mean queue depth.
    pub queue_depth: f64,
    /// Host cache hit rate of reads; virtual runs only.
    pub hit_share: Option<f64>,
    /// Wait time of all requests at each limit; virtual runs only.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the media for all requests; virtual runs only.
    pub medium_ns: u64,
}

/// The operations of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OpReport {
    /// Operations completed in the measured time.
    pub ios: u64,
    /// Bytes of these operations.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Latency of these operations.
    pub latency: LatencyReport,
}

/// A latency distribution, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LatencyReport {
    /// Mean (exact).
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// Minimum.
    #[serde(rename = "min_ns")]
    pub min: u64,
    /// Median. This and the other percentiles are accurate to 1 %.
    #[serde(rename = "p50_ns")]
    pub p50: u64,
    /// 90th percentile.
    #[serde(rename = "p90_ns")]
    pub p90: u64,
    /// 95th percentile.
    #[serde(rename = "p95_ns")]
    pub p95: u64,
    /// 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: u64,
    /// 99.9th percentile.
    #[serde(rename = "p99_9_ns")]
    pub p99_9: u64,
    /// Maximum.
    #[serde(rename = "max_ns")]
    pub max: u64,
}

/// A volume over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VolumeReport {
    /// Name.
    pub name: String,
    /// Host.
    pub host: String,
    /// Tier.
    pub tier: Option<String>,
    /// Reads and writes per second.
    pub iops: f64,
    /// Throughput in bytes per second.
    pub bytes_per_s: f64,
    /// Operations per second that counted against the limit.
    pub counted_iops: f64,
    /// Host cache hit rate of reads.
    pub hit_share: f64,
    /// Mean queue depth.
    pub queue_depth: f64,
    /// Wait time at each limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium.
    pub medium_ns: u64,
    /// Write-backs of the read-write cache per second. They are part of `counted_iops`, but not of
    /// `iops`.
    pub writeback_iops: f64,
    /// Throughput in bytes per second.
    pub writeback_bytes_per_s: f64,
    /// Wait time of write-backs at each limit: the cause of `cache_writeback`.
    pub writeback_waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium for write-backs.
    pub writeback_medium_ns: u64,
    /// Billed transactions of on-demand bursting.
    pub burst_transactions: u64,
}

/// A host over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// Name.
    pub name: String,
    /// Machine size in the edition.
    pub size: Option<String>,
    /// Reads and writes of all volumes per second.
    pub iops: f64,
    /// Throughput in bytes per second.
    pub bytes_per_s: f64,
    /// Mean queue depth.
    pub queue_depth: f64,
    /// Bytes in the host cache at the end.
    pub cache_resident_bytes: u64,
    /// Wait time at each limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the media.
    pub medium_ns: u64,
}

/// A simulated run, with the write-backs of host caches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimReport {
    /// The run.
    #[serde(flatten)]
    pub run: RunReport,
    /// Volumes with write-backs of a host cache.
    pub writebacks: Vec<WritebackReport>,
}

/// The write-backs of a host cache to a volume, over the whole run. Jobs wait for them as
/// `cache_writeback`; the waits of the write-backs themselves are here.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WritebackReport {
    /// The volume.
    pub volume: String,
    /// Host.
    pub host: String,
    /// Write-backs per second, of up to 256 KiB.
    pub iops: f64,
    /// Throughput in bytes per second.
    pub bytes_per_s: f64,
    /// Wait time at each limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium for write-backs.
    pub medium_ns: u64,
}

/// A time span of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Start, in seconds from the start of the run.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Host cache hit rate of reads; virtual runs only.
    pub hit_share: Option<f64>,
}

impl JobReport {
    /// Returns operations of all kinds per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.read.iops + self.write.iops + self.trim.iops
    }

    /// Returns bytes of all kinds per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.read.bytes_per_s + self.write.bytes_per_s + self.trim.bytes_per_s
    }
}

impl RunReport {
    /// Returns the operations per second of all jobs.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.jobs.iter().map(JobReport::iops).sum()
    }
}
