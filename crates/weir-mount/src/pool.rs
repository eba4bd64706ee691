//! Threads for operations that may wait: syncs, reads from the medium, and requests that were not
//! admitted at once. The tickets of [`Flights`] limit the queues, so that releasing a request never
//! waits for space.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The thread pool. Up to half of its threads, rounded up, run syncs.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    most_syncing: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    syncs: VecDeque<Job>,
    syncing: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let threads = threads.max(2);
        let most_syncing = threads.div_ceil(2).min(threads - 1);
        let (state, wake) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { state, wake, most_syncing });
        let pool = Self { shared: Arc::clone(&shared) };
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name(format!("weir-mount-io{number}"));
            named.spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    pub(crate) fn run(&self, job: Job) {
        self.shared.lock().jobs.push_back(job);
        self.shared.wake.notify_one();
    }

    /// As [`Self::run`], for jobs that sync the medium.
    pub(crate) fn run_sync(&self, job: Job) {
        self.shared.lock().syncs.push_back(job);
        self.shared.wake.notify_one();
    }
}

impl Drop for Pool {
    /// The threads end when the queue is empty; this does not wait for them.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let sync = state.syncing < self.most_syncing && !state.syncs.is_empty();
            let job = if sync { state.syncs.pop_front() } else { state.jobs.pop_front() };
            if let Some(job) = job {
                state.syncing += usize::from(sync);
                drop(state);
                // A panic drops the job with its reply, so the request fails.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                state.syncing -= usize::from(sync);
            } else if state.closed && state.syncs.is_empty() {
                // Other threads may be waiting for the number of syncs to drop.
                self.wake.notify_all();
                return;
            } else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The requests in flight outside the threads that read from the kernel.
pub(crate) struct Flights {
    in_flight: Mutex<InFlight>,
    fewer: Condvar,
    most: InFlight,
}

#[derive(Debug, Default, Clone, Copy)]
struct InFlight {
    requests: usize,
    bytes: usize,
}

/// The share of a request in flight.
pub(crate) struct Ticket {
    flights: Arc<Flights>,
    bytes: usize,
}

impl Flights {
    pub(crate) fn new(requests: usize, bytes: usize) -> Self {
        let most = InFlight { requests, bytes };
        Self { in_flight: Mutex::default(), fewer: Condvar::new(), most }
    }

    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a ticket for a request that holds `bytes`. Waits if there is none; further requests
    /// then stay in the kernel.
    pub(crate) fn ticket(self: &Arc<Self>, bytes: usize) -> Ticket {
        let mut now = self.lock();
        while now.requests > 0
            && (now.requests >= self.most.requests || now.bytes + bytes > self.most.bytes)
        {
            now = self.fewer.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.requests += 1;
        now.bytes += bytes;
        Ticket { flights: Arc::clone(self), bytes }
    }

    /// Waits until no requests are in flight.
    pub(crate) fn wait_idle(&self) {
        let mut now = self.lock();
        while now.requests > 0 {
            now = self.fewer.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut now = self.flights.lock();
        now.requests -= 1;
        now.bytes -= self.bytes;
        drop(now);
        self.flights.fewer.notify_all();
    }
}

/// The number of reader threads that may do other work that could wait: all but one.
#[derive(Debug)]
pub(crate) struct Readers(AtomicUsize);

/// Permission to execute a request on the thread that read it.
pub(crate) struct Permit<'a>(&'a AtomicUsize);

impl Readers {
    pub(crate) fn new(threads: usize) -> Self {
        Self(AtomicUsize::new(threads.saturating_sub(1)))
    }

    pub(crate) fn permit(&self) -> Option<Permit<'_>> {
        let take = |free: usize| free.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Permit(&self.0))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn syncs_leave_a_thread_and_all_jobs_complete() {
        let pool = Pool::new(4).unwrap();
        let (hold, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (done, told) = channel();
        for number in 0..10 {
            let (held, done) = (Arc::clone(&held), done.clone());
            pool.run_sync(Box::new(move || {
                held.lock().unwrap().recv().unwrap();
                done.send(number).unwrap();
            }));
        }
        let job = done.clone();
        pool.run(Box::new(move || job.send(99).unwrap()));
        assert_eq!(told.recv().unwrap(), 99);
        for _ in 0..10 {
            hold.send(()).unwrap();
        }
        drop((pool, done));
        let mut all: Vec<_> = told.iter().collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_does_not_end_a_thread() {
        let pool = Pool::new(2).unwrap();
        for _ in 0..8 {
            pool.run(Box::new(|| panic!("on purpose")));
        }
        let (done, told) = channel();
        pool.run(Box::new(move || done.send(()).unwrap()));
        told.recv().unwrap();
    }

    #[test]
    fn requests_wait_for_tickets_and_oversized_ones_run_alone() {
        let flights = Arc::new(Flights::new(2, 100));
        let large = flights.ticket(1000);
        let (done, told) = channel();
        let others = Arc::clone(&flights);
        let waiting = std::thread::spawn(move || {
            let ticket = others.ticket(1);
            done.send(()).unwrap();
            drop(ticket);
        });
        assert!(told.try_recv().is_err());
        drop(large);
        told.recv().unwrap();
        flights.wait_idle();
        waiting.join().unwrap();
    }

    #[test]
    fn one_reader_has_no_permit() {
        let readers = Readers::new(3);
        let first = readers.permit();
        let second = readers.permit();
        assert!(first.is_some() && second.is_some() && readers.permit().is_none());
        drop(first);
        assert!(readers.permit().is_some());
        assert!(Readers::new(1).permit().is_none());
    }
}
