//! The limits of what clients can take from a server.

use weir_units::{Bytes, Span};

/// The most that NBD clients can take from a server.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Memory for payloads: received writes and unsent replies, beyond 512 KiB for each client. A host
    /// has at least 128 MiB of it.
    pub memory: Bytes,
    /// Clients at once.
    pub clients: usize,
    /// Unfinished handshakes at once.
    pub handshakes: usize,
    /// The longest time for a handshake.
    pub handshake: Span,
    /// The longest time in which a client sends nothing more of a request, or takes no replies.
    pub stall: Span,
    /// The same while more than half of a host's memory for payloads is used.
    pub stall_when_short: Span,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            memory: Bytes::new(512 << 20),
            clients: 1024,
            handshakes: 256,
            handshake: Span::from_secs(30),
            stall: Span::from_secs(600),
            stall_when_short: Span::from_secs(60),
        }
    }
}
