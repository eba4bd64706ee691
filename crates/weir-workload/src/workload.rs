//! All processes of a run, as one state machine.
//!
//! The driver calls, in this order and as often as it likes:
//!
//! 1. [`Workload::poll_issue`] until it gives `None`: each I/O it gives is in
//!    flight from then on. The first call starts the run.
//! 2. [`Workload::poll_deadline`]: without a completion nothing more can be
//!    issued before that time.
//! 3. It waits for a completion or the deadline; for each completion
//!    [`Workload::handle_completion`]; then again from 1.
//!
//! It is over when [`Workload::is_done`]. `now` never goes back. Nothing is
//! allocated after [`Workload::new`], and no call looks at processes that have
//! nothing to do.

use crate::block_map::MOST_BLOCKS_OF_A_RUN;
use crate::error::{FioError, PlacementError};
use crate::file::File;
use crate::job::JobSpec;
use crate::plan::Plan;
use crate::process::{Next, Process};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weir_random::Rng;
use weir_units::{Bytes, Instant};

/// The most processes of one run.
pub const MAX_PROCESSES: u32 = 1 << 20;

/// One clone of one job, and where its I/O goes.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The job.
    pub spec: JobSpec,
    /// Which of its clones, from 0; `offset_increment` counts by it.
    pub clone: u32,
    /// One region for each of the job's files, in their order; a job with a
    /// `directory` has one. They are used in turn.
    pub regions: Vec<Region>,
}

/// A stretch of a device that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The driver's number for the device; comes back in [`Issue::device`].
    pub device: u32,
    /// Where the region starts on the device.
    pub base: Bytes,
    /// How long it is.
    pub len: Bytes,
}

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
    /// Makes earlier writes durable; has no offset and no length.
    Flush,
}

/// One I/O to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// Who issued it: the index of its [`Placed`].
    pub process: u32,
    /// The device of its region.
    pub device: u32,
    /// What to do.
    pub op: Op,
    /// Where on the device, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// A write must be durable when it completes (`sync=`); a flush needs to cover
    /// data only (`fdatasync`).
    pub data_sync: bool,
}

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessState {
    /// When it started; `None` before.
    pub started_at: Option<Instant>,
    /// Completions from here on count: its ramp is over.
    pub measuring_from: Option<Instant>,
    /// When its last I/O came back; `None` before.
    pub ended_at: Option<Instant>,
    /// I/Os issued so far, flushes among them.
    pub issued: u64,
    /// I/Os completed so far, flushes among them.
    pub completed: u64,
    /// I/Os in flight.
    pub in_flight: u32,
}

/// The processes of a run; see the module's text for the order of calls.
#[derive(Debug)]
pub struct Workload {
    processes: Vec<Process>,
    /// Processes that may issue, in turn.
    ready: VecDeque<u32>,
    /// Processes that may issue, or start, later. Each stands here at most once.
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The earliest of `timers`.
    next_timer: Instant,
    /// Waves that have not started, the next one last.
    waves: Vec<Vec<u32>>,
    run_started: Option<Instant>,
    /// Processes of the current wave that have not ended.
    running: usize,
}

impl Workload {
    /// A run of `placed`; process n is the n-th of them. The same seed gives the
    /// same I/O for the same completions.
    ///
    /// # Errors
    /// [`FioError::Placement`] if a job does not fit where it was put.
    pub fn new(placed: Vec<Placed>, seed: u64) -> Result<Self, FioError> {
        let count = placed.len();
        let mut waves: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut processes = Vec::with_capacity(count);
        let mut map_blocks = MOST_BLOCKS_OF_A_RUN;
        for (index, placed) in (0_u32..).zip(placed) {
            let process = if index < MAX_PROCESSES {
                new_process(&placed, seed, index, &mut map_blocks)
            } else {
                Err(PlacementError::TooManyProcesses { limit: MAX_PROCESSES })
            };
            let failed = |kind| {
                let (at, job) = (placed.spec.at.clone(), placed.spec.name.clone());
                FioError::Placement { at, job, kind }
            };
            processes.push(process.map_err(failed)?);
            waves.entry(placed.spec.wave).or_default().push(index);
        }
        Ok(Self {
            processes,
            ready: VecDeque::with_capacity(count),
            timers: BinaryHeap::with_capacity(count),
            next_timer: Instant::FAR,
            waves: waves.into_values().rev().collect(),
            run_started: None,
            running: 0,
        })
    }

