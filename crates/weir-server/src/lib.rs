//! The wall-clock driver: volumes that store data and keep to their limits, served over NBD.
//!
//! One thread per host owns the host's engine and connections, and orders all of its operations, so
//! the data path has no locks. Operations that may wait for a medium (all but hot reads of a volume
//! in files) run on a few workers.
//!
//! ```text
//!   listener --handshake--> reactor (one per host) <--commands-- control socket
//!                             |  take, parse, admit, execute, complete
//!                             +--> HostLoop: engine + stores, no sockets, no clock
//!                             +--> workers: writes in order, syncs, cold reads
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | starting, stopping, the parts together |
//! | `starting` | the start of hosts: layout, data directory, refused volumes |
//! | [`host_loop`] | requests in, replies out, `now` as an argument |
//! | [`volume`] | the bytes of a volume and of a device |
//! | `reactor` | sockets and deadlines of one host |
//! | `mailbox` | the way to a host's thread, for other threads |
//! | `errand` | requests without a socket |
//! | `bounds` | the limits of what clients can take |
//! | `connection` | the buffers of one client |
//! | [`disk`] | a device in process, without a socket |
//! | [`seat`] | the clients that may write to a page blob |
//! | `door` | limits of clients and of unfinished handshakes |
//! | `listener` | accepted connections, and the exports |
//! | `handshake` | the handshake of a client, and the exports that it may see |
//! | [`audit`] | a line for each refused request |
//! | `memory` | the memory for payloads, and its division among clients |
//! | `local_socket` | a Unix socket to listen on |
//! | `places` | a limit of concurrent connections |
//! | [`control`] | the control socket, both ends |
//! | [`notice`] | notices of a running server to its operator |
//! | `tap` | the requests of a host, for a recording |
//! | [`observer`] | the receiver of each request's waits |
//! | `worker` | operations that may wait, and their threads |
//! | [`error`] | errors, and their numbers on the wire |

#![forbid(unsafe_code)]

pub mod audit;
mod backing;
mod bounds;
mod connection;
pub mod control;
pub mod disk;
mod door;
mod errand;
pub mod error;
mod handshake;
pub mod host_loop;
mod listener;
mod local_socket;
mod mailbox;
mod memory;
pub mod notice;
pub mod observer;
mod passed;
mod places;
mod reactor;
pub mod seat;
pub mod server;
mod starting;
mod tap;
mod tls;
pub mod volume;
mod worker;

pub use audit::{Audit, FrontEnd};
pub use bounds::Bounds;
pub use disk::{Answer, Ask, Disk, NotDone, Passing, Terms};
pub use error::ServerError;
pub use listener::Address;
pub use notice::{Listening, Notice};
pub use observer::Observer;
pub use seat::Seat;
pub use server::{Exported, Handle, Opened, Options, Paged, Server, Tiers};
pub use starting::MADE;
pub use tls::Tls;
pub use weir_wall::Waiting;
