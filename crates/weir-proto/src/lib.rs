//! The NBD protocol as bytes in, bytes out.
//!
//! Neither side here opens a socket, reads a clock or starts a thread; the crate
//! is `no_std`, so it cannot. Whoever drives it reads bytes from somewhere,
//! hands them in, and sends what was appended to a `Vec`. That makes every
//! message testable byte by byte and lets one codec serve an epoll loop, a test
//! over a pair of vectors and a fuzzer.
//!
//! Spoken is fixed newstyle with simple and structured replies, as in the
//! [protocol text](https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md).
//! TLS, extended headers and resize are not.
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | the handshake and [`server::parse_request`] |
//! | [`reply`] | what a server answers |
//! | [`client`] | the handshake and [`client::parse_reply`] |
//! | [`request`] | [`Request`] and its bytes |
//! | [`export`] | what is said about an export: flags, block sizes, extents |
//! | [`errno`] | the error numbers of the protocol |
//! | [`uri`] | `nbd://` and `nbd+unix://` |
//! | [`wire`] | the protocol's numbers, and its limits |
//! | [`fuzz`] | both sides on arbitrary bytes |
//!
//! An error is of one of two sorts. What can be answered is answered: a bad
//! option gets an error reply, a bad request is [`server::Parsed::Refused`] with
//! the errno to send. A [`ProtoError`] means that the two sides no longer agree
//! on where a message starts or what it means: drop the connection.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
mod cursor;
pub mod errno;
mod error;
pub mod export;
pub mod fuzz;
pub mod reply;
pub mod request;
pub mod server;
pub mod uri;
pub mod wire;

pub use errno::Errno;
pub use error::{BadUri, ProtoError};
pub use export::{BlockSizes, BlockState, Export, Extent, TransmissionFlags};
pub use request::{Command, CommandFlags, Request};
pub use uri::Uri;
