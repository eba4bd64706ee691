//! The layout of a stripe. The engine charges by it, and stores place bytes by it.
//!
//! ```text
//!   unit:      0     1     2     3     4     5   ...
//!   column:    0     1     2     0     1     2        (three columns)
//!   row:       0     0     0     1     1     1
//! ```

/// A piece of a striped range on one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The column, counted from zero.
    pub column: usize,
    /// First byte on the column.
    pub offset: u64,
    /// Bytes; never more than one unit.
    pub len: u64,
}

/// Cuts `offset..offset + len` at the borders of units of `unit` bytes, in order.
/// Each unit is an I/O of its own, as md cuts at chunk borders.
///
/// # Panics
///
/// If `unit` or `columns` is zero.
pub fn pieces(unit: u64, columns: usize, offset: u64, len: u64) -> impl Iterator<Item = Piece> {
    let (index, mut within) = (offset / unit, offset % unit);
    #[expect(clippy::cast_possible_truncation, reason = "less than `columns`, a usize")]
    let mut column = (index % columns as u64) as usize;
    let mut start = index / columns as u64 * unit;
    let mut left = len;
    core::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let count = (unit - within).min(left);
        let piece = Piece { column, offset: start + within, len: count };
        left -= count;
        within = 0;
        column += 1;
        if column == columns {
            column = 0;
            start += unit;
        }
        Some(piece)
    })
}

/// Counts the [`pieces`] of a range.
pub(crate) fn units(unit: u64, offset: u64, len: u64) -> u64 {
    len.checked_sub(1).map_or(0, |last| (offset + last) / unit - offset / unit + 1)
}

/// Returns the part of `offset..offset + len` on one column, which is one range there: (first
/// byte on the column, bytes). `None` if it does not touch the column.
///
/// # Panics
///
/// If `unit` or `columns` is zero.
#[must_use]
pub fn column_range(
    unit: u64,
    columns: usize,
    column: usize,
    offset: u64,
    len: u64,
) -> Option<(u64, u64)> {
    let (width, column) = (columns as u64, column as u64);
    let (first, last) = (offset / unit, (offset + len).checked_sub(1)? / unit);
    // The first and the last unit of the range that are on this column.
    let from = first + (column + width - first % width) % width;
    let until = last.checked_sub((last % width + width - column) % width)?;
    if len == 0 || from > until {
        return None;
    }
    let start = from / width * unit + if from == first { offset % unit } else { 0 };
    let end =
        until / width * unit + if until == last { (offset + len - 1) % unit + 1 } else { unit };
    Some((start, end - start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn cuts_at_unit_borders() {
        let got: Vec<(usize, u64, u64)> =
            pieces(100, 3, 250, 200).map(|p| (p.column, p.offset, p.len)).collect();
        assert_eq!(got, [(2, 50, 50), (0, 100, 100), (1, 100, 50)]);
    }

    proptest::proptest! {
        /// Against the pieces, added up.
        #[test]
        fn a_columns_range_is_its_pieces_together(
            unit in 1_u64..50, columns in 1_usize..6, offset in 0_u64..500, len in 0_u64..700,
        ) {
            let cut = pieces(unit, columns, offset, len).count() as u64;
            proptest::prop_assert_eq!(units(unit, offset, len), cut);
            for column in 0..columns {
                let mut own = pieces(unit, columns, offset, len).filter(|p| p.column == column);
                let first = own.next();
                let expect = first.map(|p| (p.offset, p.len + own.map(|p| p.len).sum::<u64>()));
                proptest::prop_assert_eq!(column_range(unit, columns, column, offset, len), expect);
            }
        }

        /// Every byte has exactly one place, and neighbours on a column stay neighbours.
        #[test]
        fn places_every_byte_once(unit in 1_u64..50, columns in 1_usize..6, rows in 1_u64..6) {
            let whole = unit * columns as u64 * rows;
            let mut seen = Vec::new();
            for byte in 0..whole {
                let all: Vec<Piece> = pieces(unit, columns, byte, 1).collect();
                proptest::prop_assert_eq!(all.len(), 1);
                let (column, row) = (byte / unit % columns as u64, byte / unit / columns as u64);
                let expect = (column, row * unit + byte % unit);
                proptest::prop_assert_eq!((all[0].column as u64, all[0].offset), expect);
                seen.push((all[0].column, all[0].offset));
            }
            seen.sort_unstable();
            let expect: Vec<(usize, u64)> =
                (0..columns).flat_map(|c| (0..unit * rows).map(move |o| (c, o))).collect();
            proptest::prop_assert_eq!(seen, expect);
        }
    }
}
