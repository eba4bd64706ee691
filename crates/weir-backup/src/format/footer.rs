//! The end of a stripe: the manifest, and the footer without which the stripe is incomplete.

use super::wire::{bytes, put, u16_at, u64_at};
use super::{BackupId, Identity, Manifest, PAGE, VERSION, padded};
use crate::error::BackupError;
use crate::key::Key;

/// The length of a footer.
pub(crate) const FOOTER: usize = 512;

const MAGIC: &[u8; 8] = b"WEIREND1";
/// The bytes that the MAC is of.
const SIGNED: usize = 120;
const CHECKSUM_AT: usize = FOOTER - 32;

/// A stripe's footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// The backup.
    pub id: BackupId,
    /// The stripe, from 0.
    pub stripe: u8,
    /// The number of stripes.
    pub stripes: u8,
    /// The position of the manifest in the stripe.
    pub position: u64,
    /// The length of the manifest.
    pub length: u64,
    /// The hash of the manifest.
    pub manifest_hash: [u8; 32],
    /// The checksum of the stripe's header.
    pub header_checksum: [u8; 32],
    /// The MAC of the fields above; zeros if the backup is not encrypted.
    pub mac: [u8; 32],
}

impl Footer {
    fn encode(&self, key: Option<&Key>) -> [u8; FOOTER] {
        let mut block = [0; FOOTER];
        put(&mut block, 0, MAGIC);
        put(&mut block, 8, &VERSION.to_le_bytes());
        block[10] = self.stripe;
        block[11] = self.stripes;
        put(&mut block, 16, self.id.as_bytes());
        put(&mut block, 32, &self.position.to_le_bytes());
        put(&mut block, 40, &self.length.to_le_bytes());
        put(&mut block, 48, &self.manifest_hash);
        put(&mut block, 80, &self.header_checksum);
        put(&mut block, 112, &self.stripe_length().to_le_bytes());
        if let Some(key) = key {
            let mac = key.mac(&block[..SIGNED]);
            put(&mut block, SIGNED, &mac);
        }
        let checksum = blake3::hash(&block[..CHECKSUM_AT]);
        put(&mut block, CHECKSUM_AT, checksum.as_bytes());
        block
    }

    /// Reads a footer; `None` if these bytes are no sound footer.
    #[must_use]
    pub fn parse(block: &[u8; FOOTER]) -> Option<Self> {
        let is_sound = &block[..8] == MAGIC
            && u16_at(block, 8) == VERSION
            && *blake3::hash(&block[..CHECKSUM_AT]).as_bytes() == block[CHECKSUM_AT..];
        let footer = Self {
            id: BackupId::from_bytes(bytes(block, 16)),
            stripe: block[10],
            stripes: block[11],
            position: u64_at(block, 32),
            length: u64_at(block, 40),
            manifest_hash: bytes(block, 48),
            header_checksum: bytes(block, 80),
            mac: bytes(block, SIGNED),
        };
        let is_placed = footer.length <= super::manifest::MAX_MANIFEST
            && footer.position >= PAGE
            && footer.position.is_multiple_of(PAGE)
            && footer.position < u64::MAX / 2
            && footer.stripe_length() == u64_at(block, 112);
        (is_sound && is_placed).then_some(footer)
    }

    /// Returns the length of the whole stripe.
    #[must_use]
    pub const fn stripe_length(&self) -> u64 {
        self.position.saturating_add(padded(self.length)).saturating_add(PAGE)
    }

    /// Returns whether the MAC is the one that this key makes.
    #[must_use]
    pub fn is_signed(&self, key: &Key) -> bool {
        let block = self.encode(Some(key));
        blake3::Hash::from_bytes(bytes(&block, SIGNED)) == blake3::Hash::from_bytes(self.mac)
    }
}

/// Returns the end of a stripe: the manifest, padded, and the footer. `position` is where it will
/// stand in the stripe ([`super::StripeDigest::position`]).
///
/// The footer is the last [`PAGE`] of it. A writer that can be interrupted makes everything before
/// durable first.
///
/// # Errors
/// When the manifest is too long.
pub fn closing(
    manifest: &Manifest,
    identity: &Identity,
    stripe: u8,
    position: u64,
    key: Option<&Key>,
) -> Result<Vec<u8>, BackupError> {
    let mut out = manifest.encode()?;
    let length = out.len() as u64;
    let header = identity.header(stripe);
    let footer = Footer {
        id: identity.id,
        stripe,
        stripes: identity.stripes,
        position,
        length,
        manifest_hash: *blake3::hash(&out).as_bytes(),
        header_checksum: bytes(&header, header.len() - 32),
        mac: [0; 32],
    };
    out.resize(usize::try_from(padded(length)).unwrap_or(out.len()), 0);
    out.extend_from_slice(&footer.encode(key));
    Ok(out)
}
