//! The standard metrics with their units; `docs/OBSERVATION.md` explains each.
//!
//! Rates and means hold over the interval that ends at their sample. A metric is a [`Metric`]; its
//! name alone, for patterns, is in [`name`].

use crate::header::{Counting, EntityId, Series, Unit};

/// A standard metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Its name in files.
    pub name: &'static str,
    /// Unit of a value.
    pub unit: Quantity,
    /// True if values are running totals.
    pub is_counter: bool,
    /// Decimals kept of a value.
    pub decimals: u8,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Quantity {
    Count,
    Bytes,
    Nanoseconds,
    Milliseconds,
    /// A fraction of one.
    Share,
}

impl Metric {
    const fn new(name: &'static str, unit: Quantity, is_counter: bool, decimals: u8) -> Self {
        Self { name, unit, is_counter, decimals }
    }

    /// Returns the meaning of its values.
    #[must_use]
    pub const fn counting(&self) -> Counting {
        if self.is_counter { Counting::Cumulative } else { Counting::Gauge }
    }

    /// Returns the unit of its series.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.unit {
            Quantity::Count => Unit::Count,
            Quantity::Bytes => Unit::Bytes,
            Quantity::Nanoseconds => Unit::Nanoseconds,
            Quantity::Milliseconds => Unit::Milliseconds,
            Quantity::Share => Unit::Other("share".to_owned()),
        }
    }

    /// Returns the declaration of this metric for an entity.
    #[must_use]
    pub fn series(&self, entity: EntityId) -> Series {
        Series {
            entity,
            metric: self.name.to_owned(),
            unit: self.unit(),
            counting: self.counting(),
            scale: -i8::try_from(self.decimals).unwrap_or(0),
        }
    }

    /// Returns the integer that represents a value, or `None` if none can.
    #[must_use]
    pub fn stored(&self, value: f64) -> Option<i64> {
        const POWERS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
        let scaled = value * POWERS[usize::from(self.decimals)];
        // No real value is as large; floats are not exact there.
        if scaled.is_nan() || scaled.abs() >= 9.0e18 {
            return None;
        }
        // Rounds half away from zero like `round`, which is a library call on most machines.
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        let whole = scaled as i64;
        #[expect(clippy::cast_precision_loss, reason = "numbers with a fraction are far smaller")]
        let fraction = scaled - whole as f64;
        Some(whole + i64::from(fraction >= 0.5) - i64::from(fraction <= -0.5))
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $metric:literal $unit:ident $counting:ident $decimals:literal;)*) => {
        $($(#[$doc])* pub const $name: Metric =
            Metric::new($metric, Quantity::$unit, metrics!(@$counting), $decimals);)*
        /// All standard metrics.
        pub const ALL: &[Metric] = &[$($name),*];

        /// The names of the standard metrics, for patterns and comparisons.
        pub mod name {
            $($(#[$doc])* pub const $name: &str = super::$name.name;)*
        }
    };
    (@gauge) => { false };
    (@counter) => { true };
}

metrics! {
    /// Reads completed per second.
    READS_PER_S = "reads_per_s" Count gauge 3;
    /// Writes completed per second.
    WRITES_PER_S = "writes_per_s" Count gauge 3;
    /// Discards completed per second.
    DISCARDS_PER_S = "discards_per_s" Count gauge 3;
    /// Flushes completed per second.
    FLUSHES_PER_S = "flushes_per_s" Count gauge 3;
    /// Reads and writes, where they are not separate.
    OPERATIONS_PER_S = "operations_per_s" Count gauge 3;
    /// Bytes read per second.
    READ_BYTES_PER_S = "read_bytes_per_s" Bytes gauge 0;
    /// Bytes written per second.
    WRITE_BYTES_PER_S = "write_bytes_per_s" Bytes gauge 0;
    /// Bytes discarded per second.
    DISCARD_BYTES_PER_S = "discard_bytes_per_s" Bytes gauge 0;
    /// Bytes per second, where reads and writes are not separate.
    BYTES_PER_S = "bytes_per_s" Bytes gauge 0;
    /// The mean latency of reads.
    READ_LATENCY_NS = "read_latency_ns" Nanoseconds gauge 0;
    /// The mean latency of writes.
    WRITE_LATENCY_NS = "write_latency_ns" Nanoseconds gauge 0;
    /// The mean latency of discards.
    DISCARD_LATENCY_NS = "discard_latency_ns" Nanoseconds gauge 0;
    /// The mean latency of flushes.
    FLUSH_LATENCY_NS = "flush_latency_ns" Nanoseconds gauge 0;
    /// The mean latency of reads and writes.
    LATENCY_NS = "latency_ns" Nanoseconds gauge 0;
    /// The mean latency of reads without waits in the governor's queues.
    READ_IO_LATENCY_NS = "read_io_latency_ns" Nanoseconds gauge 0;
    /// The mean latency of writes without waits in the governor's queues.
    WRITE_IO_LATENCY_NS = "write_io_latency_ns" Nanoseconds gauge 0;
    /// The mean queue depth.
    QUEUE_DEPTH = "queue_depth" Count gauge 3;
    /// The number of in-flight requests at the time of the sample.
    QUEUE_LENGTH = "queue_length" Count gauge 0;
    /// Utilisation: the share of time with at least one request in flight.
    BUSY = "busy" Share gauge 6;
    /// The mean size of requests.
    REQUEST_BYTES = "request_bytes" Bytes gauge 0;
    /// Reads merged into other requests per second.
    READS_MERGED_PER_S = "reads_merged_per_s" Count gauge 3;
    /// Writes merged into other requests per second.
    WRITES_MERGED_PER_S = "writes_merged_per_s" Count gauge 3;

    /// The sampling interval that ends at a sample, if it does not begin at the previous one.
    INTERVAL_NS = "interval_ns" Nanoseconds gauge 0;

    /// Bytes of a database that a backup read, or a restore wrote.
    BACKUP_BYTES = "backup_bytes" Bytes gauge 0;
    /// Bytes that a backup wrote to its targets.
    BACKUP_WRITTEN_BYTES = "backup_written_bytes" Bytes gauge 0;

    /// Reads completed.
    READS = "reads" Count counter 0;
    /// Writes completed.
    WRITES = "writes" Count counter 0;
    /// Discards completed.
    DISCARDS = "discards" Count counter 0;
    /// Flushes completed.
    FLUSHES = "flushes" Count counter 0;
    /// Bytes read.
    READ_BYTES = "read_bytes" Bytes counter 0;
    /// Bytes written.
    WRITE_BYTES = "write_bytes" Bytes counter 0;
    /// Bytes discarded.
    DISCARD_BYTES = "discard_bytes" Bytes counter 0;
    /// Total latency of reads.
    IO_STALL_READ_MS = "io_stall_read_ms" Milliseconds counter 3;
    /// Total latency of writes.
    IO_STALL_WRITE_MS = "io_stall_write_ms" Milliseconds counter 3;
    /// Reads and writes completed, where they are not separate.
    OPERATIONS = "operations" Count counter 0;
    /// Bytes read and written, where they are not separate.
    BYTES = "bytes" Bytes counter 0;
    /// Total latency of reads and writes.
    IO_STALL_MS = "io_stall_ms" Milliseconds counter 3;
    /// Reads that begin where the previous request of their device ended.
    SEQUENTIAL_READS = "sequential_reads" Count counter 0;
    /// Writes that begin where the previous request of their device ended.
    SEQUENTIAL_WRITES = "sequential_writes" Count counter 0;
    /// Reads and writes that begin where the previous request of their device ended.
    SEQUENTIAL_OPERATIONS = "sequential_operations" Count counter 0;
    /// Total latency of discards.
    IO_STALL_DISCARD_MS = "io_stall_discard_ms" Milliseconds counter 3;
    /// Total latency of flushes.
    IO_STALL_FLUSH_MS = "io_stall_flush_ms" Milliseconds counter 3;
    /// Reads merged into other requests.
    READS_MERGED = "reads_merged" Count counter 0;
    /// Writes merged into other requests.
    WRITES_MERGED = "writes_merged" Count counter 0;
    /// Discards merged into other requests.
    DISCARDS_MERGED = "discards_merged" Count counter 0;
    /// Time with at least one request in flight.
    BUSY_MS = "busy_ms" Milliseconds counter 0;
    /// Total time in flight of all requests.
    QUEUED_MS = "queued_ms" Milliseconds counter 0;

    /// Reads of a file, as SQL Server counts them.
    NUM_OF_READS = "num_of_reads" Count counter 0;
    /// Bytes read from a file.
    NUM_OF_BYTES_READ = "num_of_bytes_read" Bytes counter 0;
    /// Writes of a file.
    NUM_OF_WRITES = "num_of_writes" Count counter 0;
    /// Bytes written to a file.
    NUM_OF_BYTES_WRITTEN = "num_of_bytes_written" Bytes counter 0;
    /// Time that reads waited in the governor's queues.
    IO_STALL_QUEUED_READ_MS = "io_stall_queued_read_ms" Milliseconds counter 3;
    /// Time that writes waited in the governor's queues.
    IO_STALL_QUEUED_WRITE_MS = "io_stall_queued_write_ms" Milliseconds counter 3;
    /// The size of a file.
    SIZE_ON_DISK_BYTES = "size_on_disk_bytes" Bytes gauge 0;
    /// Number of waits.
    WAITING_TASKS_COUNT = "waiting_tasks_count" Count counter 0;
    /// Total time waited.
    WAIT_TIME_MS = "wait_time_ms" Milliseconds counter 3;
    /// The part of the time waited for a processor.
    SIGNAL_WAIT_TIME_MS = "signal_wait_time_ms" Milliseconds counter 3;
    /// The longest single wait.
    MAX_WAIT_TIME_MS = "max_wait_time_ms" Milliseconds gauge 3;

    /// The share of time that processors were busy.
    CPU = "cpu" Share gauge 6;
    /// The share of time in user mode.
    CPU_USER = "cpu_user" Share gauge 6;
    /// The share of time in system mode.
    CPU_SYSTEM = "cpu_system" Share gauge 6;
    /// The share of time idle with I/O outstanding.
    CPU_IOWAIT = "cpu_iowait" Share gauge 6;
    /// The share of time taken by the hypervisor for other machines.
    CPU_STEAL = "cpu_steal" Share gauge 6;
    /// The share of time idle.
    CPU_IDLE = "cpu_idle" Share gauge 6;
    /// Runnable threads.
    RUNNABLE = "runnable" Count gauge 0;
    /// Threads that wait for I/O.
    BLOCKED = "blocked" Count gauge 0;
    /// Free memory.
    MEMORY_FREE_BYTES = "memory_free_bytes" Bytes gauge 0;
    /// Available memory.
    MEMORY_AVAILABLE_BYTES = "memory_available_bytes" Bytes gauge 0;
    /// Memory of file caches.
    MEMORY_CACHE_BYTES = "memory_cache_bytes" Bytes gauge 0;
    /// Bytes swapped in per second.
    SWAP_IN_BYTES_PER_S = "swap_in_bytes_per_s" Bytes gauge 0;
    /// Bytes swapped out per second.
    SWAP_OUT_BYTES_PER_S = "swap_out_bytes_per_s" Bytes gauge 0;

    /// Transactions per second.
    TRANSACTIONS_PER_S = "transactions_per_s" Count gauge 3;
    /// Batch requests per second.
    BATCH_REQUESTS_PER_S = "batch_requests_per_s" Count gauge 3;
    /// Bytes of log written per second.
    LOG_BYTES_PER_S = "log_bytes_per_s" Bytes gauge 0;
    /// Page life expectancy in seconds.
    PAGE_LIFE_EXPECTANCY_S = "page_life_expectancy_s" Count gauge 0;
    /// Data I/O as a share of its limit.
    DATA_IO_SHARE = "data_io_share" Share gauge 6;
    /// Log writes as a share of their limit.
    LOG_WRITE_SHARE = "log_write_share" Share gauge 6;
    /// Used memory as a share of all.
    MEMORY_SHARE = "memory_share" Share gauge 6;
    /// Users, sessions or connections.
    USERS = "users" Count gauge 0;

    /// The mean submission latency of reads.
    READ_SUBMISSION_LATENCY_NS = "read_submission_latency_ns" Nanoseconds gauge 0;
    /// The mean submission latency of writes.
    WRITE_SUBMISSION_LATENCY_NS = "write_submission_latency_ns" Nanoseconds gauge 0;
    /// The mean completion latency of reads.
    READ_COMPLETION_LATENCY_NS = "read_completion_latency_ns" Nanoseconds gauge 0;
    /// The mean completion latency of writes.
    WRITE_COMPLETION_LATENCY_NS = "write_completion_latency_ns" Nanoseconds gauge 0;
    /// The shortest latency of reads.
    READ_LATENCY_MIN_NS = "read_latency_min_ns" Nanoseconds gauge 0;
    /// The median latency of reads.
    READ_LATENCY_P50_NS = "read_latency_p50_ns" Nanoseconds gauge 0;
    /// The 90th percentile of the latency of reads.
    READ_LATENCY_P90_NS = "read_latency_p90_ns" Nanoseconds gauge 0;
    /// The 95th percentile of the latency of reads.
    READ_LATENCY_P95_NS = "read_latency_p95_ns" Nanoseconds gauge 0;
    /// The 99th percentile of the latency of reads.
    READ_LATENCY_P99_NS = "read_latency_p99_ns" Nanoseconds gauge 0;
    /// The 99.9th percentile of the latency of reads.
    READ_LATENCY_P99_9_NS = "read_latency_p99_9_ns" Nanoseconds gauge 0;
    /// The 99.99th percentile of the latency of reads.
    READ_LATENCY_P99_99_NS = "read_latency_p99_99_ns" Nanoseconds gauge 0;
    /// The 99.999th percentile of the latency of reads.
    READ_LATENCY_P99_999_NS = "read_latency_p99_999_ns" Nanoseconds gauge 0;
    /// The longest latency of reads.
    READ_LATENCY_MAX_NS = "read_latency_max_ns" Nanoseconds gauge 0;
    /// The standard deviation of the latency of reads.
    READ_LATENCY_STDDEV_NS = "read_latency_stddev_ns" Nanoseconds gauge 0;
    /// The shortest latency of writes.
    WRITE_LATENCY_MIN_NS = "write_latency_min_ns" Nanoseconds gauge 0;
    /// The median latency of writes.
    WRITE_LATENCY_P50_NS = "write_latency_p50_ns" Nanoseconds gauge 0;
    /// The 90th percentile of the latency of writes.
    WRITE_LATENCY_P90_NS = "write_latency_p90_ns" Nanoseconds gauge 0;
    /// The 95th percentile of the latency of writes.
    WRITE_LATENCY_P95_NS = "write_latency_p95_ns" Nanoseconds gauge 0;
    /// The 99th percentile of the latency of writes.
    WRITE_LATENCY_P99_NS = "write_latency_p99_ns" Nanoseconds gauge 0;
    /// The 99.9th percentile of the latency of writes.
    WRITE_LATENCY_P99_9_NS = "write_latency_p99_9_ns" Nanoseconds gauge 0;
    /// The 99.99th percentile of the latency of writes.
    WRITE_LATENCY_P99_99_NS = "write_latency_p99_99_ns" Nanoseconds gauge 0;
    /// The 99.999th percentile of the latency of writes.
    WRITE_LATENCY_P99_999_NS = "write_latency_p99_999_ns" Nanoseconds gauge 0;
    /// The longest latency of writes.
    WRITE_LATENCY_MAX_NS = "write_latency_max_ns" Nanoseconds gauge 0;
    /// The standard deviation of the latency of writes.
    WRITE_LATENCY_STDDEV_NS = "write_latency_stddev_ns" Nanoseconds gauge 0;
    /// The shortest latency of reads and writes.
    LATENCY_MIN_NS = "latency_min_ns" Nanoseconds gauge 0;
    /// The median latency of reads and writes.
    LATENCY_P50_NS = "latency_p50_ns" Nanoseconds gauge 0;
    /// The 90th percentile of the latency of reads and writes.
    LATENCY_P90_NS = "latency_p90_ns" Nanoseconds gauge 0;
    /// The 95th percentile of the latency of reads and writes.
    LATENCY_P95_NS = "latency_p95_ns" Nanoseconds gauge 0;
    /// The 99th percentile of the latency of reads and writes.
    LATENCY_P99_NS = "latency_p99_ns" Nanoseconds gauge 0;
    /// The 99.9th percentile of the latency of reads and writes.
    LATENCY_P99_9_NS = "latency_p99_9_ns" Nanoseconds gauge 0;
    /// The 99.99th percentile of the latency of reads and writes.
    LATENCY_P99_99_NS = "latency_p99_99_ns" Nanoseconds gauge 0;
    /// The 99.999th percentile of the latency of reads and writes.
    LATENCY_P99_999_NS = "latency_p99_999_ns" Nanoseconds gauge 0;
    /// The longest latency of reads and writes.
    LATENCY_MAX_NS = "latency_max_ns" Nanoseconds gauge 0;
    /// The standard deviation of the latency of reads and writes.
    LATENCY_STDDEV_NS = "latency_stddev_ns" Nanoseconds gauge 0;
    /// The shortest latency of transactions.
    TRANSACTION_LATENCY_MIN_NS = "transaction_latency_min_ns" Nanoseconds gauge 0;
    /// The median latency of transactions.
    TRANSACTION_LATENCY_P50_NS = "transaction_latency_p50_ns" Nanoseconds gauge 0;
    /// The 95th percentile of the latency of transactions.
    TRANSACTION_LATENCY_P95_NS = "transaction_latency_p95_ns" Nanoseconds gauge 0;
    /// The 99th percentile of the latency of transactions.
    TRANSACTION_LATENCY_P99_NS = "transaction_latency_p99_ns" Nanoseconds gauge 0;
    /// The longest latency of transactions.
    TRANSACTION_LATENCY_MAX_NS = "transaction_latency_max_ns" Nanoseconds gauge 0;
    /// The standard deviation of the latency of transactions.
    TRANSACTION_LATENCY_STDDEV_NS = "transaction_latency_stddev_ns" Nanoseconds gauge 0;
    /// The mean latency of transactions.
    TRANSACTION_LATENCY_NS = "transaction_latency_ns" Nanoseconds gauge 0;
    /// Transactions per second, including the time to connect.
    TRANSACTIONS_WITH_CONNECTING_PER_S = "transactions_with_connecting_per_s" Count gauge 3;
    /// New orders per second, of TPC-C and its kin.
    NEW_ORDERS_PER_S = "new_orders_per_s" Count gauge 3;
    /// Transactions done.
    TRANSACTIONS = "transactions" Count counter 0;
    /// Failed transactions.
    TRANSACTIONS_FAILED = "transactions_failed" Count counter 0;
    /// The mean size of reads.
    READ_REQUEST_BYTES = "read_request_bytes" Bytes gauge 0;
    /// The mean size of writes.
    WRITE_REQUEST_BYTES = "write_request_bytes" Bytes gauge 0;
    /// The mean queue depth of reads.
    READ_QUEUE_DEPTH = "read_queue_depth" Count gauge 3;
    /// The mean queue depth of writes.
    WRITE_QUEUE_DEPTH = "write_queue_depth" Count gauge 3;
    /// Free space of a volume.
    FREE_BYTES = "free_bytes" Bytes gauge 0;
    /// Reads throttled per second.
    READS_THROTTLED_PER_S = "reads_throttled_per_s" Count gauge 3;
    /// Writes throttled per second.
    WRITES_THROTTLED_PER_S = "writes_throttled_per_s" Count gauge 3;

    /// Flushes of the log per second.
    LOG_FLUSHES_PER_S = "log_flushes_per_s" Count gauge 3;
    /// Commits that waited for a flush of the log, per second.
    LOG_FLUSH_WAITS_PER_S = "log_flush_waits_per_s" Count gauge 3;
    /// Total time that commits waited for flushes of the log.
    LOG_FLUSH_WAIT_TIME_MS = "log_flush_wait_time_ms" Milliseconds gauge 0;
    /// Total time of log writes in the last second.
    LOG_FLUSH_WRITE_TIME_MS = "log_flush_write_time_ms" Milliseconds gauge 0;
    /// Pages read from files per second.
    PAGE_READS_PER_S = "page_reads_per_s" Count gauge 3;
    /// Pages written to files per second.
    PAGE_WRITES_PER_S = "page_writes_per_s" Count gauge 3;
    /// Pages read ahead per second.
    READAHEAD_PAGES_PER_S = "readahead_pages_per_s" Count gauge 3;
    /// Pages written by checkpoints per second.
    CHECKPOINT_PAGES_PER_S = "checkpoint_pages_per_s" Count gauge 3;
    /// Pages written by indirect checkpoints per second.
    BACKGROUND_WRITER_PAGES_PER_S = "background_writer_pages_per_s" Count gauge 3;
    /// Pages written per second to free memory.
    LAZY_WRITES_PER_S = "lazy_writes_per_s" Count gauge 3;
    /// Page lookups per second.
    PAGE_LOOKUPS_PER_S = "page_lookups_per_s" Count gauge 3;
    /// The share of page lookups served from memory.
    BUFFER_HIT_SHARE = "buffer_hit_share" Share gauge 6;
    /// Pages in memory.
    BUFFER_BYTES = "buffer_bytes" Bytes gauge 0;
    /// Memory of the database server.
    SERVER_MEMORY_BYTES = "server_memory_bytes" Bytes gauge 0;
    /// Target memory of the database server.
    SERVER_MEMORY_TARGET_BYTES = "server_memory_target_bytes" Bytes gauge 0;

    /// Operations as a share of their limit.
    IOPS_SHARE = "iops_share" Share gauge 6;
    /// The maximum of that share.
    IOPS_SHARE_MAX = "iops_share_max" Share gauge 6;
    /// Throughput as a share of its limit.
    BYTES_SHARE = "bytes_share" Share gauge 6;
    /// The maximum of that share.
    BYTES_SHARE_MAX = "bytes_share_max" Share gauge 6;
    /// Cached operations as a share of the host's limit.
    CACHED_IOPS_SHARE = "cached_iops_share" Share gauge 6;
    /// The maximum of that share.
    CACHED_IOPS_SHARE_MAX = "cached_iops_share_max" Share gauge 6;
    /// Cached throughput as a share of the host's limit.
    CACHED_BYTES_SHARE = "cached_bytes_share" Share gauge 6;
    /// The maximum of that share.
    CACHED_BYTES_SHARE_MAX = "cached_bytes_share_max" Share gauge 6;
    /// Uncached operations as a share of the host's limit.
    UNCACHED_IOPS_SHARE = "uncached_iops_share" Share gauge 6;
    /// The maximum of that share.
    UNCACHED_IOPS_SHARE_MAX = "uncached_iops_share_max" Share gauge 6;
    /// Uncached throughput as a share of the host's limit.
    UNCACHED_BYTES_SHARE = "uncached_bytes_share" Share gauge 6;
    /// The maximum of that share.
    UNCACHED_BYTES_SHARE_MAX = "uncached_bytes_share_max" Share gauge 6;
    /// The limit in operations per second.
    IOPS_LIMIT = "iops_limit" Count gauge 0;
    /// The limit in bytes per second.
    BYTES_PER_S_LIMIT = "bytes_per_s_limit" Bytes gauge 0;
    /// Burst limit in operations per second.
    BURST_IOPS_LIMIT = "burst_iops_limit" Count gauge 0;
    /// Burst limit in bytes per second.
    BURST_BYTES_PER_S_LIMIT = "burst_bytes_per_s_limit" Bytes gauge 0;
    /// The share of burst credits left, for operations.
    BURST_BALANCE = "burst_balance" Share gauge 6;
    /// The share of burst credits left, for bytes.
    BURST_BYTES_BALANCE = "burst_bytes_balance" Share gauge 6;
    /// True if demand exceeded the limit in operations: 1, or the share of time.
    IOPS_EXCEEDED = "iops_exceeded" Share gauge 6;
    /// True if demand exceeded the limit in bytes.
    BYTES_EXCEEDED = "bytes_exceeded" Share gauge 6;
    /// DTUs as a share of their limit.
    DTU_SHARE = "dtu_share" Share gauge 6;
    /// Total time waited per second.
    WAIT_MS_PER_S = "wait_ms_per_s" Milliseconds gauge 3;
    /// Workers as a share of their limit.
    WORKER_SHARE = "worker_share" Share gauge 6;
    /// Sessions as a share of their limit.
    SESSION_SHARE = "session_share" Share gauge 6;

    /// Transactions rolled back.
    TRANSACTIONS_ROLLED_BACK = "transactions_rolled_back" Count counter 0;
    /// Page lookups.
    PAGE_LOOKUPS = "page_lookups" Count counter 0;
    /// Page lookups served from memory.
    PAGE_HITS = "page_hits" Count counter 0;
    /// Page lookups that needed a read.
    PAGE_MISSES = "page_misses" Count counter 0;
    /// Pages evicted.
    PAGES_EVICTED = "pages_evicted" Count counter 0;
    /// Bytes written to temporary files.
    TEMP_BYTES = "temp_bytes" Bytes counter 0;
    /// Writes that extended files.
    EXTENDS = "extends" Count counter 0;
    /// Bytes of extending writes.
    EXTEND_BYTES = "extend_bytes" Bytes counter 0;
    /// Total latency of extending writes.
    EXTEND_TIME_MS = "extend_time_ms" Milliseconds counter 3;
    /// Total latency of flushes.
    FLUSH_TIME_MS = "flush_time_ms" Milliseconds counter 3;
    /// Checkpoints started by the timer.
    CHECKPOINTS_TIMED = "checkpoints_timed" Count counter 0;
    /// Checkpoints started on request, or because of the log's size.
    CHECKPOINTS_REQUESTED = "checkpoints_requested" Count counter 0;
    /// Time that checkpoints spent writing.
    CHECKPOINT_WRITE_TIME_MS = "checkpoint_write_time_ms" Milliseconds counter 3;
    /// Time that checkpoints waited for flushes.
    CHECKPOINT_SYNC_TIME_MS = "checkpoint_sync_time_ms" Milliseconds counter 3;
    /// Bytes that checkpoints wrote.
    CHECKPOINT_BYTES = "checkpoint_bytes" Bytes counter 0;
    /// Bytes written ahead of need by the background writer.
    CLEANED_BYTES = "cleaned_bytes" Bytes counter 0;
    /// Bytes written by sessions themselves.
    BACKEND_WRITE_BYTES = "backend_write_bytes" Bytes counter 0;
    /// Bytes allocated for pages.
    ALLOCATED_BYTES = "allocated_bytes" Bytes counter 0;
    /// Records of the log.
    WAL_RECORDS = "wal_records" Count counter 0;
    /// Bytes of the log.
    WAL_BYTES = "wal_bytes" Bytes counter 0;
    /// Writes of the log.
    WAL_WRITES = "wal_writes" Count counter 0;
    /// Flushes of the log.
    WAL_SYNCS = "wal_syncs" Count counter 0;
    /// Total latency of log writes.
    WAL_WRITE_TIME_MS = "wal_write_time_ms" Milliseconds counter 3;
    /// Total latency of log flushes.
    WAL_SYNC_TIME_MS = "wal_sync_time_ms" Milliseconds counter 3;
    /// Log writes because its buffers were full.
    WAL_BUFFERS_FULL = "wal_buffers_full" Count counter 0;

    /// Batch requests.
    BATCH_REQUESTS = "batch_requests" Count counter 0;
    /// Bytes of log written.
    LOG_BYTES = "log_bytes" Bytes counter 0;
    /// Flushes of the log.
    LOG_FLUSHES = "log_flushes" Count counter 0;
    /// Commits that waited for a flush of the log.
    LOG_FLUSH_WAITS = "log_flush_waits" Count counter 0;
    /// Pages read from files.
    PAGE_READS = "page_reads" Count counter 0;
    /// Pages written to files.
    PAGE_WRITES = "page_writes" Count counter 0;
    /// Pages read ahead.
    READAHEAD_PAGES = "readahead_pages" Count counter 0;
    /// Pages written by checkpoints.
    CHECKPOINT_PAGES = "checkpoint_pages" Count counter 0;
    /// Pages written by indirect checkpoints.
    BACKGROUND_WRITER_PAGES = "background_writer_pages" Count counter 0;
    /// Pages written to free memory.
    LAZY_WRITES = "lazy_writes" Count counter 0;
    /// The limit in bytes of log per second.
    LOG_BYTES_PER_S_LIMIT = "log_bytes_per_s_limit" Bytes gauge 0;
    /// Number of sessions or tasks waiting.
    WAITING = "waiting" Count gauge 0;
    /// Active sessions, waiting or not.
    ACTIVE_SESSIONS = "active_sessions" Count gauge 0;

    /// Service time of the medium.
    MEDIUM_NS = "medium_ns" Nanoseconds counter 0;
    /// Processor time of a database.
    CPU_NS = "cpu_ns" Nanoseconds counter 0;
    /// Operations as the disk counts them against its limit.
    COUNTED_OPERATIONS = "counted_operations" Count counter 0;
    /// Reads served by a host cache.
    CACHE_HITS = "cache_hits" Count counter 0;
    /// Write-backs of a host cache.
    WRITEBACKS = "writebacks" Count counter 0;
    /// Bytes written back by a host cache.
    WRITTEN_BACK_BYTES = "written_back_bytes" Bytes counter 0;
    /// Bytes in a host cache.
    CACHE_RESIDENT_BYTES = "cache_resident_bytes" Bytes gauge 0;
    /// Billed burst transactions.
    BURST_TRANSACTIONS = "burst_transactions" Count counter 0;
    /// Total time of transactions from begin to commit.
    TRANSACTION_TIME_NS = "transaction_time_ns" Nanoseconds counter 0;
    /// Checkpoints completed.
    CHECKPOINTS = "checkpoints" Count counter 0;
    /// Growths of data files.
    FILE_GROWTHS = "file_growths" Count counter 0;
    /// Bytes of dirty pages in memory.
    DIRTY_BYTES = "dirty_bytes" Bytes gauge 0;
    /// Total time that readers of a backup waited for a free buffer.
    BACKUP_BUFFER_WAIT_NS = "backup_buffer_wait_ns" Nanoseconds counter 0;
    /// Total time that writers of a backup waited for data.
    BACKUP_DATA_WAIT_NS = "backup_data_wait_ns" Nanoseconds counter 0;
    /// Buffers of a backup in use.
    BACKUP_BUFFERS_USED = "backup_buffers_used" Count gauge 0;
}

/// Returns the standard metric of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}

/// Returns whether a metric is an amount per second.
#[must_use]
pub fn is_rate(metric: &str) -> bool {
    metric.ends_with("_per_s")
}

/// Returns the metric of the time waited at a cap: `wait_disk_iops_ns`.
#[must_use]
pub fn wait_ns(cap: &str) -> String {
    format!("wait_{cap}_ns")
}

/// Returns the cap whose waiting time a metric is.
#[must_use]
pub fn cap_of(metric: &str) -> Option<&str> {
    metric.strip_prefix("wait_")?.strip_suffix("_ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_one_measure() {
        for (at, metric) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
    }

    #[test]
    fn values_are_stored_with_their_decimals() {
        assert_eq!(READS_PER_S.stored(1.2345), Some(1235));
        assert_eq!(READ_LATENCY_NS.stored(-2.4), Some(-2));
        assert_eq!(BUSY.stored(1.0), Some(1_000_000));
        assert_eq!(READS.stored(1e19), None);
        assert_eq!(READS.stored(f64::NAN), None);
        for value in [0.5, -0.5, 0.49999999999999994, 1.5, 2.5, -2.5, 4503599627370497.5, 8e18] {
            #[expect(clippy::cast_possible_truncation, reason = "small enough")]
            let round = f64::round(value) as i64;
            assert_eq!(READS.stored(value), Some(round), "{value}");
        }
    }
}
