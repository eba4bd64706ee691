//! A database under load that ran, in virtual or wall time.
//!
//! File figures have the columns of SQL Server's `sys.dm_io_virtual_file_stats`, and waits the names
//! of `sys.dm_os_wait_stats`, so that a run can be compared with a server.

mod tables;

use crate::backup::BackupReport;
use crate::number::float;
use crate::run::ClockName;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of databases under load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OltpReport {
    /// The clock.
    pub clock: ClockName,
    /// The seed. It determines a virtual run.
    pub seed: u64,
    /// Hash of all admissions, in hexadecimal; virtual runs only.
    pub trace_hash: Option<String>,
    /// The databases; none if backups run alone.
    pub databases: Vec<DatabaseReport>,
    /// The backups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<BackupReport>,
    /// The cost of the backups to each database, in virtual time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostReport>,
    /// Notes on all databases.
    pub notes: Vec<String>,
}

/// A database alone, and beside backups.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CostReport {
    /// Name.
    pub database: String,
    /// Transactions per minute without the backups.
    pub transactions_per_min_alone: f64,
    /// Transactions per minute beside them.
    pub transactions_per_min: f64,
    /// Mean response time without the backups.
    pub response_mean_alone_ns: f64,
    /// Mean response time beside them.
    pub response_mean_ns: f64,
    /// The share of its transactions that the backups cost it.
    pub throughput_loss: f64,
    /// The share by which its transactions take longer.
    pub response_increase: f64,
}

impl CostReport {
    /// Compares runs of the same databases, alone and beside backups.
    #[must_use]
    pub fn between(alone: &OltpReport, beside: &OltpReport) -> Vec<Self> {
        let part = |own: f64| if own.is_finite() { own } else { 0.0 };
        let of = |(alone, beside): (&DatabaseReport, &DatabaseReport)| Self {
            database: beside.database.clone(),
            transactions_per_min_alone: alone.load.transactions_per_min,
            transactions_per_min: beside.load.transactions_per_min,
            response_mean_alone_ns: alone.load.response_mean_ns,
            response_mean_ns: beside.load.response_mean_ns,
            throughput_loss: part(
                1.0 - beside.load.transactions_per_min / alone.load.transactions_per_min,
            ),
            response_increase: part(
                beside.load.response_mean_ns / alone.load.response_mean_ns - 1.0,
            ),
        };
        alone.databases.iter().zip(&beside.databases).map(of).collect()
    }
}

/// The result of a database under load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatabaseReport {
    /// Name.
    pub database: String,
    /// Name of a built-in mix.
    pub mix: Option<String>,
    /// Users.
    pub users: u32,
    /// Ramp-up time before the measurement.
    pub ramp_s: f64,
    /// Measured time after the ramp-up.
    pub elapsed_s: f64,
    /// The load.
    pub load: LoadReport,
    /// Waits of transactions, by time.
    pub waits: Vec<WaitReport>,
    /// The data files, and the log last.
    pub files: Vec<FileReport>,
    /// The run over time, from its start.
    pub series: Vec<LoadPoint>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The load of a database.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadReport {
    /// Batch requests.
    pub batches: u64,
    /// Batch requests per second.
    pub batches_per_s: f64,
    /// Transactions.
    pub transactions: u64,
    /// Transactions per minute.
    pub transactions_per_min: f64,
    /// Mean time from the start of a transaction to its commit.
    pub response_mean_ns: f64,
    /// Utilisation of the schedulers.
    pub cpu_share: f64,
    /// Page lookups.
    pub pages_wanted: u64,
    /// Buffer hit rate.
    pub buffer_hit_share: f64,
    /// Bytes of pages in memory at the end.
    pub buffer_bytes: u64,
    /// Bytes of dirty pages at the end.
    pub dirty_bytes: u64,
    /// Page life expectancy at the present eviction rate; `None` if no page is evicted.
    pub page_life_s: Option<f64>,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Transactions that failed because the data files were full.
    pub failed: u64,
    /// Number of file growths.
    pub growths: u64,
}

/// A wait type of transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WaitReport {
    /// Name in SQL Server.
    pub wait: String,
    /// Number of waits.
    pub count: u64,
    /// Total wait time.
    pub time_ns: u64,
    /// Share of all wait time.
    pub share: f64,
    /// Mean wait time.
    pub mean_ns: f64,
}

/// The I/O of a database file. The fields up to `size_on_disk_bytes` are the columns of
/// `sys.dm_io_virtual_file_stats`, with times in whole milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileReport {
    /// Name.
    pub file: String,
    /// `data` or `log`.
    pub role: String,
    /// Counting time.
    pub sample_ms: u64,
    /// Reads.
    pub num_of_reads: u64,
    /// Bytes of these operations.
    pub num_of_bytes_read: u64,
    /// Total latency.
    pub io_stall_read_ms: u64,
    /// Wait time at limits, part of the latency.
    pub io_stall_queued_read_ms: u64,
    /// Writes.
    pub num_of_writes: u64,
    /// Bytes of these operations.
    pub num_of_bytes_written: u64,
    /// Total latency.
    pub io_stall_write_ms: u64,
    /// Wait time at limits, part of the latency.
    pub io_stall_queued_write_ms: u64,
    /// Total latency of reads and writes.
    pub io_stall: u64,
    /// Size of the file.
    pub size_on_disk_bytes: u64,
    /// Mean latency of a read.
    pub read_mean_ns: f64,
    /// Mean latency of a write.
    pub write_mean_ns: f64,
    /// Wait time at each limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium.
    pub medium_ns: u64,
    /// Latency beyond wait time and medium, caused by the machine; `None` if unknown and in virtual
    /// time.
    pub machine_ns: Option<u64>,
}

/// A time span of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Start, in seconds from the start of the run.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Batch requests per second.
    pub batches_per_s: f64,
    /// Transactions per minute.
    pub transactions_per_min: f64,
    /// Utilisation of the schedulers.
    pub cpu_share: f64,
    /// Buffer hit rate; `None` without lookups.
    pub buffer_hit_share: Option<f64>,
    /// Wait type with the longest time.
    pub top_wait: Option<String>,
}

impl DatabaseReport {
    /// Returns the waits of a name, if any.
    #[must_use]
    pub fn wait(&self, name: &str) -> Option<&WaitReport> {
        self.waits.iter().find(|wait| wait.wait == name)
    }

    /// Returns the mean latency of writes to all files of a role, in nanoseconds.
    #[must_use]
    pub fn write_mean_ns(&self, role: &str) -> f64 {
        let files = || self.files.iter().filter(|file| file.role == role);
        let writes: u64 = files().map(|file| file.num_of_writes).sum();
        let time: f64 = files().map(|file| file.write_mean_ns * float(file.num_of_writes)).sum();
        if writes > 0 { time / float(writes) } else { 0.0 }
    }
}
