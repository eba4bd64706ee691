//! Recorded requests, issued again.
//!
//! A [`Replay`] takes requests from one or more traces and issues them on the devices of a layout.
//! Like every workload it is sans-IO: the driver calls, repeatedly,
//!
//! 1. [`Replay::poll_issue`] until it gives `None`;
//! 2. [`Replay::poll_deadline`]: without a completion nothing more is issued before that time;
//! 3. for each completion [`Replay::handle_completion`].
//!
//! The replay is over when [`Replay::is_done`]. Traces are streamed, so memory grows with the
//! requests in flight and not with the length of a trace.
//!
//! | pace | a request is issued |
//! |---|---|
//! | [`Pace::Recorded`] | at its recorded time |
//! | [`Pace::Times`] | at its recorded time, divided by a factor |
//! | [`Pace::Closed`] | when all requests are complete that had completed before it arrived |
//!
//! | module | holds |
//! |---|---|
//! | `options` | the traces and options of a replay |
//! | `pace` | the times of issue |
//! | `stream` | a trace with its devices |
//! | `lane` | the requests of a trace to one device, counted |
//! | `error` | errors |

mod error;
mod lane;
mod options;
mod pace;
mod stream;

pub use error::{BeyondEnd, ReplayError};
pub use options::{Recording, ReplayOptions};
pub use pace::Pace;

use crate::place::Device;
use crate::tally::OpTally;
use lane::Lane;
use std::collections::BTreeSet;
use stream::Stream;
use weir_report::number::float;
use weir_report::replay::{BEHIND, ReplayReport};
use weir_report::run::{JobReport, LatencyReport, RunReport, WritebackReport};
use weir_trace::Kind;
use weir_units::{Instant, Span};

/// The most requests in flight. Later ones are issued when earlier ones are complete, and their
/// latency counts from the time at which they were due.
const MOST_IN_FLIGHT: usize = 1 << 20;

/// The largest request of a device.
const MOST_LENGTH: u64 = u32::MAX as u64;

/// A request to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayIssue {
    /// Its tag for [`Replay::handle_completion`].
    pub tag: u32,
    /// The device of the layout.
    pub device: u32,
    /// Its kind.
    pub kind: Kind,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub len: u32,
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// The report of [`Replay::jobs`] that it counts in.
    pub job: usize,
    /// Its kind.
    pub kind: Kind,
    /// Length in bytes.
    pub len: u64,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    stream: usize,
    lane: usize,
    kind: Kind,
    len: u64,
    /// The time at which it was due.
    due: Instant,
    /// Recorded latency.
    recorded: Option<Span>,
    /// Recorded completion.
    end: Instant,
}

/// The replay of traces; see the module's text for the order of calls.
#[derive(Debug)]
pub struct Replay {
    devices: Vec<Device>,
    options: ReplayOptions,
    streams: Vec<Stream>,
    lanes: Vec<Lane>,
    flights: Vec<Flight>,
    free: Vec<u32>,
    in_flight: usize,
    issued: u64,
    completed: u64,
    first: Option<Instant>,
    last: Instant,
    /// Requests that were issued late, and the longest delay.
    late: (u64, Span),
    /// The longest time from which a request was due to its completion, and the time in which that
    /// was above [`BEHIND`].
    behind: (Span, Span),
    /// The end of the time that counts in `behind`.
    behind_until: Instant,
    /// The requests that were due and not issued when it ended, if it ended early.
    ended_early: Option<u64>,
}

impl Replay {
    /// Creates a replay of `recordings` side by side on `devices`. They begin at the same time.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Map`] if the map names an unknown device.
    pub fn new(
        recordings: Vec<Recording>,
        devices: Vec<Device>,
        options: ReplayOptions,
    ) -> Result<Self, ReplayError> {
        stream::check_map(&options.map, &devices)?;
        let several = recordings.len() > 1;
        let streams = recordings.into_iter().map(|own| Stream::new(own, several)).collect();
        Ok(Self {
            devices,
            options,
            streams,
            lanes: Vec::new(),
            flights: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            issued: 0,
            completed: 0,
            first: None,
            last: Instant::ZERO,
            late: (0, Span::ZERO),
            behind: (Span::ZERO, Span::ZERO),
            behind_until: Instant::ZERO,
            ended_early: None,
        })
    }

