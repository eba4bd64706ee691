//! The state that the threads of a soak share: the end, the first error, and latencies.

use crate::error::XtaskError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::Span;

/// Counts of what succeeded.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: AtomicU64,
    pub(super) checked: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) blobs: AtomicU64,
    pub(super) backups: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) polls: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Shared {
    /// The server's folder.
    pub(super) folder: PathBuf,
    pub(super) weir: PathBuf,
    /// Ports of the live page and of the blobs.
    pub(super) ports: (u16, u16),
    pub(super) counts: Counts,
    latencies: Mutex<Vec<Span>>,
    is_over: AtomicBool,
    failed: Mutex<Option<String>>,
}

impl Shared {
    pub(super) fn new(folder: PathBuf, weir: PathBuf, ports: (u16, u16)) -> Self {
        Self {
            folder,
            weir,
            ports,
            counts: Counts::default(),
            latencies: Mutex::default(),
            is_over: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    /// Tells all threads to end.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Runs a part of the load on a thread of its own. Its error ends the soak.
    pub(super) fn spawn(
        self: &Arc<Self>,
        name: &'static str,
        part: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> JoinHandle<()> {
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(what) = part() {
                locked(&shared.failed).get_or_insert(format!("{name}: {what}"));
                shared.end();
            }
        })
    }

    /// Returns the first error of a thread.
    pub(super) fn check(&self) -> Result<(), XtaskError> {
        let failed = locked(&self.failed);
        failed.as_ref().map_or(Ok(()), |what| Err(XtaskError::Lost(what.clone())))
    }

    /// Adds the latencies of requests.
    pub(super) fn add_latencies(&self, latencies: &mut Vec<Span>) {
        self.counts.requests.fetch_add(latencies.len() as u64, Ordering::Relaxed);
        locked(&self.latencies).append(latencies);
    }

    /// Takes the latencies since the last call.
    pub(super) fn take_latencies(&self) -> Vec<Span> {
        std::mem::take(&mut *locked(&self.latencies))
    }

    /// Waits for a time, or for the end.
    pub(super) fn rest(&self, millis: u64) {
        for _ in 0..millis.div_ceil(20) {
            if self.is_over() {
                return;
            }
            pause(20);
        }
    }

    /// Returns a sentence about the load.
    pub(super) fn tally(&self) -> String {
        let Counts { requests, checked, connections, blobs, backups, changes, polls } =
            &self.counts;
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            "{} requests, {} blocks compared, {} connections, {} requests for blobs, {} backups, {} changes of \
             volumes, {} polls: no error, and all content right",
            value(requests),
            value(checked),
            value(connections),
            value(blobs),
            value(backups),
            value(changes),
            value(polls)
        )
    }
}

/// Adds one to a count.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "another process makes progress meanwhile")]
pub(super) fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
