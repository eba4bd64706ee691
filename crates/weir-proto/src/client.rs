//! The client's side: choosing an export, and reading what comes back.
//!
//! Start with [`Handshake::open`] or [`Handshake::list`], hand it bytes until it
//! says [`Step::Established`] or [`Step::Listed`]. Then send requests with
//! [`crate::Request::encode`], a write's data behind it, and cut the answers off
//! the stream with [`parse_reply`].

mod handshake;
mod reply;

pub use handshake::{Handshake, Progress, Step};
pub use reply::{Body, Extents, ParsedReply, Reply, parse_reply};

use crate::export::{BlockSizes, TransmissionFlags};
use alloc::string::String;
use weir_units::Bytes;

/// What to ask a server for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The export's name; empty for the default one.
    pub export: String,
    /// Whether to ask for structured replies. Without them every read comes
    /// back whole, in one simple reply.
    pub structured: bool,
    /// Whether to ask for `base:allocation`, which needs `structured`.
    pub block_status: bool,
}

/// What client and server agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The export's size.
    pub size: Bytes,
    /// What it can do.
    pub flags: TransmissionFlags,
    /// Its block sizes; the default ones if the server said nothing.
    pub block: BlockSizes,
    /// Whether the server answers with structured replies.
    pub structured: bool,
    /// The number of `base:allocation`, if it was wanted and is there.
    pub meta_context: Option<u32>,
}

/// An export in a server's listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Words about it, perhaps none.
    pub description: String,
}
