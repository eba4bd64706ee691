//! Two snapshots as an observation of the entities that are in both.
//!
//! Only counters are used: a rate describes the time before its own snapshot.

use super::{Who, signed};
use crate::header::{Contents, Counting, EntityId, EntityKind, Series, SeriesId};
use crate::metric;
use crate::observation::Observation;
use std::collections::{BTreeMap, HashMap};
use weir_units::{Instant, Span};

/// The reason why two snapshots cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The second snapshot is older.
    #[error("it is the older one, by {by}: give the older one first")]
    WrongWay {
        /// Difference of their times.
        by: Span,
    },
    /// Both have the same time.
    #[error("both have the same time, so there is no interval between them")]
    NoLength,
    /// A third input contradicts the times of both.
    #[error("both have times, so the time between them is known: {apart}")]
    Apart {
        /// Distance.
        apart: Span,
    },
}

/// Two snapshots side by side.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// Entities in both, with the counters that both have.
    pub contents: Contents,
    /// Times and values of the two samples.
    pub rows: Vec<(Instant, Vec<Option<i64>>)>,
    /// A time before the first sample of the second snapshot.
    pub from: Instant,
    /// Time between the two, if known.
    pub apart: Option<Span>,
    /// Entities with counters in the first only and in the second only; for waits with the time
    /// waited until then, in milliseconds.
    pub only: [Vec<(Who, Option<f64>)>; 2],
    /// Entities whose counters are not newer in the second.
    pub stale: Vec<Who>,
    /// Entities with rates and no counters.
    pub rates: Vec<Who>,
}

/// An entity of a snapshot.
struct Own {
    id: EntityId,
    /// Time at which its counters were read.
    at: Option<Instant>,
    counters: BTreeMap<String, (Series, i64)>,
    gauges: BTreeMap<String, (Series, i64)>,
}

impl Own {
    fn has_rates(&self) -> bool {
        self.gauges.keys().any(|metric| metric.ends_with("_per_s"))
    }

    fn waited(&self) -> Option<f64> {
        let (series, ms) = self.counters.get(metric::name::WAIT_TIME_MS)?;
        Some(signed(*ms) * 10_f64.powi(i32::from(series.scale)))
    }
}

fn all(of: &Observation) -> HashMap<Who, Own> {
    let contents = of.contents();
    let mut owns: BTreeMap<EntityId, Own> = BTreeMap::new();
    for (series, id) in contents.series.iter().zip(0..) {
        let (counters, gauges) = (BTreeMap::new(), BTreeMap::new());
        let new = Own { id: series.entity, at: None, counters, gauges };
        let own = owns.entry(series.entity).or_insert(new);
        let Some(column) = of.column(SeriesId(id)) else { continue };
        let known = of.times.iter().zip(column.iter());
        let newest = known.filter_map(|(at, value)| Some((*at, value?))).last();
        let Some((at, value)) = newest else { continue };
        if series.counting == Counting::Cumulative {
            own.at = own.at.max(Some(at));
            own.counters.insert(series.metric.clone(), (series.clone(), value));
        } else {
            own.gauges.insert(series.metric.clone(), (series.clone(), value));
        }
    }
    owns.into_values().map(|own| (Who::new(contents, own.id), own)).collect()
}

/// A common time line for the samples of both.
struct Line {
    shifts: [i128; 2],
    apart: Option<Span>,
}

impl Line {
    fn new(pair: [&Observation; 2], apart: Option<Span>) -> Result<Self, PairError> {
        let last = pair.map(|own| i128::from(own.times.last().map_or(0, |at| at.nanos())));
        let first = pair.map(|own| i128::from(own.times.first().map_or(0, |at| at.nanos())));
        let [Some(a), Some(b)] = pair.map(|own| own.header.start_unix_ns.map(i128::from)) else {
            // Without times, all of the second snapshot comes after the first.
            let between = i128::from(apart.unwrap_or(Span::from_secs(1)).nanos());
            let spread = if apart.is_some() { 0 } else { last[1] - first[1] };
            let zero = last[0].max(last[1]);
            let shifts = [zero - last[0], zero + between + spread - last[1]];
            return Ok(Self { shifts, apart });
        };
        let span = |nanos: i128| Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let between = b + last[1] - a - last[0];
        match (between, apart) {
            (0, _) => return Err(PairError::NoLength),
            (..0, _) => return Err(PairError::WrongWay { by: in_milliseconds(span(-between)) }),
            (_, Some(_)) => return Err(PairError::Apart { apart: span(between) }),
            (_, None) => {}
        }
        let base = a.min(b);
        Ok(Self { shifts: [a - base, b - base], apart: Some(span(between)) })
    }

