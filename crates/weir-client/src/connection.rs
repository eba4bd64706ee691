//! One connection to an NBD export, for an event loop or for plain blocking use.
//!
//! In a loop: queue requests, [`Connection::flush_out`] them, wait until the
//! descriptor is readable (and, while [`Connection::wants_write`], writable),
//! then [`Connection::receive`]. One system call sends and one receives as many
//! messages as there are.
//!
//! Structured replies are not asked for by [`Connection::open`]: without them the data of a read
//! comes whole and in one place, so it can be handed on without assembling it.
//! [`Connection::open_sparse`] asks for them, because `base:allocation` needs them.

mod assembly;
mod bulk;
mod input;
mod pending;
mod socket;

pub use assembly::Answer;
pub use bulk::{Bulk, Payloads};
pub use socket::Socket;

use crate::error::ClientError;
use crate::stop::Stop;
use crate::tls::TlsConfig;
use assembly::Assemblies;
use input::Input;
use pending::Pending;
use socket::TICK;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use weir_proto::client::{Body, Handshake, ParsedReply, Session, Step, Wanted, parse_reply};
use weir_proto::{
    Command, CommandFlags, Errno, Extent, ProtoError, Request, TransmissionFlags, Uri,
};
use weir_units::Bytes;

/// The longest silence of a server during the handshake.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// A connection past its handshake.
///
/// The cookies of its methods are the caller's own and mean nothing here; the
/// same one may even be in flight twice.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    session: Session,
    pending: Pending,
    /// Answers in chunks, in a session with structured replies.
    assemblies: Assemblies,
    input: Input,
    out: Vec<u8>,
    /// The number of sent bytes of `out`.
    sent: usize,
    /// Ends waits, if it is there.
    stop: Option<Stop>,
}

impl Connection {
    /// Connects and opens the export, blocking.
    ///
    /// # Errors
    /// If no server answers, or it does not have this export.
    pub fn open(uri: &Uri) -> Result<Self, ClientError> {
        let wanted = Wanted { export: uri.export.clone(), ..Wanted::default() };
        Self::agree(Socket::connect(&uri.server)?, wanted, TlsConfig::from_uri(uri)?.as_ref(), None)
    }

    /// Connects and opens the export, blocking, and asks which of its ranges hold data. Where the
    /// server does not tell, [`Connection::has_extents`] is false.
    ///
    /// # Errors
    /// If no server answers, or it does not have this export.
    pub fn open_sparse(uri: &Uri) -> Result<Self, ClientError> {
        let wanted = sparse(&uri.export);
        Self::agree(Socket::connect(&uri.server)?, wanted, TlsConfig::from_uri(uri)?.as_ref(), None)
    }

    /// Does what [`Connection::open`] or, if `is_sparse`, [`Connection::open_sparse`] does. All waits
    /// of the connection, that for the server to begin with, end with [`ClientError::Stopped`] when
    /// `stop` says so.
    ///
    /// # Errors
    /// If no server answers before `stop`, or it does not have this export.
    pub fn open_until(uri: &Uri, is_sparse: bool, stop: &Stop) -> Result<Self, ClientError> {
        let tls_config = TlsConfig::from_uri(uri)?;
        let socket = Socket::connect_until(&uri.server, stop)?;
        let export = uri.export.clone();
        let wanted =
            if is_sparse { sparse(&export) } else { Wanted { export, ..Wanted::default() } };
        Self::agree(socket, wanted, tls_config.as_ref(), Some(stop))
    }

    /// Opens an export over a socket that is connected already, blocking.
    ///
    /// # Errors
    /// If the other end is silent, or does not offer this export.
    pub fn over(socket: Socket, export: &str) -> Result<Self, ClientError> {
        let wanted = Wanted { export: export.to_owned(), ..Wanted::default() };
        Self::agree(socket, wanted, None, None)
    }

    /// Does what [`Connection::open_sparse`] does, over a socket that is connected already.
    ///
    /// # Errors
    /// If the other end is silent, or does not offer this export.
    pub fn over_sparse(socket: Socket, export: &str) -> Result<Self, ClientError> {
        Self::agree(socket, sparse(export), None, None)
    }

