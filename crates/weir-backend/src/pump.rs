//! The thread of a volume: it sends what the book lets go, and hands on the answers.

use crate::book::{Action, Book, Id, Order, Untaken};
use crate::condition::{Gauge, State};
use crate::dial::{Terms, dial};
use crate::error::BackendError;
use crate::unflushed::Payload;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use weir_client::{Answer, ClientError, Connection};
use weir_proto::{Errno, Extent, Uri};
use weir_units::Span;
use weir_wall::{Events, Interest, Poller};

/// The key under which the wake-up descriptor is registered.
const WAKE: u64 = u64::MAX;
/// Requests are sent when this many bytes are queued on a connection, or when there are no more.
const SEND_AT: usize = 128 << 10;
/// Most memory for unflushed writes.
pub(crate) const UNFLUSHED: u64 = 64 << 20;
/// The first wait before another attempt to connect, and the longest.
const FIRST_WAIT: Span = Span::from_millis(50);
const LONGEST_WAIT: Span = Span::from_secs(2);

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Given {
    /// Success without a value.
    Done,
    Data(Vec<u8>),
    Extents(Vec<Extent>),
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum NotGiven {
    /// The server's error.
    Answered(Errno),
    /// The volume failed for good.
    Failed(String),
}

/// A caller that waits for the answers to several requests, and the place of this one.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) place: usize,
    pub(crate) told: Sender<(usize, Result<Given, NotGiven>)>,
}

impl Owner {
    /// A caller that has given up does not hear it.
    fn tell(self, result: Result<Given, NotGiven>) {
        let _ = self.told.send((self.place, result));
    }
}

/// What other threads leave for that of the volume.
#[derive(Debug, Default)]
struct Inbox {
    last: Id,
    requests: Vec<(Id, u64, Action, Owner)>,
    abandoned: Vec<Id>,
    dialled: Option<Result<(Vec<Connection>, Terms), BackendError>>,
}

/// The way to the thread of a volume.
#[derive(Debug)]
pub(crate) struct Line {
    inbox: Mutex<Inbox>,
    wake: OwnedFd,
    closing: Arc<AtomicBool>,
    pub(crate) gauge: Gauge,
}

impl Line {
    pub(crate) fn new(gauge: Gauge) -> Result<Self, BackendError> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let context = "preparing to wait for replies";
        let wake = wake.map_err(|errno| BackendError::System { context, source: errno.into() })?;
        Ok(Self { inbox: Mutex::default(), wake, closing: Arc::default(), gauge })
    }

    pub(crate) fn closing(&self) -> &Arc<AtomicBool> {
        &self.closing
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
    }

    /// Leaves a request; returns its id.
    pub(crate) fn submit(&self, offset: u64, action: Action, owner: Owner) -> Id {
        let (id, is_first) = {
            let mut inbox = self.inbox();
            inbox.last += 2;
            let id = inbox.last;
            inbox.requests.push((id, offset, action, owner));
            (id, inbox.requests.len() == 1)
        };
        if is_first {
            self.wake();
        }
        id
    }

    /// Gives up on requests.
    pub(crate) fn abandon(&self, ids: impl IntoIterator<Item = Id>) {
        self.inbox().abandoned.extend(ids);
        self.wake();
    }

    /// Ends the thread. Callers that still wait get an error.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake();
    }
}

/// How to reach the server.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) uri: Uri,
    pub(crate) connections: u32,
    pub(crate) timeout: Span,
}

/// A connection in use.
#[derive(Debug)]
struct Wire {
    connection: Connection,
    /// The socket is full; the poller tells when it is not.
    is_full: bool,
}

/// The thread of a volume.
pub(crate) struct Pump {
    line: Arc<Line>,
    place: Place,
    terms: Terms,
    poller: Poller,
    wires: Vec<Wire>,
    book: Book<Owner>,
    /// Requests that an open connection has not answered in time.
    overdue: HashSet<Id>,
    /// The condition says so.
    is_silent: bool,
    failed: Option<String>,
}

impl Pump {
    /// Starts with connections that are open.
    pub(crate) fn new(
        line: Arc<Line>,
        place: Place,
        connections: Vec<Connection>,
        terms: Terms,
    ) -> Result<Self, BackendError> {
        let system = |source| {
            BackendError::System { context: "preparing to wait for replies", source }
        };
        let poller = Poller::new().map_err(system)?;
        poller.add(&line.wake, WAKE, Interest::READ).map_err(system)?;
        let mut pump = Self {
            line,
            place,
            terms,
            poller,
            wires: Vec::new(),
            book: Book::new(UNFLUSHED),
            overdue: HashSet::new(),
            is_silent: false,
            failed: None,
        };
        pump.connect(connections)?;
        Ok(pump)
    }

