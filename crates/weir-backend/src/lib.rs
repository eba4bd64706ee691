//! Stores on other systems: an export of an NBD server, a block device, or a file of fixed size.
//!
//! ```text
//!   callers --request--> Book: what may be sent, what is in flight, what is not flushed
//!      ^                   | one thread for each volume
//!      +------answer-------+--> connections --> NBD server
//!                          +<-- redial: connects again after a loss
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`remote`] | [`RemoteStore`], a store on an NBD server |
//! | [`held`] | [`HeldFile`], a store on a block device or in a file |
//! | [`condition`] | the state of the connection to a server, for people |
//! | [`error`] | reasons why a backend cannot be used |
//! | `book` | requests and their order, without sockets and clock |
//! | `unflushed` | answered writes that no flush covers |
//! | `witness` | samples of what a server has made durable, to be read after a reconnect |
//! | `deadlines` | the ends of the timeouts of requests |
//! | `line`, `pump` | the thread of a volume, and the way to it |
//! | `dial`, `redial` | connections, and the checks of what a server offers |
//! | `edges` | requests that are not aligned to the server's blocks |
//!
//! An answered write that no flush covers is kept in memory. After a loss of the connection it is
//! written again before anything else is sent, so that a server which restarts loses nothing that was
//! answered. Requests that overlap are never in flight together, unless both are reads. The order in
//! which a server executes requests of several connections therefore does not matter.

#![forbid(unsafe_code)]

mod book;
pub mod condition;
mod deadlines;
mod dial;
mod edges;
pub mod error;
pub mod held;
mod line;
mod pump;
mod redial;
pub mod remote;
mod unflushed;
mod witness;

pub use condition::{Condition, State};
pub use error::BackendError;
pub use held::HeldFile;
pub use remote::{RemoteOptions, RemoteStore};
