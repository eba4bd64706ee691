//! Contents from frames.

use super::encode::{TAG, nonce};
use super::frame::BOUND;
use super::header::Identity;
use super::{BackupId, FrameHeader};
use crate::error::BackupError;
use crate::key::Key;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Why the contents of a frame cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFault {
    /// The payload does not match its hash.
    Payload,
    /// The payload cannot be decrypted: it was not written with this key.
    Decryption,
    /// The payload cannot be decompressed.
    Decompression,
    /// The contents do not match their hash.
    Contents,
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Payload => "its bytes do not match their checksum",
            Self::Decryption => "it cannot be decrypted",
            Self::Decompression => "it cannot be decompressed",
            Self::Contents => "its contents do not match their checksum",
        })
    }
}

/// A decoder of frames: one for each thread, since it has buffers of its own.
pub struct FrameDecoder {
    zstd: zstd::bulk::Decompressor<'static>,
    cipher: Option<(Arc<Key>, XChaCha20Poly1305, [u8; 15])>,
    id: BackupId,
    raw: Vec<u8>,
}

impl fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameDecoder").field("id", &self.id).finish_non_exhaustive()
    }
}

impl FrameDecoder {
    /// Makes a decoder for a backup. Without the key of an encrypted backup it checks payloads
    /// only.
    ///
    /// # Errors
    /// When there is no memory for decompression.
    pub fn new(identity: &Identity, key: Option<&Arc<Key>>) -> Result<Self, BackupError> {
        let zstd = zstd::bulk::Decompressor::new().map_err(|source| BackupError::Codec {
            action: "preparing decompression",
            reason: source.to_string(),
        })?;
        let cipher = key.zip(identity.encryption.as_ref()).map(|(key, own)| {
            let cipher = XChaCha20Poly1305::new(key.encryption().into());
            (Arc::clone(key), cipher, own.nonce_prefix)
        });
        Ok(Self { zstd, cipher, id: identity.id, raw: Vec::new() })
    }

    /// Returns the contents of a data frame, checked; `None` if they are encrypted and there is
    /// no key, when only the payload was checked. The payload is decrypted in place.
    ///
    /// # Errors
    /// The first [`FrameFault`].
    pub fn decode<'a>(
        &'a mut self,
        header: &FrameHeader,
        payload: &'a mut [u8],
    ) -> Result<Option<&'a [u8]>, FrameFault> {
        if blake3::hash(payload).as_bytes() != &header.stored_hash {
            return Err(FrameFault::Payload);
        }
        let payload = match (&self.cipher, header.is_encrypted) {
            // It was written without the key.
            (Some(_), false) => return Err(FrameFault::Decryption),
            (None, false) => &*payload,
            (None, true) => return Ok(None),
            (Some((_, cipher, prefix)), true) => {
                let length = payload.len().checked_sub(TAG).ok_or(FrameFault::Decryption)?;
                let (own, tag) = payload.split_at_mut(length);
                let bound = header.encode();
                let nonce = nonce(prefix, header.address);
                let tag = Tag::clone_from_slice(tag);
                let decrypted =
                    cipher.decrypt_in_place_detached(&nonce, &bound[..BOUND], own, &tag);
                decrypted.map_err(|_| FrameFault::Decryption)?;
                &*own
            }
        };
        let raw_length = usize::try_from(header.raw_length).map_err(|_| FrameFault::Contents)?;
        let raw = if header.is_compressed {
            self.raw.clear();
            self.raw.reserve(raw_length);
            let done = self.zstd.decompress_to_buffer(payload, &mut self.raw);
            done.map_err(|_| FrameFault::Decompression)?;
            self.raw.as_slice()
        } else {
            payload
        };
        let hash = match &self.cipher {
            Some((key, ..)) if header.is_encrypted => key.hash(raw),
            // The payload is the contents, and their hashes are the same.
            _ if !header.is_compressed && header.raw_hash == header.stored_hash => header.raw_hash,
            _ => *blake3::hash(raw).as_bytes(),
        };
        if raw.len() == raw_length && hash == header.raw_hash {
            Ok(Some(raw))
        } else {
            Err(FrameFault::Contents)
        }
    }
}
