//! Polling of running systems: the counters of a database server or of this machine's disks, at a
//! fixed sampling interval, into one observation.
//!
//! ```text
//!   Poller (a thread for each system): at every tick --> poll --> answer --+
//!                                                                          v
//!                                       merged by time (TimeOrder) --> Recording --> observation
//! ```
//!
//! Each system is polled in its own thread, so that a server that hangs delays no other. The crate
//! prints nothing: a [`Watcher`] gets notes and progress, and says when to stop.

#![forbid(unsafe_code)]

mod credentials;
mod diskstats;
#[cfg(any(feature = "postgres", feature = "sqlserver"))]
mod endpoint;
mod error;
mod order;
mod poll;
#[cfg(feature = "postgres")]
mod postgres;
mod recording;
#[cfg(any(feature = "postgres", feature = "sqlserver"))]
mod secret;
#[cfg(feature = "sqlserver")]
mod sqlserver;

pub use credentials::Credentials;
pub use diskstats::Diskstats;
pub use error::LiveError;
pub use poll::{Greeting, Poll, PollError, Ticks};
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use recording::{Finished, Recording, System, Watcher, connect};
#[cfg(feature = "sqlserver")]
pub use sqlserver::SqlServer;
