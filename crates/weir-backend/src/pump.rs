//! The thread of a volume: it sends what the book lets go, and hands on the answers.

use crate::book::{Action, Book, Caller, Id, Order, Untaken};
use crate::condition::State;
use crate::deadlines::Deadlines;
use crate::dial::Terms;
use crate::error::BackendError;
use crate::line::{Given, Line, Mail, NotGiven, Owner, Place};
use crate::redial::{FIRST_WAIT, Known, LONGEST_WAIT, redial};
use crate::unflushed::Payload;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::thread;
use weir_client::{Answer, ClientError, Connection};
use weir_proto::{CommandFlags, Errno, TransmissionFlags};
use weir_units::Span;
use weir_wall::{Clock, Events, Interest, Poller};

/// The key under which the wake-up descriptor is registered.
const WAKE: u64 = u64::MAX;
/// Requests are sent when this many bytes are queued on a connection, or when there are no more.
const SEND_AT: usize = 128 << 10;
/// The number of requests that go to one connection together, if they are short.
const TOGETHER: usize = 8;
const SHORT: u64 = 16 << 10;
/// A connection that ends earlier is not replaced at once, or a server that refuses all requests would
/// be connected to again and again.
const HASTE: Span = Span::from_secs(1);
/// Most memory for unflushed writes.
const UNFLUSHED: u64 = 64 << 20;

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
    clock: Clock,
    deadlines: Deadlines,
    /// Requests that an open connection has not answered in time.
    overdue: HashSet<Id>,
    /// The condition says so.
    is_silent: bool,
    failed: Option<String>,
    /// The wait before the next connection to a server that refuses requests.
    wait: Span,
}

impl Pump {
    /// Starts with connections that are open.
    pub(crate) fn new(
        line: Arc<Line>,
        place: Place,
        connections: Vec<Connection>,
        terms: Terms,
    ) -> Result<Self, BackendError> {
        let system =
            |source| BackendError::System { context: "preparing to wait for replies", source };
        let poller = Poller::new().map_err(system)?;
        poller.add(line.descriptor(), WAKE, Interest::READ).map_err(system)?;
        let deadlines = Deadlines::new(place.timeout);
        let mut pump = Self {
            line,
            place,
            terms,
            poller,
            wires: Vec::new(),
            book: Book::new(UNFLUSHED),
            clock: Clock::start(),
            deadlines,
            overdue: HashSet::new(),
            is_silent: false,
            failed: None,
            wait: Span::ZERO,
        };
        pump.connect(connections)?;
        Ok(pump)
    }

