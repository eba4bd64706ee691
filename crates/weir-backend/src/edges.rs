//! Requests that are not aligned to the blocks of a server.
//!
//! A server may take only whole blocks. A write of a part of one is then a read, a change and a write
//! of the block. Nothing else writes meanwhile, or its bytes in that block would be lost.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Keeps writes of parts of blocks apart from all others.
#[derive(Debug)]
pub(crate) struct Edges {
    block: u64,
    writes: Arc<Writes>,
}

/// A count of the writes in flight. A write of a part of a block has exclusive access.
#[derive(Debug, Default)]
struct Writes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    is_alone: bool,
    /// Writes that wait for exclusive access. No other write begins meanwhile.
    exclusive_waiters: usize,
}

impl Writes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Option<Arc<Writes>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(writes) = &self.0 {
            let mut state = writes.lock();
            state.under_way -= 1;
            if state.under_way == 0 && state.exclusive_waiters > 0 {
                writes.changed.notify_all();
            }
        }
    }
}

/// A write with exclusive access, until it is dropped.
struct Alone<'a>(&'a Writes);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.lock().is_alone = false;
        self.0.changed.notify_all();
    }
}

impl Edges {
    pub(crate) fn new(block: u32) -> Self {
        Self { block: u64::from(block), writes: Arc::default() }
    }

    /// Returns the whole blocks that a range touches.
    pub(crate) fn around(&self, offset: u64, len: u64) -> Range<u64> {
        let start = offset / self.block * self.block;
        start..(offset + len).next_multiple_of(self.block)
    }

    pub(crate) fn is_aligned(&self, offset: u64, len: u64) -> bool {
        self.around(offset, len) == (offset..offset + len)
    }

    /// Begins a write of whole blocks without waiting; `None` if it would have to wait.
    pub(crate) fn begin(&self) -> Option<UnderWay> {
        if self.block == 1 {
            return Some(UnderWay(None));
        }
        let mut state = self.writes.lock();
        if state.is_alone || state.exclusive_waiters > 0 {
            return None;
        }
        state.under_way += 1;
        Some(UnderWay(Some(Arc::clone(&self.writes))))
    }

    /// Writes a range by `write`, which gets whether it may touch whole blocks around the range.
    pub(crate) fn write<T>(&self, offset: u64, len: u64, write: impl FnOnce(bool) -> T) -> T {
        if self.block == 1 {
            return write(false);
        }
        let mut state = self.writes.lock();
        if self.is_aligned(offset, len) {
            while state.is_alone || state.exclusive_waiters > 0 {
                state = self.writes.wait(state);
            }
            state.under_way += 1;
            drop(state);
            let _under_way = UnderWay(Some(Arc::clone(&self.writes)));
            return write(false);
        }
        state.exclusive_waiters += 1;
        while state.is_alone || state.under_way > 0 {
            state = self.writes.wait(state);
        }
        state.exclusive_waiters -= 1;
        state.is_alone = true;
        drop(state);
        let _alone = Alone(&self.writes);
        write(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_to_whole_blocks() {
        let edges = Edges::new(512);
        assert_eq!(edges.around(0, 512), 0..512);
        assert_eq!(edges.around(511, 2), 0..1024);
        assert!(edges.is_aligned(512, 1024) && !edges.is_aligned(512, 1));
        assert!(edges.write(5, 10, |grows| grows) && !edges.write(0, 512, |grows| grows));
        assert!(!Edges::new(1).write(5, 10, |grows| grows));
        assert!(Edges::new(1).begin().is_some());
    }

    #[test]
    fn a_write_of_a_part_waits_for_others_and_keeps_them_waiting() {
        let edges = Edges::new(512);
        let first = edges.begin().expect("nothing else writes");
        std::thread::scope(|scope| {
            let part = scope.spawn(|| edges.write(1, 1, |_| edges.begin().is_none()));
            while edges.begin().is_some() {
                std::thread::yield_now();
            }
            assert!(!part.is_finished());
            drop(first);
            assert!(part.join().expect("it does not panic"), "it was not alone");
        });
        assert!(edges.begin().is_some());
    }
}
