//! Columns of numbers to bytes and back.
//!
//! A column is divided by the common divisor of its numbers (512 for offsets in sectors, 1000 for
//! times in microseconds), then stored in the shorter of two ways:
//!
//! | way | stored | suits |
//! |---|---|---|
//! | repeats | variable-length integers, deflated | few different numbers, patterns |
//! | noise | a class for each number, deflated, and the remaining low bits as they are | times and offsets at random |
//!
//! A class is the position of the highest bit, and the next bits below it. Deflating noise would
//! cost time and make it longer.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;
use weir_bytes::{Input, Wrong, divisor, put};

/// Ways to store a column: one number for all rows, repeats, or noise with this many high bits
/// below the highest one in the class.
const CONSTANT: u8 = 0;
const REPEATS: u8 = 1;
const NOISE: u8 = 2;
/// High bits in a class, the finest first. The classes of the coarsest suit all numbers.
const FINE: [u32; 3] = [4, 3, 2];

/// Splits a number into its class and the count of its remaining bits.
#[inline]
const fn class(n: u64, fine: u32) -> (u32, u32) {
    let length = u64::BITS - n.leading_zeros();
    if length <= fine + 1 {
        return (low(n), 0);
    }
    let rest = length - 1 - fine;
    // The bits below the highest one.
    let high = low(n >> rest) - (1 << fine);
    ((1 << (fine + 1)) + (rest - 1) * (1 << fine) + high, rest)
}

/// Narrows a number that has at most 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "its callers shift the high bits out")]
const fn low(n: u64) -> u32 {
    n as u32
}

/// Returns the smallest number of a class, and the count of the remaining bits.
const fn least(class: u32, fine: u32) -> (u64, u32) {
    if class < 1 << (fine + 1) {
        return (class as u64, 0);
    }
    let above = class - (1 << (fine + 1));
    let (rest, high) = (above / (1 << fine) + 1, above % (1 << fine));
    if rest > 63 - fine {
        // No number has this class.
        return (0, u32::MAX);
    }
    ((((1 << fine) + high) as u64) << rest, rest)
}

/// An encoder of columns that reuses its working memory.
pub(super) struct Encoder {
    deflate: Compress,
    plain: Vec<u8>,
    repeats: Vec<u8>,
    noise: Vec<u8>,
    bits: Vec<u8>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    pub(super) fn new() -> Self {
        let deflate = Compress::new(Compression::default(), false);
        let (plain, repeats, noise, bits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { deflate, plain, repeats, noise, bits }
    }

    /// Appends a column to `out`, divided by its divisor.
    pub(super) fn divided(&mut self, numbers: &mut [u64], out: &mut Vec<u8>) {
        let divisor = divisor(numbers.iter().copied());
        put(out, divisor);
        if divisor > 1 {
            numbers.iter_mut().for_each(|n| *n /= divisor);
        }
        self.column(numbers, out);
    }

    /// Appends a column to `out`.
    pub(super) fn column(&mut self, numbers: &[u64], out: &mut Vec<u8>) {
        let first = numbers.first().copied().unwrap_or_default();
        if numbers.iter().all(|n| *n == first) {
            out.push(CONSTANT);
            put(out, first);
            return;
        }
        self.plain.clear();
        numbers.iter().for_each(|n| put(&mut self.plain, *n));
        deflate(&mut self.deflate, &self.plain, &mut self.repeats);
        let most = numbers.iter().copied().max().unwrap_or_default();
        let is_a_byte = |fine: &u32| u8::try_from(class(most, *fine).0).is_ok();
        let fine = FINE.into_iter().find(is_a_byte).unwrap_or(FINE[2]);
        self.split(numbers, fine);
        deflate(&mut self.deflate, &self.plain, &mut self.noise);
        if self.noise.len() + self.bits.len() < self.repeats.len() {
            out.push(NOISE + low_byte(fine));
            put(out, self.noise.len() as u64);
            out.extend_from_slice(&self.noise);
            put(out, self.bits.len() as u64);
            out.extend_from_slice(&self.bits);
        } else {
            out.push(REPEATS);
            put(out, self.repeats.len() as u64);
            out.extend_from_slice(&self.repeats);
        }
    }

    /// Splits numbers into classes, in `plain`, and their remaining bits.
    fn split(&mut self, numbers: &[u64], fine: u32) {
        self.plain.clear();
        self.bits.clear();
        let (mut held, mut count) = (0_u128, 0);
        for n in numbers {
            let (class, rest) = class(*n, fine);
            self.plain.push(low_byte(class));
            held |= u128::from(n & ((1 << rest) - 1)) << count;
            count += rest;
            while count >= 8 {
                let [byte, ..] = held.to_le_bytes();
                self.bits.push(byte);
                held >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            let [byte, ..] = held.to_le_bytes();
            self.bits.push(byte);
        }
    }
}

/// Narrows a class or a number of bits, which the caller has checked to fit.
fn low_byte(n: u32) -> u8 {
    let [byte, ..] = n.to_le_bytes();
    debug_assert_eq!(u32::from(byte), n, "it fits a byte");
    byte
}

/// Replaces `into` by `bytes`, deflated.
fn deflate(state: &mut Compress, bytes: &[u8], into: &mut Vec<u8>) {
    state.reset();
    into.clear();
    // Deflate stores what it cannot make shorter, with five bytes for each 16 KiB at most.
    into.reserve(bytes.len() + bytes.len() / 1024 + 64);
    let done = state.compress_vec(bytes, into, FlushCompress::Finish);
    assert!(matches!(done, Ok(Status::StreamEnd)), "the output has room for all input");
}

/// A decoder of columns that reuses its working memory.
pub(super) struct Decoder {
    inflate: Decompress,
    plain: Vec<u8>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(false), plain: Vec::new() }
    }

