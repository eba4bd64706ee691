//! Columns to bytes and back.
//!
//! Counters grow at nearly constant rates. Their differences, minus the smallest, divided by the
//! common divisor (8192 for bytes read in pages), are small numbers. The lowest bytes of all
//! numbers are stored first, then the next higher ones, which separates noise from zeros and suits
//! deflate. A constant counter, or an even clock, takes no bytes per value.

use crate::columns::Column;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;
use weir_bytes::{Input, Wrong, divisor, put, put_signed};

/// Storage of presence: all values present, or a bitmap.
const ALL_PRESENT: u8 = 0;
const BITMAP: u8 = 1;
/// The stored numbers: values, or differences of neighbours.
const VALUES: u8 = 0;
const DIFFERENCES: u8 = 1;
/// Storage of numbers: plain, or as a zlib stream.
const PLAIN: u8 = 0;
const ZLIB: u8 = 1;
/// The size below which a zlib stream does not pay.
const WORTH_DEFLATING: usize = 24;

/// An encoder of columns that reuses its working memory.
pub(super) struct Encoder {
    zlib: Compress,
    values: Vec<i64>,
    planes: Vec<u8>,
    deflated: Vec<u8>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    pub(super) fn new() -> Self {
        let zlib = Compress::new(Compression::default(), true);
        Self { zlib, values: Vec::new(), planes: Vec::new(), deflated: Vec::new() }
    }

    /// Appends `column` to `out`.
    pub(super) fn column(&mut self, column: &Column, out: &mut Vec<u8>) {
        self.values.clear();
        self.values.extend(column.iter().flatten());
        if self.values.len() == column.len() {
            out.push(ALL_PRESENT);
        } else {
            out.push(BITMAP);
            let bits = column.iter().map(|value| value.is_some());
            out.extend(bitmap(bits));
        }
        let Some(first) = self.values.first().copied() else { return };
        if spread(differences(&self.values)) <= spread(self.values.iter().copied()) {
            out.push(DIFFERENCES);
            put_signed(out, first);
            let mut before = first;
            for value in &mut self.values {
                let difference = value.wrapping_sub(before);
                before = std::mem::replace(value, difference);
            }
            self.numbers(1, out);
        } else {
            out.push(VALUES);
            self.numbers(0, out);
        }
    }

    /// Appends `values[from..]`.
    fn numbers(&mut self, from: usize, out: &mut Vec<u8>) {
        let numbers = &mut self.values[from..];
        let Some(least) = numbers.iter().min().copied() else { return };
        let above = |n: &i64| n.wrapping_sub(least).cast_unsigned();
        let divisor = divisor(numbers.iter().map(above));
        let mut largest = 0;
        for n in &mut *numbers {
            // Most divisors are 1, and divisions are slow.
            let small = if divisor == 1 { above(n) } else { above(n) / divisor };
            largest = largest.max(small);
            *n = small.cast_signed();
        }
        let width = 8 - largest.leading_zeros() as usize / 8;
        put_signed(out, least);
        put(out, divisor);
        put(out, width as u64);
        if width == 0 {
            return;
        }
        let count = numbers.len();
        self.planes.clear();
        for byte in 0..width {
            self.planes.extend(numbers.iter().map(|n| n.to_le_bytes()[byte]));
        }
        let (packing, bytes) = match self.deflate(count) {
            true => (ZLIB, &self.deflated),
            false => (PLAIN, &self.planes),
        };
        out.push(packing);
        put(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }

    /// Deflates the planes; returns whether that made them smaller.
    fn deflate(&mut self, count: usize) -> bool {
        if self.planes.len() < WORTH_DEFLATING {
            return false;
        }
        self.zlib.reset();
        self.deflated.clear();
        // Output that exceeds this room is not smaller.
        self.deflated.reserve(self.planes.len());
        // Each plane gets its own Huffman code. With one code for all, the small numbers of high
        // planes and the noise of low planes take more bits each.
        let mut planes = self.planes.chunks(count).peekable();
        while let Some(plane) = planes.next() {
            let (flush, end) = match planes.peek() {
                Some(_) => (FlushCompress::Partial, Status::Ok),
                None => (FlushCompress::Finish, Status::StreamEnd),
            };
            let before = self.zlib.total_in();
            let done = self.zlib.compress_vec(plane, &mut self.deflated, flush);
            let taken = self.zlib.total_in() - before;
            if !matches!(done, Ok(status) if status == end) || taken != plane.len() as u64 {
                return false;
            }
        }
        self.deflated.len() < self.planes.len()
    }
}

fn differences(values: &[i64]) -> impl Iterator<Item = i64> + '_ {
    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]))
}

/// Returns the difference of the largest and the smallest value.
fn spread(values: impl Iterator<Item = i64>) -> u64 {
    let ends = values.fold(None, |ends: Option<(i64, i64)>, n| {
        Some(ends.map_or((n, n), |(least, largest)| (least.min(n), largest.max(n))))
    });
    ends.map_or(0, |(least, largest)| largest.wrapping_sub(least).cast_unsigned())
}

/// Packs bits into bytes, the first bit lowest.
fn bitmap(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, bit) in bits.enumerate() {
        if at.is_multiple_of(8) {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(bit) << (at % 8);
        }
    }
    bytes
}

