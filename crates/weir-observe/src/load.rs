//! The load of an entity between two samples, independent of how its source counts.
//!
//! SQL Server counts stalls since its start, iostat prints rates and mean latencies, Weir counts
//! nanoseconds per cap. A [`Loads`] converts all of them to operations, bytes and latencies of an
//! entity in an interval. Figures that its source lacks are derived from others where that is
//! exact, and are otherwise unknown.

use crate::attribute;
use crate::header::{Contents, EntityId, EntityKind, SeriesId};
use crate::metric::{self as m, Metric, name};
use std::collections::{BTreeMap, HashMap};
use weir_units::{Instant, Span};

/// The load of an entity from one sample to the next. Counts and times are totals of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Start of the interval.
    pub from: Instant,
    /// End of the interval.
    pub to: Instant,
    /// Reads.
    pub reads: Option<f64>,
    /// Writes.
    pub writes: Option<f64>,
    /// Reads and writes.
    pub operations: Option<f64>,
    /// Bytes read.
    pub read_bytes: Option<f64>,
    /// Bytes written.
    pub write_bytes: Option<f64>,
    /// Bytes read and written.
    pub bytes: Option<f64>,
    /// Total latency of reads, in nanoseconds.
    pub read_ns: Option<f64>,
    /// Total latency of writes, in nanoseconds.
    pub write_ns: Option<f64>,
    /// Total latency of reads and writes, in nanoseconds.
    pub ns: Option<f64>,
    /// The part of `read_ns` spent waiting at caps.
    pub queued_read_ns: Option<f64>,
    /// The part of `write_ns` spent waiting at caps.
    pub queued_write_ns: Option<f64>,
    /// Total latency of reads without waits at caps.
    pub read_io_ns: Option<f64>,
    /// Total latency of writes without waits at caps.
    pub write_io_ns: Option<f64>,
    /// Reads that a host cache served.
    pub hits: Option<f64>,
    /// Operations as the disk counts them against its limit.
    pub counted: Option<f64>,
    /// Operations that began where the one before had ended.
    pub sequential: Option<f64>,
    /// Mean queue depth.
    pub depth: Option<f64>,
    /// Time with at least one request in flight, in nanoseconds.
    pub busy_ns: Option<f64>,
}

impl Load {
    /// Returns the length of the interval in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        seconds(self.to - self.from)
    }

    /// Returns operations per second.
    #[must_use]
    pub fn iops(&self) -> Option<f64> {
        Some(self.operations? / self.seconds())
    }

    /// Returns bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> Option<f64> {
        Some(self.bytes? / self.seconds())
    }

    /// Returns the mean latency in nanoseconds, or `None` without operations.
    #[must_use]
    pub fn latency_ns(&self) -> Option<f64> {
        mean(self.ns, self.operations)
    }

    /// Returns the share of operations that are reads.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        mean(self.reads, self.operations)
    }

    /// Returns the utilisation: the share of time with at least one request in flight.
    #[must_use]
    pub fn busy(&self) -> Option<f64> {
        Some(self.busy_ns? / 1e9 / self.seconds())
    }

    /// Returns the mean number of in-flight operations while there are any.
    #[must_use]
    pub fn at_once(&self) -> Option<f64> {
        mean(self.ns, self.busy_ns)
    }

    /// Derives unknown figures from known ones.
    fn complete(&mut self) {
        self.operations = self.operations.or(sum(self.reads, self.writes));
        self.bytes = self.bytes.or(sum(self.read_bytes, self.write_bytes));
        // A source omits the latency of requests if it saw none.
        if self.read_ns.is_some() && self.writes == Some(0.0) {
            self.write_ns.get_or_insert(0.0);
        } else if self.write_ns.is_some() && self.reads == Some(0.0) {
            self.read_ns.get_or_insert(0.0);
        }
        self.ns = self.ns.or(sum(self.read_ns, self.write_ns));
        let read = queue_ns(self.read_ns, self.read_io_ns, self.reads);
        let write = queue_ns(self.write_ns, self.write_io_ns, self.writes);
        self.queued_read_ns = self.queued_read_ns.or(read);
        self.queued_write_ns = self.queued_write_ns.or(write);
        self.read_io_ns = self.read_io_ns.or(difference(self.read_ns, self.queued_read_ns));
        self.write_io_ns = self.write_io_ns.or(difference(self.write_ns, self.queued_write_ns));
        // Little's law: the mean queue depth is the total latency divided by the length of the
        // interval.
        self.ns = self.ns.or(self.depth.map(|depth| depth * 1e9 * self.seconds()));
        self.depth = self.depth.or(self.ns.map(|ns| ns / 1e9 / self.seconds()));
    }

    /// Adds the load of another entity in the same interval. A figure that either lacks is
    /// unknown.
    pub fn add(&mut self, other: &Self) {
        self.reads = sum(self.reads, other.reads);
        self.writes = sum(self.writes, other.writes);
        self.operations = sum(self.operations, other.operations);
        self.read_bytes = sum(self.read_bytes, other.read_bytes);
        self.write_bytes = sum(self.write_bytes, other.write_bytes);
        self.bytes = sum(self.bytes, other.bytes);
        self.read_ns = sum(self.read_ns, other.read_ns);
        self.write_ns = sum(self.write_ns, other.write_ns);
        self.ns = sum(self.ns, other.ns);
        self.queued_read_ns = sum(self.queued_read_ns, other.queued_read_ns);
        self.queued_write_ns = sum(self.queued_write_ns, other.queued_write_ns);
        self.read_io_ns = sum(self.read_io_ns, other.read_io_ns);
        self.write_io_ns = sum(self.write_io_ns, other.write_io_ns);
        self.hits = sum(self.hits, other.hits);
        self.counted = sum(self.counted, other.counted);
        self.sequential = sum(self.sequential, other.sequential);
        self.depth = sum(self.depth, other.depth);
        // The overlap of the two busy times is unknown.
        self.busy_ns = None;
    }
}

