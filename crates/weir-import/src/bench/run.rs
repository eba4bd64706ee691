//! A run of diskspd in any format, by target.

use super::job::{self, BOTH, Direction, Facts, Jobs, READ, RunClock, WRITE};
use crate::sheet::{At, Sheet};
use weir_observe::attribute;
use weir_observe::header::{Attribute, EntityId};
use weir_observe::metric::Metric;

/// I/O of a run: per thread and target, or a sum of these.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Io {
    pub(super) count: f64,
    pub(super) bytes: f64,
    /// Operations per second.
    pub(super) per_s: f64,
    /// Total latency in nanoseconds, if it was measured.
    pub(super) latency_sum: Option<f64>,
    /// Standard deviation in nanoseconds; unknown for a sum.
    pub(super) stddev: Option<f64>,
}

impl Io {
    pub(super) fn add(&mut self, other: &Self) {
        let is_first = self.count == 0.0 && self.latency_sum.is_none();
        self.latency_sum = match (self.latency_sum, other.latency_sum) {
            (Some(sum), Some(more)) => Some(sum + more),
            (None, more) if is_first => more,
            (sum, None) if other.count == 0.0 => sum,
            _ => None,
        };
        self.stddev = None;
        self.count += other.count;
        self.bytes += other.bytes;
        self.per_s += other.per_s;
    }
}

/// The I/O to a target: all, reads, writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    pub(super) path: String,
    pub(super) size: Option<u64>,
    pub(super) both: Option<Io>,
    pub(super) reads: Option<Io>,
    pub(super) writes: Option<Io>,
    /// Threads with I/O to it.
    pub(super) threads: u64,
}

/// A run of diskspd.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) host: Option<String>,
    /// Start of its process, in nanoseconds since 1970.
    pub(super) began: Option<i64>,
    /// Measured seconds.
    pub(super) seconds: f64,
    /// Seconds of warm-up.
    pub(super) warmup: f64,
    pub(super) cpu: Vec<(&'static Metric, f64)>,
    pub(super) targets: Vec<Target>,
    /// Latency distribution of all targets together.
    pub(super) tails: Vec<(&'static Metric, f64)>,
}

impl Run {
    /// Returns the target of a path, and creates it if it is new.
    pub(super) fn target(&mut self, path: &str) -> &mut Target {
        let at = match self.targets.iter().position(|target| target.path == path) {
            Some(at) => at,
            None => {
                self.targets.push(Target { path: path.to_owned(), ..Target::default() });
                self.targets.len() - 1
            }
        };
        &mut self.targets[at]
    }
}

/// A writer of runs into a sheet.
#[derive(Debug, Default)]
pub(super) struct Runs {
    jobs: Jobs,
    clock: RunClock,
    is_time_told: bool,
}

impl Runs {
    /// Writes a run; `facts` returns the parameters of its targets.
    pub(super) fn put(
        &mut self,
        sheet: &mut Sheet,
        run: &Run,
        facts: impl Fn(&str) -> Facts,
    ) -> At {
        let host = job::host(sheet, run.host.as_deref());
        for (measure, value) in &run.cpu {
            sheet.set(host, measure, *value);
        }
        let mut last = None;
        for target in &run.targets {
            let mut facts = facts(&target.path);
            facts.extend(target.size.map(|size| ("size_bytes", size.into())));
            let depth = target_depth(&facts, target.threads);
            facts.extend(depth.map(|depth| (attribute::TARGET_QUEUE_DEPTH, depth.into())));
            let id = self.jobs.job(sheet, Some(host), &target.path, &facts);
            put_target(sheet, id, target);
            job::put_interval(sheet, id, job::nanos(run.seconds));
            last = Some(id);
        }
        if !run.tails.is_empty() {
            // The percentiles of several targets cannot be separated.
            let id = match (&run.targets[..], last) {
                ([_], Some(id)) => id,
                _ => job::job(sheet, Some(host), "all targets"),
            };
            for (measure, value) in &run.tails {
                sheet.set(id, measure, *value);
            }
        }
        if run.began.is_some() && !self.is_time_told {
            self.is_time_told = true;
            sheet.note("the end of a run is computed from its start, warm-up and test time");
        }
        let nanos = job::nanos(run.warmup + run.seconds);
        job::begin(sheet, nanos);
        self.clock.end(run.began, nanos)
    }
}

/// Returns the queue depth of a target over all threads.
fn target_depth(facts: &Facts, threads: u64) -> Option<u64> {
    let (_, per_thread) = facts.iter().find(|(name, _)| *name == "outstanding_per_thread")?;
    match per_thread {
        Attribute::Number(per_thread) => per_thread.checked_mul(threads).filter(|all| *all > 0),
        Attribute::Text(_) => None,
    }
}

fn put_target(sheet: &mut Sheet, id: EntityId, target: &Target) {
    let has_parts = target.reads.is_some() || target.writes.is_some();
    for (of, io) in [(&READ, target.reads), (&WRITE, target.writes), (&BOTH, target.both)] {
        let Some(io) = io else { continue };
        // Reads and writes contain it already.
        if of.totals.is_some() || !has_parts {
            put_rates(sheet, id, of, &io);
        }
        if io.count > 0.0 {
            if let Some(sum) = io.latency_sum {
                sheet.set(id, of.latency, sum / io.count);
            }
            if let Some((measure, stddev)) = of.tail("stddev").zip(io.stddev) {
                sheet.set(id, measure, stddev);
            }
        }
    }
}

fn put_rates(sheet: &mut Sheet, id: EntityId, of: &Direction, io: &Io) {
    sheet.set(id, of.rate, io.per_s);
    // MiB per second have two decimals; this is as exact as operations are.
    let bytes = if io.count > 0.0 { io.bytes / io.count * io.per_s } else { 0.0 };
    sheet.set(id, of.bytes_rate, bytes);
    if let Some((count, sum)) = of.totals {
        sheet.set(id, count, io.count);
        sheet.set(id, sum, io.bytes);
    }
}
