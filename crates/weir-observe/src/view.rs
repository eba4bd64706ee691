//! The series of an entity by purpose: its I/O, its waits, its load. Tables, plots and rules read
//! these instead of the names of each source.

use crate::attribute;
use crate::header::{Contents, EntityId, EntityKind, SeriesId};
use crate::metric::{cap_of, name};
use crate::rates::Track;
use std::collections::BTreeMap;

/// The series of a file or volume: activity and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoView {
    /// The file or volume.
    pub entity: EntityId,
    /// Reads and writes, or the operations that count against the limit.
    pub operations: Track,
    /// Bytes read and written.
    pub bytes: Track,
    /// Total latency in milliseconds, if it is counted.
    pub stall_ms: Track,
    /// Time waited per cap, in nanoseconds.
    pub waits: Vec<(String, SeriesId)>,
    /// Service time of the medium, in nanoseconds.
    pub medium: Option<SeriesId>,
    /// Limit in operations per second.
    pub iops_limit: Option<u64>,
    /// Limit in bytes per second.
    pub bytes_per_s_limit: Option<u64>,
    /// Limit in operations per second over time, if it can change.
    pub iops_limits: Option<SeriesId>,
    /// Limit in bytes per second over time, if it can change.
    pub bytes_per_s_limits: Option<SeriesId>,
    /// Size over time.
    pub size: Option<SeriesId>,
}

/// The series of a database: activity and waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseView {
    /// The database.
    pub entity: EntityId,
    /// Batch requests.
    pub batches: Option<SeriesId>,
    /// Time on schedulers, in nanoseconds.
    pub cpu: Option<SeriesId>,
    /// Its wait types.
    pub waits: Vec<WaitView>,
}

/// The series of a wait type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitView {
    /// Its name.
    pub name: String,
    /// Number of waits.
    pub count: Option<SeriesId>,
    /// Total time waited, in milliseconds.
    pub time_ms: SeriesId,
}

/// The series of each entity by metric.
struct Index<'a>(BTreeMap<EntityId, BTreeMap<&'a str, SeriesId>>);

impl<'a> Index<'a> {
    fn new(contents: &'a Contents) -> Self {
        let mut index: BTreeMap<EntityId, BTreeMap<&str, SeriesId>> = BTreeMap::new();
        for (series, id) in contents.series.iter().zip(0..) {
            index.entry(series.entity).or_default().insert(&series.metric, SeriesId(id));
        }
        Self(index)
    }

    fn get(&self, entity: EntityId, metric: &str) -> Option<SeriesId> {
        self.0.get(&entity)?.get(metric).copied()
    }

    fn track(&self, entity: EntityId, metrics: &[&str]) -> Track {
        Track(metrics.iter().filter_map(|metric| self.get(entity, metric)).collect())
    }

    fn io(&self, contents: &Contents, entity: EntityId) -> IoView {
        let of_file = [name::NUM_OF_READS, name::NUM_OF_WRITES];
        let bytes_of_file = [name::NUM_OF_BYTES_READ, name::NUM_OF_BYTES_WRITTEN];
        let of_volume = [name::READS, name::WRITES];
        let bytes_of_volume = [name::READ_BYTES, name::WRITE_BYTES];
        let rates = [name::READS_PER_S, name::WRITES_PER_S];
        let bytes_rates = [name::READ_BYTES_PER_S, name::WRITE_BYTES_PER_S];
        let stalls = [name::IO_STALL_READ_MS, name::IO_STALL_WRITE_MS];
        // Counters are preferred to rates, and both directions to their sum.
        let first = |ways: [&[&str]; 4]| {
            let mut tracks = ways.iter().map(|way| self.track(entity, way));
            tracks.find(|track| !track.0.is_empty()).unwrap_or(Track(Vec::new()))
        };
        let own = self.0.get(&entity).into_iter().flatten();
        let limit = |name| contents.entity(entity).and_then(|entity| entity.number(name));
        IoView {
            entity,
            operations: first([&of_file, &of_volume, &rates, &[name::OPERATIONS_PER_S]]),
            bytes: first([&bytes_of_file, &bytes_of_volume, &bytes_rates, &[name::BYTES_PER_S]]),
            stall_ms: self.track(entity, &stalls),
            waits: own.filter_map(|(m, id)| Some((cap_of(m)?.to_owned(), *id))).collect(),
            medium: self.get(entity, name::MEDIUM_NS),
            iops_limit: limit(attribute::IOPS_LIMIT),
            bytes_per_s_limit: limit(attribute::BYTES_PER_S_LIMIT),
            iops_limits: self.get(entity, attribute::IOPS_LIMIT),
            bytes_per_s_limits: self.get(entity, attribute::BYTES_PER_S_LIMIT),
            size: self.get(entity, name::SIZE_ON_DISK_BYTES),
        }
    }
}

fn of_kind(contents: &Contents, kind: &EntityKind) -> Vec<EntityId> {
    let entities = contents.entities.iter().zip(0..);
    entities.filter(|(entity, _)| entity.kind == *kind).map(|(_, id)| EntityId(id)).collect()
}

/// Returns the entities of a kind that have I/O: files or volumes.
#[must_use]
pub fn io(contents: &Contents, kind: &EntityKind) -> Vec<IoView> {
    let index = Index::new(contents);
    let views = of_kind(contents, kind).into_iter().map(|entity| index.io(contents, entity));
    views.filter(|view| !view.operations.0.is_empty()).collect()
}

/// Returns the hosts whose I/O is reported as a whole, as vmstat does.
#[must_use]
pub fn hosts(contents: &Contents) -> Vec<IoView> {
    let index = Index::new(contents);
    let hosts = of_kind(contents, &EntityKind::Host).into_iter();
    let views = hosts.map(|entity| index.io(contents, entity));
    views.filter(|view| !view.operations.0.is_empty() || !view.bytes.0.is_empty()).collect()
}

/// Returns the databases and other entities with waits.
#[must_use]
pub fn databases(contents: &Contents) -> Vec<DatabaseView> {
    let index = Index::new(contents);
    let mut waits: BTreeMap<EntityId, Vec<WaitView>> = BTreeMap::new();
    for id in of_kind(contents, &EntityKind::Wait) {
        let Some(entity) = contents.entity(id) else { continue };
        let time_ms = index.get(id, name::WAIT_TIME_MS);
        if let (Some(parent), Some(time_ms)) = (entity.parent, time_ms) {
            let count = index.get(id, name::WAITING_TASKS_COUNT);
            let view = WaitView { name: entity.name.clone(), count, time_ms };
            waits.entry(parent).or_default().push(view);
        }
    }
    let mut ids = of_kind(contents, &EntityKind::Database);
    ids.extend(waits.keys());
    ids.sort_unstable();
    ids.dedup();
    let view = |entity: EntityId| DatabaseView {
        entity,
        batches: index.get(entity, name::BATCH_REQUESTS),
        cpu: index.get(entity, name::CPU_NS),
        waits: waits.remove(&entity).unwrap_or_default(),
    };
    ids.into_iter().map(view).collect()
}
