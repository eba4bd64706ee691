//! The NBD protocol as bytes in, bytes out.
//!
//! Neither side opens a socket, reads a clock or starts a thread; the crate is `no_std`. Its driver
//! passes in received bytes and sends the bytes that were appended to a `Vec`. Each message can
//! thus be tested byte by byte, and one codec serves an epoll loop, a test over two vectors and a
//! fuzzer.
//!
//! Fixed newstyle negotiation is supported with simple and structured replies, as in the [protocol
//! text](https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md). TLS, extended headers
//! and resize are not supported.
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | the handshake and [`server::parse_request`] |
//! | [`reply`] | encoding of replies |
//! | [`client`] | the handshake and [`client::parse_reply`] |
//! | [`request`] | [`Request`] and its bytes |
//! | [`export`] | flags, block sizes and extents of an export |
//! | [`errno`] | the error numbers of the protocol |
//! | [`uri`] | `nbd://` and `nbd+unix://` |
//! | [`wire`] | the protocol's numbers, and its limits |
//! | [`fuzz`] | both sides on arbitrary bytes |
//!
//! There are two kinds of errors. Recoverable ones are answered: a bad option gets an error reply,
//! and a bad request is [`server::Parsed::Refused`] with the errno to send. A [`ProtoError`] means
//! that the sides no longer agree on message boundaries or meaning, so the connection has to be
//! closed.

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
