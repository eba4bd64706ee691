//! The buffers of one client.

use crate::audit::{Audit, FrontEnd};
use crate::host_loop::{ClientId, Elsewhere, HostLoop, ReplyTo};
use crate::memory::{INPUT, Share};
use crate::places::Place;
use crate::seat::{Seat, Sitting};
use crate::tls::Encryption;
use crate::volume::View;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use weir_core::DeviceId;
use weir_proto::server::{Parsed, Session, parse_request};
use weir_proto::{Command, Errno, Request, reply};
use weir_report::status::ClientStatus;
use weir_store::Store;
use weir_units::{Instant, Span};
use weir_wall::{Interest, calendar};

/// Looks at a buffer without anything larger in it before it shrinks.
const PATIENCE: u32 = 64;
/// The largest output buffer that is kept for the next replies: of a read as long as backups have.
const OUTPUT: usize = (4 << 20) + 4096;
/// Bytes taken from one client before the others have their turn.
const ROUND: usize = 512 << 10;
/// Requests of one client under way; more stay in its socket.
const MAX_IN_FLIGHT: usize = 4096;
/// Bytes of a client's writes that may be in memory before no more are taken.
const MAX_WRITING: usize = 64 << 20;
/// Bytes per second that a client must send of a request that it has begun.
const LEAST_RATE: u64 = 128 << 10;
/// Bytes that a client must take of its replies in the time that a stalled one has.
const LEAST_TAKEN: u64 = 64 << 10;

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Returns the address of a client over TCP.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            // A client that has gone already has no address, and may reach only what all may reach.
            Self::Tcp(stream) => {
                let address = stream.peer_addr().map(|own| own.ip());
                Some(address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
            }
            Self::Unix(_) => None,
        }
    }

    /// Returns the address of the other side, or its process if the socket is a local one.
    pub(crate) fn peer(&self) -> String {
        let address = match self {
            // A listener for IPv6 may take clients over IPv4.
            Self::Tcp(stream) => stream
                .peer_addr()
                .map(|own| SocketAddr::new(own.ip().to_canonical(), own.port()).to_string()),
            Self::Unix(stream) => socket_peercred(stream)
                .map(|own| format!("process {}", own.pid.as_raw_nonzero()))
                .map_err(Into::into),
        };
        address.unwrap_or_else(|_| "gone".to_owned())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).read(buf),
            Stream::Tcp(stream) => (&*stream).read(buf),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write(buf),
            Stream::Tcp(stream) => (&*stream).write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client that has chosen its export.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    tls: Option<Encryption>,
    pub(crate) id: ClientId,
    pub(crate) device: DeviceId,
    session: Session,
    input: Vec<u8>,
    /// Input received and not yet taken: `input[start..end]`. It grows for a larger write and shrinks
    /// again.
    start: usize,
    end: usize,
    /// Looks at the input since it last held a write larger than [`INPUT`].
    small: u32,
    /// Payload of a refused write that is still to come, and the error that is sent after it:
    /// clients take an error before the end of the payload for a defect of the server.
    skip: usize,
    skipped: usize,
    refused: Option<(u64, Errno, &'static str)>,
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Times that the output was empty since it last held more than [`INPUT`].
    little: u32,
    in_flight: usize,
    peer: String,
    /// Requests taken so far, and the bytes that they read and write.
    asked: (u64, u64),
    /// Bytes in memory for it: see [`ReplyTo`].
    reading: usize,
    writing: usize,
    /// Its part of the host's memory.
    pub(crate) share: Share,
    /// Bytes of memory that a request waits for. Nothing is received then.
    wanted: Option<usize>,
    /// It is in the queue for memory.
    pub(crate) queued: bool,
    /// Since when the first request in the input is incomplete.
    half_sent: Option<Instant>,
    /// Since when it has replies to take, and how many bytes it had taken by then.
    unread: Option<(Instant, u64)>,
    taken: u64,
    /// It has taken some of its replies since someone last looked.
    pub(crate) listens: bool,
    /// It said goodbye, or the server stops: nothing more is taken from it.
    pub(crate) closing: bool,
    /// For a page blob: decides which clients may write, and notes that this client does.
    seat: Option<Arc<Seat>>,
    sitting: Option<Sitting>,
    /// A refused write was recorded.
    is_refusal_told: bool,
    audit: Audit,
    /// The store that it reads from, if not from the device.
    view: Option<Arc<View>>,
    /// The events that the socket is watched for.
    pub(crate) interest: Interest,
    _place: Option<Place>,
}

/// Where input is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Socket,
    /// The buffer of TLS.
    Decrypted,
}

/// The state of a connection after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Broken, or done: forget it.
    Closed,
}

