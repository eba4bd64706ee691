//! Polls of several systems, recorded into one observation.

use crate::error::LiveError;
use crate::order::TimeOrder;
use crate::poll::{Event, Greeting, Outcome, Poll, PollError, Ticks, poll_until};
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use weir_import::ImportError;
use weir_import::live::{Answer, Feed, Recorder, Told};
use weir_observe::{Contents, Header, WriteError};
use weir_units::{Instant, Span};

/// Interval at which [`Watcher::should_stop`] is asked.
const STOP_CHECK: Duration = Duration::from_millis(100);
/// Samples younger than this are lost if the process is killed.
const FLUSH: Span = Span::from_secs(10);
/// Maximum wait for the polls in flight at the end.
const LAST_ANSWERS: Span = Span::from_secs(2);

/// A system to record.
pub struct System {
    feed: Feed,
    poll: Box<dyn Poll>,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("name", &self.feed.name()).finish_non_exhaustive()
    }
}

impl System {
    /// Pairs a system with the feed that turns its answers into samples.
    #[must_use]
    pub fn new(feed: Feed, poll: Box<dyn Poll>) -> Self {
        Self { feed, poll }
    }

    /// The name of the system in notes and in the header.
    #[must_use]
    pub fn name(&self) -> &str {
        self.feed.name()
    }
}

/// The audience of a recording.
pub trait Watcher {
    /// Shows a note.
    fn note(&mut self, text: &str);
    /// Shows progress: the time of the last sample, and the number of samples and missed ticks.
    fn progress(&mut self, at: Instant, samples: u64, missed: u64);
    /// Shows a sample: its values, in the order of the series of `contents`.
    fn sample(&mut self, _contents: &Contents, _at: Instant, _row: &[Option<i64>]) {}
    /// Returns whether the recording should end now.
    fn should_stop(&self) -> bool;
}

/// Connects to the systems one after the other, or returns nothing if `should_stop` says so.
///
/// # Errors
///
/// A system does not answer, or refuses to.
pub fn connect(
    systems: &mut [System],
    should_stop: impl Fn() -> bool,
) -> Result<Option<Greeting>, LiveError> {
    let mut all = Greeting::default();
    for System { feed, poll } in systems {
        let name = feed.name();
        let greeting = poll.begin().map_err(|error| failure(name, error))?;
        all.about.extend(
            greeting.about.into_iter().map(|(key, value)| (format!("{name} {key}"), value)),
        );
        all.notes.extend(greeting.notes.into_iter().map(|note| format!("{name}: {note}")));
        if should_stop() {
            return Ok(None);
        }
    }
    Ok(Some(all))
}

fn failure(system: &str, error: PollError) -> LiveError {
    let system = system.to_owned();
    match error {
        PollError::Refused(reason) => LiveError::Refused { system, reason },
        PollError::Lost(reason) => LiveError::Lost { system, reason },
    }
}

