//! A connection whose payloads stay where they are: long transfers without a copy in between.
//!
//! [`Connection`] copies the data of a write into its output, and receives the data of a read into
//! its input, from which the caller takes it. For transfers of a megabyte these copies cost as much
//! as the sockets. A [`Bulk`] receives into and sends from buffers that [`Payloads`] lends it.

use super::Connection;
use crate::error::ClientError;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use weir_proto::client::{Body, ParsedReply, parse_reply};
use weir_proto::{Command, CommandFlags, Errno, Request, TransmissionFlags, wire};
use weir_units::Bytes;

/// Replies that are taken in one call, so that one connection does not hold up the others.
const BATCH: usize = 16;

/// The buffers of the requests on a [`Bulk`], by the caller's cookies.
pub trait Payloads {
    /// Returns the buffer that a read fills, as long as the read.
    fn landing(&mut self, cookie: u64) -> &mut [u8];

    /// Returns the data of a write, as long as the write.
    fn lent(&self, cookie: u64) -> &[u8];

    /// Takes in that a request was answered.
    fn finished(&mut self, cookie: u64, result: Result<(), Errno>);
}

/// A payload that follows queued bytes.
#[derive(Debug)]
struct Lent {
    /// The queued bytes before it, counted from the first that is unsent.
    after: usize,
    cookie: u64,
    length: usize,
    sent: usize,
}

/// The data of a read that arrives.
#[derive(Debug, Clone, Copy)]
struct Landing {
    cookie: u64,
    length: usize,
    filled: usize,
}

/// A connection in an event loop that moves payloads without copying them.
#[derive(Debug)]
pub struct Bulk {
    connection: Connection,
    lent: VecDeque<Lent>,
    landing: Option<Landing>,
}

impl Bulk {
    /// Takes over a connection without requests in flight, and makes it non-blocking.
    ///
    /// # Errors
    /// If the socket does not take the setting.
    ///
    /// # Panics
    /// If requests are in flight, or the session has structured replies.
    pub fn new(connection: Connection) -> Result<Self, ClientError> {
        connection.alone()?;
        assert!(!connection.session.structured, "chunks do not land in one place");
        connection.set_nonblocking(true)?;
        Ok(Self { connection, lent: VecDeque::new(), landing: None })
    }

    /// Returns the size of the export when it was opened.
    #[must_use]
    pub const fn size(&self) -> Bytes {
        self.connection.size()
    }

