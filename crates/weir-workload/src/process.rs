//! One clone of one job: its states, pacing and end.
//!
//! ```text
//!            start                  queue full
//!   Waiting -------> Ready <------------------------> Full
//!                    ^   |  ahead of rate, thinking,      (a completion)
//!          deadline  |   |  pass over, time over
//!                    |   v
//!                  Sleeping <---- Draining ----> Ready (next pass), Ended
//!                            nothing in flight
//! ```
//!
//! The rules are fio's:
//! - Ahead of its rate (`io_submit_mode=inline`), or before think time, a process
//!   waits until nothing is in flight. Lost time is caught up.
//! - It stops issuing when `size` (or `io_size`) times `loops` is issued, after
//!   `number_ios`, or at the end of `runtime`; it has ended when the last of its
//!   I/O has come back.
//! - Before it starts over its range (`loops`, `io_size` beyond `size`) it drains;
//!   a `time_based` one goes on without.
//! - `runtime` counts from the end of `ramp_time`, and so does the rate.
//!
//! - A pass also ends when the random map of each file is full, or when a draw leads
//!   beyond the file.
//!
//! Two things are simpler than in fio. A flush is queued like any I/O, as with fio's io_uring and
//! nbd engines; libaio's delays later I/Os until it is done. With one block size, the blocks of a
//! pass follow a permutation, whereas fio draws a block and takes the next free one.

use crate::block_map::Exhausted;
use crate::file::{File, counts};
use crate::io::Op;
use crate::job::{JobSpec, Order, PerOp, Rate, Submit, TRIM, Think, ThinkCount, WRITE};
use crate::pace::Pace;
use crate::plan::Plan;
use weir_random::Rng;
use weir_units::{Instant, Span};

/// The next step of a process after an issue or a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Poll it again in its turn.
    Ready,
    /// Wait for a completion.
    Wait,
    /// Poll it again at this time.
    Sleep(Instant),
    /// It has ended, and nothing is in flight.
    Ended,
}

/// One I/O on one of the process's files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) op: Op,
    pub(crate) device: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) data_sync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Ready,
    Full,
    Draining(Then),
    Sleeping,
    Ended,
}

/// The step after nothing is in flight any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Pace,
    Think,
    NextPass,
    End,
}

#[derive(Debug)]
pub(crate) struct Process {
    // Fields that every I/O uses come first.
    phase: Phase,
    outstanding: u32,
    depth: u32,
    /// End of the ramp or of the runtime, whichever is next.
    next_change: Instant,
    /// Bytes left in this pass, and I/Os left in all.
    bytes_left: u64,
    ios_left: u64,
    rng: Rng,
    file: usize,
    files: Vec<File>,
    plan: Plan,
    /// An operation before the next read or write: a flush, or the write after a trim.
    pending: Option<Pending>,
    paced: bool,
    think: Option<Think>,
    flushes: bool,
    pub(crate) issued: u64,
    pub(crate) completed: u64,

    limits: Limits,
    rates: Rates,
    until_jump: u32,
    thought_at: u64,
    writes: u64,
    last_was_flush: bool,
    pass: u32,
    bytes_done: u64,
    stop_at: Instant,
    ramp_end: Instant,
    pub(crate) start_delay: Span,
    pub(crate) started_at: Option<Instant>,
    pub(crate) measuring_from: Option<Instant>,
    pub(crate) ended_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum Pending {
    /// After a number of writes.
    Flush { data_only: bool },
    /// The write of a block that was just trimmed.
    Write { file: usize, offset: u64, len: u32 },
    /// At the end: the files before this one are still to be flushed.
    Closing { files: usize, then: Then },
}

/// The limits of a process.
#[derive(Debug)]
struct Limits {
    /// Bytes of one pass over the range.
    pass: u64,
    /// Bytes of one loop.
    io_size: u64,
    /// Passes repeat until `io_size` is done; `size` alone is one pass.
    repeats: bool,
    loops: u32,
    ios: u64,
    runtime: Option<Span>,
    ramp: Span,
    max_block: u64,
    fsync: u64,
    fdatasync: u64,
    end_fsync: bool,
}

#[derive(Debug)]
struct Rates {
    submit: Submit,
    paces: [Option<Pace>; 3],
}

impl Process {
    /// Makes a clone of `spec` on `files`, which is idle until [`Process::start`].
    pub(crate) fn new(spec: &JobSpec, plan: Plan, files: Vec<File>, rng: Rng) -> Self {
        let limits = Limits::new(spec, &plan, &files);
        let rates = Rates::new(spec);
        Self {
            phase: Phase::Waiting,
            outstanding: 0,
            depth: spec.effective_depth(),
            next_change: Instant::FAR,
            bytes_left: 0,
            ios_left: limits.ios,
            rng,
            file: 0,
            files,
            plan,
            pending: None,
            paced: rates.paces.iter().any(Option::is_some),
            think: spec.think,
            flushes: spec.fsync > 0 || spec.fdatasync > 0,
            issued: 0,
            completed: 0,
            limits,
            rates,
            until_jump: 1,
            thought_at: 0,
            writes: 0,
            last_was_flush: false,
            pass: 0,
            bytes_done: 0,
            stop_at: Instant::FAR,
            ramp_end: Instant::FAR,
            start_delay: spec.start_delay,
            started_at: None,
            measuring_from: None,
            ended_at: None,
        }
    }

