//! A replay of traces in wall time, over one connection for each device.
//!
//! It drives the same state machine as the simulator. Written data is noise, since a trace does
//! not contain any.

use crate::error::RunnerError;
use crate::run::{NOTICE, noise};
use weir_client::{Connection, WireId, Wires};
use weir_proto::Uri;
use weir_report::number::float;
use weir_report::replay::ReplayReport;
use weir_report::run::{ClockName, RunReport};
use weir_trace::Kind;
use weir_units::{Instant, Span};
use weir_wall::{Clock, Event, Events};
use weir_workload::replay::{Recording, Replay, ReplayIssue, ReplayOptions, Replayed};
use weir_workload::{Device, Op, Series};

/// Options of a replay in wall time.
#[derive(Debug, Clone)]
pub struct ReplayRunOptions<'a> {
    /// Options of the replay.
    pub replay: ReplayOptions,
    /// The devices with their addresses.
    pub devices: &'a [(Device, Uri)],
    /// Seed of the written data.
    pub seed: u64,
    /// Length of the intervals over time in the report.
    pub every: Option<Span>,
}

/// The description of a request in flight, for messages.
#[derive(Debug, Clone, Copy)]
struct Sent {
    op: Op,
    offset: u64,
    len: u32,
}

/// A replay in slices: it is not over as long as [`run_until`](Self::run_until) returns a time.
pub struct ReplayRun<'a> {
    options: &'a ReplayRunOptions<'a>,
    replay: Replay,
    wires: Wires,
    /// Requests in flight, by tag.
    sent: Vec<Sent>,
    series: Option<Series>,
    payload: Vec<u8>,
    clock: Clock,
    events: Events,
}

impl std::fmt::Debug for ReplayRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayRun").field("replay", &self.replay).finish_non_exhaustive()
    }
}

impl<'a> ReplayRun<'a> {
    /// Connects to all devices. Time begins with the first call of
    /// [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// [`RunnerError`] if the options do not fit the devices, or a connection fails.
    pub fn open(
        recordings: Vec<Recording>,
        options: &'a ReplayRunOptions<'a>,
    ) -> Result<Self, RunnerError> {
        let devices = options.devices.iter().map(|(device, _)| device.clone()).collect();
        let replay = Replay::new(recordings, devices, options.replay.clone())?;
        let mut wires = Wires::new()?;
        for (_, uri) in options.devices {
            // Wires are numbered as devices are.
            wires.add(Connection::open(uri)?)?;
        }
        Ok(Self {
            options,
            replay,
            wires,
            sent: Vec::new(),
            series: options.every.map(Series::new),
            payload: Vec::new(),
            clock: Clock::start(),
            events: Events::new(),
        })
    }

    /// Sets the time to zero.
    pub fn start(&mut self) {
        self.clock = Clock::start();
    }

    /// Runs until `until`. Returns the present time, or `None` when all requests are complete.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] if a trace cannot be read or does not fit, or a request fails.
    pub fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, RunnerError> {
        loop {
            let now = self.issue()?;
            if self.replay.is_done() {
                self.wires.close();
                return Ok(None);
            }
            if now >= until {
                return Ok(Some(now));
            }
            let deadline = self.replay.poll_deadline().into_iter().chain([until]).min();
            let timeout = deadline.map(|deadline| deadline - now).unwrap_or(NOTICE);
            let mut events = std::mem::take(&mut self.events);
            self.wires.wait(&mut events, Some(timeout))?;
            for event in events.iter() {
                self.serve(event)?;
            }
            self.events = events;
        }
    }

    /// Sends all requests that are due. Returns the present time.
    fn issue(&mut self) -> Result<Instant, RunnerError> {
        let mut now = self.clock.now();
        while let Some(issue) = self.replay.poll_issue(now)? {
            let wire = issue.device as WireId;
            self.queue(wire, &issue)?;
            if self.wires.touch(wire) {
                self.wires.send(wire)?;
                now = self.clock.now();
            }
        }
        self.wires.send_touched()?;
        Ok(now)
    }

