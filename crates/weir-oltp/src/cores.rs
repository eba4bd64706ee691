//! The schedulers: each runs one transaction for a quantum, and the other transactions wait in a
//! queue.

use std::collections::VecDeque;

/// The schedulers of an instance.
#[derive(Debug)]
pub(crate) struct Cores {
    free: u32,
    ready: VecDeque<u32>,
}

impl Cores {
    pub(crate) fn new(count: u32) -> Self {
        Self { free: count, ready: VecDeque::new() }
    }

    /// Requests a scheduler for `user`. Returns whether one was free; otherwise the user is queued.
    pub(crate) fn request(&mut self, user: u32) -> bool {
        if self.free == 0 {
            self.ready.push_back(user);
            return false;
        }
        self.free -= 1;
        true
    }

    /// Returns whether a user is queued.
    pub(crate) fn is_contended(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of queued users.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.ready.len()
    }

    /// Frees a scheduler, and returns the user that gets it.
    pub(crate) fn release(&mut self) -> Option<u32> {
        let next = self.ready.pop_front();
        self.free += u32::from(next.is_none());
        next
    }
}
