//! The threads of one host for what may wait.
//!
//! An asynchronous store needs none for most operations.
//!
//! There are more threads if a store takes several operations at once. However many jobs there are and
//! whatever they wait for, a device has at most half of the threads at a time, and syncs have at most half of them, and half
//! of any device's. So a medium that stalls holds up its own device; and a read
//! or a write never waits until somebody's syncs are over. Devices take turns.
//!
//! Threads are started when there is first something to do for them.

use super::{Finished, Job, Report};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use weir_store::{AsyncStore, Store};

/// The maximum number of concurrent jobs of a host.
const THREADS: usize = 16;
/// The same if a store of the host takes several operations at once.
const THREADS_IF_DEEP: usize = 64;

/// The threads of one host.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: usize,
    most: usize,
    name: String,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    finished: Arc<Report>,
}

/// The jobs, and who may have the next.
struct State {
    /// The most jobs of one device, and the most syncs.
    share: usize,
    /// By device; those with nothing waiting and nothing running are not here.
    devices: BTreeMap<usize, Device>,
    /// Whose job was started last.
    turn: usize,
    syncing: usize,
    /// Threads that wait to be woken, and those that have been and are on their way.
    idle: usize,
    woken: usize,
    closed: bool,
}

#[derive(Default)]
struct Device {
    jobs: VecDeque<Job>,
    syncs: VecDeque<Job>,
    running: usize,
    syncing: usize,
}

impl State {
    fn new(share: usize) -> Self {
        Self {
            share,
            devices: BTreeMap::new(),
            turn: 0,
            syncing: 0,
            idle: 0,
            woken: 0,
            closed: false,
        }
    }

    fn push(&mut self, job: Job) {
        let device = self.devices.entry(job.device).or_default();
        if job.is_sync() { device.syncs.push_back(job) } else { device.jobs.push_back(job) }
    }

    /// Returns the device that may have its next job started, in turn.
    fn next(&self) -> Option<usize> {
        let share = self.share;
        let sync_allowed = self.syncing < share;
        let may = |device: &Device| {
            let sync = sync_allowed && device.syncing < share / 2 && !device.syncs.is_empty();
            device.running < share && (sync || !device.jobs.is_empty())
        };
        let later = self.devices.range(self.turn + 1..);
        let mut in_turn = later.chain(self.devices.range(..=self.turn));
        in_turn.find(|(_, device)| may(device)).map(|(id, _)| *id)
    }

    /// Takes the next job that may be started.
    fn take(&mut self) -> Option<Job> {
        let turn = self.next()?;
        self.turn = turn;
        let sync_allowed = self.syncing < self.share;
        let share = self.share;
        let device = self.devices.get_mut(&turn)?;
        // A sync is what others wait for, and there are never many.
        let sync = sync_allowed && device.syncing < share / 2;
        let job = match sync.then(|| device.syncs.pop_front()).flatten() {
            Some(job) => job,
            None => device.jobs.pop_front()?,
        };
        device.running += 1;
        device.syncing += usize::from(job.is_sync());
        self.syncing += usize::from(job.is_sync());
        Some(job)
    }

    /// Takes a thread from the idle ones, if there is one, to be notified.
    fn wake_one(&mut self) -> bool {
        let is_idle = self.idle > 0;
        self.idle -= usize::from(is_idle);
        self.woken += usize::from(is_idle);
        is_idle
    }

