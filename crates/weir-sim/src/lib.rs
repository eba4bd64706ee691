//! The driver in virtual time: a workload on a layout, hours in seconds.
//!
//! A [`Simulation`] drives the same two state machines as the server, the [`Engine`] of each host
//! and the [`Workload`], and jumps from one deadline to the next. All randomness is seeded, so a
//! seed determines the run, as a whole ([`simulate`]) or in slices. Memory does not grow with the
//! simulated time. An [`OltpSimulation`] drives databases and backups instead of jobs, and a
//! [`ReplaySimulation`] recorded traces.

#![forbid(unsafe_code)]

pub mod checks;
pub mod observing;
mod oltp;
mod replay;

pub use oltp::{OltpOptions, OltpSimError, OltpSimulation, about, check_databases};
pub use replay::{ReplaySimError, ReplaySimOptions, ReplaySimulation};

use std::collections::{BTreeMap, BTreeSet};
use weir_core::{
    Completion, DeviceId, Engine, Event, Op as EngineOp, Refused, Request, SpecError, Totals,
    TraceHash, VolumeId, Waits,
};
use weir_layout::{Host, Layout};
use weir_observe::run::{Sample, Shape};
use weir_report::number::float;
use weir_report::run::{
    ClockName, HostReport, JobReport, LatencyReport, RunReport, VolumeReport, WritebackReport,
};
use weir_units::{Instant, Span};
use weir_workload::{Device, FioError, Issue, JobSpec, Op, Placed, Series, Tally, Workload};

/// Completions at one instant after which the simulation gives up, since time would never advance.
const MAX_AT_ONE_INSTANT: u64 = 10_000_000;

/// Options of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seed of the workload. The latencies have that of the layout.
    pub seed: u64,
    /// Exports whose ranges used by jobs are in the host cache from the start.
    pub warm: Vec<String>,
    /// Length of the intervals over time in the report.
    pub every: Option<Span>,
    /// A host that crashes, and the time of the crash.
    pub crash: Option<(String, Span)>,
}

/// An error that makes a simulation impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A job that does not fit its region.
    #[error("{0}")]
    Workload(#[from] FioError),
    /// A request that the engine rejects.
    #[error("job {job:?}: {reason}")]
    Request {
        /// The job.
        job: String,
        /// The reason.
        reason: Refused,
    },
    /// A load that takes no time.
    #[error(
        "no limit and no latency holds what the jobs do on {export:?}, so it takes no time; give it, or the host cache that serves it, limits or a latency"
    )]
    NoTime {
        /// The export.
        export: String,
    },
    /// An export or host that is not in the layout.
    #[error("there is no {what} {name:?} in the layout{}; there are: {known}", weir_units::did_you_mean(.near))]
    Missing {
        /// Export or host.
        what: &'static str,
        /// The name.
        name: String,
        /// The closest known name.
        near: Option<String>,
        /// The names in the layout.
        known: String,
    },
}

/// Returns the exports of a layout as devices for jobs, numbered across hosts.
#[must_use]
pub fn devices(layout: &Layout) -> Vec<Device> {
    let exports = layout.hosts.iter().flat_map(|host| &host.exports);
    exports.map(|export| Device { name: export.name.clone(), size: export.size }).collect()
}

/// Compiles an engine for each host, by `compile`, and returns the host and device of each export
/// in the order of [`devices`].
fn engines(
    layout: &Layout,
    compile: impl Fn(&Host) -> Result<Engine, SpecError>,
) -> (Vec<Engine>, Vec<(usize, DeviceId)>) {
    let mut devices = Vec::new();
    let mut engines = Vec::new();
    for (at, host) in layout.hosts.iter().enumerate() {
        devices.extend(host.exports.iter().map(|export| (at, export.device)));
        // The layout has compiled each host once, for the sizes of its devices.
        engines.extend(compile(host));
    }
    assert_eq!(engines.len(), layout.hosts.len(), "a resolved layout compiles");
    (engines, devices)
}

