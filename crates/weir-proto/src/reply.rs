//! Replies of a server to requests, appended to a `Vec`.
//!
//! Use [`read_header`] followed by the data for a read, [`block_status`] for a block status, [`ok`]
//! for the success of other requests, and [`error`] for a failure.

use crate::cursor::{Put, clip, wire_len};
use crate::errno::Errno;
use crate::export::Extent;
use crate::wire::{self, chunk};
use alloc::vec::Vec;

/// Appends a simple reply. For a read, the data follows it. `None` means success.
#[inline]
pub fn simple(out: &mut Vec<u8>, cookie: u64, errno: Option<Errno>) {
    out.reserve(wire::SIMPLE_HEADER);
    out.put_u32(wire::SIMPLE_REPLY);
    out.put_u32(errno.map_or(0, Errno::to_wire));
    out.put_u64(cookie);
}

/// Appends the success of a request without data, in the simple form, which is the shorter one and
/// allowed in every session.
#[inline]
pub fn ok(out: &mut Vec<u8>, cookie: u64) {
    simple(out, cookie, None);
}

/// Appends the header for the `length` bytes of a read, which the caller appends or sends after it.
/// The read can no longer fail after this.
///
/// `structured` is [`crate::server::Session::structured`].
#[inline]
pub fn read_header(out: &mut Vec<u8>, structured: bool, cookie: u64, offset: u64, length: u32) {
    if !structured {
        return simple(out, cookie, None);
    }
    if length == 0 {
        // A data chunk holds at least one byte.
        return done(out, cookie);
    }
    assert!(length <= wire::MAX_PAYLOAD, "a read of {length} bytes was let through");
    put_chunk(out, chunk::OFFSET_DATA, true, cookie, length + 8);
    out.put_u64(offset);
}

/// Appends a hole in a structured read reply: `length` zero bytes that are not sent. It is not
/// allowed with the DF flag, unless it is the whole reply.
pub fn hole(out: &mut Vec<u8>, cookie: u64, offset: u64, length: u32, is_last: bool) {
    assert!(length > 0, "a hole of no bytes is not allowed by the protocol");
    put_chunk(out, chunk::OFFSET_HOLE, is_last, cookie, 12);
    out.put_u64(offset);
    out.put_u32(length);
}

/// Appends the end of a structured reply.
pub fn done(out: &mut Vec<u8>, cookie: u64) {
    put_chunk(out, chunk::NONE, true, cookie, 0);
}

/// Appends a failure, with a message in sessions with structured replies.
pub fn error(out: &mut Vec<u8>, structured: bool, cookie: u64, errno: Errno, message: &str) {
    if !structured {
        return simple(out, cookie, Some(errno));
    }
    let message = clip(message).as_bytes();
    let length = wire_len(message.len());
    put_chunk(out, chunk::ERROR, true, cookie, 6 + length);
    out.put_u32(errno.to_wire());
    out.extend_from_slice(&length.to_be_bytes()[2..]);
    out.extend_from_slice(message);
}

/// Appends the reply to a block status: at least one extent, starting at the request's offset and
/// together not longer than the request. With [`crate::CommandFlags::REQ_ONE`] there is only one.
pub fn block_status(out: &mut Vec<u8>, cookie: u64, context: u32, extents: &[Extent]) {
    assert!(!extents.is_empty(), "a block status without an extent is not allowed");
    put_chunk(out, chunk::BLOCK_STATUS, true, cookie, wire_len(4 + extents.len() * 8));
    out.put_u32(context);
    for extent in extents {
        out.put_u32(extent.length);
        out.put_u32(extent.state.bits());
    }
}

#[inline]
fn put_chunk(out: &mut Vec<u8>, kind: u16, is_last: bool, cookie: u64, length: u32) {
    out.reserve(wire::CHUNK_HEADER + 8);
    out.put_u32(wire::STRUCTURED_REPLY);
    out.put_u16(if is_last { chunk::FLAG_DONE } else { 0 });
    out.put_u16(kind);
    out.put_u64(cookie);
    out.put_u32(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::BlockState;

    #[track_caller]
    fn check(put: impl FnOnce(&mut Vec<u8>), expect: &[u8]) {
        let mut out = Vec::new();
        put(&mut out);
        assert_eq!(out, expect);
    }

    #[test]
    fn simple_replies() {
        check(|out| ok(out, 7), b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07");
        check(
            |out| simple(out, u64::MAX, Some(Errno::NoSpc)),
            b"\x67\x44\x66\x98\0\0\0\x1c\xff\xff\xff\xff\xff\xff\xff\xff",
        );
        check(
            |out| error(out, false, 7, Errno::Io, "not sent"),
            b"\x67\x44\x66\x98\0\0\0\x05\0\0\0\0\0\0\0\x07",
        );
        check(
            |out| read_header(out, false, 7, 4096, 512),
            b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07",
        );
    }

    #[test]
    fn structured_replies() {
        check(
            |out| read_header(out, true, 7, 4096, 512),
            b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x07\0\0\x02\x08\0\0\0\0\0\0\x10\0",
        );
        check(
            |out| read_header(out, true, 7, 4096, 0),
            b"\x66\x8e\x33\xef\0\x01\0\0\0\0\0\0\0\0\0\x07\0\0\0\0",
        );
        check(
            |out| hole(out, 7, 4096, 512, false),
            b"\x66\x8e\x33\xef\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\0\0\0\x10\0\0\0\x02\0",
        );
        check(
            |out| error(out, true, 7, Errno::Inval, "no"),
            b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x07\0\0\0\x08\0\0\0\x16\0\x02no",
        );
    }

    #[test]
    fn block_status_lists_lengths_and_states() {
        let extents = [
            Extent { length: 4096, state: BlockState::NONE },
            Extent { length: 512, state: BlockState::HOLE | BlockState::ZERO },
        ];
        check(
            |out| block_status(out, 7, 1, &extents),
            b"\x66\x8e\x33\xef\0\x01\0\x05\0\0\0\0\0\0\0\x07\0\0\0\x14\0\0\0\x01\
              \0\0\x10\0\0\0\0\0\0\0\x02\0\0\0\0\x03",
        );
    }

    #[test]
    fn a_long_message_is_truncated_between_characters() {
        let mut out = Vec::new();
        error(&mut out, true, 7, Errno::Io, &"é".repeat(4000));
        assert_eq!(out.len(), 20 + 6 + 4096);
        out.clear();
        error(&mut out, true, 7, Errno::Io, &alloc::format!("x{}", "é".repeat(4000)));
        assert_eq!(out.len(), 20 + 6 + 4095);
    }
}
