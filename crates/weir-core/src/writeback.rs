//! Dirty blocks of a ReadWrite cache: acknowledged and not yet on the disk.
//!
//! Writes make blocks dirty. They are written back after a while, or when half of
//! the room for dirty blocks is taken, or when a flush asks for all that is dirty
//! now. A flush draws a line (an *epoch*): it waits for what was dirty or on its
//! way when it came, not for what is written after it. One line is drawn at a
//! time; flushes that come meanwhile share the next.

use crate::blocks::{BlockSet, PER_WORD, words};
use crate::cache::BLOCK;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

/// Largest write-back, in blocks (256 KiB: one operation at most disks).
const RUN_BLOCKS: u64 = 64;
/// Write-backs of one volume in flight at most.
const DEPTH: usize = 16;

/// The dirty blocks of one volume.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    blocks: BlockSet,
    /// Blocks that the current flush still has to send.
    promised: BlockSet,
    epoch: u64,
    /// Runs in flight, at most [`DEPTH`].
    in_flight: Vec<WriteBack>,
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

impl WriteBack {
    fn blocks(&self) -> Range<u64> {
        self.offset / BLOCK..(self.offset + self.len) / BLOCK
    }
}

impl Dirty {
    /// Blocks that wait to be sent.
    fn unsent(&self) -> u64 {
        self.blocks.len() + self.promised.len()
    }

    fn is_clean(&self) -> bool {
        self.unsent() == 0 && self.in_flight.is_empty()
    }

    /// Marks what `offset..offset + len` touches; returns how many blocks became
    /// dirty. One that is on its way becomes dirty once more.
    pub(crate) fn mark(&mut self, offset: u64, len: u64) -> u64 {
        let before = self.unsent();
        self.blocks.insert(touched(offset, len), &self.promised);
        self.unsent() - before
    }

    /// Forgets unsent blocks that `offset..offset + len` covers; returns how many.
    pub(crate) fn discard(&mut self, offset: u64, len: u64) -> u64 {
        let before = self.unsent();
        let (first, end) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
        self.blocks.remove(first..end);
        self.promised.remove(first..end);
        before - self.unsent()
    }

    /// Counts the blocks that [`mark`](Self::mark) would make dirty.
    pub(crate) fn new_blocks(&self, offset: u64, len: u64) -> u64 {
        let range = touched(offset, len);
        let held = self.blocks.count(range.clone()) + self.promised.count(range.clone());
        (range.end - range.start) - held
    }

    /// Those of the 64 blocks from `first` on, where a word begins, that are not on the
    /// disk yet: a bit each.
    pub(crate) fn mask(&self, first: u64) -> u64 {
        if self.is_clean() {
            return 0;
        }
        debug_assert!(first.is_multiple_of(PER_WORD), "no word begins at block {first}");
        let word = first / PER_WORD;
        let sent = self.in_flight.iter().flat_map(|run| words(run.blocks()));
        let sent = sent.filter(|(at, _)| *at == word).fold(0, |all, (_, mask)| all | mask);
        self.blocks.word(word) | self.promised.word(word) | sent
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
        debug_assert!(self.promised.is_empty(), "a line is drawn when the last is reached");
        core::mem::swap(&mut self.promised, &mut self.blocks);
        self.epoch += 1;
    }

    /// Returns whether all blocks that the current flush waits for are on the disk.
    fn is_kept(&self) -> bool {
        self.promised.is_empty() && self.in_flight.iter().all(|run| run.epoch == self.epoch)
    }

    /// The next run to send, if one is due and the volume has room for it.
    pub(crate) fn next_run(&mut self) -> Option<WriteBack> {
        if self.in_flight.len() >= DEPTH {
            return None;
        }
        let (from, epoch) = match (self.promised.is_empty(), self.draining) {
            (false, _) => (&mut self.promised, self.epoch - 1),
            (true, true) => (&mut self.blocks, self.epoch),
            (true, false) => return None,
        };
        let run = from.take_run(RUN_BLOCKS);
        if self.blocks.is_empty() {
            // Nothing is left to write back early.
            self.draining = false;
        }
        let Range { start, end } = run?;
        let run = WriteBack { offset: start * BLOCK, len: (end - start) * BLOCK, epoch };
        self.in_flight.push(run);
        Some(run)
    }

