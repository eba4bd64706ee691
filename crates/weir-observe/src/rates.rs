//! Counters to rates.
//!
//! A [`Track`] is a quantity over time: the operations of a file (its reads and its writes), or
//! the bytes in memory. A [`Tracker`] turns samples into readings of tracks, each over the time
//! between two samples that have the values. A counter that goes back was reset. The growth since
//! its last value is unknown, so there is no reading, and the tracker counts the reset.
//!
//! [`Spread`] and [`Points`] summarise readings in memory that does not grow with their number.
//! They use floats, because nothing is stored from them.

use crate::header::{Contents, Counting, EntityId, EntityKind, SeriesId};
use crate::{attribute, metric};
use hdrhistogram::Histogram;
use std::collections::HashMap;
use weir_units::{Instant, Span};

/// A sum of series, all of them cumulative or all of them gauges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track(pub Vec<SeriesId>);

/// The change of a track from one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The earlier sample.
    pub from: Instant,
    /// The later one.
    pub to: Instant,
    /// The growth of a counter, or the value of a gauge times the seconds.
    pub amount: f64,
}

impl Reading {
    /// Returns the seconds between the two samples.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        seconds(self.to - self.from)
    }

    /// Returns the rate per second, or the value of a gauge.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.amount / self.seconds()
    }
}

#[derive(Debug)]
struct Followed {
    series: Vec<(SeriesId, f64)>,
    counting: Counting,
    /// Series of the length of the sampling interval, if it is recorded.
    interval: Option<SeriesId>,
    /// End of a known idle time before the first sample.
    idle_until: Option<Instant>,
    /// Time and values of the last sample that had all of them.
    last: Option<(Instant, Vec<i64>)>,
    /// Its list of waits, and the series of its time there.
    list: Option<(usize, SeriesId)>,
}

/// All waits of one entity.
#[derive(Debug, Default)]
struct WaitList {
    /// Time of the last sample with any of them, and the shortest wait time in it.
    last: Option<(Instant, i64)>,
    /// Series of the wait times.
    times: Vec<SeriesId>,
}

/// A source may list only its longest waits. A wait that is missing took at most as long as the
/// shortest in the list. If that is at most this fraction of its later time, the wait counts from
/// zero.
const NOTHING: i64 = 100;

impl WaitList {
    /// Returns the time since which a wait that is new in the list counts from zero.
    fn zero_since(&self, time: Option<i64>) -> Option<Instant> {
        let (at, least) = self.last?;
        (least.checked_mul(NOTHING)? <= time?).then_some(at)
    }

    fn take(&mut self, at: Instant, row: &[Option<i64>]) {
        let times = self.times.iter().filter_map(|id| *row.get(id.0 as usize)?);
        if let Some(least) = times.min() {
            self.last = Some((at, least));
        }
    }
}

/// Returns the lists of waits, and for each wait its list and the series of its time.
fn wait_lists(contents: &Contents) -> (Vec<WaitList>, HashMap<EntityId, (usize, SeriesId)>) {
    let mut lists: Vec<WaitList> = Vec::new();
    let mut of_parent: HashMap<Option<EntityId>, usize> = HashMap::new();
    let mut of_wait = HashMap::new();
    for (series, id) in contents.series.iter().zip(0..) {
        let Some(entity) = contents.entity(series.entity) else { continue };
        if entity.kind != EntityKind::Wait || series.metric != metric::name::WAIT_TIME_MS {
            continue;
        }
        let list = *of_parent.entry(entity.parent).or_insert_with(|| {
            lists.push(WaitList::default());
            lists.len() - 1
        });
        lists[list].times.push(SeriesId(id));
        of_wait.insert(series.entity, (list, SeriesId(id)));
    }
    (lists, of_wait)
}

/// Rates of tracks, computed sample by sample.
#[derive(Debug)]
pub struct Tracker {
    tracks: Vec<Followed>,
    values: Vec<i64>,
    restarts: u64,
    /// Time of the previous sample, whatever values it had.
    before: Option<Instant>,
    lists: Vec<WaitList>,
}

impl Tracker {
    /// Creates a tracker of `tracks`, whose series are those of `contents`.
    #[must_use]
    pub fn new(contents: &Contents, tracks: &[Track]) -> Self {
        let series = |id: &SeriesId| contents.series.get(id.0 as usize);
        let (lists, of_wait) = wait_lists(contents);
        let list = |track: &Track| {
            let [id] = &track.0[..] else { return None };
            let counted = series(id).filter(|own| own.counting == Counting::Cumulative)?;
            of_wait.get(&counted.entity).copied()
        };
        let followed = |track: &Track| Followed {
            series: track
                .0
                .iter()
                .map(|id| (*id, series(id).map_or(1.0, |s| 10_f64.powi(i32::from(s.scale)))))
                .collect(),
            counting: track.0.first().and_then(series).map_or(Counting::Gauge, |s| s.counting),
            interval: track
                .0
                .first()
                .and_then(series)
                .and_then(|s| contents.find(s.entity, metric::name::INTERVAL_NS)),
            idle_until: idle_since(contents, track),
            last: None,
            list: list(track),
        };
        let tracks = tracks.iter().map(followed).collect();
        Self { tracks, values: Vec::new(), restarts: 0, before: None, lists }
    }

