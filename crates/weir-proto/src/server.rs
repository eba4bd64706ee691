//! The server's side: negotiation of an export, and parsing of requests.
//!
//! Start with [`Handshake::start`] and pass it received bytes until it returns
//! [`Step::Established`]. Then parse requests with [`parse_request`] and reply with
//! [`crate::reply`].

mod choices;
mod handshake;
mod options;
mod transmission;

pub use choices::Step;
pub use handshake::{Handshake, Progress};
pub use transmission::{Parsed, parse_request};

use crate::export::{Export, TransmissionFlags};
use alloc::vec::Vec;

/// The exports of a server, queried during each handshake.
pub trait Exports {
    /// Returns an export by name; the empty name requests the default. The [`Export::name`]
    /// returned may differ from the request.
    fn find(&self, name: &str) -> Option<Export>;

    /// Returns the exports that clients may list.
    fn list(&self) -> Vec<Export>;
}

/// A fixed list of exports; the first is the default.
impl Exports for [Export] {
    fn find(&self, name: &str) -> Option<Export> {
        self.iter().find(|export| name.is_empty() || export.name == name).cloned()
    }

    fn list(&self) -> Vec<Export> {
        self.to_vec()
    }
}

impl Exports for Vec<Export> {
    fn find(&self, name: &str) -> Option<Export> {
        self.as_slice().find(name)
    }

    fn list(&self) -> Vec<Export> {
        self.clone()
    }
}

/// The result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The negotiated export.
    pub export: Export,
    /// Transmission flags as sent.
    pub flags: TransmissionFlags,
    /// True if reads have structured replies.
    pub structured: bool,
    /// Context id of `base:allocation`, if the client requested it.
    pub meta_context: Option<u32>,
}
