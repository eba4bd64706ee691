//! The time between two freezes of a volume, and the changes under way in it.

use super::BLOCK;
use super::bitmap::Bitmap;
use super::frozen::Frozen;
use crate::store::{ExtentKind, Store};
use crate::sync::locked;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A shorter range that becomes zeros counts as changed as a whole. In a longer one, the
/// holes are looked for, which may wait for the medium.
const MARKED_WHOLE: u64 = 64 << 20;
/// Extents looked at together.
const EXTENTS: usize = 1024;

/// What each change of a volume has to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    /// The blocks that changed, if anything will ask for them.
    pub(super) changed: Option<Arc<Bitmap>>,
    /// The views that need old contents.
    pub(super) frozen: Vec<Arc<Frozen>>,
    /// The medium may have a record of the changes, which must go before the next one.
    pub(super) sealed: bool,
}

/// The time in which the same rules hold.
#[derive(Debug, Default)]
pub(super) struct Era {
    pub(super) number: u64,
    pub(super) rules: Rules,
    in_flight: AtomicUsize,
    is_over: AtomicBool,
    waiting: Mutex<()>,
    idle: Condvar,
}

/// A change under way.
#[derive(Debug)]
pub(super) struct Visit(Arc<Era>);

impl Era {
    pub(super) fn first(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Ends it and begins the next; no change enters it any more.
    pub(super) fn next(&self, rules: Rules) -> Self {
        self.is_over.store(true, Ordering::SeqCst);
        Self { number: self.number + 1, rules, ..Self::default() }
    }

    /// Counts a change; the era must be the present one until this returns.
    pub(super) fn enter(self: &Arc<Self>) -> Visit {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        Visit(Arc::clone(self))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
    }

    /// Waits for the changes under way; the era is over.
    pub(super) fn wait_idle(&self) {
        let mut waiting = locked(&self.waiting);
        while !self.is_idle() {
            waiting = self.idle.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let era = &self.0;
        let last = era.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && era.is_over.load(Ordering::SeqCst) {
            drop(locked(&era.waiting));
            era.idle.notify_all();
        }
    }
}

impl Visit {
    pub(super) fn is_sealed(&self) -> bool {
        self.0.rules.sealed
    }

    /// Prepares for new bytes in a range.
    pub(super) fn before_write(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        if let Some(changed) = &self.0.rules.changed {
            changed.set_range(blocks(offset, len));
        }
        self.0.rules.frozen.iter().for_each(|frozen| frozen.preserve(offset, len));
    }

    /// Prepares for zeros in a range. Holes stay as they are.
    pub(super) fn before_zeros(&self, store: &dyn Store, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        if let Some(changed) = &self.0.rules.changed {
            let marked =
                |range: Range<u64>| changed.set_range(blocks(range.start, range.end - range.start));
            let whole = len <= MARKED_WHOLE;
            if whole || for_each_data(store, offset..offset + len, marked).is_err() {
                changed.set_range(blocks(offset, len));
            }
        }
        self.0.rules.frozen.iter().for_each(|frozen| frozen.preserve_data(offset, len));
    }

    /// Gives up the views to make room on a medium that is full; whether there were any.
    pub(super) fn make_room(&self) -> bool {
        let reason = "the medium is full, and clients need the room";
        let lost: Vec<bool> =
            self.0.rules.frozen.iter().map(|frozen| frozen.lose(reason)).collect();
        lost.contains(&true)
    }
}

/// The blocks that a range touches; it is not empty.
pub(super) fn blocks(offset: u64, len: u64) -> Range<u64> {
    offset / BLOCK..(offset + len - 1) / BLOCK + 1
}

/// Calls `call` with each stretch of data in a range of a store.
pub(super) fn for_each_data(
    store: &dyn Store,
    range: Range<u64>,
    mut call: impl FnMut(Range<u64>),
) -> crate::Result<()> {
    let mut at = range.start;
    while at < range.end {
        for extent in store.extents(at, range.end - at, EXTENTS)? {
            if extent.kind == ExtentKind::Data {
                call(at..at + extent.len);
            }
            at += extent.len;
        }
    }
    Ok(())
}