    /// Runs until the line is closed.
    pub(crate) fn run(mut self) {
        let mut events = Events::new();
        while !self.line.closing.load(Ordering::Acquire) {
            if let Err(source) = self.poller.wait(&mut events, None) {
                self.fail(format!("waiting for replies: {source}"));
                return;
            }
            let mut woken = false;
            let mut lost = None;
            for event in events.iter() {
                if event.key == WAKE {
                    woken = true;
                    continue;
                }
                let at = usize::try_from(event.key).unwrap_or(usize::MAX);
                let handled = self.handle(at, event.readable || event.ended);
                lost = lost.or(handled.err());
            }
            if woken {
                let _ = rustix::io::read(self.line.wake.as_fd(), &mut [0; 8]);
                self.take_inbox();
            }
            let lost = lost.map_or_else(|| self.send_all().err(), Some);
            if let Some(lost) = lost {
                self.lose(&lost);
            }
        }
        self.book.give_up().into_iter().for_each(|owner| {
            owner.tell(Err(NotGiven::Failed("the volume is closed".to_owned())));
        });
        for wire in self.wires.drain(..) {
            let _ = wire.connection.close();
        }
    }

    /// Receives and sends on a connection.
    fn handle(&mut self, at: usize, readable: bool) -> Result<(), Lost> {
        // An event of a connection that was closed since.
        if at >= self.wires.len() {
            return Ok(());
        }
        if readable {
            self.receive(at)?;
        }
        self.flush(at)
    }

    fn receive(&mut self, at: usize) -> Result<(), Lost> {
        let Self { book, wires, overdue, .. } = self;
        let (mut untaken, mut is_going) = (None, false);
        let received = wires[at].connection.receive_answers(|id, answer| {
            overdue.remove(&id);
            // The server stops: the request is sent again once it is back.
            if is_going || answer.as_ref().is_err_and(|errno| *errno == Errno::Shutdown) {
                is_going = true;
                return;
            }
            let owner = match book.answered(id, answer.as_ref().map(|_| ()).map_err(|e| *e)) {
                Ok(owner) => owner,
                Err(error) => {
                    untaken = untaken.take().or(Some(error));
                    None
                }
            };
            if let Some(owner) = owner {
                owner.tell(match answer {
                    Ok(Answer::Data([])) => Ok(Given::Done),
                    Ok(Answer::Data(data)) => Ok(Given::Data(data.to_vec())),
                    Ok(Answer::Extents(extents)) => Ok(Given::Extents(extents.to_vec())),
                    Err(errno) => Err(NotGiven::Answered(errno)),
                });
            }
        });
        if self.is_silent && self.overdue.is_empty() {
            self.is_silent = false;
            self.line.gauge.set(State::Connected);
        }
        if let Some(untaken) = untaken {
            return Err(Lost::Untaken(untaken));
        }
        if is_going {
            return Err(Lost::Stopping);
        }
        received.map_err(Lost::Client)?;
        for (owner, errno) in self.book.take_refused() {
            owner.tell(Err(NotGiven::Answered(errno)));
        }
        Ok(())
    }

    fn take_inbox(&mut self) {
        let (requests, abandoned, dialled) = {
            let mut inbox = self.line.inbox();
            (
                std::mem::take(&mut inbox.requests),
                std::mem::take(&mut inbox.abandoned),
                inbox.dialled.take(),
            )
        };
        for (id, offset, action, owner) in requests {
            match &self.failed {
                Some(reason) => owner.tell(Err(NotGiven::Failed(reason.clone()))),
                None => self.book.submit(id, offset, action, owner),
            }
        }
        for id in abandoned {
            if self.book.abandon(id) {
                self.overdue.insert(id);
                self.is_silent = true;
                let reason = format!("no answer for {}", self.place.timeout);
                self.line.gauge.set(State::Lost { reason });
            }
        }
        let Some(dialled) = dialled.filter(|_| self.failed.is_none()) else { return };
        let connected = dialled.and_then(|(connections, terms)| {
            self.terms.check(&terms)?;
            self.connect(connections)
        });
        if let Err(error) = connected {
            self.fail(error.to_string());
        }
    }

    fn connect(&mut self, connections: Vec<Connection>) -> Result<(), BackendError> {
        for (connection, key) in connections.into_iter().zip(0..) {
            connection.set_nonblocking(true)?;
            let watched = self.poller.add(&connection, key, Interest::READ);
            let context = "watching a connection";
            watched.map_err(|source| BackendError::System { context, source })?;
            self.wires.push(Wire { connection, is_full: false });
        }
        self.book.connected();
        self.line.gauge.set(State::Connected);
        Ok(())
    }