/// Runs `placed` on `layout` in virtual time.
///
/// # Errors
///
/// [`SimError`] if the jobs do not fit the layout.
pub fn simulate(
    layout: &Layout,
    placed: Vec<Placed>,
    options: &Options,
) -> Result<RunReport, SimError> {
    let mut simulation = Simulation::new(layout, placed, options)?;
    simulation.run_until(Instant::FAR)?;
    Ok(simulation.report())
}

/// A run in slices: it is not over as long as [`run_until`](Self::run_until) returns a time.
#[derive(Debug)]
pub struct Simulation<'a> {
    layout: &'a Layout,
    seed: u64,
    run: Run,
}

impl<'a> Simulation<'a> {
    /// Makes the hosts of `layout` with the jobs `placed`, at time zero.
    ///
    /// # Errors
    ///
    /// [`SimError`] if the jobs do not fit the layout.
    pub fn new(
        layout: &'a Layout,
        placed: Vec<Placed>,
        options: &Options,
    ) -> Result<Self, SimError> {
        let specs: Vec<JobSpec> = placed.iter().map(|p| p.spec.clone()).collect();
        let ranges: Vec<_> = placed.iter().flat_map(ranges).collect();
        let workload = Workload::new(placed, options.seed)?;
        let mut run = Run::new(layout, workload, specs, options)?;
        for name in &options.warm {
            let at = run.device(name)?;
            let (host, device) = run.devices[at];
            for (_, start, len) in ranges.iter().filter(|(of, ..)| *of as usize == at) {
                run.engines[host].warm(device, *start, *len);
            }
        }
        Ok(Self { layout, seed: options.seed, run })
    }

    /// Simulates until `until`. Returns the time of the next event, which is later, or `None`
    /// when all jobs are done. The number of slices does not change the results.
    ///
    /// # Errors
    ///
    /// [`SimError`] if a request is rejected or time does not advance.
    pub fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, SimError> {
        self.run.go(until)
    }

    /// Returns the number of completed I/Os, including those of ramps.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.run.completed
    }

    /// Returns the current simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.run.now
    }

    /// Returns the entities that can be observed.
    #[must_use]
    pub fn shape(&self) -> Shape {
        observing::shape(self.layout)
    }

    /// Returns the counters so far, including ramps.
    #[must_use]
    pub fn sample(&self) -> Sample {
        observing::sample(self.layout, &self.run.engines)
    }

    /// Returns the counters of a volume of the layout's `host`-th host.
    #[must_use]
    pub fn totals(&self, host: usize, volume: VolumeId) -> Option<&Totals> {
        self.run.engines.get(host)?.totals(volume)
    }

    /// Returns the latency of all operations of all jobs so far, without those of ramps.
    #[must_use]
    pub fn latency(&self) -> LatencyReport {
        self.run.tally.latency()
    }

    /// Reports the results so far.
    #[must_use]
    pub fn report(&self) -> RunReport {
        self.run.report(self.layout, self.seed)
    }
}

/// Returns the ranges that a process may touch: device, first byte and length in each of its
/// files.
fn ranges(placed: &Placed) -> impl Iterator<Item = (u32, u64, u64)> {
    let count = placed.regions.len() as u64;
    placed.regions.iter().zip(0..).map(move |(region, index)| {
        let (offset, len) = placed.spec.range(placed.clone, (index, count), region.len.get());
        (region.device, region.base.get().saturating_add(offset), len)
    })
}

/// Waits and cache hits of the requests of one process.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    waits: Waits,
    medium: Span,
    reads: u64,
    hits: u64,
}

#[derive(Debug)]
struct Run {
    engines: Vec<Engine>,
    /// Host and device of each export, numbered across hosts.
    devices: Vec<(usize, DeviceId)>,
    names: Vec<String>,
    workload: Workload,
    specs: Vec<JobSpec>,
    ramped: Vec<bool>,
    tally: Tally,
    paths: Vec<Path>,
    series: Option<Series>,
    trace: TraceHash,
    crash: Option<(usize, Instant)>,
    now: Instant,
    first: Option<Instant>,
    last: Instant,
    completed: u64,
    /// Completions since time last advanced.
    at_this_instant: u64,
    /// Host and device of the last completion.
    latest: (usize, DeviceId),
}

