//! Wall time for drivers: the server completes requests at the engine's deadlines, and the runner
//! issues them at the workload's times. Both read the same clock and wait for sockets until a
//! deadline with nanosecond resolution. With the millisecond resolution of `epoll_wait`, a disk
//! with 1 ms latency would serve little more than half of its requests at low queue depth. A
//! [`Sleeper`] makes up for the time that the system takes to wake a thread.

#![forbid(unsafe_code)]

mod clock;
mod lateness;
mod poller;
mod sleeper;

pub use clock::{Clock, calendar, process_time, thread_time};
pub use poller::{Event, Events, Interest, Poller};
pub use sleeper::{Sleeper, Waiting};
