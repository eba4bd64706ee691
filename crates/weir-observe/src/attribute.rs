//! The standard names of attributes; `docs/OBSERVATION.md` explains each.

/// The limit in operations per second, of a volume, or of a file that has one to itself.
pub const IOPS_LIMIT: &str = "iops_limit";
/// The limit in bytes per second.
pub const BYTES_PER_S_LIMIT: &str = "bytes_per_s_limit";
/// The tier of a volume.
pub const TIER: &str = "tier";
/// The size in bytes.
pub const SIZE_BYTES: &str = "size_bytes";
/// The role of a file: data, log, tempdb, backup.
pub const ROLE: &str = "role";
/// The volume or stripe that a file is on.
pub const VOLUME: &str = "volume";
/// Requests that a benchmark job keeps in flight: queue depth times threads.
pub const TARGET_QUEUE_DEPTH: &str = "target_queue_depth";
/// Virtual processors.
pub const VCORES: &str = "vcores";
/// 1 for a volume that stands for all data disks of a machine: its gauges are averages over them.
pub const ALL_DISKS: &str = "all_disks";
/// The time since which an entity was idle until its first sample, in nanoseconds from the start of
/// the observation.
pub const IDLE_SINCE_NS: &str = "idle_since_ns";
/// `backup` or `restore`.
pub const OPERATION: &str = "operation";
/// The kind of a backup: full, differential, incremental, log, file.
pub const BACKUP_TYPE: &str = "backup_type";
/// The program that makes backups.
pub const TOOL: &str = "tool";
/// The database that a backup is of.
pub const DATABASE: &str = "database";
/// Targets of a backup, separated by semicolons.
pub const TARGETS: &str = "targets";
/// Sources of a backup, separated by semicolons.
pub const SOURCES: &str = "sources";
/// Files, blobs or other devices written in parallel by a backup.
pub const STRIPES: &str = "stripes";
/// Readers of a backup.
pub const READERS: &str = "readers";
/// Buffers per set of a backup.
pub const BUFFER_COUNT: &str = "buffer_count";
/// Buffers set by an option, in place of the computed number.
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
/// The compression level.
pub const COMPRESSION_LEVEL: &str = "compression_level";
