//! Frames from contents: hashed, compressed, encrypted.

use super::frame::{BOUND, FRAME_HEADER};
use super::header::Identity;
use super::wire::is_zero;
use super::{BackupId, FrameAddress, FrameHeader, MAX_FRAME};
use crate::error::BackupError;
use crate::key::Key;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use std::fmt;
use std::sync::Arc;

/// The length of the tag that encryption adds.
pub(super) const TAG: usize = 16;

/// A frame that was appended to a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedFrame {
    /// The frame's header.
    pub header: FrameHeader,
    /// The checksum of the header, for [`super::StripeDigest::add`].
    pub checksum: [u8; 32],
    /// The length of the frame.
    pub length: u64,
}

/// An encoder of frames: one for each thread, since it has buffers of its own.
pub struct FrameEncoder {
    id: BackupId,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    cipher: Option<(Arc<Key>, XChaCha20Poly1305, [u8; 15])>,
    compressed: Vec<u8>,
}

impl fmt::Debug for FrameEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameEncoder").field("id", &self.id).finish_non_exhaustive()
    }
}

impl FrameEncoder {
    /// Makes an encoder for a backup, with a zstd level if it compresses, and the key if it
    /// encrypts.
    ///
    /// # Errors
    /// When the level is none of zstd's, or the identity says encrypted and there is no key.
    pub fn new(
        identity: &Identity,
        compression: Option<i32>,
        key: Option<&Arc<Key>>,
    ) -> Result<Self, BackupError> {
        let zstd = compression.map(zstd::bulk::Compressor::new).transpose();
        let zstd = zstd.map_err(|source| BackupError::Codec {
            action: "preparing compression",
            reason: source.to_string(),
        })?;
        let cipher = match (&identity.encryption, key) {
            (None, None) => None,
            (Some(own), Some(key)) => {
                let cipher = XChaCha20Poly1305::new(key.encryption().into());
                Some((Arc::clone(key), cipher, own.nonce_prefix))
            }
            _ => return Err(BackupError::NoKey { backup: identity.id }),
        };
        Ok(Self { id: identity.id, zstd, cipher, compressed: Vec::new() })
    }

    /// Appends the frame of `raw` to `out`. Contents that are all zeros become a frame without a
    /// payload.
    ///
    /// # Errors
    /// When `raw` is empty or longer than [`MAX_FRAME`], or compression or encryption fails.
    pub fn encode(
        &mut self,
        address: FrameAddress,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EncodedFrame, BackupError> {
        let fits = u32::try_from(raw.len()).is_ok_and(|length| (1..=MAX_FRAME).contains(&length));
        if !fits {
            return Err(BackupError::Codec {
                action: "encoding a frame",
                reason: format!("{} bytes: a frame holds 1 to {MAX_FRAME}", raw.len()),
            });
        }
        if is_zero(raw) {
            return self.encode_zeros(address, raw.len() as u64, out);
        }
        let raw_hash = match &self.cipher {
            Some((key, ..)) => key.hash(raw),
            None => *blake3::hash(raw).as_bytes(),
        };
        let is_compressed = self.compress(raw)?;
        let payload = if is_compressed { self.compressed.as_slice() } else { raw };
        let tag = if self.cipher.is_some() { TAG } else { 0 };
        let mut header = FrameHeader {
            is_compressed,
            is_encrypted: self.cipher.is_some(),
            raw_length: raw.len() as u64,
            stored_length: u32::try_from(payload.len() + tag).unwrap_or(u32::MAX),
            raw_hash,
            stored_hash: raw_hash,
            ..self.blank(address)
        };
        let start = out.len();
        out.resize(start + FRAME_HEADER, 0);
        out.extend_from_slice(payload);
        if let Some((_, cipher, prefix)) = &self.cipher {
            let bound = header.encode();
            let nonce = nonce(prefix, address);
            let own = &mut out[start + FRAME_HEADER..];
            let tag = cipher.encrypt_in_place_detached(&nonce, &bound[..BOUND], own);
            let tag = tag.map_err(|_| BackupError::Codec {
                action: "encrypting a frame",
                reason: "it is too long".to_owned(),
            })?;
            out.extend_from_slice(&tag);
        }
        if is_compressed || header.is_encrypted {
            header.stored_hash = *blake3::hash(&out[start + FRAME_HEADER..]).as_bytes();
        }
        Ok(finish(header, start, out))
    }

    /// Appends a frame that says that a range of any length is zeros.
    ///
    /// # Errors
    /// When the range is empty or reaches beyond the largest offset.
    pub fn encode_zeros(
        &mut self,
        address: FrameAddress,
        length: u64,
        out: &mut Vec<u8>,
    ) -> Result<EncodedFrame, BackupError> {
        if length == 0 || address.offset.checked_add(length).is_none() {
            return Err(BackupError::Codec {
                action: "encoding zeros",
                reason: format!("{length} bytes at offset {}", address.offset),
            });
        }
        let header = FrameHeader { raw_length: length, is_zeros: true, ..self.blank(address) };
        let start = out.len();
        out.resize(start + FRAME_HEADER, 0);
        Ok(finish(header, start, out))
    }

    fn blank(&self, address: FrameAddress) -> FrameHeader {
        FrameHeader {
            id: self.id,
            address,
            is_zeros: false,
            is_compressed: false,
            is_encrypted: false,
            raw_length: 0,
            stored_length: 0,
            raw_hash: [0; 32],
            stored_hash: [0; 32],
        }
    }

    /// Compresses into the own buffer; returns whether that saves anything.
    fn compress(&mut self, raw: &[u8]) -> Result<bool, BackupError> {
        let Some(zstd) = &mut self.zstd else { return Ok(false) };
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let length = zstd.compress_to_buffer(raw, &mut self.compressed).map_err(|source| {
            BackupError::Codec { action: "compressing a frame", reason: source.to_string() }
        })?;
        Ok(length < raw.len())
    }
}

/// Returns the nonce of a frame: no two frames of a backup share one.
pub(super) fn nonce(prefix: &[u8; 15], address: FrameAddress) -> XNonce {
    let mut nonce = [0; 24];
    nonce[..15].copy_from_slice(prefix);
    nonce[15] = address.stripe;
    nonce[16..].copy_from_slice(&address.sequence.to_le_bytes());
    nonce.into()
}

/// Writes the header to both ends of the frame that starts at `start`.
fn finish(header: FrameHeader, start: usize, out: &mut Vec<u8>) -> EncodedFrame {
    let length = header.frame_length();
    let payload_end = out.len();
    let rest = length - (payload_end - start) as u64;
    out.resize(payload_end + usize::try_from(rest).unwrap_or(0), 0);
    let block = header.encode();
    out[start..start + FRAME_HEADER].copy_from_slice(&block);
    let end = out.len();
    out[end - FRAME_HEADER..].copy_from_slice(&block);
    EncodedFrame { checksum: FrameHeader::checksum(&block), header, length }
}
