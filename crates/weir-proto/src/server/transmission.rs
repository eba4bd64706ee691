//! Parsing of requests from the stream, one at a time and without copying.
//!
//! This is the hot path. A typical request costs one bounds check per field and a few comparisons,
//! and nothing is allocated.

use super::Session;
use crate::cursor::Cursor;
use crate::errno::Errno;
use crate::error::ProtoError;
use crate::export::TransmissionFlags as Can;
use crate::request::{Command, CommandFlags, Request};
use crate::wire;
use weir_units::Bytes;

/// The result of parsing the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The request is incomplete: call again when the buffer has `at_least` bytes.
    NeedMore {
        /// In bytes, from the front of the buffer.
        at_least: usize,
    },
    /// A valid request.
    Request {
        /// The request.
        request: Request,
        /// The data of a write; empty otherwise.
        payload: &'a [u8],
        /// Number of bytes to drop afterwards.
        consumed: usize,
    },
    /// An invalid request, to be answered with [`crate::reply::error`].
    Refused {
        /// The request's cookie.
        cookie: u64,
        /// The error number for the reply.
        errno: Errno,
        /// The message for the reply.
        reason: &'static str,
        /// Number of bytes to drop.
        consumed: usize,
        /// Number of further bytes to drop as they arrive: the rest of the payload of a refused
        /// write.
        skip: u32,
    },
}

/// Parses the request at the front of `buf`.
///
/// `export_size` is the current size, which may have changed since the handshake.
///
/// # Errors
/// [`ProtoError::RequestMagic`] as soon as four bytes are received; close the connection.
#[inline]
pub fn parse_request<'a>(
    buf: &'a [u8],
    session: &Session,
    export_size: Bytes,
) -> Result<Parsed<'a>, ProtoError> {
    let mut cursor = Cursor::new(buf);
    match cursor.u32() {
        Some(wire::REQUEST) => {}
        Some(other) => return Err(ProtoError::RequestMagic(other)),
        None => return Ok(Parsed::NeedMore { at_least: wire::REQUEST_HEADER }),
    }
    let Some(header) = header(&mut cursor) else {
        return Ok(Parsed::NeedMore { at_least: wire::REQUEST_HEADER });
    };
    let request = match check(header, session, export_size.get()) {
        Ok(request) => request,
        Err((errno, reason)) => return Ok(refuse(buf, header, errno, reason)),
    };
    let payload_length = if request.command == Command::Write { request.length } else { 0 };
    let consumed = wire::REQUEST_HEADER + payload_length as usize;
    Ok(match cursor.bytes(payload_length) {
        Some(payload) => Parsed::Request { request, payload, consumed },
        None => Parsed::NeedMore { at_least: consumed },
    })
}

/// A request header whose command may be unknown.
#[derive(Clone, Copy)]
struct Header {
    flags: CommandFlags,
    command: Option<Command>,
    cookie: u64,
    offset: u64,
    length: u32,
}

#[inline]
fn header(cursor: &mut Cursor<'_>) -> Option<Header> {
    Some(Header {
        flags: CommandFlags::from_bits(cursor.u16()?),
        command: Command::from_wire(cursor.u16()?),
        cookie: cursor.u64()?,
        offset: cursor.u64()?,
        length: cursor.u32()?,
    })
}

type Refusal = (Errno, &'static str);

/// Checks a request against the session and the size of the export.
#[inline]
fn check(header: Header, session: &Session, size: u64) -> Result<Request, Refusal> {
    let Header { flags, command, cookie, offset, length } = header;
    let command = command.ok_or((Errno::Inval, "the command is not known"))?;
    check_command(command, session)?;
    if flags != CommandFlags::NONE && !flags_of(command, session.flags).contains(flags) {
        // DISC has no reply, so its fields are not checked.
        if command != Command::Disconnect {
            return Err((Errno::Inval, "the command does not take these flags"));
        }
    }
    match command {
        Command::Disconnect => {}
        Command::Flush if offset == 0 && length == 0 => {}
        Command::Flush => return Err((Errno::Inval, "a flush takes no offset and no length")),
        _ => check_range(header, command, session, size)?,
    }
    Ok(Request { command, flags, cookie, offset, length })
}

#[inline]
fn check_command(command: Command, session: &Session) -> Result<(), Refusal> {
    let can = |flag| session.flags.contains(flag);
    let writes = matches!(command, Command::Write | Command::Trim | Command::WriteZeroes);
    if writes && can(Can::READ_ONLY) {
        return Err((Errno::Perm, "the export is read-only"));
    }
    let offered = match command {
        Command::Read | Command::Write | Command::Disconnect => true,
        Command::Flush => can(Can::SEND_FLUSH),
        Command::Trim => can(Can::SEND_TRIM),
        Command::Cache => can(Can::SEND_CACHE),
        Command::WriteZeroes => can(Can::SEND_WRITE_ZEROES),
        Command::BlockStatus => session.meta_context.is_some(),
    };
    if offered { Ok(()) } else { Err((Errno::Inval, "the command was not offered")) }
}

fn flags_of(command: Command, can: Can) -> CommandFlags {
    let offered = |flag, by| if can.contains(by) { flag } else { CommandFlags::NONE };
    let own = match command {
        Command::Read => offered(CommandFlags::DF, Can::SEND_DF),
        Command::BlockStatus => CommandFlags::REQ_ONE,
        Command::WriteZeroes => {
            CommandFlags::NO_HOLE | offered(CommandFlags::FAST_ZERO, Can::SEND_FAST_ZERO)
        }
        _ => CommandFlags::NONE,
    };
    // FUA has no effect on commands without writes, where some clients set it.
    own | offered(CommandFlags::FUA, Can::SEND_FUA)
}

#[inline]
fn check_range(
    header: Header,
    command: Command,
    session: &Session,
    size: u64,
) -> Result<(), Refusal> {
    let Header { flags, offset, length, .. } = header;
    let block = session.export.block;
    let moves_data = matches!(command, Command::Read | Command::Write);
    if moves_data && length > block.max_payload() {
        let df = flags.contains(CommandFlags::DF);
        let errno = if df { Errno::Overflow } else { Errno::Inval };
        return Err((errno, "the length is above the maximum block size"));
    }
    if offset.checked_add(u64::from(length)).is_none_or(|end| end > size) {
        let grows = matches!(command, Command::Write | Command::WriteZeroes);
        let errno = if grows { Errno::NoSpc } else { Errno::Inval };
        return Err((errno, "the range reaches beyond the end of the export"));
    }
    if (offset | u64::from(length)) & u64::from(block.minimum() - 1) != 0 {
        return Err((Errno::Inval, "the range is no multiple of the minimum block size"));
    }
    if command == Command::BlockStatus && length == 0 {
        return Err((Errno::Inval, "a block status of no bytes has no answer"));
    }
    Ok(())
}

#[cold]
fn refuse<'a>(buf: &[u8], header: Header, errno: Errno, reason: &'static str) -> Parsed<'a> {
    let payload = if header.command == Some(Command::Write) { header.length } else { 0 };
    let there = buf.len().saturating_sub(wire::REQUEST_HEADER);
    let here = u32::try_from(there).map_or(payload, |there| there.min(payload));
    Parsed::Refused {
        cookie: header.cookie,
        errno,
        reason,
        consumed: wire::REQUEST_HEADER + here as usize,
        skip: payload - here,
    }
}