    /// A run has arrived; returns the flushes that are done with it.
    pub(crate) fn written(&mut self, run: &WriteBack) -> Vec<usize> {
        let sent = self.in_flight.iter().position(|other| other == run);
        debug_assert!(sent.is_some(), "{run:?} arrived and was not sent");
        sent.map(|at| self.in_flight.swap_remove(at));
        let mut done = Vec::new();
        while !self.flushing.is_empty() && self.is_kept() {
            done.append(&mut self.flushing);
            if self.flush_next.is_empty() {
                break;
            }
            self.draw_line();
            core::mem::swap(&mut self.flushing, &mut self.flush_next);
        }
        done
    }

    /// Returns the dirty ranges, as (offset, length).
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut all: BTreeSet<u64> = self.blocks.iter().chain(self.promised.iter()).collect();
        all.extend(self.in_flight.iter().flat_map(WriteBack::blocks));
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for block in all {
            match ranges.last_mut() {
                Some((offset, len)) if *offset + *len == block * BLOCK => *len += BLOCK,
                _ => ranges.push((block * BLOCK, BLOCK)),
            }
        }
        ranges
    }
}

/// The blocks that a range touches.
pub(crate) fn touched(offset: u64, len: u64) -> Range<u64> {
    offset / BLOCK..(offset + len).div_ceil(BLOCK)
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
        assert_eq!((second.offset, second.len), (1 << 20, 4096));
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
        assert_eq!(dirty.ranges(), [(0, 1 << 20)], "what is on its way can be lost as well");
        assert_eq!(dirty.discard(512 << 10, 512 << 10), 128);
        assert_eq!(dirty.unsent(), 64);
    }

    /// Notices a range that is rounded to fewer blocks than it touches: a part of a write would
    /// never be written back.
    #[test]
    fn a_write_makes_every_block_dirty_that_it_touches_in_part() {
        let mut dirty = Dirty::default();
        assert_eq!(dirty.new_blocks(4095, 2), 2);
        assert_eq!(dirty.mark(4095, 2), 2);
        assert_eq!(dirty.ranges(), [(0, 8192)]);
    }

    /// Notices an overestimate, which would let writes wait without need, and an underestimate.
    #[test]
    fn blocks_that_are_dirty_or_promised_to_a_flush_are_not_new() {
        let mut dirty = Dirty::default();
        dirty.mark(BLOCK, 3 * BLOCK);
        assert!(!dirty.flush(1));
        dirty.mark(4 * BLOCK, BLOCK);
        assert_eq!(dirty.new_blocks(BLOCK, 6 * BLOCK), 2);
    }

    /// Notices a block that the cache would evict before the disk has it.
    #[test]
    fn a_mask_has_each_block_that_is_not_on_the_disk() {
        let mut dirty = Dirty::default();
        // Blocks 3 and 66 are on their way, and 65 is twice.
        for block in [3, 65, 65, 66] {
            dirty.mark(block * BLOCK, BLOCK);
            dirty.draining = true;
            dirty.next_run().expect("a run");
        }
        // Block 66 is also promised to a flush, like 67, and 68 is dirty.
        dirty.mark(66 * BLOCK, 2 * BLOCK);
        assert!(!dirty.flush(1));
        dirty.mark(68 * BLOCK, BLOCK);
        assert_eq!([0, 64, 128].map(|first| dirty.mask(first)), [0b1000, 0b11110, 0]);
    }

    /// Notices a range that is rounded to more blocks than it covers: the rest of these would
    /// never be written back.
    #[test]
    fn a_discard_forgets_no_block_that_it_covers_in_part() {
        let mut dirty = Dirty::default();
        dirty.mark(0, 3 * 4096);
        assert_eq!(dirty.discard(1, 3 * 4096 - 2), 1);
        assert_eq!(dirty.ranges(), [(0, 4096), (8192, 4096)]);
    }

    /// An operation on one volume's cache.
    #[derive(Debug, Clone)]
    enum Step {
        Write(u64, u64),
        Discard(u64, u64),
        Drain,
        Flush,
        /// The run that was sent as the n-th of those on their way arrives.
        Arrive(usize),
    }

    fn step() -> impl proptest::strategy::Strategy<Value = Step> {
        use proptest::prelude::*;
        let range = || (0_u64..300, 1_u64..100);
        prop_oneof![
            4 => range().prop_map(|(first, count)| Step::Write(first, count)),
            1 => range().prop_map(|(first, count)| Step::Discard(first, count)),
            1 => Just(Step::Drain),
            1 => Just(Step::Flush),
            4 => (0_usize..DEPTH).prop_map(Step::Arrive),
        ]
    }

    /// A simple model of one volume: the last write of each block, and which of these writes
    /// are on the disk or in flight.
    #[derive(Default)]
    struct Model {
        clock: u64,
        /// Times of the last writes of dirty, unsent blocks.
        unsent: alloc::collections::BTreeMap<u64, u64>,
        /// Runs with the times of the writes that they carry.
        sent: Vec<(WriteBack, Vec<(u64, u64)>)>,
        /// Flushes with the time when they came.
        waiting: Vec<(usize, u64)>,
    }

    impl Model {
        /// Returns whether a write from before `time` is not on the disk.
        fn owes(&self, time: u64) -> bool {
            let sent = self.sent.iter().flat_map(|(_, writes)| writes.iter().map(|w| w.1));
            self.unsent.values().copied().chain(sent).any(|written| written <= time)
        }

        fn dirty(&self) -> BTreeSet<u64> {
            let sent = self.sent.iter().flat_map(|(run, _)| run.blocks());
            self.unsent.keys().copied().chain(sent).collect()
        }
    }

    fn check(steps: Vec<Step>) {
        let (mut dirty, mut model) = (Dirty::default(), Model::default());
        for (id, step) in steps.into_iter().enumerate() {
            model.clock += 1;
            match step {
                Step::Write(first, count) => {
                    let blocks = first..first + count;
                    let new = blocks.clone().filter(|b| !model.unsent.contains_key(b)).count();
                    assert_eq!(dirty.new_blocks(first * BLOCK, count * BLOCK), new as u64);
                    assert_eq!(dirty.mark(first * BLOCK, count * BLOCK), new as u64);
                    // A block that a flush waits for is written with that flush.
                    for block in blocks {
                        model.unsent.entry(block).or_insert(model.clock);
                    }
                }
                Step::Discard(first, count) => {
                    let before = model.unsent.len();
                    model.unsent.retain(|block, _| !(first..first + count).contains(block));
                    let gone = before - model.unsent.len();
                    assert_eq!(dirty.discard(first * BLOCK, count * BLOCK), gone as u64);
                }
                Step::Drain => dirty.draining = true,
                Step::Flush => {
                    let at_once = dirty.flush(id);
                    assert_eq!(at_once, !model.owes(model.clock) && model.waiting.is_empty());
                    if !at_once {
                        model.waiting.push((id, model.clock));
                    }
                }
                Step::Arrive(n) if n < model.sent.len() => {
                    let (run, _) = model.sent.remove(n);
                    for flush in dirty.written(&run) {
                        let at = model.waiting.iter().position(|w| w.0 == flush);
                        let (_, came) = model.waiting.remove(at.expect("a flush that waits"));
                        assert!(!model.owes(came), "flush {flush} of {came} came too early");
                    }
                }
                Step::Arrive(_) => {}
            }
            // The engine sends whatever may go whenever something has changed.
            while let Some(run) = dirty.next_run() {
                let writes = run.blocks().map(|b| (b, model.unsent.remove(&b)));
                let writes = writes.map(|(b, at)| (b, at.expect("a block that was dirty")));
                model.sent.push((run, writes.collect()));
            }
            assert!(model.sent.len() <= DEPTH);
            let lost: BTreeSet<u64> = dirty
                .ranges()
                .into_iter()
                .flat_map(|(offset, len)| offset / BLOCK..(offset + len) / BLOCK)
                .collect();
            assert_eq!(lost, model.dirty());
            for first in (0..448).step_by(64) {
                let mask = lost.range(first..first + 64).fold(0, |m, b| m | 1 << (b - first));
                assert_eq!(dirty.mask(first), mask);
            }
        }
        // Everything that waits is answered in the end.
        while let Some((run, _)) = model.sent.pop() {
            let done = dirty.written(&run);
            model.waiting.retain(|w| !done.contains(&w.0));
            model
                .sent
                .extend(core::iter::from_fn(|| dirty.next_run()).map(|run| (run, Vec::new())));
        }
        assert!(model.waiting.is_empty(), "{:?}", model.waiting);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_plain_story_of_each_block(
            steps in proptest::collection::vec(step(), 1..150),
        ) {
            check(steps);
        }
    }
}
