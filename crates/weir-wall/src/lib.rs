//! Wall time for the drivers: the server's, which completes requests when the
//! engine says, and the runner's, which issues them when the workload says. Both
//! read one clock and wait for sockets until a deadline, to the nanosecond: with
//! deadlines rounded up to the milliseconds of `epoll_wait`, a disk of 1 ms
//! latency would serve little more than half of its requests at low depth.

#![forbid(unsafe_code)]

mod clock;
mod poller;

pub use clock::{Clock, calendar};
pub use poller::{Event, Events, Interest, Poller};
