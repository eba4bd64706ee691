//! Replies, cut off the stream one by one without copying.

use super::Session;
use crate::cursor::Cursor;
use crate::errno::Errno;
use crate::error::ProtoError;
use crate::export::{BlockState, Extent};
use crate::wire::{self, chunk};

/// The longest chunk that is read: the largest payload and room for its fields.
const MAX_CHUNK: u32 = wire::MAX_PAYLOAD + (64 << 10);

/// What the front of the buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedReply<'a> {
    /// Not yet a whole reply: call again when the buffer has reached `at_least`
    /// bytes.
    NeedMore {
        /// In bytes, from the front of the buffer.
        at_least: usize,
    },
    /// A reply, or one chunk of it.
    Reply {
        /// The reply.
        reply: Reply<'a>,
        /// Drop so many bytes afterwards.
        consumed: usize,
    },
}

/// A simple reply, or one chunk of a structured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The cookie of the request it answers.
    pub cookie: u64,
    /// What it says.
    pub body: Body<'a>,
    /// Whether the request is answered in full; otherwise more chunks follow.
    pub done: bool,
}

/// What a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// Success, or just the end of the chunks.
    Nothing,
    /// Data of a read.
    Data {
        /// Where it belongs, from the start of the export. `None` in a simple
        /// reply, which holds all that was asked for.
        offset: Option<u64>,
        /// The data.
        data: &'a [u8],
    },
    /// Zeroes of a read.
    Hole {
        /// Where they belong, from the start of the export.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Extents from the request's offset on.
    BlockStatus {
        /// The number of the metadata context.
        context: u32,
        /// The extents.
        extents: Extents<'a>,
    },
    /// The request failed.
    Error {
        /// How.
        errno: Errno,
        /// What the server says of it, perhaps nothing.
        message: &'a str,
        /// Where, if the server said so.
        offset: Option<u64>,
    },
}

/// The extents of a block status, read as they are asked for.
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

/// Reads the reply at the front of `buf`.
///
/// A simple reply does not tell how much data it brings. `data_length` tells it:
/// given a cookie, the length of that read, 0 for anything else, `None` if no
/// such request is waiting. It is not asked in a session with structured
/// replies, whose simple replies bring no data.
///
/// # Errors
/// When the server cannot be understood: drop the connection.
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

/// The content of a chunk, `None` if it breaks the rules of its type.
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

/// An error of any type, known or not, starts alike.
fn error(kind: u16, mut cursor: Cursor<'_>) -> Option<Body<'_>> {
    // An error that says 0 is still one.
    let errno = Errno::from_wire(cursor.u32()?).unwrap_or(Errno::Inval);
    let length = cursor.u16()?;
    let message = cursor.bytes(u32::from(length))?;
    let message = core::str::from_utf8(message).unwrap_or("(a message that is not UTF-8)");
    let offset = if kind == chunk::ERROR_OFFSET { Some(cursor.u64()?) } else { None };
    Some(Body::Error { errno, message, offset })
}
