//! The time between two freezes of a volume, and the changes under way in it.

use super::bitmap::{Bitmap, blocks};
use super::done::Done;
use super::frozen::{Frozen, for_each_data};
use crate::store::Store;
use std::ops::Range;
use std::sync::Arc;

/// A zeroed range up to this length counts as changed as a whole. In a longer one, holes are excluded,
/// which may wait for the medium.
const MARKED_WHOLE: u64 = 64 << 20;
/// The rules that each change of a volume follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    /// The blocks that changed, if anything will ask for them.
    pub(super) changed: Option<Arc<Bitmap>>,
    /// The views that need old contents.
    pub(super) frozen: Vec<Arc<Frozen>>,
    /// The medium may have a record of the changes, which must be removed before the next change.
    pub(super) sealed: bool,
}

/// A period with the same rules. It is over when another era has replaced it, and done when all
/// changes that had begun in it are: then no reference to it exists.
#[derive(Debug)]
pub(super) struct Era {
    pub(super) number: u64,
    pub(super) rules: Rules,
    done: Arc<Done>,
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

    /// Returns the end of its changes, to wait for.
    pub(super) fn done(&self) -> Arc<Done> {
        Arc::clone(&self.done)
    }
}

impl Drop for Era {
    fn drop(&mut self) {
        self.done.finish();
    }
}

impl Visit {
    /// Returns whether a change needs no preparation.
    pub(super) fn is_free(&self) -> bool {
        self.0.rules.changed.is_none() && self.0.rules.frozen.is_empty()
    }

    /// Returns whether a change has no old contents to preserve, so that preparing it is quick.
    pub(super) fn is_quick(&self) -> bool {
        self.0.rules.frozen.is_empty()
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

    /// Gives up the views to free space on a full medium. Returns whether there were any.
    pub(super) fn make_room(&self) -> bool {
        let reason = "the medium is full, and clients need the space";
        let lost: Vec<bool> =
            self.0.rules.frozen.iter().map(|frozen| frozen.lose(reason)).collect();
        lost.contains(&true)
    }
}
