//! The time between two freezes of a volume, and the changes under way in it.

use super::BLOCK;
use super::bitmap::Bitmap;
use super::frozen::Frozen;
use crate::store::{ExtentKind, Store};
use crate::sync::locked;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A shorter range that becomes zeros counts as changed as a whole. In a longer one, the
/// holes are looked for, which may wait for the medium.
const MARKED_WHOLE: u64 = 64 << 20;
/// Extents looked at together.
const EXTENTS: usize = 1024;

/// The rules that each change of a volume follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    /// The blocks that changed, if anything will ask for them.
    pub(super) changed: Option<Arc<Bitmap>>,
    /// The views that need old contents.
    pub(super) frozen: Vec<Arc<Frozen>>,
    /// The medium may have a record of the changes, which must go before the next one.
    pub(super) sealed: bool,
}

/// The time in which the same rules hold. It is over when another has taken its place, and
/// done when the changes that had begun in it are: then nothing has it any more.
#[derive(Debug)]
pub(super) struct Era {
    pub(super) number: u64,
    pub(super) rules: Rules,
    done: Arc<Done>,
}

/// The end of an era's changes, to be waited for.
#[derive(Debug, Default)]
pub(super) struct Done {
    is_done: AtomicBool,
    waiting: Mutex<()>,
    idle: Condvar,
}

/// A change under way.
#[derive(Debug)]
pub(super) struct Visit(Arc<Era>);

impl Era {
    pub(super) fn first(rules: Rules) -> Self {
        Self { number: 0, rules, done: Arc::default() }
    }

    /// Returns the era that takes its place.
    pub(super) fn next(&self, rules: Rules) -> Self {
        Self { number: self.number + 1, rules, done: Arc::default() }
    }

    /// Begins a change.
    pub(super) fn enter(self: &Arc<Self>) -> Visit {
        Visit(Arc::clone(self))
    }

    /// Returns what tells when its changes are done.
    pub(super) fn done(&self) -> Arc<Done> {
        Arc::clone(&self.done)
    }
}

impl Drop for Era {
    fn drop(&mut self) {
        self.done.is_done.store(true, Ordering::SeqCst);
        drop(locked(&self.done.waiting));
        self.done.idle.notify_all();
    }
}

impl Done {
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// Waits; the era is over.
    pub(super) fn wait(&self) {
        let mut waiting = locked(&self.waiting);
        while !self.is_done() {
            waiting = self.idle.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Visit {
    /// Returns whether a change needs no preparation.
    pub(super) fn is_free(&self) -> bool {
        self.0.rules.changed.is_none() && self.0.rules.frozen.is_empty()
    }

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
        let reason = "the medium is full, and clients need the space";
        let lost: Vec<bool> =
            self.0.rules.frozen.iter().map(|frozen| frozen.lose(reason)).collect();
        lost.contains(&true)
    }
}

/// Returns the blocks that a range touches; it is not empty.
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
