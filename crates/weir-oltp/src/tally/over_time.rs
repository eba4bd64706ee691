//! Counters of a database over time, in bounded memory: their values at the end of each interval.
//! If there are too many intervals, pairs of them are merged.

use super::ratio::{cpu_share, ratio};
use crate::Counters;
use weir_report::number::float;
use weir_report::oltp::LoadPoint;
use weir_units::{Instant, Span};

/// Maximum number of intervals.
const MAX_POINTS: usize = 4096;

#[derive(Debug)]
pub(super) struct OverTime {
    every: u64,
    readings: Vec<Counters>,
}

impl OverTime {
    pub(super) fn new(every: Span) -> Self {
        Self { every: every.nanos().max(1), readings: Vec::new() }
    }

    /// Returns the end of an interval by its number, from 1.
    fn end_of(&self, interval: usize) -> u64 {
        self.every.saturating_mul(interval as u64)
    }

    /// Advances to `now`. The counters do not change until then.
    pub(super) fn pass(&mut self, now: Instant, counters: impl Fn() -> Counters) {
        while self.end_of(self.readings.len() + 1) <= now.nanos() {
            self.readings.push(counters());
            if self.readings.len() == MAX_POINTS {
                self.readings = self.readings.iter().skip(1).step_by(2).copied().collect();
                self.every = self.every.saturating_mul(2);
            }
        }
    }

    /// Returns the intervals of a run that is at `now`, with the present counters `last`.
    pub(super) fn points(&self, now: Instant, last: Counters, vcores: u32) -> Vec<LoadPoint> {
        let mut start = (0, Counters::default());
        let ends = (1..).map(|interval| self.end_of(interval));
        let intervals = ends.zip(self.readings.iter().copied());
        let rest = (now.nanos() > self.end_of(self.readings.len())).then_some((now.nanos(), last));
        intervals
            .chain(rest)
            .map(|end: (u64, Counters)| {
                let from = std::mem::replace(&mut start, end);
                point(from.0, end.0 - from.0, &end.1.since(&from.1), vcores)
            })
            .collect()
    }
}

fn point(start: u64, length: u64, counted: &Counters, vcores: u32) -> LoadPoint {
    let length_s = float(length) / 1e9;
    let missed = ratio(float(counted.pages_missed), float(counted.pages_wanted));
    let waits = counted.waits.iter().filter(|(_, totals)| totals.time > Span::ZERO);
    LoadPoint {
        start_s: float(start) / 1e9,
        length_s,
        batches_per_s: float(counted.batches) / length_s,
        transactions_per_min: float(counted.transactions) / length_s * 60.0,
        cpu_share: cpu_share(counted, length_s, vcores),
        buffer_hit_share: (counted.pages_wanted > 0).then(|| (1.0 - missed).max(0.0)),
        top_wait: waits
            .max_by_key(|(_, totals)| totals.time)
            .map(|(wait, _)| wait.name().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_intervals_are_merged() {
        let mut over_time = OverTime::new(Span::from_nanos(10));
        let counted = |batches| Counters { batches, ..Counters::default() };
        for at in 0..50_000 {
            over_time.pass(Instant::from_nanos(at), || counted(at));
        }
        let points = over_time.points(Instant::from_nanos(50_000), counted(50_000), 1);
        assert!((1_000..4_096).contains(&points.len()), "{}", points.len());
        let batches: f64 = points.iter().map(|p| p.batches_per_s * p.length_s).sum();
        assert!((batches - 50_000.0).abs() < 0.5, "{batches}");
    }
}
