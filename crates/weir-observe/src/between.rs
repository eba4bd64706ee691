//! The activity of all entities between two times: an interval of one observation, or the
//! difference of two snapshots.
//!
//! ```text
//!   one observation, two times  --------------------+
//!                                                   +-->  Stretch  -->  Between
//!   two snapshots  -->  Pair: entities in both -----+
//! ```
//!
//! A counter that goes back was reset. The other counters of the same server were reset too, even
//! if one has grown past its old value since. A step in which one of them went back is therefore
//! left out for all of them.

use crate::header::{Contents, Entity, EntityId, EntityKind, SeriesId};
use crate::load::{Load, Loads, Step};
use crate::{attribute, metric};
use std::collections::{BTreeMap, HashMap};
use weir_units::{Instant, Span};

mod pair;

pub use pair::{Pair, PairError};

/// The path of an entity across observations: kinds and names, the outermost parent first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who(pub Vec<(EntityKind, String)>);

impl Who {
    /// Returns the path of an entity.
    #[must_use]
    pub fn new(contents: &Contents, id: EntityId) -> Self {
        let mut path = Vec::new();
        let mut next = contents.entity(id);
        while let Some(own) = next {
            path.push((own.kind.clone(), own.name.clone()));
            // A parent comes before its child, so this loop ends.
            next = own.parent.and_then(|parent| contents.entity(parent));
        }
        path.reverse();
        Self(path)
    }

    /// Returns the kind of the entity.
    #[must_use]
    pub fn kind(&self) -> &EntityKind {
        self.0.last().map_or(&EntityKind::Host, |(kind, _)| kind)
    }

    /// Returns the name of the entity.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.last().map_or("", |(_, name)| name)
    }

    /// Returns the name and kind of the parent.
    #[must_use]
    pub fn parent(&self) -> Option<(&EntityKind, &str)> {
        let (kind, name) = self.0.get(self.0.len().checked_sub(2)?)?;
        Some((kind, name))
    }
}

/// The activity in an interval.
#[derive(Debug, Clone, Default)]
pub struct Between {
    /// Entities with I/O, in the order of the observation.
    pub io: Vec<Did>,
    /// Wait types, in the order of the observation.
    pub waits: Vec<Waited>,
    /// Entities whose counters were reset, with the number of resets.
    pub restarts: Vec<(Who, u64)>,
    /// Time of the newest sample at the beginning, or of the first one if all are later.
    pub from: Instant,
    /// Time of the last sample until the end.
    pub to: Instant,
}

/// The I/O of an entity.
#[derive(Debug, Clone)]
pub struct Did {
    /// Path of the entity.
    pub who: Who,
    /// The entity with its attributes.
    pub entity: Entity,
    /// Size at the end, in bytes.
    pub size: Option<f64>,
    /// Seconds for which the load is known.
    pub seconds: f64,
    /// The load in that time; `None` if it is never known.
    pub load: Option<Load>,
}

/// The waits of one type.
#[derive(Debug, Clone)]
pub struct Waited {
    /// Path of the wait type.
    pub who: Who,
    /// Seconds for which the waits are known.
    pub seconds: f64,
    /// The waits in that time; `None` if they are never known.
    pub wait: Option<Wait>,
    /// The longest single wait in milliseconds, if it happened in this interval.
    pub max_ms: Option<f64>,
}

/// Number and duration of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wait {
    /// Time of the earlier sample.
    pub from: Instant,
    /// Time of the later sample.
    pub to: Instant,
    /// Number of waits.
    pub tasks: Option<f64>,
    /// Total time waited, in milliseconds.
    pub ms: Option<f64>,
    /// The part of `ms` spent waiting for a processor.
    pub signal_ms: Option<f64>,
}

/// A quantity of the interval between two samples.
trait Part: Copy {
    fn time(&self) -> (Instant, Instant);
    /// Adds the part that follows. A figure that either lacks is unknown.
    fn then(&mut self, next: &Self);
}

impl Part for Load {
    fn time(&self) -> (Instant, Instant) {
        (self.from, self.to)
    }

    fn then(&mut self, next: &Self) {
        self.add(next);
        // The queue depth is a level; no caller needs it over several samples.
        self.depth = None;
        self.to = next.to;
    }
}

impl Part for Wait {
    fn time(&self) -> (Instant, Instant) {
        (self.from, self.to)
    }

    fn then(&mut self, next: &Self) {
        let both = |mine: Option<f64>, theirs: Option<f64>| Some(mine? + theirs?);
        self.tasks = both(self.tasks, next.tasks);
        self.ms = both(self.ms, next.ms);
        self.signal_ms = both(self.signal_ms, next.signal_ms);
        self.to = next.to;
    }
}

/// The sum of consecutive parts. The last one is kept apart, because another entity's counters may
/// still show that it is invalid.
#[derive(Debug, Clone, Copy)]
struct Sum<T> {
    sum: Option<T>,
    seconds: f64,
    last: Option<T>,
}

impl<T> Default for Sum<T> {
    fn default() -> Self {
        Self { sum: None, seconds: 0.0, last: None }
    }
}

