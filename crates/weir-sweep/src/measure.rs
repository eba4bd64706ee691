//! The simulation of a point and its metrics.

use crate::base::{Case, Workload};
use crate::error::SweepError;
use crate::file::SweepFile;
use crate::replay::{ReplayKeys, TraceInputs};
use crate::results::{Column, Kind};
use std::collections::BTreeMap;
use weir_report::number::float;
use weir_report::oltp::{FileReport, OltpReport};
use weir_report::run::{LatencyReport, RunReport};
use weir_sim::{
    OltpOptions, OltpSimulation, Options, ReplaySimError, ReplaySimOptions, ReplaySimulation,
    Simulation, devices,
};
use weir_units::{Instant, Span};
use weir_workload::replay::ReplayError;
use weir_workload::{JobFile, place};

/// Simulated time after which a stop is noticed.
const SLICE: Span = Span::from_millis(100);

const JOBS: [&str; 5] =
    ["iops", "throughput_bytes_per_s", "latency_mean_ns", "latency_p50_ns", "latency_p99_ns"];
/// Metrics of replays after those of jobs.
const REPLAYS: [&str; 2] = ["elapsed_s", "behind_most_ns"];
const DATABASES: [&str; 6] = [
    "transactions_per_min",
    "batches_per_s",
    "response_mean_ns",
    "iops",
    "throughput_bytes_per_s",
    "latency_mean_ns",
];
const BACKUPS: [&str; 2] = ["backup_s", "backup_bytes_per_s"];

/// Returns the columns of the metrics of a workload.
pub(crate) fn metrics(workload: &Workload) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    match workload {
        Workload::Jobs(_) => names.extend(JOBS),
        Workload::Traces(..) => names.extend(JOBS.iter().chain(&REPLAYS)),
        Workload::Descriptions(databases, backups) => {
            names.extend(DATABASES.iter().filter(|_| !databases.is_empty()));
            names.extend(BACKUPS.iter().filter(|_| !backups.is_empty()));
        }
    }
    let numbers = names.into_iter().map(|name| Column::new(name, Kind::Number));
    let is_replay = matches!(workload, Workload::Traces(..));
    let verdict = is_replay.then(|| Column::new("keeps_up", Kind::Text));
    let rest = [
        ("binding_limit", Kind::Text),
        ("binding_share", Kind::Number),
        ("price_per_month", Kind::Number),
        ("currency", Kind::Text),
    ];
    numbers.chain(verdict).chain(rest.map(|(name, kind)| Column::new(name, kind))).collect()
}

/// The metrics of a point, as fields of their columns.
#[derive(Debug, Default)]
pub(crate) struct Metrics(BTreeMap<&'static str, String>);

impl Metrics {
    /// Returns the field of a column; empty without a value.
    pub(crate) fn field(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn number(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            // Adding zero turns -0 into 0.
            self.0.insert(name, (value + 0.0).to_string());
        }
    }

    /// Adds the limit with the longest waits, and its share of the time of all requests.
    fn binding<'a>(&mut self, waits: impl Iterator<Item = (&'a String, &'a u64)>, medium: u64) {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (cap, ns) in waits {
            *sums.entry(cap).or_default() += ns;
        }
        let total = sums.values().sum::<u64>() + medium;
        // The first of equal ones, so that results are the same each time.
        let most = sums.iter().rev().max_by_key(|(_, ns)| **ns).filter(|(_, ns)| **ns > 0);
        if let Some((cap, ns)) = most {
            self.0.insert("binding_limit", (*cap).to_owned());
            self.number("binding_share", float(*ns) / float(total));
        }
    }
}

/// The reason why a point has no metrics.
#[derive(Debug)]
pub(crate) enum NoMetrics {
    /// It cannot be simulated.
    Invalid(String),
    /// The sweep cannot go on.
    Failed(SweepError),
}

impl From<String> for NoMetrics {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

/// Simulates a point. `None` if `stop` ends it early.
pub(crate) fn measure(
    case: &Case,
    file: &SweepFile,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Metrics>, NoMetrics> {
    let measured = match &case.workload {
        Workload::Jobs(jobs) => run_jobs(case, jobs, file, stop)?,
        Workload::Descriptions(databases, backups) => {
            run_databases(case, databases, backups, file.seed, stop)?
        }
        Workload::Traces(traces, keys) => run_traces(case, (traces, keys), file, stop)?,
    };
    let Some(mut metrics) = measured else { return Ok(None) };
    let priced = case.layout.priced(&case.catalog).map_err(|error| error.to_string())?;
    if let Some((bill, book)) = priced.filter(|(bill, _)| bill.unknown().count() == 0) {
        metrics.number("price_per_month", float(bill.month().micros()) / 1e6);
        metrics.0.insert("currency", book.currency().to_owned());
    }
    Ok(Some(metrics))
}

fn run_jobs(
    case: &Case,
    jobs: &JobFile,
    file: &SweepFile,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Metrics>, String> {
    let placed =
        place(jobs, &devices(&case.layout), &mapped(file)).map_err(|error| error.to_string())?;
    let options = Options { seed: file.seed, warm: file.warm.clone(), ..Options::default() };
    let failed = |error: weir_sim::SimError| error.to_string();
    let mut simulation = Simulation::new(&case.layout, placed, &options).map_err(failed)?;
    let mut until = Instant::ZERO + SLICE;
    while let Some(next) = simulation.run_until(until).map_err(failed)? {
        if stop() {
            return Ok(None);
        }
        until = next + SLICE;
    }
    let (report, latency) = (simulation.report(), simulation.latency());
    let ops = report.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim]);
    if ops.map(|op| op.ios).sum::<u64>() == 0 {
        return Err("no request was completed in the measured time".to_owned());
    }
    Ok(Some(of_run(&report, &latency)))
}

fn mapped(file: &SweepFile) -> Vec<(String, String)> {
    file.map.iter().map(|(from, export)| (from.clone(), export.clone())).collect()
}

/// Returns the metrics of jobs, or of the devices of traces.
fn of_run(report: &RunReport, latency: &LatencyReport) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.number("iops", report.iops());
    metrics.number("throughput_bytes_per_s", throughput(report));
    metrics.number("latency_mean_ns", latency.mean);
    metrics.number("latency_p50_ns", float(latency.p50));
    metrics.number("latency_p99_ns", float(latency.p99));
    let waits = report.jobs.iter().flat_map(|job| &job.waits_ns);
    metrics.binding(waits, report.jobs.iter().map(|job| job.medium_ns).sum());
    metrics
}

