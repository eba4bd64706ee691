//! A backup written to memory: the shortest complete writer of the format, for tests and for
//! the fuzzing of the reader.

use crate::assemble::StripeInput;
use crate::error::BackupError;
use crate::format::{
    FrameAddress, FrameEncoder, Identity, Manifest, ManifestSource, StripeDigest, closing,
};
use crate::key::Key;
use std::sync::Arc;

/// One source, and what a backup holds of it.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    /// The source's name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The ranges: an offset and its contents.
    pub ranges: Vec<(u64, Vec<u8>)>,
}

/// Writes a backup to memory, with frames of `transfer` bytes that go to the stripes in turn.
///
/// # Errors
/// When the identity is refused, or a frame cannot be encoded.
pub fn write(
    identity: &Identity,
    sources: &[MemorySource],
    transfer: usize,
    compression: Option<i32>,
    key: Option<&Arc<Key>>,
) -> Result<Vec<Vec<u8>>, BackupError> {
    identity.check()?;
    let mut encoder = FrameEncoder::new(identity, compression, key)?;
    let mut stripes: Vec<(Vec<u8>, StripeDigest)> = (0..identity.stripes)
        .map(|stripe| (identity.header(stripe).to_vec(), StripeDigest::default()))
        .collect();
    let mut manifest = Manifest::new(identity, "weir".to_owned());
    manifest.options.compression = compression;
    manifest.options.max_transfer = transfer as u64;
    let mut turn = 0_usize;
    for (source, own) in (0..).zip(sources) {
        let raw_bytes = own.ranges.iter().map(|(_, contents)| contents.len() as u64).sum();
        let (name, size) = (own.name.clone(), own.size);
        manifest.sources.push(ManifestSource { name, size, raw_bytes, ..Default::default() });
        for (offset, contents) in &own.ranges {
            for (chunk, raw) in (0_u64..).zip(contents.chunks(transfer)) {
                let stripe = turn % usize::from(identity.stripes);
                turn += 1;
                let (out, digest) = &mut stripes[stripe];
                let address = FrameAddress {
                    stripe: u8::try_from(stripe).unwrap_or(u8::MAX),
                    sequence: digest.frames(),
                    source,
                    offset: offset + chunk * transfer as u64,
                };
                let frame = encoder.encode(address, raw, out)?;
                digest.add(&frame.header, &frame.checksum);
            }
        }
    }
    manifest.stripes = stripes.iter().map(|(_, digest)| digest.summary()).collect();
    let mut out = Vec::new();
    for (stripe, (mut bytes, digest)) in (0..).zip(stripes) {
        let key = key.map(Arc::as_ref);
        bytes.extend(closing(&manifest, identity, stripe, digest.position(), key)?);
        out.push(bytes);
    }
    Ok(out)
}

/// Makes inputs of stripes in memory, named as files would be.
#[must_use]
pub fn inputs(identity: &Identity, stripes: Vec<Vec<u8>>) -> Vec<StripeInput> {
    let input = |(stripe, bytes): (u8, Vec<u8>)| StripeInput {
        name: identity.file_name(stripe),
        named: Some(stripe),
        bytes: Box::new(bytes),
    };
    (0..).zip(stripes).map(input).collect()
}
