//! `weir observe --sqlserver URL --every 1s --for 30m --out FILE`: real systems, while they run.
//!
//! ```text
//!   asker (a thread each): at every tick --> ask --> answer --+
//!                                                             v
//!                          in the order of their times --> Recorder --> FILE
//! ```
//!
//! Each system is asked in a thread of its own, so that one that hangs costs the others nothing.

mod asker;
mod diskstats;
mod order;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlserver"))]
mod server;
#[cfg(feature = "sqlserver")]
mod sqlserver;

use crate::cli::ObserveLiveArgs;
use crate::error::CliError;
use crate::output;
use crate::progress::Live as Progress;
use crate::signals::Signals;
use asker::{Ask, AskError, Event, Happened, Ticks};
use order::Order;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use weir_observe::import::ImportError;
use weir_observe::live::{Feed, Recorder};
use weir_observe::{Header, Source, SourceKind, WriteError};
use weir_units::{Instant, Span};
use weir_wall::{Clock, calendar};

/// How often it is looked whether a signal has come.
const GLANCE: Duration = Duration::from_millis(100);
/// What is not yet in the file is lost when the process is killed: as much as this.
const FLUSH: Span = Span::from_secs(10);
/// How long an answer that is under way is waited for at the end.
const PATIENCE: Span = Span::from_secs(2);

/// A system that is observed.
struct System {
    feed: Feed,
    ask: Box<dyn Ask>,
}

pub(super) fn run(args: &ObserveLiveArgs) -> Result<u8, CliError> {
    let Some(out) = &args.out else { return Err(refused("--out FILE says what to write")) };
    let mut systems = systems(args)?;
    if systems.is_empty() {
        return Err(refused("say what to observe: --sqlserver URL, --postgres URL or --diskstats"));
    }
    let signals = Signals::catch()?;
    let mut about = BTreeMap::new();
    let mut notes = Vec::new();
    for System { feed, ask } in &mut systems {
        let name = feed.name();
        let greeting = ask.begin().map_err(|error| failed(name, error))?;
        about.extend(greeting.about.into_iter().map(|(what, is)| (format!("{name} {what}"), is)));
        notes.extend(greeting.notes.into_iter().map(|note| format!("{name}: {note}")));
        if let Some(code) = signals.code() {
            output::talk("weir: ended before there was a sample");
            return Ok(code);
        }
    }
    let clock = Clock::start();
    let kind = SourceKind::Other("live".to_owned());
    let by = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned();
    let header = Header {
        start_unix_ns: i64::try_from(calendar()).ok(),
        interval_ns: Some(args.every.nanos()),
        ..Header::new(Source { kind, by, about })
    };
    let file =
        File::create(out).map_err(|source| CliError::write(out, source)).map(BufWriter::new)?;
    let observe = |source| CliError::Observe { path: out.clone(), source };
    let mut watch = Watch {
        recorder: Recorder::new(file, &header).map_err(observe)?,
        feeds: Vec::new(),
        states: systems.iter().map(|_| State::default()).collect(),
        progress: Progress::start(args.duration, args.quiet),
        flushed: Instant::ZERO,
        out,
    };
    for note in &notes {
        watch.tell(Instant::ZERO, note)?;
    }
    let ticks =
        Ticks { clock, every: args.every, until: args.duration.map(|time| Instant::ZERO + time) };
    let (tell, told) = channel();
    let stops = watch.start(systems, ticks, &tell);
    drop(tell);
    let end = watch.until_end(&told, stops, clock, &signals);
    let is_cut = signals.code().filter(|_| args.duration.is_some());
    watch.finish(end.is_ok() && is_cut.is_none())?;
    end?;
    Ok(is_cut.unwrap_or(0))
}

/// Who is to be observed.
fn systems(args: &ObserveLiveArgs) -> Result<Vec<System>, CliError> {
    let mut systems = Vec::new();
    if args.password_file.is_some() && (args.sqlserver.is_some() == args.postgres.is_some()) {
        return Err(refused(match args.sqlserver {
            Some(_) => {
                "--password-file: there are two servers; give their passwords in \
                 WEIR_SQLSERVER_PASSWORD and WEIR_POSTGRES_PASSWORD"
            }
            None => "--password-file: there is no server that it could be of",
        }));
    }
    if let Some(url) = &args.sqlserver {
        systems.push(of_sqlserver(url, args)?);
    }
    if let Some(url) = &args.postgres {
        systems.push(of_postgres(url, args)?);
    }
    if let Some(path) = &args.diskstats {
        let ask = Box::new(diskstats::Diskstats::new(path));
        systems.push(System { feed: Feed::diskstats("diskstats"), ask });
    }
    Ok(systems)
}