fn run_traces(
    case: &Case,
    (traces, keys): (&TraceInputs, &ReplayKeys),
    file: &SweepFile,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Metrics>, NoMetrics> {
    let (part, replay) = keys.options(&mapped(file))?;
    let options = ReplaySimOptions { replay, warm: file.warm.clone(), every: None };
    let unreadable = |reason| NoMetrics::Failed(SweepError::Trace(reason));
    // A damaged trace fails at each point, so it ends the sweep.
    let failed = |error: ReplaySimError| match error {
        ReplaySimError::Replay(ReplayError::Trace { .. }) => unreadable(error.to_string()),
        _ => NoMetrics::Invalid(error.to_string()),
    };
    let recordings = traces.traces.open(&part).map_err(unreadable)?;
    let mut simulation =
        ReplaySimulation::new(&case.layout, recordings, &options).map_err(failed)?;
    let mut until = Instant::ZERO + SLICE;
    while let Some(next) = simulation.run_until(until).map_err(failed)? {
        if stop() {
            return Ok(None);
        }
        until = next + SLICE;
    }
    // A trace is read while it is replayed.
    traces.traces.check().map_err(unreadable)?;
    let (report, latency) = (simulation.report(file.seed), simulation.latency());
    if simulation.completed() == 0 {
        let reason = "the selected part of the traces has no requests";
        return Err(NoMetrics::Invalid(reason.to_owned()));
    }
    let mut metrics = of_run(&report.run, &latency);
    metrics.number("elapsed_s", report.run.elapsed_s);
    // A closed replay follows the layout, so it is never behind.
    if !report.is_closed {
        metrics.number("behind_most_ns", float(report.behind_most_ns));
        metrics.0.insert("keeps_up", report.keeps_up().to_string());
    }
    Ok(Some(metrics))
}

fn throughput(report: &RunReport) -> f64 {
    report.jobs.iter().map(weir_report::run::JobReport::bytes_per_s).sum()
}

fn run_databases(
    case: &Case,
    databases: &[weir_oltp::Description],
    backups: &[weir_pipeline::Description],
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Metrics>, String> {
    let edition = case.layout.edition.as_ref().map(|name| case.catalog.edition(name));
    let edition = edition.transpose().map_err(|error| error.to_string())?;
    let options = OltpOptions { edition, seed, every: None, backups };
    let mut simulation = OltpSimulation::new(&case.layout, databases, &options)
        .map_err(|error| error.to_string())?;
    let mut until = Instant::ZERO + SLICE;
    while let Some(next) = simulation.run_until(until) {
        if stop() {
            return Ok(None);
        }
        until = next + SLICE;
    }
    Ok(Some(of_databases(&simulation.report())))
}

fn of_databases(report: &OltpReport) -> Metrics {
    let mut metrics = Metrics::default();
    let sum = |of: &dyn Fn(&weir_report::oltp::DatabaseReport) -> f64| -> f64 {
        report.databases.iter().map(of).sum()
    };
    if !report.databases.is_empty() {
        let transactions = sum(&|own| float(own.load.transactions));
        let response = sum(&|own| float(own.load.transactions) * own.load.response_mean_ns);
        metrics.number("transactions_per_min", sum(&|own| own.load.transactions_per_min));
        metrics.number("batches_per_s", sum(&|own| own.load.batches_per_s));
        metrics.number("response_mean_ns", response / transactions);
        let files = |of: &dyn Fn(&FileReport) -> f64| {
            sum(&|own| own.files.iter().map(of).sum::<f64>() / own.elapsed_s)
        };
        let ios = |file: &FileReport| float(file.num_of_reads + file.num_of_writes);
        let time = |file: &FileReport| {
            float(file.num_of_reads) * file.read_mean_ns
                + float(file.num_of_writes) * file.write_mean_ns
        };
        metrics.number("iops", files(&ios));
        let bytes = |file: &FileReport| float(file.num_of_bytes_read + file.num_of_bytes_written);
        metrics.number("throughput_bytes_per_s", files(&bytes));
        metrics.number("latency_mean_ns", files(&time) / files(&ios));
    }
    if !report.backups.is_empty() {
        let longest = report.backups.iter().map(|own| own.elapsed_s).fold(0.0, f64::max);
        metrics.number("backup_s", longest);
        let rate = report.backups.iter().map(|own| float(own.bytes) / own.elapsed_s).sum();
        metrics.number("backup_bytes_per_s", rate);
    }
    let files = || report.databases.iter().flat_map(|own| &own.files);
    let places = || report.backups.iter().flat_map(|own| &own.places);
    let medium = files().map(|own| own.medium_ns).chain(places().map(|own| own.medium_ns)).sum();
    let waits = files().flat_map(|own| &own.waits_ns);
    metrics.binding(waits.chain(places().flat_map(|own| &own.waits_ns)), medium);
    metrics
}
