//! The samples of a run of Weir.
//!
//! A driver with either clock declares the entities once ([`Shape`]). Whenever a sample is due, it
//! passes its counters ([`Sample`]) as plain numbers in the order of the shape. Only this module
//! has names, units and the order of series, so a virtual and a wall run of one layout have the
//! same observation.

use crate::header::{Attributes, Contents, Counting, Entity, EntityId, EntityKind, Series, Unit};
use crate::{attribute, metric};

/// The entities of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// The hosts.
    pub hosts: Vec<HostShape>,
    /// The stripes.
    pub stripes: Vec<StripeShape>,
    /// The volumes.
    pub volumes: Vec<VolumeShape>,
    /// The databases.
    pub databases: Vec<DatabaseShape>,
    /// The database files.
    pub files: Vec<FileShape>,
    /// The backups.
    pub backups: Vec<BackupShape>,
}

/// A backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupShape {
    /// Its name.
    pub name: String,
    /// Its host's index.
    pub host: usize,
    /// Sources, targets, stripes and buffers.
    pub attributes: Attributes,
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostShape {
    /// Its name.
    pub name: String,
    /// Limits, size and other facts.
    pub attributes: Attributes,
    /// True if it has a cache.
    pub has_cache: bool,
}

/// A stripe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StripeShape {
    /// Its name.
    pub name: String,
    /// Its host's index.
    pub host: usize,
    /// Limits, size and other facts.
    pub attributes: Attributes,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeShape {
    /// Its name.
    pub name: String,
    /// Its host's index.
    pub host: usize,
    /// Index of the stripe that has this volume as a column.
    pub stripe: Option<usize>,
    /// Limits, size and other facts.
    pub attributes: Attributes,
    /// Caps that can throttle its requests; `None` if the driver does not know them.
    pub caps: Option<Vec<&'static str>>,
    /// Caps that can throttle the write-backs of a host cache to it, if it has one.
    pub writeback_caps: Option<Vec<&'static str>>,
    /// Limits that burst on credits.
    pub credits: Vec<&'static str>,
    /// True if bursts are billed.
    pub is_billed: bool,
    /// True if its limits can change during the run.
    pub limits_change: bool,
}

/// A database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseShape {
    /// Its name.
    pub name: String,
    /// Its host's index.
    pub host: usize,
    /// Limits, size and other facts.
    pub attributes: Attributes,
    /// Wait types, by SQL Server's names.
    pub waits: Vec<&'static str>,
}

/// A database file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileShape {
    /// Its name.
    pub name: String,
    /// The index of its database.
    pub database: usize,
    /// Limits, size and other facts.
    pub attributes: Attributes,
    /// Caps that can throttle its requests; `None` if the driver does not know them.
    pub caps: Option<Vec<&'static str>>,
    /// True if its limits can change during the run.
    pub limits_change: bool,
}

/// The limits at the time of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitsNow {
    /// Operations per second.
    pub iops: Option<u64>,
    /// Bytes per second.
    pub bytes_per_s: Option<u64>,
}

/// All counters since the start of a run, in the order of its [`Shape`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Counters per host.
    pub hosts: Vec<HostCounters>,
    /// Counters per volume.
    pub volumes: Vec<VolumeCounters>,
    /// Counters per database.
    pub databases: Vec<DatabaseCounters>,
    /// Counters per file.
    pub files: Vec<FileCounters>,
    /// Counters per backup.
    pub backups: Vec<BackupCounters>,
}

/// Counters of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackupCounters {
    /// Bytes of the sources, read so far.
    pub bytes: u64,
    /// Bytes written to the stripes.
    pub written_bytes: u64,
    /// Total time that readers waited for a free buffer.
    pub buffer_wait_ns: u64,
    /// Total time that writers waited for data.
    pub data_wait_ns: u64,
    /// Buffers in use.
    pub buffers_used: u64,
}

/// The state of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Bytes in its cache.
    pub cache_resident_bytes: u64,
}