    /// Sends all that may be sent.
    fn send_all(&mut self) -> Result<(), Lost> {
        while let Some(order) = self.book.next() {
            let fewest = |(_, wire): &(usize, &Wire)| wire.connection.in_flight();
            let wires = self.wires.iter().enumerate();
            let Some((at, _)) = wires.min_by_key(fewest) else { return Ok(()) };
            queue(&mut self.wires[at].connection, order).map_err(Lost::Client)?;
            if self.wires[at].connection.unsent() >= SEND_AT && !self.wires[at].is_full {
                self.flush(at)?;
            }
        }
        for (owner, errno) in self.book.take_refused() {
            owner.tell(Err(NotGiven::Answered(errno)));
        }
        (0..self.wires.len()).try_for_each(|at| {
            let wire = &self.wires[at];
            if wire.connection.wants_write() && !wire.is_full { self.flush(at) } else { Ok(()) }
        })
    }

    fn flush(&mut self, at: usize) -> Result<(), Lost> {
        let wire = &mut self.wires[at];
        let is_full = !wire.connection.flush_out().map_err(Lost::Client)?;
        if is_full != wire.is_full {
            wire.is_full = is_full;
            let wanted = Interest { read: true, write: is_full };
            let watched = self.poller.modify(&wire.connection, at as u64, wanted);
            watched.map_err(Lost::System)?;
        }
        Ok(())
    }

    /// Closes all connections, and has others opened.
    fn lose(&mut self, lost: &Lost) {
        self.wires.clear();
        self.overdue.clear();
        self.is_silent = false;
        if let Lost::Untaken(Untaken { offset, bytes, errno }) = lost {
            let (offset, bytes, errno) = (*offset, *bytes, *errno);
            self.fail(BackendError::Replay { offset, bytes, errno }.to_string());
            return;
        }
        self.book.disconnected();
        self.line.gauge.set(State::Lost { reason: lost.to_string() });
        let (line, place) = (Arc::clone(&self.line), self.place.clone());
        let dialler = thread::Builder::new().name("weir-nbd-dial".to_owned());
        if let Err(source) = dialler.spawn(move || redial(&line, &place)) {
            self.fail(format!("starting a thread: {source}"));
        }
    }

    /// Fails all requests from now on.
    fn fail(&mut self, reason: String) {
        self.wires.clear();
        for owner in self.book.give_up() {
            owner.tell(Err(NotGiven::Failed(reason.clone())));
        }
        self.line.gauge.set(State::Failed { reason: reason.clone() });
        self.failed = Some(reason);
    }
}

fn queue(connection: &mut Connection, order: Order) -> Result<(), ClientError> {
    let Order { id, offset, action } = order;
    match action {
        Action::Read { len } => connection.queue_read(id, offset, len).map(drop),
        Action::Write(Payload::Bytes { all, start, len }) => {
            connection.queue_write(id, offset, &all[start..start + len], false).map(drop)
        }
        Action::Write(Payload::Zeros { len, keeps_space }) => {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            connection.queue_write_zeroes(id, offset, len, keeps_space)
        }
        Action::Flush => connection.queue_flush(id),
        Action::Extents { len } => connection.queue_extents(id, offset, len),
    }
}

/// Connects again, as often as it takes. What cannot change by waiting is handed on.
fn redial(line: &Line, place: &Place) {
    let mut wait = FIRST_WAIT;
    while !line.closing.load(Ordering::Acquire) {
        let absence = place.timeout;
        match dial(&place.uri, place.connections, absence, &line.closing) {
            Err(BackendError::Client(error)) => {
                line.gauge.set(State::Lost { reason: error.to_string() });
            }
            result => {
                line.inbox().dialled = Some(result);
                line.wake();
                return;
            }
        }
        pause(line, wait);
        wait = (wait + wait).min(LONGEST_WAIT);
    }
}

/// Waits between two attempts. The end of the volume ends it.
fn pause(line: &Line, wait: Span) {
    const STEP: Span = Span::from_millis(50);
    let mut left = wait;
    while left > Span::ZERO && !line.closing.load(Ordering::Acquire) {
        let step = left.min(STEP);
        thread::park_timeout(std::time::Duration::from_nanos(step.nanos()));
        left = left.saturating_sub(step);
    }
}

/// The end of the connections.
#[derive(Debug)]
enum Lost {
    Client(ClientError),
    System(io::Error),
    /// The server refuses requests because it stops.
    Stopping,
    Untaken(Untaken),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Stopping => f.write_str("the server is stopping"),
            Self::Untaken(_) => f.write_str("a write was lost"),
        }
    }
}
