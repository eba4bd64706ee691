//! A few threads for what may block: syncs and reads that are not in the page
//! cache. They are started when there is first something to do.

use crate::error::ServerError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use weir_store::StoreError;

/// At most so many jobs of one host at once.
const THREADS: usize = 4;

type Job = Box<dyn FnOnce() -> Finished + Send>;

/// What a job came to.
#[derive(Debug)]
pub(crate) enum Finished {
    /// A device's stores are synced, for all requests that waited for it.
    Sync { device: usize, result: Result<(), StoreError> },
    /// A read is done; the key is the request's.
    Read { key: usize, result: Result<Vec<u8>, StoreError> },
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

    pub(crate) fn run(
        &mut self,
        job: impl FnOnce() -> Finished + Send + 'static,
    ) -> Result<(), ServerError> {
        if self.threads < THREADS {
            let queue = Arc::clone(&self.queue);
            let finished = Arc::clone(&self.finished);
            std::thread::Builder::new()
                .name(format!("weir-{}-io", self.name))
                .spawn(move || work(&queue, finished.as_ref()))
                .map_err(ServerError::system("starting a worker thread"))?;
            self.threads += 1;
        }
        // The receiver lives in `self.queue`, so sending cannot fail.
        let _ = self.jobs.send(Box::new(job));
        Ok(())
    }
}

fn work(queue: &Mutex<Receiver<Job>>, finished: &(dyn Fn(Finished) + Send + Sync)) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => finished(job()),
            // The host is gone.
            Err(_) => return,
        }
    }
}
