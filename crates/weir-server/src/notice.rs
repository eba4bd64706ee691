//! Notices that a running server gives on its own.

use crate::audit::{Refusal, Suppressed};
use std::fmt;
use std::sync::Arc;
use weir_units::Bytes;

/// An event that the operator should know of at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A host's thread has ended, and with it every export of the host: the server
    /// should be stopped, which keeps what the other hosts hold.
    HostEnded {
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// The store of a volume does not take what its read-write cache has written
    /// back. It is kept in memory, and flushes fail, until the store has it.
    NotStored {
        /// The volume.
        volume: String,
        /// The store's error.
        reason: String,
        /// It has no room; else something is wrong with it.
        full: bool,
    },
    /// The store of a volume has no room, and a write has failed. Given at most once a minute.
    Full {
        /// The volume.
        volume: String,
        /// The store's error.
        reason: String,
    },
    /// That is over: the store has it, or a crash of the host has lost it.
    Settled {
        /// The volume.
        volume: String,
    },
    /// A request met a damaged block of a volume with checksums, and fails. A block is named once.
    DamagedBlock {
        /// The volume.
        volume: String,
        /// The store's error.
        reason: String,
    },
    /// The checksums of a large part of a volume are unknown, and are computed while it is served.
    Unverified {
        /// The volume.
        volume: String,
        /// An upper bound of the bytes.
        bytes: Bytes,
    },
    /// All checksums of a volume are known, or they cannot be computed.
    Verified {
        /// The volume.
        volume: String,
        /// Why they cannot be computed.
        reason: Option<String>,
    },
    /// The backend of a volume does not answer.
    BackendLost {
        /// The volume.
        volume: String,
        /// The address of the backend.
        address: String,
        /// Why.
        reason: String,
    },
    /// The backend of a volume answers again.
    BackendBack {
        /// The volume.
        volume: String,
        /// The address of the backend.
        address: String,
    },
    /// The backend of a volume, which was away at the start, is there, and the volume is served.
    BackendThere {
        /// The volume.
        volume: String,
        /// The address of the backend.
        address: String,
    },
    /// The backend of a volume may not have what was written to it, so it is not used any more.
    BackendFailed {
        /// The volume.
        volume: String,
        /// The address of the backend.
        address: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Clients were disconnected that had sent half a request, or had taken no replies.
    Stalled {
        /// Their number.
        clients: usize,
    },
    /// Clients that had not finished their handshake were disconnected to let others in.
    Silent {
        /// The largest number of handshakes at once.
        most: usize,
        /// Clients disconnected since the last notice, or the start.
        clients: u64,
    },
    /// Clients were rejected because there are too many.
    TooMany {
        /// The largest number of clients.
        most: usize,
        /// Clients rejected since the last notice, or the start.
        clients: u64,
    },
    /// A request was refused.
    Refused(Refusal),
    /// Requests were refused without a notice for each.
    Suppressed(Suppressed),
}

impl Notice {
    /// Returns whether it is a line of the audit.
    #[must_use]
    pub const fn is_audit(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Suppressed(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostEnded { host, reason } => {
                write!(f, "host {host:?} has ended: {reason}; its exports are gone")
            }
            Self::NotStored { volume, reason, full } => {
                let end = if *full { "there is space" } else { "this is fixed" };
                write!(
                    f,
                    "volume {volume:?}: {reason}; the data that its cache has acknowledged stays \
                     in memory, and flushes fail, until {end}"
                )
            }
            Self::Full { volume, reason } => write!(
                f,
                "volume {volume:?}: {reason}; such writes fail with ENOSPC until there is space"
            ),
            Self::DamagedBlock { volume, reason } => write!(
                f,
                "volume {volume:?}: {reason}; its reads fail until the whole block is written"
            ),
            Self::Unverified { volume, bytes } => write!(
                f,
                "volume {volume:?}: checksums of up to {bytes} are unknown and are computed now; until \
                 then, these bytes are read without verification"
            ),
            Self::Verified { volume, reason: None } => {
                write!(f, "volume {volume:?}: all checksums are known; all reads are verified")
            }
            Self::Verified { volume, reason: Some(reason) } => write!(
                f,
                "volume {volume:?}: some checksums are unknown and cannot be computed: {reason}; blocks \
                 without them are read without verification, and each flush tries again"
            ),
            Self::BackendLost { volume, address, reason } => write!(
                f,
                "volume {volume:?}: backend {address}: {reason}; requests wait for it, and fail after \
                 the timeout"
            ),
            Self::BackendBack { volume, address } => {
                write!(f, "volume {volume:?}: backend {address} answers again")
            }
            Self::BackendThere { volume, address } => {
                write!(f, "volume {volume:?}: backend {address} is there; the volume is served now")
            }
            Self::BackendFailed { volume, address, reason } => write!(
                f,
                "volume {volume:?}: backend {address}: {reason}; all requests of the volume fail"
            ),
            Self::Stalled { clients } => write!(
                f,
                "disconnected {clients} NBD client{}: half a request was sent, or replies were not \
                 read, for too long",
                if *clients == 1 { "" } else { "s" }
            ),
            Self::Silent { most, clients } => write!(
                f,
                "{most} NBD handshakes are unfinished: disconnected {clients} of the oldest to let \
                 others in; the next notice comes in a minute or later"
            ),
            Self::TooMany { most, clients } => write!(
                f,
                "{most} NBD clients are connected: rejected {clients}; the next notice comes in a \
                 minute or later"
            ),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Suppressed(count) => count.fmt(f),
            Self::Settled { volume } => {
                write!(f, "volume {volume:?}: all data that was kept in memory is stored now")
            }
        }
    }
}

/// The receiver of notices, called from the thread that has one. By default there is none.
#[derive(Clone, Default)]
pub struct Listening(Option<Arc<dyn Fn(Notice) + Send + Sync>>);

impl Listening {
    /// Calls `hear` for each notice. It must not wait.
    pub fn with(hear: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(hear) = &self.0 {
            hear(notice);
        }
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listening").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_store_waits_for_room() {
        let check = |full, expect: &str| {
            let (volume, reason) = ("v".to_owned(), "cannot write v/00000".to_owned());
            assert_eq!(Notice::NotStored { volume, reason, full }.to_string(), expect);
        };
        check(
            true,
            "volume \"v\": cannot write v/00000; the data that its cache has acknowledged stays in \
             memory, and flushes fail, until there is space",
        );
        check(
            false,
            "volume \"v\": cannot write v/00000; the data that its cache has acknowledged stays in \
             memory, and flushes fail, until this is fixed",
        );
    }
}