/// qpi divides whole milliseconds by whole counts, so the mean I/O time may be too small by this
/// much.
const IO_CUT_NS: f64 = 1e6;

/// Returns the queue time: the latency without the I/O time. A difference within the rounding of
/// the I/O time is no queue time.
fn queue_ns(all: Option<f64>, io: Option<f64>, count: Option<f64>) -> Option<f64> {
    Some((all? - io? - count? * IO_CUT_NS).max(0.0))
}

fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? + other?)
}

fn difference(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? - other?)
}

/// Divides a total by a count; `None` without a count.
#[must_use]
pub fn mean(total: Option<f64>, count: Option<f64>) -> Option<f64> {
    Some(total? / count.filter(|count| *count > 0.0)?)
}

fn seconds(span: Span) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
    let nanos = span.nanos() as f64;
    nanos / 1e9
}

type Field = fn(&mut Load) -> &mut Option<f64>;

/// A rule that computes a field from series.
#[derive(Debug, Clone)]
enum Way {
    /// The growth of a counter.
    Counter(SeriesId, f64),
    /// The sum of the growth of several counters.
    Counters(Vec<SeriesId>),
    /// A rate times the length of the interval.
    Rate(SeriesId, f64),
    /// The value itself.
    Level(SeriesId, f64),
    /// A mean times rates times the length of the interval.
    Mean(SeriesId, f64, Vec<(SeriesId, f64)>),
}

impl Way {
    fn is_counter(&self) -> bool {
        matches!(self, Self::Counter(..) | Self::Counters(_))
    }
}

/// The metrics that can supply a field, best first, each with its factor to the field's unit.
struct Names(Field, &'static [(&'static str, f64)]);

const MS: f64 = 1e6;

const COUNTED: &[Names] = &[
    Names(|load| &mut load.reads, &[(name::NUM_OF_READS, 1.0), (name::READS, 1.0)]),
    Names(|load| &mut load.writes, &[(name::NUM_OF_WRITES, 1.0), (name::WRITES, 1.0)]),
    Names(|load| &mut load.read_bytes, &[(name::NUM_OF_BYTES_READ, 1.0), (name::READ_BYTES, 1.0)]),
    Names(
        |load| &mut load.write_bytes,
        &[(name::NUM_OF_BYTES_WRITTEN, 1.0), (name::WRITE_BYTES, 1.0)],
    ),
    Names(|load| &mut load.read_ns, &[(name::IO_STALL_READ_MS, MS)]),
    Names(|load| &mut load.write_ns, &[(name::IO_STALL_WRITE_MS, MS)]),
    Names(|load| &mut load.ns, &[("io_stall_ms", MS)]),
    Names(|load| &mut load.queued_read_ns, &[(name::IO_STALL_QUEUED_READ_MS, MS)]),
    Names(|load| &mut load.queued_write_ns, &[(name::IO_STALL_QUEUED_WRITE_MS, MS)]),
    Names(|load| &mut load.hits, &[("cache_hits", 1.0)]),
    Names(|load| &mut load.counted, &[("counted_operations", 1.0)]),
    Names(|load| &mut load.sequential, &[("sequential_operations", 1.0)]),
    Names(|load| &mut load.operations, &[("operations", 1.0)]),
    Names(|load| &mut load.bytes, &[("bytes", 1.0)]),
];