impl Run {
    fn new(
        layout: &Layout,
        workload: Workload,
        specs: Vec<JobSpec>,
        options: &Options,
    ) -> Result<Self, SimError> {
        let (engines, devices) = engines(layout, |host| Engine::new(host.spec.clone()));
        let names = crate::devices(layout).into_iter().map(|device| device.name).collect();
        let crash = match &options.crash {
            None => None,
            Some((name, at)) => {
                let host = layout.hosts.iter().position(|host| host.name == *name);
                let known = layout.hosts.iter().map(|host| host.name.as_str());
                Some((host.ok_or_else(|| missing("host", name, known))?, Instant::ZERO + *at))
            }
        };
        let ramped = specs.iter().map(|spec| spec.ramp_time > Span::ZERO).collect();
        Ok(Self {
            engines,
            devices,
            names,
            tally: Tally::new(specs.len()),
            paths: vec![Path::default(); specs.len()],
            workload,
            specs,
            ramped,
            series: options.every.map(Series::new),
            trace: TraceHash::default(),
            crash,
            now: Instant::ZERO,
            first: None,
            last: Instant::ZERO,
            completed: 0,
            at_this_instant: 0,
            latest: (0, DeviceId(0)),
        })
    }

    fn device(&self, name: &str) -> Result<usize, SimError> {
        let at = self.names.iter().position(|known| known == name);
        at.ok_or_else(|| missing("export", name, self.names.iter().map(String::as_str)))
    }

    /// Takes, admits and completes requests, and jumps to the next deadline, until all jobs are
    /// done or the next deadline is after `until`.
    fn go(&mut self, until: Instant) -> Result<Option<Instant>, SimError> {
        loop {
            while let Some(issue) = self.workload.poll_issue(self.now) {
                self.submit(&issue)?;
            }
            let completed = self.collect();
            if completed > 0 {
                self.completed += completed;
                self.at_this_instant += completed;
                if self.at_this_instant > MAX_AT_ONE_INSTANT {
                    let at = self.devices.iter().position(|device| *device == self.latest);
                    let export = at.map(|at| self.names[at].clone()).unwrap_or_default();
                    return Err(SimError::NoTime { export });
                }
                continue;
            }
            let deadlines = self.engines.iter().filter_map(Engine::poll_deadline);
            let next = deadlines.chain(self.workload.poll_deadline()).min();
            let Some(next) = next.filter(|_| !self.workload.is_done()) else { return Ok(None) };
            if next > until {
                return Ok(Some(next));
            }
            if next > self.now {
                self.at_this_instant = 0;
            }
            self.jump(next);
        }
    }

    fn jump(&mut self, next: Instant) {
        if let Some((host, at)) = self.crash
            && at <= next
        {
            self.crash = None;
            self.now = self.now.max(at);
            self.crash_host(host);
            return;
        }
        self.now = self.now.max(next);
        for engine in &mut self.engines {
            engine.handle_timeout(self.now);
        }
    }

    /// Crashes a host. Its requests fail at once, and the host is back at once.
    fn crash_host(&mut self, host: usize) {
        self.engines[host].handle_timeout(self.now);
        self.collect();
        let lost = self.engines[host].outstanding_tags();
        self.engines[host].crash(self.now);
        for tag in lost {
            self.workload.handle_completion(self.now, process_of(tag));
        }
    }

    fn submit(&mut self, issue: &Issue) -> Result<(), SimError> {
        let (host, device) = self.devices[issue.device as usize];
        let op = match issue.op {
            Op::Read => EngineOp::Read,
            Op::Write if issue.data_sync => EngineOp::WriteThrough,
            Op::Write => EngineOp::Write,
            Op::Trim => EngineOp::Discard,
            Op::Flush => EngineOp::Flush,
        };
        self.first.get_or_insert(self.now);
        let tag = u64::from(issue.process);
        let (offset, len) = (issue.offset, u64::from(issue.len));
        let request = Request { device, op, offset, len, tag };
        self.engines[host].handle_request(self.now, &request).map_err(|reason| SimError::Request {
            job: self.specs[issue.process as usize].name.clone(),
            reason,
        })
    }

