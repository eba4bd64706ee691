//! Asking a system again and again, at times that do not shift.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use weir_observe::live::Answer;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// From one try to connect to the next, at least.
const AGAIN: Span = Span::from_secs(1);

/// Somebody who can be asked. It connects when it is not connected.
pub(super) trait Ask: Send {
    /// Connects, and says with whom.
    fn begin(&mut self) -> Result<Greeting, AskError>;

    /// What is counted now.
    fn ask(&mut self) -> Result<Answer, AskError>;
}

/// What is known before the first sample.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    /// Names and values for the head of the observation; never a login.
    pub(super) about: Vec<(String, String)>,
    /// What a reader of the numbers should know.
    pub(super) notes: Vec<String>,
}

/// Why there is no answer. Neither says a login or a password.
#[derive(Debug)]
pub(super) enum AskError {
    /// It may be there again: the connection is lost, the server is starting.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "sqlserver")),
        expect(dead_code, reason = "only servers are lost")
    )]
    Lost(String),
    /// It will not be better by itself: a wrong password, a right that is missing.
    Refused(String),
}

/// What happened to the system of a place.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) place: usize,
    pub(super) what: Happened,
}

#[derive(Debug)]
pub(super) enum Happened {
    Asked {
        at: Instant,
    },
    /// `missed` ticks went by meanwhile.
    Answered {
        asked: Instant,
        answered: Instant,
        answer: Answer,
        missed: u64,
    },
    Failed {
        at: Instant,
        error: AskError,
        missed: u64,
    },
}

/// The times at which is asked: from the beginning on, always as far apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    pub(super) clock: Clock,
    pub(super) every: Span,
    pub(super) until: Option<Instant>,
}

impl Ticks {
    /// When a tick is, if it is still to be.
    fn at(&self, tick: u64) -> Option<Instant> {
        let at = Instant::from_nanos(self.every.nanos().checked_mul(tick)?);
        self.until.is_none_or(|until| at <= until).then_some(at)
    }

    /// The first tick after a time.
    fn after(&self, at: Instant) -> u64 {
        at.nanos() / self.every.nanos() + 1
    }

    /// How many of the ticks from `tick` to before `next` there would have been.
    fn missed(&self, tick: u64, next: u64) -> u64 {
        let last = self.until.map_or(u64::MAX, |until| until.nanos() / self.every.nanos() + 1);
        next.min(last).saturating_sub(tick)
    }
}

/// Asks at every tick until the last, until somebody drops the other end of `stopped`, or until
/// there is no use.
pub(super) fn ask_until(
    mut who: Box<dyn Ask>,
    place: usize,
    ticks: Ticks,
    tell: &Sender<Event>,
    stopped: &Receiver<()>,
) {
    // Nobody listens any more: then it ends.
    let tell = |what| tell.send(Event { place, what }).is_ok();
    let mut tick = 0;
    while let Some(due) = ticks.at(tick) {
        let wait = due.since(ticks.clock.now());
        match stopped.recv_timeout(Duration::from_nanos(wait.nanos())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
        let asked = ticks.clock.now();
        if !tell(Happened::Asked { at: asked }) {
            return;
        }
        let result = who.ask();
        let answered = ticks.clock.now();
        let (happened, next) = match result {
            Ok(answer) => {
                let next = ticks.after(answered).max(tick + 1);
                let missed = ticks.missed(tick + 1, next);
                (Happened::Answered { asked, answered, answer, missed }, next)
            }
            Err(error) => {
                let is_over = matches!(error, AskError::Refused(_));
                let next = ticks.after(answered.max(asked + AGAIN)).max(tick + 1);
                let missed = ticks.missed(tick, next);
                tell(Happened::Failed { at: answered, error, missed });
                if is_over {
                    return;
                }
                tick = next;
                continue;
            }
        };
        if !tell(happened) {
            return;
        }
        tick = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Answers at once, but for the calls that take so long, or fail.
    struct Slow {
        calls: u32,
        /// The number of the call, and how long it takes.
        slow: (u32, Duration),
        fails: Option<u32>,
    }

    impl Ask for Slow {
        fn begin(&mut self) -> Result<Greeting, AskError> {
            Ok(Greeting::default())
        }

        fn ask(&mut self) -> Result<Answer, AskError> {
            self.calls += 1;
            if self.calls == self.slow.0 {
                let (_stay, never) = channel::<()>();
                let _ = never.recv_timeout(self.slow.1);
            }
            if Some(self.calls) == self.fails {
                return Err(AskError::Refused("no".to_owned()));
            }
            Ok(Answer::Diskstats(String::new()))
        }
    }

    fn events(who: Slow, every: u64, until: u64) -> Vec<Happened> {
        let (tell, told) = channel();
        let (_stop, stopped) = channel();
        let until = Some(Instant::from_nanos(until * 1_000_000));
        let ticks = Ticks { clock: Clock::start(), every: Span::from_millis(every), until };
        ask_until(Box::new(who), 0, ticks, &tell, &stopped);
        drop(tell);
        told.iter().map(|event| event.what).collect()
    }

    /// A slow answer costs the ticks that it covers, and shifts none of those after it.
    #[test]
    fn missed_ticks_are_told_and_times_do_not_shift() {
        let slow = Slow { calls: 0, slow: (2, Duration::from_millis(250)), fails: None };
        let all = events(slow, 100, 600);
        let asked = |event: &Happened| match event {
            Happened::Asked { at } => Some(at.nanos() / 1_000_000),
            _ => None,
        };
        // The machine may be late, never early.
        let asked: Vec<_> = all.iter().filter_map(asked).collect();
        let missed = |event: &Happened| match event {
            Happened::Answered { missed, .. } => Some(*missed),
            _ => None,
        };
        let missed: u64 = all.iter().filter_map(missed).sum();
        assert_eq!(asked.len() as u64 + missed, 7, "{asked:?}");
        assert!(missed >= 2, "{asked:?}");
        // The next tick is one of those that were set at the beginning, however long it took.
        let ticks = Ticks { clock: Clock::start(), every: Span::from_millis(100), until: None };
        let after = |ms: u64| ticks.after(Instant::from_nanos(ms * 1_000_000));
        assert_eq!([after(0), after(99), after(100), after(349)], [1, 1, 2, 4]);
        assert_eq!(ticks.at(4), Some(Instant::from_nanos(400_000_000)));
    }

    #[test]
    fn what_will_not_be_better_ends_it() {
        let who = Slow { calls: 0, slow: (0, Duration::ZERO), fails: Some(2) };
        let all = events(who, 10, 10_000);
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(matches!(all[3], Happened::Failed { error: AskError::Refused(_), .. }));
    }
}