    /// Starts the process.
    pub(crate) fn start(&mut self, now: Instant) {
        let measuring = now + self.limits.ramp;
        self.started_at = Some(now);
        self.measuring_from = Some(measuring);
        self.stop_at = self.limits.runtime.map_or(Instant::FAR, |runtime| measuring + runtime);
        self.ramp_end = if measuring > now { measuring } else { Instant::FAR };
        self.next_change = self.stop_at.min(self.ramp_end);
        self.rates.restart(now, &mut self.rng);
        self.begin_pass();
        self.phase = Phase::Ready;
    }

    /// Wakes the process at the deadline of [`Next::Sleep`].
    pub(crate) fn wake(&mut self) {
        self.phase = Phase::Ready;
    }

    pub(crate) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Returns the next I/O, if one may be issued now, and the next step.
    #[inline]
    pub(crate) fn issue(&mut self, now: Instant) -> (Option<Transfer>, Next) {
        debug_assert_eq!(self.phase, Phase::Ready);
        if now >= self.next_change && self.time_is_over(now) {
            return (None, self.drain(now, Then::End));
        }
        let closing = matches!(self.pending, Some(Pending::Closing { .. }));
        if (self.bytes_left == 0 || self.ios_left == 0) && !closing {
            return (None, self.end_pass(now));
        }
        if let Some(pending) = self.pending {
            return self.issue_pending(now, pending);
        }
        let op = match self.choose_op(now) {
            Ok(op) => op,
            Err(wait) => return (None, wait),
        };
        let Some((file, offset, len)) = self.place(op) else {
            return (None, self.end_pass(now));
        };
        if op == TRIM && self.plan.mix == crate::job::Mix::TrimWrite {
            self.pending = Some(Pending::Write { file, offset, len });
        }
        self.transfer(now, op, (file, offset, len))
    }

    /// Takes a completion. `None` means that the process stays in its state.
    #[inline]
    pub(crate) fn complete(&mut self, now: Instant) -> Option<Next> {
        assert!(self.outstanding > 0, "a completion without an I/O in flight");
        self.outstanding -= 1;
        self.completed += 1;
        match self.phase {
            Phase::Full => {
                if self.think.is_some() && self.must_think() {
                    return Some(self.drain(now, Then::Think));
                }
                self.phase = Phase::Ready;
                Some(Next::Ready)
            }
            Phase::Draining(then) if self.outstanding == 0 => Some(self.drained(now, then)),
            _ => None,
        }
    }

    /// Accounts for a read, write or trim that is issued now.
    #[inline]
    fn transfer(
        &mut self,
        now: Instant,
        op: usize,
        (file, offset, len): (usize, u64, u32),
    ) -> (Option<Transfer>, Next) {
        self.issued += 1;
        if counts(self.plan.mix, op) {
            self.bytes_left = self.bytes_left.saturating_sub(len.into());
            self.bytes_done += u64::from(len);
            self.ios_left -= 1;
        }
        self.last_was_flush = false;
        if let Some(pace) = &mut self.rates.paces[op] {
            pace.charge(len, &mut self.rng);
        }
        if op == WRITE && self.flushes {
            self.count_write();
        }
        let file = &self.files[file];
        let transfer = Transfer {
            op: [Op::Read, Op::Write, Op::Trim][op],
            device: file.device,
            offset: file.start + offset,
            len,
            data_sync: op == WRITE && self.plan.data_sync,
        };
        (Some(transfer), self.sent(now))
    }

    /// Counts an I/O in flight, and returns the next step.
    #[inline]
    fn sent(&mut self, now: Instant) -> Next {
        self.outstanding += 1;
        if self.outstanding >= self.depth {
            self.phase = Phase::Full;
            Next::Wait
        } else if self.think.is_some() && self.must_think() {
            self.drain(now, Then::Think)
        } else {
            Next::Ready
        }
    }