    /// Reports completions to the workload, and returns their number.
    fn collect(&mut self) -> u64 {
        let mut completed = 0;
        for host in 0..self.engines.len() {
            while let Some(event) = self.engines[host].poll_event() {
                if let Event::Completed(completion) = event {
                    completed += 1;
                    self.latest = (host, completion.device);
                    self.complete(&completion);
                }
            }
        }
        completed
    }

    fn complete(&mut self, completion: &Completion) {
        let process = process_of(completion.tag);
        self.trace.record(completion);
        self.last = completion.at;
        let op = match completion.op {
            EngineOp::Read => Op::Read,
            EngineOp::Write | EngineOp::WriteThrough => Op::Write,
            EngineOp::Discard => Op::Trim,
            EngineOp::Flush => Op::Flush,
        };
        if let Some(series) = &mut self.series {
            series.record(completion.at, op, completion.len, Some(completion.hit));
        }
        if self.counts(process, completion.at) {
            let latency = completion.at - completion.arrived;
            self.tally.record(process, op, completion.len, latency);
            let path = &mut self.paths[process as usize];
            path.waits += completion.waits;
            path.medium += completion.medium;
            path.reads += u64::from(op == Op::Read);
            path.hits += u64::from(op == Op::Read && completion.hit);
        }
        self.workload.handle_completion(completion.at, process);
    }

    /// Returns whether a process is past its ramp.
    fn counts(&self, process: u32, at: Instant) -> bool {
        if !self.ramped[process as usize] {
            return true;
        }
        let state = self.workload.process_state(process);
        state.and_then(|s| s.measuring_from).is_some_and(|from| at >= from)
    }

    fn report(&self, layout: &Layout, seed: u64) -> RunReport {
        let elapsed = self.last - self.first.unwrap_or_default();
        let seconds = float(elapsed.nanos()) / 1e9;
        let members = Tally::members(&self.specs);
        let mut jobs = self.tally.jobs(&self.workload, &self.specs, self.now);
        for (job, members) in jobs.iter_mut().zip(&members) {
            self.add_paths(job, members);
        }
        let hosts = layout.hosts.iter().zip(&self.engines);
        RunReport {
            clock: ClockName::Virtual,
            seed,
            elapsed_s: seconds,
            trace_hash: Some(format!("{:016x}", self.trace.get())),
            jobs,
            volumes: hosts.clone().flat_map(|(h, e)| volume_reports(h, e, seconds)).collect(),
            hosts: hosts.map(|(host, engine)| host_report(host, engine, seconds)).collect(),
            series: self.series.as_ref().map(|s| s.points(self.last)).unwrap_or_default(),
            notes: self.notes(layout),
        }
    }

    /// Returns the notes that explain the figures.
    fn notes(&self, layout: &Layout) -> Vec<String> {
        let waves: BTreeSet<u32> = self.specs.iter().map(|spec| spec.wave).collect();
        let averaged = (waves.len() > 1).then(|| {
            format!(
                "the jobs ran in {} parts, one after the other; volumes and hosts have their \
                 averages over all of them",
                waves.len()
            )
        });
        layout.hosts.iter().flat_map(|host| host.notes.clone()).chain(averaged).collect()
    }

    fn add_paths(&self, job: &mut JobReport, members: &[u32]) {
        let mut sum = Path::default();
        for process in members {
            let path = &self.paths[*process as usize];
            sum.waits += path.waits;
            sum.medium += path.medium;
            sum.reads += path.reads;
            sum.hits += path.hits;
        }
        job.waits_ns = named(&sum.waits);
        job.medium_ns = sum.medium.nanos();
        job.hit_share = (sum.reads > 0).then(|| float(sum.hits) / float(sum.reads));
    }
}

