//! The schedulers: so many transactions compute at once, each for a quantum, and
//! the others wait in line.

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

    /// `user` wants to compute; whether it may at once. If not it is in line.
    pub(crate) fn request(&mut self, user: u32) -> bool {
        if self.free == 0 {
            self.ready.push_back(user);
            return false;
        }
        self.free -= 1;
        true
    }

    /// Whether somebody is in line.
    pub(crate) fn is_contended(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many are in line.
    #[cfg(test)]
    pub(crate) fn in_line(&self) -> usize {
        self.ready.len()
    }

    /// A user leaves its scheduler; who gets it.
    pub(crate) fn release(&mut self) -> Option<u32> {
        let next = self.ready.pop_front();
        self.free += u32::from(next.is_none());
        next
    }
}
