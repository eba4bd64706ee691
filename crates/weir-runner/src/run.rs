//! The driver of a workload in wall time.
//!
//! It is the counterpart of the simulator, with the same state machine, but requests go to a server
//! and the clock is the real one. It shares the machine with the server that it measures, so it
//! must use little CPU: one thread serves the connections of all processes, and each system call
//! transfers all pending requests or replies.
//!
//! ```text
//!   wait --readable--> receive -> count -> Workload::handle_completion
//!    ^  \--deadline--> Workload::poll_issue -> queue -> send --> wait
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `flight` | requests in flight |
//! | `links` | the connections |
//! | `score` | counters |

mod flight;
mod links;
mod score;

use crate::error::RunnerError;
use flight::Flight;
use links::Links;
use score::Score;
use slab::Slab;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_client::WireId;
use weir_proto::{Errno, Uri};
use weir_random::Rng;
use weir_report::run::RunReport;
use weir_units::{Instant, Span};
use weir_wall::{Clock, Event, Events};
use weir_workload::{Issue, JobSpec, Op, Placed, Workload};

/// Time after which a stop is noticed.
pub(crate) const NOTICE: Span = Span::from_millis(100);

/// Options of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// The address of each device, by its number in a [`Region`](weir_workload::Region).
    pub uris: &'a [Uri],
    /// Seed of the workload and of the written data.
    pub seed: u64,
    /// Length of the intervals over time in the report.
    pub record_windows: Option<Span>,
    /// A flag that ends the run early.
    pub stop: Option<&'a AtomicBool>,
}

impl RunOptions<'_> {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Runs `placed` over its own connections, one for each process and device.
///
/// # Errors
///
/// [`RunnerError`] if the jobs do not fit the exports, for the first request that fails, or
/// [`RunnerError::Interrupted`] with the results until then.
///
/// # Panics
///
/// If a region's device has no URI.
pub fn run(placed: Vec<Placed>, options: &RunOptions<'_>) -> Result<RunReport, RunnerError> {
    with_exact_deadlines(|| {
        let mut driver = Driver::new(placed, options)?;
        driver.go()?;
        Ok(driver.report())
    })
}

/// Runs `work` with exact deadlines: by default, the kernel may be 50 us late for each.
pub(crate) fn with_exact_deadlines<T>(work: impl FnOnce() -> T) -> T {
    let slack = rustix::thread::current_timer_slack().ok();
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let result = work();
    if let Some(slack) = slack {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(slack));
    }
    result
}

struct Driver<'a> {
    options: &'a RunOptions<'a>,
    workload: Workload,
    specs: Vec<JobSpec>,
    links: Links,
    flights: Slab<Flight>,
    score: Score,
    clock: Clock,
    /// The data of all writes.
    payload: Vec<u8>,
}

impl<'a> Driver<'a> {
    fn new(placed: Vec<Placed>, options: &'a RunOptions<'a>) -> Result<Self, RunnerError> {
        let specs: Vec<JobSpec> = placed.iter().map(|p| p.spec.clone()).collect();
        let links = Links::open(&placed, options.uris)?;
        let workload = Workload::new(placed, options.seed)?;
        let score = Score::new(&specs, options.record_windows);
        let payload = noise(longest_write(&specs), options.seed);
        let (flights, clock) = (Slab::new(), Clock::start());
        Ok(Self { options, workload, specs, links, flights, score, clock, payload })
    }

    /// Issues requests, waits and completes them, until all jobs are done.
    fn go(&mut self) -> Result<(), RunnerError> {
        let mut events = Events::new();
        self.clock = Clock::start();
        self.issue()?;
        while !self.workload.is_done() {
            if self.options.is_stopped() {
                return Err(RunnerError::Interrupted(Box::new(self.report())));
            }
            let timeout = self.timeout();
            self.links.wires.wait(&mut events, timeout)?;
            for event in events.iter() {
                self.serve(event)?;
            }
            self.issue()?;
        }
        self.links.wires.close();
        Ok(())
    }

