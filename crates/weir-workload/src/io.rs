//! Operations and regions.

use weir_units::Bytes;

/// A part of a device that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The driver's number of the device, as in [`Issue::device`](crate::Issue::device).
    pub device: u32,
    /// The start of the region on the device.
    pub base: Bytes,
    /// Its length.
    pub len: Bytes,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Trim,
    /// A flush of earlier writes, without offset and length.
    Flush,
}
