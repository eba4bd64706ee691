//! What a ReadWrite cache has acknowledged and not yet written to the disk.
//!
//! Writes make blocks dirty. They are written back after a while, or when half of
//! the room for dirty blocks is taken, or when a flush asks for all that is dirty
//! now. A flush draws a line (an *epoch*): it waits for what was dirty or on its
//! way when it came, not for what is written after it. One line is drawn at a
//! time; flushes that come meanwhile share the next.

use crate::cache::BLOCK;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Largest write-back, in blocks (256 KiB: one operation at most disks).
const RUN_BLOCKS: u64 = 64;
/// Write-backs of one volume under way at once.
const DEPTH: usize = 16;

/// The dirty blocks of one volume.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    blocks: BTreeSet<u64>,
    /// Blocks that the current flush still has to send.
    promised: BTreeSet<u64>,
    epoch: u64,
    in_flight_before: usize,
    in_flight: usize,
    flushing: Vec<usize>,
    flush_next: Vec<usize>,
    /// Write back everything there is, without waiting longer.
    pub(crate) draining: bool,
    /// An alarm for the oldest dirty block is set.
    pub(crate) alarm_set: bool,
}

/// A run of blocks on its way to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteBack {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) epoch: u64,
}

impl Dirty {
    /// Blocks that are dirty and not on their way.
    pub(crate) fn len(&self) -> u64 {
        (self.blocks.len() + self.promised.len()) as u64
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.len() == 0 && self.in_flight + self.in_flight_before == 0
    }

    /// Marks what `offset..offset + len` touches; returns how many blocks became dirty.
    pub(crate) fn mark(&mut self, offset: u64, len: u64) -> u64 {
        let before = self.len();
        for block in offset / BLOCK..(offset + len).div_ceil(BLOCK) {
            if !self.promised.contains(&block) {
                self.blocks.insert(block);
            }
        }
        self.len() - before
    }

    /// Forgets dirty blocks that `offset..offset + len` covers; returns how many.
    pub(crate) fn discard(&mut self, offset: u64, len: u64) -> u64 {
        let before = self.len();
        let (first, end) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
        if first < end {
            for blocks in [&mut self.blocks, &mut self.promised] {
                // Cut the range out; both ends stay.
                let mut tail = blocks.split_off(&first);
                blocks.append(&mut tail.split_off(&end));
            }
        }
        before - self.len()
    }

    /// How many blocks a write would make dirty.
    pub(crate) fn new_blocks(&self, offset: u64, len: u64) -> u64 {
        let (first, end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
        let held = self.blocks.range(first..end).count() + self.promised.range(first..end).count();
        (end - first).saturating_sub(held as u64)
    }

    /// A flush came; `true` if there is nothing to wait for.
    pub(crate) fn flush(&mut self, part: usize) -> bool {
        if self.is_clean() && self.flushing.is_empty() {
            return true;
        }
        if self.flushing.is_empty() {
            self.draw_line();
            self.flushing.push(part);
        } else {
            self.flush_next.push(part);
        }
        false
    }

    fn draw_line(&mut self) {
        self.promised.append(&mut self.blocks);
        self.in_flight_before += self.in_flight;
        self.in_flight = 0;
        self.epoch += 1;
    }

    /// The next run to send, if one is due and the volume has room for it.
    pub(crate) fn next_run(&mut self) -> Option<WriteBack> {
        if self.in_flight + self.in_flight_before >= DEPTH {
            return None;
        }
        let (from, epoch) = match (self.promised.is_empty(), self.draining) {
            (false, _) => (&mut self.promised, self.epoch - 1),
            (true, true) => (&mut self.blocks, self.epoch),
            (true, false) => return None,
        };
        let Some(first) = from.first().copied() else {
            // Nothing is left to write back early.
            self.draining = false;
            return None;
        };
        let mut end = first;
        while end < first + RUN_BLOCKS && from.remove(&end) {
            end += 1;
        }
        if epoch < self.epoch {
            self.in_flight_before += 1;
        } else {
            self.in_flight += 1;
        }
        if self.blocks.is_empty() {
            self.draining = false;
        }
        Some(WriteBack { offset: first * BLOCK, len: (end - first) * BLOCK, epoch })
    }

    /// A run has arrived; returns the flushes that are done with it.
    pub(crate) fn written(&mut self, run: &WriteBack) -> Vec<usize> {
        if run.epoch < self.epoch {
            self.in_flight_before -= 1;
        } else {
            self.in_flight -= 1;
        }
        let mut done = Vec::new();
        while !self.flushing.is_empty() && self.promised.is_empty() && self.in_flight_before == 0 {
            done.append(&mut self.flushing);
            if self.flush_next.is_empty() {
                break;
            }
            self.draw_line();
            core::mem::swap(&mut self.flushing, &mut self.flush_next);
        }
        done
    }

    /// All that would be lost now, as (offset, length).
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for block in self.blocks.union(&self.promised) {
            match ranges.last_mut() {
                Some((offset, len)) if *offset + *len == block * BLOCK => *len += BLOCK,
                _ => ranges.push((block * BLOCK, BLOCK)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_what_was_dirty_and_not_for_what_comes_after() {
        let mut dirty = Dirty::default();
        assert!(dirty.flush(1), "nothing is dirty");
        dirty.mark(0, 8192);
        assert!(!dirty.flush(2));
        dirty.mark(1 << 20, 4096);
        assert!(!dirty.flush(3));
        let first = dirty.next_run().expect("the flush's run");
        assert_eq!((first.offset, first.len), (0, 8192));
        assert_eq!(dirty.next_run(), None, "what came later is not due yet");
        assert_eq!(dirty.written(&first), [2]);
        let second = dirty.next_run().expect("the second flush's run");
        assert_eq!(second.offset, 1 << 20);
        assert_eq!(dirty.written(&second), [3]);
        assert!(dirty.is_clean());
    }

    #[test]
    fn a_write_behind_a_run_on_its_way_is_dirty_again() {
        let mut dirty = Dirty::default();
        dirty.mark(0, 4096);
        dirty.draining = true;
        let run = dirty.next_run().expect("a run");
        assert_eq!(dirty.mark(0, 4096), 1);
        assert!(!dirty.flush(1));
        assert!(dirty.written(&run).is_empty());
        let again = dirty.next_run().expect("the block once more");
        assert_eq!(dirty.written(&again), [1]);
    }

    #[test]
    fn runs_are_at_most_one_operation_long() {
        let mut dirty = Dirty::default();
        dirty.mark(0, 1 << 20);
        dirty.draining = true;
        assert_eq!(dirty.next_run().map(|r| r.len), Some(256 << 10));
        assert_eq!(dirty.ranges(), [(256 << 10, 768 << 10)]);
        assert_eq!(dirty.discard(512 << 10, 512 << 10), 128);
        assert_eq!(dirty.len(), 64);
    }
}
