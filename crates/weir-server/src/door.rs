//! Limits of clients: in all, and during their handshakes.
//!
//! When too many handshakes are unfinished, the oldest client that has said nothing is disconnected.
//! Silent clients therefore cannot keep others out.

use crate::bounds::Bounds;
use crate::connection::Stream;
use crate::notice::{Listening, Notice};
use crate::places::{Place, Places};
use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// The least time between two notices of a kind.
const QUIET: Span = Span::from_secs(60);

/// The limits of a server's clients, for all of its listeners.
#[derive(Debug)]
pub(crate) struct Door {
    bounds: Bounds,
    clients: Places,
    guests: Mutex<Guests>,
    thread_ended: Condvar,
    clock: Clock,
    notices: Listening,
}

#[derive(Debug, Default)]
struct Guests {
    /// In the order of their arrival.
    unfinished: BTreeMap<u64, Arc<Guest>>,
    next: u64,
    /// Threads of handshakes. Disconnected clients have theirs for a moment.
    threads: usize,
    silent: Tally,
    too_many: Tally,
}

/// A client during its handshake.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) stream: Stream,
    pub(crate) has_spoken: AtomicBool,
}

/// The place of a client during its handshake.
#[derive(Debug)]
pub(crate) struct Entry {
    door: Arc<Door>,
    number: u64,
    pub(crate) guest: Arc<Guest>,
    client: Option<Place>,
}

/// Events since the last notice.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    told: Option<Instant>,
}

impl Door {
    pub(crate) fn new(bounds: Bounds, clock: Clock, notices: Listening) -> Self {
        Self {
            bounds,
            clients: Places::new(bounds.clients),
            guests: Mutex::default(),
            thread_ended: Condvar::new(),
            clock,
            notices,
        }
    }

    /// Lets a client begin its handshake, and disconnects another if there are too many. Returns
    /// `None` if there are too many clients.
    pub(crate) fn enter(self: &Arc<Self>, stream: Stream) -> Option<Entry> {
        let mut guests = self.wait_for_threads();
        let Some(client) = self.clients.take() else {
            let clients = guests.too_many.count(self.clock.now());
            drop(guests);
            let most = self.bounds.clients;
            clients
                .into_iter()
                .for_each(|n| self.notices.tell(Notice::TooMany { most, clients: n }));
            return None;
        };
        let mut told = None;
        if guests.unfinished.len() >= self.bounds.handshakes {
            guests.disconnect_oldest();
            told = guests.silent.count(self.clock.now());
        }
        let number = guests.next;
        guests.next += 1;
        guests.threads += 1;
        let guest = Arc::new(Guest { stream, has_spoken: AtomicBool::new(false) });
        guests.unfinished.insert(number, Arc::clone(&guest));
        drop(guests);
        let most = self.bounds.handshakes;
        told.into_iter().for_each(|n| self.notices.tell(Notice::Silent { most, clients: n }));
        let door = Arc::clone(self);
        Some(Entry { door, number, guest, client: Some(client) })
    }

    /// Waits until there are fewer threads than twice the most handshakes. If there are more, half of
    /// them have disconnected clients, and end in a moment.
    fn wait_for_threads(&self) -> MutexGuard<'_, Guests> {
        let most = self.bounds.handshakes.saturating_mul(2);
        let too_many = |guests: &mut Guests| guests.threads >= most;
        let waited = self.thread_ended.wait_while(self.guests(), too_many);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    fn disconnect_oldest(&mut self) {
        let is_silent = |guest: &Guest| !guest.has_spoken.load(Ordering::Acquire);
        let silent = self.unfinished.iter().find(|(_, guest)| is_silent(guest));
        let Some((number, _)) = silent.or_else(|| self.unfinished.first_key_value()) else {
            return;
        };
        let number = *number;
        if let Some(guest) = self.unfinished.remove(&number) {
            // Its thread sees the end. A client that has just gone is no error.
            let _ = shutdown(&guest.stream, Shutdown::Both);
        }
    }
}

