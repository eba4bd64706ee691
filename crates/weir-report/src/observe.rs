//! The contents of an observation, with figures of each entity.

mod backups;
mod tables;

pub use backups::ObservedBackup;

use serde::Serialize;
use std::collections::BTreeMap;

/// An observation in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservationReport {
    /// The source: `virtual-run`, `wall-run`, ...
    pub source: String,
    /// The program that wrote it.
    pub by: String,
    /// More about the source, for example seed and version.
    pub about: BTreeMap<String, String>,
    /// Name of the layout, if known.
    pub layout: Option<String>,
    /// Time zero, in nanoseconds since 1970 UTC, if known.
    pub start_unix_ns: Option<i64>,
    /// The intended sampling interval.
    pub interval_s: Option<f64>,
    /// Samples.
    pub samples: u64,
    /// First sample, in seconds from the start.
    pub from_s: f64,
    /// Last sample, in seconds from the start.
    pub to_s: f64,
    /// Set if the observation is complete.
    pub is_complete: bool,
    /// The end of the observation in words.
    pub ending: String,
    /// Databases and their waits.
    pub databases: Vec<ObservedDatabase>,
    /// Files.
    pub files: Vec<ObservedIo>,
    /// Volumes.
    pub volumes: Vec<ObservedIo>,
    /// Machines with total I/O.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ObservedIo>,
    /// Backups and restores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<ObservedBackup>,
    /// All entities with their attributes.
    pub entities: Vec<ObservedEntity>,
    /// Notes on restarts, gaps and truncated input.
    pub notes: Vec<String>,
}

/// A rate over the samples. Percentiles are accurate to 1 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RateReport {
    /// Mean over time.
    pub mean: f64,
    /// Median of the samples.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// An observed database.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedDatabase {
    /// Name.
    pub database: String,
    /// Batch requests per second, if counted.
    pub batches_per_s: Option<RateReport>,
    /// Utilisation of the schedulers, if known.
    pub cpu_share: Option<RateReport>,
    /// Wait classes, by time.
    pub waits: Vec<ObservedWait>,
}

/// A wait class.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedWait {
    /// Name.
    pub wait: String,
    /// Number of waits, if counted.
    pub count: Option<u64>,
    /// Total wait time.
    pub time_ms: f64,
    /// Share of all wait time.
    pub share: f64,
}

/// An observed file or volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedIo {
    /// Name.
    pub name: String,
    /// The database of a file, the host or stripe of a volume.
    pub parent: Option<String>,
    /// Role of a file.
    pub role: Option<String>,
    /// Tier.
    pub tier: Option<String>,
    /// Operations per second; `None` if there is only one snapshot of counters.
    pub iops: Option<RateReport>,
    /// Limit of its own, if any.
    pub iops_limit: Option<u64>,
    /// Share of time at 90 % of the limit or more.
    pub near_iops_limit_share: Option<f64>,
    /// Bytes per second, if known.
    pub bytes_per_s: Option<RateReport>,
    /// Limit of its own, if any.
    pub bytes_per_s_limit: Option<u64>,
    /// Share of time at 90 % of the limit or more.
    pub near_bytes_limit_share: Option<f64>,
    /// Mean latency of an operation, if known.
    pub latency_mean_ns: Option<f64>,
    /// Wait time at each limit, if known.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium, if known.
    pub medium_ns: Option<u64>,
}

/// An observed entity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedEntity {
    /// Description.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Parent entity.
    pub parent: Option<String>,
    /// Attributes.
    pub attributes: BTreeMap<String, String>,
}
