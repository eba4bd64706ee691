//! Little-endian fields at fixed places.

/// Reads `N` bytes at `at`.
///
/// # Panics
/// When the block is shorter: its length is checked where it is read.
pub(super) fn bytes<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&block[at..at + N]);
    field
}

pub(super) fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(block, at))
}

pub(super) fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(block, at))
}

pub(super) fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(block, at))
}

/// Writes `field` at `at`.
pub(super) fn put(block: &mut [u8], at: usize, field: &[u8]) {
    block[at..at + field.len()].copy_from_slice(field);
}

/// Returns whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    const STEP: usize = 64;
    let mut chunks = bytes.chunks_exact(STEP);
    chunks.all(|chunk| chunk.iter().fold(0, |any, byte| any | byte) == 0)
        && chunks.remainder().iter().all(|byte| *byte == 0)
}