/// The state of one system.
#[derive(Debug)]
struct Status {
    feed: Feed,
    /// Start of the present outage.
    lost_since: Option<Instant>,
    missed: u64,
    longest: Span,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recording<W: Write> {
    recorder: Recorder<W>,
    systems: Vec<Status>,
    flushed: Instant,
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Finished<W> {
    /// The writer, with the complete observation.
    pub out: W,
    /// The number of samples, entities and series.
    pub counts: Told,
    /// Notes on the input.
    pub notes: Vec<String>,
}

impl<W: Write> Recording<W> {
    /// Writes the header and the notes of the greeting.
    ///
    /// # Errors
    ///
    /// The observation cannot be written.
    pub fn start(
        out: W,
        header: &Header,
        notes: &[String],
        watcher: &mut impl Watcher,
    ) -> Result<Self, LiveError> {
        let recorder = Recorder::new(out, header)?;
        let mut recording = Self { recorder, systems: Vec::new(), flushed: Instant::ZERO };
        for note in notes {
            recording.note(Instant::ZERO, note, watcher)?;
        }
        Ok(recording)
    }

    /// Polls the systems until the last tick or until the watcher says stop.
    ///
    /// # Errors
    ///
    /// A system refuses to answer, an answer cannot be read, or the observation cannot be written.
    /// Call [`Self::finish`] in either case: the samples until then are valid.
    pub fn run(
        &mut self,
        systems: Vec<System>,
        ticks: Ticks,
        watcher: &mut impl Watcher,
    ) -> Result<(), LiveError> {
        let (events, received) = channel();
        let stops = self.start_polling(systems, ticks, &events);
        drop(events);
        let mut order = TimeOrder::new(self.systems.len());
        let result = self.record(&received, stops, ticks, &mut order, watcher);
        order.release();
        result.and_then(|()| self.take_samples(&mut order, watcher))
    }

    /// Starts a thread for each system; dropping a returned sender stops it.
    fn start_polling(
        &mut self,
        systems: Vec<System>,
        ticks: Ticks,
        events: &Sender<Event>,
    ) -> Vec<Sender<()>> {
        let mut stops = Vec::with_capacity(systems.len());
        for (index, System { feed, poll }) in systems.into_iter().enumerate() {
            let (stop, stopped) = channel();
            let events = events.clone();
            thread::spawn(move || poll_until(poll, index, ticks, &events, &stopped));
            self.systems.push(Status { feed, lost_since: None, missed: 0, longest: Span::ZERO });
            stops.push(stop);
        }
        stops
    }

    /// Records events until all pollers have ended. After a failure or a stop it waits a little
    /// longer for the answers in flight; it returns the first failure.
    fn record(
        &mut self,
        received: &Receiver<Event>,
        stops: Vec<Sender<()>>,
        ticks: Ticks,
        order: &mut TimeOrder,
        watcher: &mut impl Watcher,
    ) -> Result<(), LiveError> {
        let mut stops = Some(stops);
        let mut deadline = None;
        let mut result = Ok(());
        loop {
            match received.recv_timeout(STOP_CHECK) {
                Ok(Event { system, outcome }) => {
                    let handled = self.handle(system, outcome, order, watcher);
                    result = result.and(handled);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
            }
            if result.is_ok() {
                result = self.take_samples(order, watcher);
            }
            let now = ticks.clock.now();
            if (result.is_err() || watcher.should_stop()) && stops.take().is_some() {
                deadline = Some(now + LAST_ANSWERS);
            }
            if deadline.is_some_and(|at| now >= at) {
                return result;
            }
        }
    }

    fn handle(
        &mut self,
        system: usize,
        outcome: Outcome,
        order: &mut TimeOrder,
        watcher: &mut impl Watcher,
    ) -> Result<(), LiveError> {
        let Some(status) = self.systems.get_mut(system) else { return Ok(()) };
        let name = status.feed.name().to_owned();
        let note = match outcome {
            Outcome::Polled { at } => {
                order.polled(system, at);
                return Ok(());
            }
            Outcome::Answered { polled, answered, answer, missed } => {
                let took = answered - polled;
                // The server read its counters at some moment between the two.
                order.answered(system, polled + Span::from_nanos(took.nanos() / 2), answer);
                status.longest = status.longest.max(took);
                status.missed += missed;
                if let Some(since) = status.lost_since.take() {
                    let gap = seconds(answered - since);
                    (answered, format!("{name}: it answers again after {gap}"))
                } else if missed > 0 {
                    let took = seconds(took);
                    (answered, format!("{name}: samples missed: {missed}; an answer took {took}"))
                } else {
                    return Ok(());
                }
            }
            Outcome::Failed { at, error, missed } => {
                order.failed(system);
                status.missed += missed;
                match error {
                    PollError::Lost(reason) if status.lost_since.is_none() => {
                        status.lost_since = Some(at);
                        (at, format!("{name}: {reason}; trying again"))
                    }
                    PollError::Lost(_) => return Ok(()),
                    error @ PollError::Refused(_) => return Err(failure(&name, error)),
                }
            }
        };
        Ok(self.note(note.0, &note.1, watcher)?)
    }

    fn take_samples(
        &mut self,
        order: &mut TimeOrder,
        watcher: &mut impl Watcher,
    ) -> Result<(), LiveError> {
        while let Some((at, system, answer)) = order.next() {
            self.take_sample(at, system, answer, watcher)?;
        }
        Ok(())
    }

    fn take_sample(
        &mut self,
        at: Instant,
        system: usize,
        answer: Answer,
        watcher: &mut impl Watcher,
    ) -> Result<(), LiveError> {
        let Some(Status { feed, .. }) = self.systems.get_mut(system) else { return Ok(()) };
        let show = |contents: &Contents, row: &[Option<i64>]| watcher.sample(contents, at, row);
        self.recorder.take(feed, at, answer, show).map_err(|error| match error {
            ImportError::Write(source) => LiveError::Write(source),
            source => LiveError::Answer { system: feed.name().to_owned(), source },
        })?;
        if at - self.flushed >= FLUSH {
            self.flushed = at;
            self.recorder.flush()?;
        }
        let missed = self.systems.iter().map(|status| status.missed).sum();
        watcher.progress(at, self.recorder.told().samples, missed);
        Ok(())
    }

    /// Shows a note and records it.
    fn note(
        &mut self,
        at: Instant,
        text: &str,
        watcher: &mut impl Watcher,
    ) -> Result<(), WriteError> {
        watcher.note(text);
        self.recorder.note(at, text)
    }

    /// Ends the observation, with the longest answer and the missed samples of each system.
    ///
    /// # Errors
    ///
    /// The observation cannot be written.
    pub fn finish(self, complete: bool) -> Result<Finished<W>, LiveError> {
        let mut summary = Vec::new();
        for status in &self.systems {
            let name = status.feed.name();
            summary.push(format!("{name}: the longest answer took {}", seconds(status.longest)));
            if status.missed > 0 {
                summary.push(format!("{name}: samples missed in all: {}", status.missed));
            }
            if let Some(since) = status.lost_since {
                let since = seconds(since - Instant::ZERO);
                summary.push(format!("{name}: it has not answered since {since}"));
            }
        }
        let counts = self.recorder.told();
        let mut feeds: Vec<Feed> = self.systems.into_iter().map(|status| status.feed).collect();
        let (out, notes) = self.recorder.finish(&mut feeds, summary, complete)?;
        Ok(Finished { out, counts, notes })
    }
}

/// Formats a time in milliseconds or seconds.
fn seconds(time: Span) -> String {
    let tenths_of_ms = time.nanos() / 100_000;
    match tenths_of_ms {
        0..1_000 => format!("{}.{} ms", tenths_of_ms / 10, tenths_of_ms % 10),
        _ => format!("{}.{} s", tenths_of_ms / 10_000, tenths_of_ms / 1_000 % 10),
    }
}
