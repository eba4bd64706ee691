//! A database in wall time: the users, the buffer pool, the log and the checkpoints of
//! [`Database`], on files that a server really stores.
//!
//! The simulator's sibling, as [`mod@crate::run`] is for jobs. The state machine says
//! which I/O it wants; here it gets its bytes, goes to the server, writes through, and
//! is checked when it comes back. When the process ends, however it ends, the next
//! [`OltpRun::open`] recovers the database and proves that everything acknowledged is
//! there.
//!
//! ```text
//!   Database --poll_commit--> Contents (versions, records)
//!      |  ^                      |
//!      |  +--handle_completion--+|
//!   poll_io                     ||bytes
//!      v                        |v
//!    driver ---- reads, writes (FUA) ----> server
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `page` | the bytes of a data page |
//! | `log` | the bytes of the log file |
//! | `contents` | what all of them hold |
//! | `files` | plain reads and writes, for the recovery |
//! | `recovery` | what happens before a database runs |
//! | `acknowledged` | what the outside was told |
//! | [`serving`] | the places of a layout that is served |
//! | `stats` | what a file went through |

mod acknowledged;
mod contents;
mod files;
mod log;
mod page;
mod recovery;
pub mod serving;
mod stats;

pub use stats::{FileTotals, Held, OpTotals};

use crate::error::RunnerError;
use crate::run::with_exact_deadlines;
use crate::wires::{WireId, Wires};
use acknowledged::Acknowledged;
use contents::{BadPage, Contents};
use files::Files;
use recovery::Recovering;
use std::fmt;
use std::path::Path;
use weir_proto::{Errno, Uri};
use weir_report::oltp::{FileReport, OltpReport};
use weir_report::recovery::RecoveryReport;
use weir_report::run::ClockName;
use weir_units::{Bytes, Instant, Span};
use weir_wall::{Clock, Events};
use weir_workload::Device;
use weir_workload::oltp::model::PAGE;
use weir_workload::oltp::{Content, Database, Description, FileIo, FileOp, LoadTally, OltpError};

/// The cap that is the instance's log rate.
const LOG_RATE: &str = "log_rate";
/// From one reading of what held the log to the next.
const READING: Span = Span::from_millis(100);

/// Something that a file of a database can be, as it is served.
#[derive(Debug, Clone)]
pub struct ServedFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size: Bytes,
    /// The export, or why it is not served.
    pub uri: Result<Uri, String>,
    /// Its first byte there.
    pub base: Bytes,
}

/// How to run a database.
#[derive(Clone, Copy, Default)]
pub struct OltpOptions<'a> {
    /// What it can lie on.
    pub files: &'a [ServedFile],
    /// Seed of the users.
    pub seed: u64,
    /// Report over stretches of this length.
    pub every: Option<Span>,
    /// A file to keep the number of the newest acknowledged transaction in.
    pub acknowledged: Option<&'a Path>,
    /// Asked now and then during the recovery, whether to end it early.
    pub is_stopped: Option<&'a dyn Fn() -> bool>,
    /// What the server's engine has counted of each of `files` since its start.
    pub held: Option<&'a dyn Fn() -> Vec<Held>>,
}

impl fmt::Debug for OltpOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OltpOptions").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Why a database does not run.
#[derive(Debug, thiserror::Error)]
pub enum OltpRunError {
    /// It does not fit the files.
    #[error("{0}")]
    Description(#[from] OltpError),
    /// Anything else.
    #[error("{0}")]
    Runner(#[from] RunnerError),
}

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    io: FileIo,
    /// The first page of a read.
    first: u32,
    issued: Instant,
}

/// A database on a server. It runs when and as long as it is
/// [driven](Self::run_until).
pub struct OltpRun<'a> {
    options: OltpOptions<'a>,
    /// The files, data first and the log last, and the place of each among what there is.
    files: Vec<ServedFile>,
    places: Vec<(u32, &'static str)>,
    wires: Wires,
    contents: Contents,
    database: Database,
    tally: LoadTally,
    /// By tag.
    flights: Vec<Option<Flight>>,
    totals: Vec<FileTotals>,
    /// What was counted when the measuring began.
    before: Option<(Vec<FileTotals>, Vec<Held>)>,
    acknowledged: Option<Acknowledged>,
    /// Runs since the first slice.
    clock: Option<Clock>,
    now: Instant,
    governing: Governing,
    completed: u64,
    /// Room for the bytes of a write.
    bytes: Vec<u8>,
}

impl fmt::Debug for OltpRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OltpRun").field("now", &self.now).finish_non_exhaustive()
    }
}

/// How much of a log write's latency the instance's log rate is.
#[derive(Debug, Default)]
struct Governing {
    due: Instant,
    last: Held,
    share: f64,
}