    fn ended(&mut self, id: usize, sync: bool) {
        let Some(device) = self.devices.get_mut(&id) else { return };
        device.running -= 1;
        device.syncing -= usize::from(sync);
        self.syncing -= usize::from(sync);
        if device.running == 0 && device.jobs.is_empty() && device.syncs.is_empty() {
            self.devices.remove(&id);
        }
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Workers {
    /// Starts without threads; `is_deep` if a store takes several operations at once.
    pub(crate) fn new(
        name: &str,
        is_deep: bool,
        finished: impl Fn(Finished) + Send + Sync + 'static,
    ) -> Self {
        let most = if is_deep { THREADS_IF_DEEP } else { THREADS };
        let (state, wake) = (Mutex::new(State::new(most / 2)), Condvar::new());
        let shared = Arc::new(Shared { state, wake, finished: Arc::new(finished) });
        Self { shared, threads: 0, most, name: name.to_owned() }
    }

    /// Passes jobs to asynchronous stores where possible, and the others to threads.
    pub(crate) fn run_all(&mut self, jobs: Vec<Job>) {
        let (mut begun, mut left): (Vec<Arc<dyn Store>>, Vec<Job>) = (Vec::new(), Vec::new());
        for job in jobs {
            match job.submit(&self.shared.finished) {
                Ok(store) if begun.iter().any(|other| Arc::ptr_eq(other, &store)) => {}
                Ok(store) => begun.push(store),
                Err(job) => left.push(job),
            }
        }
        // First, since a job that is done here may wait for those that were submitted.
        begun.iter().filter_map(|store| store.asynchronous()).for_each(AsyncStore::kick);
        left.into_iter().for_each(|job| self.run(job));
    }

    /// Allows as many threads as a store needs that takes several operations at once.
    pub(crate) fn deepen(&mut self) {
        self.most = THREADS_IF_DEEP;
        self.shared.lock().share = THREADS_IF_DEEP / 2;
    }

    /// Has `job` done by a thread; here and now if the system gives none.
    fn run(&mut self, job: Job) {
        let mut state = self.shared.lock();
        state.push(job);
        if state.wake_one() {
            drop(state);
            self.shared.wake.notify_one();
            return;
        }
        drop(state);
        if self.threads < self.most {
            let shared = Arc::clone(&self.shared);
            let started = std::thread::Builder::new()
                .name(format!("weir-{}-io", self.name))
                .spawn(move || shared.work());
            self.threads += usize::from(started.is_ok());
        }
        if self.threads == 0 {
            let job = self.shared.lock().take();
            if let Some(job) = job {
                self.shared.run(job);
            }
        }
    }
}

impl Drop for Workers {
    /// Ends the threads when nothing is left to do, without waiting for them.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, job: Job) {
        let (device, sync) = (job.device, job.is_sync());
        job.run(&mut |done| (self.finished)(done));
        self.lock().ended(device, sync);
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take() {
                // A sync that ends makes room in two shares, for a job in each.
                let wakes = state.next().is_some() && state.wake_one();
                drop(state);
                if wakes {
                    self.wake.notify_one();
                }
                self.run(job);
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                while state.woken == 0 && !state.closed {
                    state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.woken = state.woken.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Task;
    use super::*;
    use crate::volume::Work;
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use weir_store::{MemoryStore, Store};
    use weir_units::Bytes;

    const SHARE: usize = THREADS / 2;

    fn sync(device: usize) -> Job {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Bytes::ZERO));
        Job { device, task: Task::Sync { number: 1, store } }
    }

    fn lane(device: usize) -> Job {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Bytes::ZERO));
        Job { device, task: Task::Lane { volume: device, store, batch: vec![Work::Nothing] } }
    }

    /// Starts what may be started: (device, is a sync), in order.
    fn started(state: &mut State) -> Vec<(usize, bool)> {
        std::iter::from_fn(|| state.take()).map(|job| (job.device, job.is_sync())).collect()
    }

    #[test]
    fn a_device_has_half_of_the_threads_and_its_syncs_half_of_those() {
        let mut state = State::new(SHARE);
        (0..20).for_each(|_| state.push(sync(0)));
        assert_eq!(started(&mut state), [(0, true); SHARE / 2]);
        (0..20).for_each(|_| state.push(lane(0)));
        assert_eq!(started(&mut state), [(0, false); SHARE / 2]);
        state.push(lane(1));
        assert_eq!(started(&mut state), [(1, false)]);
        state.ended(0, true);
        assert_eq!(started(&mut state), [(0, true)]);
        state.ended(0, false);
        assert_eq!(started(&mut state), [(0, false)]);
    }

