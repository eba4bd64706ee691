//! Requests, completions and counters.

use crate::waits::{ServiceTime, Waits};
use core::fmt;
use weir_units::{Instant, Span};

/// Largest request: whatever a length of 32 bits says.
pub const MAX_REQUEST: u64 = (1 << 32) - 1;

/// Index of a volume in [`HostSpec::volumes`](crate::HostSpec::volumes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub usize);

/// Index of a device in [`HostSpec::devices`](crate::HostSpec::devices).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub usize);

/// The operation of a request.
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
    /// The device.
    pub device: DeviceId,
    /// The operation.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes, at most [`MAX_REQUEST`]; ignored by a flush.
    pub len: u64,
    /// The driver's own mark, given back with the completion.
    pub tag: u64,
}

/// An output of the engine.
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
    /// The device.
    pub device: DeviceId,
    /// The operation.
    pub op: Op,
    /// Its bytes.
    pub len: u64,
    /// Its arrival.
    pub arrived: Instant,
    /// Its completion.
    pub at: Instant,
    /// Time waited per cap.
    pub waits: Waits,
    /// Time that the medium took.
    pub medium: Span,
    /// The host cache alone served it.
    pub hit: bool,
}

impl Completion {
    /// Returns the time that the request took, by cause.
    #[must_use]
    pub const fn service(&self) -> ServiceTime {
        ServiceTime { waits: self.waits, medium: self.medium }
    }
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// No such device.
    NoDevice,
    /// It reaches beyond the device's end.
    OutOfRange,
    /// It is empty, or larger than [`MAX_REQUEST`].
    BadLength,
    /// The volume has requests in flight, or is a column of a stripe.
    Busy,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDevice => "there is no such device",
            Self::OutOfRange => "the request reaches beyond the end of the device",
            Self::BadLength => "the request is empty, or 4 GiB or more",
            Self::Busy => "the volume has requests under way, or is a column of a stripe",
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
    /// Operations as the disk counted them: nothing for what the cache served or
    /// took, and what it wrote back.
    pub counted: u64,
    /// Reads that the host cache served.
    pub hits: u64,
    /// Write-backs of the host cache that have reached the disk.
    pub writebacks: u64,
    /// Bytes written back from the host cache.
    pub written_back: u64,
    /// Transactions above the target, which on-demand bursting is billed for:
    /// [`Limit::ON_DEMAND`](crate::Limit::ON_DEMAND).
    pub burst_transactions: u64,
    /// Time that requests waited, per cap.
    pub waits: Waits,
    /// Time that the media took of requests.
    pub medium: Span,
    /// Time with at least one request in flight, up to the last completion.
    pub busy: Span,
    /// Time that write-backs waited, per cap: what is behind
    /// [`Cap::CacheWriteback`](crate::Cap::CacheWriteback) of the requests.
    pub writeback_waits: Waits,
    /// Time that the media took of write-backs.
    pub writeback_medium: Span,
}

impl Totals {
    /// Counts an operation of `len` bytes.
    pub(super) fn count(&mut self, op: Op, len: u64) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += len;
            }
            Op::Write | Op::WriteThrough => {
                self.writes += 1;
                self.write_bytes += len;
            }
            Op::Discard => self.discards += 1,
            Op::Flush => {}
        }
    }
}

/// Narrows a count or index that is below 2^32: requests by [`MAX_REQUEST`], volumes by
/// [`HostSpec::check`](crate::HostSpec::check), parts by memory.
#[expect(clippy::cast_possible_truncation, reason = "bounded by the callers, see above")]
pub(super) fn narrow(n: u64) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "{n} does not fit");
    n as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notices a counter that stays at zero, or takes the bytes of the other direction.
    #[test]
    fn reads_and_writes_are_counted_with_their_bytes() {
        let mut totals = Totals::default();
        for (op, len) in [(Op::Read, 8192), (Op::Write, 4096), (Op::WriteThrough, 512)] {
            totals.count(op, len);
        }
        assert_eq!((totals.reads, totals.read_bytes), (1, 8192));
        assert_eq!((totals.writes, totals.write_bytes), (2, 4608));
    }
}