    /// Takes a sample, and reports each new reading with the index of its track.
    pub fn sample(
        &mut self,
        at: Instant,
        row: &[Option<i64>],
        mut tell: impl FnMut(usize, Reading),
    ) {
        for (index, track) in self.tracks.iter_mut().enumerate() {
            let values = track.series.iter().map_while(|(id, _)| *row.get(id.0 as usize)?);
            self.values.clear();
            self.values.extend(values);
            if self.values.len() != track.series.len() || self.values.is_empty() {
                let is_idle = track.idle_until.is_some_and(|until| until < at);
                if let Some(from) = track.idle_until.filter(|_| is_idle && track.last.is_none()) {
                    track.idle_until = Some(at);
                    tell(index, Reading { from, to: at, amount: 0.0 });
                }
                continue;
            }
            // The first value of a gauge holds since the previous sample, which had none.
            let since = match track.counting {
                Counting::Gauge => self.before.unwrap_or(at),
                Counting::Cumulative => at,
            };
            let said = track
                .interval
                .filter(|_| track.counting == Counting::Gauge)
                .and_then(|id| row.get(id.0 as usize).copied().flatten())
                .and_then(|ns| at.nanos().checked_sub(u64::try_from(ns).ok()?));
            let lists = &self.lists;
            let zero_since = || {
                let (list, time) = track.list?;
                lists.get(list)?.zero_since(*row.get(time.0 as usize)?)
            };
            let last = track.last.get_or_insert_with(|| match zero_since() {
                Some(since) => (since, vec![0; self.values.len()]),
                None => (since, self.values.clone()),
            });
            let (from, before) = (said.map_or(last.0, Instant::from_nanos), &last.1);
            if from < at {
                let went_back = self.values.iter().zip(before).any(|(now, before)| now < before);
                let scaled = |values: &[i64]| {
                    let parts = values.iter().zip(&track.series);
                    parts.map(|(value, (_, scale))| signed(*value) * scale).sum::<f64>()
                };
                let differences = || {
                    let pairs = self.values.iter().zip(before);
                    pairs.map(|(now, before)| now.saturating_sub(*before)).collect::<Vec<_>>()
                };
                let amount = match track.counting {
                    Counting::Gauge => Some(scaled(&self.values) * seconds(at - from)),
                    Counting::Cumulative if went_back => None,
                    Counting::Cumulative => Some(scaled(&differences())),
                };
                match amount {
                    Some(amount) => tell(index, Reading { from, to: at, amount }),
                    None => self.restarts += 1,
                }
            }
            last.0 = at;
            last.1.clone_from(&self.values);
        }
        self.before = Some(at);
        self.lists.iter_mut().for_each(|list| list.take(at, row));
    }

    /// Returns the number of counter resets.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }
}

/// Returns the start of a known idle time before the first sample of a track of rates.
fn idle_since(contents: &Contents, track: &Track) -> Option<Instant> {
    let series = track.0.iter().map(|id| contents.series.get(id.0 as usize));
    let all = series.collect::<Option<Vec<_>>>()?;
    if !all.iter().all(|series| metric::is_rate(&series.metric)) {
        return None;
    }
    let since = contents.entity(all.first()?.entity)?.number(attribute::IDLE_SINCE_NS)?;
    Some(Instant::from_nanos(since))
}