    /// Returns the time until something is due.
    fn timeout(&self) -> Option<Span> {
        let deadline = self.workload.poll_deadline();
        assert!(
            deadline.is_some() || !self.flights.is_empty(),
            "jobs that have not ended wait for a deadline or a reply"
        );
        let wait = deadline.map(|deadline| deadline - self.clock.now());
        let notice = self.options.stop.map(|_| NOTICE);
        wait.into_iter().chain(notice).min()
    }

    /// A connection can go on. Its process goes on at once, while the server works
    /// for the others.
    fn serve(&mut self, event: Event) -> Result<(), RunnerError> {
        let link = usize::try_from(event.key).unwrap_or(usize::MAX);
        if event.writable {
            self.links.wires.send(link)?;
        }
        // An end or an error of the connection shows when it is read.
        if event.readable || event.ended {
            self.receive(link)?;
            self.issue()?;
        }
        Ok(())
    }

    fn receive(&mut self, link: WireId) -> Result<(), RunnerError> {
        let Self { workload, links, flights, score, clock, .. } = self;
        let (mut now, mut failed) = (None, None);
        links.wires.connection(link).receive(|cookie, answer| {
            // After the system call, once for what it brought.
            let now = *now.get_or_insert_with(|| clock.now());
            let flight = flights.remove(key(cookie));
            match answer {
                Ok(_) => score.record(workload, &flight, now),
                Err(errno) => failed = failed.or(Some((flight, errno))),
            }
            workload.handle_completion(now, flight.process);
        })?;
        failed.map_or(Ok(()), |(flight, errno)| Err(self.failure(link, &flight, errno)))
    }

    fn failure(&self, link: WireId, flight: &Flight, errno: Errno) -> RunnerError {
        RunnerError::Io {
            job: self.specs[flight.process as usize].name.clone(),
            export: self.options.uris[self.links.device(link)].export.clone(),
            op: flight.op,
            offset: flight.offset,
            length: flight.length,
            errno,
        }
    }

    /// Queues all that may go now, and sends it.
    fn issue(&mut self) -> Result<(), RunnerError> {
        let mut now = self.clock.now();
        while let Some(issue) = self.workload.poll_issue(now) {
            let link = self.links.wire(issue.process, issue.device);
            self.queue(link, &issue, now).map_err(|error| {
                let job = &self.specs[issue.process as usize].name;
                error.for_job(job)
            })?;
            if self.links.wires.touch(link) {
                self.links.wires.send(link)?;
                now = self.clock.now();
            }
        }
        Ok(self.links.wires.send_touched()?)
    }

    fn queue(&mut self, link: WireId, issue: &Issue, now: Instant) -> Result<(), RunnerError> {
        let Issue { process, op, offset, len: length, .. } = *issue;
        self.score.issued(now);
        let flight = Flight { issued: now, offset, length, process, op };
        let cookie = self.flights.insert(flight) as u64;
        let connection = self.links.wires.connection(link);
        let queued = match op {
            Op::Read => connection.queue_read(cookie, offset, length).map(drop),
            Op::Write => {
                let data = &self.payload[..length as usize];
                connection.queue_write(cookie, offset, data, issue.data_sync).map(drop)
            }
            Op::Trim => connection.queue_trim(cookie, offset, length),
            Op::Flush => connection.queue_flush(cookie),
        };
        Ok(queued?)
    }

    fn report(&self) -> RunReport {
        self.score.report(&self.workload, &self.specs, self.options.seed, self.clock.now())
    }
}

/// A cookie is the flight's key in the slab.
#[expect(clippy::cast_possible_truncation, reason = "made from a usize in `queue`")]
fn key(cookie: u64) -> usize {
    cookie as usize
}

fn longest_write(specs: &[JobSpec]) -> u32 {
    let writing = specs.iter().filter(|spec| spec.mix.uses()[1]);
    // A block that was trimmed first is written as long as it was trimmed.
    writing.map(JobSpec::max_block).max().unwrap_or(0)
}

/// Returns bytes that neither compress nor repeat.
pub(crate) fn noise(length: u32, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    Rng::from_state(seed).fill(&mut bytes);
    bytes
}
