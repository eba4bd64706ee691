//! The client's side of NBD over sockets: one connection, or several in an event loop.
//!
//! | module | holds |
//! |---|---|
//! | [`connection`] | one connection to an export |
//! | [`stop`] | a request to end the waits of a connection |
//! | [`tls`] | encryption, and the reasons why it fails |
//! | [`wires`] | several of them in an event loop |
//! | [`error`] | faults between here and a server |

#![forbid(unsafe_code)]

pub mod connection;
pub mod error;
pub mod stop;
pub mod tls;
pub mod wires;

pub use connection::{Answer, Bulk, Connection, Payloads, Socket};
pub use error::ClientError;
pub use stop::Stop;
pub use wires::{WireId, Wires};