impl<T: Part> Sum<T> {
    fn settle(&mut self) {
        let Some(last) = self.last.take() else { return };
        let (from, to) = last.time();
        self.seconds += seconds(to - from);
        match &mut self.sum {
            Some(sum) => sum.then(&last),
            sum => *sum = Some(last),
        }
    }

    fn push(&mut self, part: T) {
        self.settle();
        self.last = Some(part);
    }

    /// Drops the last part if it extends beyond `from`.
    fn forget(&mut self, from: Instant) {
        self.last = self.last.filter(|last| last.time().1 <= from);
    }
}

fn seconds(span: Span) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
    let nanos = span.nanos() as f64;
    nanos / 1e9
}

/// Counters of a server that are reset together. Those of its machine are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Files,
    /// Waits, which a server can reset on request.
    Waits,
    Others,
}

type Group = (EntityId, Class);

/// The series of a wait type and their last values.
#[derive(Debug)]
struct WaitAt {
    entity: EntityId,
    counters: [Option<(SeriesId, f64)>; 3],
    max: Option<(SeriesId, f64)>,
    last: Option<(Instant, [Option<i64>; 3])>,
    /// The longest wait at the beginning and at the end.
    longest: (Option<i64>, Option<i64>),
}

/// A summation of the activity between two times.
#[derive(Debug)]
pub struct Stretch {
    from: Instant,
    until: Instant,
    before: Option<Instant>,
    last: Option<Instant>,
    loads: Loads,
    io: BTreeMap<EntityId, Sum<Load>>,
    sizes: BTreeMap<EntityId, (SeriesId, f64, Option<i64>)>,
    waits: Vec<WaitAt>,
    waited: BTreeMap<EntityId, Sum<Wait>>,
    groups: Vec<Group>,
    /// End of the time for which a group is unknown.
    lost: HashMap<Group, Instant>,
    restarts: BTreeMap<EntityId, u64>,
}

impl Stretch {
    /// Creates a summation from the newest sample at `from` to that at `until`, for an observation
    /// with these contents.
    #[must_use]
    pub fn new(contents: &Contents, from: Instant, until: Instant) -> Self {
        let loads = Loads::new(contents);
        let io = loads.entities().map(|id| (id, Sum::default())).collect();
        let mut sizes = BTreeMap::new();
        let mut waits: BTreeMap<EntityId, WaitAt> = BTreeMap::new();
        for (series, id) in contents.series.iter().zip(0..) {
            let at = (SeriesId(id), 10_f64.powi(i32::from(series.scale)));
            if series.metric == metric::name::SIZE_ON_DISK_BYTES {
                sizes.insert(series.entity, (at.0, at.1, None));
            }
            let is_wait =
                contents.entity(series.entity).is_some_and(|own| own.kind == EntityKind::Wait);
            if is_wait {
                let entity = series.entity;
                let own = waits.entry(entity).or_insert_with(|| WaitAt::new(entity));
                own.take(&series.metric, at);
            }
        }
        let waits: Vec<WaitAt> = waits.into_values().collect();
        Self {
            from,
            until,
            before: None,
            last: None,
            loads,
            io,
            sizes,
            waited: waits.iter().map(|own| (own.entity, Sum::default())).collect(),
            waits,
            groups: groups(contents),
            lost: HashMap::new(),
            restarts: BTreeMap::new(),
        }
    }