    /// Runs until the line is closed.
    pub(crate) fn run(mut self) {
        let mut events = Events::new();
        while !self.line.is_closing() {
            let left = self.deadlines.left(self.clock.now());
            if let Err(source) = self.poller.wait(&mut events, left) {
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
                self.take_inbox();
            }
            let lost = lost.map_or_else(|| self.send_all().err(), Some);
            if let Some(lost) = lost {
                self.lose(&lost);
            }
            self.tell_refused();
            self.expire();
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
            let caller = match book.answered(id, answer.as_ref().map(|_| ()).map_err(|e| *e)) {
                Ok(caller) => caller,
                Err(error) => {
                    untaken = untaken.take().or(Some(error));
                    None
                }
            };
            if let Some(Caller { owner, is_durable }) = caller {
                owner.tell(match answer {
                    Ok(Answer::Data([])) if is_durable => Ok(Given::Durable),
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
        received.map(drop).map_err(Lost::Client)
    }

    /// Tells callers whose requests failed without being sent.
    fn tell_refused(&mut self) {
        for (owner, errno) in self.book.take_refused() {
            owner.tell(Err(NotGiven::Answered(errno)));
        }
    }

    /// Gives up requests whose timeout is over.
    fn expire(&mut self) {
        if self.book.is_settled() {
            self.deadlines.clear();
            return;
        }
        let Some(last) = self.deadlines.take_due(self.clock.now()) else { return };
        let expired = self.book.expire(last);
        let in_flight = expired.iter().filter_map(|(_, id)| *id);
        self.overdue.extend(in_flight);
        if !self.overdue.is_empty() {
            self.is_silent = true;
            let reason = format!("no answer for {}", self.place.timeout);
            self.line.gauge.set(State::Lost { reason });
        }
        expired.into_iter().for_each(|(owner, _)| owner.tell(Err(NotGiven::Late)));
    }

    fn take_inbox(&mut self) {
        let Mail { requests, dialled } = self.line.take();
        if let Some((last, ..)) = requests.last() {
            self.deadlines.begin(self.clock.now(), *last);
        }
        for (id, offset, action, owner) in requests {
            match &self.failed {
                Some(reason) => owner.tell(Err(NotGiven::Failed(reason.clone()))),
                None => self.book.submit(id, offset, action, owner),
            }
        }
        let Some(dialled) = dialled.filter(|_| self.failed.is_none()) else { return };
        let connected = dialled.and_then(|(connections, _)| self.connect(connections));
        if let Err(error) = connected {
            self.fail(error.to_string());
        }
    }

    fn connect(&mut self, connections: Vec<Connection>) -> Result<(), BackendError> {
        let offers_fua = |connection: &Connection| {
            connection.session().flags.contains(TransmissionFlags::SEND_FUA)
        };
        let takes_durable = connections.iter().all(offers_fua);
        for (connection, key) in connections.into_iter().zip(0..) {
            connection.set_nonblocking(true)?;
            let watched = self.poller.add(&connection, key, Interest::READ);
            let context = "watching a connection";
            watched.map_err(|source| BackendError::System { context, source })?;
            self.wires.push(Wire { connection, is_full: false });
        }
        self.book.connected(takes_durable);
        self.line.gauge.set(State::Connected);
        Ok(())
    }

    /// Sends all that may be sent.
    fn send_all(&mut self) -> Result<(), Lost> {
        // Some go to one connection together, so that one system call sends them and one receives
        // their answers.
        let (mut at, mut left) = (0, 0);
        while let Some(order) = self.book.next() {
            if left == 0 {
                let fewest = |(_, wire): &(usize, &Wire)| wire.connection.in_flight();
                let wires = self.wires.iter().enumerate();
                let Some((with_fewest, _)) = wires.min_by_key(fewest) else { return Ok(()) };
                (at, left) = (with_fewest, TOGETHER);
            }
            left -= 1;
            let is_long = order.action.len() > SHORT;
            queue(&mut self.wires[at].connection, order).map_err(Lost::Client)?;
            if is_long {
                left = 0;
            }
            if self.wires[at].connection.unsent() >= SEND_AT && !self.wires[at].is_full {
                self.flush(at)?;
            }
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

    /// Ends all connections, and has others opened.
    fn lose(&mut self, lost: &Lost) {
        let old: Vec<Connection> = self.wires.drain(..).map(|wire| wire.connection).collect();
        for connection in &old {
            // One that cannot be removed is closed soon.
            let _ = self.poller.remove(connection);
        }
        self.overdue.clear();
        self.is_silent = false;
        if let Lost::Untaken(Untaken { offset, bytes, errno }) = lost {
            let (offset, bytes, errno) = (*offset, *bytes, *errno);
            self.fail(BackendError::Replay { offset, bytes, errno }.to_string());
            return;
        }
        self.book.disconnected();
        let is_hasty = self.line.gauge.read().lasts < HASTE;
        let refuses = is_hasty && matches!(lost, Lost::Stopping);
        let before = if refuses { self.wait + self.wait } else { Span::ZERO };
        self.wait = if is_hasty { before.clamp(FIRST_WAIT, LONGEST_WAIT) } else { Span::ZERO };
        let wait = self.wait;
        self.line.gauge.set(State::Lost { reason: lost.to_string() });
        let (line, place) = (Arc::clone(&self.line), self.place.clone());
        let known = Known { terms: self.terms, samples: self.book.samples() };
        let dialler = thread::Builder::new().name("weir-nbd-dial".to_owned());
        if let Err(source) = dialler.spawn(move || redial(&line, &place, old, &known, wait)) {
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
        Action::Write(payload) => queue_write(connection, (id, offset), &payload, false),
        Action::WriteDurably(payload) => queue_write(connection, (id, offset), &payload, true),
        Action::Flush => connection.queue_flush(id),
        Action::Extents { len } => connection.queue_extents(id, offset, len),
    }
}

fn queue_write(
    connection: &mut Connection,
    (id, offset): (Id, u64),
    payload: &Payload,
    fua: bool,
) -> Result<(), ClientError> {
    match payload {
        Payload::Bytes { all, start, len } => {
            connection.queue_write(id, offset, &all[*start..start + len], fua).map(drop)
        }
        Payload::Zeros { len, keeps_space } => {
            let len = u32::try_from(*len).unwrap_or(u32::MAX);
            let set = |is_set, flag| if is_set { flag } else { CommandFlags::NONE };
            let flags = set(*keeps_space, CommandFlags::NO_HOLE) | set(fua, CommandFlags::FUA);
            connection.queue_write_zeroes(id, offset, len, flags)
        }
    }
}

impl Drop for Pump {
    /// Ends the line also after a panic, and says so.
    fn drop(&mut self) {
        self.line.end();
        if !self.line.is_closing() && self.failed.is_none() {
            let reason = "the thread of the volume has ended".to_owned();
            self.line.gauge.set(State::Failed { reason });
        }
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
