//! A database in wall time: the users, buffer pool, log and checkpoints of [`Database`], on files
//! of a server.
//!
//! This is the counterpart of the simulator, as [`mod@crate::run`] is for jobs. The state machine
//! requests I/O; this module generates the bytes, sends them to the server with write-through, and
//! checks the bytes of reads. After any end of the process, the next [`OltpRun::open`] recovers the
//! database and proves that all acknowledged transactions are there.
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
//! | `contents` | the state of all pages and of the log |
//! | `files` | plain reads and writes, for the recovery |
//! | `recovery` | recovery before a database runs |
//! | `acknowledged` | the newest acknowledged transaction |
//! | [`serving`] | the places of a layout that is served |
//! | `stats` | waits of its I/Os |

mod acknowledged;
mod contents;
mod files;
mod log;
mod page;
mod recovery;
pub mod serving;
mod stats;

pub use serving::ServedFile;
pub use stats::ServiceTimes;

use crate::error::RunnerError;
use crate::run::with_exact_deadlines;
use acknowledged::Acknowledged;
use contents::{BadPage, Contents};
use files::Files;
use recovery::Recovering;
use std::fmt;
use std::path::Path;
use weir_client::{ClientError, WireId, Wires};
use weir_core::Cap;
use weir_oltp::model::PAGE;
use weir_oltp::tally::Grown;
use weir_oltp::{
    Content, Database, Description, FileAbout, FileIo, FileOp, FileTally, LoadTally, OltpError,
};
use weir_proto::Errno;
use weir_report::oltp::{FileReport, OltpReport};
use weir_report::recovery::RecoveryReport;
use weir_report::run::ClockName;
use weir_units::{Bytes, Instant, Span};
use weir_wall::{Clock, Events};

/// A function that resizes a volume by name. It returns the tiers before and after, or the reason
/// why the volume cannot grow.
type Resizes<'a> = dyn Fn(&str, Bytes) -> Result<Option<(String, String)>, String> + 'a;

/// Options of a database run.
#[derive(Clone, Copy, Default)]
pub struct OltpOptions<'a> {
    /// Files that it can use.
    pub files: &'a [ServedFile],
    /// Seed of the users.
    pub seed: u64,
    /// Length of the intervals over time in the report.
    pub every: Option<Span>,
    /// A file for the number of the newest acknowledged transaction.
    pub acknowledged: Option<&'a Path>,
    /// Called repeatedly during recovery; `true` ends it early.
    pub is_stopped: Option<&'a dyn Fn() -> bool>,
    /// Collects the waits of each I/O from the server.
    pub service: Option<&'a ServiceTimes>,
    /// Lets data files of a managed instance grow.
    pub resize: Option<&'a Resizes<'a>>,
}

impl fmt::Debug for OltpOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OltpOptions").field("files", &self.files).finish_non_exhaustive()
    }
}