    /// Returns the number of requests that wait for an answer.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.connection.in_flight()
    }

    /// Returns whether queued bytes or payloads are left to send.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write() || !self.lent.is_empty()
    }

    /// Sets the upper 16 bits of the cookies on the wire, by which an observer in the server knows
    /// the connection.
    ///
    /// # Panics
    /// If requests are in flight.
    pub fn set_label(&mut self, label: u16) {
        self.connection.set_label(label);
    }

    /// Queues a read into a buffer that [`Payloads::landing`] returns. Returns its cookie on the
    /// wire.
    ///
    /// # Errors
    /// [`ClientError::TooLong`]; nothing is queued then.
    pub fn queue_read(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
    ) -> Result<u64, ClientError> {
        self.connection.queue_read(cookie, offset, length)
    }

    /// Queues a write of a buffer that [`Payloads::lent`] returns. Returns its cookie on the wire.
    ///
    /// # Errors
    /// [`ClientError::TooLong`], or [`ClientError::NotOffered`] for `fua`; nothing is queued then.
    pub fn queue_write(
        &mut self,
        cookie: u64,
        offset: u64,
        length: u32,
        fua: bool,
    ) -> Result<u64, ClientError> {
        self.connection.check_length(length as usize)?;
        let mut request = Request::new(Command::Write, cookie, offset, length);
        if fua {
            self.connection.check_offered(TransmissionFlags::SEND_FUA, "FUA")?;
            request = request.with(CommandFlags::FUA);
        }
        let wire = self.connection.queue(request, 0);
        let before: usize = self.lent.iter().map(|own| own.after).sum();
        let after = self.connection.unsent() - before;
        self.lent.push_back(Lent { after, cookie, length: length as usize, sent: 0 });
        Ok(wire)
    }

    /// Queues a flush.
    ///
    /// # Errors
    /// [`ClientError::NotOffered`]; nothing is queued then.
    pub fn queue_flush(&mut self, cookie: u64) -> Result<(), ClientError> {
        self.connection.queue_flush(cookie)
    }

    /// Sends what the socket takes. Returns whether everything is sent.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn flush_out(&mut self, payloads: &impl Payloads) -> Result<bool, ClientError> {
        while let Some(own) = self.lent.front_mut() {
            let connection = &mut self.connection;
            let head = &connection.out[connection.sent..connection.sent + own.after];
            let data = &payloads.lent(own.cookie)[own.sent..own.length];
            let parts = [IoSlice::new(head), IoSlice::new(data)];
            match connection.socket.write_vectored(&parts) {
                Ok(sent) => {
                    let of_head = sent.min(own.after);
                    connection.sent += of_head;
                    own.after -= of_head;
                    own.sent += sent - of_head;
                    if own.after == 0 && own.sent == own.length {
                        self.lent.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(connection.lost(error)),
            }
        }
        self.connection.flush_out()
    }

    /// Receives what is there, up to a bounded number of replies. Returns whether more may be
    /// there: a descriptor that stays readable wants another call in any case.
    ///
    /// # Errors
    /// If the server closed the connection or cannot be understood.
    pub fn receive(&mut self, payloads: &mut impl Payloads) -> Result<bool, ClientError> {
        let mut replies = 0;
        // No descriptor becomes readable for what is decrypted already.
        while replies < BATCH || self.connection.socket.has_decrypted() {
            if let Some(landing) = self.landing {
                match self.land(landing, payloads) {
                    Ok(true) => replies += 1,
                    Ok(false) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.connection.lost(error)),
                }
                continue;
            }
            // Only the header: what follows it lands elsewhere.
            let missing = wire::SIMPLE_HEADER - self.connection.input.bytes().len();
            match self.connection.input.fill_up_to(&self.connection.socket, missing) {
                Ok(0) => return Err(self.connection.lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(received) if received < missing => {
                    if !self.connection.socket.has_decrypted() {
                        return Ok(false);
                    }
                    continue;
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.connection.lost(error)),
            }
            replies += usize::from(self.take_header(payloads)?);
        }
        Ok(true)
    }

    /// Takes in a reply's header. Returns whether the reply is complete.
    fn take_header(&mut self, payloads: &mut impl Payloads) -> Result<bool, ClientError> {
        let Connection { socket, session, pending, input, .. } = &mut self.connection;
        let mut length = 0;
        let mut cookie = 0;
        let parsed = parse_reply(input.bytes(), session, |wire| {
            length = pending.length(wire)?;
            cookie = wire;
            Some(length)
        });
        let answer = match parsed.map_err(|source| socket.confused(source))? {
            ParsedReply::NeedMore { .. } => None,
            ParsedReply::Reply { reply, .. } => match reply.body {
                Body::Error { errno, .. } => Some(Err(errno)),
                _ => Some(Ok(())),
            },
        };
        input.consume(wire::SIMPLE_HEADER);
        let cookie = if answer.is_some() { pending.remove(cookie) } else { cookie };
        match answer {
            Some(answer) => payloads.finished(cookie, answer),
            None => {
                self.landing = Some(Landing { cookie, length: length as usize, filled: 0 });
            }
        }
        Ok(answer.is_some())
    }

    /// Receives data of a read once. Returns whether it is all there.
    fn land(&mut self, landing: Landing, payloads: &mut impl Payloads) -> io::Result<bool> {
        let Landing { cookie: wire, length, filled } = landing;
        let cookie = self.connection.pending.cookie(wire);
        let room = &mut payloads.landing(cookie)[filled..length];
        let received = self.connection.socket.read(room)?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let filled = filled + received;
        self.landing = (filled < length).then_some(Landing { filled, ..landing });
        if self.landing.is_none() {
            self.connection.pending.remove(wire);
            payloads.finished(cookie, Ok(()));
        }
        Ok(self.landing.is_none())
    }

    /// Says goodbye and closes. Call it when everything is answered.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn close(self) -> Result<(), ClientError> {
        self.connection.close()
    }
}

impl AsFd for Bulk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
