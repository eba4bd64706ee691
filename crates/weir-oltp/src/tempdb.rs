//! tempdb: row versions and temporary tables of transactions. Its pages are filled in a ring. They
//! are never read or recovered, but written at an age like pages of the database. Each allocation
//! latches the allocation page of a file.

use crate::checkpoint::Checkpointer;
use crate::model::{self, Checkpoint, Checkpoints, PAGE};
use crate::pages::{Lookup, Pages};
use crate::placement::Placement;
use std::collections::{HashMap, VecDeque};
use weir_units::{Instant, Span};

/// The latch of a file's allocation page.
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
    /// Users that wait for a page that is being written.
    waiting: HashMap<u32, Vec<u32>>,
    /// The next page of the ring, and the size of the ring.
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
        // tempdb is not recovered, so it has no checkpoints at an interval.
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

    /// Requests an allocation for `user`. Returns the file, and whether its latch was free;
    /// otherwise the user is queued.
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

    /// Returns the time for which the allocation of pages holds the latch.
    pub(crate) fn hold(&self, pages: u32) -> Span {
        Span::from_nanos(self.hold.nanos().saturating_mul(u64::from(pages)))
    }

    /// Ends an allocation, and returns the next user in the file's queue.
    pub(crate) fn release(&mut self, file: usize) -> Option<u32> {
        let latch = &mut self.latches[file];
        let next = latch.line.pop_front();
        latch.is_held = next.is_some();
        next
    }

    /// Fills a page, the next one or the one that `user` waited for. Returns `None` if it is being
    /// written; `user` then waits for it.
    pub(crate) fn change(&mut self, user: u32, page: Option<u32>, now: Instant) -> Option<()> {
        let page = page.unwrap_or_else(|| {
            let page = self.placement.page(self.next);
            self.next = (self.next + 1) % self.size;
            page
        });
        if self.pages.want(page, true) != Lookup::Ready {
            self.waiting.entry(page).or_default().push(user);
            return None;
        }
        if let Some(mark) = self.pages.mark_dirty(page) {
            let (file, _) = self.placement.locate(page);
            self.checkpointer.dirtied(file, page, mark, now);
        }
        Some(())
    }

    /// Returns the number of waiting users.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        let at_latches: usize = self.latches.iter().map(|latch| latch.line.len()).sum();
        at_latches + self.waiting.values().map(Vec::len).sum::<usize>()
    }

    /// Notes that a page was written, and returns the users that waited for it.
    pub(crate) fn written(&mut self, page: u32) -> Vec<u32> {
        self.pages.end_write(page);
        self.waiting.remove(&page).unwrap_or_default()
    }
}
