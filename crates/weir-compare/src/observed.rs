//! Profiles of observations: rates, latencies and waits over time, sample by sample.

use crate::profile::{
    BATCH_REQUESTS, Data, IOPS, LATENCY, Metric, Profile, RESPONSE, Subject, THROUGHPUT,
    TRANSACTIONS,
};
use crate::sequence::Sequence;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_observe::load::{Load, Loads};
use weir_observe::metric::{self, name};
use weir_observe::rates::{Track, Tracker};
use weir_observe::{Block, Contents, Counting, EntityId, EntityKind, SeriesId, view};
use weir_report::comparison::{Better, MetricUnit};
use weir_units::{Instant, Span};

/// Latency percentiles over the samples, with the least number of samples that they need.
const PERCENTILES: [(&str, f64, usize); 2] =
    [("latency p95", 0.95, 200), ("latency p99", 0.99, 1000)];

/// Percentiles that a source measured itself.
const MEASURED: [&str; 12] = [
    name::READ_LATENCY_P50_NS,
    name::READ_LATENCY_P95_NS,
    name::READ_LATENCY_P99_NS,
    name::WRITE_LATENCY_P50_NS,
    name::WRITE_LATENCY_P95_NS,
    name::WRITE_LATENCY_P99_NS,
    name::LATENCY_P50_NS,
    name::LATENCY_P95_NS,
    name::LATENCY_P99_NS,
    name::TRANSACTION_LATENCY_P50_NS,
    name::TRANSACTION_LATENCY_P95_NS,
    name::TRANSACTION_LATENCY_P99_NS,
];

/// Waits of a database that are compared, those with the most time.
const WAITS: usize = 5;

/// The load of a subject over time.
#[derive(Debug, Default)]
struct LoadOver {
    iops: Sequence,
    throughput: Sequence,
    latency: Sequence,
}

impl LoadOver {
    fn push(&mut self, load: &Load) {
        let seconds = load.seconds();
        if let Some(operations) = load.operations {
            self.iops.push(operations, seconds);
        }
        if let Some(bytes) = load.bytes {
            self.throughput.push(bytes, seconds);
        }
        if let (Some(ns), Some(operations)) = (load.ns, load.operations) {
            self.latency.push(ns, operations);
        }
    }

    fn rows(self, subject: &Subject, profile: &mut Profile) {
        let latency = Rc::new(self.latency);
        profile.add(subject, IOPS, Data::Over(Rc::new(self.iops)));
        profile.add(subject, THROUGHPUT, Data::Over(Rc::new(self.throughput)));
        profile.add(subject, LATENCY, Data::Over(Rc::clone(&latency)));
        for (name, share, least) in PERCENTILES {
            if latency.samples() >= least && latency.amount() > 0.0 {
                let metric = Metric::deciding(name, MetricUnit::Nanoseconds, Better::Lower);
                profile.add(subject, metric, Data::Percentile(Rc::clone(&latency), share));
            }
        }
    }
}

/// A quantity beside the load.
#[derive(Debug)]
struct Extra {
    entity: EntityId,
    metric: Metric,
    /// Factor to the metric's unit.
    factor: f64,
    values: Sequence,
    /// The track that it is divided by, instead of the time.
    by: Option<usize>,
    is_sql_wait: bool,
}

/// One pass over the samples of an observation.
#[derive(Debug)]
pub(crate) struct Watcher {
    loads: Loads,
    tracker: Tracker,
    own: BTreeMap<EntityId, LoadOver>,
    sums: BTreeMap<String, LoadOver>,
    extras: Vec<Extra>,
    kinds: Vec<Option<String>>,
    samples: usize,
    span: Option<(Instant, Instant)>,
}

impl Watcher {
    /// Follows the entities of `contents`.
    pub(crate) fn new(contents: &Contents) -> Self {
        let (extras, tracks) = extras(contents);
        let kind = |kind: &EntityKind| is_compared(kind).then(|| kind.name().to_owned());
        Self {
            loads: Loads::new(contents),
            tracker: Tracker::new(contents, &tracks),
            own: BTreeMap::new(),
            sums: BTreeMap::new(),
            extras,
            kinds: contents.entities.iter().map(|entity| kind(&entity.kind)).collect(),
            samples: 0,
            span: None,
        }
    }

    /// Takes samples.
    pub(crate) fn samples(&mut self, block: &Block) {
        for (at, row) in block.iter() {
            self.sample(at, row);
        }
    }

    fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        self.samples += 1;
        self.span = Some(self.span.map_or((at, at), |(first, _)| (first, at)));
        let mut sums: BTreeMap<&str, Load> = BTreeMap::new();
        let (own, kinds) = (&mut self.own, &self.kinds);
        self.loads.sample(at, row, |entity, load| {
            let Some(Some(kind)) = kinds.get(entity.0 as usize) else { return };
            own.entry(entity).or_default().push(&load);
            match sums.get_mut(kind.as_str()) {
                None => drop(sums.insert(kind, load)),
                // Sources with several intervals have no sum.
                Some(sum) if sum.from == load.from => sum.add(&load),
                Some(_) => {}
            }
        });
        for (kind, load) in sums {
            match self.sums.get_mut(kind) {
                Some(sum) => sum.push(&load),
                None => self.sums.entry(kind.to_owned()).or_default().push(&load),
            }
        }
        let mut read: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        self.tracker.sample(at, row, |track, reading| {
            read.insert(track, (reading.amount, reading.seconds()));
        });
        for (place, (amount, seconds)) in &read {
            let Some(extra) = self.extras.get_mut(*place) else { continue };
            let by = match extra.by {
                None => Some(*seconds),
                Some(by) => read.get(&by).map(|(amount, _)| *amount),
            };
            if let Some(by) = by {
                extra.values.push(amount * extra.factor, by);
            }
        }
    }

    /// Returns the metrics of all subjects, sums first.
    pub(crate) fn profile(self, contents: &Contents) -> Profile {
        let seconds = |(first, last): (Instant, Instant)| seconds(last.since(first));
        let mut profile =
            Profile { rows: Vec::new(), samples: self.samples, seconds: self.span.map(seconds) };
        let names = names(contents);
        for (kind, sum) in self.sums {
            sum.rows(&Subject::sum(&kind), &mut profile);
        }
        let mut own = self.own;
        let mut extras = self.extras;
        keep_longest_waits(&mut extras);
        for (place, name) in names.iter().enumerate() {
            let Some(Some(kind)) = self.kinds.get(place) else { continue };
            let subject = Subject::new(kind, name);
            let entity = EntityId(u32::try_from(place).unwrap_or(u32::MAX));
            if let Some(load) = own.remove(&entity) {
                load.rows(&subject, &mut profile);
            }
            for extra in extras.iter_mut().filter(|extra| extra.entity == entity) {
                let values = Rc::new(std::mem::take(&mut extra.values));
                profile.add(&subject, extra.metric.clone(), Data::Over(values));
            }
        }
        profile
    }
}

