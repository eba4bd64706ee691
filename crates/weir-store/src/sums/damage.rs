//! Damaged blocks that requests met.

use crate::StoreError;
use crate::sync::locked;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// The most blocks that are named. A disk that returns nothing right must not fill the memory, nor a log.
const MOST: usize = 1000;

/// The requests of a volume that failed on a damaged block.
#[derive(Debug, Default)]
pub(super) struct Damaged {
    reads: AtomicU64,
    /// The offsets of the blocks.
    blocks: Mutex<BTreeSet<u64>>,
    listener: OnceLock<Listener>,
}

struct Listener(Box<dyn Fn(&StoreError) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Damaged {
    /// Counts a request that fails with `error` at the block at `offset`, and tells of the block if it is new.
    pub(super) fn count(&self, offset: u64, error: &StoreError) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let is_new = {
            let mut blocks = locked(&self.blocks);
            blocks.len() < MOST && blocks.insert(offset)
        };
        if let Some(Listener(tell)) = self.listener.get().filter(|_| is_new) {
            tell(error);
        }
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the offsets of the blocks, of the first [`MOST`] that were met.
    pub(super) fn blocks(&self) -> Vec<u64> {
        locked(&self.blocks).iter().copied().collect()
    }

    /// Has `tell` called once for each block from now on. Only the first listener is kept.
    pub(super) fn listen(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        let _ = self.listener.set(Listener(Box::new(tell)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn each_block_is_told_once_and_no_more_than_the_most() {
        let (damaged, told) = (Damaged::default(), Arc::new(AtomicU64::new(0)));
        let heard = Arc::clone(&told);
        damaged.listen(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..2 {
            for block in 0..1500 {
                damaged.count(block, &StoreError::ReadOnly);
            }
        }
        assert_eq!((damaged.reads(), told.load(Ordering::Relaxed)), (3000, 1000));
        assert_eq!(damaged.blocks().len(), 1000);
    }
}