    /// Returns the next request that is due, if there is one.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] if a trace cannot be read further, or a request does not fit the devices.
    pub fn poll_issue(&mut self, now: Instant) -> Result<Option<ReplayIssue>, ReplayError> {
        for at in 0..self.streams.len() {
            self.fill(at)?;
        }
        if self.in_flight >= MOST_IN_FLIGHT {
            return Ok(None);
        }
        let due = |at: usize| self.streams[at].due(self.options.pace, now);
        let ready = (0..self.streams.len()).filter_map(|at| Some((due(at)?, at)));
        let Some((due, at)) = ready.min().filter(|(due, _)| *due <= now) else { return Ok(None) };
        Ok(self.issue(at, due, now))
    }

    /// Reads the next request of a stream that has none.
    fn fill(&mut self, at: usize) -> Result<(), ReplayError> {
        let stream = &mut self.streams[at];
        while stream.wants_more() {
            let Some(mut request) = stream.read()? else { break };
            let lane =
                stream.lane(request.device, &mut self.lanes, &self.devices, &self.options)?;
            if request.len == 0 && request.kind != Kind::Flush {
                self.lanes[lane].empty += 1;
                continue;
            }
            let device = &self.devices[self.lanes[lane].device as usize];
            let size = device.size.get();
            if request.len > MOST_LENGTH {
                return Err(stream.too_long(&request));
            }
            let is_beyond = request.offset.saturating_add(request.len) > size;
            if is_beyond && (!self.options.wrap || request.len > size) {
                return Err(stream.beyond(&request, device, self.options.wrap));
            }
            if is_beyond {
                self.lanes[lane].wrapped += 1;
                request.offset = (request.offset % size).min(size - request.len);
            }
            stream.put(request, lane, self.options.pace)?;
        }
        Ok(())
    }

    /// Issues the next request of a stream.
    fn issue(&mut self, at: usize, due: Instant, now: Instant) -> Option<ReplayIssue> {
        let (request, lane) = self.streams[at].take()?;
        let end = request.at + request.latency.unwrap_or(Span::from_nanos(1));
        let flight = Flight {
            stream: at,
            lane,
            kind: request.kind,
            len: request.len,
            due,
            recorded: request.latency,
            end,
        };
        let tag = match self.free.pop() {
            Some(tag) => {
                self.flights[tag as usize] = flight;
                tag
            }
            None => {
                // There are at most `MOST_IN_FLIGHT`.
                let tag = u32::try_from(self.flights.len()).unwrap_or(u32::MAX);
                self.flights.push(flight);
                tag
            }
        };
        self.in_flight += 1;
        self.issued += 1;
        self.first.get_or_insert(due);
        if self.options.pace.is_closed() {
            self.streams[at].open.insert((end, tag));
        }
        if now > due {
            self.late = (self.late.0 + 1, self.late.1.max(now - due));
        }
        Some(ReplayIssue {
            tag,
            device: self.lanes[lane].device,
            kind: request.kind,
            offset: request.offset,
            // Checked in `fill`.
            len: u32::try_from(request.len).unwrap_or(u32::MAX),
        })
    }

