//! Parsing of replies from the stream, one at a time and without copying.

use super::Session;
use crate::cursor::Cursor;
use crate::errno::Errno;
use crate::error::ProtoError;
use crate::export::{BlockState, Extent};
use crate::wire::{self, chunk};

/// Maximum length of a chunk: the largest payload plus space for its fields.
const MAX_CHUNK: u32 = wire::MAX_PAYLOAD + (64 << 10);

/// The result of parsing the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedReply<'a> {
    /// The reply is incomplete: call again when the buffer has `at_least` bytes.
    NeedMore {
        /// In bytes, from the front of the buffer.
        at_least: usize,
    },
    /// A reply, or one chunk of a structured reply.
    Reply {
        /// The reply.
        reply: Reply<'a>,
        /// Number of bytes to drop afterwards.
        consumed: usize,
    },
}

/// A simple reply, or one chunk of a structured reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Cookie of the request.
    pub cookie: u64,
    /// The content.
    pub body: Body<'a>,
    /// True if this completes the request. Otherwise more chunks follow.
    pub done: bool,
}

/// The content of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// Success without data, or the end of the chunks.
    Nothing,
    /// Data of a read.
    Data {
        /// Offset within the export. `None` in a simple reply, which holds the whole read.
        offset: Option<u64>,
        /// The data.
        data: &'a [u8],
    },
    /// A range of zeroes in a read.
    Hole {
        /// Offset within the export.
        offset: u64,
        /// Length in bytes.
        length: u32,
    },
    /// Extents, starting at the request's offset.
    BlockStatus {
        /// Id of the metadata context.
        context: u32,
        /// The extents.
        extents: Extents<'a>,
    },
    /// The request failed.
    Error {
        /// Error number.
        errno: Errno,
        /// The server's message; may be empty.
        message: &'a str,
        /// Offset of the failure, if the server sent it.
        offset: Option<u64>,
    },
}

/// The extents of a block status, decoded by iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents<'a>(&'a [u8]);

impl Iterator for Extents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let mut cursor = Cursor::new(self.0);
        let length = cursor.u32()?;
        let state = BlockState::from_bits(cursor.u32()?);
        self.0 = cursor.rest();
        Some(Extent { length, state })
    }
}

/// Parses the reply at the front of `buf`.
///
/// A simple reply does not contain the length of its data, so `data_length` returns it for a
/// cookie: the length of a read, 0 for other requests, `None` for an unknown cookie. It is not
/// called in sessions with structured replies, whose simple replies have no data.
///
/// # Errors
/// If the server violates the protocol; close the connection.
#[inline]
pub fn parse_reply<'a>(
    buf: &'a [u8],
    session: &Session,
    data_length: impl FnOnce(u64) -> Option<u32>,
) -> Result<ParsedReply<'a>, ProtoError> {
    let mut cursor = Cursor::new(buf);
    match cursor.u32() {
        None => Ok(ParsedReply::NeedMore { at_least: wire::SIMPLE_HEADER }),
        Some(wire::SIMPLE_REPLY) if session.structured => simple(cursor, |_| Some(0)),
        Some(wire::SIMPLE_REPLY) => simple(cursor, data_length),
        Some(wire::STRUCTURED_REPLY) if session.structured => structured(cursor),
        Some(other) => Err(ProtoError::ReplyMagic(other)),
    }
}

#[inline]
fn simple(
    mut cursor: Cursor<'_>,
    data_length: impl FnOnce(u64) -> Option<u32>,
) -> Result<ParsedReply<'_>, ProtoError> {
    let Some((number, cookie)) = cursor.u32().zip(cursor.u64()) else {
        return Ok(ParsedReply::NeedMore { at_least: wire::SIMPLE_HEADER });
    };
    let length = data_length(cookie).ok_or(ProtoError::UnknownCookie(cookie))?;
    if let Some(errno) = Errno::from_wire(number) {
        let body = Body::Error { errno, message: "", offset: None };
        let reply = Reply { cookie, body, done: true };
        return Ok(ParsedReply::Reply { reply, consumed: wire::SIMPLE_HEADER });
    }
    let consumed = wire::SIMPLE_HEADER + length as usize;
    let Some(data) = cursor.bytes(length) else {
        return Ok(ParsedReply::NeedMore { at_least: consumed });
    };
    let body = if length == 0 { Body::Nothing } else { Body::Data { offset: None, data } };
    Ok(ParsedReply::Reply { reply: Reply { cookie, body, done: true }, consumed })
}

fn structured(mut cursor: Cursor<'_>) -> Result<ParsedReply<'_>, ProtoError> {
    let header = (cursor.u16(), cursor.u16(), cursor.u64(), cursor.u32());
    let (Some(flags), Some(kind), Some(cookie), Some(length)) = header else {
        return Ok(ParsedReply::NeedMore { at_least: wire::CHUNK_HEADER });
    };
    let malformed = ProtoError::Chunk { kind, length };
    if length > MAX_CHUNK {
        return Err(malformed);
    }
    let consumed = wire::CHUNK_HEADER + length as usize;
    let Some(payload) = cursor.bytes(length) else {
        return Ok(ParsedReply::NeedMore { at_least: consumed });
    };
    let done = flags & chunk::FLAG_DONE != 0;
    let body = body(kind, done, payload).ok_or(malformed)?;
    Ok(ParsedReply::Reply { reply: Reply { cookie, body, done }, consumed })
}

/// Parses the content of a chunk; `None` if it is malformed.
fn body(kind: u16, done: bool, payload: &[u8]) -> Option<Body<'_>> {
    let mut cursor = Cursor::new(payload);
    Some(match kind {
        chunk::NONE => {
            cursor.end().filter(|()| done)?;
            Body::Nothing
        }
        chunk::OFFSET_DATA => {
            let offset = Some(cursor.u64()?);
            let data = Some(cursor.rest()).filter(|data| !data.is_empty())?;
            Body::Data { offset, data }
        }
        chunk::OFFSET_HOLE => {
            let offset = cursor.u64()?;
            let length = cursor.u32().filter(|&length| length > 0)?;
            cursor.end()?;
            Body::Hole { offset, length }
        }
        chunk::BLOCK_STATUS => {
            let context = cursor.u32()?;
            let extents = Extents(cursor.rest());
            let whole = !cursor.rest().is_empty() && cursor.rest().len().is_multiple_of(8);
            if !whole || extents.into_iter().any(|extent| extent.length == 0) {
                return None;
            }
            Body::BlockStatus { context, extents }
        }
        _ if kind & chunk::ERROR_BIT != 0 => error(kind, cursor)?,
        _ => return None,
    })
}

/// All error types, known or not, start with the same fields.
fn error(kind: u16, mut cursor: Cursor<'_>) -> Option<Body<'_>> {
    // Error number 0 in an error chunk still means failure.
    let errno = Errno::from_wire(cursor.u32()?).unwrap_or(Errno::Inval);
    let length = cursor.u16()?;
    let message = cursor.bytes(u32::from(length))?;
    let message = core::str::from_utf8(message).unwrap_or("(a message that is not UTF-8)");
    let offset = if kind == chunk::ERROR_OFFSET { Some(cursor.u64()?) } else { None };
    Some(Body::Error { errno, message, offset })
}
