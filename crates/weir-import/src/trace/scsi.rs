//! SCSI commands that move or flush data, by operation code (SPC and SBC of T10).

use super::request::Direction;

/// Returns the direction of a command; `None` for commands that are no I/O.
pub(crate) const fn direction(code: u16) -> Option<Direction> {
    Some(match code {
        // READ of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => Direction::Read,
        // WRITE of the same lengths, and WRITE AND VERIFY of 10, 12 and 16.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Direction::Write,
        // UNMAP.
        0x42 => Direction::Discard,
        // SYNCHRONIZE CACHE of 10 and 16.
        0x35 | 0x91 => Direction::Flush,
        _ => return None,
    })
}

/// Returns the direction of a code as two hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<Direction> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() != 2 {
        return None;
    }
    direction(u16::from_str_radix(digits, 16).ok()?)
}
