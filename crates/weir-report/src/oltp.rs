//! A database under load that ran, in virtual or wall time.
//!
//! What a file went through has the columns of SQL Server's
//! `sys.dm_io_virtual_file_stats`, what the transactions waited for the names of its
//! `sys.dm_os_wait_stats`, so that a run reads like a server.

mod tables;

use crate::backup::BackupReport;
use crate::number::float;
use crate::run::ClockName;
use serde::Serialize;
use std::collections::BTreeMap;

/// What databases under load came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OltpReport {
    /// Which clock.
    pub clock: ClockName,
    /// The seed: the same one gives the same virtual run.
    pub seed: u64,
    /// Fingerprint of every admission, in hexadecimal; of virtual runs.
    pub trace_hash: Option<String>,
    /// The databases; none where backups run alone.
    pub databases: Vec<DatabaseReport>,
    /// The backups that ran, if any did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<BackupReport>,
    /// What a reader should know of all of them.
    pub notes: Vec<String>,
}

/// What a database under load came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatabaseReport {
    /// Its name.
    pub database: String,
    /// The ready-made mix, if it was one.
    pub mix: Option<String>,
    /// Users.
    pub users: u32,
    /// What ran before anything was counted.
    pub ramp_s: f64,
    /// What was measured, after that.
    pub elapsed_s: f64,
    /// How much was done.
    pub load: LoadReport,
    /// What transactions waited for, most time first.
    pub waits: Vec<WaitReport>,
    /// The data files, and the log last.
    pub files: Vec<FileReport>,
    /// How it went over time, from the start of the run.
    pub series: Vec<LoadPoint>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// How much a database did.
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
    /// From the beginning of a transaction to its commit, on average.
    pub response_mean_ns: f64,
    /// Share of the schedulers' time that transactions computed.
    pub cpu_share: f64,
    /// Pages that transactions went through.
    pub pages_wanted: u64,
    /// Share of them that was in memory.
    pub buffer_hit_share: f64,
    /// Bytes of pages in memory at the end.
    pub buffer_bytes: u64,
    /// Bytes of pages at the end that their files have not.
    pub dirty_bytes: u64,
    /// How long a page stays in memory, at the rate at which pages go from it. Nothing
    /// if none does.
    pub page_life_s: Option<f64>,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Transactions that were given up, because the data files were full.
    pub failed: u64,
    /// How often a data file grew.
    pub growths: u64,
}

/// What transactions waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WaitReport {
    /// The name that SQL Server gives it.
    pub wait: String,
    /// How many waited.
    pub count: u64,
    /// For how long, all together.
    pub time_ns: u64,
    /// Share of the time of all waits.
    pub share: f64,
    /// For how long on average.
    pub mean_ns: f64,
}

/// What a file of the database went through. The fields up to `size_on_disk_bytes` are
/// the columns of `sys.dm_io_virtual_file_stats`, times in whole milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// `data` or `log`.
    pub role: String,
    /// The time over which this was counted.
    pub sample_ms: u64,
    /// Reads.
    pub num_of_reads: u64,
    /// Their bytes.
    pub num_of_bytes_read: u64,
    /// Their latency, all together.
    pub io_stall_read_ms: u64,
    /// What of it they waited at caps.
    pub io_stall_queued_read_ms: u64,
    /// Writes.
    pub num_of_writes: u64,
    /// Their bytes.
    pub num_of_bytes_written: u64,
    /// Their latency, all together.
    pub io_stall_write_ms: u64,
    /// What of it they waited at caps.
    pub io_stall_queued_write_ms: u64,
    /// The latency of reads and writes, all together.
    pub io_stall: u64,
    /// Size of the file.
    pub size_on_disk_bytes: u64,
    /// Mean latency of a read.
    pub read_mean_ns: f64,
    /// Mean latency of a write.
    pub write_mean_ns: f64,
    /// Time waited per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took.
    pub medium_ns: u64,
    /// In wall time, what the latency was beyond these: the machine's time. Nothing where
    /// it is not known, and in virtual time, which has no machine.
    pub machine_ns: Option<u64>,
}

/// A stretch of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Its start, in seconds from the run's.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Batch requests per second.
    pub batches_per_s: f64,
    /// Transactions per minute.
    pub transactions_per_min: f64,
    /// Share of the schedulers' time that transactions computed.
    pub cpu_share: f64,
    /// Share of wanted pages that was in memory; nothing if none was wanted.
    pub buffer_hit_share: Option<f64>,
    /// What was waited for most, by the name that SQL Server gives it.
    pub top_wait: Option<String>,
}

impl DatabaseReport {
    /// The waits of that name, if anybody waited so.
    #[must_use]
    pub fn wait(&self, name: &str) -> Option<&WaitReport> {
        self.waits.iter().find(|wait| wait.wait == name)
    }

    /// Share of all waiting for pages on their way to or from their files.
    #[must_use]
    pub fn page_io_share(&self) -> f64 {
        let pages = self.waits.iter().filter(|wait| wait.wait.starts_with("PAGEIOLATCH"));
        pages.map(|wait| wait.share).sum()
    }

    /// The mean latency of the writes to all files of a role, in nanoseconds.
    #[must_use]
    pub fn write_mean_ns(&self, role: &str) -> f64 {
        let files = || self.files.iter().filter(|file| file.role == role);
        let writes: u64 = files().map(|file| file.num_of_writes).sum();
        let time: f64 = files().map(|file| file.write_mean_ns * float(file.num_of_writes)).sum();
        if writes > 0 { time / float(writes) } else { 0.0 }
    }
}