    /// Takes a sample. The caller passes all samples from the beginning, since a sample may lack
    /// some entities.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        if at > self.until {
            return;
        }
        let is_in = at > self.from;
        *if is_in { &mut self.last } else { &mut self.before } = Some(at);
        let now = |id: SeriesId| row.get(id.0 as usize).copied().flatten();
        for (series, _, size) in self.sizes.values_mut() {
            *size = now(*series).or(*size);
        }
        let mut back = Vec::new();
        let (groups, lost, io) = (&self.groups, &self.lost, &mut self.io);
        let is_lost = |entity: EntityId, from: Instant| {
            let group = groups.get(entity.0 as usize);
            group.and_then(|group| lost.get(group)).is_some_and(|until| from < *until)
        };
        self.loads.follow(at, row, |entity, step| match step {
            _ if !is_in => {}
            Step::WentBack { from, to } => back.push((entity, from, to)),
            Step::Did(load) if is_lost(entity, load.from) => {}
            Step::Did(load) => io.entry(entity).or_default().push(load),
        });
        for own in &mut self.waits {
            match own.sample(at, row, is_in) {
                _ if !is_in => {}
                Some(Ok(wait)) if !is_lost(own.entity, wait.from) => {
                    self.waited.entry(own.entity).or_default().push(wait);
                }
                Some(Err((from, to))) => back.push((own.entity, from, to)),
                _ => {}
            }
        }
        for (entity, from, to) in back {
            self.went_back(entity, from, to);
        }
    }

    /// Marks the group of `entity` as unknown from one sample to the next.
    fn went_back(&mut self, entity: EntityId, from: Instant, to: Instant) {
        *self.restarts.entry(entity).or_default() += 1;
        let Some((root, class)) = self.groups.get(entity.0 as usize).copied() else { return };
        let mut lose = |class| {
            let until = self.lost.entry((root, class)).or_insert(to);
            *until = to.max(*until);
        };
        lose(class);
        if class == Class::Files {
            // A restart of the server also resets its waits.
            lose(Class::Waits);
        }
        let is_of = |id: &EntityId| match self.groups.get(id.0 as usize) {
            Some((own, of)) => {
                *own == root && (*of == class || (class == Class::Files && *of == Class::Waits))
            }
            None => false,
        };
        self.io.iter_mut().filter(|(id, _)| is_of(id)).for_each(|(_, sum)| sum.forget(from));
        self.waited.iter_mut().filter(|(id, _)| is_of(id)).for_each(|(_, sum)| sum.forget(from));
    }

    /// Returns the result; `None` without a sample in the interval.
    #[must_use]
    pub fn finish(mut self, contents: &Contents) -> Option<Between> {
        let (to, from) = (self.last?, self.before);
        let mut between = Between { to, from: from.unwrap_or(to), ..Between::default() };
        for (id, mut sum) in self.io {
            sum.settle();
            let Some(entity) = contents.entity(id) else { continue };
            let size = self.sizes.get(&id).and_then(|(_, by, size)| Some(signed((*size)?) * by));
            let size = size.or_else(|| entity.number(attribute::SIZE_BYTES).map(unsigned));
            let (who, entity) = (Who::new(contents, id), entity.clone());
            let (seconds, load) = (sum.seconds, sum.sum);
            between.io.push(Did { who, entity, size, seconds, load });
        }
        for own in &self.waits {
            let Some(mut sum) = self.waited.remove(&own.entity) else { continue };
            sum.settle();
            // The maximum only grows: a larger value happened in this interval.
            let grown = own.longest.1.filter(|now| own.longest.0.is_some_and(|then| then < *now));
            let max_ms = grown.zip(own.max).map(|(longest, (_, by))| signed(longest) * by);
            let max_ms = max_ms.filter(|_| sum.sum.is_some());
            let who = Who::new(contents, own.entity);
            between.waits.push(Waited { who, seconds: sum.seconds, wait: sum.sum, max_ms });
        }
        let restarts = self.restarts.into_iter();
        between.restarts = restarts.map(|(id, times)| (Who::new(contents, id), times)).collect();
        Some(between)
    }
}

/// Returns the outermost parent and class of each entity.
fn groups(contents: &Contents) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::with_capacity(contents.entities.len());
    for (own, id) in contents.entities.iter().zip(0..) {
        let parent = own.parent.and_then(|parent| groups.get(parent.0 as usize));
        let root = parent.map_or(EntityId(id), |(root, _)| *root);
        let class = match own.kind {
            EntityKind::File => Class::Files,
            EntityKind::Wait => Class::Waits,
            _ => Class::Others,
        };
        groups.push((root, class));
    }
    groups
}

const WAIT_COUNTERS: [&str; 3] = [
    metric::name::WAITING_TASKS_COUNT,
    metric::name::WAIT_TIME_MS,
    metric::name::SIGNAL_WAIT_TIME_MS,
];

impl WaitAt {
    fn new(entity: EntityId) -> Self {
        Self { entity, counters: [None; 3], max: None, last: None, longest: (None, None) }
    }

    fn take(&mut self, name: &str, at: (SeriesId, f64)) {
        if let Some(place) = WAIT_COUNTERS.iter().position(|counter| *counter == name) {
            self.counters[place] = Some(at);
        } else if name == metric::name::MAX_WAIT_TIME_MS {
            self.max = Some(at);
        }
    }

    /// Returns the waits since the last sample, or the two samples between which a counter was
    /// reset.
    fn sample(
        &mut self,
        at: Instant,
        row: &[Option<i64>],
        is_in: bool,
    ) -> Option<Result<Wait, (Instant, Instant)>> {
        let now = |id: SeriesId| row.get(id.0 as usize).copied().flatten();
        if let Some(longest) = self.max.and_then(|(id, _)| now(id)) {
            let place = if is_in { &mut self.longest.1 } else { &mut self.longest.0 };
            *place = Some(longest);
        }
        let values = self.counters.map(|counter| now(counter?.0));
        if values.iter().all(Option::is_none) {
            return None;
        }
        let (from, before) = self.last.replace((at, values))?;
        let mut grown = [None; 3];
        for (place, grown) in grown.iter_mut().enumerate() {
            let (Some(now), Some(then)) = (values[place], before[place]) else { continue };
            if now < then {
                return Some(Err((from, at)));
            }
            let by = self.counters[place].map_or(1.0, |(_, by)| by);
            *grown = Some((signed(now) - signed(then)) * by);
        }
        let [tasks, ms, signal_ms] = grown;
        Some(Ok(Wait { from, to: at, tasks, ms, signal_ms }))
    }
}

#[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
fn signed(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "for sizes, 53 bits are enough")]
fn unsigned(value: u64) -> f64 {
    value as f64
}
