//! Waiting for many descriptors or for a deadline.

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use weir_units::Span;
use weir_units::time::NANOS_PER_SEC;

/// Events taken at once; what is left comes with the next wait.
const EVENTS: usize = 256;

/// What a descriptor is watched for. An end or an error of it is always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// There is something to read.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
}

impl Interest {
    /// Something to read, nothing else.
    pub const READ: Self = Self { read: true, write: false };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// What happened to a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The key under which it was added.
    pub key: u64,
    /// There is something to read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The other side is gone, or the descriptor is in error.
    pub ended: bool,
}

/// Room for what a wait tells.
pub struct Events(Vec<epoll::Event>);

impl Events {
    /// Room for events, and none yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::with_capacity(EVENTS))
    }

    /// What the last wait told.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.0.iter().map(event)
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

/// A set of descriptors that are watched. It keeps nothing open: a descriptor that
/// is closed leaves the set.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// A set of none.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::Unsupported`] from a Linux older than
    /// 5.11, which waits for whole milliseconds only.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // With room for no event the call is refused, by a kernel that knows it.
        let mut none: [epoll::Event; 0] = [];
        match epoll::wait(&epoll, &mut none, Some(&timespec(Span::ZERO))) {
            Err(Errno::NOSYS) => {
                let reason = "waiting to the nanosecond (epoll_pwait2) needs Linux 5.11 or newer";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
            _ => Ok(Self { epoll }),
        }
    }

    /// Watches `fd`, and names it by `key`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn add(&self, fd: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), interest.flags())?)
    }

    /// Watches `fd`, which was added, for something else from now on.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn modify(&self, fd: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(key), interest.flags())?)
    }

    /// Waits until something happens or `timeout` has passed, for ever without one.
    /// A signal ends the wait too, with nothing.
    ///
    /// # Errors
    ///
    /// What the system says.
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
    let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let nanos = span.nanos();
    Timespec { tv_sec: part(nanos / NANOS_PER_SEC), tv_nsec: part(nanos % NANOS_PER_SEC) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn a_descriptor_is_told_by_its_key() {
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

    /// A wait of a third of a millisecond is no wait of a whole one. Another program
    /// may take the processor, so the shortest of many waits is what shows.
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