/// Lists the volumes with write-backs, in layout order, and the caps that throttled these. `totals`
/// returns the counters of a volume of a host.
pub fn writebacks<'a>(
    layout: &Layout,
    elapsed_s: f64,
    totals: impl Fn(usize, VolumeId) -> Option<&'a Totals>,
) -> Vec<WritebackReport> {
    let per_s = |n: u64| if elapsed_s > 0.0 { float(n) / elapsed_s } else { 0.0 };
    let mut reports = Vec::new();
    for (at, host) in layout.hosts.iter().enumerate() {
        for (id, volume) in host.volumes.iter().enumerate() {
            let Some(totals) = totals(at, VolumeId(id)) else { continue };
            if totals.writebacks > 0 {
                reports.push(WritebackReport {
                    volume: volume.name.clone(),
                    host: host.name.clone(),
                    iops: per_s(totals.writebacks),
                    bytes_per_s: per_s(totals.written_back),
                    waits_ns: named(&totals.writeback_waits),
                    medium_ns: totals.writeback_medium.nanos(),
                });
            }
        }
    }
    reports
}

fn missing<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> SimError {
    let known: Vec<&str> = known.collect();
    let near = weir_units::nearest(name, known.iter().copied()).map(str::to_owned);
    SimError::Missing { what, name: name.to_owned(), near, known: known.join(", ") }
}

/// Returns the process of a request, which is its tag.
#[expect(clippy::cast_possible_truncation, reason = "made from a u32 in `submit`")]
fn process_of(tag: u64) -> u32 {
    tag as u32
}

fn named(waits: &Waits) -> BTreeMap<String, u64> {
    waits.iter().map(|(cap, span)| (cap.name().to_owned(), span.nanos())).collect()
}

fn volume_reports(host: &Host, engine: &Engine, seconds: f64) -> Vec<VolumeReport> {
    let per_s = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
    let one = |(id, volume): (usize, &weir_layout::Volume)| {
        let t = engine.totals(VolumeId(id)).copied().unwrap_or_default();
        let busy = t.waits.total() + t.medium;
        VolumeReport {
            name: volume.name.clone(),
            host: host.name.clone(),
            tier: volume.tier.clone(),
            iops: per_s(t.reads + t.writes + t.discards),
            bytes_per_s: per_s(t.read_bytes + t.write_bytes),
            counted_iops: per_s(t.counted),
            hit_share: if t.reads > 0 { float(t.hits) / float(t.reads) } else { 0.0 },
            queue_depth: per_s(busy.nanos()) / 1e9,
            waits_ns: named(&t.waits),
            medium_ns: t.medium.nanos(),
            writeback_iops: per_s(t.writebacks),
            writeback_bytes_per_s: per_s(t.written_back),
            writeback_waits_ns: named(&t.writeback_waits),
            writeback_medium_ns: t.writeback_medium.nanos(),
            burst_transactions: t.burst_transactions,
        }
    };
    host.volumes.iter().enumerate().map(one).collect()
}

fn host_report(host: &Host, engine: &Engine, seconds: f64) -> HostReport {
    let volumes = volume_reports(host, engine, seconds);
    let mut waits_ns: BTreeMap<String, u64> = BTreeMap::new();
    for (cap, ns) in volumes.iter().flat_map(|v| &v.waits_ns) {
        *waits_ns.entry(cap.clone()).or_default() += ns;
    }
    HostReport {
        name: host.name.clone(),
        size: host.size.clone(),
        iops: volumes.iter().map(|v| v.iops).sum(),
        bytes_per_s: volumes.iter().map(|v| v.bytes_per_s).sum(),
        queue_depth: volumes.iter().map(|v| v.queue_depth).sum(),
        cache_resident_bytes: engine.cache_resident().get(),
        waits_ns,
        medium_ns: volumes.iter().map(|v| v.medium_ns).sum(),
    }
}

#[cfg(test)]
mod tests;
