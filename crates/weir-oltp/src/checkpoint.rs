//! Checkpoints write dirty pages to the data files, oldest change first. Adjacent pages share a
//! write, and each file has a maximum number of in-flight writes.
//!
//! An *automatic* checkpoint starts at an interval and writes all pages that are dirty at its
//! start. *Indirect* checkpoints run all the time and write each page when its change has reached
//! an age. A checkpoint is complete, and moves the redo point, when all pages are written that were
//! dirty at its start. An indirect one writes them at once if the log is full.

use crate::model::{Checkpoint, Checkpoints, PAGE};
use crate::pages::Pages;
use crate::placement::Placement;
use std::collections::VecDeque;
use std::ops::Range;
use weir_units::{Instant, Span};

/// Minimum time from the end of a checkpoint to the next, and the interval at which indirect
/// checkpoints look for old pages.
pub(crate) const POLL: Span = Span::from_millis(100);

/// Slow writes that reduce the number of in-flight writes by one, and fast writes that raise it by
/// one.
const STEP: u32 = 5;

/// A dirty page.
#[derive(Debug, Clone, Copy)]
struct Dirty {
    page: u32,
    /// The mark of this change for [`Pages::is_dirty_since`].
    mark: u8,
    since: Instant,
}

impl Dirty {
    fn is_still(&self, pages: &Pages) -> bool {
        pages.is_dirty_since(self.page, self.mark)
    }
}

/// The dirty pages of a data file, and its in-flight writes.
#[derive(Debug, Clone)]
struct Writes {
    /// Dirty pages, oldest change first. A page that was written since, beside another, is still
    /// listed.
    dirty: VecDeque<Dirty>,
    in_flight: u32,
    /// In-flight writes that the running checkpoint waits for.
    waited_for: u32,
    /// Maximum number of in-flight writes, times [`STEP`].
    allowed: u32,
    /// A write waits for a place or for its page.
    is_blocked: bool,
}

/// A write to a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageWrite {
    pub(crate) pages: Range<u32>,
    /// The number of the first checkpoint that waits for it.
    pub(crate) waited_by: u64,
}

/// The running checkpoint, or the wait for the next.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    settings: Checkpoint,
    files: Vec<Writes>,
    started: Option<Instant>,
    begun: u64,
    /// The running checkpoint writes pages regardless of their age.
    hurries: bool,
    done: u64,
}

impl Checkpointer {
    pub(crate) fn new(settings: Checkpoint, files: usize) -> Self {
        let writes = Writes {
            dirty: VecDeque::new(),
            in_flight: 0,
            waited_for: 0,
            allowed: settings.writes * STEP,
            is_blocked: false,
        };
        Self {
            settings,
            files: vec![writes; files],
            started: None,
            begun: 0,
            hurries: false,
            done: 0,
        }
    }

    /// Returns the start of the first checkpoint.
    pub(crate) fn first(&self) -> Instant {
        match self.settings.kind {
            Checkpoints::Automatic { every } => Instant::ZERO + every,
            Checkpoints::Indirect { .. } => Instant::ZERO + POLL,
        }
    }

    /// Returns whether pages are looked for at each [`POLL`].
    pub(crate) fn polls(&self) -> bool {
        matches!(self.settings.kind, Checkpoints::Indirect { .. })
    }

    /// Starts a checkpoint of all dirty pages, because it is due or because the log is full.
    pub(crate) fn begin(&mut self, now: Instant, log_is_full: bool) {
        self.started = Some(now);
        self.begun += 1;
        // In-flight pages were dirty before.
        self.files.iter_mut().for_each(|writes| writes.waited_for = writes.in_flight);
        self.hurries = log_is_full || !self.polls();
    }

    /// Makes the running checkpoint ignore the age of pages, since the log is full. Returns whether
    /// this is a change.
    pub(crate) fn hurry(&mut self) -> bool {
        let begins = self.started.is_some() && !self.hurries;
        self.hurries |= begins;
        begins
    }

    /// Notes that a clean page became dirty.
    pub(crate) fn dirtied(&mut self, file: usize, page: u32, mark: u8, since: Instant) {
        self.files[file].dirty.push_back(Dirty { page, mark, since });
    }

    /// Returns the time up to which changes are to be written. If memory is full of dirty pages,
    /// this is now, as for SQL Server's lazy writer.
    fn until(&self, now: Instant, pressed: bool) -> Option<Instant> {
        if pressed {
            return Some(now);
        }
        let old = match self.settings.kind {
            Checkpoints::Automatic { .. } => None,
            Checkpoints::Indirect { target_recovery } => {
                now.nanos().checked_sub(target_recovery.nanos()).map(Instant::from_nanos)
            }
        };
        old.max(self.started.filter(|_| self.hurries))
    }

