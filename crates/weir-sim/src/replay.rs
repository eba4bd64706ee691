//! Recorded traces in virtual time.
//!
//! If the times of issue do not depend on completions, the engine is told of the next request at
//! its arrival and of no other time. It does what was due before in order and to the nanosecond,
//! so the result is that of a driver that comes at each deadline.

use crate::{Path, engines, host_report, named, observing, volume_reports};
use weir_core::{Completion, DeviceId, Engine, Event, Op, Refused, Request, TraceHash, VolumeId};
use weir_layout::Layout;
use weir_observe::run::{Sample, Shape};
use weir_report::number::float;
use weir_report::replay::ReplayReport;
use weir_report::run::{ClockName, LatencyReport, RunReport, WritebackReport};
use weir_trace::Kind;
use weir_units::{Instant, Span};
use weir_workload::replay::{Recording, Replay, ReplayError, ReplayIssue, ReplayOptions, Replayed};
use weir_workload::{Op as Operation, Series};

/// An error that makes a replay impossible.
#[derive(Debug, thiserror::Error)]
pub enum ReplaySimError {
    /// A trace that cannot be replayed.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// A request that the engine rejects.
    #[error("a request of a trace to {export:?} is rejected: {reason}")]
    Request {
        /// The export.
        export: String,
        /// The reason.
        reason: Refused,
    },
    /// A device to warm that is not in the layout.
    #[error("there is no export {name:?} in the layout to warm")]
    Missing {
        /// Its name.
        name: String,
    },
}

/// Options of a replay in virtual time.
#[derive(Debug, Clone, Default)]
pub struct ReplaySimOptions {
    /// Options of the replay.
    pub replay: ReplayOptions,
    /// Exports that the host cache holds from the start, as far as there is room.
    pub warm: Vec<String>,
    /// Length of the intervals over time in the report.
    pub every: Option<Span>,
}

/// A replay in slices: it is not over as long as [`run_until`](Self::run_until) returns a time.
#[derive(Debug)]
pub struct ReplaySimulation<'a> {
    layout: &'a Layout,
    engines: Vec<Engine>,
    /// Host and device of each export, numbered across hosts.
    devices: Vec<(usize, DeviceId)>,
    replay: Replay,
    paths: Vec<Path>,
    series: Option<Series>,
    trace: TraceHash,
    now: Instant,
    /// The time until which a report or sample counts.
    until: Instant,
}

impl<'a> ReplaySimulation<'a> {
    /// Makes the hosts of `layout`, with traces that begin at time zero.
    ///
    /// # Errors
    ///
    /// [`ReplaySimError`] if the options do not fit the layout.
    pub fn new(
        layout: &'a Layout,
        recordings: Vec<Recording>,
        options: &ReplaySimOptions,
    ) -> Result<Self, ReplaySimError> {
        let exports = crate::devices(layout);
        let compile = |host: &weir_layout::Host| Engine::with_fixed_limits(host.spec.clone());
        let (mut engines, devices) = engines(layout, compile);
        for name in &options.warm {
            let Some(at) = exports.iter().position(|export| export.name == *name) else {
                return Err(ReplaySimError::Missing { name: name.clone() });
            };
            let (host, device) = devices[at];
            engines[host].warm(device, 0, exports[at].size.get());
        }
        Ok(Self {
            layout,
            engines,
            devices,
            replay: Replay::new(recordings, exports, options.replay.clone())?,
            paths: Vec::new(),
            series: options.every.map(Series::new),
            trace: TraceHash::default(),
            now: Instant::ZERO,
            until: Instant::ZERO,
        })
    }

    /// Simulates until `until`. Returns the time of the next event, which is later, or `None`
    /// when all requests are complete. The number of slices does not change the results.
    ///
    /// # Errors
    ///
    /// [`ReplaySimError`] if a trace cannot be read or does not fit the layout.
    pub fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, ReplaySimError> {
        let next = self.go(until)?;
        self.until = if next.is_some() { until } else { self.now };
        Ok(next)
    }

    /// Adds what is under way to the totals. It costs time for each request in flight, so that only
    /// those who look at the totals do it.
    fn settle(&mut self) {
        let until = self.until;
        self.engines.iter_mut().for_each(|engine| engine.settle_totals(until));
    }

    /// Ends the replay before its traces end: its report has no verdict, and counts the requests
    /// that were due by now and are not issued.
    ///
    /// # Errors
    ///
    /// [`ReplaySimError`] if a trace cannot be read further.
    pub fn end_early(&mut self) -> Result<(), ReplaySimError> {
        let now = self.now().max(self.until);
        Ok(self.replay.end_early(now)?)
    }

    fn go(&mut self, until: Instant) -> Result<Option<Instant>, ReplaySimError> {
        loop {
            while let Some(issue) = self.replay.poll_issue(self.now)? {
                self.submit(&issue)?;
                self.collect();
            }
            if self.replay.is_done() {
                return Ok(None);
            }
            if self.replay.is_open()
                && let Some(next) = self.replay.poll_deadline().filter(|next| *next <= until)
            {
                self.now = next;
                continue;
            }
            let deadlines = self.engines.iter().filter_map(Engine::poll_deadline);
            let next = deadlines.chain(self.replay.poll_deadline()).min();
            let Some(next) = next else { return Ok(None) };
            if next > until {
                return Ok(Some(next));
            }
            self.jump(next, until);
        }
    }