/// Time waited per cap, in nanoseconds; only caps with waits.
pub type CapTimes = Vec<(&'static str, u64)>;

/// Counters of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Operations as the disk counted them.
    pub counted_operations: u64,
    /// Reads that the host cache served.
    pub cache_hits: u64,
    /// Time waited per cap.
    pub waits: CapTimes,
    /// Service time of the medium.
    pub medium_ns: u64,
    /// Time with at least one request in flight.
    pub busy_ns: u64,
    /// Write-backs of the host cache.
    pub writebacks: u64,
    /// Bytes written back.
    pub written_back_bytes: u64,
    /// Time that write-backs waited, per cap.
    pub writeback_waits: CapTimes,
    /// Billed burst transactions.
    pub burst_transactions: u64,
    /// Credits left, by limit.
    pub credits: Vec<(&'static str, u64)>,
    /// Its current limits.
    pub limits: LimitsNow,
}

/// Counters of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseCounters {
    /// Batch requests done.
    pub batch_requests: u64,
    /// Transactions committed.
    pub transactions: u64,
    /// Total time of transactions from begin to commit.
    pub transaction_time_ns: u64,
    /// Time on schedulers.
    pub cpu_ns: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Transactions that failed because the data files were full.
    pub transactions_failed: u64,
    /// Growths of data files.
    pub file_growths: u64,
    /// Page lookups.
    pub page_lookups: u64,
    /// Page lookups that needed a read.
    pub page_misses: u64,
    /// Pages evicted from memory.
    pub pages_evicted: u64,
    /// Bytes of pages in memory.
    pub buffer_bytes: u64,
    /// Bytes of dirty pages in memory.
    pub dirty_bytes: u64,
    /// Waits by type.
    pub waits: Vec<WaitCounters>,
}

/// Counters of a wait type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitCounters {
    /// SQL Server's name.
    pub name: &'static str,
    /// Number of waits.
    pub count: u64,
    /// Total time waited.
    pub time_ns: u64,
}

/// Counters of a file, as in `sys.dm_io_virtual_file_stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Total latency of reads.
    pub read_stall_ns: u64,
    /// The part of `read_stall_ns` spent waiting at caps.
    pub read_queued_ns: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Total latency of writes.
    pub write_stall_ns: u64,
    /// The part of `write_stall_ns` spent waiting at caps.
    pub write_queued_ns: u64,
    /// The file's size.
    pub size_bytes: u64,
    /// Time waited per cap.
    pub waits: CapTimes,
    /// Service time of the medium.
    pub medium_ns: u64,
    /// The current limits of its volume, if no other file is on it.
    pub limits: LimitsNow,
}