const RATES: &[(Field, Metric)] = &[
    (|load| &mut load.reads, m::READS_PER_S),
    (|load| &mut load.writes, m::WRITES_PER_S),
    (|load| &mut load.operations, m::OPERATIONS_PER_S),
    (|load| &mut load.read_bytes, m::READ_BYTES_PER_S),
    (|load| &mut load.write_bytes, m::WRITE_BYTES_PER_S),
    (|load| &mut load.bytes, m::BYTES_PER_S),
];

/// Means, each with alternative sets of rates that it is a mean over; the first complete set is
/// used.
const MEANS: &[(Field, Metric, &[&[Metric]])] = &[
    (|load| &mut load.read_ns, m::READ_LATENCY_NS, &[&[m::READS_PER_S]]),
    (|load| &mut load.write_ns, m::WRITE_LATENCY_NS, &[&[m::WRITES_PER_S]]),
    (|load| &mut load.read_io_ns, m::READ_IO_LATENCY_NS, &[&[m::READS_PER_S]]),
    (|load| &mut load.write_io_ns, m::WRITE_IO_LATENCY_NS, &[&[m::WRITES_PER_S]]),
    (
        |load| &mut load.ns,
        m::LATENCY_NS,
        &[&[m::OPERATIONS_PER_S], &[m::READS_PER_S, m::WRITES_PER_S]],
    ),
];

const LEVELS: &[(Field, Metric)] = &[(|load| &mut load.depth, m::QUEUE_DEPTH)];

/// An entity with its rules and their last values.
struct Followed {
    entity: EntityId,
    ways: Vec<(Field, Way)>,
    /// Series of the length of the sampling interval, if it is recorded.
    interval: Option<SeriesId>,
    /// End of a known idle time before the first sample.
    idle_until: Option<Instant>,
    /// Time of the last sample with values.
    last: Option<Instant>,
    /// Values at `last`, one per rule, and room for those of the current sample.
    before: Vec<Option<i64>>,
    now: Vec<Option<i64>>,
}

/// The loads of all entities with I/O, computed sample by sample.
#[derive(Default)]
pub struct Loads {
    followed: Vec<Followed>,
    before: Option<Instant>,
    restarts: u64,
}

impl std::fmt::Debug for Loads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loads").field("followed", &self.followed.len()).finish_non_exhaustive()
    }
}

impl Loads {
    /// Creates a follower for every entity in `contents` with known operations.
    #[must_use]
    pub fn new(contents: &Contents) -> Self {
        let mut series: BTreeMap<EntityId, HashMap<&str, (SeriesId, f64)>> = BTreeMap::new();
        for (own, id) in contents.series.iter().zip(0..) {
            let scale = 10_f64.powi(i32::from(own.scale));
            let known = series.entry(own.entity).or_default();
            known.insert(&own.metric, (SeriesId(id), scale));
        }
        let followed = series.into_iter().filter_map(|(entity, known)| {
            // The counters of a benchmark result start at zero with its run and appear in one
            // sample.
            let is_job = contents.entity(entity)?.kind == EntityKind::Job;
            let ways = ways_of(&known, !is_job);
            let has_load = ways.iter().any(|(_, way)| !matches!(way, Way::Level(..)));
            let idle_since = contents.entity(entity)?.number(attribute::IDLE_SINCE_NS);
            has_load.then(|| Followed {
                entity,
                interval: known.get(name::INTERVAL_NS).map(|(id, _)| *id),
                idle_until: idle_since.map(Instant::from_nanos),
                last: None,
                before: vec![None; ways.len()],
                now: Vec::with_capacity(ways.len()),
                ways,
            })
        });
        Self { followed: followed.collect(), before: None, restarts: 0 }
    }