    fn agree(
        mut socket: Socket,
        wanted: Wanted,
        tls_config: Option<&TlsConfig>,
        stop: Option<&Stop>,
    ) -> Result<Self, ClientError> {
        let mut input = Input::new();
        socket.set_read_timeout(Some(TICK)).map_err(|source| socket.failed(source))?;
        let wanted = Wanted { tls: tls_config.is_some(), ..wanted };
        let session = shake_hands(&mut socket, wanted, tls_config, &mut input, stop)?;
        let failed = |source| socket.failed(source);
        // A wait that can be stopped is one of many short ones.
        let timeout = stop.map(|_| TICK);
        socket.set_read_timeout(timeout).map_err(failed)?;
        socket.set_write_timeout(timeout).map_err(failed)?;
        let (pending, assemblies) = (Pending::default(), Assemblies::default());
        let (out, stop) = (Vec::new(), stop.cloned());
        Ok(Self { socket, session, pending, assemblies, input, out, sent: 0, stop })
    }

    fn check_stop(&self) -> Result<(), ClientError> {
        let is_set = self.stop.as_ref().is_some_and(Stop::is_set);
        if is_set { Err(ClientError::Stopped) } else { Ok(()) }
    }

    /// Returns the session that the handshake agreed on.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the size of the export when it was opened.
    #[must_use]
    pub const fn size(&self) -> Bytes {
        self.session.size
    }

    /// Returns whether [`Connection::extents`] can be asked.
    #[must_use]
    pub const fn has_extents(&self) -> bool {
        self.session.meta_context.is_some()
    }

    /// Returns whether the export offers all of `flags`.
    #[must_use]
    pub const fn offers(&self, flags: TransmissionFlags) -> bool {
        self.session.flags.contains(flags)
    }