    /// Returns the time of the next request if nothing else holds it back.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        if self.options.pace.is_closed() || self.in_flight >= MOST_IN_FLIGHT {
            return None;
        }
        self.streams.iter().filter_map(|own| own.due(self.options.pace, Instant::ZERO)).min()
    }

    /// Returns whether completions have no influence on the times of issue until
    /// [`poll_deadline`](Self::poll_deadline).
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.options.pace.is_closed() && self.in_flight < MOST_IN_FLIGHT
    }

    /// Completes a request.
    pub fn handle_completion(&mut self, now: Instant, tag: u32) -> Replayed {
        let Flight { stream, lane, kind, len, due, recorded, end } = self.flights[tag as usize];
        self.free.push(tag);
        self.in_flight -= 1;
        self.completed += 1;
        self.last = self.last.max(now);
        if self.options.pace.is_closed() {
            self.streams[stream].open.remove(&(end, tag));
        }
        self.lanes[lane].record(kind, len, now - due, recorded);
        let is_open = !self.options.pace.is_closed();
        let lag = if is_open { now - due } else { Span::ZERO };
        self.behind.0 = self.behind.0.max(lag);
        if lag > BEHIND {
            let from = (due + BEHIND).max(self.behind_until);
            self.behind.1 += now.max(from) - from;
            self.behind_until = self.behind_until.max(now);
        }
        Replayed { job: lane, kind, len }
    }

    /// Ends the replay before its traces end, and counts the requests that were due by `now` and
    /// are not issued.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] if a trace cannot be read further.
    pub fn end_early(&mut self, now: Instant) -> Result<(), ReplayError> {
        self.ended_early = Some(0);
        if self.options.pace.is_closed() {
            return Ok(());
        }
        let mut unissued = 0;
        for at in 0..self.streams.len() {
            loop {
                self.fill(at)?;
                let due = self.streams[at].due(self.options.pace, now);
                if due.is_none_or(|due| due > now) {
                    break;
                }
                self.streams[at].take();
                unissued += 1;
                self.ended_early = Some(unissued);
            }
        }
        Ok(())
    }

    /// Returns whether all requests of all traces are complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.in_flight == 0 && self.streams.iter().all(Stream::is_done)
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number of completed requests.
    #[must_use]
    pub const fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns the time from the first request to the last completion.
    #[must_use]
    pub fn elapsed(&self) -> Span {
        self.first.map_or(Span::ZERO, |first| self.last - first)
    }

    /// Returns the time of the last completion.
    #[must_use]
    pub const fn last(&self) -> Instant {
        self.last
    }

    /// Returns the reports of the requests of each trace to each device.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobReport> {
        let seconds = float(self.elapsed().nanos()) / 1e9;
        self.lanes.iter().map(|lane| lane.job(seconds)).collect()
    }

    /// Returns the latency of all requests of all traces so far, except for flushes.
    #[must_use]
    pub fn latency(&self) -> LatencyReport {
        let mut all = OpTally::new();
        self.lanes.iter().for_each(|lane| lane.add_to(&mut all));
        // The rates are not part of the latency, so their time does not matter.
        all.report(0.0).latency
    }

    /// Completes the report of a run by the figures of the replay.
    #[must_use]
    pub fn report(&self, run: RunReport, writebacks: Vec<WritebackReport>) -> ReplayReport {
        let pace = self.options.pace;
        let seconds = |span: Span| float(span.nanos()) / 1e9;
        let due = |own: &Stream| Some(pace.due(own.last())? - pace.due(own.first())?);
        ReplayReport {
            pace: pace.to_string(),
            is_closed: pace.is_closed(),
            requests: self.completed,
            recorded_s: self
                .streams
                .iter()
                .map(|own| seconds(own.last() - own.first()))
                .fold(0.0, f64::max),
            due_s: self.streams.iter().filter_map(due).max().map_or(0.0, seconds),
            late: self.late.0,
            late_most_ns: self.late.1.nanos(),
            behind_most_ns: self.behind.0.nanos(),
            behind_ns: self.behind.1.nanos(),
            is_whole: self.ended_early.is_none() && self.is_done(),
            in_flight: self.in_flight as u64,
            unissued: self.ended_early.unwrap_or(0),
            recorded: self.lanes.iter().flat_map(Lane::recorded).collect(),
            run,
            writebacks,
        }
    }

    /// Returns notes about the traces and about what was changed.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.streams.iter().flat_map(Stream::notes).collect();
        notes.extend(self.lanes.iter().flat_map(Lane::notes));
        let seen: BTreeSet<&str> = self.streams.iter().flat_map(Stream::device_names).collect();
        let is_unused = |(device, _): &&(String, String)| !seen.contains(device.as_str());
        for (device, target) in self.options.map.iter().filter(is_unused) {
            let known: Vec<&str> = seen.iter().copied().collect();
            notes.push(format!(
                "--map {device}={target} has no effect: no trace has the device {device}; there \
                 are {}",
                known.join(", ")
            ));
        }
        let mut missing: Vec<&str> = self.streams.iter().flat_map(Stream::missing).collect();
        missing.sort_unstable();
        missing.dedup();
        for device in missing.into_iter().filter(|device| !seen.contains(device)) {
            let known: Vec<&str> = seen.iter().copied().collect();
            notes.push(format!(
                "--device {device} has no effect: no trace has the device {device}; there are {}",
                known.join(", ")
            ));
        }
        notes
    }
}