/// An error that keeps a database from running.
#[derive(Debug, thiserror::Error)]
pub enum OltpRunError {
    /// The database does not fit its files.
    #[error("{0}")]
    Description(#[from] OltpError),
    /// Anything else.
    #[error("{0}")]
    Runner(#[from] RunnerError),
}

impl From<ClientError> for OltpRunError {
    fn from(error: ClientError) -> Self {
        Self::Runner(error.into())
    }
}

/// An I/O in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    io: FileIo,
    /// The first page of a read.
    first: u32,
    issued: Instant,
    /// Its cookie on the wire.
    cookie: u64,
}

/// A database on a server, [run](Self::run_until) in slices.
pub struct OltpRun<'a> {
    options: OltpOptions<'a>,
    /// The files, data first and the log last, and the index of each among all places.
    files: Vec<ServedFile>,
    places: Vec<(u32, &'static str)>,
    wires: Wires,
    contents: Contents,
    database: Database,
    tally: LoadTally,
    /// I/Os in flight, by tag.
    flights: Vec<Option<Flight>>,
    tallies: Vec<FileTally>,
    /// The tallies at the start of the measurement.
    before: Option<Vec<FileTally>>,
    /// I/Os whose waits are unknown.
    unknown: u64,
    /// Labels of the connections in the [`ServiceTimes`].
    labels: Vec<u16>,
    acknowledged: Option<Acknowledged>,
    /// The clock, which starts with the first slice.
    clock: Option<Clock>,
    now: Instant,
    completed: u64,
    /// A buffer for the bytes of a write.
    bytes: Vec<u8>,
}

impl fmt::Debug for OltpRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OltpRun").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> OltpRun<'a> {
    /// Connects to the files, and recovers the database on them or creates an empty one.
    ///
    /// # Errors
    ///
    /// [`OltpRunError`]. Some mean that acknowledged data is lost, see [`RunnerError::is_verdict`].
    pub fn open(
        description: &Description,
        options: OltpOptions<'a>,
    ) -> Result<(Self, RecoveryReport), OltpRunError> {
        let about: Vec<FileAbout<'_>> = options.files.iter().map(ServedFile::about).collect();
        let mut model = description.model(&about, options.seed)?;
        let (data, most) = (model.data.len(), log::MOST_FILES);
        if data > most {
            return Err(RunnerError::DataFiles { files: data, most }.into());
        }
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
        contents.grow(&mut model, &mut files);
        let (mut wires, mut labels) = (Wires::new()?, Vec::new());
        for mut connection in files.connections {
            if let Some(book) = options.service {
                let label = book.label();
                connection.set_label(label);
                labels.push(label);
            }
            wires.add(connection)?;
        }
        let tally = LoadTally::new(description, &model, options.every);
        let run = Self {
            options,
            tallies: vec![FileTally::default(); files.served.len()],
            files: files.served,
            places: model.files(),
            wires,
            contents,
            tally,
            unknown: 0,
            labels,
            flights: Vec::new(),
            before: None,
            acknowledged,
            clock: None,
            now: Instant::ZERO,
            completed: 0,
            bytes: Vec::new(),
            database: Database::resume(model, redo),
        };
        Ok((run, report))
    }