    /// Returns the number of requests that wait for an answer, queued ones included.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.pending.count()
    }

    /// Returns whether queued bytes are left to send.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.sent < self.out.len() || self.socket.has_unsent()
    }

    /// Returns the number of queued bytes that are left to send.
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Sets whether [`Connection::flush_out`] and [`Connection::receive`] return
    /// instead of waiting. A new connection waits.
    ///
    /// # Errors
    /// If the socket does not take the setting.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<(), ClientError> {
        self.socket.set_nonblocking(nonblocking).map_err(|source| self.socket.failed(source))
    }

    /// Has the system end a TCP connection whose other end is gone, or takes no data, for `silence`,
    /// even while nothing is sent. Without it, that would go unnoticed for hours.
    ///
    /// # Errors
    /// If the socket does not take the setting.
    pub fn notice_absence(&self, silence: Duration) -> Result<(), ClientError> {
        self.socket.notice_absence(silence).map_err(|source| self.socket.failed(source))
    }

    /// Sets the upper 16 bits of the cookies on the wire, by which an observer that sees
    /// them there knows whose they are.
    ///
    /// # Panics
    /// If queued requests are in flight.
    pub fn set_label(&mut self, label: u16) {
        self.pending.set_label(label);
    }

    /// Queues a read. Returns its cookie on the wire.
    ///
    /// # Errors
    /// [`ClientError::TooLong`]; nothing is queued then.
    pub fn queue_read(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
    ) -> Result<u64, ClientError> {
        self.check_length(length as usize)?;
        Ok(self.queue(Request::new(Command::Read, cookie, offset, length), length))
    }

    /// Queues a write, durable before it is answered if `fua`. Returns its cookie on the
    /// wire.
    ///
    /// # Errors
    /// [`ClientError::TooLong`], or [`ClientError::NotOffered`] for `fua`;
    /// nothing is queued then.
    pub fn queue_write(
        &mut self,
        cookie: u64,
        offset: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<u64, ClientError> {
        let length = self.check_length(data.len())?;
        let mut request = Request::new(Command::Write, cookie, offset, length);
        if fua {
            self.check_offered(TransmissionFlags::SEND_FUA, "FUA")?;
            request = request.with(CommandFlags::FUA);
        }
        let wire = self.queue(request, 0);
        self.out.extend_from_slice(data);
        Ok(wire)
    }

    /// Queues a flush.
    ///
    /// # Errors
    /// [`ClientError::NotOffered`]; nothing is queued then.
    pub fn queue_flush(&mut self, cookie: u64) -> Result<(), ClientError> {
        self.check_offered(TransmissionFlags::SEND_FLUSH, "FLUSH")?;
        self.queue(Request::new(Command::Flush, cookie, 0, 0), 0);
        Ok(())
    }

    /// Queues a trim.
    ///
    /// # Errors
    /// [`ClientError::NotOffered`]; nothing is queued then.
    pub fn queue_trim(&mut self, cookie: u64, offset: u64, length: u32) -> Result<(), ClientError> {
        self.check_offered(TransmissionFlags::SEND_TRIM, "TRIM")?;
        self.queue(Request::new(Command::Trim, cookie, offset, length), 0);
        Ok(())
    }

    /// Queues a write of zeros with these flags. The server may free the range, unless `NO_HOLE` is one
    /// of them.
    ///
    /// # Errors
    /// [`ClientError::NotOffered`], also for `FUA`; nothing is queued then.
    pub fn queue_write_zeroes(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
        flags: CommandFlags,
    ) -> Result<(), ClientError> {
        self.check_offered(TransmissionFlags::SEND_WRITE_ZEROES, "WRITE_ZEROES")?;
        if flags.contains(CommandFlags::FUA) {
            self.check_offered(TransmissionFlags::SEND_FUA, "FUA")?;
        }
        let request = Request::new(Command::WriteZeroes, cookie, offset, length);
        self.queue(request.with(flags), 0);
        Ok(())
    }

    /// Queues a question for the extents of a range, see [`Connection::extents`].
    ///
    /// # Errors
    /// [`ClientError::NotOffered`] if [`Connection::has_extents`] is false; nothing is queued then.
    pub fn queue_extents(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
    ) -> Result<(), ClientError> {
        if !self.has_extents() {
            return Err(ClientError::NotOffered("base:allocation"));
        }
        self.queue(Request::new(Command::BlockStatus, cookie, offset, length), 0);
        Ok(())
    }

    fn check_length(&self, length: usize) -> Result<u32, ClientError> {
        let maximum = self.session.block.max_payload();
        let fitting = u32::try_from(length).ok().filter(|&length| length <= maximum);
        fitting.ok_or(ClientError::TooLong { length, maximum })
    }

    fn check_offered(
        &self,
        flag: TransmissionFlags,
        name: &'static str,
    ) -> Result<(), ClientError> {
        let offered = self.session.flags.contains(flag);
        if offered { Ok(()) } else { Err(ClientError::NotOffered(name)) }
    }

    fn queue(&mut self, request: Request, data_length: u32) -> u64 {
        if self.sent > self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        let cookie = self.pending.insert(request.cookie, data_length);
        if self.session.structured {
            self.assemblies.insert(cookie, request.offset, data_length);
        }
        Request { cookie, ..request }.encode(&mut self.out);
        cookie
    }

    /// Sends what is queued; without blocking, or if it can be stopped, what the socket takes.
    /// Returns whether everything is sent.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn flush_out(&mut self) -> Result<bool, ClientError> {
        while self.wants_write() {
            let written = match &self.out[self.sent..] {
                [] => self.socket.send().map(|()| 0),
                left => self.socket.write(left),
            };
            match written {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.check_stop().map(|()| false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Receives once and hands on every reply that is whole by then: its cookie
    /// and the data of a read (empty for anything else) or the errno. Returns
    /// their number, which may be 0.
    ///
    /// Without blocking, or if it can be stopped, 0 may also mean that nothing is there. A
    /// descriptor that stays readable wants another call.
    ///
    /// # Errors
    /// If the server closed the connection or cannot be understood. Replies
    /// handed on before that are good.
    pub fn receive(
        &mut self,
        mut on_reply: impl FnMut(u64, Result<&[u8], Errno>),
    ) -> Result<usize, ClientError> {
        self.receive_answers(|cookie, answer| match answer {
            Ok(Answer::Data(data)) => on_reply(cookie, Ok(data)),
            Ok(Answer::Extents(_)) => on_reply(cookie, Ok(&[])),
            Err(errno) => on_reply(cookie, Err(errno)),
        })
    }

    /// Does what [`Connection::receive`] does, and also hands on the extents that were asked for.
    ///
    /// # Errors
    /// Those of [`Connection::receive`].
    pub fn receive_answers(
        &mut self,
        mut on_answer: impl FnMut(u64, Result<Answer<'_>, Errno>),
    ) -> Result<usize, ClientError> {
        let mut replies = self.receive_once(&mut on_answer)?;
        while self.socket.has_decrypted() {
            replies += self.receive_once(&mut on_answer)?;
        }
        Ok(replies)
    }

    fn receive_once(
        &mut self,
        mut on_answer: impl FnMut(u64, Result<Answer<'_>, Errno>),
    ) -> Result<usize, ClientError> {
        match self.input.fill_from(&self.socket) {
            Ok(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return self.check_stop().map(|()| 0);
            }
            Err(error) => return Err(self.lost(error)),
        }
        let Self { socket, session, pending, assemblies, input, .. } = self;
        let mut replies = 0;
        loop {
            let parsed = parse_reply(input.bytes(), session, |cookie| pending.length(cookie));
            match parsed.map_err(|source| socket.confused(source))? {
                ParsedReply::NeedMore { at_least } => {
                    input.make_room(at_least);
                    return Ok(replies);
                }
                ParsedReply::Reply { reply, consumed } if session.structured => {
                    let (wire, done) = (reply.cookie, reply.done);
                    if pending.length(wire).is_none() {
                        return Err(socket.confused(ProtoError::UnknownCookie(wire)));
                    }
                    let cookie = pending.cookie(wire);
                    let hand_on = |answer: Result<Answer<'_>, Errno>| on_answer(cookie, answer);
                    let taken = assemblies.take((wire, done), reply.body, hand_on);
                    taken.map_err(|_| socket.misfit())?;
                    if done {
                        pending.remove(wire);
                        replies += 1;
                    }
                    input.consume(consumed);
                }
                ParsedReply::Reply { reply, consumed } => {
                    // Its length was found, so it is waiting.
                    let cookie = pending.remove(reply.cookie);
                    on_answer(cookie, result(reply.body));
                    input.consume(consumed);
                    replies += 1;
                }
            }
        }
    }

    fn lost(&self, error: io::Error) -> ClientError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => self.socket.closed(self.in_flight()),
            _ => self.socket.failed(error),
        }
    }

    /// Reads into `data`, waiting for it.
    ///
    /// # Errors
    /// If the read fails, or the connection.
    ///
    /// # Panics
    /// If queued requests are in flight: their replies would be lost.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), ClientError> {
        let length = self.check_length(data.len())?;
        self.alone()?;
        self.queue_read(0, offset, length)?;
        self.wait(|answer| data.copy_from_slice(answer))
    }

    /// Writes `data`, waiting for the answer.
    ///
    /// # Errors
    /// If the write fails, or the connection.
    ///
    /// # Panics
    /// If queued requests are in flight: their replies would be lost.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        self.alone()?;
        self.queue_write(0, offset, data, false)?;
        self.wait(|_| {})
    }

    /// Makes every write answered so far durable, waiting for the answer.
    ///
    /// # Errors
    /// If the flush fails, or the connection.
    ///
    /// # Panics
    /// If queued requests are in flight: their replies would be lost.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.alone()?;
        self.queue_flush(0)?;
        self.wait(|_| {})
    }

    /// Makes a range read as zeros, waiting for the answer.
    ///
    /// # Errors
    /// If the export does not offer it, the request fails, or the connection.
    ///
    /// # Panics
    /// If queued requests are in flight: their replies would be lost.
    pub fn write_zeroes(&mut self, offset: u64, length: u32) -> Result<(), ClientError> {
        self.alone()?;
        self.queue_write_zeroes(0, offset, length, CommandFlags::NONE)?;
        self.wait(|_| {})
    }

    /// Returns the extents of a range, waiting for the answer. They begin at `offset`, and may end
    /// before or after the range.
    ///
    /// # Errors
    /// If [`Connection::has_extents`] is false, the request fails, or the connection.
    ///
    /// # Panics
    /// If queued requests are in flight: their replies would be lost.
    pub fn extents(&mut self, offset: u64, length: u32) -> Result<Vec<Extent>, ClientError> {
        self.alone()?;
        self.queue_extents(0, offset, length)?;
        let mut all = Vec::new();
        self.wait_for(|answer| {
            if let Answer::Extents(extents) = answer {
                all = extents.to_vec();
            }
        })?;
        if all.is_empty() { Err(self.socket.misfit()) } else { Ok(all) }
    }

    /// Asserts that no request is in flight. One that was stopped may be, and ends the connection.
    fn alone(&self) -> Result<(), ClientError> {
        self.check_stop()?;
        let queued = self.in_flight();
        assert!(queued == 0, "{queued} queued requests would lose their replies");
        Ok(())
    }

    /// Sends and waits for the answer to the only request. The socket waits.
    fn wait(&mut self, mut on_data: impl FnMut(&[u8])) -> Result<(), ClientError> {
        self.wait_for(|answer| {
            if let Answer::Data(data) = answer {
                on_data(data);
            }
        })
    }

    fn wait_for(&mut self, mut on_answer: impl FnMut(Answer<'_>)) -> Result<(), ClientError> {
        self.set_nonblocking(false)?;
        let mut failed = None;
        while self.in_flight() > 0 {
            self.flush_out()?;
            self.receive_answers(|_, answer| match answer {
                Ok(answer) => on_answer(answer),
                Err(errno) => failed = Some(errno),
            })?;
        }
        failed.map_or(Ok(()), |errno| Err(ClientError::Failed(errno)))
    }

    /// Ends the connection at once, and waits until the server has closed its side: it then executes
    /// nothing more of what it received. Answers are dropped. Returns false if that took longer than
    /// `patience`, or `stop` is set.
    #[must_use]
    pub fn hang_up(self, patience: Duration, stop: &Stop) -> bool {
        let socket = &self.socket;
        let is_open = socket.set_nonblocking(false).and_then(|()| socket.end_writing());
        // A socket that cannot be shut down is not connected any more.
        if is_open.and_then(|()| socket.set_read_timeout(Some(TICK))).is_err() {
            return true;
        }
        let (mut left, mut dropped) = (patience, vec![0; 64 << 10]);
        while !left.is_zero() && !stop.is_set() {
            match socket.read_raw(&mut dropped) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        left = left.saturating_sub(TICK);
                    }
                    _ => return true,
                },
            }
        }
        false
    }

    /// Says goodbye and closes. Dropping a connection closes it without a word.
    ///
    /// # Errors
    /// If queued requests cannot be sent.
    pub fn close(mut self) -> Result<(), ClientError> {
        Request::new(Command::Disconnect, 0, 0, 0).encode(&mut self.out);
        self.set_nonblocking(false)?;
        self.flush_out().map(|_| ())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the answer of a session without structured replies.
fn result(body: Body<'_>) -> Result<Answer<'_>, Errno> {
    match body {
        Body::Nothing => Ok(Answer::Data(&[])),
        Body::Data { data, .. } => Ok(Answer::Data(data)),
        Body::Error { errno, .. } => Err(errno),
        Body::Hole { .. } | Body::BlockStatus { .. } => {
            unreachable!("only a session with structured replies has these")
        }
    }
}

/// Returns the features to request for an export whose extents will be asked for.
fn sparse(export: &str) -> Wanted {
    Wanted { export: export.to_owned(), structured: true, block_status: true, tls: false }
}

fn shake_hands(
    socket: &mut Socket,
    wanted: Wanted,
    tls_config: Option<&TlsConfig>,
    input: &mut Input,
    stop: Option<&Stop>,
) -> Result<Session, ClientError> {
    let mut handshake = Handshake::open(wanted);
    let (mut out, mut silence) = (Vec::new(), Duration::ZERO);
    loop {
        if stop.is_some_and(Stop::is_set) {
            return Err(ClientError::Stopped);
        }
        let progress = handshake.handle(input.bytes(), &mut out);
        let progress = progress.map_err(|source| socket.confused(source))?;
        input.consume(progress.consumed);
        socket.write_all(&out).map_err(|source| socket.failed(source))?;
        out.clear();
        match progress.step {
            Step::Again => {}
            Step::StartTls => {
                let Some(tls_config) = tls_config else { unreachable!("TLS was not asked for") };
                if !input.bytes().is_empty() {
                    let reason = "the server sent bytes that are not encrypted";
                    let source = io::Error::new(io::ErrorKind::InvalidData, reason);
                    return Err(socket.failed(source));
                }
                let late = socket.failed(io::ErrorKind::TimedOut.into());
                let mut late = Some(late);
                socket.encrypt(tls_config, || {
                    silence += TICK;
                    if stop.is_some_and(Stop::is_set) {
                        return Err(ClientError::Stopped);
                    }
                    match silence >= HANDSHAKE_PATIENCE {
                        true => late.take().map_or(Ok(()), Err),
                        false => Ok(()),
                    }
                })?;
                silence = Duration::ZERO;
            }
            Step::Established(session) => return Ok(session),
            Step::Listed(_) => unreachable!("no list was asked for"),
            Step::NeedMore { at_least } => {
                input.make_room(at_least);
                silence = match input.fill_from(socket) {
                    Ok(0) => return Err(socket.closed(0)),
                    Ok(_) => Duration::ZERO,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => silence + TICK,
                    Err(source) => return Err(socket.failed(source)),
                };
                if silence >= HANDSHAKE_PATIENCE {
                    return Err(socket.failed(io::ErrorKind::TimedOut.into()));
                }
            }
        }
    }
}
