//! The points of a sweep on all cores.

use crate::error::SweepError;
use crate::sweep::Sweep;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Simulates points on `jobs` threads, and passes each with the end of its row to `each`.
/// [`in_parallel`] describes the rest.
///
/// # Errors
///
/// The error of `each`, or [`SweepError::Trace`].
pub fn run<E: From<SweepError>>(
    sweep: &Sweep,
    points: &[u64],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    mut each: impl FnMut(u64, Vec<String>) -> Result<(), E>,
) -> Result<(), E> {
    let simulate = |point, ends: &dyn Fn() -> bool| sweep.simulate(point, ends);
    in_parallel(points, jobs, stop, simulate, |point, row| each(point, row?))
}

/// Works on points with `jobs` threads, and passes each result to `each`, in the order in which they
/// complete. Ends early if `stop` returns true, or at the first error of `each`; points that are not
/// complete by then are dropped. `work` returns `None` if it was stopped.
///
/// # Errors
///
/// The error of `each`.
pub fn in_parallel<T: Send, E>(
    points: &[u64],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    work: impl Fn(u64, &dyn Fn() -> bool) -> Option<T> + Sync,
    mut each: impl FnMut(u64, T) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let ends = || has_failed.load(Ordering::Relaxed) || stop();
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..jobs.clamp(1, points.len().max(1)) {
            let (sender, next, ends, work) = (sender.clone(), &next, &ends, &work);
            scope.spawn(move || {
                while !ends() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(at) else { return };
                    let Some(result) = work(*point, ends) else { return };
                    // Without a receiver, nobody wants the result.
                    if sender.send((*point, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (point, result) in receiver {
            if let Err(error) = each(point, result) {
                has_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}
