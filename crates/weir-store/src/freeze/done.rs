//! The end of the changes of an era.

use crate::sync::locked;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The end of an era's changes, to be waited for.
#[derive(Debug, Default)]
pub(super) struct Done {
    is_done: AtomicBool,
    waiting: Mutex<()>,
    idle: Condvar,
}

impl Done {
    /// Says that the changes are done.
    pub(super) fn finish(&self) {
        self.is_done.store(true, Ordering::SeqCst);
        drop(locked(&self.waiting));
        self.idle.notify_all();
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// Waits; the era is over.
    pub(super) fn wait(&self) {
        let mut waiting = locked(&self.waiting);
        while !self.is_done() {
            waiting = self.idle.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
