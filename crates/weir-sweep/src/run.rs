//! The points of a sweep on all cores.

use crate::sweep::Sweep;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Simulates points on `jobs` threads, and passes each with the end of its row to `each`, in the order
/// in which they complete. Ends early if `stop` returns true, or at the first error of `each`; points
/// that are not complete by then are dropped.
///
/// # Errors
///
/// The error of `each`.
pub fn run<E>(
    sweep: &Sweep,
    points: &[u64],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    mut each: impl FnMut(u64, Vec<String>) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let ends = || has_failed.load(Ordering::Relaxed) || stop();
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..jobs.clamp(1, points.len().max(1)) {
            let (sender, next, ends) = (sender.clone(), &next, &ends);
            scope.spawn(move || {
                while !ends() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(at) else { return };
                    let Some(tail) = sweep.simulate(*point, ends) else { return };
                    // Without a receiver, nobody wants the row.
                    if sender.send((*point, tail)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (point, tail) in receiver {
            if let Err(error) = each(point, tail) {
                has_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}