/// A metric that every entity of a kind has: name, unit, kind of counting, and accessor.
type Metric<T> = (&'static str, Unit, Counting, fn(&T) -> u64);

const NS_PER_MS: u64 = 1_000_000;

use Counting::{Cumulative, Gauge};
use Unit::{Bytes, Count, Milliseconds, Nanoseconds};

const OF_HOST: [Metric<HostCounters>; 1] =
    [(metric::name::CACHE_RESIDENT_BYTES, Bytes, Gauge, |c| c.cache_resident_bytes)];

const OF_VOLUME: [Metric<VolumeCounters>; 8] = [
    (metric::name::READS, Count, Cumulative, |c| c.reads),
    (metric::name::READ_BYTES, Bytes, Cumulative, |c| c.read_bytes),
    (metric::name::WRITES, Count, Cumulative, |c| c.writes),
    (metric::name::WRITE_BYTES, Bytes, Cumulative, |c| c.write_bytes),
    ("discards", Count, Cumulative, |c| c.discards),
    (metric::name::COUNTED_OPERATIONS, Count, Cumulative, |c| c.counted_operations),
    (metric::name::CACHE_HITS, Count, Cumulative, |c| c.cache_hits),
    (metric::name::BUSY_MS, Milliseconds, Cumulative, |c| c.busy_ns / NS_PER_MS),
];

const OF_WRITEBACKS: [Metric<VolumeCounters>; 2] = [
    (metric::name::WRITEBACKS, Count, Cumulative, |c| c.writebacks),
    (metric::name::WRITTEN_BACK_BYTES, Bytes, Cumulative, |c| c.written_back_bytes),
];

const OF_BILLS: [Metric<VolumeCounters>; 1] =
    [(metric::name::BURST_TRANSACTIONS, Count, Cumulative, |c| c.burst_transactions)];

const OF_DATABASE: [Metric<DatabaseCounters>; 12] = [
    (metric::name::BATCH_REQUESTS, Count, Cumulative, |c| c.batch_requests),
    ("transactions", Count, Cumulative, |c| c.transactions),
    (metric::name::TRANSACTION_TIME_NS, Nanoseconds, Cumulative, |c| c.transaction_time_ns),
    (metric::name::CPU_NS, Nanoseconds, Cumulative, |c| c.cpu_ns),
    (metric::name::CHECKPOINTS, Count, Cumulative, |c| c.checkpoints),
    ("transactions_failed", Count, Cumulative, |c| c.transactions_failed),
    (metric::name::FILE_GROWTHS, Count, Cumulative, |c| c.file_growths),
    ("page_lookups", Count, Cumulative, |c| c.page_lookups),
    ("page_misses", Count, Cumulative, |c| c.page_misses),
    ("pages_evicted", Count, Cumulative, |c| c.pages_evicted),
    ("buffer_bytes", Bytes, Gauge, |c| c.buffer_bytes),
    (metric::name::DIRTY_BYTES, Bytes, Gauge, |c| c.dirty_bytes),
];

const OF_WAIT: [Metric<WaitCounters>; 2] = [
    (metric::name::WAITING_TASKS_COUNT, Count, Cumulative, |c| c.count),
    (metric::name::WAIT_TIME_MS, Milliseconds, Cumulative, |c| c.time_ns / NS_PER_MS),
];

const OF_FILE: [Metric<FileCounters>; 9] = [
    (metric::name::NUM_OF_READS, Count, Cumulative, |c| c.reads),
    (metric::name::NUM_OF_BYTES_READ, Bytes, Cumulative, |c| c.read_bytes),
    (metric::name::IO_STALL_READ_MS, Milliseconds, Cumulative, |c| c.read_stall_ns / NS_PER_MS),
    (metric::name::IO_STALL_QUEUED_READ_MS, Milliseconds, Cumulative, |c| {
        c.read_queued_ns / NS_PER_MS
    }),
    (metric::name::NUM_OF_WRITES, Count, Cumulative, |c| c.writes),
    (metric::name::NUM_OF_BYTES_WRITTEN, Bytes, Cumulative, |c| c.write_bytes),
    (metric::name::IO_STALL_WRITE_MS, Milliseconds, Cumulative, |c| c.write_stall_ns / NS_PER_MS),
    (metric::name::IO_STALL_QUEUED_WRITE_MS, Milliseconds, Cumulative, |c| {
        c.write_queued_ns / NS_PER_MS
    }),
    (metric::name::SIZE_ON_DISK_BYTES, Bytes, Gauge, |c| c.size_bytes),
];

const OF_BACKUP: [Metric<BackupCounters>; 5] = [
    (metric::name::BACKUP_BYTES, Bytes, Cumulative, |c| c.bytes),
    (metric::name::BACKUP_WRITTEN_BYTES, Bytes, Cumulative, |c| c.written_bytes),
    (metric::name::BACKUP_BUFFER_WAIT_NS, Nanoseconds, Cumulative, |c| c.buffer_wait_ns),
    (metric::name::BACKUP_DATA_WAIT_NS, Nanoseconds, Cumulative, |c| c.data_wait_ns),
    (metric::name::BACKUP_BUFFERS_USED, Count, Gauge, |c| c.buffers_used),
];

impl Shape {
    /// Returns the entities and series of the run.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let mut contents = Declaring(Contents::default());
        let hosts: Vec<EntityId> = self
            .hosts
            .iter()
            .map(|host| {
                let id = contents.entity(EntityKind::Host, &host.name, None, &host.attributes);
                contents.metrics(id, if host.has_cache { &OF_HOST } else { &[] });
                id
            })
            .collect();
        let mut stripes = Vec::new();
        for stripe in &self.stripes {
            let host = hosts.get(stripe.host).copied();
            let (name, attributes) = (&stripe.name, &stripe.attributes);
            stripes.push(contents.entity(EntityKind::Stripe, name, host, attributes));
        }
        for volume in &self.volumes {
            let stripe = volume.stripe.and_then(|stripe| stripes.get(stripe));
            contents.volume(volume, stripe.or(hosts.get(volume.host)).copied());
        }
        let mut databases = Vec::new();
        for database in &self.databases {
            databases.push(contents.database(database, hosts.get(database.host).copied()));
        }
        for file in &self.files {
            let database = databases.get(file.database).copied();
            let (name, attributes) = (&file.name, &file.attributes);
            let id = contents.entity(EntityKind::File, name, database, attributes);
            contents.metrics(id, &OF_FILE);
            contents.waits(id, file.caps.as_deref());
            contents.limits(id, file.limits_change);
        }
        for backup in &self.backups {
            let host = hosts.get(backup.host).copied();
            let (name, attributes) = (&backup.name, &backup.attributes);
            let id = contents.entity(EntityKind::Backup, name, host, attributes);
            contents.metrics(id, &OF_BACKUP);
        }
        contents.0
    }

    /// Writes the values of a sample into `row`, in the order of the series of
    /// [`contents`](Self::contents).
    pub fn row(&self, sample: &Sample, row: &mut Vec<Option<i64>>) {
        row.clear();
        for (host, counted) in self.hosts.iter().zip(&sample.hosts) {
            values(row, counted, if host.has_cache { &OF_HOST } else { &[] });
        }
        for (volume, counted) in self.volumes.iter().zip(&sample.volumes) {
            values(row, counted, &OF_VOLUME);
            waits(row, volume.caps.as_deref(), &counted.waits, counted.medium_ns);
            if let Some(caps) = &volume.writeback_caps {
                values(row, counted, &OF_WRITEBACKS);
                row.extend(caps.iter().map(|cap| value(time_at(&counted.writeback_waits, cap))));
            }
            values(row, counted, if volume.is_billed { &OF_BILLS } else { &[] });
            row.extend(volume.credits.iter().map(|limit| value(time_at(&counted.credits, limit))));
            limits(row, volume.limits_change, &counted.limits);
        }
        for (database, counted) in self.databases.iter().zip(&sample.databases) {
            values(row, counted, &OF_DATABASE);
            for name in &database.waits {
                let found = counted.waits.iter().find(|wait| wait.name == *name);
                values(row, &found.copied().unwrap_or_default(), &OF_WAIT);
            }
        }
        for (file, counted) in self.files.iter().zip(&sample.files) {
            values(row, counted, &OF_FILE);
            waits(row, file.caps.as_deref(), &counted.waits, counted.medium_ns);
            limits(row, file.limits_change, &counted.limits);
        }
        for (_, counted) in self.backups.iter().zip(&sample.backups) {
            values(row, counted, &OF_BACKUP);
        }
    }
}

