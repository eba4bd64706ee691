//! Errors of a replay.

use weir_trace::TraceError;
use weir_units::Bytes;

/// The reason why traces cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A trace that cannot be read further.
    #[error("{trace}: {source}")]
    Trace {
        /// The trace.
        trace: String,
        /// The reason.
        source: TraceError,
    },
    /// A mapping to a device that does not exist.
    #[error(
        "--map {device}={target}: there is no volume or stripe {target:?}{}; there are: {known}",
        weir_units::did_you_mean(.near)
    )]
    Map {
        /// The device of a trace.
        device: String,
        /// The unknown device.
        target: String,
        /// The closest name.
        near: Option<String>,
        /// The names in the layout.
        known: String,
    },
    /// A mapping that is given twice.
    #[error("--map {device}=..: {device} is mapped twice")]
    MappedTwice {
        /// The device of a trace.
        device: String,
    },
    /// A device of a trace that stands for none of the layout.
    #[error(
        "{trace}: no volume or stripe is called like its device {device:?}{}; there are: {known}; \
         map it with --map {device}=NAME, or leave it out with --device",
        weir_units::did_you_mean(.near)
    )]
    NoDevice {
        /// The trace.
        trace: String,
        /// The device.
        device: String,
        /// The closest name.
        near: Option<String>,
        /// The names in the layout.
        known: String,
    },
    /// A request beyond the end of its device.
    #[error(transparent)]
    Beyond(Box<BeyondEnd>),
    /// A request that no device can take.
    #[error("{trace}: request {number} has {len} bytes; a request has less than 4 GiB")]
    TooLong {
        /// The trace.
        trace: String,
        /// Its number, from 1.
        number: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A closed replay of a trace without latencies.
    #[error(
        "{trace}: request {number} has no recorded latency, so it is not known which requests \
         waited for it; --depth N keeps N requests in flight instead"
    )]
    NoLatency {
        /// The trace.
        trace: String,
        /// Its number, from 1.
        number: u64,
    },
}

/// A request that ends beyond the end of its device.
#[derive(Debug, thiserror::Error)]
#[error(
    "{trace}: request {number}, a {kind} of {len} bytes at offset {offset} of {device}, ends beyond \
     the end of {target:?}, which has {size}; map {device} to a larger volume, or {hint}"
)]
pub struct BeyondEnd {
    /// The trace.
    pub trace: String,
    /// Its number, from 1.
    pub number: u64,
    /// Its kind.
    pub kind: &'static str,
    /// Length in bytes.
    pub len: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// The device of the trace.
    pub device: String,
    /// The device of the layout.
    pub target: String,
    /// Its size.
    pub size: Bytes,
    /// A further remedy.
    pub hint: &'static str,
}
