//! A queue between threads: the event loop fills it, workers empty it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// A queue that several threads wait at.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        let state = State { items: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn push(&self, item: T) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).items.push_back(item);
        self.changed.notify_one();
    }

    /// Returns the next item, waiting for it; nothing once the queue is closed.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.is_closed {
                return None;
            }
            match state.items.pop_front() {
                Some(item) => return Some(item),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends all waits. Items that are left are dropped.
    pub(super) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.changed.notify_all();
    }
}
