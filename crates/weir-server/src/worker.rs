//! A few threads for what may block: syncs and reads that are not in the page
//! cache. They are started when there is first something to do.

use crate::volume::DeviceMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use weir_store::{Store, StoreError};

/// At most so many jobs of one host at once.
const THREADS: usize = 4;

/// What has to wait for a medium.
#[derive(Debug)]
pub(crate) enum Job {
    /// Makes a device durable, for all requests that wait for it.
    Sync { device: usize, stores: Vec<Arc<dyn Store>> },
    /// Reads for the request with that key.
    Read(Box<ReadJob>),
}

/// A read of what may not be in memory.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) key: usize,
    /// Of all volumes of the host.
    pub(crate) stores: Arc<[Arc<dyn Store>]>,
    pub(crate) map: DeviceMap,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// What the cache held of the range when the read was let go. It may be
    /// written back and gone before the read is done, or done after that.
    pub(crate) dirty: Vec<(usize, Vec<u8>)>,
}

/// What a job came to.
#[derive(Debug)]
pub(crate) enum Finished {
    /// A device's stores are synced, for all requests that waited for it.
    Sync { device: usize, result: Result<(), StoreError> },
    /// A read is done; the key is the request's.
    Read { key: usize, result: Result<Vec<u8>, StoreError> },
}

impl Job {
    pub(crate) fn run(self) -> Finished {
        match self {
            Self::Sync { device, stores } => {
                let result = stores.iter().try_for_each(|store| store.sync());
                Finished::Sync { device, result }
            }
            Self::Read(read) => Finished::Read { key: read.key, result: read.run() },
        }
    }
}

impl ReadJob {
    fn run(&self) -> Result<Vec<u8>, StoreError> {
        let mut buf = vec![0; self.len];
        self.map.read_stores(&self.stores, self.offset, &mut buf)?;
        for (at, bytes) in &self.dirty {
            buf[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Ok(buf)
    }
}

/// The threads of one host.
pub(crate) struct Workers {
    jobs: Sender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
    finished: Arc<dyn Fn(Finished) + Send + Sync>,
    threads: usize,
    name: String,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Workers {
    pub(crate) fn new(name: &str, finished: impl Fn(Finished) + Send + Sync + 'static) -> Self {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        Self { jobs, queue, finished: Arc::new(finished), threads: 0, name: name.to_owned() }
    }

    /// Has `job` done by a thread; here and now if the system gives none.
    pub(crate) fn run(&mut self, job: Job) {
        if self.threads < THREADS {
            let queue = Arc::clone(&self.queue);
            let finished = Arc::clone(&self.finished);
            let started = std::thread::Builder::new()
                .name(format!("weir-{}-io", self.name))
                .spawn(move || work(&queue, finished.as_ref()));
            self.threads += usize::from(started.is_ok());
        }
        if self.threads == 0 {
            (self.finished)(job.run());
        } else {
            // The receiver lives in `self.queue`, so sending cannot fail.
            let _ = self.jobs.send(job);
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>, finished: &(dyn Fn(Finished) + Send + Sync)) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => finished(job.run()),
            // The host is gone.
            Err(_) => return,
        }
    }
}
