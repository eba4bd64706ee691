//! The header of a frame, which stands at its start and again at its end.
//!
//! A frame stands alone: it can be read without any other, and after damage the reader finds the
//! next one by its header. The copy at the end names a frame whose start is destroyed.

use super::wire::{bytes, put, u16_at, u32_at, u64_at};
use super::{BackupId, padded};
use serde::Serialize;

/// The longest contents of a data frame, in bytes.
pub const MAX_FRAME: u32 = 4 << 20;
/// The length of a frame's header.
pub(crate) const FRAME_HEADER: usize = 160;
/// The bytes of a header that encrypted contents are bound to.
pub(crate) const BOUND: usize = 96;

const MAGIC: &[u8; 8] = b"WEIRFRM1";
const CHECKSUM_AT: usize = 128;
const DATA: u8 = 0;
const ZEROS: u8 = 1;
const ZSTD: u8 = 1;
const ENCRYPTED: u8 = 2;

/// Where contents come from, and where their frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrameAddress {
    /// The stripe, from 0.
    pub stripe: u8,
    /// The number of the frame in its stripe, from 0.
    pub sequence: u64,
    /// The index of the source in the manifest.
    pub source: u16,
    /// The offset in the source, in bytes.
    pub offset: u64,
}

/// A frame's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameHeader {
    /// The backup.
    pub id: BackupId,
    /// Where the contents belong.
    pub address: FrameAddress,
    /// True if the contents are zeros, which are not stored.
    pub is_zeros: bool,
    /// True if the payload is compressed with zstd.
    pub is_compressed: bool,
    /// True if the payload is encrypted.
    pub is_encrypted: bool,
    /// The length of the contents.
    pub raw_length: u64,
    /// The length of the payload.
    pub stored_length: u32,
    /// The hash of the contents, keyed if they are encrypted.
    pub raw_hash: [u8; 32],
    /// The hash of the payload.
    pub stored_hash: [u8; 32],
}

impl FrameHeader {
    /// Returns the length of the frame in its stripe.
    #[must_use]
    pub fn frame_length(&self) -> u64 {
        padded(u64::from(self.stored_length) + 2 * FRAME_HEADER as u64)
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; FRAME_HEADER] {
        let mut block = [0; FRAME_HEADER];
        put(&mut block, 0, MAGIC);
        put(&mut block, 8, self.id.as_bytes());
        block[24] = self.address.stripe;
        block[25] = if self.is_zeros { ZEROS } else { DATA };
        let compressed = if self.is_compressed { ZSTD } else { 0 };
        block[26] = compressed | if self.is_encrypted { ENCRYPTED } else { 0 };
        put(&mut block, 28, &self.address.source.to_le_bytes());
        put(&mut block, 32, &self.address.sequence.to_le_bytes());
        put(&mut block, 40, &self.address.offset.to_le_bytes());
        put(&mut block, 48, &self.raw_length.to_le_bytes());
        put(&mut block, 56, &self.stored_length.to_le_bytes());
        put(&mut block, 64, &self.raw_hash);
        put(&mut block, BOUND, &self.stored_hash);
        let checksum = blake3::hash(&block[..CHECKSUM_AT]);
        put(&mut block, CHECKSUM_AT, checksum.as_bytes());
        block
    }

    /// Reads a header; `None` if these bytes are no sound header of a frame.
    #[must_use]
    pub fn parse(block: &[u8]) -> Option<Self> {
        let block = block.get(..FRAME_HEADER)?;
        if &block[..8] != MAGIC
            || blake3::hash(&block[..CHECKSUM_AT]).as_bytes() != &block[CHECKSUM_AT..]
        {
            return None;
        }
        let header = Self {
            id: BackupId::from_bytes(bytes(block, 8)),
            address: FrameAddress {
                stripe: block[24],
                sequence: u64_at(block, 32),
                source: u16_at(block, 28),
                offset: u64_at(block, 40),
            },
            is_zeros: block[25] == ZEROS,
            is_compressed: block[26] & ZSTD != 0,
            is_encrypted: block[26] & ENCRYPTED != 0,
            raw_length: u64_at(block, 48),
            stored_length: u32_at(block, 56),
            raw_hash: bytes(block, 64),
            stored_hash: bytes(block, BOUND),
        };
        let is_known = block[25] <= ZEROS && block[26] <= (ZSTD | ENCRYPTED);
        let reserved = block[27] == 0 && u16_at(block, 30) == 0 && u32_at(block, 60) == 0;
        (is_known && reserved && header.is_possible()).then_some(header)
    }

    /// Returns whether the lengths are such that a writer makes.
    fn is_possible(&self) -> bool {
        let ends = self.address.offset.checked_add(self.raw_length).is_some();
        // zstd and the encryption's tag add a little to contents that cannot be compressed.
        let most = u64::from(MAX_FRAME) + 4096;
        let lengths = if self.is_zeros {
            self.stored_length == 0 && !self.is_compressed && !self.is_encrypted
        } else {
            self.raw_length <= u64::from(MAX_FRAME) && u64::from(self.stored_length) <= most
        };
        ends && lengths && self.raw_length > 0
    }

    /// Returns the checksum, which stands for the whole frame in its stripe's digest.
    #[must_use]
    pub fn checksum(block: &[u8; FRAME_HEADER]) -> [u8; 32] {
        bytes(block, CHECKSUM_AT)
    }
}

/// The digest of a stripe: of its frames, in the order of their sequence.
#[derive(Debug, Clone, Default)]
pub struct StripeDigest {
    hasher: blake3::Hasher,
    frames: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    length: u64,
}

impl StripeDigest {
    /// Adds the next frame, by the checksum of its header.
    pub fn add(&mut self, header: &FrameHeader, checksum: &[u8; 32]) {
        self.hasher.update(checksum);
        self.frames = self.frames.saturating_add(1);
        self.raw_bytes = self.raw_bytes.saturating_add(header.raw_length);
        self.stored_bytes = self.stored_bytes.saturating_add(u64::from(header.stored_length));
        self.length = self.length.saturating_add(header.frame_length());
    }

    /// Returns the summary of the stripe for the manifest.
    #[must_use]
    pub fn summary(&self) -> super::StripeSummary {
        super::StripeSummary {
            frames: self.frames,
            raw_bytes: self.raw_bytes,
            stored_bytes: self.stored_bytes,
            length: super::PAGE.saturating_add(self.length),
            digest: self.hasher.finalize().to_hex().to_string(),
        }
    }

    /// Returns the position in the stripe at which the next frame, or the manifest, begins.
    #[must_use]
    pub const fn position(&self) -> u64 {
        super::PAGE.saturating_add(self.length)
    }

    /// Returns the number of frames so far, which is the next frame's sequence.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }
}
