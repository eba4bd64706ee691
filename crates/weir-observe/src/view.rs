//! Which series of an entity are its I/O, its waits, its load: the standard names put
//! together, so that tables, plots and rules need not know who counts what how.

use crate::header::{Contents, EntityId, EntityKind, SeriesId};
use crate::import::measure as m;
use crate::metric::{self, cap_of};
use crate::rates::Track;
use std::collections::BTreeMap;

/// A file or volume: what it does, and what it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoView {
    /// Who.
    pub entity: EntityId,
    /// Operations: reads and writes, those of them that are counted.
    pub operations: Track,
    /// Their bytes.
    pub bytes: Track,
    /// Latency in milliseconds, all together, where it is counted.
    pub stall_ms: Track,
    /// Time waited per cap, in nanoseconds.
    pub waits: Vec<(String, SeriesId)>,
    /// Time that the medium took, in nanoseconds.
    pub medium: Option<SeriesId>,
    /// The limit in operations per second.
    pub iops_limit: Option<u64>,
    /// The limit in bytes per second.
    pub bytes_per_s_limit: Option<u64>,
    /// The same over time, where they may be others on the way.
    pub iops_limits: Option<SeriesId>,
    /// In bytes per second.
    pub bytes_per_s_limits: Option<SeriesId>,
    /// Its size over time.
    pub size: Option<SeriesId>,
}

/// A database: what it does and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseView {
    /// Who.
    pub entity: EntityId,
    /// Batch requests.
    pub batches: Option<SeriesId>,
    /// Time on schedulers, in nanoseconds.
    pub cpu: Option<SeriesId>,
    /// Its classes of waits.
    pub waits: Vec<WaitView>,
}

/// A class of waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitView {
    /// Its name.
    pub name: String,
    /// How many waited.
    pub count: Option<SeriesId>,
    /// For how long, in milliseconds.
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
        let of_file = [metric::NUM_OF_READS, metric::NUM_OF_WRITES];
        let bytes_of_file = [metric::NUM_OF_BYTES_READ, metric::NUM_OF_BYTES_WRITTEN];
        let of_volume = [metric::READS, metric::WRITES];
        let bytes_of_volume = [metric::READ_BYTES, metric::WRITE_BYTES];
        let rates = [m::READS_PER_S.metric, m::WRITES_PER_S.metric];
        let bytes_rates = [m::READ_BYTES_PER_S.metric, m::WRITE_BYTES_PER_S.metric];
        let stalls = [metric::IO_STALL_READ_MS, metric::IO_STALL_WRITE_MS];
        // Counters say more than rates, and both directions more than their sum.
        let first = |ways: [&[&str]; 4]| {
            let mut tracks = ways.iter().map(|way| self.track(entity, way));
            tracks.find(|track| !track.0.is_empty()).unwrap_or(Track(Vec::new()))
        };
        let own = self.0.get(&entity).into_iter().flatten();
        let limit = |name| contents.entity(entity).and_then(|entity| entity.number(name));
        IoView {
            entity,
            operations: first([&of_file, &of_volume, &rates, &[m::OPERATIONS_PER_S.metric]]),
            bytes: first([
                &bytes_of_file,
                &bytes_of_volume,
                &bytes_rates,
                &[m::BYTES_PER_S.metric],
            ]),
            stall_ms: self.track(entity, &stalls),
            waits: own.filter_map(|(m, id)| Some((cap_of(m)?.to_owned(), *id))).collect(),
            medium: self.get(entity, metric::MEDIUM_NS),
            iops_limit: limit(metric::IOPS_LIMIT),
            bytes_per_s_limit: limit(metric::BYTES_PER_S_LIMIT),
            iops_limits: self.get(entity, metric::IOPS_LIMIT),
            bytes_per_s_limits: self.get(entity, metric::BYTES_PER_S_LIMIT),
            size: self.get(entity, metric::SIZE_ON_DISK_BYTES),
        }
    }
}

fn of_kind(contents: &Contents, kind: &EntityKind) -> Vec<EntityId> {
    let entities = contents.entities.iter().zip(0..);
    entities.filter(|(entity, _)| entity.kind == *kind).map(|(_, id)| EntityId(id)).collect()
}

/// The entities of a kind that have I/O: files or volumes.
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

/// The databases, and others that have waits.
#[must_use]
pub fn databases(contents: &Contents) -> Vec<DatabaseView> {
    let index = Index::new(contents);
    let mut waits: BTreeMap<EntityId, Vec<WaitView>> = BTreeMap::new();
    for id in of_kind(contents, &EntityKind::Wait) {
        let Some(entity) = contents.entity(id) else { continue };
        let time_ms = index.get(id, metric::WAIT_TIME_MS);
        if let (Some(parent), Some(time_ms)) = (entity.parent, time_ms) {
            let count = index.get(id, metric::WAITING_TASKS_COUNT);
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
        batches: index.get(entity, metric::BATCH_REQUESTS),
        cpu: index.get(entity, metric::CPU_NS),
        waits: waits.remove(&entity).unwrap_or_default(),
    };
    ids.into_iter().map(view).collect()
}
