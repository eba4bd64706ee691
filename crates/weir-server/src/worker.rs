//! Jobs that may wait for a medium, and their results.
//!
//! [`Workers`] are the threads that execute them; a job that panics there counts as failed,
//! so that its request is answered. Asynchronous stores need no thread for most jobs.

mod pool;

pub(crate) use pool::Workers;

use crate::volume::{DeviceMap, Done, Work};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use weir_store::{Extent, Operation, Outcome, Store, StoreError, Then};

/// Jobs of a lane between two reports: a client that waits for the
/// first need not wait for the last.
const REPORT_AFTER: usize = 32;

/// A job that may wait for a medium.
#[derive(Debug)]
pub(crate) struct Job {
    /// For whom: each device gets its share of the threads.
    pub(crate) device: usize,
    pub(crate) task: Task,
}

#[derive(Debug)]
pub(crate) enum Task {
    /// A batch of a volume's lane, in order.
    Lane { volume: usize, store: Arc<dyn Store>, batch: Vec<Work> },
    /// One job of a volume's lane, beside others.
    Apart { volume: usize, job: u64, store: Arc<dyn Store>, work: Work },
    /// Makes a volume durable, for all requests of the device that wait for it.
    Sync { number: u64, store: Arc<dyn Store> },
    /// Reads for the request with that key.
    Read(Box<ReadJob>),
    /// An operation of an asynchronous store that it did not take.
    Waiting { store: Arc<dyn Store>, operation: Operation, then: Then },
    /// Looks where there is data, for the request with that key.
    Extents {
        key: usize,
        stores: Arc<[Arc<dyn Store>]>,
        map: DeviceMap,
        range: (u64, u64),
        max: usize,
    },
}

/// A read of what may not be in memory.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) key: usize,
    /// The stores of all volumes of the host.
    pub(crate) stores: Arc<[Arc<dyn Store>]>,
    pub(crate) map: DeviceMap,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// The dirty bytes of the range when the read was admitted. They may be
    /// written back and gone before the read is done, or done after that.
    pub(crate) dirty: Vec<(usize, Vec<u8>)>,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum Finished {
    /// The next results of a lane; its worker goes on, or this is the last of the
    /// batch.
    Lane { volume: usize, results: Vec<Result<Done, StoreError>>, last: bool },
    /// A job that was at work beside others has ended.
    Apart { volume: usize, job: u64, result: Result<Done, StoreError> },
    /// A volume of a device is synced, for all requests that waited for it.
    Sync { device: usize, number: u64, result: Result<(), StoreError> },
    /// A read is done; the key is the request's.
    Read { key: usize, result: Result<Vec<u8>, StoreError> },
    /// It is known where there is data; the key is the request's.
    Extents { key: usize, result: Result<Vec<Extent>, StoreError> },
}

impl Job {
    /// Has an asynchronous store carry out the job and report its result later. Returns the job if it
    /// needs a thread, and the store if it did take it.
    fn submit(self, report: &Arc<Report>) -> Result<Arc<dyn Store>, Self> {
        let Self { device, task } = self;
        let Some(store) = task.store().filter(|store| store.asynchronous().is_some()) else {
            return Err(Self { device, task });
        };
        let (store, report) = (Arc::clone(store), Arc::clone(report));
        let (operation, then) = match task {
            Task::Apart { volume, job, work: Work::Write { offset, data, durably }, .. } => {
                let then = Then::new(move |result| {
                    let result = result.map(|outcome| match outcome {
                        Outcome::Durable => Done::Durable,
                        Outcome::Done | Outcome::Bytes(_) => Done::Well,
                    });
                    report(Finished::Apart { volume, job, result });
                });
                (Operation::Write { offset, data, durably }, then)
            }
            Task::Sync { number, .. } => {
                let then = Then::new(move |result| {
                    report(Finished::Sync { device, number, result: result.map(|_| ()) });
                });
                (Operation::Sync, then)
            }
            Task::Read(read) if let Some((_, offset)) = read.only() => {
                let len = read.len;
                let ReadJob { key, dirty, .. } = *read;
                let then = Then::new(move |result| {
                    let result = result.map(|outcome| match outcome {
                        Outcome::Bytes(bytes) => overlaid(bytes, &dirty),
                        other => unreachable!("a read came to {other:?}"),
                    });
                    report(Finished::Read { key, result });
                });
                (Operation::Read { offset, len }, then)
            }
            task => return Err(Self { device, task }),
        };
        let returned = match store.asynchronous() {
            Some(asynchronous) => asynchronous.submit(operation, then),
            None => Some((operation, then)),
        };
        match returned {
            None => Ok(store),
            Some((operation, then)) => {
                Err(Self { device, task: Task::Waiting { store, operation, then } })
            }
        }
    }