    /// The next I/O, if there is one at `now`. Processes take turns.
    #[inline]
    pub fn poll_issue(&mut self, now: Instant) -> Option<Issue> {
        if self.run_started.is_none() {
            self.run_started = Some(now);
            self.start_wave(now);
        }
        if self.next_timer <= now {
            self.wake(now);
        }
        while let Some(index) = self.ready.pop_front() {
            let (transfer, next) = self.processes[index as usize].issue(now);
            self.put(index, next, now);
            if let Some(transfer) = transfer {
                return Some(Issue {
                    process: index,
                    device: transfer.device,
                    op: transfer.op,
                    offset: transfer.offset,
                    len: transfer.len,
                    data_sync: transfer.data_sync,
                });
            }
        }
        None
    }

    /// When something may become issuable without a completion. Zero, which is
    /// always in the past, if [`Workload::poll_issue`] has not given all it has;
    /// `None` if only completions can help, or nothing.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        if !self.ready.is_empty() || (self.run_started.is_none() && !self.processes.is_empty()) {
            return Some(Instant::ZERO);
        }
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// An I/O of `process` has completed.
    ///
    /// # Panics
    /// If the process has nothing in flight.
    #[inline]
    pub fn handle_completion(&mut self, now: Instant, process: u32) {
        if let Some(next) = self.processes[process as usize].complete(now) {
            self.put(process, next, now);
        }
    }

    /// All processes have ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let started = self.run_started.is_some() || self.processes.is_empty();
        started && self.running == 0 && self.waves.is_empty()
    }

    /// How many processes there are.
    #[must_use]
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// How far a process is; `None` if there is no such process.
    #[must_use]
    pub fn process_state(&self, process: u32) -> Option<ProcessState> {
        let process = self.processes.get(process as usize)?;
        Some(ProcessState {
            started_at: process.started_at,
            measuring_from: process.measuring_from,
            ended_at: process.ended_at,
            issued: process.issued,
            completed: process.completed,
            in_flight: process.outstanding(),
        })
    }

    #[inline]
    fn put(&mut self, process: u32, next: Next, now: Instant) {
        match next {
            Next::Ready => self.ready.push_back(process),
            Next::Wait => {}
            Next::Sleep(until) => self.set_timer(process, until),
            Next::Ended => {
                self.running -= 1;
                if self.running == 0 {
                    self.start_wave(now);
                }
            }
        }
    }

    fn set_timer(&mut self, process: u32, at: Instant) {
        self.timers.push(Reverse((at, process)));
        self.next_timer = self.next_timer.min(at);
    }

    /// Moves processes whose time has come to the ready ones.
    fn wake(&mut self, now: Instant) {
        while let Some(Reverse((at, index))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let process = &mut self.processes[index as usize];
            match process.started_at {
                Some(_) => process.wake(),
                None => process.start(now),
            }
            self.ready.push_back(index);
        }
        self.next_timer = self.timers.peek().map_or(Instant::FAR, |Reverse((at, _))| *at);
    }

    /// Starts the next wave, if there is one. A start delay counts from the start
    /// of the run, as in fio, not of the wave.
    fn start_wave(&mut self, now: Instant) {
        let Some(wave) = self.waves.pop() else { return };
        self.running = wave.len();
        for index in wave {
            let process = &mut self.processes[index as usize];
            let start = self.run_started.unwrap_or(now) + process.start_delay;
            if start <= now {
                process.start(now);
                self.ready.push_back(index);
            } else {
                self.set_timer(index, start);
            }
        }
    }
}

fn new_process(
    placed: &Placed,
    seed: u64,
    index: u32,
    map_blocks: &mut u64,
) -> Result<Process, PlacementError> {
    let Placed { spec, clone, regions } = placed;
    if regions.is_empty() {
        return Err(PlacementError::NoRegion);
    }
    let mut rng = Rng::new(&[seed, spec.seed.unwrap_or(0), index.into()]);
    let plan = Plan::new(spec);
    let count = regions.len() as u64;
    let file = |(file, region): (u64, &Region)| {
        File::new(spec, &plan, *clone, (file, count), *region, &mut rng)
    };
    let mut files = (0..).zip(regions).map(file).collect::<Result<Vec<_>, _>>()?;
    files.iter_mut().try_for_each(|file| file.add_map(spec, &plan, map_blocks))?;
    Ok(Process::new(spec, plan, files, rng))
}
