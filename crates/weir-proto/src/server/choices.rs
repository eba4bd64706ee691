//! The choices of a client during a handshake, and the steps that follow.

use super::Session;
use crate::export::{Export, TransmissionFlags};
use crate::wire;
use alloc::string::String;

/// The next step after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Call again when the input has this many bytes, counted after the consumed ones are dropped.
    /// It never exceeds [`wire::MAX_OPTION`] and a header.
    NeedMore {
        /// In bytes.
        at_least: usize,
    },
    /// A message was processed. Call again with the rest, even if it is empty. Each call processes
    /// one message, so that replies cannot pile up.
    Again,
    /// The handshake is complete; requests follow. Send the output, then use
    /// [`super::parse_request`].
    Established(Session),
    /// The client starts TLS. Send the output, do the handshake of TLS, and continue with what is
    /// decrypted, from an empty input. Input that came behind the option is a violation: it was not
    /// encrypted.
    StartTls,
    /// The client aborted. Send the output and close the connection.
    Aborted,
}

/// The features that a client has chosen so far.
#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) structured: bool,
    /// The export for which `base:allocation` was chosen.
    pub(super) meta_context_of: Option<String>,
}

impl Choices {
    /// Builds the session of an export.
    pub(super) fn establish(&self, export: Export) -> Session {
        // Reads are always answered in one chunk, so DF only needs structured replies.
        let df = if self.structured { TransmissionFlags::SEND_DF } else { TransmissionFlags::NONE };
        let flags =
            export.flags.without(TransmissionFlags::SEND_DF) | df | TransmissionFlags::HAS_FLAGS;
        let chosen = self.structured && self.meta_context_of.as_deref() == Some(&*export.name);
        Session {
            export,
            flags,
            structured: self.structured,
            meta_context: chosen.then_some(wire::BASE_ALLOCATION_ID),
        }
    }
}
