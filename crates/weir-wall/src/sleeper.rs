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
//! This takes processor time in two ways. Polling is one. The other is that a thread which wakes up
//! late serves all that is due by then in one round, and a thread which is on time needs several.
//! The budget for both is a share of the processor time of the thread's work. The lead is only as
//! long as the budget allows, and there is none if the budget is used up. The sleeper reads no
//! clock, so a test drives it.

use crate::lateness::Lateness;
use weir_units::{Instant, Span};

/// How a thread waits for sockets and deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Sleep until shortly before a deadline and poll the rest. It takes about a twelfth more
    /// processor time than the work alone.
    #[default]
    Early,
    /// Sleep until a deadline. Replies are as late as the machine wakes up.
    Late,
    /// Poll while there are clients or requests. It takes a core.
    Poll,
}

/// The parts of work that pay for one part of polling and of additional rounds.
const WORK_PER_EXTRA: u64 = 12;

/// The processor time of a round, before any was measured.
const FIRST_ROUND: u64 = 10_000;

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
    /// The deadline of the last wait and its lead.
    last: (Instant, Span),
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

/// The processor time that being on time may take: a share of that used for work.
#[derive(Debug)]
struct Budget {
    /// In nanoseconds; what is left is the difference, and may be negative for a while.
    earned: u64,
    spent: u64,
    /// The last reading of the thread's processor time, and the time polled since.
    used: Span,
    polled: u64,
    /// Rounds since the last reading, and the sleeps among them that a timer ended.
    rounds: u64,
    sleeps: u32,
    /// The mean processor time of a round.
    round: u64,
}

impl Budget {
    fn left(&self) -> u64 {
        self.earned.saturating_sub(self.spent)
    }

    /// Returns the time that a wait may poll on average.
    fn per_wait(&self) -> Span {
        Span::from_nanos(self.left() / SPREAD)
    }

    fn spend(&mut self, time: u64) {
        self.spent = self.spent.saturating_add(time);
    }

    fn poll(&mut self, time: Span) {
        self.polled = self.polled.saturating_add(time.nanos());
        self.spend(time.nanos());
    }

    /// Pays for a round that serves a part of the requests that one round could have served. It may
    /// take as long as a mean round, of which each request takes only a part.
    fn split(&mut self) {
        self.spend(self.round);
    }

    /// Earns a share of the processor time since the last reading, without the polls in it.
    fn read(&mut self, used: Span) {
        let work = used.saturating_sub(self.used).nanos().saturating_sub(self.polled);
        let most = self.spent.saturating_add(MOST_CREDIT);
        self.earned = self.earned.saturating_add(work / WORK_PER_EXTRA).min(most);
        self.round = work.checked_div(self.rounds).unwrap_or(self.round);
        (self.used, self.polled, self.rounds, self.sleeps) = (used, 0, 0, 0);
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
                polled: 0,
                rounds: 0,
                sleeps: 0,
                round: FIRST_ROUND,
            },
            state: State::Waiting,
            last: (Instant::ZERO, Span::ZERO),
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
        self.note_split(now, deadline);
        let rest = deadline - now;
        if rest == Span::ZERO {
            return Some(rest);
        }
        let class = class_of(rest);
        let lead = self.lead(class);
        if rest <= lead && rest.nanos() <= self.budget.left() {
            self.last = (deadline, lead);
            self.state = State::Polling { since: now, deadline };
            return Some(Span::ZERO);
        }
        let lead = if rest > lead { lead } else { Span::ZERO };
        let sleep = rest.saturating_sub(lead);
        self.last = (deadline, lead);
        self.state = State::Asleep { until: now + sleep, deadline, class };
        Some(sleep)
    }

    /// Pays if the last wait ended on time and the next deadline is so near that a wake-up without
    /// a lead would have served it in the same round.
    fn note_split(&mut self, now: Instant, deadline: Instant) {
        let (last, lead) = self.last;
        if now >= last && deadline > last && deadline < last + lead {
            self.budget.split();
        }
    }

    fn lead(&self, class: usize) -> Span {
        if self.waiting == Waiting::Early && self.budget.left() > 0 {
            self.classes[class].lead(self.budget.per_wait())
        } else {
            Span::ZERO
        }
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
            State::Polling { deadline, .. } if !has_events && now < deadline => return,
            _ => self.stop_polling(now),
        }
        self.budget.rounds += 1;
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
            self.budget.poll(now - since);
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
