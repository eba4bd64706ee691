//! The standard names of metrics and attributes, which are those of the field:
//! `docs/OBSERVATION.md` explains each.

/// Reads of a volume.
pub const READS: &str = "reads";
/// Their bytes.
pub const READ_BYTES: &str = "read_bytes";
/// Writes of a volume.
pub const WRITES: &str = "writes";
/// Their bytes.
pub const WRITE_BYTES: &str = "write_bytes";
/// Time that the medium took of requests.
pub const MEDIUM_NS: &str = "medium_ns";
/// Time that at least one request was under way.
pub const BUSY_MS: &str = "busy_ms";

/// Reads of a file, as `sys.dm_io_virtual_file_stats` has them.
pub const NUM_OF_READS: &str = "num_of_reads";
/// Their bytes.
pub const NUM_OF_BYTES_READ: &str = "num_of_bytes_read";
/// Their latency, all together.
pub const IO_STALL_READ_MS: &str = "io_stall_read_ms";
/// What of it they waited at caps.
pub const IO_STALL_QUEUED_READ_MS: &str = "io_stall_queued_read_ms";
/// Writes of a file.
pub const NUM_OF_WRITES: &str = "num_of_writes";
/// Their bytes.
pub const NUM_OF_BYTES_WRITTEN: &str = "num_of_bytes_written";
/// Their latency, all together.
pub const IO_STALL_WRITE_MS: &str = "io_stall_write_ms";
/// What of it they waited at caps.
pub const IO_STALL_QUEUED_WRITE_MS: &str = "io_stall_queued_write_ms";
/// Size of a file.
pub const SIZE_ON_DISK_BYTES: &str = "size_on_disk_bytes";

/// Batch requests of a database.
pub const BATCH_REQUESTS: &str = "batch_requests";
/// Time on schedulers.
pub const CPU_NS: &str = "cpu_ns";

/// How many waited, as `sys.dm_os_wait_stats` has it.
pub const WAITING_TASKS_COUNT: &str = "waiting_tasks_count";
/// For how long, all together.
pub const WAIT_TIME_MS: &str = "wait_time_ms";
/// What of it they waited for a processor.
pub const SIGNAL_WAIT_TIME_MS: &str = "signal_wait_time_ms";
/// The longest single wait.
pub const MAX_WAIT_TIME_MS: &str = "max_wait_time_ms";

/// The limit in operations per second, of a volume, or of a file that has one to itself.
pub const IOPS_LIMIT: &str = "iops_limit";
/// The limit in bytes per second.
pub const BYTES_PER_S_LIMIT: &str = "bytes_per_s_limit";
/// The tier.
pub const TIER: &str = "tier";
/// The size.
pub const SIZE_BYTES: &str = "size_bytes";
/// The role of a file: data, log, tempdb, backup.
pub const ROLE: &str = "role";
/// The volume or stripe that a file is on.
pub const VOLUME: &str = "volume";
/// The number of requests that a job of a benchmark keeps in flight: queue depth times threads.
pub const TARGET_QUEUE_DEPTH: &str = "target_queue_depth";
/// Schedulers.
pub const VCORES: &str = "vcores";

/// Length of the sampling interval that ends at a sample, in nanoseconds, where it is shorter than
/// the time since the sample of the entity before: what lies between the two is unknown.
pub const INTERVAL_NS: &str = "interval_ns";

/// 1 for a volume that stands for all data disks of a machine: its gauges are averages over them.
pub const ALL_DISKS: &str = "all_disks";
/// The time since which an entity was idle until its first sample, in nanoseconds from the start of
/// the observation.
pub const IDLE_SINCE_NS: &str = "idle_since_ns";

/// Bytes of a database that a backup read, or a restore wrote.
pub const BACKUP_BYTES: &str = "backup_bytes";
/// Bytes that a backup wrote to its targets.
pub const BACKUP_WRITTEN_BYTES: &str = "backup_written_bytes";
/// `backup` or `restore`.
pub const OPERATION: &str = "operation";
/// The kind of a backup: full, differential, incremental, log, file.
pub const BACKUP_TYPE: &str = "backup_type";
/// The program that makes backups.
pub const TOOL: &str = "tool";
/// The database that a backup is of.
pub const DATABASE: &str = "database";
/// Where a backup is written to, separated by semicolons.
pub const TARGETS: &str = "targets";
/// What a backup reads, separated by semicolons.
pub const SOURCES: &str = "sources";
/// Files, blobs or other devices that a backup is written to at once.
pub const STRIPES: &str = "stripes";
/// Readers of a backup.
pub const READERS: &str = "readers";
/// Buffers of a backup, of a set.
pub const BUFFER_COUNT: &str = "buffer_count";
/// Buffers that somebody has set, in place of the computed number.
pub const BUFFER_COUNT_SET: &str = "buffer_count_set";
/// Sets of buffers: three with compression.
pub const BUFFER_SETS: &str = "buffer_sets";
/// The largest transfer of a backup.
pub const MAX_TRANSFER_BYTES: &str = "max_transfer_bytes";
/// The block size of the targets.
pub const BLOCK_BYTES: &str = "block_bytes";
/// The codec of a backup, or `on`.
pub const COMPRESSION: &str = "compression";
/// Threads that compress at once.
pub const ENCODERS: &str = "encoders";
/// Its level.
pub const COMPRESSION_LEVEL: &str = "compression_level";

/// Whether a metric is an amount per second.
#[must_use]
pub fn is_rate(metric: &str) -> bool {
    metric.ends_with("_per_s")
}

/// The metric of the time waited at a cap: `wait_disk_iops_ns`.
#[must_use]
pub fn wait_ns(cap: &str) -> String {
    format!("wait_{cap}_ns")
}

/// The cap whose waiting time a metric is.
#[must_use]
pub fn cap_of(metric: &str) -> Option<&str> {
    metric.strip_prefix("wait_")?.strip_suffix("_ns")
}