#[cfg(feature = "sqlserver")]
fn of_sqlserver(url: &str, args: &ObserveLiveArgs) -> Result<System, CliError> {
    let ask = sqlserver::SqlServer::new(url, args)?;
    let feed = Feed::sqlserver("sqlserver", ask.host());
    Ok(System { feed, ask: Box::new(ask) })
}

#[cfg(not(feature = "sqlserver"))]
fn of_sqlserver(_url: &str, _args: &ObserveLiveArgs) -> Result<System, CliError> {
    Err(not_built("sqlserver"))
}

#[cfg(feature = "postgres")]
fn of_postgres(url: &str, args: &ObserveLiveArgs) -> Result<System, CliError> {
    let ask = postgres::Postgres::new(url, args)?;
    let feed = Feed::postgres("postgres", ask.host());
    Ok(System { feed, ask: Box::new(ask) })
}

#[cfg(not(feature = "postgres"))]
fn of_postgres(_url: &str, _args: &ObserveLiveArgs) -> Result<System, CliError> {
    Err(not_built("postgres"))
}

#[cfg(not(all(feature = "sqlserver", feature = "postgres")))]
fn not_built(what: &str) -> CliError {
    refused(&format!(
        "--{what}: this weir is built without its client; build one with: \
         cargo build --release --features {what}"
    ))
}

fn refused(reason: &str) -> CliError {
    CliError::Refused(reason.to_owned())
}

fn failed(name: &str, error: AskError) -> CliError {
    match error {
        AskError::Refused(reason) => CliError::Refused(format!("{name}: {reason}")),
        AskError::Lost(reason) => CliError::Live(format!("{name}: {reason}")),
    }
}

/// What is known of a system from answer to answer.
#[derive(Debug, Default)]
struct State {
    /// Since when it has not answered.
    lost: Option<Instant>,
    missed: u64,
    longest: Span,
}

/// What comes, and where it goes.
struct Watch<'a> {
    recorder: Recorder<BufWriter<File>>,
    feeds: Vec<Feed>,
    states: Vec<State>,
    progress: Progress,
    flushed: Instant,
    out: &'a Path,
}

