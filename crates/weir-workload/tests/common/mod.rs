//! A device with a latency, and helpers for runs.

#![allow(dead_code, clippy::unwrap_used, reason = "test code; each test file uses a part")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_units::{Bytes, Instant, Span};
use weir_workload::{Isolated, Issue, JobFile, Placed, Region, Workload, fio};

pub(crate) const GIB: u64 = 1 << 30;

/// Reads a job file without includes and environment.
#[track_caller]
pub(crate) fn parse(text: &str) -> JobFile {
    fio::parse("test.fio", text, &Isolated).unwrap_or_else(|error| panic!("{error}"))
}

/// Places every clone of every job on its own region: device n for process n.
pub(crate) fn place(file: &JobFile, len: u64) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    for spec in &file.jobs {
        for clone in 0..spec.clones {
            let device = u32::try_from(placed.len()).unwrap();
            let region = Region { device, base: Bytes::ZERO, len: Bytes::new(len) };
            placed.push(Placed { spec: spec.clone(), clone, regions: vec![region] });
        }
    }
    placed
}

/// An I/O and its issue time in nanoseconds.
pub(crate) type Logged = (u64, Issue);

/// A run and its issued I/Os.
pub(crate) struct Run {
    pub(crate) workload: Workload,
    pub(crate) log: Vec<Logged>,
    /// Maximum I/Os in flight.
    pub(crate) deepest: usize,
}

impl Run {
    /// Runs to the end, or until `limit` I/Os. `latency` returns the latency of an I/O by its
    /// number.
    pub(crate) fn new(placed: Vec<Placed>, limit: usize, latency: impl Fn(usize) -> Span) -> Self {
        let mut workload = Workload::new(placed, 42).unwrap_or_else(|error| panic!("{error}"));
        let mut now = Instant::ZERO;
        let mut in_flight: BinaryHeap<Reverse<(Instant, usize, u32)>> = BinaryHeap::new();
        let (mut log, mut deepest) = (Vec::new(), 0);
        while !workload.is_done() && log.len() < limit {
            while let Some(issue) = workload.poll_issue(now) {
                in_flight.push(Reverse((now + latency(log.len()), log.len(), issue.process)));
                log.push((now.nanos(), issue));
                deepest = deepest.max(in_flight.len());
                if log.len() == limit {
                    break;
                }
            }
            let completion = in_flight.peek().map(|Reverse((at, ..))| *at);
            let deadline = workload.poll_deadline();
            let Some(next) = completion.into_iter().chain(deadline).min() else {
                assert!(workload.is_done(), "nothing in flight, no deadline, not done");
                break;
            };
            now = now.max(next);
            while let Some(Reverse((at, _, process))) = in_flight.peek().copied() {
                if at > now {
                    break;
                }
                in_flight.pop();
                workload.handle_completion(now, process);
            }
        }
        Self { workload, log, deepest }
    }

    /// Runs a job text on regions of `len` bytes, with a constant latency.
    #[track_caller]
    pub(crate) fn from_text(text: &str, len: u64, latency: Span) -> Self {
        Self::new(place(&parse(text), len), 1_000_000, |_| latency)
    }

    /// Returns the I/Os of one process.
    pub(crate) fn process(&self, process: u32) -> Vec<Logged> {
        self.log.iter().filter(|(_, issue)| issue.process == process).copied().collect()
    }

    pub(crate) fn ended(&self, process: u32) -> u64 {
        self.workload.process_state(process).unwrap().ended_at.unwrap().nanos()
    }
}

pub(crate) const MS: u64 = 1_000_000;