/// Returns whether entities of a kind are subjects.
const fn is_compared(kind: &EntityKind) -> bool {
    use EntityKind::{Database, File, Host, Job, Stripe, Volume};
    matches!(kind, Host | Stripe | Volume | Database | File | Job)
}

fn seconds(span: Span) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for a report, 53 bits are enough")]
    let nanos = span.nanos() as f64;
    nanos / 1e9
}

/// Returns the name of each entity, with that of its parent if another of its kind has the name.
fn names(contents: &Contents) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for entity in &contents.entities {
        *counts.entry((entity.kind.name(), &entity.name)).or_default() += 1;
    }
    let name = |entity: &weir_observe::Entity| {
        let is_unique = counts.get(&(entity.kind.name(), entity.name.as_str())) == Some(&1);
        let parent = entity.parent.and_then(|parent| contents.entity(parent));
        match parent.filter(|_| !is_unique) {
            Some(parent) => format!("{}/{}", parent.name, entity.name),
            None => entity.name.clone(),
        }
    };
    contents.entities.iter().map(name).collect()
}

/// Keeps the waits of databases with the most time.
fn keep_longest_waits(extras: &mut Vec<Extra>) {
    let mut waits: BTreeMap<EntityId, Vec<f64>> = BTreeMap::new();
    for extra in extras.iter().filter(|extra| extra.is_sql_wait) {
        waits.entry(extra.entity).or_default().push(extra.values.amount());
    }
    for times in waits.values_mut() {
        times.sort_by(|one, other| other.total_cmp(one));
    }
    extras.retain(|extra| {
        let longest = waits.get(&extra.entity).filter(|_| extra.is_sql_wait);
        let least = longest.and_then(|times| times.get(WAITS - 1)).copied().unwrap_or(0.0);
        !extra.is_sql_wait || extra.values.amount() >= least
    });
}

/// Lists the quantities beside the load, each with its track.
fn extras(contents: &Contents) -> (Vec<Extra>, Vec<Track>) {
    let mut all = Collector { contents, extras: Vec::new(), tracks: Vec::new() };
    for kind in [EntityKind::Volume, EntityKind::File] {
        for io in view::io(contents, &kind) {
            for (cap, series) in &io.waits {
                all.add(io.entity, *series, Metric::waiting(cap), 1e-9);
            }
        }
    }
    for database in view::databases(contents) {
        all.database(&database);
    }
    for (place, series) in contents.series.iter().enumerate() {
        let is_gauge = series.counting == Counting::Gauge;
        if let Some(known) = MEASURED.iter().find(|name| is_gauge && **name == series.metric) {
            let words = known.trim_end_matches("_ns").replace('_', " ");
            let metric = Metric {
                name: words.into(),
                unit: MetricUnit::Nanoseconds,
                better: Better::Lower,
                decides: true,
            };
            let id = SeriesId(u32::try_from(place).unwrap_or(u32::MAX));
            all.add(series.entity, id, metric, 1.0);
        }
    }
    (all.extras, all.tracks)
}

struct Collector<'a> {
    contents: &'a Contents,
    extras: Vec<Extra>,
    tracks: Vec<Track>,
}

impl Collector<'_> {
    fn add(&mut self, entity: EntityId, series: SeriesId, metric: Metric, factor: f64) {
        let (values, by, is_sql_wait) = (Sequence::default(), None, false);
        self.extras.push(Extra { entity, metric, factor, values, by, is_sql_wait });
        self.tracks.push(Track(vec![series]));
    }

    fn database(&mut self, database: &view::DatabaseView) {
        let entity = database.entity;
        if let Some(series) = database.batches {
            self.add(entity, series, BATCH_REQUESTS, 1.0);
        }
        let find = |metric: &str| self.contents.find(entity, metric);
        let (count, time) = (find(name::TRANSACTIONS), find(metric::name::TRANSACTION_TIME_NS));
        if let Some(count) = count {
            self.add(entity, count, TRANSACTIONS, 1.0);
            if let Some(time) = time {
                let by = Some(self.extras.len() - 1);
                self.add(entity, time, RESPONSE, 1.0);
                if let Some(last) = self.extras.last_mut() {
                    last.by = by;
                }
            }
        }
        for wait in &database.waits {
            let name = format!("waiting for {}", wait.name);
            let metric = Metric::explaining(name, MetricUnit::Requests, Better::Lower);
            self.add(entity, wait.time_ms, metric, 1e-3);
            if let Some(last) = self.extras.last_mut() {
                last.is_sql_wait = true;
            }
        }
    }
}
