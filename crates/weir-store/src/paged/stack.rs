//! The layers of a volume, or of a snapshot, one upon the other.
//!
//! A stack never changes; a snapshot, a resize or a merge puts another in its place, and
//! a read that still has the old one finds its contents.

use super::layer::Layer;
use super::state::State;
use super::{PAGE, PAGE_LEN, PageRange};
use crate::Result;
use crate::pieces::index;
use crate::store::{Extent, ExtentKind, ExtentList, ReadStore, Store, check_range};
use std::ops::Range;
use std::sync::Arc;
use weir_units::Bytes;

/// Layers from the lowest to the top; at least one.
#[derive(Debug, Clone)]
pub(crate) struct Stack(pub(crate) Vec<Entry>);

/// A layer in its place.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) layer: Arc<Layer>,
    /// The size of the volume in this layer. The layer's store may be longer; the rest is not
    /// seen.
    pub(crate) size: u64,
    /// The snapshot that ends with this layer.
    pub(crate) snapshot: Option<u64>,
}

/// The state of a page in entries that lie one upon the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    Absent,
    Zero,
    Data(&'a Entry),
}

impl Found<'_> {
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Data(_))
    }
}

/// Returns the state of `page` in `entries`, and the number of pages from there on, up to `end`,
/// that have it; there may be more.
pub(crate) fn look(entries: &[Entry], page: u64, end: u64) -> (Found<'_>, u64) {
    let mut len = end - page;
    for entry in entries.iter().rev() {
        let (state, run) = entry.layer.run_at(page, page + len);
        len = run;
        match state {
            State::Absent => {}
            State::Zero => return (Found::Zero, len),
            State::Data => return (Found::Data(entry), len),
        }
    }
    (Found::Absent, len)
}

/// Returns the runs of `pages` as [`look`] finds them.
pub(crate) fn runs(
    entries: &[Entry],
    pages: Range<u64>,
) -> impl Iterator<Item = (Found<'_>, Range<u64>)> {
    let mut at = pages.start;
    std::iter::from_fn(move || {
        (at < pages.end).then(|| {
            let (found, len) = look(entries, at, pages.end);
            at += len;
            (found, at - len..at)
        })
    })
}

/// Returns the pages that a range touches; an empty one touches none.
pub(crate) fn touched(offset: u64, len: u64) -> Range<u64> {
    let start = offset / PAGE;
    let end = if len == 0 { start } else { (offset + len).div_ceil(PAGE) };
    start..end
}

/// Returns the part of a range that lies in `pages`.
pub(crate) fn clip(pages: &Range<u64>, offset: u64, len: u64) -> PageRange {
    let start = (pages.start * PAGE).max(offset);
    let end = pages.end.saturating_mul(PAGE).min(offset + len);
    PageRange { offset: start, len: end.saturating_sub(start) }
}

impl Stack {
    fn last(&self) -> &Entry {
        &self.0[self.0.len() - 1]
    }

    pub(crate) fn top(&self) -> &Arc<Layer> {
        &self.last().layer
    }

    pub(crate) fn size(&self) -> u64 {
        self.last().size
    }

    /// Returns all layers but the top.
    pub(crate) fn below(&self) -> &[Entry] {
        &self.0[..self.0.len() - 1]
    }

    /// Returns the position of the layer that the snapshot ends with.
    pub(crate) fn position(&self, snapshot: u64) -> Option<usize> {
        self.0.iter().position(|entry| entry.snapshot == Some(snapshot))
    }

    pub(crate) fn has_layer(&self, number: u64) -> bool {
        self.0.iter().any(|entry| entry.layer.number == number)
    }

    /// Reads a range that is inside, from each layer by `read`, which says whether it
    /// could.
    pub(crate) fn read(
        &self,
        offset: u64,
        buf: &mut [u8],
        read: impl Fn(&dyn Store, u64, &mut [u8]) -> Result<bool>,
    ) -> Result<bool> {
        let len = buf.len() as u64;
        for (found, pages) in runs(&self.0, touched(offset, len)) {
            let part = clip(&pages, offset, len);
            let from = index(part.offset - offset);
            let out = &mut buf[from..from + index(part.len)];
            let Found::Data(entry) = found else {
                out.fill(0);
                continue;
            };
            // In a page that was cut by the end of its layer, what is behind it is zeros.
            let known = part.len.min(entry.size.saturating_sub(part.offset));
            let (out, behind) = out.split_at_mut(index(known));
            behind.fill(0);
            if !read(&*entry.layer.bytes, part.offset, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(offset, buf, |bytes, at, out| bytes.read_at(at, out).map(|()| true)).map(|_| ())
    }

    pub(crate) fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.read(offset, buf, |bytes, at, out| bytes.try_read_at(at, out))
    }

    pub(crate) fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        check_range(offset, len, self.size())?;
        let mut list = ExtentList::new(max);
        for (found, pages) in runs(&self.0, touched(offset, len)) {
            let kind = if found.is_data() { ExtentKind::Data } else { ExtentKind::Hole };
            list.push(clip(&pages, offset, len).len, kind);
            if list.is_full() {
                break;
            }
        }
        Ok(list.into_vec())
    }

    pub(crate) fn pages(&self, offset: u64, len: u64, max: usize) -> Result<Vec<PageRange>> {
        check_range(offset, len, self.size())?;
        let mut list: Vec<PageRange> = Vec::new();
        for (found, pages) in runs(&self.0, touched(offset, len)) {
            if !found.is_data() {
                continue;
            }
            let part = clip(&pages, offset, len);
            let count = list.len();
            match list.last_mut() {
                Some(last) if last.offset + last.len == part.offset => last.len += part.len,
                _ if count == max => break,
                _ => list.push(part),
            }
        }
        Ok(list)
    }

    pub(crate) fn allocated(&self) -> Result<Bytes> {
        self.0.iter().try_fold(Bytes::ZERO, |sum, entry| {
            Ok(Bytes::new(sum.get() + entry.layer.bytes.allocated()?.get()))
        })
    }

    /// Brings a page up to the top, so that a part of it can be changed there. It is
    /// still to be marked.
    pub(crate) fn copy_up(&self, page: u64) -> Result<()> {
        let part = clip(&(page..page + 1), 0, self.size());
        let mut bytes = [0; PAGE_LEN];
        let bytes = &mut bytes[..index(part.len)];
        self.read_at(part.offset, bytes)?;
        self.top().bytes.write_at(part.offset, bytes)
    }
}

/// A snapshot as a store: it is read, never changed.
#[derive(Debug)]
pub(crate) struct View(pub(crate) Arc<Stack>);

impl ReadStore for View {
    fn size(&self) -> Bytes {
        Bytes::new(self.0.size())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len() as u64, self.0.size())?;
        self.0.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        check_range(offset, buf.len() as u64, self.0.size())?;
        self.0.try_read_at(offset, buf)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.0.extents(offset, len, max)
    }

    /// Returns the bytes that the snapshot's layers take, shared ones included.
    fn allocated(&self) -> Result<Bytes> {
        self.0.allocated()
    }
}
