//! The wall-clock driver: volumes that really store data and really hold the
//! limits, served over NBD.
//!
//! One thread per host owns that host's engine, its connections and the order of
//! everything on it; nothing on the data path is locked. What may wait for a medium
//! (all but a hot read of a volume in files) goes to a few workers and comes back.
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
//! | `starting` | bringing up hosts: layout, data directory, what is left out |
//! | [`host_loop`] | requests in, replies out, `now` as an argument |
//! | [`volume`] | the bytes of a volume and of a device |
//! | `reactor` | sockets and deadlines of one host |
//! | `connection` | the buffers of one client |
//! | [`disk`] | a device in process, without a socket |
//! | [`seat`] | who may write to a page blob |
//! | `listener` | accepting and the handshake |
//! | `local_socket` | a Unix socket to listen on |
//! | `places` | so many at once and no more |
//! | [`control`] | the control socket, both ends |
//! | [`notice`] | what a running server says unasked |
//! | [`observer`] | who hears what held each request |
//! | `worker` | what may wait, and the threads that do |
//! | [`error`] | what can go wrong, and what it is called on the wire |

#![forbid(unsafe_code)]

mod connection;
pub mod control;
pub mod disk;
pub mod error;
pub mod host_loop;
mod listener;
mod local_socket;
pub mod notice;
pub mod observer;
mod places;
mod reactor;
pub mod seat;
pub mod server;
mod starting;
pub mod volume;
mod worker;

pub use disk::{Answer, Ask, Disk, NotDone, Passing, Terms};
pub use error::ServerError;
pub use listener::Address;
pub use notice::{Listening, Notice};
pub use observer::Observer;
pub use seat::Seat;
pub use server::{Exported, Handle, Opened, Options, Paged, Server, Tiers};
pub use starting::MADE;
pub use weir_wall::Waiting;