impl<'a> OltpRun<'a> {
    /// Connects to the files and recovers the database that is on them; if there is
    /// none, an empty one is made.
    ///
    /// # Errors
    ///
    /// [`OltpRunError`]; among them are the verdicts that something acknowledged is lost,
    /// see [`RunnerError::is_verdict`].
    pub fn open(
        description: &Description,
        options: OltpOptions<'a>,
    ) -> Result<(Self, RecoveryReport), OltpRunError> {
        let device = |file: &ServedFile| Device { name: file.name.clone(), size: file.size };
        let devices: Vec<Device> = options.files.iter().map(device).collect();
        let model = description.model(&devices, options.seed)?;
        let mut files = Files::open(&model, options.files)?;
        let mut contents = Contents::new(&model);
        let acknowledged = options.acknowledged.map(Acknowledged::open).transpose()?;
        let (redo, report) = Recovering {
            files: &mut files,
            contents: &mut contents,
            acknowledged: acknowledged.as_ref(),
            is_stopped: &|| options.is_stopped.is_some_and(|is_stopped| is_stopped()),
        }
        .run()?;
        let mut wires = Wires::new()?;
        for connection in files.connections {
            wires.add(connection)?;
        }
        let tally = LoadTally::new(description, &model, options.every);
        let run = Self {
            options,
            totals: vec![FileTotals::default(); files.served.len()],
            files: files.served,
            places: model.files(),
            wires,
            contents,
            tally,
            flights: Vec::new(),
            before: None,
            acknowledged,
            clock: None,
            now: Instant::ZERO,
            governing: Governing::default(),
            completed: 0,
            bytes: Vec::new(),
            database: Database::resume(model, redo),
        };
        Ok((run, report))
    }

    /// Runs until `until`, on a clock that starts with the first call. Returns the time
    /// that it has come to, which is not before `until`, or `None` when the time of the
    /// description is over.
    ///
    /// # Errors
    ///
    /// [`RunnerError`]: the first I/O that fails, or brings what was not written.
    pub fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, RunnerError> {
        with_exact_deadlines(|| self.turn_until(until))
    }

    fn turn_until(&mut self, until: Instant) -> Result<Option<Instant>, RunnerError> {
        let clock = *self.clock.get_or_insert_with(Clock::start);
        let mut events = Events::new();
        loop {
            let now = clock.now();
            self.pass(now);
            if self.tally.is_over() {
                return Ok(None);
            }
            self.database.handle_timeout(now);
            self.issue(clock)?;
            if now >= until {
                return Ok(Some(now));
            }
            let next = self.database.poll_deadline().into_iter().chain([until, self.tally.end()]);
            let timeout = next.min().map(|next| next.since(clock.now()));
            self.wires.wait(&mut events, timeout)?;
            for event in events.iter() {
                let wire = usize::try_from(event.key).unwrap_or(usize::MAX);
                if event.writable {
                    self.wires.send(wire)?;
                }
                // An end or an error of the connection shows when it is read.
                if event.readable || event.ended {
                    self.receive(wire, clock)?;
                    self.issue(clock)?;
                }
            }
        }
    }

    /// Time goes on to `now`; until then the counters stay as they are.
    fn pass(&mut self, now: Instant) {
        self.now = now.min(self.tally.end());
        if now >= self.tally.from() && self.before.is_none() {
            self.before = Some((self.totals.clone(), self.held()));
        }
        self.tally.pass(now, &self.database);
        if now >= self.governing.due {
            self.governing.due = now + READING;
            self.read_governor();
        }
    }

    /// What the server has counted of the files, in their order.
    fn held(&self) -> Vec<Held> {
        let all = self.options.held.map(|held| held()).unwrap_or_default();
        let own = self.places.iter().map(|(place, _)| all.get(*place as usize).cloned());
        own.map(Option::unwrap_or_default).collect()
    }

    /// Replies do not say what held a request, so the part of the instance's log rate is
    /// that of all log writes since the last look.
    fn read_governor(&mut self) {
        if self.options.held.is_none() {
            return;
        }
        let held = self.held().pop().unwrap_or_default();
        let since = held.since(&self.governing.last);
        self.governing.share = since.share_of(LOG_RATE);
        self.governing.last = held;
    }

    /// Sends all I/O that is wanted now.
    fn issue(&mut self, clock: Clock) -> Result<(), RunnerError> {
        while let Some(commit) = self.database.poll_commit() {
            self.contents.commit(&commit);
        }
        let mut now = clock.now();
        while let Some(io) = self.database.poll_io() {
            let wire = self.file_of(&io);
            self.queue(wire, &io, now)?;
            if self.wires.touch(wire) {
                self.wires.send(wire)?;
                now = clock.now();
            }
        }
        self.wires.send_touched()
    }

    /// The file of an I/O, which is its wire as well.
    fn file_of(&self, io: &FileIo) -> WireId {
        let own = self.places.iter().position(|(place, _)| *place == io.file);
        own.unwrap_or_else(|| panic!("a database keeps to its files: {io:?}"))
    }