impl Connection {
    pub(crate) fn new(stream: Stream, id: ClientId, hello: Established) -> Self {
        let mut input = vec![0; INPUT.max(hello.rest.len())];
        input[..hello.rest.len()].copy_from_slice(&hello.rest);
        let peer = stream.peer();
        Self {
            stream,
            tls: hello.tls,
            id,
            device: hello.device,
            session: hello.session,
            input,
            start: 0,
            end: hello.rest.len(),
            small: 0,
            skip: 0,
            skipped: 0,
            refused: None,
            out: Vec::new(),
            sent: 0,
            little: 0,
            in_flight: 0,
            peer,
            asked: (0, 0),
            reading: 0,
            writing: 0,
            share: Share::default(),
            wanted: None,
            queued: false,
            half_sent: None,
            unread: None,
            taken: 0,
            listens: false,
            closing: false,
            seat: hello.seat,
            sitting: None,
            is_refusal_told: false,
            audit: hello.audit,
            view: hello.view,
            interest: Interest::READ,
            _place: hello.place,
        }
    }

    /// Returns the bytes in memory for this client.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.input.len() + self.out.capacity() + self.reading + self.writing
    }

    pub(crate) fn reply_to(&mut self) -> ReplyTo<'_> {
        let room = self.room();
        ReplyTo {
            out: &mut self.out,
            structured: self.session.structured,
            meta_context: self.session.meta_context,
            in_flight: &mut self.in_flight,
            reading: &mut self.reading,
            writing: &mut self.writing,
            room,
        }
    }

    /// Returns the bytes of replies that may be made ready for it.
    pub(crate) fn room(&self) -> usize {
        self.share.room + self.out.capacity() - self.out.len()
    }

    /// Returns whether no more data should be made ready for it.
    pub(crate) fn is_full(&self) -> bool {
        self.share.is_over && self.unsent() + self.reading > 0
    }

    /// Returns whether there is input that has not been taken.
    pub(crate) fn has_input(&self) -> bool {
        self.start < self.end
    }

    /// Returns whether anything is still owed to this client.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && !self.has_unsent()
    }

    /// Bytes of replies that the socket has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Returns whether bytes are left that the socket has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent() > 0 || self.tls.as_ref().is_some_and(Encryption::has_unsent)
    }

    /// Tells an encrypted client that nothing follows.
    pub(crate) fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&self.stream);
        }
    }

    /// Returns the events to wait for now.
    pub(crate) fn wants(&self) -> Interest {
        let is_over = self.share.is_over && (self.writing > 0 || self.is_full());
        let has_room = self.in_flight < MAX_IN_FLIGHT && !is_over && self.wanted.is_none();
        let takes = has_room && self.writing < MAX_WRITING && !self.closing;
        Interest { read: takes, write: self.has_unsent() }
    }

    /// Receives what is there and submits the requests in it.
    ///
    /// One client gets so much of a round and no more; what is left in its socket
    /// brings it up again in the next, after the others and after what is due.
    pub(crate) fn receive(&mut self, now: Instant, host: &mut HostLoop) -> State {
        self.receive_from(Source::Socket, now, host)
    }

    /// Takes the input that is decrypted already, for which no event comes. Does nothing for a client
    /// without TLS.
    pub(crate) fn receive_decrypted(&mut self, now: Instant, host: &mut HostLoop) -> State {
        match self.tls {
            None => State::Open,
            Some(_) => self.receive_from(Source::Decrypted, now, host),
        }
    }

    fn receive_from(&mut self, source: Source, now: Instant, host: &mut HostLoop) -> State {
        let mut taken = 0;
        loop {
            if !self.wants().read || taken >= ROUND {
                return State::Open;
            }
            if self.end == self.input.len() {
                // `take` leaves room for what it still needs.
                self.compact(self.input.len());
            }
            let free = &mut self.input[self.end..];
            let read = match &mut self.tls {
                None => (&self.stream).read(free),
                Some(tls) if source == Source::Socket => tls.read(&self.stream, free),
                Some(tls) => tls.read_decrypted(free),
            };
            match read {
                Ok(0) => {
                    self.closing = true;
                    return State::Closed;
                }
                Ok(n) => {
                    let room = self.input.len() - self.end;
                    self.end += n;
                    taken += n;
                    if self.take(now, host) == State::Closed {
                        return State::Closed;
                    }
                    // A short read has emptied the socket.
                    if n < room {
                        return State::Open;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return State::Open,
                Err(_) => return State::Closed,
            }
        }
    }

    /// Submits every whole request in the input.
    pub(crate) fn take(&mut self, now: Instant, host: &mut HostLoop) -> State {
        while self.wants().read {
            if self.skip > 0 {
                let drop = self.skip.min(self.end - self.start);
                self.skip -= drop;
                self.skipped += drop;
                self.start += drop;
                if self.skip > 0 {
                    break;
                }
                self.half_sent = None;
                if let Some((cookie, errno, reason)) = self.refused.take() {
                    reply::error(&mut self.out, self.session.structured, cookie, errno, reason);
                }
            }
            let size = self.view.as_ref().map_or_else(|| host.size(self.device), |v| v.size());
            let parsed = parse_request(&self.input[self.start..self.end], &self.session, size);
            match parsed {
                // Not NBD: there is no way to find the next request.
                Err(_) => return State::Closed,
                Ok(Parsed::NeedMore { at_least }) => {
                    self.make_room(at_least);
                    return State::Open;
                }
                Ok(Parsed::Refused { cookie, errno, reason, consumed, skip }) => {
                    self.start += consumed;
                    self.half_sent = None;
                    if skip == 0 {
                        let structured = self.session.structured;
                        reply::error(&mut self.out, structured, cookie, errno, reason);
                    } else {
                        self.refused = Some((cookie, errno, reason));
                        (self.skip, self.skipped) = (skip as usize, 0);
                    }
                }
                Ok(Parsed::Request { request, payload, consumed }) => {
                    self.start += consumed;
                    self.half_sent = None;
                    if request.command == Command::Disconnect {
                        self.closing = true;
                        return State::Open;
                    }
                    let from = self.view.as_ref().map(|view| Elsewhere::Store {
                        store: Arc::clone(view) as Arc<dyn Store>,
                        offset: request.offset,
                        len: request.length,
                    });
                    let (id, device) = (self.id, self.device);
                    let may = may_do(request.command, self.seat.as_ref(), &mut self.sitting);
                    let submitted = match may {
                        true => host.submit_from(now, id, device, &request, payload, from),
                        false => Err(Errno::Perm),
                    };
                    if !may {
                        self.tell_refusal();
                    }
                    match submitted {
                        Ok(held) => {
                            self.in_flight += 1;
                            self.writing += held;
                            self.count(&request);
                        }
                        Err(errno) => {
                            let structured = self.session.structured;
                            reply::error(&mut self.out, structured, request.cookie, errno, "");
                        }
                    }
                }
            }
        }
        State::Open
    }

    /// Records that its writes are refused, once.
    fn tell_refusal(&mut self) {
        if !std::mem::replace(&mut self.is_refusal_told, true) {
            let what = format!("write to export {}", self.session.export.name);
            let why = "the blob is leased, or is written to over REST";
            self.audit.refuse(FrontEnd::Nbd, &self.peer, &what, &why);
        }
    }

    fn count(&mut self, request: &Request) {
        self.asked.0 += 1;
        if matches!(request.command, Command::Read | Command::Write) {
            self.asked.1 += u64::from(request.length);
        }
    }

    /// Returns what it has asked for so far.
    pub(crate) fn status(&self) -> ClientStatus {
        ClientStatus {
            id: self.id.0,
            peer: self.peer.clone(),
            requests: self.asked.0,
            bytes: self.asked.1,
            in_flight: self.in_flight as u64,
        }
    }

    /// Makes the input large enough for a request of `len` bytes, or notes that it waits for memory.
    fn make_room(&mut self, len: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if len > INPUT {
            self.small = 0;
            let growth = len.saturating_sub(self.input.len());
            self.wanted = Some(growth).filter(|growth| *growth > self.share.room);
            if self.wanted.is_none() {
                self.share.room -= growth;
                self.compact(len.max(self.input.len()));
            }
            return;
        }
        self.small = self.small.saturating_add(1);
        if self.input.len() > INPUT && (self.small >= PATIENCE || self.share.is_tight) {
            self.compact(INPUT);
        } else if self.start + len > self.input.len() {
            self.compact(self.input.len());
        }
    }

    /// Moves the input to the front of a buffer of `len` bytes, or of what it needs.
    fn compact(&mut self, len: usize) {
        if self.start > 0 {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let len = len.max(self.end);
        if len != self.input.len() {
            self.input.resize(len, 0);
            self.input.shrink_to_fit();
        }
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> State {
        while self.sent < self.out.len() {
            let left = &self.out[self.sent..];
            let written = match &mut self.tls {
                None => (&self.stream).write(left),
                Some(tls) => tls.write(&self.stream, left),
            };
            match written {
                Ok(0) => return State::Closed,
                Ok(n) => {
                    self.sent += n;
                    self.taken += n as u64;
                    self.listens = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return State::Closed,
            }
        }
        if let Some(tls) = &mut self.tls
            && let Err(error) = tls.send(&self.stream)
            && error.kind() != ErrorKind::WouldBlock
        {
            return State::Closed;
        }
        if self.sent == self.out.len() {
            self.empty_output();
        } else if self.sent > 4 * INPUT && self.sent >= self.unsent() {
            // No more is moved than was sent, so this costs less than sending did.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        State::Open
    }

    /// Starts the output again. Its memory stays for the next long replies: memory that is new for
    /// each costs more than the copy of the data.
    fn empty_output(&mut self) {
        self.little = if self.out.len() > INPUT { 0 } else { self.little.saturating_add(1) };
        self.sent = 0;
        self.out.clear();
        let few = self.little >= PATIENCE || self.share.is_tight;
        self.out.shrink_to(if few { INPUT } else { OUTPUT });
    }

    /// Gives back memory that is kept for later requests.
    pub(crate) fn tidy(&mut self) {
        if self.start == self.end && self.input.len() > INPUT {
            (self.start, self.end) = (0, 0);
            self.compact(INPUT);
        }
        if self.unsent() == 0 {
            (self.sent, self.little) = (0, 0);
            self.out.clear();
            self.out.shrink_to(INPUT);
        }
    }

    /// Returns whether it waits for memory that others hold. `held` is the length of a read that waits
    /// until there is room for it.
    pub(crate) fn waits_for_memory(&self, held: Option<usize>) -> bool {
        self.wanted.is_some() || (held.is_some() && self.unsent() == 0 && self.reading == 0)
    }

    /// Returns whether there is memory now for a request or a read that waits.
    pub(crate) fn can_go_on(&self, held: Option<usize>) -> bool {
        self.wanted.is_some_and(|wanted| wanted <= self.share.room)
            || held.is_some_and(|held| held <= self.room())
    }

    /// Lets it ask for memory again.
    pub(crate) fn try_again(&mut self) {
        self.wanted = None;
    }

    /// Notes at `now` whether it keeps the server waiting. Returns whether it does.
    pub(crate) fn note_stall(&mut self, now: Instant) -> bool {
        let is_half_sent = (self.has_input() || self.skip > 0) && self.wants().read;
        self.half_sent = is_half_sent.then(|| self.half_sent.unwrap_or(now));
        let has_unread = self.has_unsent();
        self.unread = has_unread.then(|| self.unread.unwrap_or((now, self.taken)));
        is_half_sent || has_unread
    }

    /// Returns whether it has kept the server waiting for too long: it sends a request too slowly, or
    /// takes no replies.
    pub(crate) fn has_stalled(&mut self, now: Instant, stall: Stalling) -> bool {
        self.note_stall(now);
        // The end of a client that holds nothing of the budget would help nobody.
        let is_in_the_way = self.share.is_tight && self.share.holds_some();
        let most = if is_in_the_way { stall.when_short } else { stall.at_ease };
        if let Some(since) = self.half_sent {
            let sent = if self.skip > 0 { self.skipped } else { self.end - self.start } as u64;
            let earned = Span::from_millis(sent * 1000 / LEAST_RATE);
            if now - since > most + earned {
                return true;
            }
        }
        if let Some((since, taken)) = self.unread
            && now - since > most
        {
            self.unread = Some((now, self.taken));
            return self.taken - taken < LEAST_TAKEN;
        }
        false
    }
}

/// The longest time in which a client may keep the server waiting. A stopped program should find its
/// client connected when it goes on, so this is long unless others need the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stalling {
    pub(crate) at_ease: Span,
    pub(crate) when_short: Span,
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) session: Session,
    pub(crate) device: DeviceId,
    pub(crate) tls: Option<Encryption>,
    /// Requests that came right behind it.
    pub(crate) rest: Vec<u8>,
    /// For a page blob: decides which clients may write.
    pub(crate) seat: Option<Arc<Seat>>,
    /// The device as it was at a freeze, if the client has chosen that.
    pub(crate) view: Option<Arc<View>>,
    /// The receiver of refusals.
    pub(crate) audit: Audit,
    /// Its place among the server's clients.
    pub(crate) place: Option<Place>,
}

/// Returns whether a client may do this: it writes to a page blob only without a lease on that.
fn may_do(command: Command, seat: Option<&Arc<Seat>>, sitting: &mut Option<Sitting>) -> bool {
    let writes = matches!(command, Command::Write | Command::Trim | Command::WriteZeroes);
    match seat {
        Some(seat) if writes && sitting.is_none() => {
            *sitting = seat.sit(calendar());
            sitting.is_some()
        }
        _ => true,
    }
}
