//! The progress of a backup.

use weir_units::Span;

/// How far a backup has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were read.
    pub read: u64,
    /// Bytes to read in all.
    pub total: u64,
    /// Bytes that were written to stripes.
    pub written: u64,
    /// Buffers in use.
    pub buffers_used: u32,
    /// The time since the start.
    pub elapsed: Span,
}