    fn queue(&mut self, wire: WireId, io: &FileIo, now: Instant) -> Result<(), RunnerError> {
        let content = self.database.content(io);
        let first = if let Content::Pages { first, .. } = content { first } else { 0 };
        let tag = io.tag as usize;
        if self.flights.len() <= tag {
            self.flights.resize(tag + 1, None);
        }
        self.flights[tag] = Some(Flight { io: *io, first, issued: now });
        let offset = self.files[wire].base.get() + io.offset;
        let connection = self.wires.connection(wire);
        match io.op {
            FileOp::Read => {
                let length = u32::try_from(io.len).unwrap_or(u32::MAX);
                connection.queue_read(io.tag.into(), offset, length)
            }
            FileOp::Write => {
                self.contents.encode(io, content, &mut self.bytes);
                connection.queue_write(io.tag.into(), offset, &self.bytes, true)
            }
        }
    }

    fn receive(&mut self, wire: WireId, clock: Clock) -> Result<(), RunnerError> {
        let Self { wires, flights, contents, .. } = self;
        let (mut done, mut failed) = (Vec::new(), None);
        wires.connection(wire).receive(|cookie, answer| {
            let flight = flights.get_mut(key(cookie)).and_then(Option::take);
            let flight = flight.unwrap_or_else(|| panic!("{cookie} is not under way"));
            let checked = match answer {
                Err(errno) => Err(Failure::Refused(errno)),
                Ok(bytes) if flight.io.op == FileOp::Read => {
                    contents.check(flight.first, bytes).map_err(Failure::Bad)
                }
                Ok(_) => Ok(()),
            };
            match checked {
                Ok(()) => done.push(flight),
                Err(failure) => failed = failed.take().or(Some((flight, failure))),
            }
        })?;
        if let Some((flight, failure)) = failed {
            return Err(self.failure(wire, &flight, failure));
        }
        let now = clock.now();
        for flight in done {
            self.complete(wire, &flight, now);
        }
        self.acknowledge()
    }

    fn complete(&mut self, wire: WireId, flight: &Flight, now: Instant) {
        self.completed += 1;
        let latency = now - flight.issued;
        self.totals[wire].record(flight.io.op, flight.io.len, latency);
        let is_log = wire + 1 == self.files.len();
        let share = if is_log { self.governing.share } else { 0.0 };
        self.database.handle_completion(now, flight.io.tag, part(latency, share));
    }

    /// Whoever waits for a transaction would now hear that it is done.
    fn acknowledge(&mut self) -> Result<(), RunnerError> {
        let newest = self.database.acknowledged();
        self.acknowledged.as_mut().map_or(Ok(()), |file| file.advance(newest))
    }

    fn failure(&self, wire: WireId, flight: &Flight, failure: Failure) -> RunnerError {
        let file = self.files[wire].name.clone();
        match failure {
            Failure::Refused(errno) => {
                let op = if flight.io.op == FileOp::Read { "read" } else { "write" };
                let FileIo { offset, len: length, .. } = flight.io;
                RunnerError::FileIo { file, op, offset, length, errno }
            }
            Failure::Bad(BadPage { page, what }) => {
                let offset = flight.io.offset + u64::from(page - flight.first) * PAGE;
                RunnerError::Page { file, page: offset / PAGE, offset, what }
            }
        }
    }

    /// The time that the run has come to.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// I/Os completed so far.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// What was counted of it.
    #[must_use]
    pub fn tally(&self) -> &LoadTally {
        &self.tally
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// What each file went through since the start, the data files and the log last, by
    /// the number of what it lies on and with its role.
    pub fn totals(&self) -> impl Iterator<Item = (u32, &'static str, &FileTotals)> {
        self.places.iter().zip(&self.totals).map(|((place, role), totals)| (*place, *role, totals))
    }

    /// What the run has come to so far.
    #[must_use]
    pub fn report(&self) -> OltpReport {
        let none = || (self.totals.clone(), self.held());
        let (before, held_before) = self.before.clone().unwrap_or_else(none);
        let held = self.held();
        let elapsed = self.now.since(self.tally.from());
        let mut notes = Vec::new();
        let files = self.files.iter().enumerate().map(|(at, file)| {
            let totals = self.totals[at].since(&before[at]);
            let held = held[at].since(&held_before[at]);
            if held.is_shared {
                notes.push(format!(
                    "{}: what held it is divided as that of all on its volume or stripe",
                    file.name
                ));
            }
            let held = self.options.held.map(|_| &held);
            let report = totals.report(held, file.size, elapsed);
            notes.extend(totals.machine_note(&file.name, report.machine_ns));
            let (name, role) = (file.name.clone(), self.places[at].1.to_owned());
            FileReport { file: name, role, ..report }
        });
        let files = files.collect();
        if self.options.held.is_none() {
            notes.push("what held the requests is not known".to_owned());
        }
        OltpReport {
            clock: ClockName::Wall,
            seed: self.options.seed,
            trace_hash: None,
            databases: vec![self.tally.report(self.now, &self.database, files)],
            notes,
        }
    }
}

/// Why an I/O is no good.
#[derive(Debug)]
enum Failure {
    Refused(Errno),
    Bad(BadPage),
}

/// A cookie is the tag.
#[expect(clippy::cast_possible_truncation, reason = "made from a u32 in `queue`")]
fn key(cookie: u64) -> usize {
    cookie as usize
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of a span"
)]
fn part(span: Span, share: f64) -> Span {
    Span::from_nanos((weir_report::number::float(span.nanos()) * share) as u64)
}
