//! Requests that are not aligned to the blocks of a server.
//!
//! A server may take only whole blocks. A write of a part of one is then a read, a change and a write
//! of the block. Nothing else writes meanwhile, or its bytes in that block would be lost.

use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// Keeps writes of parts of blocks apart from all others.
#[derive(Debug)]
pub(crate) struct Edges {
    block: u64,
    lock: RwLock<()>,
}

impl Edges {
    pub(crate) fn new(block: u32) -> Self {
        Self { block: u64::from(block), lock: RwLock::new(()) }
    }

    /// Returns the whole blocks that a range touches.
    pub(crate) fn around(&self, offset: u64, len: u64) -> Range<u64> {
        let start = offset / self.block * self.block;
        start..(offset + len).next_multiple_of(self.block)
    }

    pub(crate) fn is_aligned(&self, offset: u64, len: u64) -> bool {
        self.around(offset, len) == (offset..offset + len)
    }

    /// Writes a range by `write`, which gets whether it may touch whole blocks around the range.
    pub(crate) fn write<T>(&self, offset: u64, len: u64, write: impl FnOnce(bool) -> T) -> T {
        if self.block == 1 {
            return write(false);
        }
        if self.is_aligned(offset, len) {
            let _shared = self.lock.read().unwrap_or_else(PoisonError::into_inner);
            return write(false);
        }
        let _alone = self.lock.write().unwrap_or_else(PoisonError::into_inner);
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
    }
}
