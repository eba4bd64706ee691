//! Giving back what a deleted snapshot held: the layer above is pushed down into it.
//!
//! ```text
//!    top                         top
//!    L3, snapshot 3              L1, snapshot 3     what L3 had, and what L1 had where
//!    L1, deleted          -->                       L3 said nothing
//!    L0, snapshot 1              L0, snapshot 1
//! ```
//!
//! Reads reach the lower layer only through the upper one, which hides every page
//! that is pushed, so it may be seen, and left by a crash, in any state. In the end it is
//! durable, then the list names it in place of both. Pushing twice does no harm: after a
//! crash it begins anew.

use super::stack::{Entry, Found, clip, look};
use super::state::State;
use super::{ALL_PAGES, PAGE};
use crate::Result;
use crate::pieces::index;
use std::ops::Range;
use weir_units::Bytes;

/// The most bytes that one step copies. The volumes of tests are small.
const STEP_BYTES: u64 = if cfg!(test) { 4 * PAGE } else { 4 << 20 };
/// The most runs of pages that one step looks at.
const STEP_RUNS: u32 = if cfg!(test) { 3 } else { 4096 };
/// The bytes that are copied at once.
const COPY: u64 = if cfg!(test) { 3 * PAGE } else { 1 << 20 };

/// Two neighbours of which the upper one is pushed into the lower one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge<'a> {
    pub(crate) lower: &'a Entry,
    pub(crate) upper: &'a Entry,
    /// True if there is nothing under the lower one.
    pub(crate) at_bottom: bool,
}

impl Merge<'_> {
    /// Pushes pages from `page` on; tells where to go on, if there are more.
    pub(crate) fn step(&self, page: u64) -> Result<Option<u64>> {
        let lower = &self.lower.layer;
        if page == 0 {
            self.clear_behind()?;
        }
        if self.upper.size > lower.bytes.size().get() {
            lower.bytes.resize(Bytes::new(self.upper.size))?;
        }
        let (mut at, mut budget) = (page, STEP_BYTES);
        for _ in 0..STEP_RUNS {
            let end = ALL_PAGES;
            let (found, len) = look(std::slice::from_ref(self.upper), at, end);
            match found {
                Found::Absent if at + len == end => return Ok(None),
                Found::Absent => at += len,
                Found::Data(_) if at * PAGE < self.upper.size => {
                    let last = self.upper.size.div_ceil(PAGE);
                    let to = (at + len).min(at + budget / PAGE).min(last);
                    self.push_data(at..to)?;
                    budget -= (to - at) * PAGE;
                    at = to;
                }
                Found::Zero | Found::Data(_) => {
                    self.push_zero(at..at + len)?;
                    at += len;
                }
            }
            if budget < PAGE {
                break;
            }
        }
        Ok(Some(at))
    }

    /// Clears the bytes of the lower store behind the end of its layer, in the page that the end
    /// cuts. They are invisible there, but would show if the end moved.
    fn clear_behind(&self) -> Result<()> {
        let (from, bytes) = (self.lower.size, &self.lower.layer.bytes);
        let page_end = from.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let to = page_end.min(bytes.size().get());
        if from < to { bytes.write_zeroes(from, to - from, true) } else { Ok(()) }
    }

    fn push_data(&self, pages: Range<u64>) -> Result<()> {
        let (from, to) = (&self.upper.layer.bytes, &self.lower.layer.bytes);
        let range = clip(&pages, 0, self.upper.size);
        let mut buf = vec![0; index(range.len.min(COPY))];
        for piece in crate::pieces::pieces(0, range.len, COPY) {
            let buf = &mut buf[..index(piece.len)];
            from.read_at(range.offset + piece.at, buf)?;
            to.write_at(range.offset + piece.at, buf)?;
        }
        self.lower.layer.mark(pages, State::Data);
        Ok(())
    }

    fn push_zero(&self, pages: Range<u64>) -> Result<()> {
        let lower = &self.lower.layer;
        lower.mark(pages.clone(), if self.at_bottom { State::Absent } else { State::Zero });
        let range = clip(&pages, 0, lower.bytes.size().get());
        if range.len == 0 { Ok(()) } else { lower.bytes.trim(range.offset, range.len) }
    }
}
