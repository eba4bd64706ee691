//! Records of fixed length.

use crate::error::ImportError;
use std::io::{BufRead, ErrorKind};

/// The next part of an input.
pub(crate) enum Next<const N: usize> {
    Record([u8; N]),
    /// The input ends within a record.
    Cut,
    End,
}

/// Reads the next record.
///
/// # Errors
///
/// [`ImportError::Io`].
pub(crate) fn next<const N: usize>(input: &mut dyn BufRead) -> Result<Next<N>, ImportError> {
    let mut record = [0; N];
    let mut filled = 0;
    while filled < N {
        let Some(room) = record.get_mut(filled..) else { break };
        match input.read(room) {
            Ok(0) if filled == 0 => return Ok(Next::End),
            Ok(0) => return Ok(Next::Cut),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Next::Record(record))
}

/// The little-endian fields of a record, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// Takes the next `N` bytes; zeros beyond the end.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *field
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.take())
    }
}