fn seconds(span: Span) -> f64 {
    float(span.nanos()) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
fn float(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
fn signed(n: i64) -> f64 {
    n as f64
}

/// The distribution of readings: mean, percentiles, maximum.
#[derive(Debug)]
pub struct Spread {
    /// Rates in thousandths, within 1 %.
    histogram: Histogram<u64>,
    amount: f64,
    seconds: f64,
    max: f64,
}

impl Default for Spread {
    fn default() -> Self {
        // Two significant digits are always possible.
        let histogram = Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits"));
        Self { histogram, amount: 0.0, seconds: 0.0, max: 0.0 }
    }
}

impl Spread {
    /// Adds a reading.
    pub fn add(&mut self, reading: &Reading) {
        let rate = reading.rate().max(0.0);
        self.amount += reading.amount;
        self.seconds += reading.seconds();
        self.max = self.max.max(rate);
        // The histogram resizes itself, so no value is out of range.
        let recorded = self.histogram.record(thousandths(rate));
        debug_assert!(recorded.is_ok(), "{rate}");
    }

    /// Returns the sum of all readings.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.amount
    }

    /// Returns the mean over time; `None` without readings.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.amount / self.seconds)
    }

    /// Returns the value that a share (0 to 1) of the readings does not exceed, within 1 %.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        (float(self.histogram.value_at_quantile(share)) / 1e3).min(self.max)
    }

    /// Returns the largest reading.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Returns the number of readings.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; what is too large saturates"
)]
fn thousandths(rate: f64) -> u64 {
    (rate * 1e3).round() as u64
}

/// The number of intervals above which neighbours are joined.
const MAX_POINTS: usize = 1024;

/// Readings over time, in intervals of equal width. If there are too many, neighbours are joined
/// and the width doubles.
#[derive(Debug, Clone)]
pub struct Points {
    width: u64,
    /// Amount, and seconds covered by readings.
    stretches: Vec<(f64, f64)>,
}

impl Points {
    /// Creates a series of points with this initial width.
    #[must_use]
    pub fn new(width: Span) -> Self {
        Self { width: width.nanos().max(1), stretches: Vec::new() }
    }

    /// Adds a reading, in proportion to every interval that it overlaps.
    pub fn add(&mut self, reading: &Reading) {
        let (from, to) = (reading.from.nanos(), reading.to.nanos());
        if from >= to {
            return;
        }
        self.reach(reading.to);
        let last = self.index(to - 1);
        for index in self.index(from)..=last {
            let start = self.width.saturating_mul(index as u64);
            let end = start.saturating_add(self.width);
            let covered = seconds(Span::from_nanos(end.min(to) - start.max(from)));
            let (amount, sum) = &mut self.stretches[index];
            *amount += reading.rate() * covered;
            *sum += covered;
        }
    }

    /// Extends the intervals to `to` without readings, so that two series can be compared side by
    /// side.
    pub fn reach(&mut self, to: Instant) {
        let Some(before) = to.nanos().checked_sub(1) else { return };
        while self.index(before) >= MAX_POINTS {
            self.join();
        }
        let last = self.index(before);
        if self.stretches.len() <= last {
            self.stretches.resize(last + 1, (0.0, 0.0));
        }
    }

    fn index(&self, nanos: u64) -> usize {
        usize::try_from(nanos / self.width).unwrap_or(usize::MAX)
    }

