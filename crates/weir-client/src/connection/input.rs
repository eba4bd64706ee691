//! Received bytes that wait to be parsed.
//!
//! ```text
//! |  consumed  |  bytes()  |  room  |
//! 0          start        end    capacity
//! ```
//! Bytes are moved to the front only when the room behind them runs short, and
//! then they are the beginning of one message.

use super::socket::Socket;
use std::io;

const CAPACITY: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; CAPACITY], start: 0, end: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "{bytes} bytes are consumed that are not there");
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Makes room for a message of `length` bytes whose beginning is here.
    pub(super) fn make_room(&mut self, length: usize) {
        if length > self.buffer.len() {
            self.buffer.resize(length, 0);
        }
        let short = self.buffer.len() - self.end < CAPACITY / 2;
        if self.start > 0 && (short || self.start + length > self.buffer.len()) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Receives once, into the room there is. 0 is the end of the stream.
    pub(super) fn fill_from(&mut self, socket: &Socket) -> io::Result<usize> {
        self.fill_up_to(socket, self.buffer.len() - self.end)
    }

    /// Receives once, at most `length` bytes. 0 is the end of the stream.
    pub(super) fn fill_up_to(&mut self, socket: &Socket, length: usize) -> io::Result<usize> {
        let room = &mut self.buffer[self.end..self.end + length];
        assert!(!room.is_empty(), "the buffer is full of a message that is not whole");
        loop {
            match socket.read(room) {
                Ok(received) => {
                    self.end += received;
                    return Ok(received);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