    /// Replaces `into` by the next column of `input`, with `count` rows, multiplied by its divisor.
    pub(super) fn divided(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        into: &mut Vec<u64>,
    ) -> Result<(), Wrong> {
        let divisor = input.number()?;
        self.column(input, count, into)?;
        if divisor != 1 {
            for n in into.iter_mut() {
                *n = n.checked_mul(divisor).ok_or("a number has more than 64 bits")?;
            }
        }
        Ok(())
    }

    /// Replaces `into` by the next column of `input`, with `count` rows.
    pub(super) fn column(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        into: &mut Vec<u64>,
    ) -> Result<(), Wrong> {
        into.clear();
        match input.byte()? {
            CONSTANT => {
                let value = input.number()?;
                into.resize(count, value);
                Ok(())
            }
            REPEATS => {
                let stored = input.length()?;
                self.inflate(input.take(stored)?, count * 10)?;
                let mut plain = Input(&self.plain);
                for _ in 0..count {
                    into.push(plain.number()?);
                }
                if plain.is_empty() { Ok(()) } else { Err("a column has more rows than it says") }
            }
            way => {
                let fine = u32::from(way) - u32::from(NOISE);
                if !FINE.contains(&fine) {
                    return Err("a column is stored in a way that is not known");
                }
                let stored = input.length()?;
                self.inflate(input.take(stored)?, count)?;
                let stored = input.length()?;
                self.join(input.take(stored)?, count, fine, into)
            }
        }
    }

