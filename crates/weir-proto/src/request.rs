//! Requests, as used by both sides.

use crate::cursor::Put;
use crate::wire::{self, flags};
use alloc::vec::Vec;

/// The commands of the transmission phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read a range.
    Read,
    /// Write a range; the only command with a payload.
    Write,
    /// End the session; has no reply.
    Disconnect,
    /// Make every completed write durable.
    Flush,
    /// Deallocate a range.
    Trim,
    /// Prefetch a range into a cache.
    Cache,
    /// Make a range read as zeroes.
    WriteZeroes,
    /// Return the allocation state of a range.
    BlockStatus,
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Disconnect,
        Self::Flush,
        Self::Trim,
        Self::Cache,
        Self::WriteZeroes,
        Self::BlockStatus,
    ];

    /// Returns the number on the wire.
    #[must_use]
    pub(crate) const fn to_wire(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
        }
    }

    /// Decodes a number; `None` if it is unknown.
    #[must_use]
    pub const fn from_wire(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            _ => return None,
        })
    }
}

flags! {
    /// Command flags.
    CommandFlags(u16) {
        /// Reply only when the data is durable.
        FUA = 0;
        /// `WRITE_ZEROES`: keep the space allocated.
        NO_HOLE = 1;
        /// READ: reply in a single chunk.
        DF = 2;
        /// `BLOCK_STATUS`: return one extent only.
        REQ_ONE = 3;
        /// `WRITE_ZEROES`: fail if zeroing is not faster than writing.
        FAST_ZERO = 4;
    }
}

/// A request without the payload of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// Command flags.
    pub flags: CommandFlags,
    /// Chosen by the client and returned in the reply.
    pub cookie: u64,
    /// Offset within the export, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl Request {
    /// Builds a request without flags.
    #[must_use]
    pub const fn new(command: Command, cookie: u64, offset: u64, length: u32) -> Self {
        Self { command, flags: CommandFlags::NONE, cookie, offset, length }
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with(mut self, flags: CommandFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Appends the 28 bytes of the request header. The payload of a write follows.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(wire::REQUEST_HEADER);
        out.put_u32(wire::REQUEST);
        out.put_u16(self.flags.bits());
        out.put_u16(self.command.to_wire());
        out.put_u64(self.cookie);
        out.put_u64(self.offset);
        out.put_u32(self.length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: Request, expect: &[u8]) {
        let mut out = Vec::new();
        request.encode(&mut out);
        assert_eq!(out, expect);
    }

    #[test]
    fn a_request_is_28_bytes_in_network_order() {
        check(
            Request::new(Command::Read, 0x0102_0304_0506_0708, 0x1122_3344_5566_7788, 0xa0b0_c0d0),
            b"\x25\x60\x95\x13\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\
              \x11\x22\x33\x44\x55\x66\x77\x88\xa0\xb0\xc0\xd0",
        );
        check(
            Request::new(Command::WriteZeroes, 1, 4096, 512)
                .with(CommandFlags::FUA | CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO),
            b"\x25\x60\x95\x13\0\x13\0\x06\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x10\0\0\0\x02\0",
        );
    }

    #[test]
    fn commands_and_flags_have_the_numbers_of_the_protocol() {
        assert_eq!(Command::ALL.map(Command::to_wire), [0, 1, 2, 3, 4, 5, 6, 7]);
        for command in Command::ALL {
            assert_eq!(Command::from_wire(command.to_wire()), Some(command));
        }
        assert_eq!(Command::from_wire(8), None);
        assert_eq!(CommandFlags::REQ_ONE.bits(), 8);
        assert_eq!(CommandFlags::DF.bits(), 4);
    }
}
