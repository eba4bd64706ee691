//! What goes into an engine and what comes out.

use crate::waits::Waits;
use core::fmt;
use weir_units::{Instant, Span};

/// Largest request (1 GiB).
pub const MAX_REQUEST: u64 = 1 << 30;

/// Index of a volume in [`HostSpec::volumes`](crate::HostSpec::volumes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub usize);

/// Index of a device in [`HostSpec::devices`](crate::HostSpec::devices).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub usize);

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Writes bytes that must not stay in a ReadWrite cache (forced unit access).
    WriteThrough,
    /// Makes a range read as zeros, or gives it back. Counts one operation and no bytes.
    Discard,
    /// Everything acknowledged before is on the disk when this completes.
    Flush,
}

/// A request as it comes from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whom it addresses.
    pub device: DeviceId,
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes, at most [`MAX_REQUEST`]; ignored by a flush.
    pub len: u64,
    /// The driver's own mark, given back with the completion.
    pub tag: u64,
}

/// What the engine has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request is done.
    Completed(Completion),
    /// Dirty bytes of a ReadWrite cache have reached the disk. Comes before the
    /// completion of any flush that waited for them.
    WrittenBack {
        /// The volume.
        volume: VolumeId,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
}

/// A request that is done, with where its time went: `at - arrived` is
/// `waits.total() + medium`. Of a striped request these are the parts of the
/// column that was last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The driver's mark.
    pub tag: u64,
    /// Whom it addressed.
    pub device: DeviceId,
    /// What it did.
    pub op: Op,
    /// Its bytes.
    pub len: u64,
    /// When it came.
    pub arrived: Instant,
    /// When it was done.
    pub at: Instant,
    /// Time waited per cap.
    pub waits: Waits,
    /// Time that the medium took.
    pub medium: Span,
    /// Whether the host cache served it alone.
    pub hit: bool,
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// No such device.
    NoDevice,
    /// It reaches beyond the device's end.
    OutOfRange,
    /// It is empty, or larger than [`MAX_REQUEST`].
    BadLength,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDevice => "there is no such device",
            Self::OutOfRange => "the request reaches beyond the end of the device",
            Self::BadLength => "the request is empty or larger than 1 GiB",
        })
    }
}

impl core::error::Error for Refused {}

/// Counters of a volume since the engine was made. Parts of striped requests
/// count at the volumes that they touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Operations as the disk counted them (nothing for cache hits).
    pub counted: u64,
    /// Reads that the host cache served.
    pub hits: u64,
    /// Bytes written back from the host cache.
    pub written_back: u64,
    /// Time waited per cap.
    pub waits: Waits,
    /// Time that the media took.
    pub medium: Span,
}