    /// Returns the next write to a data file, and marks its pages as being written.
    pub(crate) fn next_write(
        &mut self,
        file: usize,
        placement: &Placement,
        pages: &mut Pages,
        now: Instant,
    ) -> Option<PageWrite> {
        let until = self.until(now, pages.is_pressed())?;
        let most = u32::try_from(self.settings.coalesce.get() / PAGE).unwrap_or(u32::MAX).max(1);
        let writes = &mut self.files[file];
        while let Some(dirty) = writes.dirty.front().copied() {
            if !dirty.is_still(pages) {
                writes.dirty.pop_front();
                continue;
            }
            let Dirty { page, since, .. } = dirty;
            if since > until {
                break;
            }
            // A page that is being written is written again only after that: two writes of it could
            // overtake each other.
            writes.is_blocked = writes.in_flight >= writes.allowed / STEP || !pages.can_go(page);
            if writes.is_blocked {
                return None;
            }
            writes.dirty.pop_front();
            let pages = neighbours(page, most, placement.piece(page), pages);
            let is_before = self.started.is_some_and(|started| since <= started);
            let waited_by = self.begun + u64::from(!is_before);
            writes.in_flight += 1;
            writes.waited_for += u32::from(is_before);
            return Some(PageWrite { pages, waited_by });
        }
        writes.is_blocked = false;
        None
    }

    /// Takes the completion of a write. Returns whether there may be more to write now.
    pub(crate) fn written(&mut self, file: usize, waited_by: u64, took: Span) -> bool {
        let writes = &mut self.files[file];
        writes.in_flight -= 1;
        writes.waited_for -= u32::from(self.started.is_some() && waited_by <= self.begun);
        if self.settings.latency.is_some_and(|target| took > target) {
            writes.allowed = (writes.allowed - 1).max(STEP);
        } else {
            writes.allowed = (writes.allowed + 1).min(self.settings.writes * STEP);
        }
        writes.is_blocked || self.hurries
    }

    /// Returns whether a checkpoint is running.
    pub(crate) fn is_running(&self) -> bool {
        self.started.is_some()
    }

    /// Returns whether the running checkpoint has written all pages that were dirty at its start.
    pub(crate) fn is_swept(&self, pages: &Pages) -> bool {
        let Some(started) = self.started else { return false };
        self.files.iter().all(|writes: &Writes| {
            let mut old = writes.dirty.iter().take_while(|dirty| dirty.since <= started);
            writes.waited_for == 0 && !old.any(|dirty| dirty.is_still(pages))
        })
    }

    /// Completes the running checkpoint, and returns the start of the next one.
    pub(crate) fn complete(&mut self, now: Instant) -> Option<Instant> {
        let started = self.started.take()?;
        self.hurries = false;
        self.done += 1;
        let (Checkpoints::Automatic { every: pause }
        | Checkpoints::Indirect { target_recovery: pause }) = self.settings.kind;
        Some((started + pause).max(now + POLL))
    }

    /// Returns the number of completed checkpoints.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }
}

