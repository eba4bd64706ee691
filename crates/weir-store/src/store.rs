//! The operations of a volume's bytes, whatever they are kept in.

use crate::asynchronous::AsyncStore;
use crate::{Result, StoreError};
use std::fmt::Debug;
use weir_units::Bytes;

/// A volume's bytes.
///
/// Every operation takes `&self` and may be called from several threads at
/// once. Two that overlap in range and time leave each byte as one of them
/// wanted it. A range that is not inside the volume is
/// [`StoreError::OutOfRange`]; an empty range inside it does nothing.
pub trait Store: Send + Sync + Debug {
    /// Returns the size of the volume in bytes.
    fn size(&self) -> Bytes;

    /// Fills `buf` from `offset` on. Bytes that were never written are zeros.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Like [`Store::read_at`], but returns `false` if it would have to wait for the medium, or
    /// cannot tell; `buf` then holds nothing of use. The default is for media that are never
    /// waited for.
    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.read_at(offset, buf)?;
        Ok(true)
    }

    /// Stores `data` at `offset`. Durable after the next [`Store::sync`].
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Makes a range read as zeros: by freeing its space if `may_trim`, else
    /// keeping or taking space, so that writing there later does not run out.
    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()>;

    /// Makes a range read as zeros and frees its space.
    fn trim(&self, offset: u64, len: u64) -> Result<()>;

    /// Does what [`Store::write_at`] does. Returns whether the bytes are durable now, which they may be
    /// if that costs less than a [`Store::sync`]. The default is for media that cannot make single
    /// writes durable.
    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool> {
        self.write_at(offset, data).map(|()| false)
    }

    /// Does what [`Store::write_zeroes`] does, and returns what [`Store::write_durably`] does.
    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool> {
        self.write_zeroes(offset, len, may_trim).map(|()| false)
    }

    /// Makes every operation that has returned durable.
    fn sync(&self) -> Result<()>;

    /// Makes the volume longer, by zeros, or shorter, dropping the bytes behind
    /// the new end: growing again later brings back zeros.
    fn resize(&self, new: Bytes) -> Result<()>;

    /// Lists the parts of a range that hold data. The extents follow each other from
    /// `offset` on, neighbours differ in kind, and together they cover the range
    /// exactly, or its beginning if there would be more than `max`.
    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>>;

    /// Returns the bytes of the medium that the volume takes now.
    fn allocated(&self) -> Result<Bytes>;

    /// Returns how many operations that do not overlap are worth executing at once. The default
    /// is for media that execute one after another just as fast.
    fn depth(&self) -> usize {
        1
    }

    /// Returns how many syncs are worth having under way at once. The default is for media that sync
    /// one after another just as fast, or that may tell only one of them about a failure.
    fn syncs(&self) -> usize {
        1
    }

    /// Returns the store's way to operations that end later. The default is for media that are worth a
    /// thread that waits.
    fn asynchronous(&self) -> Option<&dyn AsyncStore> {
        None
    }
}

/// A store that is only read, such as a snapshot. It is a [`Store`] whose changes are
/// [`StoreError::ReadOnly`]. The methods are those of [`Store`].
pub trait ReadStore: Send + Sync + Debug {
    /// See [`Store::size`].
    fn size(&self) -> Bytes;

    /// See [`Store::read_at`].
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// See [`Store::try_read_at`].
    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool>;

    /// See [`Store::extents`].
    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>>;

    /// See [`Store::allocated`].
    fn allocated(&self) -> Result<Bytes>;
}

impl<T: ReadStore> Store for T {
    fn size(&self) -> Bytes {
        ReadStore::size(self)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        ReadStore::read_at(self, offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        ReadStore::try_read_at(self, offset, buf)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn trim(&self, _: u64, _: u64) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    /// Does nothing: a store that never changes has nothing to make durable.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn resize(&self, _: Bytes) -> Result<()> {
        Err(StoreError::ReadOnly)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        ReadStore::extents(self, offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        ReadStore::allocated(self)
    }
}

/// A stretch of a volume that is all data or all hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The length in bytes; never zero.
    pub len: u64,
    /// The kind of all of it.
    pub kind: ExtentKind,
}

/// The allocation of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtentKind {
    /// Space is taken; the bytes may still be zeros.
    Data,
    /// The bytes are zeros; no space is promised.
    Hole,
}

/// Refuses a range that does not lie inside `size` bytes.
#[inline]
pub(crate) fn check_range(offset: u64, len: u64, size: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(StoreError::OutOfRange { offset, len, size }),
    }
}

/// Collects extents, joining neighbours, up to a number of them.
#[derive(Debug)]
pub struct ExtentList {
    extents: Vec<Extent>,
    max: usize,
    full: bool,
}

impl ExtentList {
    /// Makes an empty list of at most `max` extents.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { extents: Vec::new(), max, full: max == 0 }
    }

    /// Appends `len` bytes; does nothing once one extent too many was met.
    pub fn push(&mut self, len: u64, kind: ExtentKind) {
        if len == 0 || self.full {
            return;
        }
        let count = self.extents.len();
        match self.extents.last_mut() {
            Some(last) if last.kind == kind => last.len += len,
            _ if count == self.max => self.full = true,
            _ => self.extents.push(Extent { len, kind }),
        }
    }

    /// Returns whether further extents are dropped.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the extents.
    #[must_use]
    pub fn into_vec(self) -> Vec<Extent> {
        self.extents
    }
}

#[cfg(test)]
mod tests {
    use super::ExtentKind::{Data, Hole};
    use super::*;

    #[test]
    fn neighbours_are_joined_and_the_rest_is_dropped_at_the_maximum() {
        let mut list = ExtentList::new(2);
        for (len, kind) in [(1, Hole), (0, Data), (2, Hole), (3, Data), (4, Data), (5, Hole)] {
            list.push(len, kind);
        }
        list.push(6, Data);
        assert!(list.is_full());
        assert_eq!(list.into_vec(), [Extent { len: 3, kind: Hole }, Extent { len: 7, kind: Data }]);
    }

    #[track_caller]
    fn check(offset: u64, len: u64, size: u64, expect: Option<&str>) {
        let got = check_range(offset, len, size).map_err(|e| e.to_string());
        assert_eq!(got, expect.map_or(Ok(()), |e| Err(e.to_owned())));
    }

    #[test]
    fn ranges() {
        check(0, 0, 0, None);
        check(0, 10, 10, None);
        check(10, 0, 10, None);
        check(10, 1, 10, Some("1 bytes at offset 10 reach past the end of the volume (10 bytes)"));
        check(11, 0, 10, Some("0 bytes at offset 11 reach past the end of the volume (10 bytes)"));
        let max = u64::MAX;
        check(
            max,
            2,
            max,
            Some(&format!(
                "2 bytes at offset {max} reach past the end of the volume ({max} bytes)"
            )),
        );
    }
}
