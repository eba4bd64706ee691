//! Counts, bytes and latencies of requests, per process and per reporting group. It is sans-IO: the
//! driver reports each completion with its time.

use crate::io::Op;
use crate::job::JobSpec;
use crate::workload::Workload;
use hdrhistogram::Histogram;
use weir_report::run::{JobReport, LatencyReport, OpReport};
use weir_units::{Instant, Span};

/// Two significant digits: percentiles within 1 %, in some tens of kilobytes.
const DIGITS: u8 = 2;

/// Converts a sum for the computation of a mean.
#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
pub(crate) const fn wide(sum: u128) -> f64 {
    sum as f64
}

/// One kind of operation of one process.
#[derive(Debug, Clone)]
pub(crate) struct OpTally {
    ios: u64,
    bytes: u64,
    /// Exact, for the mean.
    latency_sum: u128,
    latency: Option<Box<Histogram<u64>>>,
}

impl OpTally {
    pub(crate) const fn new() -> Self {
        Self { ios: 0, bytes: 0, latency_sum: 0, latency: None }
    }

    pub(crate) fn record(&mut self, bytes: u64, latency: u64) {
        self.ios += 1;
        self.bytes += bytes;
        self.latency_sum += u128::from(latency);
        // The histogram supports two digits.
        let histogram = || Histogram::new(DIGITS).map(Box::new).ok();
        if self.latency.is_none() {
            self.latency = histogram();
        }
        if let Some(latencies) = &mut self.latency {
            // It resizes itself, so it accepts every value.
            let _ = latencies.record(latency);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_sum += other.latency_sum;
        match (&mut self.latency, &other.latency) {
            (Some(mine), Some(theirs)) => drop(mine.add(theirs.as_ref())),
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    /// Returns the total latency in nanoseconds.
    pub(crate) const fn latency_sum(&self) -> u128 {
        self.latency_sum
    }

    pub(crate) fn report(&self, seconds: f64) -> OpReport {
        let float = weir_report::number::float;
        let per_s = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
        let latency = self.latency.as_ref().map_or_else(LatencyReport::default, |l| {
            let at = |q| l.value_at_quantile(q);
            LatencyReport {
                mean: wide(self.latency_sum) / float(self.ios),
                min: l.min(),
                p50: at(0.5),
                p90: at(0.9),
                p95: at(0.95),
                p99: at(0.99),
                p99_9: at(0.999),
                max: l.max(),
            }
        });
        let (iops, bytes_per_s) = (per_s(self.ios), per_s(self.bytes));
        OpReport { ios: self.ios, bytes: self.bytes, iops, bytes_per_s, latency }
    }
}

/// Reads, writes and trims of each process.
#[derive(Debug)]
pub struct Tally {
    processes: Vec<[OpTally; 3]>,
}

impl Tally {
    /// Makes empty counters for `processes` processes.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        let ops = [OpTally::new(), OpTally::new(), OpTally::new()];
        Self { processes: vec![ops; processes] }
    }

    /// Resets a process at the end of its ramp.
    pub fn restart(&mut self, process: u32) {
        self.processes[process as usize] = [OpTally::new(), OpTally::new(), OpTally::new()];
    }

    /// Counts a completed request of `process`. Flushes are not counted.
    pub fn record(&mut self, process: u32, op: Op, bytes: u64, latency: Span) {
        let slot = match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            Op::Flush => return,
        };
        self.processes[process as usize][slot].record(bytes, latency.nanos());
    }

    /// Returns the reports of the jobs, see [`members`](Self::members). `now` is the end of
    /// processes that have not ended; `specs` has the job of each process.
    #[must_use]
    pub fn jobs(&self, workload: &Workload, specs: &[JobSpec], now: Instant) -> Vec<JobReport> {
        let report = |members: Vec<u32>| {
            let mut names: Vec<&str> = Vec::new();
            for process in &members {
                let name = specs[*process as usize].name.as_str();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            self.fill(empty(&names.join(", ")), &members, workload, now)
        };
        Self::members(specs).into_iter().map(report).collect()
    }

    /// Returns the latency of all operations of all processes.
    #[must_use]
    pub fn latency(&self) -> LatencyReport {
        let mut all = OpTally::new();
        self.processes.iter().flatten().for_each(|own| all.add(own));
        // The rates are not part of the latency, so their time does not matter.
        all.report(0.0).latency
    }

    /// Returns the processes of each report of [`jobs`](Self::jobs), in the same order.
    ///
    /// The clones of a job section have one report. A job with `group_reporting` joins the jobs
    /// before it, as in fio: back to the last one without it, or to the start of its group. Jobs of
    /// different groups are never joined (`stonewall`, `new_group`, another file), and neither are
    /// sections with the same name.
    #[must_use]
    pub fn members(specs: &[JobSpec]) -> Vec<Vec<u32>> {
        let mut processes = 0_u32..;
        specs
            .chunk_by(|last: &JobSpec, next: &JobSpec| {
                last.group == next.group && (next.group_reporting || last.at == next.at)
            })
            .map(|joined: &[JobSpec]| processes.by_ref().take(joined.len()).collect())
            .collect()
    }

    fn fill(
        &self,
        mut report: JobReport,
        members: &[u32],
        workload: &Workload,
        now: Instant,
    ) -> JobReport {
        let mut ops = [OpTally::new(), OpTally::new(), OpTally::new()];
        let (mut first, mut last) = (Instant::FAR, Instant::ZERO);
        for process in members {
            for (sum, own) in ops.iter_mut().zip(&self.processes[*process as usize]) {
                sum.add(own);
            }
            let Some(state) = workload.process_state(*process) else { continue };
            let Some(start) = state.measuring_from.or(state.started_at) else { continue };
            first = first.min(start);
            last = last.max(state.ended_at.unwrap_or(now));
        }
        report.measured_s = weir_report::number::float((last - first).nanos()) / 1e9;
        report.processes = members.len();
        let latency: u128 = ops.iter().map(|op| op.latency_sum).sum();
        if report.measured_s > 0.0 {
            report.queue_depth = wide(latency) / 1e9 / report.measured_s;
        }
        let [read, write, trim] = ops.map(|op| op.report(report.measured_s));
        JobReport { read, write, trim, ..report }
    }
}

fn empty(name: &str) -> JobReport {
    JobReport {
        name: name.to_owned(),
        processes: 0,
        measured_s: 0.0,
        read: OpReport::default(),
        write: OpReport::default(),
        trim: OpReport::default(),
        queue_depth: 0.0,
        hit_share: None,
        waits_ns: std::collections::BTreeMap::new(),
        medium_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{self, Isolated};
    use crate::job::JobFile;

    fn parse(name: &str, text: &str) -> JobFile {
        fio::parse(name, text, &Isolated).expect("a job file")
    }

    #[test]
    fn the_mean_of_the_longest_latencies_is_exact() {
        let mut tally = OpTally::new();
        (0..3).for_each(|_| tally.record(512, u64::MAX));
        let mut both = tally.clone();
        both.add(&tally);
        let mean = both.report(1.0).latency.mean;
        assert!((mean / 1.844_674_407_370_955_2e19 - 1.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn the_latency_of_all_is_that_of_one_process_with_all_their_requests() {
        let (mut apart, mut together) = (Tally::new(3), Tally::new(1));
        for n in 1..=1_000_u64 {
            let op = [Op::Read, Op::Write, Op::Trim][(n % 3) as usize];
            apart.record(u32::try_from(n % 3).expect("small"), op, 512, Span::from_nanos(n * n));
            together.record(0, Op::Read, 512, Span::from_nanos(n * n));
        }
        assert_eq!(apart.latency(), together.latency());
        assert!(apart.latency().p99 > 900_000, "{:?}", apart.latency());
        assert_eq!(Tally::new(2).latency(), LatencyReport::default());
    }

    /// Expects these processes in each report.
    #[track_caller]
    fn check(file: &JobFile, expect: &[&[u32]]) {
        let clones = |spec: &JobSpec| vec![spec.clone(); spec.clones as usize];
        let specs: Vec<JobSpec> = file.jobs.iter().flat_map(clones).collect();
        assert_eq!(Tally::members(&specs), expect);
    }

    #[test]
    fn a_report_is_a_section_with_its_clones() {
        let text = "[j]\nnumjobs=2\n[j]\n[k]\n[j]\n";
        check(&parse("a.fio", text), &[&[0, 1], &[2], &[3], &[4]]);
        let twice = parse("a.fio", "[j]\nnumjobs=2\n").then(parse("a.fio", "[j]\nnumjobs=2\n"));
        check(&twice, &[&[0, 1], &[2, 3]]);
    }

    #[test]
    fn group_reporting_merges_earlier_jobs_of_the_group() {
        let grouped = "[global]\ngroup_reporting\n[j]\nnumjobs=2\n[j]\n[k]\n";
        check(&parse("a.fio", grouped), &[&[0, 1, 2, 3]]);
        check(
            &parse("a.fio", grouped).then(parse("a.fio", grouped)),
            &[&[0, 1, 2, 3], &[4, 5, 6, 7]],
        );
        let walled = "[global]\ngroup_reporting\n[j]\n[j]\nstonewall\n[k]\nnew_group\n[l]\n";
        check(&parse("a.fio", walled), &[&[0], &[1], &[2, 3]]);
        let some = "[j]\ngroup_reporting\nnumjobs=2\n[l]\n[k]\ngroup_reporting\n";
        check(&parse("a.fio", some), &[&[0, 1], &[2, 3]]);
    }
}