    /// Splits the entities into `count` parts; `part_of` returns the part of each.
    #[must_use]
    pub fn split(self, count: usize, of: impl Fn(EntityId) -> usize) -> Vec<Self> {
        let mut parts: Vec<Self> = (0..count).map(|_| Self::default()).collect();
        for own in self.followed {
            if let Some(part) = parts.get_mut(of(own.entity)) {
                part.followed.push(own);
            }
        }
        parts
    }

    /// Takes a sample, and reports the load of each entity since its last sample with values.
    /// Entities without known operations are left out.
    pub fn sample(
        &mut self,
        at: Instant,
        row: &[Option<i64>],
        mut tell: impl FnMut(EntityId, Load),
    ) {
        self.follow(at, row, |entity, step| match step {
            Step::Did(load) if load.operations.is_some() => tell(entity, load),
            _ => {}
        });
    }

    /// Takes a sample, and reports the step of each entity since its last sample with values.
    pub fn follow(
        &mut self,
        at: Instant,
        row: &[Option<i64>],
        mut tell: impl FnMut(EntityId, Step),
    ) {
        let before = self.before.replace(at);
        for own in &mut self.followed {
            let Some(step) = own.sample(at, before, row) else { continue };
            self.restarts += u64::from(matches!(step, Step::WentBack { .. }));
            tell(own.entity, step);
        }
    }

    /// Returns the followed entities.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.followed.iter().map(|own| own.entity)
    }

    /// Returns the number of counter resets.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.restarts
    }
}

/// The change of an entity from one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is handed over and not kept")]
pub enum Step {
    /// The load of the interval.
    Did(Load),
    /// A counter was reset, so the load of the interval is unknown.
    WentBack {
        /// The sample before.
        from: Instant,
        /// The sample whose counter is lower.
        to: Instant,
    },
}

impl Followed {
    fn sample(
        &mut self,
        at: Instant,
        before: Option<Instant>,
        row: &[Option<i64>],
    ) -> Option<Step> {
        let now = |id: SeriesId| row.get(id.0 as usize).copied().flatten();
        self.now.clear();
        self.now.extend(self.ways.iter().map(|(_, way)| match way {
            Way::Counter(id, _) | Way::Rate(id, _) | Way::Level(id, _) | Way::Mean(id, ..) => {
                now(*id)
            }
            Way::Counters(ids) => ids.iter().try_fold(0_i64, |sum, id| sum.checked_add(now(*id)?)),
        }));
        // If one input has counters and another gauges, a sample with gauges alone is skipped. It
        // would hide the growth of the counters.
        let all = || self.ways.iter().zip(&self.now);
        let has_counters = all().any(|((_, way), _)| way.is_counter());
        if all().all(|((_, way), now)| now.is_none() || (has_counters && !way.is_counter())) {
            return self.idle(at);
        }
        let last = self.last.replace(at);
        let interval = self.interval.and_then(now).and_then(|ns| u64::try_from(ns).ok());
        let interval_from = interval.and_then(|ns| at.nanos().checked_sub(ns));
        std::mem::swap(&mut self.before, &mut self.now);
        let (values, earlier) = (&self.before, &self.now);
        // The first value of a rate holds since the sample before.
        let from =
            interval_from.map(Instant::from_nanos).or(last).or(before).filter(|from| *from < at)?;
        let mut load = Load { from, to: at, ..Load::default() };
        let length = seconds(at - from);
        let mut went_back = false;
        for (place, (field, way)) in self.ways.iter().enumerate() {
            let value = values[place].map(signed);
            let told = match way {
                Way::Counters(_) => grown(value, earlier[place].map(signed), 1.0, &mut went_back),
                Way::Counter(_, by) => {
                    grown(value, earlier[place].map(signed), *by, &mut went_back)
                }
                Way::Rate(_, by) => value.map(|rate| rate * by * length),
                Way::Level(_, by) => value.map(|level| level * by),
                Way::Mean(_, by, rates) => {
                    let count = rates
                        .iter()
                        .map(|(id, by)| Some(signed(now(*id)?) * by * length))
                        .sum::<Option<f64>>();
                    count.and_then(
                        |count| if count > 0.0 { Some(value? * by * count) } else { Some(0.0) },
                    )
                }
            };
            *field(&mut load) = told;
        }
        if went_back {
            return Some(Step::WentBack { from, to: at });
        }
        load.complete();
        Some(Step::Did(load))
    }
}

