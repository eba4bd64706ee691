//! The server's side: what a client sent, and what it may ask for.
//!
//! Start with [`Handshake::start`], hand it bytes until it says
//! [`Step::Established`], then cut requests off the stream with
//! [`parse_request`] and answer them with [`crate::reply`].

mod handshake;
mod options;
mod transmission;

pub use handshake::{Handshake, Progress, Step};
pub use transmission::{Parsed, parse_request};

use crate::export::{Export, TransmissionFlags};
use alloc::vec::Vec;

/// The exports of a server, asked during every handshake.
pub trait Exports {
    /// The export of this name; the empty name asks for the default one. The
    /// [`Export::name`] returned may differ from the one asked for.
    fn find(&self, name: &str) -> Option<Export>;

    /// Every export that a client may see in a listing.
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

/// What client and server agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The export that was chosen.
    pub export: Export,
    /// The transmission flags as they were sent.
    pub flags: TransmissionFlags,
    /// Whether reads are answered with structured replies.
    pub structured: bool,
    /// The number under which the client knows `base:allocation`, if it asked.
    pub meta_context: Option<u32>,
}