impl Entry {
    /// Returns the longest time for the handshake.
    pub(crate) fn longest(&self) -> Span {
        self.door.bounds.handshake
    }

    /// Ends the handshake. Returns the stream and its place among the clients.
    pub(crate) fn establish(mut self) -> Option<(Stream, Place)> {
        let (guest, client) = (Arc::clone(&self.guest), self.client.take());
        drop(self);
        // Nobody else has the guest after it has left.
        Some((Arc::into_inner(guest)?.stream, client?))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut guests = self.door.guests();
        guests.unfinished.remove(&self.number);
        guests.threads -= 1;
        self.door.thread_ended.notify_one();
    }
}

impl Tally {
    /// Counts an event at `now`. Returns the number of events if a notice is due.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        let is_due = self.told.is_none_or(|told| now - told >= QUIET);
        is_due.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn door(clients: usize, handshakes: usize) -> (Arc<Door>, Arc<Mutex<Vec<Notice>>>) {
        let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let hear = Arc::clone(&told);
        let notices = Listening::with(move |notice| hear.lock().unwrap().push(notice));
        let bounds = Bounds { clients, handshakes, ..Bounds::default() };
        (Arc::new(Door::new(bounds, Clock::start(), notices)), told)
    }

    fn connect(door: &Arc<Door>) -> (UnixStream, Option<Entry>) {
        let (own, client) = UnixStream::pair().unwrap();
        (client, door.enter(Stream::Unix(own)))
    }

    #[test]
    fn the_oldest_silent_client_makes_room_and_one_notice_counts_them() {
        let (door, told) = door(100, 3);
        let mut clients: Vec<_> = (0..3).map(|_| connect(&door)).collect();
        let first = clients[0].1.as_ref().expect("a place");
        first.guest.has_spoken.store(true, Ordering::Release);
        clients.extend((0..2).map(|_| connect(&door)));
        for (n, (client, entry)) in clients.iter_mut().enumerate() {
            assert!(entry.is_some());
            client.set_nonblocking(true).unwrap();
            let is_cut = client.read(&mut [0]).is_ok_and(|n| n == 0);
            assert_eq!(is_cut, n == 1 || n == 2, "{n}");
        }
        assert_eq!(*told.lock().unwrap(), [Notice::Silent { most: 3, clients: 1 }]);
        let entry = clients.swap_remove(0).1.expect("a place");
        assert!(entry.establish().is_some());
        assert_eq!(door.guests().unfinished.len(), 2);
    }

    #[test]
    fn a_client_waits_for_the_threads_of_disconnected_ones() {
        let (door, _) = door(100, 1);
        let (_first, disconnected) = connect(&door);
        let (_second, unfinished) = connect(&door);
        let own = Arc::clone(&door);
        let third = std::thread::spawn(move || connect(&own).1.is_some());
        drop(disconnected);
        assert!(third.join().unwrap());
        drop(unfinished);
        assert_eq!(door.guests().threads, 0);
    }

    #[test]
    fn clients_beyond_the_most_are_rejected_until_one_goes() {
        let (door, told) = door(2, 8);
        let (_one, first) = connect(&door);
        let kept = first.expect("a place").establish();
        let (_two, second) = connect(&door);
        assert!(connect(&door).1.is_none() && connect(&door).1.is_none());
        assert_eq!(*told.lock().unwrap(), [Notice::TooMany { most: 2, clients: 1 }]);
        drop(kept);
        assert!(connect(&door).1.is_some());
        drop(second);
    }

    #[test]
    fn notices_are_given_at_most_once_a_minute() {
        let mut tally = Tally::default();
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        let told: Vec<_> = [0, 1, 59, 60, 61, 121].map(|secs| tally.count(at(secs))).into();
        assert_eq!(told, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