impl Followed {
    /// Returns the load of a device that is known to be idle until its first sample.
    fn idle(&mut self, at: Instant) -> Option<Step> {
        let until = self.idle_until.filter(|until| self.last.is_none() && *until < at)?;
        self.idle_until = Some(at);
        let mut load = Load { from: until, to: at, ..Load::default() };
        for (field, way) in &self.ways {
            if matches!(way, Way::Rate(..) | Way::Mean(..)) {
                *field(&mut load) = Some(0.0);
            }
        }
        load.complete();
        Some(Step::Did(load))
    }
}

/// Returns the growth of a counter, and sets `went_back` if it was reset.
fn grown(now: Option<f64>, before: Option<f64>, by: f64, went_back: &mut bool) -> Option<f64> {
    let grown = now? - before?;
    *went_back |= grown < 0.0;
    Some(grown * by)
}

fn ways_of(known: &HashMap<&str, (SeriesId, f64)>, has_counters: bool) -> Vec<(Field, Way)> {
    let mut ways: Vec<(Field, Way)> = Vec::new();
    for Names(field, names) in COUNTED.iter().filter(|_| has_counters) {
        let found = names.iter().find_map(|(name, by)| Some((known.get(name)?, by)));
        if let Some(((id, scale), by)) = found {
            ways.push((*field, Way::Counter(*id, scale * by)));
        }
    }
    let is_counted = !ways.is_empty();
    for (field, measure) in RATES.iter().filter(|_| !is_counted) {
        if let Some((id, scale)) = known.get(measure.name) {
            ways.push((*field, Way::Rate(*id, *scale)));
        }
    }
    for (field, mean, ways_of_rates) in MEANS.iter().filter(|_| !is_counted) {
        let all = |rates: &&[Metric]| {
            rates.iter().map(|rate| known.get(rate.name).copied()).collect::<Option<Vec<_>>>()
        };
        if let (Some((id, by)), Some(rates)) =
            (known.get(mean.name), ways_of_rates.iter().find_map(all))
        {
            ways.push((*field, Way::Mean(*id, *by, rates)));
        }
    }
    // Busy time alone is no load.
    let busy = match (known.get(name::BUSY_MS), known.get(name::BUSY)) {
        (Some((id, scale)), _) => Some(Way::Counter(*id, scale * MS)),
        // A share of time is that many nanoseconds per second.
        (None, Some((id, scale))) => Some(Way::Rate(*id, scale * 1e9)),
        (None, None) => None,
    };
    if let Some(busy) = busy.filter(|_| !ways.is_empty()) {
        ways.push((|load| &mut load.busy_ns, busy));
    }
    // The waits at all caps and the time at the medium make up the latency.
    let is_timed = ["io_stall_read_ms", "io_stall_write_ms"].iter().any(|m| known.contains_key(m));
    if let Some((medium, _)) = known.get(name::MEDIUM_NS).filter(|_| !is_timed) {
        let waits = known.iter().filter(|(name, _)| m::cap_of(name).is_some());
        let mut all: Vec<SeriesId> = waits.map(|(_, (id, _))| *id).collect();
        all.push(*medium);
        ways.push((|load| &mut load.ns, Way::Counters(all)));
    }
    for (field, measure) in LEVELS {
        if let Some((id, scale)) = known.get(measure.name) {
            ways.push((*field, Way::Level(*id, *scale)));
        }
    }
    ways
}

