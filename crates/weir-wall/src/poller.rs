//! Waiting for many descriptors or a deadline.

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use weir_units::Span;
use weir_units::time::NANOS_PER_SEC;

/// Maximum number of events per wait. Further ones are returned by the next wait.
const EVENTS: usize = 256;

/// The conditions that a descriptor is watched for. Its end and errors are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Readable.
    pub read: bool,
    /// Writable.
    pub write: bool,
}

impl Interest {
    /// Readable only.
    pub const READ: Self = Self { read: true, write: false };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// An event of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The key given when the descriptor was added.
    pub key: u64,
    /// Data can be read.
    pub readable: bool,
    /// Data can be written.
    pub writable: bool,
    /// The peer closed the connection, or the descriptor has an error.
    pub ended: bool,
}

/// A buffer for the events of a wait.
pub struct Events(Vec<epoll::Event>);

impl Events {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::with_capacity(EVENTS))
    }

    /// Iterates over the events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.0.iter().map(event)
    }

    /// Returns whether the last wait ended without events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A set of watched descriptors. It does not keep them open: a closed descriptor leaves the set.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// Creates an empty set.
    ///
    /// # Errors
    ///
    /// The system's error. [`io::ErrorKind::Unsupported`] before Linux 5.11, which only supports
    /// waits in whole milliseconds.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // A buffer without space is invalid, so a kernel that knows the call returns an error other
        // than ENOSYS.
        let mut none: [epoll::Event; 0] = [];
        match epoll::wait(&epoll, &mut none, Some(&timespec(Span::ZERO))) {
            Err(Errno::NOSYS) => {
                let reason = "waiting to the nanosecond (epoll_pwait2) needs Linux 5.11 or newer";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
            _ => Ok(Self { epoll }),
        }
    }

    /// Watches `fd` under a key.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn add(&self, fd: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), interest.flags())?)
    }

    /// Changes the conditions of a watched `fd`.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn modify(&self, fd: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(key), interest.flags())?)
    }

    /// Watches `fd` no more. One that is closed need not be removed.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn remove(&self, fd: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits for events until `timeout`, or without a limit. A signal also ends the wait, without
    /// events.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn wait(&self, events: &mut Events, timeout: Option<Span>) -> io::Result<()> {
        events.0.clear();
        let timeout = timeout.map(timespec);
        match epoll::wait(&self.epoll, spare_capacity(&mut events.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn event(event: &epoll::Event) -> Event {
    let flags = event.flags;
    Event {
        key: event.data.u64(),
        readable: flags.contains(epoll::EventFlags::IN),
        writable: flags.contains(epoll::EventFlags::OUT),
        ended: flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR),
    }
}

fn timespec(span: Span) -> Timespec {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let nanos = span.nanos();
    Timespec { tv_sec: signed(nanos / NANOS_PER_SEC), tv_nsec: signed(nanos % NANOS_PER_SEC) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn events_have_the_key_of_their_descriptor() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::new());
        let fd = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
        poller.add(&fd, 7, Interest::READ).unwrap();
        poller.wait(&mut events, None).unwrap();
        let expect = Event { key: 7, readable: true, writable: false, ended: false };
        assert_eq!(events.iter().collect::<Vec<_>>(), [expect]);
        poller.modify(&fd, 8, Interest { read: false, write: true }).unwrap();
        poller.wait(&mut events, None).unwrap();
        let expect = Event { key: 8, readable: false, writable: true, ended: false };
        assert_eq!(events.iter().collect::<Vec<_>>(), [expect]);
        drop(fd);
        poller.wait(&mut events, Some(Span::ZERO)).unwrap();
        assert_eq!(events.iter().count(), 0);
    }

    /// A wait of a third of a millisecond must not last a whole one. Other programs may delay
    /// single waits, so the shortest of many counts.
    #[test]
    fn deadlines_are_not_rounded_to_milliseconds() {
        let (poller, mut events) = (Poller::new().unwrap(), Events::new());
        let (third, clock) = (Span::from_micros(333), Clock::start());
        let waited = (0..500).map(|_| {
            let from = clock.now();
            poller.wait(&mut events, Some(third)).unwrap();
            clock.now() - from
        });
        let waited = waited.min().unwrap();
        assert!(waited >= third, "{waited:?}");
        assert!(waited < Span::from_micros(1000), "{waited:?}");
    }
}