    /// Joins the classes in `plain` with their remaining bits.
    fn join(
        &self,
        mut bits: &[u8],
        count: usize,
        fine: u32,
        into: &mut Vec<u64>,
    ) -> Result<(), Wrong> {
        if self.plain.len() != count {
            return Err("a column has another number of rows than it says");
        }
        let classes: [(u64, u32); 256] = std::array::from_fn(|n| {
            let class = u32::try_from(n).unwrap_or_default();
            least(class, fine)
        });
        let (mut held, mut ready) = (0_u128, 0_u32);
        for class in &self.plain {
            let (value, rest) = classes[usize::from(*class)];
            if rest > ready {
                if rest > u64::BITS {
                    return Err("a number has more than 64 bits");
                }
                let more = match bits.split_first_chunk::<8>() {
                    Some((word, behind)) => {
                        bits = behind;
                        held |= u128::from(u64::from_le_bytes(*word)) << ready;
                        64
                    }
                    None => {
                        let last = std::mem::take(&mut bits);
                        let mut word = [0; 8];
                        word[..last.len()].copy_from_slice(last);
                        held |= u128::from(u64::from_le_bytes(word)) << ready;
                        8 * low(last.len() as u64)
                    }
                };
                ready += more;
                if rest > ready {
                    return Err("it ends too early");
                }
            }
            into.push(value | (low_bits(held) & ((1 << rest) - 1)));
            held >>= rest;
            ready -= rest;
        }
        let is_used_up = bits.is_empty() && ready < 8 && held == 0;
        if is_used_up { Ok(()) } else { Err("a column has more bits than it says") }
    }

    fn inflate(&mut self, stored: &[u8], most: usize) -> Result<(), Wrong> {
        self.inflate.reset(false);
        self.plain.clear();
        // One extra byte reveals surplus output.
        self.plain.reserve(most + 1);
        let done = self.inflate.decompress_vec(stored, &mut self.plain, FlushDecompress::Finish);
        let is_whole = matches!(done, Ok(Status::StreamEnd)) && self.plain.len() <= most;
        if is_whole { Ok(()) } else { Err("a column is not the deflated data that it should be") }
    }
}

/// Returns the lowest 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the high bits are not wanted")]
const fn low_bits(n: u128) -> u64 {
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(numbers: &[u64], most: usize) {
        let mut out = Vec::new();
        Encoder::new().divided(&mut numbers.to_vec(), &mut out);
        assert!(out.len() <= most, "{} bytes for {} numbers", out.len(), numbers.len());
        let (mut input, mut read) = (Input(&out), Vec::new());
        assert_eq!(Decoder::new().divided(&mut input, numbers.len(), &mut read), Ok(()));
        assert!(read == numbers && input.is_empty());
    }

    /// Noise of this many bits.
    fn noise(count: u64, bits: u32) -> Vec<u64> {
        let mix = |n: u64| (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        let mix = |n: u64| mix(mix(n).wrapping_mul(0xBF58_476D_1CE4_E5B9));
        (0..count).map(|n| mix(n) >> (64 - bits)).collect()
    }

    #[test]
    fn columns_take_little_more_than_their_entropy() {
        check(&[7; 1000], 4);
        check(&[], 4);
        check(&(0..10_000).map(|n| n % 3 * 4096).collect::<Vec<_>>(), 200);
        check(&noise(10_000, 20), 10_000 * 20 / 8 + 10_000 * 5 / 80);
        let nanos: Vec<u64> = noise(10_000, 10).iter().map(|n| n * 1000).collect();
        check(&nanos, 10_000 * 10 / 8 + 10_000 / 10);
    }

    #[test]
    fn every_class_is_read_as_it_was_written() {
        for fine in FINE {
            for length in 0..=64 {
                let most = if length == 64 { u64::MAX } else { (1 << length) - 1 };
                for n in [most, most / 2 + 1, most.saturating_sub(1), most / 3] {
                    let (class, rest) = class(n, fine);
                    let (least, same) = least(class, fine);
                    assert_eq!(rest, same, "{n}");
                    let mask = (1_u64 << rest) - 1;
                    assert_eq!(least | (n & mask), n, "{fine}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_column_is_read_unchanged(
            numbers in proptest::collection::vec(any::<u64>(), 0..300),
            shift in 0_u32..64,
        ) {
            let numbers: Vec<u64> = numbers.iter().map(|n| n >> shift).collect();
            check(&numbers, usize::MAX);
        }

        #[test]
        fn any_bytes_are_a_column_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            count in 0_usize..100,
        ) {
            let mut read = Vec::new();
            let done = Decoder::new().divided(&mut Input(&bytes), count, &mut read);
            prop_assert!(done.is_err() || read.len() == count);
        }
    }
}