#[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
fn signed(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Entity;

    /// Returns the loads and resets of one volume with these measures; times are in seconds.
    fn loads(measures: &[Metric], samples: &[(u64, &[Option<f64>])]) -> (Vec<Load>, u64) {
        let mut contents = Contents::default();
        let volume = contents.add_entity(Entity::new(EntityKind::Volume, "v", None));
        for measure in measures {
            contents.add_series(measure.series(volume));
        }
        let mut loads = Loads::new(&contents);
        let mut told = Vec::new();
        for (second, values) in samples {
            let row: Vec<_> = measures
                .iter()
                .zip(*values)
                .map(|(measure, value)| value.and_then(|value| measure.stored(value)))
                .collect();
            assert_eq!(row.len(), contents.series.len());
            loads.sample(Instant::ZERO + Span::from_secs(*second), &row, |_, load| told.push(load));
        }
        (told, loads.restarts())
    }

    #[test]
    fn counters_and_rates_agree() {
        let counters = [
            m::READS,
            m::WRITES,
            m::READ_BYTES,
            m::WRITE_BYTES,
            m::IO_STALL_READ_MS,
            m::IO_STALL_WRITE_MS,
        ];
        let all = |values: [f64; 6]| values.map(Some);
        let (first, second) =
            (all([5.0, 0.0, 0.0, 0.0, 1.0, 0.0]), all([205.0, 50.0, 1.6e6, 4e5, 401.0, 500.0]));
        let (counted, _) = loads(&counters, &[(10, &first), (20, &second)]);
        let rates = [
            m::READS_PER_S,
            m::WRITES_PER_S,
            m::READ_BYTES_PER_S,
            m::WRITE_BYTES_PER_S,
            m::READ_LATENCY_NS,
            m::WRITE_LATENCY_NS,
        ];
        let told = all([20.0, 5.0, 1.6e5, 4e4, 2e6, 1e7]);
        let (rated, _) = loads(&rates, &[(10, &[None; 6]), (20, &told)]);
        assert_eq!(counted, rated);
        let load = counted[0];
        assert_eq!((load.iops(), load.bytes_per_s()), (Some(25.0), Some(2e5)));
        assert_eq!((load.latency_ns(), load.read_share()), (Some(3.6e6), Some(0.8)));
        assert_eq!(load.depth, Some(0.09));
    }

    #[test]
    fn no_writes_have_no_latency() {
        let measures = [m::READS_PER_S, m::WRITES_PER_S, m::READ_LATENCY_NS];
        let row = |writes| [Some(10.0), Some(writes), Some(4e6)];
        let (told, _) = loads(&measures, &[(0, &[None; 3]), (1, &row(0.0)), (2, &row(1.0))]);
        assert_eq!((told[0].latency_ns(), told[0].depth), (Some(4e6), Some(0.04)));
        assert_eq!((told[1].latency_ns(), told[1].ns), (None, None));
    }

    #[test]
    fn latency_beyond_io_time_was_queued() {
        let measures =
            [m::WRITES_PER_S, m::READS_PER_S, m::WRITE_LATENCY_NS, m::WRITE_IO_LATENCY_NS];
        let both = [Some(10.0), Some(0.0), Some(1.5e8), Some(4e6)];
        let (told, _) = loads(&measures, &[(0, &[None; 4]), (2, &both)]);
        assert_eq!((told[0].queued_write_ns, told[0].queued_read_ns), (Some(2.9e9), None));
        // Milliseconds are truncated: 4.9 ms are printed as 4.
        let rounded = [Some(10.0), Some(0.0), Some(4.9e6), Some(4e6)];
        let (told, _) = loads(&measures, &[(0, &[None; 4]), (2, &rounded)]);
        assert_eq!(told[0].queued_write_ns, Some(0.0));
    }

    #[test]
    fn mean_queue_depth_while_busy() {
        let counters = [m::OPERATIONS, m::IO_STALL_MS, m::BUSY_MS];
        let rows = [[Some(0.0); 3], [Some(50.0), Some(600.0), Some(400.0)]];
        let (counted, _) = loads(&counters, &[(0, &rows[0]), (2, &rows[1])]);
        assert_eq!((counted[0].busy(), counted[0].at_once()), (Some(0.2), Some(1.5)));
        let rates = [m::OPERATIONS_PER_S, m::LATENCY_NS, m::BUSY];
        let (told, _) =
            loads(&rates, &[(0, &[None; 3]), (2, &[Some(25.0), Some(1.2e7), Some(0.2)])]);
        let close = |got: Option<f64>, want: f64| got.is_some_and(|got| (got - want).abs() < 1e-9);
        assert!(close(told[0].busy(), 0.2) && close(told[0].at_once(), 1.5), "{:?}", told[0]);
        // Busy time alone is no load.
        assert_eq!(loads(&[m::BUSY_MS], &[(0, &[Some(0.0)]), (1, &[Some(9.0)])]).0, []);
    }

    #[test]
    fn counters_with_other_sampling_intervals_lose_nothing() {
        let measures = [m::READS, m::WRITES, m::BUSY];
        let counted = |reads: f64| [Some(reads), Some(0.0), None];
        let (one, other) = (counted(0.0), counted(100.0));
        let samples: [(u64, &[Option<f64>]); 3] =
            [(0, &one), (1, &[None, None, Some(0.5)]), (2, &other)];
        let (loads, _) = loads(&measures, &samples);
        assert_eq!(loads.iter().map(|load| load.reads).collect::<Vec<_>>(), [Some(100.0)]);
        assert_eq!(loads[0].seconds(), 2.0);
    }

    #[test]
    fn a_rate_holds_for_its_sampling_interval() {
        let measures = [m::OPERATIONS_PER_S, m::INTERVAL_NS];
        let samples: [(u64, &[Option<f64>]); 3] =
            [(10, &[Some(5.0), None]), (60, &[None, None]), (90, &[Some(7.0), Some(1e10)])];
        let (told, _) = loads(&measures, &samples);
        let told: Vec<_> = told.iter().map(|load| (load.seconds(), load.operations)).collect();
        assert_eq!(told, [(10.0, Some(70.0))]);
    }

    #[test]
    fn a_device_missing_until_it_is_active_was_idle() {
        let mut contents = Contents::default();
        let mut disk = Entity::new(EntityKind::Volume, "sdb", None);
        disk.attributes.insert(attribute::IDLE_SINCE_NS.to_owned(), 10_000_000_000_u64.into());
        let disk = contents.add_entity(disk);
        contents.add_series(m::OPERATIONS_PER_S.series(disk));
        contents.add_series(m::INTERVAL_NS.series(disk));
        let mut loads = Loads::new(&contents);
        let mut told = Vec::new();
        let rows = [(10, None, None), (20, None, None), (30, Some(9_000), Some(10_000_000_000))];
        for (second, rate, interval) in rows {
            let at = Instant::ZERO + Span::from_secs(second);
            loads.sample(at, &[rate, interval], |_, load| {
                told.push((load.seconds(), load.iops()));
            });
        }
        assert_eq!(told, [(10.0, Some(0.0)), (10.0, Some(9.0))]);
    }

    #[test]
    fn missing_values_stay_unknown() {
        let (told, _) = loads(&[m::OPERATIONS_PER_S], &[(0, &[None]), (1, &[Some(7.0)])]);
        let known = Load {
            to: Instant::ZERO + Span::from_secs(1),
            operations: Some(7.0),
            ..Load::default()
        };
        assert_eq!(told, [known]);
        // Latency without operations is unknown. With rates per direction there is one mean for
        // both.
        let measures = [m::READS_PER_S, m::WRITES_PER_S, m::LATENCY_NS];
        let both = loads(&measures, &[(0, &[None; 3]), (2, &[Some(3.0), Some(1.0), Some(5e6)])]);
        assert_eq!((both.0[0].ns, both.0[0].latency_ns()), (Some(4e7), Some(5e6)));
        let quiet = loads(
            &[m::OPERATIONS_PER_S, m::LATENCY_NS],
            &[(0, &[None, None]), (1, &[Some(0.0), Some(0.0)])],
        );
        assert_eq!(quiet.0[0].latency_ns(), None);
    }

    #[test]
    fn restarts_and_missing_values() {
        let pair = |reads: f64| [Some(reads), Some(0.0)];
        let samples =
            [(0, pair(10.0)), (1, pair(30.0)), (2, pair(4.0)), (3, [None, None]), (4, pair(10.0))];
        let samples: Vec<(u64, &[Option<f64>])> =
            samples.iter().map(|(at, row)| (*at, &row[..])).collect();
        let (told, restarts) = loads(&[m::READS, m::WRITES], &samples);
        let iops: Vec<_> = told.iter().map(|load| (load.iops(), load.seconds())).collect();
        assert_eq!((&iops[..], restarts), (&[(Some(20.0), 1.0), (Some(3.0), 2.0)][..], 1));
    }
}