    fn queue(&mut self, wire: WireId, issue: &ReplayIssue) -> Result<(), RunnerError> {
        let ReplayIssue { tag, kind, offset, len, .. } = *issue;
        let op = match kind {
            Kind::Read => Op::Read,
            Kind::Write | Kind::WriteThrough => Op::Write,
            Kind::Discard => Op::Trim,
            Kind::Flush => Op::Flush,
        };
        let at = tag as usize;
        let sent = Sent { op, offset, len };
        if self.sent.len() <= at {
            self.sent.resize(at + 1, sent);
        }
        self.sent[at] = sent;
        if op == Op::Write && self.payload.len() < len as usize {
            self.payload = noise(len, self.options.seed);
        }
        let connection = self.wires.connection(wire);
        let cookie = u64::from(tag);
        let queued = match op {
            Op::Read => connection.queue_read(cookie, offset, len).map(drop),
            Op::Write => {
                let (data, is_durable) =
                    (&self.payload[..len as usize], kind == Kind::WriteThrough);
                connection.queue_write(cookie, offset, data, is_durable).map(drop)
            }
            Op::Trim => connection.queue_trim(cookie, offset, len),
            Op::Flush => connection.queue_flush(cookie),
        };
        let export = || self.options.devices[wire].0.name.clone();
        queued.map_err(|error| RunnerError::from(error).for_job(&export()))
    }

    /// A connection can go on.
    fn serve(&mut self, event: Event) -> Result<(), RunnerError> {
        let wire = usize::try_from(event.key).unwrap_or(usize::MAX);
        if event.writable {
            self.wires.send(wire)?;
        }
        // An end or an error of the connection shows when it is read.
        if event.readable || event.ended {
            self.receive(wire)?;
            self.issue()?;
        }
        Ok(())
    }

    fn receive(&mut self, wire: WireId) -> Result<(), RunnerError> {
        let Self { replay, wires, sent, series, clock, options, .. } = self;
        let (mut now, mut failed) = (None, None);
        wires.connection(wire).receive(|cookie, answer| {
            // After the system call, once for what it brought.
            let now = *now.get_or_insert_with(|| clock.now());
            let tag = u32::try_from(cookie).unwrap_or(u32::MAX);
            let Sent { op, offset, len } = sent[tag as usize];
            let Replayed { len: length, .. } = replay.handle_completion(now, tag);
            match answer {
                Ok(_) => {
                    if let Some(series) = series {
                        series.record(now, op, length, None);
                    }
                }
                Err(errno) => failed = failed.or(Some((op, offset, len, errno))),
            }
        })?;
        let Some((op, offset, length, errno)) = failed else { return Ok(()) };
        let export = options.devices[wire].0.name.clone();
        Err(RunnerError::Io { job: "replay".to_owned(), export, op, offset, length, errno })
    }

    /// Returns the present time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the number of completed requests.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.replay.completed()
    }

    /// Ends the replay before its traces end: its report has no verdict, and counts the requests
    /// that were due by now and are not issued.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] if a trace cannot be read further.
    pub fn end_early(&mut self) -> Result<(), RunnerError> {
        Ok(self.replay.end_early(self.clock.now())?)
    }

    /// Reports the results so far.
    #[must_use]
    pub fn report(&self) -> ReplayReport {
        let run = RunReport {
            clock: ClockName::Wall,
            seed: self.options.seed,
            elapsed_s: float(self.replay.elapsed().nanos()) / 1e9,
            trace_hash: None,
            jobs: self.replay.jobs(),
            volumes: Vec::new(),
            hosts: Vec::new(),
            series: self
                .series
                .as_ref()
                .map(|series| series.points(self.replay.last()))
                .unwrap_or_default(),
            notes: self.replay.notes(),
        };
        self.replay.report(run, Vec::new())
    }
}
