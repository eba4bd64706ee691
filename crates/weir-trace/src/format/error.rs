//! Errors of reading and writing traces.

use std::io;
use weir_units::Instant;

/// The reason why a trace cannot be read. A file that ends early is no error: it is read up to its
/// last whole block, see [`Ending`](super::Ending).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An I/O error.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// A file of another format.
    #[error("this is not a trace: it does not begin with \"weirtrc\"; weir record writes one")]
    NotATrace,
    /// A later version of the format.
    #[error("this is a trace of version {found:?}, and this weir reads version 1")]
    Version {
        /// The version.
        found: String,
    },
    /// A damaged header.
    #[error("the header of the trace is damaged: {reason}; nothing can be read without it")]
    Header {
        /// Description of the damage.
        reason: String,
    },
    /// Damage after the header.
    #[error(
        "the trace is damaged at byte {at}: {reason}; {before} requests before that are whole; \
         --to {}ns selects them", .last.nanos().saturating_add(1)
    )]
    Damaged {
        /// Offset in the file.
        at: u64,
        /// Description of the damage.
        reason: String,
        /// Requests in front of the damage.
        before: u64,
        /// Time of the last of them.
        last: Instant,
    },
}

/// The reason why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An I/O error.
    #[error("writing failed: {0}")]
    Io(#[from] io::Error),
    /// A request that arrives before the previous one.
    #[error("a request at {} ns follows one at {} ns", .at.nanos(), .before.nanos())]
    Backwards {
        /// Its time.
        at: Instant,
        /// Time of the previous request.
        before: Instant,
    },
    /// A request of a device that was not declared.
    #[error("a request is of device {device}, and only {known} are declared")]
    NoDevice {
        /// The device.
        device: u32,
        /// Number of declared devices.
        known: usize,
    },
    /// A request whose end is beyond 2^64.
    #[error("a request of {len} bytes at offset {offset} ends beyond 2^64")]
    TooFar {
        /// Its offset.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// Too many devices.
    #[error("the trace has more than {} devices", super::MAX_DEVICES)]
    TooManyDevices,
    /// A name of a device that is too long.
    #[error(
        "the name of a device has {len} bytes, after {before} of other names; one may have {}, and all \
         together {}",
        super::MAX_NAME,
        super::MAX_NAMES
    )]
    LongName {
        /// Bytes of the name.
        len: usize,
        /// Bytes of the names before it.
        before: usize,
    },
}
