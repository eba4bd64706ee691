//! Waits that end at a deadline and not some time after it.
//!
//! A thread that sleeps until a deadline wakes up late: the system needs a timer interrupt and a
//! switch to the thread, and an idle processor has to wake up first. A [`Sleeper`] learns how late
//! that has been, sleeps until the *lead* before the deadline, and polls the rest:
//!
//! ```text
//!   now                      deadline - lead       deadline
//!    |--------- sleep ---------------|--late--|-poll-|  reply
//! ```
//!
//! Polling takes processor time. The budget is a share of what the thread uses for its work, and
//! the lead is only as long as the budget allows. The sleeper reads no clock, so a test drives it.

use crate::lateness::Lateness;
use weir_units::{Instant, Span};

/// How a thread waits for sockets and deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Sleep until shortly before a deadline and poll the rest, for at most a twelfth of the
    /// processor time that the work takes.
    #[default]
    Early,
    /// Sleep until a deadline. Replies are as late as the machine wakes up.
    Late,
    /// Poll while there are clients or requests. It takes a core.
    Poll,
}

/// Work that pays for one part of polling.
const WORK_PER_POLL: u64 = 12;

/// The budget at the start, before any processor time was read.
const FIRST_CREDIT: u64 = 100_000;

/// The largest budget that an expensive time can leave for a later one.
const MOST_CREDIT: u64 = 2_000_000;

/// The number of sleeps for which a budget lasts at least.
const SPREAD: u64 = 64;

/// The number of sleeps after which the processor time is read again.
const SLEEPS_PER_READING: u32 = 32;

/// Sleeps of similar lengths are equally late; a processor that is idle for longer sleeps deeper.
/// The classes end at 64 µs, 128 µs, .. 8 ms.
const CLASSES: usize = 9;

/// Decides how long a thread sleeps before a deadline, and learns from each wake-up.
///
/// For each wait, call [`timeout`](Self::timeout), wait that long for events, and call
/// [`woke`](Self::woke). If [`wants_reading`](Self::wants_reading) then, call
/// [`read`](Self::read).
#[derive(Debug)]
pub struct Sleeper {
    waiting: Waiting,
    classes: [Lateness; CLASSES],
    budget: Budget,
    state: State,
}

/// The present wait.
#[derive(Debug, Clone, Copy)]
enum State {
    /// For events only, or the deadline has passed.
    Waiting,
    Asleep {
        until: Instant,
        deadline: Instant,
        class: usize,
    },
    Polling {
        since: Instant,
        deadline: Instant,
    },
}

/// The time that may be polled: a share of the processor time used for work.
#[derive(Debug)]
struct Budget {
    /// In nanoseconds; what is left is the difference, and may be negative for a while.
    earned: u64,
    spent: u64,
    /// The last reading of the thread's processor time, and `spent` at that time.
    used: Span,
    spent_before: u64,
    sleeps: u32,
}

impl Budget {
    fn left(&self) -> u64 {
        self.earned.saturating_sub(self.spent)
    }

    /// Returns the time that a wait may poll on average.
    fn per_wait(&self) -> Span {
        Span::from_nanos(self.left() / SPREAD)
    }

    /// Earns a share of the processor time since the last reading, without the polls in it.
    fn read(&mut self, used: Span) {
        let polled = self.spent - self.spent_before;
        let work = used.saturating_sub(self.used).nanos().saturating_sub(polled);
        let most = self.spent.saturating_add(MOST_CREDIT);
        self.earned = self.earned.saturating_add(work / WORK_PER_POLL).min(most);
        (self.used, self.spent_before, self.sleeps) = (used, self.spent, 0);
    }
}

impl Sleeper {
    /// Starts without knowledge of the machine, for a thread that has used no processor time.
    #[must_use]
    pub fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            classes: Default::default(),
            budget: Budget {
                earned: FIRST_CREDIT,
                spent: 0,
                used: Span::ZERO,
                spent_before: 0,
                sleeps: 0,
            },
            state: State::Waiting,
        }
    }

    /// Returns how long to wait for events at `now`, or `None` without a limit. `is_used` says that
    /// there are clients, which may send a request at any time.
    pub fn timeout(
        &mut self,
        now: Instant,
        deadline: Option<Instant>,
        is_used: bool,
    ) -> Option<Span> {
        if self.waiting == Waiting::Poll && (is_used || deadline.is_some()) {
            return Some(Span::ZERO);
        }
        if let (State::Polling { deadline: polled, .. }, Some(deadline)) = (self.state, deadline)
            && polled == deadline
            && now < deadline
        {
            return Some(Span::ZERO);
        }
        self.stop_polling(now);
        let deadline = deadline?;
        let rest = deadline - now;
        if rest == Span::ZERO {
            return Some(rest);
        }
        let class = class_of(rest);
        let lead = match self.waiting {
            Waiting::Early => self.classes[class].lead(self.budget.per_wait()),
            _ => Span::ZERO,
        };
        if rest <= lead && rest.nanos() <= self.budget.left() {
            self.state = State::Polling { since: now, deadline };
            return Some(Span::ZERO);
        }
        let sleep = if rest > lead { rest.saturating_sub(lead) } else { rest };
        self.state = State::Asleep { until: now + sleep, deadline, class };
        Some(sleep)
    }

    /// Notes that a wait ended at `now`, with events or without.
    pub fn woke(&mut self, now: Instant, has_events: bool) {
        match self.state {
            State::Asleep { until, deadline, class } if !has_events && now >= until => {
                self.classes[class].note(now - until);
                self.budget.sleeps += 1;
                self.state = if now < deadline {
                    State::Polling { since: now, deadline }
                } else {
                    State::Waiting
                };
            }
            State::Polling { deadline, .. } if !has_events && now < deadline => {}
            _ => self.stop_polling(now),
        }
    }

    /// Returns whether [`read`](Self::read) is due.
    #[must_use]
    pub fn wants_reading(&self) -> bool {
        self.budget.sleeps >= SLEEPS_PER_READING
    }

    /// Takes the processor time that the thread has used so far.
    pub fn read(&mut self, used: Span) {
        self.budget.read(used);
    }

    fn stop_polling(&mut self, now: Instant) {
        if let State::Polling { since, .. } = self.state {
            self.budget.spent = self.budget.spent.saturating_add((now - since).nanos());
        }
        self.state = State::Waiting;
    }
}

/// Returns the class of a sleep by its length.
fn class_of(sleep: Span) -> usize {
    let shortest = sleep.nanos() >> 16;
    let doubled = u64::BITS - shortest.leading_zeros();
    usize::try_from(doubled).unwrap_or(CLASSES).min(CLASSES - 1)
}

#[cfg(test)]
mod tests;