    fn join(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.stretches = self
            .stretches
            .chunks(2)
            .map(|pair| pair.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
            .collect();
    }

    /// Returns the middle of each interval in seconds, and the rate there; `None` in gaps.
    pub fn iter(&self) -> impl Iterator<Item = (f64, Option<f64>)> + '_ {
        let width = float(self.width) / 1e9;
        self.stretches.iter().enumerate().map(move |(at, (amount, covered))| {
            let middle = (float(at as u64) + 0.5) * width;
            (middle, (*covered > 0.0).then(|| amount / covered))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Entity, EntityId, EntityKind, Series, Unit};

    fn contents(counting: Counting, scale: i8) -> Contents {
        let mut contents = Contents::default();
        let (kind, name) = (EntityKind::File, "f".to_owned());
        let attributes = std::collections::BTreeMap::new();
        contents.add_entity(Entity { kind, name, parent: None, attributes });
        for metric in ["a", "b"] {
            let (metric, unit) = (metric.to_owned(), Unit::Count);
            let entity = EntityId(0);
            contents.add_series(Series { entity, metric, unit, counting, scale });
        }
        contents
    }

    fn at(second: u64) -> Instant {
        Instant::ZERO + Span::from_secs(second)
    }

    type Row = (u64, Option<i64>, Option<i64>);

    /// Checks the readings of the sum of two series: from, to, rate.
    #[track_caller]
    fn check(contents: &Contents, rows: &[Row], expect: &[(u64, u64, f64)], restarts: u64) {
        let track = Track(vec![SeriesId(0), SeriesId(1)]);
        let mut tracker = Tracker::new(contents, &[track]);
        let mut got = Vec::new();
        for (second, a, b) in rows {
            tracker.sample(at(*second), &[*a, *b], |_, reading| {
                let second = |at: Instant| at.nanos() / 1_000_000_000;
                got.push((second(reading.from), second(reading.to), reading.rate()));
            });
        }
        assert_eq!((&got[..], tracker.restarts()), (expect, restarts));
    }

    #[test]
    fn gaps_and_restarts_yield_no_rates() {
        let counters = contents(Counting::Cumulative, 0);
        check(&counters, &[(0, Some(5), Some(5)), (2, Some(9), Some(7))], &[(0, 2, 3.0)], 0);
        // A value is missing: the reading spans the gap.
        let gap = [(0, Some(0), Some(0)), (1, Some(1), None), (2, Some(6), Some(0))];
        check(&counters, &gap, &[(0, 2, 3.0)], 0);
        let restart = [(0, Some(90), Some(9)), (1, Some(2), Some(9)), (2, Some(4), Some(10))];
        check(&counters, &restart, &[(1, 2, 3.0)], 1);
    }

    #[test]
    fn a_gauge_can_decrease() {
        let gauges = contents(Counting::Gauge, -1);
        let rows = [(0, Some(10), Some(0)), (2, Some(30), Some(5)), (3, Some(-10), Some(0))];
        check(&gauges, &rows, &[(0, 2, 3.5), (2, 3, -1.0)], 0);
        // The first value holds since the sample before; a later missing value is no zero.
        let rows = [
            (0, None, None),
            (1, None, None),
            (2, Some(9), Some(1)),
            (3, None, None),
            (5, Some(3), Some(2)),
        ];
        check(&gauges, &rows, &[(1, 2, 1.0), (2, 5, 0.5)], 0);
    }

    #[test]
    fn a_new_wait_counts_from_zero() {
        let mut contents = Contents::default();
        let mut series = Vec::new();
        for name in ["WRITELOG", "LCK_M_X"] {
            let (kind, name) = (EntityKind::Wait, name.to_owned());
            let attributes = std::collections::BTreeMap::new();
            let entity = contents.add_entity(Entity { kind, name, parent: None, attributes });
            for metric in [metric::name::WAIT_TIME_MS, metric::name::WAITING_TASKS_COUNT] {
                let (metric, counting) = (metric.to_owned(), Counting::Cumulative);
                let own = Series { entity, metric, unit: Unit::Count, counting, scale: 0 };
                series.push(contents.add_series(own));
            }
        }
        let tracks: Vec<Track> = series.iter().map(|id| Track(vec![*id])).collect();
        let amounts = |shortest: i64| {
            let mut tracker = Tracker::new(&contents, &tracks);
            let mut told = Vec::new();
            let first = [Some(shortest), Some(6), None, None];
            let second = [Some(shortest + 20), Some(10), Some(900), Some(3)];
            for (second, row) in [(0, first), (5, second)] {
                tracker.sample(at(second), &row, |index, reading| {
                    assert_eq!(reading.seconds(), 5.0);
                    told.push((index, reading.amount));
                });
            }
            told
        };
        // A list whose shortest entry is 9 ms cannot have cut 900 ms: the wait did not exist.
        assert_eq!(amounts(9), [(0, 20.0), (1, 4.0), (2, 900.0), (3, 3.0)]);
        // A list cut at 10 ms may hide up to 9 ms, more than 1 %.
        assert_eq!(amounts(10), [(0, 20.0), (1, 4.0)]);
    }

    fn reading(from: u64, to: u64, amount: f64) -> Reading {
        Reading { from: at(from), to: at(to), amount }
    }

    #[test]
    fn a_spread_has_the_mean_over_time_and_the_percentiles_of_readings() {
        let mut spread = Spread::default();
        assert_eq!(spread.mean(), None);
        (0..99).for_each(|n| spread.add(&reading(n, n + 1, 10.0)));
        spread.add(&reading(99, 109, 5_000.0));
        assert_eq!(spread.mean(), Some(5_990.0 / 109.0));
        let within = |share: f64, expect: f64| (spread.quantile(share) / expect - 1.0).abs() < 0.01;
        assert!(within(0.5, 10.0) && within(0.99, 10.0) && within(1.0, 500.0));
        assert_eq!((spread.max(), spread.total(), spread.count()), (500.0, 5_990.0, 100));
    }

    #[test]
    fn points_are_merged_without_loss() {
        let mut points = Points::new(Span::from_secs(1));
        (0..10_000).for_each(|n| points.add(&reading(n, n + 1, 2.0)));
        assert!(points.iter().count() <= MAX_POINTS);
        assert!(points.iter().all(|(_, rate)| rate == Some(2.0)));
        let mut gap = Points::new(Span::from_secs(1));
        gap.add(&reading(0, 2, 8.0));
        gap.add(&reading(4, 5, 1.0));
        let rates: Vec<_> = gap.iter().collect();
        assert_eq!(
            rates,
            [(0.5, Some(4.0)), (1.5, Some(4.0)), (2.5, None), (3.5, None), (4.5, Some(1.0))]
        );
    }
}
