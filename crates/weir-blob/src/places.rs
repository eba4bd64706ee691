//! Limits of connections: in all, and of a client address.
//!
//! At a limit, the connection that has been idle for the longest time is closed, so that clients that say
//! nothing cannot keep others out. A connection with a request in flight is never closed for another.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// The places for connections.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_of_address: usize,
    /// In the order of their start.
    taken: RefCell<BTreeMap<u64, Rc<Place>>>,
    /// Counts starts of connections and ends of requests, whose order is the age of idle connections.
    clock: Rc<Cell<u64>>,
    /// Notified when a connection ends.
    freed: Notify,
}

/// The place of a connection.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    from: IpAddr,
    clock: Rc<Cell<u64>>,
    /// When it became idle, by `clock`.
    since: Cell<u64>,
    /// Requests in flight.
    busy: Cell<usize>,
    /// The rest of a request was not read.
    is_cut: Cell<bool>,
    ended: Notify,
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Work(Rc<Place>);

/// A taken place. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    places: Rc<Places>,
    pub(crate) place: Rc<Place>,
}

impl Places {
    pub(crate) fn new(most: usize, most_of_address: usize) -> Rc<Self> {
        let (taken, clock, freed) = (RefCell::default(), Rc::default(), Notify::new());
        Rc::new(Self { most, most_of_address, taken, clock, freed })
    }

    /// Takes a place for a client. Returns `None` if all places that it could get have requests in
    /// flight.
    pub(crate) fn take(self: &Rc<Self>, from: IpAddr) -> Option<Taken> {
        let from = from.to_canonical();
        let of_address = self.taken.borrow().values().filter(|place| place.from == from).count();
        if of_address >= self.most_of_address {
            self.close_idle(|place| place.from == from)?;
        } else if self.taken.borrow().len() >= self.most {
            self.close_idle(|_| true)?;
        }
        let number = tick(&self.clock);
        let place = Rc::new(Place {
            number,
            from,
            clock: Rc::clone(&self.clock),
            since: Cell::new(number),
            busy: Cell::default(),
            is_cut: Cell::default(),
            ended: Notify::new(),
        });
        self.taken.borrow_mut().insert(number, Rc::clone(&place));
        Some(Taken { places: Rc::clone(self), place })
    }

    /// Closes the connection that has been idle for the longest time.
    fn close_idle(&self, may_go: impl Fn(&Place) -> bool) -> Option<()> {
        let mut taken = self.taken.borrow_mut();
        let idle = taken.values().filter(|place| place.busy.get() == 0 && may_go(place));
        let number = idle.min_by_key(|place| place.since.get())?.number;
        taken.remove(&number)?.ended.notify_one();
        Some(())
    }

    /// Waits until all connections have ended.
    pub(crate) async fn all_free(&self) {
        while !self.taken.borrow().is_empty() {
            self.freed.notified().await;
        }
    }
}

impl Place {
    /// Registers a request in flight.
    pub(crate) fn begin(self: &Rc<Self>) -> Work {
        self.busy.set(self.busy.get() + 1);
        Work(Rc::clone(self))
    }

    /// Waits until the connection has to end for another.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Notes that the rest of a request will not be read.
    pub(crate) fn cut(&self) {
        self.is_cut.set(true);
    }

    /// Returns whether the rest of a request was not read.
    pub(crate) fn was_cut(&self) -> bool {
        self.is_cut.get()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
        self.0.since.set(tick(&self.0.clock));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.places.taken.borrow_mut().remove(&self.place.number);
        self.places.freed.notify_one();
    }
}

fn tick(clock: &Cell<u64>) -> u64 {
    clock.set(clock.get() + 1);
    clock.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn numbers(places: &Places) -> Vec<u64> {
        places.taken.borrow().keys().copied().collect()
    }

    #[test]
    fn the_connection_that_was_idle_longest_makes_room() {
        let places = Places::new(4, 3);
        let all: Vec<_> = (0..3).filter_map(|_| places.take(HERE)).collect();
        // The first one had a request since, so the second one has been idle for longer.
        drop(all[0].place.begin());
        let fourth = places.take(HERE).expect("a place");
        assert_eq!(numbers(&places), [1, 3, 5]);
        // Of another address, until all places are taken.
        let other = places.take(THERE).expect("a place");
        let _works: Vec<_> = all.iter().chain([&fourth]).map(|one| one.place.begin()).collect();
        let another = places.take(THERE).expect("the idle one goes");
        assert_eq!(numbers(&places), [1, 3, 5, 7]);
        let _work = another.place.begin();
        assert!(places.take(THERE).is_none() && places.take(HERE).is_none());
        drop((all, fourth, other, another));
        assert!(numbers(&places).is_empty());
    }
}
