//! All processes of a run, as one state machine.
//!
//! The driver calls, in this order and repeatedly:
//!
//! 1. [`Workload::poll_issue`] until it gives `None`: each I/O it gives is in
//!    flight from then on. The first call starts the run.
//! 2. [`Workload::poll_deadline`]: without a completion nothing more can be
//!    issued before that time.
//! 3. It waits for a completion or the deadline; for each completion
//!    [`Workload::handle_completion`]; then again from 1.
//!
//! The run is over when [`Workload::is_done`]. `now` never goes back. Nothing is allocated after
//! [`Workload::new`], and no call visits idle processes.

use crate::block_map::MOST_BLOCKS_OF_A_RUN;
use crate::error::{FioError, PlacementError};
use crate::file::File;
use crate::io::{Op, Region};
use crate::job::JobSpec;
use crate::plan::Plan;
use crate::process::{Next, Process};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weir_random::Rng;
use weir_units::Instant;

/// Maximum processes of a run.
pub(crate) const MAX_PROCESSES: u32 = 1 << 20;

/// One clone of one job, and its regions.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The job.
    pub spec: JobSpec,
    /// The number of the clone, from 0, for `offset_increment`.
    pub clone: u32,
    /// A region for each of the job's files, in their order, which are used in turn. A job with a
    /// `directory` has one.
    pub regions: Vec<Region>,
}

/// An I/O to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// The index of its [`Placed`].
    pub process: u32,
    /// The device of its region.
    pub device: u32,
    /// The operation.
    pub op: Op,
    /// The offset on the device, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub len: u32,
    /// A write must be durable when it completes (`sync=`); a flush needs to cover
    /// data only (`fdatasync`).
    pub data_sync: bool,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessState {
    /// Its start; `None` before.
    pub started_at: Option<Instant>,
    /// The end of its ramp, from which completions count.
    pub measuring_from: Option<Instant>,
    /// The completion of its last I/O; `None` before.
    pub ended_at: Option<Instant>,
    /// Issued I/Os, including flushes.
    pub issued: u64,
    /// Completed I/Os, including flushes.
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
    /// Processes that may issue, or start, later. Each occurs at most once.
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
    /// Makes a run of `placed`; process n is the n-th of them. The same seed gives the same I/O for
    /// the same completions.
    ///
    /// # Errors
    /// [`FioError::Placement`] if a job does not fit its placement.
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
            processes.push(process.map_err(|kind| {
                let (at, job) = (placed.spec.at.clone(), placed.spec.name.clone());
                FioError::Placement { at, job, kind }
            })?);
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

    /// Returns the next I/O at `now`, if there is one. Processes take turns.
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

    /// Returns the next time at which an I/O may be issued without a completion. It is zero, which
    /// is always in the past, if [`Workload::poll_issue`] has more I/Os now, and `None` if only
    /// completions lead to more, or none come.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        if !self.ready.is_empty() || (self.run_started.is_none() && !self.processes.is_empty()) {
            return Some(Instant::ZERO);
        }
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the completion of an I/O of `process`.
    ///
    /// # Panics
    /// If the process has nothing in flight.
    #[inline]
    pub fn handle_completion(&mut self, now: Instant, process: u32) {
        if let Some(next) = self.processes[process as usize].complete(now) {
            self.put(process, next, now);
        }
    }

    /// Returns whether all processes have ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let started = self.run_started.is_some() || self.processes.is_empty();
        started && self.running == 0 && self.waves.is_empty()
    }

    /// Returns the state of a process; `None` if there is no such process.
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

    /// Makes processes ready that are due.
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
