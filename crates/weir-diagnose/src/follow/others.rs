//! Facts other than I/O: waits, processors, and shares of limits that a cloud reports.

use super::bins::NEAR;
use std::collections::BTreeMap;
use weir_observe::metric as m;
use weir_observe::rates::{Reading, Spread, Track, Tracker};
use weir_observe::{Contents, EntityId, EntityKind, SeriesId, attribute, metric};
use weir_report::number::float;
use weir_units::Instant;

/// A class of waits over the time of the observation.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitFacts {
    /// The database or server.
    pub parent: Option<EntityId>,
    /// SQL Server's or PostgreSQL's name.
    pub name: String,
    /// Number of waits.
    pub count: Option<f64>,
    /// Wait time in milliseconds.
    pub time_ms: f64,
}

/// The processors of a host, or of a database on its schedulers.
#[derive(Debug)]
pub struct HostFacts {
    /// The entity.
    pub entity: EntityId,
    /// The part of the time that they were busy.
    pub cpu: Spread,
    /// Time at 90 % or more, in seconds.
    pub near_s: f64,
    /// Observed time in seconds.
    pub seconds: f64,
}

/// A gauge that says how much of a limit is taken or left.
#[derive(Debug)]
pub struct Gauged {
    /// The entity.
    pub entity: EntityId,
    /// The metric.
    pub metric: &'static str,
    /// Values over time.
    pub values: Spread,
    /// Time at 90 % or more, in seconds.
    pub near_s: f64,
    /// Time at 99 % or more, in seconds.
    pub full_s: f64,
    /// Time at 1 % or less, in seconds.
    pub low_s: f64,
    /// Observed time in seconds.
    pub seconds: f64,
    /// First value and its time.
    pub first: Option<(Instant, f64)>,
    /// Last value and its time.
    pub last: Option<(Instant, f64)>,
    /// The least.
    pub least: f64,
}

/// All samples.
#[derive(Debug, Default)]
pub struct Others {
    /// Waits, the longest first.
    pub waits: Vec<WaitFacts>,
    /// Processors.
    pub processors: Vec<HostFacts>,
    /// Shares and balances.
    pub gauged: Vec<Gauged>,
}

/// A limit of which a cloud says that so much is taken is used up: they round, and average.
pub const FULL: f64 = 0.99;

/// A balance of so little is none: clouds round to whole percents.
pub const OUT: f64 = 0.01;

/// The gauges of [`Gauged`].
const GAUGES: &[m::Metric] = &[
    m::IOPS_SHARE,
    m::BYTES_SHARE,
    m::UNCACHED_IOPS_SHARE,
    m::UNCACHED_BYTES_SHARE,
    m::CACHED_IOPS_SHARE,
    m::CACHED_BYTES_SHARE,
    m::DATA_IO_SHARE,
    m::LOG_WRITE_SHARE,
    m::WORKER_SHARE,
    m::BURST_BALANCE,
    m::BURST_BYTES_BALANCE,
    m::IOPS_EXCEEDED,
    m::BYTES_EXCEEDED,
    m::PAGE_LIFE_EXPECTANCY_S,
    m::MEMORY_SHARE,
    m::BUFFER_HIT_SHARE,
    m::CPU_STEAL,
];

/// Gauges that say how much of a storage limit is taken.
const CONSUMED: [m::Metric; 8] = [
    m::IOPS_SHARE,
    m::BYTES_SHARE,
    m::UNCACHED_IOPS_SHARE,
    m::UNCACHED_BYTES_SHARE,
    m::CACHED_IOPS_SHARE,
    m::CACHED_BYTES_SHARE,
    m::DATA_IO_SHARE,
    m::LOG_WRITE_SHARE,
];

/// The use of a track.
#[derive(Debug, Clone, Copy)]
enum Use {
    WaitTime(usize),
    WaitCount(usize),
    Waiting(usize),
    Cpu(usize),
    Gauge(usize),
}

#[derive(Debug)]
pub(super) struct OtherTracks {
    tracker: Tracker,
    /// Use and unit of each track.
    uses: Vec<(Use, f64)>,
    found: Others,
}