    /// Chooses the operation of the next I/O. Fails if its rate, and that of the other direction,
    /// do not allow it yet.
    #[inline]
    fn choose_op(&mut self, now: Instant) -> Result<usize, Next> {
        let op = self.plan.draw_op(&mut self.rng);
        if !self.paced || self.rates.due(op) <= now {
            return Ok(op);
        }
        match self.plan.other(op) {
            Some(other) if self.rates.due(other) <= now => Ok(other),
            _ => Err(self.ahead_of_rate(now)),
        }
    }

    fn ahead_of_rate(&mut self, now: Instant) -> Next {
        match self.rates.submit {
            Submit::Inline => self.drain(now, Then::Pace),
            Submit::Offload => self.sleep(now, self.earliest_due().min(self.next_change)),
        }
    }

    fn earliest_due(&self) -> Instant {
        let op = match self.pending {
            Some(Pending::Write { .. }) => WRITE,
            _ => self.plan.an_op(),
        };
        let due = self.rates.due(op);
        self.plan.other(op).map_or(due, |other| due.min(self.rates.due(other)))
    }

    /// Returns file, offset and length of an I/O of direction `op`: in the next file in turn or, if
    /// that is at its end, in another one.
    #[inline]
    fn place(&mut self, op: usize) -> Option<(usize, u64, u32)> {
        let jump = self.jumps(op);
        for _ in 0..self.files.len() {
            let index = self.file;
            self.file = if index + 1 == self.files.len() { 0 } else { index + 1 };
            let file = &mut self.files[index];
            let mut place = file.next(&self.plan, op, jump, &mut self.rng);
            if place == Err(Exhausted::Done) && self.plan.endless {
                file.restart(op, &mut self.rng);
                place = file.next(&self.plan, op, jump, &mut self.rng);
            }
            if let Ok((offset, len)) = place {
                return Some((index, offset, len));
            }
        }
        None
    }

    /// Returns whether a random process draws an offset now (`rw=randread:8`, `percentage_random`).
    #[inline]
    fn jumps(&mut self, op: usize) -> bool {
        let percent = self.plan.percent_random[op];
        match self.plan.order {
            Order::Sequential { .. } => false,
            Order::Random { every } => {
                if every > 1 {
                    self.until_jump -= 1;
                    if self.until_jump > 0 {
                        return false;
                    }
                    self.until_jump = every;
                }
                percent == 100 || self.rng.below(100) < percent
            }
        }
    }

    /// Returns whether think time is due after the I/Os since the last one, and records it.
    fn must_think(&mut self) -> bool {
        let Some(think) = self.think else { return false };
        let count = match think.count {
            ThinkCount::Completed => self.completed,
            ThinkCount::Issued => self.issued,
        };
        let due = count >= self.thought_at + u64::from(think.blocks);
        if due {
            self.thought_at = count;
        }
        due
    }

    fn count_write(&mut self) {
        self.writes += 1;
        let due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        // Both due at once is one fsync, as in fio.
        if due(self.limits.fsync) {
            self.pending = Some(Pending::Flush { data_only: false });
        } else if due(self.limits.fdatasync) {
            self.pending = Some(Pending::Flush { data_only: true });
        }
    }

    fn issue_pending(&mut self, now: Instant, pending: Pending) -> (Option<Transfer>, Next) {
        match pending {
            Pending::Write { file, offset, len } => {
                if self.rates.due(WRITE) > now {
                    return (None, self.ahead_of_rate(now));
                }
                self.pending = None;
                self.transfer(now, WRITE, (file, offset, len))
            }
            Pending::Flush { data_only } => {
                self.pending = None;
                let used = self.file.checked_sub(1).unwrap_or(self.files.len() - 1);
                self.flush(now, used, data_only)
            }
            Pending::Closing { files, then } => {
                let Some(file) = files.checked_sub(1) else {
                    self.pending = None;
                    return (None, self.drain(now, then));
                };
                self.pending = Some(Pending::Closing { files: file, then });
                self.flush(now, file, false)
            }
        }
    }

    fn flush(&mut self, now: Instant, file: usize, data_sync: bool) -> (Option<Transfer>, Next) {
        self.issued += 1;
        self.last_was_flush = true;
        let device = self.files[file].device;
        let flush = Transfer { op: Op::Flush, device, offset: 0, len: 0, data_sync };
        (Some(flush), self.sent(now))
    }

    /// Restarts the rates at the end of the ramp. Returns whether the runtime is over.
    fn time_is_over(&mut self, now: Instant) -> bool {
        if now >= self.ramp_end {
            self.rates.restart(self.ramp_end, &mut self.rng);
            self.ramp_end = Instant::FAR;
            self.next_change = self.stop_at;
        }
        // The final flushes are still issued.
        now >= self.stop_at && !matches!(self.pending, Some(Pending::Closing { .. }))
    }

