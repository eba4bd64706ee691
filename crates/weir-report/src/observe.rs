//! What is in an observation: who was observed, and what each came to.

mod backups;
mod tables;

pub use backups::ObservedBackup;

use serde::Serialize;
use std::collections::BTreeMap;

/// An observation in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservationReport {
    /// What was observed: `virtual-run`, `wall-run`, ...
    pub source: String,
    /// The program that wrote it.
    pub by: String,
    /// More about the source: a seed, a version, a name.
    pub about: BTreeMap<String, String>,
    /// The layout's name, if it is known.
    pub layout: Option<String>,
    /// The moment that its times count from, in nanoseconds since 1970 UTC, if known.
    pub start_unix_ns: Option<i64>,
    /// The time from sample to sample, as intended.
    pub interval_s: Option<f64>,
    /// Samples.
    pub samples: u64,
    /// The first sample, in seconds from the start.
    pub from_s: f64,
    /// The last one.
    pub to_s: f64,
    /// Whether what was observed came to its end.
    pub is_complete: bool,
    /// How it ended.
    pub ending: String,
    /// Databases and their waits.
    pub databases: Vec<ObservedDatabase>,
    /// Files.
    pub files: Vec<ObservedIo>,
    /// Volumes.
    pub volumes: Vec<ObservedIo>,
    /// Machines of which all I/O is told together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ObservedIo>,
    /// Backups and restores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<ObservedBackup>,
    /// Everybody, with what is known of them.
    pub entities: Vec<ObservedEntity>,
    /// What a reader should know: restarts, gaps, what is not whole.
    pub notes: Vec<String>,
}

/// A rate over the samples. Percentiles are within 1 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RateReport {
    /// The mean over time.
    pub mean: f64,
    /// Half of the samples are lower.
    pub p50: f64,
    /// 99 % are lower.
    pub p99: f64,
    /// The highest.
    pub max: f64,
}

/// A database that was observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedDatabase {
    /// Its name.
    pub database: String,
    /// Batch requests per second, where they are counted.
    pub batches_per_s: Option<RateReport>,
    /// Share of the schedulers' time, where both are known.
    pub cpu_share: Option<RateReport>,
    /// What was waited for, most time first.
    pub waits: Vec<ObservedWait>,
}

/// A class of waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedWait {
    /// Its name.
    pub wait: String,
    /// How many waited, where it is counted.
    pub count: Option<u64>,
    /// For how long, all together.
    pub time_ms: f64,
    /// Share of the time of all waits.
    pub share: f64,
}

/// A file or volume that was observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedIo {
    /// Its name.
    pub name: String,
    /// The database of a file, the host or stripe of a volume.
    pub parent: Option<String>,
    /// Its role, of a file.
    pub role: Option<String>,
    /// Its tier.
    pub tier: Option<String>,
    /// Operations per second; `None` where no rate is known, as of one snapshot of counters.
    pub iops: Option<RateReport>,
    /// The limit, if it has one to itself.
    pub iops_limit: Option<u64>,
    /// Share of the time at 90 % of that or more.
    pub near_iops_limit_share: Option<f64>,
    /// Bytes per second, where they are known.
    pub bytes_per_s: Option<RateReport>,
    /// The limit, if it has one to itself.
    pub bytes_per_s_limit: Option<u64>,
    /// Share of the time at 90 % of that or more.
    pub near_bytes_limit_share: Option<f64>,
    /// The mean latency of an operation, where it is known.
    pub latency_mean_ns: Option<f64>,
    /// Time waited per cap, where it is known.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took, where it is known.
    pub medium_ns: Option<u64>,
}

/// Somebody that was observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedEntity {
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it belongs to.
    pub parent: Option<String>,
    /// What is known of it.
    pub attributes: BTreeMap<String, String>,
}