    /// Executes the job and reports its results. At the last report the job holds no store any
    /// more, so a closed store is closed by then.
    pub(crate) fn run(self, report: &mut dyn FnMut(Finished)) {
        let device = self.device;
        match self.task {
            Task::Lane { volume, store, batch } => {
                let mut batch = batch.into_iter().peekable();
                while batch.peek().is_some() {
                    let some = batch.by_ref().take(REPORT_AFTER);
                    let results = some.map(|work| guarded(|| work.run(&*store))).collect();
                    if batch.peek().is_some() {
                        report(Finished::Lane { volume, results, last: false });
                    } else {
                        drop(store);
                        report(Finished::Lane { volume, results, last: true });
                        return;
                    }
                }
            }
            Task::Apart { volume, job, store, work } => {
                let result = guarded(|| work.run(&*store));
                drop(store);
                report(Finished::Apart { volume, job, result });
            }
            Task::Sync { number, store } => {
                let result = guarded(|| store.sync());
                drop(store);
                report(Finished::Sync { device, number, result });
            }
            Task::Waiting { store, operation, then } => {
                let result = guarded(|| operation.run(&*store));
                drop(store);
                then.call(result);
            }
            Task::Read(read) => {
                let (key, result) = (read.key, guarded(|| read.run()));
                drop(read);
                report(Finished::Read { key, result });
            }
            Task::Extents { key, stores, map, range: (offset, len), max } => {
                let result = guarded(|| map.extents(&stores, offset, len, max));
                drop(stores);
                report(Finished::Extents { key, result });
            }
        }
    }

    fn is_sync(&self) -> bool {
        matches!(self.task, Task::Sync { .. } | Task::Waiting { operation: Operation::Sync, .. })
    }
}

impl Task {
    /// Returns the store, if one operation of it is the whole task.
    fn store(&self) -> Option<&Arc<dyn Store>> {
        match self {
            Self::Apart { store, work: Work::Write { .. }, .. } | Self::Sync { store, .. } => {
                Some(store)
            }
            Self::Read(read) => read.only().map(|(store, _)| store),
            _ => None,
        }
    }
}

/// Takes the results of jobs, on any thread.
type Report = dyn Fn(Finished) + Send + Sync;

impl ReadJob {
    fn run(&self) -> Result<Vec<u8>, StoreError> {
        let mut buf = vec![0; self.len];
        self.map.read_stores(&self.stores, self.offset, &mut buf)?;
        Ok(overlaid(buf, &self.dirty))
    }

    /// Returns the store that has all the bytes, if it is only one, and their offset there.
    fn only(&self) -> Option<(&Arc<dyn Store>, u64)> {
        let (volume, offset) = self.map.only(self.offset, self.len as u64)?;
        Some((&self.stores[volume], offset))
    }
}

/// Returns the bytes of a store with those above them that are dirty.
fn overlaid(mut bytes: Vec<u8>, dirty: &[(usize, Vec<u8>)]) -> Vec<u8> {
    for (at, newer) in dirty {
        bytes[*at..at + newer.len()].copy_from_slice(newer);
    }
    bytes
}

/// Does something; a panic is its failure. Stores keep their locks usable over one.
fn guarded<T>(what: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|panic| {
        let context = format!("a worker panicked: {}", message(&*panic));
        Err(StoreError::Io { context, source: io::Error::other("panic") })
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