    /// Advances to the events at `next`, or of the only host to its next event until `until`.
    fn jump(&mut self, next: Instant, until: Instant) {
        let others = self.replay.poll_deadline().unwrap_or(Instant::FAR).min(until);
        match self.engines.as_mut_slice() {
            [engine] => self.now = engine.handle_timeout_until_event(others.max(next)),
            engines => {
                self.now = next;
                engines.iter_mut().for_each(|engine| engine.handle_timeout(next));
            }
        }
        self.collect();
    }

    fn submit(&mut self, issue: &ReplayIssue) -> Result<(), ReplaySimError> {
        let (host, device) = self.devices[issue.device as usize];
        let op = match issue.kind {
            Kind::Read => Op::Read,
            Kind::Write => Op::Write,
            Kind::WriteThrough => Op::WriteThrough,
            Kind::Discard => Op::Discard,
            Kind::Flush => Op::Flush,
        };
        let (offset, len, tag) = (issue.offset, u64::from(issue.len), u64::from(issue.tag));
        let request = Request { device, op, offset, len, tag };
        self.engines[host].handle_request(self.now, &request).map_err(|reason| {
            let exports = crate::devices(self.layout);
            let export = exports.into_iter().nth(issue.device as usize);
            let export = export.map(|export| export.name).unwrap_or_default();
            ReplaySimError::Request { export, reason }
        })
    }

    fn collect(&mut self) {
        for host in 0..self.engines.len() {
            while let Some(event) = self.engines[host].poll_event() {
                if let Event::Completed(completion) = event {
                    self.complete(&completion);
                }
            }
        }
    }

    fn complete(&mut self, completion: &Completion) {
        self.trace.record(completion);
        let tag = crate::process_of(completion.tag);
        let Replayed { job, kind, len } = self.replay.handle_completion(completion.at, tag);
        let op = match kind {
            Kind::Read => Operation::Read,
            Kind::Write | Kind::WriteThrough => Operation::Write,
            Kind::Discard => Operation::Trim,
            Kind::Flush => Operation::Flush,
        };
        if let Some(series) = &mut self.series {
            series.record(completion.at, op, len, Some(completion.hit));
        }
        if self.paths.len() <= job {
            self.paths.resize(job + 1, Path::default());
        }
        if kind != Kind::Flush {
            let path = &mut self.paths[job];
            path.waits += completion.waits;
            path.medium += completion.medium;
            path.reads += u64::from(kind == Kind::Read);
            path.hits += u64::from(kind == Kind::Read && completion.hit);
        }
    }

    /// Returns the number of completed requests.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.replay.completed()
    }

    /// Returns the current simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now.max(self.replay.last())
    }

    /// Returns the entities that can be observed.
    #[must_use]
    pub fn shape(&self) -> Shape {
        observing::shape(self.layout)
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn sample(&mut self) -> Sample {
        self.settle();
        observing::sample(self.layout, &self.engines)
    }

    /// Returns the hash of all admissions so far.
    #[must_use]
    pub fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Returns the latency of all requests so far, except for flushes.
    #[must_use]
    pub fn latency(&self) -> LatencyReport {
        self.replay.latency()
    }

    /// Reports the results so far.
    #[must_use]
    pub fn report(&mut self, seed: u64) -> ReplayReport {
        self.settle();
        let seconds = float(self.replay.elapsed().nanos()) / 1e9;
        let mut jobs = self.replay.jobs();
        for (job, path) in jobs.iter_mut().zip(&self.paths) {
            job.waits_ns = named(&path.waits);
            job.medium_ns = path.medium.nanos();
            job.hit_share = (path.reads > 0).then(|| float(path.hits) / float(path.reads));
        }
        let hosts = self.layout.hosts.iter().zip(&self.engines);
        let notes = self.layout.hosts.iter().flat_map(|host| host.notes.clone());
        let run = RunReport {
            clock: ClockName::Virtual,
            seed,
            elapsed_s: seconds,
            trace_hash: Some(format!("{:016x}", self.trace.get())),
            jobs,
            volumes: hosts.clone().flat_map(|(h, e)| volume_reports(h, e, seconds)).collect(),
            hosts: hosts.map(|(host, engine)| host_report(host, engine, seconds)).collect(),
            series: self
                .series
                .as_ref()
                .map(|series| series.points(self.replay.last()))
                .unwrap_or_default(),
            notes: notes.chain(self.replay.notes()).collect(),
        };
        self.replay.report(run, self.writebacks(seconds))
    }

    /// Lists the volumes with write-backs, in layout order.
    fn writebacks(&self, seconds: f64) -> Vec<WritebackReport> {
        crate::writebacks(self.layout, seconds, |host, volume: VolumeId| {
            self.engines.get(host)?.totals(volume)
        })
    }
}

#[cfg(test)]
mod tests;
