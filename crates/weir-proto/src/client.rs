//! The client's side: negotiation of an export, and parsing of replies.
//!
//! Start with [`Handshake::open`] or [`Handshake::list`] and pass it received bytes until it
//! returns [`Step::Established`] or [`Step::Listed`]. Then send requests with
//! [`crate::Request::encode`], each write followed by its data, and parse replies with
//! [`parse_reply`].

mod handshake;
mod reply;

pub use handshake::{Handshake, Progress, Step};
pub use reply::{Body, Extents, ParsedReply, Reply, parse_reply};

use crate::export::{BlockSizes, TransmissionFlags};
use alloc::string::String;
use weir_units::Bytes;

/// The features to request from a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Export name; empty for the default export.
    pub export: String,
    /// Request structured replies. Without them each read has one simple reply.
    pub structured: bool,
    /// Request `base:allocation`, which needs `structured`.
    pub block_status: bool,
    /// Encrypt the connection before anything else is asked for.
    pub tls: bool,
}

/// The result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Size of the export.
    pub size: Bytes,
    /// Transmission flags of the export.
    pub flags: TransmissionFlags,
    /// Block sizes of the export, or the defaults if the server sent none.
    pub block: BlockSizes,
    /// True if the server sends structured replies.
    pub structured: bool,
    /// Context id of `base:allocation`, if it was requested and granted.
    pub meta_context: Option<u32>,
}

/// An export in a server's listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Export name.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
}