/// A decoder of columns that reuses its working memory.
pub(super) struct Decoder {
    zlib: Decompress,
    planes: Vec<u8>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { zlib: Decompress::new(true), planes: Vec::new() }
    }

    /// Decodes the next column of `input`, with this number of samples.
    pub(super) fn column(
        &mut self,
        input: &mut Input<'_>,
        samples: usize,
    ) -> Result<Column, Wrong> {
        let bits = match input.byte()? {
            ALL_PRESENT => None,
            BITMAP => Some(input.take(samples.div_ceil(8))?),
            _ => return Err("a column is present in a way that is not known"),
        };
        let is_present = |at: usize| bits.is_none_or(|bits| bits[at / 8] >> (at % 8) & 1 == 1);
        let present = (0..samples).filter(|at| is_present(*at)).count();
        if present == 0 {
            return Ok(Column::missing(samples));
        }
        let mut values = self.values(input, present)?.into_iter();
        Ok((0..samples).map(|at| values.next_if(is_present(at))).collect())
    }

    fn values(&mut self, input: &mut Input<'_>, count: usize) -> Result<Vec<i64>, Wrong> {
        match input.byte()? {
            VALUES => self.numbers(input, count),
            DIFFERENCES => {
                let mut value = input.signed()?;
                let differences = match count {
                    1 => Vec::new(),
                    _ => self.numbers(input, count - 1)?,
                };
                let mut values = Vec::with_capacity(count);
                values.push(value);
                for difference in differences {
                    value = value.wrapping_add(difference);
                    values.push(value);
                }
                Ok(values)
            }
            _ => Err("a column is stored in a way that is not known"),
        }
    }

    fn numbers(&mut self, input: &mut Input<'_>, count: usize) -> Result<Vec<i64>, Wrong> {
        let least = input.signed()?;
        let divisor = input.number()?;
        let width = input.length()?;
        if width > 8 {
            return Err("a number has more than 64 bits");
        }
        if width == 0 {
            return Ok(vec![least; count]);
        }
        let packing = input.byte()?;
        let length = input.length()?;
        let stored = input.take(length)?;
        let planes = match packing {
            PLAIN => stored,
            ZLIB => self.inflate(stored, width * count)?,
            _ => return Err("a column is packed in a way that is not known"),
        };
        if planes.len() != width * count {
            return Err("a column has another length than it says");
        }
        let mut numbers = vec![0_u64; count];
        for (byte, plane) in planes.chunks_exact(count).enumerate() {
            for (number, part) in numbers.iter_mut().zip(plane) {
                *number |= u64::from(*part) << (8 * byte);
            }
        }
        let value = |n: u64| least.wrapping_add(n.wrapping_mul(divisor).cast_signed());
        Ok(numbers.into_iter().map(value).collect())
    }

    fn inflate(&mut self, stored: &[u8], length: usize) -> Result<&[u8], Wrong> {
        self.zlib.reset(true);
        self.planes.clear();
        // One extra byte reveals surplus output.
        self.planes.reserve_exact(length + 1);
        let done = self.zlib.decompress_vec(stored, &mut self.planes, FlushDecompress::Finish);
        match done {
            Ok(Status::StreamEnd) => Ok(&self.planes),
            _ => Err("a column is not the zlib stream that it should be"),
        }
    }
}

/// Iterators whose next item is taken only under a condition.
trait NextIf: Iterator {
    fn next_if(&mut self, wanted: bool) -> Option<Self::Item>;
}

impl<I: Iterator> NextIf for I {
    fn next_if(&mut self, wanted: bool) -> Option<I::Item> {
        if wanted { self.next() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(column: &Column) -> Vec<u8> {
        let mut out = Vec::new();
        Encoder::new().column(column, &mut out);
        out
    }

    #[track_caller]
    fn check(values: impl IntoIterator<Item = i64>, most: usize) {
        let column: Column = values.into_iter().map(Some).collect();
        let bytes = encoded(&column);
        assert!(bytes.len() <= most, "{} bytes for {} values", bytes.len(), column.len());
        let decoded = Decoder::new().column(&mut Input(&bytes), column.len());
        assert_eq!(decoded, Ok(column));
    }

    #[test]
    fn constant_values_take_no_bytes() {
        check([7; 1000], 8);
        check((0..1000).map(|n| n * 1_000_000_000), 12);
        check([i64::MAX, i64::MIN + 1, i64::MAX], 40);
    }

    #[test]
    fn pages_are_counted_as_pages() {
        // Growth of 0 to 200 pages of 8 KiB: one byte each.
        let bytes = (0..1000_i64).scan(0, |sum, n| {
            *sum += (n * 7919 % 200) * 8192;
            Some(*sum)
        });
        check(bytes, 1_030);
    }

    #[test]
    fn a_gauge_is_stored_unchanged() {
        // Noise around a level: differences would need more bits.
        let level = (0..1000_i64).map(|n| 5_000 + n * 7919 % 256);
        let column: Column = level.map(Some).collect();
        assert_eq!(encoded(&column)[1], VALUES);
    }

    proptest! {
        #[test]
        fn every_column_comes_back(
            values in prop::collection::vec(
                prop::option::weighted(0.9, prop_oneof![
                    3 => -50..50_i64,
                    1 => (i64::MIN + 1)..=i64::MAX,
                ]),
                1..200,
            ),
            cumulative: bool,
        ) {
            let mut sum = 0_i64;
            let counted = values.iter().map(|value| value.map(|value| {
                sum = if cumulative { sum.saturating_add(value.max(0)) } else { value };
                sum
            }));
            let column: Column = counted.collect();
            let bytes = encoded(&column);
            let mut input = Input(&bytes);
            prop_assert_eq!(Decoder::new().column(&mut input, column.len()), Ok(column));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn random_bytes_are_rejected_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            samples in 1..100_usize,
        ) {
            if let Ok(column) = Decoder::new().column(&mut Input(&bytes), samples) {
                prop_assert_eq!(column.len(), samples);
            }
        }
    }
}
