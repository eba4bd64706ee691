//! The format of a backup, byte by byte. `docs/BACKUP.md` describes it for people.
//!
//! ```text
//!  stripe: | header 512 | frame | frame | ... | manifest | footer 512 |
//!  frame:  | header 160 | payload | zeros | header again 160 |   a multiple of 512
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`id`] | the identity of a backup |
//! | [`header`] | the first 512 bytes of each stripe |
//! | [`frame`] | the address and the header of a frame |
//! | [`encode`], [`decode`] | frames from contents, contents from frames |
//! | [`manifest`] | the description of the whole backup |
//! | [`footer`] | the last 512 bytes, without which a stripe is incomplete |
//!
//! A writer makes one [`Identity`], writes [`Identity::header`] to each stripe, then its frames in
//! the order of their sequence ([`FrameEncoder`], [`StripeDigest`]), and at last
//! [`closing`]. Numbers are little-endian. Every part begins at a multiple of [`PAGE`].

pub mod decode;
pub mod encode;
pub mod footer;
pub mod frame;
pub mod header;
pub mod id;
pub mod manifest;
pub(crate) mod wire;

pub use decode::{FrameDecoder, FrameFault};
pub use encode::{EncodedFrame, FRAME_LEAD, FrameEncoder, frame_room};
pub use footer::{Footer, closing};
pub use frame::{FrameAddress, FrameHeader, MAX_FRAME, StripeDigest};
pub use header::{Encryption, Identity, Kind, MAX_NAME, MAX_STRIPES, StripeHeader};
pub use id::BackupId;
pub use manifest::{Manifest, ManifestOptions, ManifestSource, StripeSummary};

/// The version of the format that this crate writes and reads.
pub const VERSION: u16 = 1;
/// The unit in which stripes are laid out, in bytes: a page of a page blob.
pub const PAGE: u64 = 512;

/// Rounds a length up to whole pages.
#[must_use]
pub const fn padded(length: u64) -> u64 {
    length.next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests;
