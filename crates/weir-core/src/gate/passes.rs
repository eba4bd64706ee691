//! The requests that pass gates.

use crate::waits::Cap;
use core::ops::IndexMut;
use weir_units::{Instant, Span};

/// A request, or a part of one, as gates see it.
pub(crate) trait Passes {
    fn volume(&self) -> usize;
    fn operations(&self) -> u32;
    fn bytes(&self) -> u32;
    /// Returns the time of arrival at the current gate, or at the part of it that is next.
    fn at_gate(&self) -> Instant;
    fn set_at_gate(&mut self, at: Instant);
    fn link(&self) -> &Link;
    fn link_mut(&mut self) -> &mut Link;
    /// Charges a wait to the cap that caused it.
    fn charge(&mut self, cap: Cap, wait: Span);
}

/// All requests in flight, by their keys.
pub(crate) trait Parts: IndexMut<usize, Output: Passes + Sized> {}

impl<T: IndexMut<usize, Output: Passes + Sized>> Parts for T {}

/// The place of a part in the queue of a gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// The next part in the line.
    pub(super) next: Option<usize>,
    pub(super) start_tag: u64,
}

impl Link {
    /// The link of a part that is in no queue.
    pub(crate) const EMPTY: Self = Self { next: None, start_tag: 0 };
}

/// Costs of several requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

impl Load {
    pub(super) fn add(&mut self, part: &impl Passes) {
        self.operations += u64::from(part.operations());
        self.bytes += u64::from(part.bytes());
    }

    pub(super) fn take(&mut self, part: &impl Passes) {
        self.operations -= u64::from(part.operations());
        self.bytes -= u64::from(part.bytes());
    }
}
