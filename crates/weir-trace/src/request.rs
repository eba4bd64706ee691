//! A request.

use weir_units::{Instant, Span};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Writes bytes that must be durable when it completes (forced unit access).
    WriteThrough,
    /// Gives a range back.
    Discard,
    /// Makes earlier writes durable. It has neither offset nor length.
    Flush,
}

impl Kind {
    /// All kinds, by their numbers in a file.
    pub const ALL: [Self; 5] =
        [Self::Read, Self::Write, Self::WriteThrough, Self::Discard, Self::Flush];

    /// Returns the number of the kind in a file.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::WriteThrough => 2,
            Self::Discard => 3,
            Self::Flush => 4,
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteThrough => "durable write",
            Self::Discard => "discard",
            Self::Flush => "flush",
        }
    }
}

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Time of arrival since the start of the trace.
    pub at: Instant,
    /// Device, as an index in the device names of the trace.
    pub device: u32,
    /// Its kind.
    pub kind: Kind,
    /// Offset of the first byte; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub len: u64,
    /// The recorded latency, if it is known.
    pub latency: Option<Span>,
}
