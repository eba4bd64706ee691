//! Work without the interpreter's lock.

use crate::error::Failure;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How long Ctrl-C takes to be noticed at most.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the caller still waits for the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns an error if nobody waits for the result.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) { Err(Failure::Stopped) } else { Ok(()) }
    }
}

/// Runs `work` on a thread of its own and waits for it without the interpreter's lock. Python's handlers
/// of signals run meanwhile. If one raises, as that of Ctrl-C does, the work goes on alone.
pub(crate) fn run<T: Send + 'static>(
    python: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    wait(python, None, work)
}

/// Runs work that checks its [`Stop`] until it ends. If a handler of a signal raises, the work ends first,
/// so that it leaves no files. A second signal does not wait for it.
pub(crate) fn run_stoppable<T: Send + 'static>(
    python: Python<'_>,
    work: impl FnOnce(&Stop) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let stop = Stop::default();
    let own = stop.clone();
    wait(python, Some(&stop), move || work(&own))
}

/// Runs `work` and waits for it. With a `stop`, the first signal asks the work to end.
fn wait<T: Send + 'static>(
    python: Python<'_>,
    stop: Option<&Stop>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let failed = |error| Failure::Run(format!("starting a thread: {error}"));
    let worker = thread::Builder::new()
        .name("weir".to_owned())
        .spawn(move || {
            // Without a receiver, nobody waits for the result.
            drop(sender.send(work()));
        })
        .map_err(failed)?;
    // Only one thread waits at a time.
    let receiver = std::sync::Mutex::new(receiver);
    let mut pending: Option<PyErr> = None;
    loop {
        let next = python.detach(|| {
            let receiver = receiver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            receiver.recv_timeout(LOOK)
        });
        match next {
            Ok(result) => return pending.map_or_else(|| Ok(result?), Err),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = python.check_signals() {
                    match stop {
                        Some(stop) if pending.is_none() => {
                            stop.0.store(true, Ordering::Relaxed);
                            pending = Some(raised);
                        }
                        _ => return Err(raised),
                    }
                }
            }
            // The work has panicked, which is a defect of Weir. PyO3 raises its message.
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(Failure::Run("the work has no result".to_owned()).into()),
            },
        }
    }
}

/// Returns a hash that is the same in all processes.
pub(crate) fn hash_of(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