impl OtherTracks {
    pub(super) fn new(contents: &Contents) -> Self {
        let mut found = Others::default();
        let (mut tracks, mut uses) = (Vec::new(), Vec::new());
        let mut follow = |series: SeriesId, what: Use, by: f64| {
            tracks.push(Track(vec![series]));
            uses.push((what, by));
        };
        let mut of_wait: BTreeMap<EntityId, usize> = BTreeMap::new();
        for (series, id) in contents.series.iter().zip(0..) {
            let Some(entity) = contents.entity(series.entity) else { continue };
            let id = SeriesId(id);
            let name = series.metric.as_str();
            if entity.kind == EntityKind::Wait {
                let next = found.waits.len();
                let place = *of_wait.entry(series.entity).or_insert(next);
                if place == next {
                    let (parent, name) = (entity.parent, entity.name.clone());
                    found.waits.push(WaitFacts { parent, name, count: None, time_ms: 0.0 });
                }
                match name {
                    metric::name::WAIT_TIME_MS => follow(id, Use::WaitTime(place), 1.0),
                    metric::name::WAITING_TASKS_COUNT => follow(id, Use::WaitCount(place), 1.0),
                    name if name == m::WAIT_MS_PER_S.name => {
                        follow(id, Use::WaitTime(place), 1.0);
                    }
                    name if name == m::WAITING.name => follow(id, Use::Waiting(place), 1.0),
                    _ => {}
                }
                continue;
            }
            let vcores = entity.number(attribute::VCORES).filter(|vcores| *vcores > 0);
            let by = match name {
                name if name == m::CPU.name => Some(1.0),
                // Time on schedulers, divided by their number.
                metric::name::CPU_NS => vcores.map(|vcores| 1e-9 / float(vcores)),
                _ => None,
            };
            if let Some(by) = by {
                follow(id, Use::Cpu(found.processors.len()), by);
                let (entity, cpu) = (series.entity, Spread::default());
                found.processors.push(HostFacts { entity, cpu, near_s: 0.0, seconds: 0.0 });
            }
            if let Some(gauge) = GAUGES.iter().find(|gauge| gauge.name == name) {
                follow(id, Use::Gauge(found.gauged.len()), 1.0);
                found.gauged.push(Gauged {
                    entity: series.entity,
                    metric: gauge.name,
                    values: Spread::default(),
                    near_s: 0.0,
                    full_s: 0.0,
                    low_s: 0.0,
                    seconds: 0.0,
                    first: None,
                    last: None,
                    least: f64::INFINITY,
                });
            }
        }
        Self { tracker: Tracker::new(contents, &tracks), uses, found }
    }

    pub(super) fn follows_any(&self) -> bool {
        !self.uses.is_empty()
    }

    pub(super) fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        let (uses, found) = (&self.uses, &mut self.found);
        self.tracker.sample(at, row, |index, reading| {
            let (what, by) = uses[index];
            match what {
                Use::WaitTime(wait) => found.waits[wait].time_ms += reading.amount,
                Use::WaitCount(wait) => {
                    let count = &mut found.waits[wait].count;
                    *count = Some(count.unwrap_or(0.0) + reading.amount);
                }
                // Sessions times seconds: PostgreSQL has no wait counters, and is sampled.
                Use::Waiting(wait) => found.waits[wait].time_ms += reading.amount * 1e3,
                Use::Cpu(host) => {
                    let own = &mut found.processors[host];
                    // Spreads keep thousandths; shares need more.
                    let amount = reading.amount * by * SHARE;
                    let busy = Reading { amount, ..reading };
                    own.cpu.add(&busy);
                    own.seconds += reading.seconds();
                    if busy.rate() >= NEAR * SHARE {
                        own.near_s += reading.seconds();
                    }
                }
                Use::Gauge(gauge) => {
                    let own = &mut found.gauged[gauge];
                    let value = reading.rate() * by;
                    own.values.add(&Reading { amount: reading.amount * by * SHARE, ..reading });
                    own.seconds += reading.seconds();
                    own.first.get_or_insert((reading.to, value));
                    own.last = Some((reading.to, value));
                    own.least = own.least.min(value);
                    let add = |seconds: &mut f64, is: bool| {
                        *seconds += if is { reading.seconds() } else { 0.0 };
                    };
                    add(&mut own.near_s, value >= NEAR);
                    add(&mut own.full_s, value >= FULL);
                    add(&mut own.low_s, value <= OUT);
                }
            }
        });
    }

    pub(super) fn finish(mut self) -> Others {
        self.found.waits.retain(|wait| wait.time_ms > 0.0 || wait.count.is_some_and(|n| n > 0.0));
        self.found.waits.sort_by(|one, other| other.time_ms.total_cmp(&one.time_ms));
        self.found
    }
}

/// Spreads of shares are kept in thousandths.
pub(crate) const SHARE: f64 = 1000.0;

impl HostFacts {
    /// Returns the mean utilisation.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.cpu.mean().unwrap_or(0.0) / SHARE
    }

    /// Returns the share of time at 90 % or more.
    #[must_use]
    pub(crate) fn near_share(&self) -> f64 {
        if self.seconds > 0.0 { self.near_s / self.seconds } else { 0.0 }
    }
}

impl Gauged {
    /// Returns whether the gauge is the utilisation of a storage limit.
    #[must_use]
    pub(crate) fn is_consumed(&self) -> bool {
        CONSUMED.iter().any(|gauge| gauge.name == self.metric)
    }

    /// Returns the mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.mean().unwrap_or(0.0) / SHARE
    }

    /// Returns the maximum.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.values.max() / SHARE
    }

    /// Returns the share of time at 90 % or more.
    #[must_use]
    pub(crate) fn near_share(&self) -> f64 {
        if self.seconds > 0.0 { self.near_s / self.seconds } else { 0.0 }
    }

    /// Returns the share of time at 99 % or more.
    #[must_use]
    pub(crate) fn full_share(&self) -> f64 {
        if self.seconds > 0.0 { self.full_s / self.seconds } else { 0.0 }
    }

    /// Returns the share of time at 1 % or less.
    #[must_use]
    pub(crate) fn low_share(&self) -> f64 {
        if self.seconds > 0.0 { self.low_s / self.seconds } else { 0.0 }
    }
}
