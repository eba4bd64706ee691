//! The dirty blocks of a ReadWrite cache, over what the store holds.
//!
//! A block is *whole*, and reads see it; or it is *a part*: a client wrote some of it and the rest
//! is being read from the store. Reads do not see a part, and the write that began it is not
//! answered before the block is whole.
//!
//! A whole block with bytes that nothing brings to the store yet is *loose*. Else
//! it is *carried*: by one job that has all of it and by those that changed it
//! since. It goes when the last of them is done; when one of them fails it is
//! loose again, and *owed*: the engine holds it for written.

use super::block::{BLOCK, Block, within};
use super::lane::Ticket;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The part of a request in one block.
pub(super) struct Cut {
    /// The bytes of the block.
    pub(super) inner: Range<usize>,
    /// The bytes of the request.
    pub(super) outer: Range<usize>,
}

impl Cut {
    /// Returns the cut of `block`, which the range must touch.
    pub(super) fn new(block: u64, offset: u64, len: u64) -> Self {
        let start = block * BLOCK;
        let (from, to) = (start.max(offset), (start + BLOCK).min(offset + len));
        Self {
            inner: within(from - start)..within(to - start),
            outer: within(from - offset)..within(to - offset),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.inner.len() == size_of::<Block>()
    }
}

/// Returns the blocks that a range touches.
pub(super) fn touched(offset: u64, len: u64) -> Range<u64> {
    offset / BLOCK..(offset + len).div_ceil(BLOCK)
}

/// The new contents of a range.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    Bytes(&'a [u8]),
    Zeros,
}

impl Change<'_> {
    fn apply(self, cut: &Cut, block: &mut Block) {
        let target = &mut block[cut.inner.clone()];
        match self {
            Self::Bytes(data) => target.copy_from_slice(&data[cut.outer.clone()]),
            Self::Zeros => target.fill(0),
        }
    }

    fn kept(self, cut: &Cut) -> Box<[u8]> {
        match self {
            Self::Bytes(data) => data[cut.outer.clone()].into(),
            Self::Zeros => vec![0; cut.inner.len()].into(),
        }
    }
}

/// The jobs that bring a block to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Carried {
    /// It has all of the block.
    first: Ticket,
    /// Since this one nothing has changed.
    last: Ticket,
}

#[derive(Debug)]
enum Held {
    Whole {
        /// Shared with the jobs that carry it, so a change makes a copy.
        bytes: Arc<Block>,
        carried: Option<Carried>,
    },
    Part {
        id: u64,
        /// The writes to it, in order: offset in the block, bytes.
        patches: Vec<(usize, Box<[u8]>)>,
        /// Reads of the rest that are under way.
        fills: usize,
        /// The engine holds it for written: it goes on as soon as it is whole.
        wanted: bool,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    blocks: BTreeMap<u64, Held>,
    owed: BTreeSet<u64>,
    /// Numbers the parts, so that a read that comes late finds its own or none.
    parts: u64,
    capture: Option<Capture>,
}

/// The blocks that reads saw at one instant, which are collected in steps: to take all of them at
/// once would stop the host for as long as the cache is large.
///
/// A block that changes before its step is taken first, and the step passes over it.
#[derive(Debug, Default)]
struct Capture {
    /// Blocks below this one were taken.
    next: u64,
    /// Blocks from `next` on that changed since: they are in `taken`, or were not held.
    changed: BTreeSet<u64>,
    taken: Vec<(u64, Arc<Block>)>,
}

impl Overlay {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks that the engine holds for written and the store did not take.
    pub(super) fn owed(&self) -> usize {
        self.owed.len()
    }

    pub(super) fn holds(&self, block: u64) -> bool {
        self.blocks.contains_key(&block)
    }

    pub(super) fn reaches_behind(&self, size: u64) -> bool {
        self.blocks.last_key_value().is_some_and(|(block, _)| *block >= size / BLOCK)
    }

    /// Returns the blocks of a range that reads see: offset in the range, bytes.
    pub(super) fn seen_in(&self, offset: u64, len: u64) -> impl Iterator<Item = (usize, &[u8])> {
        self.blocks.range(touched(offset, len)).filter_map(move |(block, held)| match held {
            Held::Whole { bytes, .. } => {
                let cut = Cut::new(*block, offset, len);
                Some((cut.outer.start, &bytes[cut.inner]))
            }
            Held::Part { .. } => None,
        })
    }

