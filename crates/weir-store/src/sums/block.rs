//! The checksum of a block, and the cutting of requests at blocks.

use crate::pieces::len_of;

/// The bytes that have one checksum.
pub const BLOCK: u64 = 4096;
/// The bytes of a checksum.
pub(crate) const SUM: u64 = 4;

/// The largest part that is verified at once. That of tests is short, like their regions.
pub(super) const CHUNK: u64 = if cfg!(test) { 8 << 10 } else { 1 << 20 };

/// The CRC-32 of a block of zeros.
const ZEROS: u32 = 0xc71c_0011;

/// Returns the checksum of a block: its CRC-32, with that of a block of zeros subtracted. A hole in the
/// file of checksums is therefore right for a hole in the data. A block that the end of the volume
/// cuts counts as filled up with zeros.
pub(super) fn sum_of(block: &[u8]) -> u32 {
    static PADDING: [u8; 4096] = [0; 4096];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(block);
    if block.len() < PADDING.len() {
        hasher.update(&PADDING[block.len()..]);
    }
    hasher.finalize() ^ ZEROS
}

/// Appends the checksums of the blocks of `data`, which begins at a block.
pub(super) fn append_sums(sums: &mut Vec<u8>, data: &[u8]) {
    for block in data.chunks(4096) {
        sums.extend_from_slice(&sum_of(block).to_le_bytes());
    }
}

/// Returns a checksum as it is stored.
pub(super) fn decode(stored: &[u8]) -> u32 {
    stored.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// Returns the bytes of the checksums of a volume of `size`.
pub(crate) fn sums_len(size: u64) -> u64 {
    size.div_ceil(BLOCK) * SUM
}

/// Returns the first of the blocks of `data` whose checksum is not the stored one, as its number among
/// them, the stored checksum and that of its bytes.
pub(super) fn first_mismatch(data: &[u8], stored: &[u8]) -> Option<(u64, u32, u32)> {
    let blocks = data.chunks(4096).zip(stored.chunks(4));
    (0..).zip(blocks).find_map(|(number, (block, stored))| {
        let (expected, found) = (decode(stored), sum_of(block));
        (expected != found).then_some((number, expected, found))
    })
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The first byte in the volume.
    pub(super) offset: u64,
    /// The length in bytes.
    pub(super) len: u64,
    /// It consists of whole blocks, of at most [`CHUNK`] bytes. Otherwise it is a part of one block.
    pub(super) is_whole: bool,
}

impl Part {
    /// Returns the first byte of its first block.
    pub(super) fn block_start(&self) -> u64 {
        self.offset / BLOCK * BLOCK
    }
}

/// Cuts a range into parts of single blocks and runs of whole ones.
pub(super) fn parts(offset: u64, len: u64) -> impl Iterator<Item = Part> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        let left = end - at;
        if left == 0 {
            return None;
        }
        let in_block = at % BLOCK;
        let is_whole = in_block == 0 && left >= BLOCK;
        let len = match is_whole {
            true => (left / BLOCK * BLOCK).min(CHUNK - at % CHUNK),
            false => left.min(BLOCK - in_block),
        };
        let part = Part { offset: at, len, is_whole };
        at += len;
        Some(part)
    })
}

/// A buffer for one block.
pub(super) type Buffer = [u8; 4096];

/// A buffer for the checksums of a chunk.
pub(super) type SumsBuffer = [u8; 1024];

const _: () = assert!(size_of::<Buffer>() as u64 == BLOCK, "a buffer holds a block");
const _: () = assert!(size_of::<SumsBuffer>() as u64 >= CHUNK / BLOCK * SUM, "and a chunk's sums");

/// Returns the number of bytes of checksums of `data`.
pub(super) fn sums_of_len(data: &[u8]) -> u64 {
    len_of(data).div_ceil(BLOCK) * SUM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_the_checksum_zero_and_no_changed_bit_has() {
        assert_eq!(sum_of(&[0; 4096]), 0);
        assert_eq!(sum_of(&[0; 1]), 0);
        assert_eq!(sum_of(&[]), 0);
        for bit in 0..4096 * 8 {
            let mut block = [0; 4096];
            block[bit / 8] |= 1 << (bit % 8);
            assert_ne!(sum_of(&block), 0, "bit {bit}");
        }
        let mut padded = [0; 4096];
        padded[..3].copy_from_slice(b"abc");
        assert_eq!(sum_of(b"abc"), sum_of(&padded));
    }

    #[track_caller]
    fn check(offset: u64, len: u64, expect: &[(u64, u64, bool)]) {
        let got: Vec<_> = parts(offset, len).map(|p| (p.offset, p.len, p.is_whole)).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn requests_are_cut_at_blocks_and_chunks() {
        check(7, 0, &[]);
        check(0, 4096, &[(0, 4096, true)]);
        check(4095, 4098, &[(4095, 1, false), (4096, 4096, true), (8192, 1, false)]);
        check(5, 6, &[(5, 6, false)]);
        let chunk = CHUNK;
        check(chunk - 4096, 12_288, &[(chunk - 4096, 4096, true), (chunk, 8192, true)]);
    }
}
