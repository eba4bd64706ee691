//! Requests in order of arrival, with latencies that become known later.
//!
//! A recorder learns of a request twice: when it arrives and when it completes. Requests complete
//! in another order than they arrive, and some traces list requests slightly out of order. An
//! [`Order`] holds requests back until those before them are complete.

use crate::request::Request;
use std::collections::BTreeMap;
use weir_units::{Instant, Span};

/// The most requests held back. Beyond, the oldest one is released without its latency.
const MOST_HELD: usize = 1 << 20;

/// A request that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(Instant, u64);

#[derive(Debug)]
struct Held {
    request: Request,
    /// It has begun and not ended.
    is_open: bool,
}

/// A queue that requests leave in order of arrival. Requests of the same time keep the order in
/// which they were added.
#[derive(Debug)]
pub struct Order {
    held: BTreeMap<Ticket, Held>,
    /// The number of requests that are held back for others that may have arrived earlier.
    window: usize,
    added: u64,
    /// Arrival of the last request that was released.
    released: Instant,
    late: u64,
    has_ended: bool,
}

impl Order {
    /// Creates a queue for requests of which each may be `window` places too late.
    #[must_use]
    pub const fn new(window: usize) -> Self {
        Self {
            held: BTreeMap::new(),
            window,
            added: 0,
            released: Instant::ZERO,
            late: 0,
            has_ended: false,
        }
    }

    /// Adds a complete request.
    pub fn add(&mut self, request: Request) {
        self.insert(request, false);
    }

    /// Adds a request that ends later. Its latency is that of [`end`](Self::end).
    pub fn begin(&mut self, request: Request) -> Ticket {
        self.insert(request, true)
    }

    fn insert(&mut self, mut request: Request, is_open: bool) -> Ticket {
        if request.at < self.released {
            self.late += 1;
            request.at = self.released;
        }
        let ticket = Ticket(request.at, self.added);
        self.added += 1;
        self.held.insert(ticket, Held { request, is_open });
        ticket
    }

    /// Ends a request. One that was released already keeps no latency.
    pub fn end(&mut self, ticket: Ticket, latency: Option<Span>) {
        if let Some(held) = self.held.get_mut(&ticket) {
            held.is_open = false;
            held.request.latency = latency;
        }
    }

    /// Removes a request that was not one after all.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.held.remove(&ticket);
    }

    /// Ends the input: the requests that are still open are released without a latency.
    pub fn finish(&mut self) {
        self.has_ended = true;
    }

    /// Returns the next request if nothing can come before it.
    pub fn pop(&mut self) -> Option<Request> {
        let is_full = self.held.len() > MOST_HELD;
        if self.held.len() <= self.window && !self.has_ended {
            return None;
        }
        let first = self.held.first_entry()?;
        if first.get().is_open && !self.has_ended && !is_full {
            return None;
        }
        let request = first.remove().request;
        self.released = request.at;
        Some(request)
    }

    /// Returns the next request if nothing can come before it and it arrived before `limit`.
    pub fn pop_before(&mut self, limit: Instant) -> Option<Request> {
        let is_before = self.held.first_key_value().is_some_and(|(first, _)| first.0 < limit);
        if is_before { self.pop() } else { None }
    }

    /// Returns the number of requests that came too late for their place. Each has the time of the
    /// request before it.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Returns the number of requests that have begun and not ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.held.values().filter(|held| held.is_open).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Kind;

    fn at(nanos: u64) -> Request {
        let at = Instant::from_nanos(nanos);
        Request { at, device: 0, kind: Kind::Read, offset: nanos, len: 512, latency: None }
    }

    fn drain(order: &mut Order) -> Vec<u64> {
        std::iter::from_fn(|| order.pop()).map(|request| request.offset).collect()
    }

    #[test]
    fn a_request_waits_for_those_before_it() {
        let mut order = Order::new(0);
        let first = order.begin(at(1));
        let second = order.begin(at(2));
        order.end(second, Some(Span::from_nanos(5)));
        assert!(drain(&mut order).is_empty());
        order.end(first, Some(Span::from_nanos(9)));
        let all: Vec<Request> = std::iter::from_fn(|| order.pop()).collect();
        let latencies = all.iter().map(|request| request.latency.map(Span::nanos));
        assert_eq!(latencies.collect::<Vec<_>>(), [Some(9), Some(5)]);
    }

    #[test]
    fn requests_that_are_cancelled_or_never_end_hold_nothing_back_for_ever() {
        let mut order = Order::new(0);
        let gone = order.begin(at(1));
        order.begin(at(2));
        order.add(at(3));
        order.cancel(gone);
        assert_eq!((drain(&mut order), order.open()), (vec![], 1));
        order.finish();
        assert_eq!(drain(&mut order), [2, 3]);
    }

    #[test]
    fn late_requests_are_sorted_within_the_window_and_counted_beyond_it() {
        let mut order = Order::new(2);
        [3, 1, 2, 5].iter().for_each(|nanos| order.add(at(*nanos)));
        assert_eq!(drain(&mut order), [1, 2]);
        order.add(at(1));
        order.finish();
        let rest: Vec<Request> = std::iter::from_fn(|| order.pop()).collect();
        assert_eq!(rest.iter().map(|r| r.at.nanos()).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!((rest[0].offset, order.late()), (1, 1));
    }
}
