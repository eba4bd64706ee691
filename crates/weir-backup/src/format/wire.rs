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

/// Byte strings as hexadecimal text, for serde.
pub(super) mod hex {
    use serde::ser::Error;
    use serde::{Deserialize, Deserializer, Serializer, de};
    use std::fmt::Write;

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * N);
        for byte in bytes {
            write!(text, "{byte:02x}").map_err(S::Error::custom)?;
        }
        serializer.serialize_str(&text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("{text:?} is not {N} bytes in hexadecimal"));
        let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 2 * N).ok_or_else(wrong)?;
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::try_from(pair[0] << 4 | pair[1]).map_err(|_| wrong())?;
        }
        Ok(bytes)
    }
}