    /// Runs until `until`, on a clock that starts with the first call. Returns the present time,
    /// which is not before `until`, or `None` when the duration of the description is over.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] for the first I/O that fails or returns other bytes than those written.
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
                // A read reports the end or an error of the connection.
                if event.readable || event.ended {
                    self.receive(wire, clock)?;
                    self.issue(clock)?;
                }
            }
        }
    }

    /// Advances to `now`. The counters do not change until then.
    fn pass(&mut self, now: Instant) {
        self.now = now.min(self.tally.end());
        if now >= self.tally.from() && self.before.is_none() {
            self.before = Some(self.tallies.clone());
        }
        self.tally.pass(now, &self.database);
    }

    /// Grows the data files of the database that are full, or tells it that they cannot grow.
    fn grow(&mut self) {
        while let Some(growth) = self.database.poll_growth() {
            let own = self.places.iter().position(|(place, _)| *place == growth.file);
            let own = own.unwrap_or_else(|| panic!("a database keeps to its files: {growth:?}"));
            let ServedFile { place, is_volume, size, .. } = &mut self.files[own];
            let tiers = match (*is_volume, self.options.resize) {
                (false, _) => Ok(None),
                (true, Some(resize)) => resize(&place.name, growth.size),
                (true, None) => Err("its volume cannot be resized here".to_owned()),
            };
            match &tiers {
                Ok(tiers) => {
                    let tiers = tiers.as_ref().map(|(before, after)| (&**before, &**after));
                    let (from, to) = (*size, growth.size);
                    let grown = Grown { file: &place.name, from, to, tiers };
                    self.tally.grown(self.now, &grown);
                    *size = growth.size;
                }
                Err(why) => self.tally.refused(self.now, &place.name, why),
            }
            self.database.handle_growth(self.now, tiers.is_ok());
        }
    }

    /// Sends all I/Os that the database requests now.
    fn issue(&mut self, clock: Clock) -> Result<(), RunnerError> {
        self.grow();
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
        Ok(self.wires.send_touched()?)
    }

    /// Returns the file of an I/O, which is also its wire.
    fn file_of(&self, io: &FileIo) -> WireId {
        let own = self.places.iter().position(|(place, _)| *place == io.file);
        own.unwrap_or_else(|| panic!("a database keeps to its files: {io:?}"))
    }

    fn queue(&mut self, wire: WireId, io: &FileIo, now: Instant) -> Result<(), RunnerError> {
        let content = self.database.content(io);
        let first = if let Content::Pages { first, .. } = content { first } else { 0 };
        let offset = self.files[wire].place.address(io.offset);
        let connection = self.wires.connection(wire);
        let cookie = match io.op {
            FileOp::Read => {
                let length = u32::try_from(io.len).unwrap_or(u32::MAX);
                connection.queue_read(io.tag.into(), offset, length)?
            }
            FileOp::Write => {
                self.contents.encode(io, content, &mut self.bytes);
                connection.queue_write(io.tag.into(), offset, &self.bytes, true)?
            }
        };
        let tag = io.tag as usize;
        if self.flights.len() <= tag {
            self.flights.resize(tag + 1, None);
        }
        self.flights[tag] = Some(Flight { io: *io, first, issued: now, cookie });
        Ok(())
    }

    fn receive(&mut self, wire: WireId, clock: Clock) -> Result<(), RunnerError> {
        let Self { wires, flights, contents, .. } = self;
        let (mut done, mut failed) = (Vec::new(), None);
        wires.connection(wire).receive(|cookie, answer| {
            let tag = usize::try_from(cookie).unwrap_or(usize::MAX);
            let flight = flights.get_mut(tag).and_then(Option::take);
            let flight = flight.unwrap_or_else(|| panic!("{cookie} is not in flight"));
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
        let service = self.options.service.and_then(|book| book.take(flight.cookie));
        self.unknown += u64::from(service.is_none());
        let service = service.unwrap_or_default();
        let latency = now - flight.issued;
        self.tallies[wire].record(flight.io.op, flight.io.len, latency, &service);
        let governed = service.waits.get(Cap::LogRate);
        self.database.handle_completion(now, flight.io.tag, governed);
    }

    /// Records the newest acknowledged transaction, before its client could learn of it.
    fn acknowledge(&mut self) -> Result<(), RunnerError> {
        let newest = self.database.acknowledged();
        self.acknowledged.as_mut().map_or(Ok(()), |file| file.advance(newest))
    }

    fn failure(&self, wire: WireId, flight: &Flight, failure: Failure) -> RunnerError {
        let file = self.files[wire].place.name.clone();
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

    /// Returns the present time of the run.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of completed I/Os.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns its counters.
    #[must_use]
    pub fn tally(&self) -> &LoadTally {
        &self.tally
    }

    /// Returns the database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the tally of each file since the start, the data files first and the log last,
    /// with the number of its place, its role and its size.
    pub fn tallies(&self) -> impl Iterator<Item = (u32, &'static str, &FileTally, Bytes)> {
        self.places.iter().zip(&self.tallies).zip(&self.files).map(
            |((place, tally), file): ((&(u32, &'static str), _), &ServedFile)| {
                (place.0, place.1, tally, file.size)
            },
        )
    }

    /// Reports the results so far.
    #[must_use]
    pub fn report(&self) -> OltpReport {
        let before = self.before.as_ref().unwrap_or(&self.tallies);
        let elapsed = self.now.since(self.tally.from());
        let is_known = self.options.service.is_some();
        let mut notes = Vec::new();
        let mut files = Vec::new();
        for (at, (_, role, tally, size)) in self.tallies().enumerate() {
            let (tally, file) = (tally.since(&before[at]), self.files[at].place.name.clone());
            notes.extend(stats::machine_note(&file, &tally).filter(|_| is_known));
            let machine_ns = is_known.then(|| stats::machine(&tally).nanos());
            let (role, report) = (role.to_owned(), tally.report(size, elapsed));
            files.push(FileReport { file, role, machine_ns, ..report });
        }
        if !is_known {
            notes.push("the service times of the requests are unknown".to_owned());
        } else if self.unknown > 0 {
            let unknown = self.unknown;
            notes.push(format!("the service times of {unknown} requests are unknown"));
        }
        OltpReport {
            clock: ClockName::Wall,
            seed: self.options.seed,
            trace_hash: None,
            databases: vec![self.tally.report(self.now, &self.database, files)],
            backups: Vec::new(),
            costs: Vec::new(),
            notes,
        }
    }
}

impl Drop for OltpRun<'_> {
    /// Drops the records of in-flight requests.
    fn drop(&mut self) {
        if let Some(book) = self.options.service {
            book.forget(&self.labels);
        }
    }
}

/// A failure of one I/O.
#[derive(Debug)]
enum Failure {
    Refused(Errno),
    Bad(BadPage),
}
