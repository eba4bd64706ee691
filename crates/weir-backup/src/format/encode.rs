//! Frames from contents: hashed, compressed, encrypted.

use super::frame::{BOUND, FRAME_HEADER};
use super::header::Identity;
use super::wire::is_zero;
use super::{BackupId, FrameAddress, FrameHeader, MAX_FRAME, PAGE};
use crate::error::BackupError;
use crate::key::Key;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use std::fmt;
use std::sync::Arc;

/// The unit of frames in memory.
const PAGE_LENGTH: usize = 512;
const _: () = assert!(PAGE_LENGTH as u64 == PAGE);
/// The length of the tag that encryption adds.
pub(super) const TAG: usize = 16;

/// Where the contents stand in the buffer of [`FrameEncoder::encode_frame`].
pub const FRAME_LEAD: usize = FRAME_HEADER;

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
    /// The buffer that the next frame is exchanged for, where it is not encoded in place.
    spare: Vec<u8>,
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
        let (compressed, spare) = (Vec::new(), Vec::new());
        Ok(Self { id: identity.id, zstd, cipher, compressed, spare })
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

    /// Makes a frame of the `length` bytes that stand at [`FRAME_LEAD`] in `frame`. They are not
    /// moved if they are neither compressed nor encrypted. Otherwise `frame` is exchanged for a
    /// buffer of this encoder. The frame is then the first [`EncodedFrame::length`] bytes of it.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode).
    ///
    /// # Panics
    /// When `frame` is shorter than [`frame_room`] of the length.
    pub fn encode_frame(
        &mut self,
        address: FrameAddress,
        frame: &mut Vec<u8>,
        length: usize,
    ) -> Result<EncodedFrame, BackupError> {
        assert!(frame.len() >= frame_room(length), "{} bytes have no room", frame.len());
        let raw = &frame[FRAME_HEADER..FRAME_HEADER + length];
        let is_plain = self.zstd.is_none() && self.cipher.is_none() && length > 0;
        if is_plain && length <= MAX_FRAME as usize && !is_zero(raw) {
            let hash = *blake3::hash(raw).as_bytes();
            let header = FrameHeader {
                raw_length: length as u64,
                stored_length: u32::try_from(length).unwrap_or(u32::MAX),
                raw_hash: hash,
                stored_hash: hash,
                ..self.blank(address)
            };
            let block = header.encode();
            let end = frame_room(length);
            frame[FRAME_HEADER + length..end].fill(0);
            frame[..FRAME_HEADER].copy_from_slice(&block);
            frame[end - FRAME_HEADER..end].copy_from_slice(&block);
            let (checksum, length) = (FrameHeader::checksum(&block), header.frame_length());
            return Ok(EncodedFrame { checksum, header, length });
        }
        let mut out = std::mem::take(&mut self.spare);
        out.clear();
        let encoded = self.encode(address, raw, &mut out);
        self.spare = std::mem::replace(frame, out);
        encoded
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

/// Returns the length of the frame of `length` bytes that are stored as they are.
#[must_use]
pub fn frame_room(length: usize) -> usize {
    (length + 2 * FRAME_HEADER).next_multiple_of(PAGE_LENGTH)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Kind;

    fn identity() -> Identity {
        Identity {
            id: BackupId::from_bytes([7; 16]),
            name: "sales".to_owned(),
            kind: Kind::Full,
            base: None,
            stripes: 1,
            created_unix_ms: 0,
            encryption: None,
        }
    }

    #[test]
    fn a_frame_that_is_made_in_place_is_the_one_that_is_appended() {
        let address = FrameAddress { stripe: 3, sequence: 9, source: 2, offset: 1 << 20 };
        for compression in [None, Some(1)] {
            for (length, fill) in [(65_536, 7_u8), (1000, 1), (4096, 0), (1, 5)] {
                let mut encoder = FrameEncoder::new(&identity(), compression, None).expect("one");
                let raw: Vec<u8> = (0..length)
                    .map(|at: usize| u8::try_from(at / 100 % 256).expect("a byte") & fill)
                    .collect();
                let mut frame = vec![0xaa; frame_room(1 << 17)];
                frame[FRAME_LEAD..FRAME_LEAD + length].copy_from_slice(&raw);
                let made = encoder.encode_frame(address, &mut frame, length).expect("a frame");
                let mut out = Vec::new();
                let appended = encoder.encode(address, &raw, &mut out).expect("a frame");
                assert_eq!(made, appended);
                assert!(frame[..out.len()] == out[..], "{length} bytes differ");
            }
        }
    }
}
