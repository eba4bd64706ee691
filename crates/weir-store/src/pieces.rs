//! Cutting a range of a volume at the borders of what it is kept in.

use std::ops::Range;

/// The part of a request that lies in one unit (a page, a leaf, a segment).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The number of the unit.
    pub(crate) unit: u64,
    /// The first byte within the unit.
    pub(crate) start: u64,
    /// The first byte within the request.
    pub(crate) at: u64,
    /// The length in bytes.
    pub(crate) len: u64,
}

impl Piece {
    /// Returns the piece's bytes in the request's buffer.
    #[inline]
    pub(crate) fn in_request(&self) -> Range<usize> {
        index(self.at)..index(self.at + self.len)
    }

    /// Returns the piece's bytes in the unit.
    #[inline]
    pub(crate) fn in_unit(&self) -> Range<usize> {
        index(self.start)..index(self.start + self.len)
    }

    /// Returns whether the piece is all of a unit of `unit_len` bytes.
    #[inline]
    pub(crate) fn is_whole(&self, unit_len: u64) -> bool {
        self.len == unit_len
    }
}

/// Cuts `len` bytes at `offset` at every multiple of `unit_len`. The end of the
/// range must fit in 64 bits, as it does after [`crate::store::check_range`].
#[inline]
pub(crate) fn pieces(offset: u64, len: u64, unit_len: u64) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let start = (offset + at) % unit_len;
        let unit = (offset + at) / unit_len;
        let piece = Piece { unit, start, at, len: (unit_len - start).min(len - at) };
        at += piece.len;
        Some(piece)
    })
}

const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "Weir serves from 64-bit machines");

/// Returns a position as an index.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits, asserted above")]
pub(crate) fn index(position: u64) -> usize {
    position as usize
}

/// Returns a length as a number of bytes.
#[inline]
pub(crate) fn len_of(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(offset: u64, len: u64, expect: &[(u64, u64, u64, u64)]) {
        let got: Vec<_> = pieces(offset, len, 10).map(|p| (p.unit, p.start, p.at, p.len)).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn a_range_is_cut_at_every_border_and_nowhere_else() {
        check(3, 0, &[]);
        check(0, 10, &[(0, 0, 0, 10)]);
        check(3, 4, &[(0, 3, 0, 4)]);
        check(10, 1, &[(1, 0, 0, 1)]);
        check(8, 14, &[(0, 8, 0, 2), (1, 0, 2, 10), (2, 0, 12, 2)]);
        // 2^64 - 1 ends in 5, so the last border below it is at 2^64 - 6.
        check(u64::MAX - 6, 6, &[(u64::MAX / 10 - 1, 9, 0, 1), (u64::MAX / 10, 0, 1, 5)]);
    }
}
