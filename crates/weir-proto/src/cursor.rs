//! Reading and appending of big-endian fields without out-of-range access.

use alloc::vec::Vec;

/// A reader of fields from a slice. Its methods return `None` if too few bytes are left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, length: u32) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = tail;
        Some(head)
    }

    /// Returns a string with a 32-bit length prefix.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(length)
    }

    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Returns `None` if bytes are left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends big-endian fields.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
}

impl Put for Vec<u8> {
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }
}

/// Returns the longest prefix of `text` within the protocol's string limit.
pub(crate) fn clip(text: &str) -> &str {
    let mut end = crate::wire::MAX_STRING;
    if text.len() <= end {
        return text;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Converts a length that the codec has already limited.
pub(crate) fn wire_len(length: usize) -> u32 {
    assert!(length <= 0x7fff_ffff, "a message of {length} bytes was built, though all are bounded");
    u32::try_from(length).unwrap_or(u32::MAX)
}
