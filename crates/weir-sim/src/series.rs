//! How a run went over time, in bounded memory: when there are too many stretches,
//! neighbours are joined and the stretches become twice as long.

use weir_core::{Completion, Op};
use weir_report::number::float;
use weir_report::run::SeriesPoint;
use weir_units::Span;

/// More stretches than this are joined.
const MAX_POINTS: usize = 4096;

#[derive(Debug, Clone, Copy, Default)]
struct Point {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    hits: u64,
}

/// Counters per stretch.
#[derive(Debug)]
pub(crate) struct Series {
    every: u64,
    points: Vec<Point>,
}

impl Series {
    pub(crate) fn new(every: Span) -> Self {
        Self { every: every.nanos().max(1), points: Vec::new() }
    }

    pub(crate) fn record(&mut self, completion: &Completion) {
        let mut at = self.index(completion);
        while at >= MAX_POINTS {
            self.join();
            at = self.index(completion);
        }
        if self.points.len() <= at {
            self.points.resize(at + 1, Point::default());
        }
        let point = &mut self.points[at];
        match completion.op {
            Op::Read => {
                point.reads += 1;
                point.read_bytes += completion.len;
                point.hits += u64::from(completion.hit);
            }
            Op::Write | Op::WriteThrough => {
                point.writes += 1;
                point.write_bytes += completion.len;
            }
            Op::Discard | Op::Flush => {}
        }
    }

    fn index(&self, completion: &Completion) -> usize {
        usize::try_from(completion.at.nanos() / self.every).unwrap_or(usize::MAX)
    }

    fn join(&mut self) {
        self.every *= 2;
        let sum = |pair: &[Point]| {
            let mut sum = Point::default();
            for p in pair {
                sum.reads += p.reads;
                sum.writes += p.writes;
                sum.read_bytes += p.read_bytes;
                sum.write_bytes += p.write_bytes;
                sum.hits += p.hits;
            }
            sum
        };
        self.points = self.points.chunks(2).map(sum).collect();
    }

    pub(crate) fn points(&self) -> Vec<SeriesPoint> {
        let length_s = float(self.every) / 1e9;
        let point = |(at, p): (usize, &Point)| SeriesPoint {
            start_s: float(at as u64) * length_s,
            length_s,
            read_bytes_per_s: float(p.read_bytes) / length_s,
            write_bytes_per_s: float(p.write_bytes) / length_s,
            read_iops: float(p.reads) / length_s,
            write_iops: float(p.writes) / length_s,
            hit_share: if p.reads > 0 { float(p.hits) / float(p.reads) } else { 0.0 },
        };
        self.points.iter().enumerate().map(point).collect()
    }
}