    #[test]
    fn syncs_have_half_of_the_threads_however_many_devices_there_are() {
        let mut state = State::new(SHARE);
        (0..THREADS).for_each(|device| state.push(sync(device)));
        assert_eq!(started(&mut state).len(), SHARE);
        state.push(lane(3));
        assert_eq!(started(&mut state), [(3, false)]);
    }

    #[test]
    fn devices_take_turns_and_leave_nothing_behind() {
        let mut state = State::new(SHARE);
        for device in [4, 4, 4, 2, 2, 7] {
            state.push(lane(device));
        }
        let turns: Vec<usize> = started(&mut state).iter().map(|(device, _)| *device).collect();
        assert_eq!(turns, [2, 4, 7, 2, 4, 4]);
        turns.iter().for_each(|device| state.ended(*device, false));
        assert!(state.devices.is_empty());
    }

    /// Jobs that have started, and that end when they are let go: (device, is a sync).
    #[derive(Default)]
    struct Gate {
        let_go: Mutex<Vec<(usize, bool)>>,
        changed: Condvar,
    }

    impl Gate {
        fn let_go(&self, job: (usize, bool)) {
            self.let_go.lock().expect("no panic").push(job);
            self.changed.notify_all();
        }

        fn pass(&self, job: (usize, bool)) {
            let mut let_go = self.let_go.lock().expect("no panic");
            loop {
                if let Some(at) = let_go.iter().position(|one| *one == job) {
                    let_go.swap_remove(at);
                    return;
                }
                let_go = self.changed.wait(let_go).expect("no panic");
            }
        }
    }

    #[test]
    fn a_sync_that_ends_lets_all_start_that_may() {
        let (sender, started) = channel();
        let gate = Arc::new(Gate::default());
        let held = Arc::clone(&gate);
        let mut workers = Workers::new("test", false, move |done| {
            let job = match done {
                Finished::Sync { device, .. } => (device, true),
                Finished::Lane { volume, .. } => (volume, false),
                other => panic!("unexpected result: {other:?}"),
            };
            let _ = sender.send(job);
            held.pass(job);
        });
        let next = || started.recv_timeout(Duration::from_secs(60)).ok();
        (0..4).for_each(|_| workers.run(sync(0)));
        (0..4).for_each(|_| workers.run(lane(0)));
        (0..4).for_each(|_| workers.run(sync(1)));
        (0..12).for_each(|_| assert!(next().is_some()));
        // The device has its share, and so have the syncs: a thread is idle.
        for job in [lane(0), sync(2)] {
            workers.run(job);
            let is_idle = |state: &State| state.idle == 1 && state.woken == 0;
            while !is_idle(&workers.shared.lock()) {
                std::thread::yield_now();
            }
        }
        gate.let_go((0, true));
        let mut both = [next(), next()];
        both.sort_unstable();
        assert_eq!(both, [Some((0, false)), Some((2, true))]);
        (0..3).for_each(|_| gate.let_go((0, true)));
        (0..5).for_each(|_| gate.let_go((0, false)));
        (0..4).for_each(|_| gate.let_go((1, true)));
        gate.let_go((2, true));
    }

    #[test]
    fn every_job_is_done_and_what_is_left_when_the_pool_goes() {
        let (sender, finished) = channel();
        let sender = Mutex::new(sender);
        let tell = move |done| drop(sender.lock().expect("no panic").send(done));
        let mut workers = Workers::new("test", false, tell);
        (0..500).for_each(|n| workers.run(sync(n % 5)));
        assert!(workers.threads <= THREADS);
        drop(workers);
        assert_eq!(finished.iter().count(), 500);
    }
}