impl Watch<'_> {
    /// Starts to ask; whoever drops what is returned stops it.
    fn start(
        &mut self,
        systems: Vec<System>,
        ticks: Ticks,
        tell: &Sender<Event>,
    ) -> Vec<Sender<()>> {
        let one = |(place, System { feed, ask }): (usize, System)| {
            self.feeds.push(feed);
            let (stop, stopped) = channel();
            let tell = tell.clone();
            thread::spawn(move || asker::ask_until(ask, place, ticks, &tell, &stopped));
            stop
        };
        systems.into_iter().enumerate().map(one).collect()
    }

    /// Takes what comes until all have ended, or a signal comes.
    fn until_end(
        &mut self,
        told: &Receiver<Event>,
        stops: Vec<Sender<()>>,
        clock: Clock,
        signals: &Signals,
    ) -> Result<(), CliError> {
        let mut order = Order::new(self.feeds.len());
        let (mut stops, mut last_word) = (Some(stops), None);
        let mut end = Ok(());
        loop {
            let event = match told.recv_timeout(GLANCE) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Some(Event { place, what }) = event
                && let Err(error) = self.event(place, what, &mut order)
                && end.is_ok()
            {
                end = Err(error);
            }
            while let Some((at, place, answer)) = order.next() {
                // What cannot be written once cannot be written then either.
                if end.is_ok() {
                    end = self.sample(at, place, answer);
                }
            }
            let now = clock.now();
            if (end.is_err() || signals.code().is_some()) && stops.take().is_some() {
                last_word = Some(now + PATIENCE);
            }
            if last_word.is_some_and(|at| now >= at) {
                break;
            }
        }
        order.release();
        while let Some((at, place, answer)) = order.next() {
            if end.is_ok() {
                end = self.sample(at, place, answer);
            }
        }
        end
    }

    fn event(&mut self, place: usize, what: Happened, order: &mut Order) -> Result<(), CliError> {
        let Some(state) = self.states.get_mut(place) else { return Ok(()) };
        let name = self.feeds.get(place).map_or("", Feed::name);
        let mut say = None;
        let result = match what {
            Happened::Asked { at } => {
                order.asked(place, at);
                return Ok(());
            }
            Happened::Answered { asked, answered, answer, missed } => {
                state.longest = state.longest.max(answered - asked);
                if let Some(since) = state.lost.take() {
                    state.missed += missed;
                    let gap = seconds(answered - since);
                    say = Some((answered, format!("{name}: it answers again, after {gap}")));
                } else if missed > 0 {
                    state.missed += missed;
                    let took = seconds(answered - asked);
                    let text = format!("{name}: samples missed: {missed}; an answer took {took}");
                    say = Some((answered, text));
                }
                // The server counted at some moment between the two.
                let middle = asked + Span::from_nanos((answered - asked).nanos() / 2);
                order.answered(place, middle, answer);
                Ok(())
            }
            Happened::Failed { at, error, missed } => {
                order.gave_up(place);
                state.missed += missed;
                match error {
                    AskError::Lost(reason) if state.lost.is_none() => {
                        state.lost = Some(at);
                        say = Some((at, format!("{name}: {reason}; trying again")));
                        Ok(())
                    }
                    AskError::Lost(_) => Ok(()),
                    error => Err(failed(name, error)),
                }
            }
        };
        if let Some((at, text)) = say {
            self.tell(at, &text)?;
        }
        result
    }

    fn sample(
        &mut self,
        at: Instant,
        place: usize,
        answer: weir_observe::live::Answer,
    ) -> Result<(), CliError> {
        let Some(feed) = self.feeds.get_mut(place) else { return Ok(()) };
        self.recorder.take(feed, at, answer).map_err(|error| match error {
            ImportError::Write(source) => CliError::Observe { path: self.out.to_owned(), source },
            source => CliError::Import { name: feed.name().to_owned(), source },
        })?;
        if at - self.flushed >= FLUSH {
            self.flushed = at;
            let flushed = self.recorder.flush();
            flushed.map_err(|source| self.observe(source))?;
        }
        let missed = self.states.iter().map(|state| state.missed).sum();
        self.progress.at(at, self.recorder.told().samples, missed);
        Ok(())
    }

    /// Says something to who watches and who reads.
    fn tell(&mut self, at: Instant, text: &str) -> Result<(), CliError> {
        self.progress.aside(|| output::talk(&format!("weir: {text}")));
        let noted = self.recorder.note(at, text);
        noted.map_err(|source| self.observe(source))
    }

    fn observe(&self, source: WriteError) -> CliError {
        CliError::Observe { path: self.out.to_owned(), source }
    }

    fn finish(mut self, complete: bool) -> Result<(), CliError> {
        let mut sums = Vec::new();
        for (feed, state) in self.feeds.iter().zip(&self.states) {
            let (name, longest) = (feed.name(), seconds(state.longest));
            sums.push(format!("{name}: the longest answer took {longest}"));
            if state.missed > 0 {
                sums.push(format!("{name}: samples missed in all: {}", state.missed));
            }
            if let Some(since) = state.lost {
                sums.push(format!(
                    "{name}: it has not answered since {}",
                    seconds(since - Instant::ZERO)
                ));
            }
        }
        let path = self.out.to_owned();
        let observe = |source| CliError::Observe { path: path.clone(), source };
        let told = self.recorder.told();
        let (mut out, notes) =
            self.recorder.finish(&mut self.feeds, sums, complete).map_err(observe)?;
        let sync = |source| CliError::write(&path, source);
        std::io::Write::flush(&mut out).and_then(|()| out.get_ref().sync_all()).map_err(sync)?;
        drop(self.progress);
        notes.iter().for_each(|note| output::talk(note));
        let how = if complete { "complete" } else { "ended before its time" };
        output::print_text(&format!(
            "{}: samples: {}, observed: {}, series: {}; {how}\n",
            path.display(),
            told.samples,
            told.entities,
            told.series
        ))
    }
}

/// A time for people.
fn seconds(time: Span) -> String {
    let nanos = weir_report::number::float(time.nanos());
    match nanos / 1e9 {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}