    /// Begins to capture what reads see now. A capture that was not completed is dropped.
    pub(super) fn begin_capture(&mut self) {
        self.capture = (!self.blocks.is_empty()).then(Capture::default);
    }

    /// Returns captured blocks, after looking at up to `most` more, and whether these were the
    /// last ones.
    pub(super) fn capture_some(&mut self, most: usize) -> (Vec<(u64, Arc<Block>)>, bool) {
        let Some(capture) = &mut self.capture else { return (Vec::new(), true) };
        let mut looked_at = 0;
        for (block, held) in self.blocks.range(capture.next..).take(most) {
            looked_at += 1;
            capture.next = block + 1;
            if let Held::Whole { bytes, .. } = held
                && !capture.changed.remove(block)
            {
                capture.taken.push((*block, Arc::clone(bytes)));
            }
        }
        let taken = std::mem::take(&mut capture.taken);
        if looked_at < most {
            self.capture = None;
        }
        (taken, self.capture.is_none())
    }

    /// Captures a block that is about to change, if it was not yet.
    fn before_change(&mut self, block: u64) {
        if let Some(capture) = self.capture.as_mut().filter(|capture| block >= capture.next)
            && capture.changed.insert(block)
            && let Some(Held::Whole { bytes, .. }) = self.blocks.get(&block)
        {
            capture.taken.push((block, Arc::clone(bytes)));
        }
    }

    /// Captures all blocks held in a range that is about to change.
    fn before_changes(&mut self, offset: u64, len: u64) {
        if self.capture.is_some() {
            self.held_in(offset, len).into_iter().for_each(|block| self.before_change(block));
        }
    }

    /// Holds the store's bytes of a block of which a part is about to be written.
    pub(super) fn put(&mut self, block: u64, bytes: Arc<Block>) {
        self.before_change(block);
        self.blocks.insert(block, Held::Whole { bytes, carried: None });
    }

    /// Begins a part, or joins the one there is; its number. `None` for a block
    /// that is whole.
    pub(super) fn part(&mut self, block: u64) -> Option<u64> {
        self.parts += 1;
        let fresh = || Held::Part { id: self.parts, patches: Vec::new(), fills: 0, wanted: false };
        match self.blocks.entry(block).or_insert_with(fresh) {
            Held::Whole { .. } => None,
            Held::Part { id, fills, .. } => {
                *fills += 1;
                Some(*id)
            }
        }
    }

    /// Keeps a write. Blocks of which it covers a part must be here. Returns those
    /// that it made whole and that are to be written back at once.
    pub(super) fn keep(&mut self, offset: u64, data: &[u8]) -> Vec<u64> {
        let mut wanted_blocks = Vec::new();
        let (change, len) = (Change::Bytes(data), data.len() as u64);
        for block in touched(offset, len) {
            let cut = Cut::new(block, offset, len);
            self.before_change(block);
            match self.blocks.get_mut(&block) {
                Some(Held::Whole { bytes, carried }) => {
                    change.apply(&cut, Arc::make_mut(bytes));
                    *carried = None;
                }
                Some(Held::Part { patches, .. }) if !cut.is_whole() => {
                    patches.push((cut.inner.start, change.kept(&cut)));
                }
                part => {
                    assert!(cut.is_whole(), "block {block} is kept in part and its rest unknown");
                    if let Some(Held::Part { wanted: true, .. }) = part {
                        wanted_blocks.push(block);
                    }
                    let mut bytes = Arc::new([0; 4096]);
                    change.apply(&cut, Arc::make_mut(&mut bytes));
                    self.put(block, bytes);
                }
            }
        }
        wanted_blocks
    }

    /// Follows a change that `job` makes in the store; returns whether `job` now
    /// carries anything that is held here.
    pub(super) fn follow(&mut self, offset: u64, len: u64, change: Change, job: Ticket) -> bool {
        self.before_changes(offset, len);
        let mut carries = false;
        for (block, held) in self.blocks.range_mut(touched(offset, len)) {
            let cut = Cut::new(*block, offset, len);
            if cut.is_whole() {
                let mut bytes = Arc::new([0; 4096]);
                change.apply(&cut, Arc::make_mut(&mut bytes));
                *held = Held::Whole { bytes, carried: Some(Carried { first: job, last: job }) };
                carries = true;
                continue;
            }
            match held {
                Held::Whole { bytes, carried } => {
                    change.apply(&cut, Arc::make_mut(bytes));
                    if let Some(carried) = carried {
                        carried.last = job;
                        carries = true;
                    }
                }
                Held::Part { patches, .. } => {
                    patches.push((cut.inner.start, change.kept(&cut)));
                }
            }
        }
        carries
    }

