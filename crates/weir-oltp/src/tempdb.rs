//! What transactions keep in tempdb: row versions and temporary tables. Its pages are
//! used round and round and need no reading and no recovery, but they are written when
//! they are old enough, as those of the database are. Whoever wants some of them goes
//! through the allocation page of a file, one after the other.

use crate::checkpoint::Checkpointer;
use crate::model::{self, Checkpoint, Checkpoints, PAGE};
use crate::pages::{Found, Pages};
use crate::placement::Placement;
use std::collections::{HashMap, VecDeque};
use weir_units::{Instant, Span};

/// The allocation page of a file.
#[derive(Debug, Clone, Default)]
struct Latch {
    is_held: bool,
    line: VecDeque<u32>,
}

/// The pages of tempdb.
#[derive(Debug)]
pub(crate) struct Tempdb {
    pub(crate) placement: Placement,
    pub(crate) pages: Pages,
    pub(crate) checkpointer: Checkpointer,
    /// Who waits for a page that is being written.
    waiting: HashMap<u32, Vec<u32>>,
    /// The next page, and after how many they are used again.
    next: u64,
    size: u64,
    latches: Vec<Latch>,
    next_latch: usize,
    hold: Span,
}

impl Tempdb {
    pub(crate) fn new(tempdb: &model::Tempdb, checkpoint: Checkpoint) -> Self {
        let size = tempdb.size.get() / PAGE;
        let placement = Placement::new(&tempdb.data, size);
        // There is nothing to recover, so nothing that is due every so often.
        let target_recovery = match checkpoint.kind {
            Checkpoints::Automatic { every } => every,
            Checkpoints::Indirect { target_recovery } => target_recovery,
        };
        let kind = Checkpoints::Indirect { target_recovery };
        let files = placement.files();
        Self {
            pages: Pages::new(placement.pages(), false, u64::MAX, true),
            checkpointer: Checkpointer::new(Checkpoint { kind, ..checkpoint }, files),
            waiting: HashMap::new(),
            next: 0,
            size,
            latches: vec![Latch::default(); files],
            next_latch: 0,
            hold: tempdb.latch,
            placement,
        }
    }

    /// `user` wants pages: the file that it gets them from, and whether it may at once. If
    /// not it is in line.
    pub(crate) fn request(&mut self, user: u32) -> (usize, bool) {
        let file = self.next_latch;
        self.next_latch = (file + 1) % self.latches.len();
        let latch = &mut self.latches[file];
        let is_free = !latch.is_held;
        latch.is_held = true;
        if !is_free {
            latch.line.push_back(user);
        }
        (file, is_free)
    }

    /// How long so many pages hold the allocation page.
    pub(crate) fn hold(&self, pages: u32) -> Span {
        Span::from_nanos(self.hold.nanos().saturating_mul(u64::from(pages)))
    }

    /// Somebody has its pages; who is next in line at that file.
    pub(crate) fn release(&mut self, file: usize) -> Option<u32> {
        let latch = &mut self.latches[file];
        let next = latch.line.pop_front();
        latch.is_held = next.is_some();
        next
    }

    /// A page, the next or the one that `user` waited for, is written to in memory.
    /// `None` if it is on its way to its file; then `user` is in line for it.
    pub(crate) fn change(&mut self, user: u32, page: Option<u32>, now: Instant) -> Option<()> {
        let page = page.unwrap_or_else(|| {
            let page = self.placement.page(self.next);
            self.next = (self.next + 1) % self.size;
            page
        });
        if self.pages.want(page, true) != Found::Ready {
            self.waiting.entry(page).or_default().push(user);
            return None;
        }
        if let Some(mark) = self.pages.mark_dirty(page) {
            let (file, _) = self.placement.locate(page);
            self.checkpointer.dirtied(file, page, mark, now);
        }
        Some(())
    }

    /// How many wait for something of it.
    #[cfg(test)]
    pub(crate) fn in_line(&self) -> usize {
        let at_latches: usize = self.latches.iter().map(|latch| latch.line.len()).sum();
        at_latches + self.waiting.values().map(Vec::len).sum::<usize>()
    }

    /// A page has been written; who waited for it.
    pub(crate) fn written(&mut self, page: u32) -> Vec<u32> {
        self.pages.end_write(page);
        self.waiting.remove(&page).unwrap_or_default()
    }
}