    fn at(&self, which: usize, at: Instant) -> Instant {
        let nanos = i128::from(at.nanos()) + self.shifts[which];
        Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// Rounds to milliseconds.
fn in_milliseconds(span: Span) -> Span {
    const MILLI: u64 = 1_000_000;
    if span.nanos() < MILLI { span } else { Span::from_nanos(span.nanos() / MILLI * MILLI) }
}

impl Pair {
    /// Pairs two snapshots, the older one first. `apart` is the time between them, for snapshots
    /// without times.
    ///
    /// # Errors
    ///
    /// [`PairError`] if there is no time between them.
    pub fn new(
        older: &Observation,
        newer: &Observation,
        apart: Option<Span>,
    ) -> Result<Self, PairError> {
        let line = Line::new([older, newer], apart)?;
        let (mut then, now) = (all(older), all(newer));
        let mut pair = Self { apart: line.apart, from: Instant::FAR, ..Self::default() };
        let mut rows: BTreeMap<Instant, Vec<(usize, i64)>> = BTreeMap::new();
        let mut ids: HashMap<Who, EntityId> = HashMap::new();
        for id in (0..newer.contents().entities.len()).filter_map(|id| u32::try_from(id).ok()) {
            let who = Who::new(newer.contents(), EntityId(id));
            let own = now.get(&who);
            let before = then.remove(&who);
            pair.declare(newer.contents(), EntityId(id), &mut ids);
            let Some(own) = own else { continue };
            match before {
                None if own.counters.is_empty() => {}
                None => pair.only[1].push((who, own.waited())),
                Some(before) if before.counters.is_empty() || own.counters.is_empty() => {
                    if before.has_rates() || own.has_rates() {
                        pair.rates.push(who);
                    }
                }
                Some(before) => {
                    let Some(entity) = ids.get(&who) else { continue };
                    if !pair.put(*entity, (&before, own), &line, &mut rows) {
                        pair.stale.push(who);
                    }
                }
            }
        }
        let mut left: Vec<_> =
            then.into_iter().filter(|(_, own)| !own.counters.is_empty()).collect();
        left.sort_by_key(|(_, own)| own.id);
        pair.only[0] = left.into_iter().map(|(who, own)| (who, own.waited())).collect();
        let width = pair.contents.series.len();
        let row = |values: Vec<(usize, i64)>| {
            let mut row = vec![None; width];
            values.into_iter().for_each(|(place, value)| row[place] = Some(value));
            row
        };
        pair.rows = rows.into_iter().map(|(at, values)| (at, row(values))).collect();
        Ok(pair)
    }

    fn declare(&mut self, contents: &Contents, id: EntityId, ids: &mut HashMap<Who, EntityId>) {
        let Some(mut entity) = contents.entity(id).cloned() else { return };
        entity.parent =
            entity.parent.and_then(|parent| ids.get(&Who::new(contents, parent)).copied());
        let own = self.contents.add_entity(entity);
        ids.insert(Who::new(contents, id), own);
    }

    /// Adds the series that both have of an entity; returns whether there are any.
    fn put(
        &mut self,
        entity: EntityId,
        (before, own): (&Own, &Own),
        line: &Line,
        rows: &mut BTreeMap<Instant, Vec<(usize, i64)>>,
    ) -> bool {
        let (Some(from), Some(to)) = (before.at, own.at) else { return false };
        let (from, to) = (line.at(0, from), line.at(1, to));
        if from >= to {
            return false;
        }
        self.from = self.from.min(Instant::from_nanos(to.nanos() - 1));
        let mut put = |series: &Series, values: [Option<i64>; 2]| {
            let id = self.contents.add_series(Series { entity, ..series.clone() });
            for (at, value) in [from, to].into_iter().zip(values) {
                rows.entry(at).or_default().extend(value.map(|value| (id.0 as usize, value)));
            }
        };
        for (name, (series, now)) in &own.counters {
            let Some((other, then)) = before.counters.get(name) else { continue };
            // The finer unit of the two.
            let scale = series.scale.min(other.scale);
            let finer = |value: i64, own: i8| {
                let steps = u32::from(own.abs_diff(scale));
                10_i64.checked_pow(steps).and_then(|by| value.checked_mul(by))
            };
            let values = [finer(*then, other.scale), finer(*now, series.scale)];
            put(&Series { scale, ..series.clone() }, values);
        }
        for name in [metric::name::SIZE_ON_DISK_BYTES, metric::name::MAX_WAIT_TIME_MS] {
            let Some((series, now)) = own.gauges.get(name) else { continue };
            let then = before.gauges.get(name).filter(|(other, _)| other.scale == series.scale);
            put(series, [then.map(|(_, then)| *then), Some(*now)]);
        }
        true
    }

    /// Returns whether an entity counts reads, writes or waits in both.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.contents.series.is_empty()
    }

    /// Returns the entities other than waits that are in one snapshot only.
    pub fn only_io(&self, which: usize) -> impl Iterator<Item = &Who> + '_ {
        let io = self.only[which].iter().filter(|(who, _)| *who.kind() != EntityKind::Wait);
        io.map(|(who, _)| who)
    }
}