/// Returns a page with its dirty neighbours, at most `most` pages, and marks them as being written.
fn neighbours(page: u32, most: u32, range: Range<u32>, pages: &mut Pages) -> Range<u32> {
    let least = range.start.max(page.saturating_sub(most - 1));
    let before = (least..page).rev().take_while(|page| pages.can_go(*page)).count();
    let first = page - u32::try_from(before).unwrap_or(0);
    let limit = range.end.min(first.saturating_add(most));
    let end = (page + 1..limit).find(|page| !pages.can_go(*page)).unwrap_or(limit);
    (first..end).for_each(|page| pages.begin_write(page));
    first..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DataFile;
    use weir_units::Bytes;

    const MINUTE: Span = Span::from_secs(60);

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::from_secs(s)
    }

    /// A checkpointer of one file with 128 pages, some of which are dirty since the first second.
    struct Rig {
        checkpointer: Checkpointer,
        placement: Placement,
        pages: Pages,
        in_flight: Vec<PageWrite>,
    }

    impl Rig {
        fn new(kind: Checkpoints, dirty: impl IntoIterator<Item = u32>, writes: u32) -> Self {
            let latency = Some(Span::from_millis(50));
            let settings = Checkpoint { kind, writes, coalesce: Bytes::kib(256), latency };
            let checkpointer = Checkpointer::new(settings, 1);
            let placement = Placement::new(&[DataFile::new(0, Bytes::mib(1))], 128);
            let pages = Pages::new(128, false, 128, true);
            let mut rig = Self { checkpointer, placement, pages, in_flight: Vec::new() };
            dirty.into_iter().for_each(|page| rig.dirty(page, 1));
            rig
        }

        fn automatic(dirty: impl IntoIterator<Item = u32>, writes: u32) -> Self {
            let mut rig = Self::new(Checkpoints::Automatic { every: MINUTE }, dirty, writes);
            rig.checkpointer.begin(at(60), false);
            rig
        }

        fn dirty(&mut self, page: u32, s: u64) {
            if let Some(mark) = self.pages.mark_dirty(page) {
                self.checkpointer.dirtied(0, page, mark, at(s));
            }
        }

        fn next(&mut self, s: u64) -> Option<Range<u32>> {
            let write = self.checkpointer.next_write(0, &self.placement, &mut self.pages, at(s))?;
            self.in_flight.push(write.clone());
            Some(write.pages)
        }

        fn written(&mut self, pages: Range<u32>, ms: u64) -> bool {
            pages.for_each(|page| self.pages.end_write(page));
            self.checkpointer.written(0, 1, Span::from_millis(ms))
        }
    }

    #[test]
    fn dirty_neighbours_are_one_write_of_so_many_bytes() {
        let mut rig = Rig::automatic((3..43).chain([45]), 8);
        let writes: Vec<_> = std::iter::from_fn(|| rig.next(60)).collect();
        assert_eq!(writes, [3..35, 35..43, 45..46]);
        assert_eq!(rig.pages.dirty(), 0);
        // A write extends from its page in both directions.
        let mut rig = Rig::automatic([20], 8);
        (0..128).for_each(|page| rig.dirty(page, 2));
        assert_eq!(rig.next(60), Some(0..32));
    }

    #[test]
    fn in_flight_writes_are_limited() {
        let mut rig = Rig::automatic([1, 3, 5], 2);
        assert_eq!((rig.next(60), rig.next(60)), (Some(1..2), Some(3..4)));
        assert_eq!(rig.next(60), None);
        assert!(rig.written(1..2, 1));
        assert_eq!(rig.next(60), Some(5..6));
    }

    #[test]
    fn slow_writes_reduce_the_number_in_flight() {
        let mut rig = Rig::automatic((0..64).map(|n| n * 2), 8);
        let allowed = |rig: &mut Rig| {
            let mut in_flight = Vec::new();
            while let Some(pages) = rig.next(60) {
                in_flight.push(pages);
            }
            in_flight
        };
        let first = allowed(&mut rig);
        assert_eq!(first.len(), 8);
        for pages in first {
            rig.written(pages, 51);
        }
        let second = allowed(&mut rig);
        assert_eq!(second.len(), 6, "8 of 5 too slow are 2 less");
        for pages in second {
            rig.written(pages, 50);
        }
        assert_eq!(allowed(&mut rig).len(), 7);
    }

    #[test]
    fn a_checkpoint_is_complete_when_its_last_write_is() {
        let mut rig = Rig::automatic([1], 2);
        rig.dirty(9, 61);
        assert_eq!((rig.next(61), rig.next(61)), (Some(1..2), None));
        assert!(!rig.checkpointer.is_swept(&rig.pages));
        rig.written(1..2, 1);
        assert!(rig.checkpointer.is_swept(&rig.pages));
        assert_eq!(rig.checkpointer.complete(at(62)), Some(at(120)));
        assert_eq!((rig.checkpointer.done(), rig.checkpointer.is_running()), (1, false));
    }

    #[test]
    fn an_indirect_checkpoint_writes_old_pages() {
        let mut rig = Rig::new(Checkpoints::Indirect { target_recovery: MINUTE }, [1, 2], 8);
        rig.dirty(9, 30);
        rig.checkpointer.begin(at(40), false);
        assert_eq!(rig.next(60), None);
        assert_eq!((rig.next(61), rig.next(61)), (Some(1..3), None));
        assert!(!rig.written(1..3, 1), "the next look is soon enough");
        assert!(!rig.checkpointer.is_swept(&rig.pages));
        assert_eq!(rig.next(90), Some(9..10));
        rig.written(9..10, 1);
        assert!(rig.checkpointer.is_swept(&rig.pages));
        assert_eq!(rig.checkpointer.complete(at(91)), Some(at(100)));
    }

    #[test]
    fn a_checkpoint_waits_for_writes_in_flight_at_its_start() {
        let mut rig = Rig::new(Checkpoints::Indirect { target_recovery: MINUTE }, [1], 8);
        assert_eq!(rig.next(61), Some(1..2));
        rig.checkpointer.begin(at(62), false);
        assert!(!rig.checkpointer.is_swept(&rig.pages));
        rig.written(1..2, 1);
        assert!(rig.checkpointer.is_swept(&rig.pages));
    }

    #[test]
    fn an_indirect_checkpoint_ignores_age_if_the_log_is_full() {
        let mut rig = Rig::new(Checkpoints::Indirect { target_recovery: MINUTE }, [1], 8);
        assert!(!rig.checkpointer.hurry(), "none is running");
        rig.checkpointer.begin(at(2), false);
        rig.dirty(5, 3);
        assert_eq!(rig.next(3), None);
        assert!(rig.checkpointer.hurry());
        assert!(!rig.checkpointer.hurry(), "it does already");
        assert_eq!((rig.next(3), rig.next(3)), (Some(1..2), None));
    }

    #[test]
    fn a_page_is_written_again_only_after_its_write() {
        let mut rig = Rig::automatic([1], 8);
        assert_eq!(rig.next(60), Some(1..2));
        rig.dirty(1, 60);
        rig.dirty(3, 60);
        assert_eq!(rig.next(60), None);
        assert!(rig.written(1..2, 1));
        assert_eq!((rig.next(60), rig.next(60)), (Some(1..2), Some(3..4)));
    }
}
