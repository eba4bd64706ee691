//! Reasons why a backend cannot be used, and the errors of its requests.

use std::io;
use weir_client::ClientError;
use weir_proto::Errno;
use weir_store::StoreError;
use weir_units::Bytes;

/// A reason why a backend cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The server cannot be reached, or refuses the export.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The export is read-only.
    #[error("the export is read-only; allow writes at the server")]
    ReadOnly,
    /// The export has no flush.
    #[error(
        "the server offers no FLUSH, so nothing could be made durable; enable it at the server, or \
         use another one"
    )]
    NoFlush,
    /// The export has another size than before.
    #[error(
        "it came back with {} instead of {}, so it may be another export; stop Weir, restore the \
         export and start again",
        now.exact(), before.exact()
    )]
    OtherSize {
        /// The size at the start.
        before: Bytes,
        /// The size now.
        now: Bytes,
    },
    /// The export offers less than before.
    #[error("it came back without {0}; stop Weir, restore the export and start again")]
    Lacks(&'static str),
    /// Unflushed writes could not be written again.
    #[error(
        "it did not take {bytes} bytes at {offset} again, which it had answered and not flushed \
         ({errno}); stop Weir and check the data"
    )]
    Replay {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u64,
        /// The error of the server.
        errno: Errno,
    },
    /// The server has not kept what it confirmed as durable.
    #[error(
        "it came back without the {bytes} bytes at {offset} that it had flushed: it does not keep what it flushes, or \
         something else has written to it; stop Weir and check the data"
    )]
    Forgot {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u64,
    },
    /// A file or device that cannot be used.
    #[error("{0}")]
    File(String),
    /// The system refused something that must work.
    #[error("{context}: {source}")]
    System {
        /// The operation that failed.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// Makes the error of a request from a reason.
pub(crate) fn failed(context: String, source: io::Error) -> StoreError {
    StoreError::Io { context, source }
}

/// Makes the error of a request that a server carried out in vain.
pub(crate) fn answered(address: &str, what: &str, errno: Errno) -> StoreError {
    let context = format!("backend {address} answered {errno} to {what}");
    match errno {
        Errno::NoSpc => StoreError::NoSpace { context, source: io::ErrorKind::StorageFull.into() },
        _ => failed(context, io::Error::other(errno.to_string())),
    }
}