    fn begin_pass(&mut self) {
        self.pass += 1;
        for file in &mut self.files {
            (0..3).for_each(|op| file.restart(op, &mut self.rng));
        }
        self.bytes_left = if self.plan.endless {
            u64::MAX
        } else {
            self.limits.pass.min(self.limits.total().saturating_sub(self.bytes_done))
        };
    }

    /// Ends a pass. Starts another one if any is left.
    fn end_pass(&mut self, now: Instant) -> Next {
        let limits = &self.limits;
        let done = self.bytes_done >= limits.total() || self.ios_left == 0;
        let enough = done && !self.plan.endless;
        let missing = limits.io_size.saturating_sub(self.bytes_done);
        let more = self.plan.endless
            || self.pass < limits.loops
            || (limits.repeats && missing >= limits.max_block);
        self.drain(now, if more && !enough { Then::NextPass } else { Then::End })
    }

    fn drain(&mut self, now: Instant, then: Then) -> Next {
        if self.outstanding == 0 {
            return self.drained(now, then);
        }
        self.phase = Phase::Draining(then);
        Next::Wait
    }

    /// Continues with the step that waited until nothing was in flight.
    fn drained(&mut self, now: Instant, then: Then) -> Next {
        match then {
            // Rates restart at the end of the ramp, so no sleep is longer.
            Then::Pace => self.sleep(now, self.earliest_due().min(self.next_change)),
            Then::Think => {
                let time = self.think.map_or(Span::ZERO, |think| think.time);
                self.sleep(now, now + time)
            }
            Then::NextPass | Then::End if self.limits.end_fsync && !self.last_was_flush => {
                self.pending = Some(Pending::Closing { files: self.files.len(), then });
                self.phase = Phase::Ready;
                Next::Ready
            }
            Then::NextPass => {
                self.begin_pass();
                self.phase = Phase::Ready;
                Next::Ready
            }
            Then::End => {
                self.phase = Phase::Ended;
                self.ended_at = Some(now);
                Next::Ended
            }
        }
    }

    fn sleep(&mut self, now: Instant, until: Instant) -> Next {
        let until = until.min(self.stop_at);
        if until <= now {
            self.phase = Phase::Ready;
            return Next::Ready;
        }
        self.phase = Phase::Sleeping;
        Next::Sleep(until)
    }
}

impl Limits {
    fn new(spec: &JobSpec, plan: &Plan, files: &[File]) -> Self {
        use crate::job::Extent;
        let range: u64 = files.iter().map(|file| file.span).sum();
        let (pass, io_size) = match (spec.size, spec.io_size) {
            (_, Some(Extent::Percent(percent))) => {
                let bytes = Extent::Percent(percent).resolve(range);
                (bytes, bytes)
            }
            (Some(Extent::Bytes(size)), None) => (size.get(), size.get()),
            (Some(Extent::Bytes(size)), Some(Extent::Bytes(io_size))) => {
                (size.get(), io_size.get())
            }
            (_, Some(Extent::Bytes(io_size))) => (range, io_size.get()),
            (_, None) => (range, range),
        };
        let ios = spec.number_ios.map_or(u64::MAX, |n| n.saturating_mul(spec.loops.into()));
        let writes = spec.mix.uses()[WRITE] || spec.mix.uses()[TRIM];
        Self {
            pass,
            io_size,
            repeats: spec.io_size.is_some(),
            loops: spec.loops,
            ios: if plan.endless { u64::MAX } else { ios },
            runtime: spec.runtime,
            ramp: spec.ramp_time,
            max_block: spec.max_block().into(),
            fsync: spec.fsync.into(),
            fdatasync: spec.fdatasync.into(),
            end_fsync: spec.end_fsync && writes,
        }
    }

    fn total(&self) -> u64 {
        self.io_size.saturating_mul(self.loops.into())
    }
}

impl Rates {
    fn new(spec: &JobSpec) -> Self {
        let PerOp { read, write, trim } = spec.rate;
        let blocks = spec.blocks.as_array();
        let pace = |op: usize, rate: Option<Rate>| {
            let block = blocks[op].min();
            let rate = match rate? {
                Rate::Bytes(rate) => rate.get(),
                Rate::Iops(iops) => iops.get().saturating_mul(block.into()),
            };
            Some(Pace::new(rate.min(1 << 62), block, Instant::ZERO).by(spec.rate_process))
        };
        Self { submit: spec.submit, paces: [pace(0, read), pace(1, write), pace(2, trim)] }
    }

    #[inline]
    fn due(&self, op: usize) -> Instant {
        self.paces[op].as_ref().map_or(Instant::ZERO, Pace::due)
    }

    fn restart(&mut self, start: Instant, rng: &mut Rng) {
        self.paces.iter_mut().flatten().for_each(|pace| pace.restart(start, rng));
    }
}
