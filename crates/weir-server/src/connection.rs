//! The buffers of one client.

use crate::host_loop::{ClientId, Elsewhere, HostLoop, ReplyTo};
use crate::seat::{Seat, Sitting};
use crate::volume::View;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use weir_core::DeviceId;
use weir_proto::server::{Parsed, Session, parse_request};
use weir_proto::{Command, Errno, reply};
use weir_store::Store;
use weir_units::Instant;
use weir_wall::{Interest, calendar};

/// Input buffer of a connection; grows for a larger write and shrinks again.
const INPUT: usize = 256 << 10;
/// Looks at a buffer without anything larger in it before it shrinks.
const PATIENCE: u32 = 64;
/// The largest output buffer that is kept for the next replies: of a read as long as backups have.
const OUTPUT: usize = (4 << 20) + 4096;
/// Bytes taken from one client before the others have their turn.
const ROUND: usize = 512 << 10;
/// Requests of one client under way; more stay in its socket.
const MAX_IN_FLIGHT: usize = 4096;
/// Bytes of a client's reads that may be in memory, unread by it or on workers, before
/// nothing more is made ready for it; and of its writes, before no more are taken.
const MAX_HELD: usize = 64 << 20;

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
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
    pub(crate) id: ClientId,
    pub(crate) device: DeviceId,
    session: Session,
    input: Vec<u8>,
    /// Input received and not yet taken: `input[start..end]`.
    start: usize,
    end: usize,
    /// Looks at the input since it last held a write larger than [`INPUT`].
    small: u32,
    /// Payload of a refused write that is still to come.
    skip: usize,
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Times that the output was empty since it last held more than [`INPUT`].
    little: u32,
    in_flight: usize,
    /// Bytes in memory for it: see [`ReplyTo`].
    reading: usize,
    writing: usize,
    /// It has taken some of its replies since someone last looked.
    pub(crate) listens: bool,
    /// It said goodbye, or the server stops: nothing more is taken from it.
    pub(crate) closing: bool,
    /// For a page blob: decides which clients may write, and notes that this client does.
    seat: Option<Arc<Seat>>,
    sitting: Option<Sitting>,
    /// The store that it reads from, if not from the device.
    view: Option<Arc<View>>,
    /// The events that the socket is watched for.
    pub(crate) interest: Interest,
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
        Self {
            stream,
            id,
            device: hello.device,
            session: hello.session,
            input,
            start: 0,
            end: hello.rest.len(),
            small: 0,
            skip: 0,
            out: Vec::new(),
            sent: 0,
            little: 0,
            in_flight: 0,
            reading: 0,
            writing: 0,
            listens: false,
            closing: false,
            seat: hello.seat,
            sitting: None,
            view: hello.view,
            interest: Interest::READ,
        }
    }

    pub(crate) fn reply_to(&mut self) -> ReplyTo<'_> {
        let full = self.is_full();
        ReplyTo {
            out: &mut self.out,
            structured: self.session.structured,
            meta_context: self.session.meta_context,
            in_flight: &mut self.in_flight,
            reading: &mut self.reading,
            writing: &mut self.writing,
            full,
        }
    }

    /// Returns whether no more data should be made ready for it.
    pub(crate) fn is_full(&self) -> bool {
        self.unsent() + self.reading >= MAX_HELD
    }

    /// Returns whether there is input that has not been taken.
    pub(crate) fn has_input(&self) -> bool {
        self.start < self.end
    }

    /// Returns whether anything is still owed to this client.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.sent == self.out.len()
    }

    /// Bytes of replies that the socket has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Returns the events to wait for now.
    pub(crate) fn wants(&self) -> Interest {
        let room = self.in_flight < MAX_IN_FLIGHT && !self.is_full() && self.writing < MAX_HELD;
        Interest { read: room && !self.closing, write: self.unsent() > 0 }
    }

    /// Receives what is there and submits the requests in it.
    ///
    /// One client gets so much of a round and no more; what is left in its socket
    /// brings it up again in the next, after the others and after what is due.
    pub(crate) fn receive(&mut self, now: Instant, host: &mut HostLoop) -> State {
        let mut taken = 0;
        loop {
            if !self.wants().read || taken >= ROUND {
                return State::Open;
            }
            if self.end == self.input.len() {
                // `take` leaves room for what it still needs.
                self.compact(self.input.len());
            }
            match (&self.stream).read(&mut self.input[self.end..]) {
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
                self.start += drop;
                if self.skip > 0 {
                    break;
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
                    let structured = self.session.structured;
                    reply::error(&mut self.out, structured, cookie, errno, reason);
                    self.start += consumed;
                    self.skip = skip as usize;
                }
                Ok(Parsed::Request { request, payload, consumed }) => {
                    self.start += consumed;
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
                    let submitted =
                        match may_do(request.command, self.seat.as_ref(), &mut self.sitting) {
                            true => host.submit_from(now, id, device, &request, payload, from),
                            false => Err(Errno::Perm),
                        };
                    match submitted {
                        Ok(held) => {
                            self.in_flight += 1;
                            self.writing += held;
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

    /// Makes the input large enough for a request of `len` bytes.
    fn make_room(&mut self, len: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if len > INPUT {
            self.small = 0;
            self.compact(len.max(self.input.len()));
            return;
        }
        self.small = self.small.saturating_add(1);
        if self.input.len() > INPUT && self.small >= PATIENCE {
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
            match (&self.stream).write(&self.out[self.sent..]) {
                Ok(0) => return State::Closed,
                Ok(n) => {
                    self.sent += n;
                    self.listens = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return State::Closed,
            }
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
        if self.little >= PATIENCE {
            self.out.shrink_to(INPUT);
        } else {
            self.out.shrink_to(OUTPUT);
        }
    }
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) session: Session,
    pub(crate) device: DeviceId,
    /// Requests that came right behind it.
    pub(crate) rest: Vec<u8>,
    /// For a page blob: decides which clients may write.
    pub(crate) seat: Option<Arc<Seat>>,
    /// The device as it was at a freeze, if the client has chosen that.
    pub(crate) view: Option<Arc<View>>,
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