    /// Returns the loose blocks of a range, which `job` carries from now on.
    pub(super) fn let_go(&mut self, blocks: Range<u64>, job: Ticket) -> Vec<(u64, Arc<Block>)> {
        let mut gone = Vec::new();
        for (block, held) in self.blocks.range_mut(blocks) {
            match held {
                Held::Whole { bytes, carried: carried @ None } => {
                    *carried = Some(Carried { first: job, last: job });
                    gone.push((*block, Arc::clone(bytes)));
                }
                Held::Whole { .. } => {}
                Held::Part { wanted, .. } => *wanted = true,
            }
        }
        gone
    }

    /// Returns owed blocks, at most `most` of them, which `job` carries from now on.
    pub(super) fn let_owed_go(&mut self, most: usize, job: Ticket) -> Vec<(u64, Arc<Block>)> {
        let is_loose = |block: &&u64| {
            matches!(self.blocks.get(block), Some(Held::Whole { carried: None, .. }))
        };
        let owed: Vec<u64> = self.owed.iter().filter(is_loose).take(most).copied().collect();
        owed.into_iter().flat_map(|block| self.let_go(block..block + 1, job)).collect()
    }

    /// Takes in that `job` is done: blocks that only it carried are in the store. A job that had
    /// `all` of the block also pays what was owed of it.
    pub(super) fn stored(&mut self, block: u64, job: Ticket, all: bool) {
        let carried = match self.blocks.get(&block) {
            Some(Held::Whole { carried, .. }) => *carried,
            _ => None,
        };
        let last = carried.is_some_and(|carried| carried.last == job);
        if last {
            self.before_change(block);
            self.blocks.remove(&block);
        }
        if last || all {
            self.owed.remove(&block);
        }
    }

    /// Takes in that `job` failed to bring a block to the store.
    pub(super) fn not_stored(&mut self, block: u64, job: Ticket, all: bool) {
        let Some(Held::Whole { carried, .. }) = self.blocks.get_mut(&block) else { return };
        let was_carried = carried.take_if(|carried| carried.first <= job).is_some();
        if was_carried || all {
            self.owed.insert(block);
        }
    }

    /// Blocks held here that a range touches.
    pub(super) fn held_in(&self, offset: u64, len: u64) -> Vec<u64> {
        self.blocks.range(touched(offset, len)).map(|(block, _)| *block).collect()
    }

    /// Takes in the rest of a part, or that it did not come. Returns whether the block, whole now,
    /// is to be written back at once.
    pub(super) fn filled(&mut self, block: u64, part: u64, base: Option<Box<Block>>) -> bool {
        self.before_change(block);
        let Some(held) = self.blocks.get_mut(&block) else { return false };
        let Held::Part { id, patches, fills, wanted } = held else { return false };
        if *id != part {
            return false;
        }
        let Some(mut bytes) = base else {
            *fills -= 1;
            if *fills == 0 {
                self.blocks.remove(&block);
            }
            return false;
        };
        for (at, patch) in patches {
            bytes[*at..*at + patch.len()].copy_from_slice(patch);
        }
        let wanted = *wanted;
        *held = Held::Whole { bytes: Arc::from(bytes), carried: None };
        wanted
    }

    /// Drops the loose blocks, after a crash of the host: they go back to what `under_way` still
    /// carries, newest last. Returns how many blocks lost something.
    pub(super) fn lose<'a>(
        &mut self,
        under_way: impl Iterator<Item = (Ticket, &'a [(u64, Arc<Block>)])>,
    ) -> usize {
        self.before_changes(0, u64::MAX / 2);
        let mut lost = BTreeSet::new();
        self.blocks.retain(|block, held| match held {
            Held::Whole { carried: Some(_), .. } => true,
            Held::Whole { carried: None, .. } => {
                lost.insert(*block);
                false
            }
            Held::Part { .. } => false,
        });
        for (job, blocks) in under_way {
            for (block, bytes) in blocks.iter().filter(|(block, _)| lost.contains(block)) {
                let carried = Some(Carried { first: job, last: job });
                self.blocks.insert(*block, Held::Whole { bytes: Arc::clone(bytes), carried });
            }
        }
        self.owed.retain(|block| self.blocks.contains_key(block));
        lost.len()
    }
}