struct Declaring(Contents);

impl Declaring {
    fn entity(
        &mut self,
        kind: EntityKind,
        name: &str,
        parent: Option<EntityId>,
        attributes: &Attributes,
    ) -> EntityId {
        let (name, attributes) = (name.to_owned(), attributes.clone());
        self.0.add_entity(Entity { kind, name, parent, attributes })
    }

    fn series(&mut self, entity: EntityId, metric: String, unit: Unit, counting: Counting) {
        self.0.add_series(Series { entity, metric, unit, counting, scale: 0 });
    }

    fn metrics<T>(&mut self, entity: EntityId, metrics: &[Metric<T>]) {
        for (name, unit, counting, _) in metrics {
            self.series(entity, (*name).to_owned(), unit.clone(), *counting);
        }
    }

    /// Declares the waits per cap and the time of the medium, where the driver knows them.
    fn waits(&mut self, entity: EntityId, caps: Option<&[&'static str]>) {
        let Some(caps) = caps else { return };
        for cap in caps {
            self.series(entity, metric::wait_ns(cap), Nanoseconds, Cumulative);
        }
        self.series(entity, metric::name::MEDIUM_NS.to_owned(), Nanoseconds, Cumulative);
    }

    fn volume(&mut self, volume: &VolumeShape, parent: Option<EntityId>) {
        let id = self.entity(EntityKind::Volume, &volume.name, parent, &volume.attributes);
        self.metrics(id, &OF_VOLUME);
        self.waits(id, volume.caps.as_deref());
        if let Some(caps) = &volume.writeback_caps {
            self.metrics(id, &OF_WRITEBACKS);
            for cap in caps {
                self.series(
                    id,
                    format!("writeback_{}", metric::wait_ns(cap)),
                    Nanoseconds,
                    Cumulative,
                );
            }
        }
        self.metrics(id, if volume.is_billed { &OF_BILLS } else { &[] });
        for limit in &volume.credits {
            self.series(id, format!("credits_{limit}"), Count, Gauge);
        }
        self.limits(id, volume.limits_change);
    }

    /// Declares limits that can change, under the names of their attributes.
    fn limits(&mut self, entity: EntityId, change: bool) {
        if change {
            self.series(entity, attribute::IOPS_LIMIT.to_owned(), Count, Gauge);
            self.series(entity, attribute::BYTES_PER_S_LIMIT.to_owned(), Bytes, Gauge);
        }
    }

    fn database(&mut self, database: &DatabaseShape, host: Option<EntityId>) -> EntityId {
        let (name, attributes) = (&database.name, &database.attributes);
        let id = self.entity(EntityKind::Database, name, host, attributes);
        self.metrics(id, &OF_DATABASE);
        for name in &database.waits {
            let wait = self.entity(EntityKind::Wait, name, Some(id), &Attributes::new());
            self.metrics(wait, &OF_WAIT);
        }
        id
    }
}

fn limits(row: &mut Vec<Option<i64>>, change: bool, now: &LimitsNow) {
    if change {
        row.extend([now.iops, now.bytes_per_s].map(|limit| limit.and_then(value)));
    }
}

fn value(n: u64) -> Option<i64> {
    Some(i64::try_from(n).unwrap_or(i64::MAX))
}

fn values<T>(row: &mut Vec<Option<i64>>, counted: &T, metrics: &[Metric<T>]) {
    row.extend(metrics.iter().map(|(.., get)| value(get(counted))));
}

fn time_at(times: &[(&'static str, u64)], name: &str) -> u64 {
    times.iter().find(|(known, _)| *known == name).map_or(0, |(_, time)| *time)
}

fn waits(row: &mut Vec<Option<i64>>, caps: Option<&[&str]>, times: &CapTimes, medium_ns: u64) {
    let Some(caps) = caps else { return };
    debug_assert!(
        times.iter().all(|(cap, _)| caps.contains(cap)),
        "{times:?} has a cap that the shape has not: {caps:?}"
    );
    row.extend(caps.iter().map(|cap| value(time_at(times, cap))));
    row.push(value(medium_ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_every_series() {
        let caps = || Some(vec!["disk_iops", "disk_bytes"]);
        let shape = Shape {
            hosts: vec![HostShape { name: "h".into(), has_cache: true, ..HostShape::default() }],
            stripes: vec![StripeShape { name: "s".into(), ..StripeShape::default() }],
            volumes: vec![
                VolumeShape { name: "plain".into(), ..VolumeShape::default() },
                VolumeShape {
                    name: "full".into(),
                    stripe: Some(0),
                    caps: caps(),
                    writeback_caps: caps(),
                    credits: vec!["disk_iops"],
                    is_billed: true,
                    ..VolumeShape::default()
                },
            ],
            databases: vec![DatabaseShape {
                name: "d".into(),
                waits: vec!["WRITELOG"],
                ..DatabaseShape::default()
            }],
            files: vec![FileShape { name: "f".into(), caps: caps(), ..FileShape::default() }],
            backups: vec![BackupShape { name: "b".into(), ..BackupShape::default() }],
        };
        let full = VolumeCounters {
            waits: vec![("disk_bytes", 11)],
            writeback_waits: vec![("disk_iops", 12)],
            credits: vec![("disk_iops", 13)],
            burst_transactions: 14,
            ..VolumeCounters::default()
        };
        let wait = WaitCounters { name: "WRITELOG", count: 2, time_ns: 3_999_999 };
        let file = FileCounters {
            read_stall_ns: 7_000_000,
            waits: vec![("disk_iops", 15)],
            medium_ns: 16,
            ..FileCounters::default()
        };
        let sample = Sample {
            hosts: vec![HostCounters { cache_resident_bytes: 17 }],
            volumes: vec![VolumeCounters { reads: 18, ..VolumeCounters::default() }, full],
            databases: vec![DatabaseCounters { waits: vec![wait], ..DatabaseCounters::default() }],
            files: vec![file],
            backups: vec![BackupCounters { written_bytes: 19, ..BackupCounters::default() }],
        };
        let contents = shape.contents();
        assert_eq!(contents.check(), Ok(()));
        let mut row = Vec::new();
        shape.row(&sample, &mut row);
        assert_eq!(row.len(), contents.series.len());
        let named = |at: usize| {
            let series = &contents.series[at];
            let entity = contents.entity(series.entity).expect("an entity");
            format!("{}.{}", entity.name, series.metric)
        };
        let set: Vec<_> = (0..row.len()).filter(|at| row[*at] != Some(0)).collect();
        let set: Vec<_> = set.iter().map(|at| (named(*at), row[*at].unwrap_or(-1))).collect();
        let expect = [
            ("h.cache_resident_bytes", 17),
            ("plain.reads", 18),
            ("full.wait_disk_bytes_ns", 11),
            ("full.writeback_wait_disk_iops_ns", 12),
            ("full.burst_transactions", 14),
            ("full.credits_disk_iops", 13),
            ("WRITELOG.waiting_tasks_count", 2),
            ("WRITELOG.wait_time_ms", 3),
            ("f.io_stall_read_ms", 7),
            ("f.wait_disk_iops_ns", 15),
            ("f.medium_ns", 16),
            ("b.backup_written_bytes", 19),
        ];
        assert_eq!(set, expect.map(|(name, value)| (name.to_owned(), value)));
    }
}
