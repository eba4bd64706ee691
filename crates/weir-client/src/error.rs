//! Faults between here and a server.

use std::io;
use weir_proto::{Errno, ProtoError};

/// An error of a connection, or of a request on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server answers at the address.
    #[error("cannot connect to {place}: {source}; is the server running?")]
    Connect {
        /// The address or path of the socket.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// A certificate that cannot be used.
    #[error("{path}: {reason}")]
    Certificate {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The connection cannot be encrypted.
    #[error("cannot encrypt the connection to {place}: {reason}")]
    Tls {
        /// The address or path of the socket.
        place: String,
        /// The reason.
        reason: String,
    },
    /// The socket failed.
    #[error("the connection to {place} failed: {source}")]
    Socket {
        /// The address or path of the socket.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server hung up.
    #[error("{place} closed the connection with {in_flight} requests unanswered")]
    Closed {
        /// The address or path of the socket.
        place: String,
        /// The requests in flight.
        in_flight: usize,
    },
    /// The server cannot be understood, or refused the export.
    #[error("{place}: {source}")]
    Protocol {
        /// The address or path of the socket.
        place: String,
        /// The reason.
        source: ProtoError,
    },
    /// A structured reply that does not answer its request.
    #[error("{place} sent a reply that does not match the request")]
    Answer {
        /// The address or path of the socket.
        place: String,
    },
    /// The export has no such command.
    #[error("the export does not offer {0}")]
    NotOffered(&'static str),
    /// A read or write above the export's maximum.
    #[error("a request of {length} bytes is above the export's maximum of {maximum} bytes")]
    TooLong {
        /// In bytes.
        length: usize,
        /// In bytes.
        maximum: u32,
    },
    /// A [`Stop`](crate::Stop) ended the wait.
    #[error("the wait was stopped")]
    Stopped,
    /// The server carried a request out in vain.
    #[error("the server answered {0}")]
    Failed(Errno),
    /// The system refused something that must work.
    #[error("{context}: {source}")]
    System {
        /// The operation that failed.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl ClientError {
    pub(crate) fn system(context: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { context, source }
    }
}
