//! The header and footer of a stripe, read before its frames.

use crate::error::BackupError;
use crate::format::footer::FOOTER;
use crate::format::header::HEADER;
use crate::format::wire::is_zero;
use crate::format::{BackupId, Footer, Manifest, PAGE, StripeHeader, padded};
use crate::read_at::ReadAt;

/// The two ends of a stripe.
#[derive(Debug)]
pub struct Probe {
    /// The header, or why there is none.
    pub header: Result<StripeHeader, BackupError>,
    /// The footer at the end, if there is a valid one that belongs to the header.
    pub footer: Option<Footer>,
    /// The length in bytes.
    pub length: u64,
}

impl Probe {
    /// Reads both ends. `name` is the file, export or blob, for messages.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn read(name: &str, bytes: &mut dyn ReadAt) -> std::io::Result<Self> {
        let length = bytes.length();
        let mut block = [0; HEADER];
        let header = if length >= HEADER as u64 {
            bytes.read_at(0, &mut block)?;
            StripeHeader::parse(name, &block)
        } else {
            Err(BackupError::NotAStripe { name: name.to_owned() })
        };
        let mut probe = Self { header, footer: None, length };
        probe.footer = probe.footer_before(bytes, length)?;
        Ok(probe)
    }

    /// Reads the footer of a stripe that ends at `end`.
    pub(crate) fn footer_before(
        &self,
        bytes: &mut dyn ReadAt,
        end: u64,
    ) -> std::io::Result<Option<Footer>> {
        let Some(start) = end.checked_sub(PAGE).filter(|start| *start >= PAGE) else {
            return Ok(None);
        };
        let mut block = [0; FOOTER];
        bytes.read_at(start, &mut block)?;
        let footer = Footer::parse(&block).filter(|footer| footer.stripe_length() == end);
        Ok(footer.filter(|footer| match &self.header {
            Ok(header) => {
                footer.id == header.identity.id
                    && footer.stripe == header.stripe
                    && footer.stripes == header.identity.stripes
                    && footer.header_checksum == header.checksum
            }
            Err(BackupError::Version { .. }) => false,
            Err(_) => {
                footer.stripe < footer.stripes && footer.stripes <= crate::format::MAX_STRIPES
            }
        }))
    }

    /// Returns the backup and the stripe, from 0, as far as either end says so.
    #[must_use]
    pub fn place(&self) -> Option<(BackupId, u8)> {
        match (&self.header, &self.footer) {
            (Ok(header), _) => Some((header.identity.id, header.stripe)),
            (Err(_), Some(footer)) => Some((footer.id, footer.stripe)),
            (Err(_), None) => None,
        }
    }

    /// Returns whether both ends are there. Without them a stripe is incomplete.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.header.is_ok() && self.footer.is_some()
    }
}

/// Reads the manifest that a footer names; `None` if it is damaged.
///
/// # Errors
/// When the medium fails.
pub fn read_manifest(bytes: &mut dyn ReadAt, footer: &Footer) -> std::io::Result<Option<Manifest>> {
    let Ok(length) = usize::try_from(footer.length) else { return Ok(None) };
    // The footer is checked against the length of the stripe before memory is allocated.
    if footer.stripe_length() > bytes.length() {
        return Ok(None);
    }
    let mut text = vec![0; usize::try_from(padded(footer.length)).unwrap_or(length)];
    bytes.read_at(footer.position, &mut text)?;
    let (text, padding) = text.split_at(length);
    if *blake3::hash(text).as_bytes() != footer.manifest_hash || !is_zero(padding) {
        return Ok(None);
    }
    let manifest = serde_json::from_slice::<Manifest>(text).ok();
    Ok(manifest.filter(|manifest| manifest.identity().is_some()))
}
