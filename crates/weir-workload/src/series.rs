//! Counters of a run over time, in bounded memory: if there are too many intervals, pairs of them
//! are merged.

use crate::io::Op;
use weir_report::number::float;
use weir_report::run::SeriesPoint;
use weir_units::{Instant, Span};

/// Maximum number of intervals.
const MAX_POINTS: usize = 4096;

#[derive(Debug, Clone, Copy, Default)]
struct Point {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    /// Reads for which the driver knows whether a cache served them, and those that it served.
    judged: u64,
    hits: u64,
}

/// Merges intervals.
fn sum(points: &[Point]) -> Point {
    points.iter().fold(Point::default(), |sum, point| Point {
        reads: sum.reads + point.reads,
        writes: sum.writes + point.writes,
        read_bytes: sum.read_bytes + point.read_bytes,
        write_bytes: sum.write_bytes + point.write_bytes,
        judged: sum.judged + point.judged,
        hits: sum.hits + point.hits,
    })
}

/// Counters per interval.
#[derive(Debug)]
pub struct Series {
    every: u64,
    points: Vec<Point>,
}

impl Series {
    /// Starts with intervals of `every`.
    #[must_use]
    pub fn new(every: Span) -> Self {
        Self { every: every.nanos().max(1), points: Vec::new() }
    }

    /// Counts a request that completed at `at`. `hit` is whether a host cache served it, if the
    /// driver knows.
    pub fn record(&mut self, at: Instant, op: Op, length: u64, hit: Option<bool>) {
        while self.index(at) >= MAX_POINTS {
            self.join();
        }
        let index = self.index(at);
        if self.points.len() <= index {
            self.points.resize(index + 1, Point::default());
        }
        let point = &mut self.points[index];
        match op {
            Op::Read => {
                point.reads += 1;
                point.read_bytes += length;
                point.judged += u64::from(hit.is_some());
                point.hits += u64::from(hit == Some(true));
            }
            Op::Write => {
                point.writes += 1;
                point.write_bytes += length;
            }
            Op::Trim | Op::Flush => {}
        }
    }

    fn index(&self, at: Instant) -> usize {
        usize::try_from(at.nanos() / self.every).unwrap_or(usize::MAX)
    }

    fn join(&mut self) {
        self.every *= 2;
        self.points = self.points.chunks(2).map(sum).collect();
    }

    /// Returns the intervals of a run that ended at `end`. The last one may be shorter. The few
    /// requests that complete after the end of the jobs give no rate, so a rest of less than a
    /// tenth of an interval is part of the interval before it.
    #[must_use]
    pub fn points(&self, end: Instant) -> Vec<SeriesPoint> {
        let start = |at: usize| self.every.saturating_mul(at as u64);
        let mut points = self.points.clone();
        let last = points.len().saturating_sub(1);
        let stub = last > 0 && end.nanos().saturating_sub(start(last)) < self.every / 10;
        if stub {
            let both = points.split_off(last - 1);
            points.push(sum(&both));
        }
        let count = points.len();
        let point = |(at, point): (usize, &Point)| {
            let start = start(at);
            let more = if stub && at + 1 == count { self.every / 10 } else { 0 };
            let length = end.nanos().saturating_sub(start).clamp(1, self.every + more);
            let length_s = float(length) / 1e9;
            SeriesPoint {
                start_s: float(start) / 1e9,
                length_s,
                read_bytes_per_s: float(point.read_bytes) / length_s,
                write_bytes_per_s: float(point.write_bytes) / length_s,
                read_iops: float(point.reads) / length_s,
                write_iops: float(point.writes) / length_s,
                hit_share: (point.judged > 0).then(|| float(point.hits) / float(point.judged)),
            }
        };
        points.iter().enumerate().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects seconds, bytes read and operations written per second, for each interval.
    #[track_caller]
    fn check(every: Span, completions: &[(u64, Op, u64)], expect: &[(f64, f64, f64)]) {
        let mut series = Series::new(every);
        for (millis, op, length) in completions {
            series.record(Instant::ZERO + Span::from_millis(*millis), *op, *length, None);
        }
        let points = series.points(Instant::FAR);
        let got = points.iter().map(|p| (p.start_s, p.read_bytes_per_s, p.write_iops));
        assert_eq!(got.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn completions_count_where_they_fall() {
        let second = Span::from_secs(1);
        check(second, &[], &[]);
        let some = [(0, Op::Read, 512), (999, Op::Read, 512), (1000, Op::Write, 9)];
        check(second, &some, &[(0.0, 1024.0, 0.0), (1.0, 0.0, 1.0)]);
        let gap = [(2000, Op::Write, 1), (2001, Op::Trim, 1), (2002, Op::Flush, 0)];
        check(second, &gap, &[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 1.0)]);
    }

    /// 500 a second for three seconds; the last ones complete a moment later.
    #[test]
    fn completions_after_the_end_are_no_interval_of_their_own() {
        let read = |ends: &[u64]| {
            let mut series = Series::new(Span::from_secs(1));
            let steady = (0..1_500).map(|n| n * 2);
            for millis in steady.chain(ends.iter().copied()) {
                series.record(Instant::ZERO + Span::from_millis(millis), Op::Read, 1, None);
            }
            let end = Instant::ZERO + Span::from_millis(*ends.last().expect("an end"));
            let points = series.points(end);
            points.iter().map(|p| (p.length_s, p.read_iops)).collect::<Vec<_>>()
        };
        assert_eq!(read(&[3_000, 3_010]), [(1.0, 500.0), (1.0, 500.0), (1.01, 502.0 / 1.01)]);
        assert_eq!(read(&[3_000, 3_500])[3], (0.5, 4.0));
    }

    #[test]
    fn a_long_run_has_longer_intervals_and_loses_nothing() {
        let mut series = Series::new(Span::from_millis(1));
        for millis in 0..10_000 {
            series.record(
                Instant::ZERO + Span::from_millis(millis),
                Op::Read,
                2,
                Some(millis < 5_000),
            );
        }
        let points = series.points(Instant::FAR);
        assert!(points.len() <= MAX_POINTS && points[0].length_s == 0.004, "{:?}", points[0]);
        assert_eq!((points[0].hit_share, points[2_400].hit_share), (Some(1.0), Some(0.0)));
        let bytes: f64 = points.iter().map(|p| p.read_bytes_per_s * p.length_s).sum();
        assert!((bytes - 20_000.0).abs() < 1e-6, "{bytes}");
    }
}
