//! Polling of one system, at times that do not drift.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use weir_import::live::Answer;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// Minimum time between two attempts to connect.
const RETRY: Span = Span::from_secs(1);

/// A system whose counters can be polled. It connects on demand, and again after a failure.
pub trait Poll: Send {
    /// Connects and describes the system.
    ///
    /// # Errors
    ///
    /// The system does not answer, or refuses to.
    fn begin(&mut self) -> Result<Greeting, PollError>;

    /// Reads the present counters.
    ///
    /// # Errors
    ///
    /// The system does not answer, or refuses to.
    fn poll(&mut self) -> Result<Answer, PollError>;
}

/// A description of a system, known before the first sample.
#[derive(Debug, Default)]
pub struct Greeting {
    /// Names and values for the header of the observation; never a login.
    pub about: Vec<(String, String)>,
    /// Notes that help to read the figures.
    pub notes: Vec<String>,
}

/// The reason why a poll failed. It contains no login and no password.
#[derive(Debug)]
pub enum PollError {
    /// A later poll can succeed: the connection is lost, or the server is starting.
    Lost(String),
    /// A later poll fails, too: a wrong password, a missing permission.
    Refused(String),
}

/// An event of the system with the index `system`.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) system: usize,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Polled {
        at: Instant,
    },
    /// `missed` ticks passed during the poll.
    Answered {
        polled: Instant,
        answered: Instant,
        answer: Answer,
        missed: u64,
    },
    Failed {
        at: Instant,
        error: PollError,
        missed: u64,
    },
}

/// The times of the polls: multiples of the sampling interval.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// The clock that they are measured by; it starts at zero.
    pub clock: Clock,
    /// The sampling interval.
    pub every: Span,
    /// The time of the last poll, if there is one.
    pub until: Option<Instant>,
}

impl Ticks {
    /// Returns the time of a tick, or nothing after the last one.
    fn at(&self, tick: u64) -> Option<Instant> {
        let at = Instant::from_nanos(self.every.nanos().checked_mul(tick)?);
        self.until.is_none_or(|until| at <= until).then_some(at)
    }

    /// Returns the first tick after a time.
    fn after(&self, at: Instant) -> u64 {
        at.nanos() / self.every.nanos() + 1
    }

    /// Counts the ticks from `tick` up to but not including `next`.
    fn missed(&self, tick: u64, next: u64) -> u64 {
        let last = self.until.map_or(u64::MAX, |until| until.nanos() / self.every.nanos() + 1);
        next.min(last).saturating_sub(tick)
    }
}

/// Polls at every tick until the last one, until the other end of `stop` or of `events` is
/// dropped, or until the system refuses.
pub(crate) fn poll_until(
    mut poll: Box<dyn Poll>,
    system: usize,
    ticks: Ticks,
    events: &Sender<Event>,
    stop: &Receiver<()>,
) {
    let send = |outcome| events.send(Event { system, outcome }).is_ok();
    let mut tick = 0;
    while let Some(due) = ticks.at(tick) {
        let wait = due.since(ticks.clock.now());
        match stop.recv_timeout(Duration::from_nanos(wait.nanos())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
        let polled = ticks.clock.now();
        if !send(Outcome::Polled { at: polled }) {
            return;
        }
        let result = poll.poll();
        let answered = ticks.clock.now();
        match result {
            Ok(answer) => {
                let next = ticks.after(answered).max(tick + 1);
                let missed = ticks.missed(tick + 1, next);
                if !send(Outcome::Answered { polled, answered, answer, missed }) {
                    return;
                }
                tick = next;
            }
            Err(error) => {
                let is_final = matches!(error, PollError::Refused(_));
                let next = ticks.after(answered.max(polled + RETRY)).max(tick + 1);
                let missed = ticks.missed(tick, next);
                if !send(Outcome::Failed { at: answered, error, missed }) || is_final {
                    return;
                }
                tick = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Answers at once, except for one slow call and one that fails.
    struct Slow {
        calls: u32,
        /// The number of the slow call, and its duration.
        slow: (u32, Duration),
        fails: Option<u32>,
    }

    impl Poll for Slow {
        fn begin(&mut self) -> Result<Greeting, PollError> {
            Ok(Greeting::default())
        }

        fn poll(&mut self) -> Result<Answer, PollError> {
            self.calls += 1;
            if self.calls == self.slow.0 {
                let (_stay, never) = channel::<()>();
                let _ = never.recv_timeout(self.slow.1);
            }
            if Some(self.calls) == self.fails {
                return Err(PollError::Refused("no".to_owned()));
            }
            Ok(Answer::Diskstats(String::new()))
        }
    }

    fn outcomes(system: Slow, every: u64, until: u64) -> Vec<Outcome> {
        let (events, received) = channel();
        let (_stop, stopped) = channel();
        let until = Some(Instant::from_nanos(until * 1_000_000));
        let ticks = Ticks { clock: Clock::start(), every: Span::from_millis(every), until };
        poll_until(Box::new(system), 0, ticks, &events, &stopped);
        drop(events);
        received.iter().map(|event| event.outcome).collect()
    }

    /// A slow answer misses the ticks that it covers and shifts none of the later ones.
    #[test]
    fn missed_ticks_are_counted_and_times_do_not_drift() {
        let all = outcomes(
            Slow { calls: 0, slow: (2, Duration::from_millis(250)), fails: None },
            100,
            600,
        );
        let (mut polls, mut missed_ticks) = (0, 0);
        for outcome in &all {
            match outcome {
                Outcome::Polled { .. } => polls += 1,
                Outcome::Answered { missed, .. } => missed_ticks += missed,
                Outcome::Failed { .. } => {}
            }
        }
        assert_eq!(polls + missed_ticks, 7, "{all:?}");
        assert!(missed_ticks >= 2, "{all:?}");
        let ticks = Ticks { clock: Clock::start(), every: Span::from_millis(100), until: None };
        let after = |ms: u64| ticks.after(Instant::from_nanos(ms * 1_000_000));
        assert_eq!([after(0), after(99), after(100), after(349)], [1, 1, 2, 4]);
        assert_eq!(ticks.at(4), Some(Instant::from_nanos(400_000_000)));
    }

    #[test]
    fn a_refusal_ends_the_polling() {
        let all =
            outcomes(Slow { calls: 0, slow: (0, Duration::ZERO), fails: Some(2) }, 10, 10_000);
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(matches!(all[3], Outcome::Failed { error: PollError::Refused(_), .. }));
    }
}
