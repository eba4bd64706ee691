//! Checksums of bodies.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use std::fmt::Write as _;

/// The running checksums of a body, and the values that the client sent.
pub struct Check {
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
    claimed_md5: Option<String>,
    claimed_crc64: Option<String>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").field("claimed_md5", &self.claimed_md5).finish_non_exhaustive()
    }
}

/// The checksums of a complete body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// MD5 in Base64, if it was computed.
    pub md5: Option<String>,
    /// CRC-64/NVME in Base64, least significant byte first.
    pub crc64: String,
}

impl Check {
    /// Reads the client's checksums. `keeps` computes the MD5 in any case, because it is stored
    /// with the blob.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidMd5`], [`Code::InvalidHeaderValue`],
    /// [`Code::BothCrc64AndMd5HeaderPresent`].
    pub fn parse(head: &Head, keeps: bool) -> Result<Self> {
        let claimed_md5 = head.header("content-md5").map(str::to_owned);
        let claimed_crc64 = head.header("x-ms-content-crc64").map(str::to_owned);
        claimed_md5.as_deref().map_or(Ok(()), check_md5)?;
        if let Some(text) = &claimed_crc64
            && STANDARD.decode(text).map_or(0, |bytes| bytes.len()) != 8
        {
            return Err(Fault::header("x-ms-content-crc64", text));
        }
        if claimed_md5.is_some() && claimed_crc64.is_some() {
            return Err(Code::BothCrc64AndMd5HeaderPresent.into());
        }
        if head.header("x-ms-structured-body").is_some() {
            return Err(Fault::not_implemented("a structured body"));
        }
        let md5 = (keeps || claimed_md5.is_some()).then(Md5::new);
        Ok(Self { md5, crc64: crc64fast_nvme::Digest::new(), claimed_md5, claimed_crc64 })
    }

    /// Reads the client's checksums of a blob that is written in one request. That of the blob takes
    /// precedence over that of the body.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse).
    pub(crate) fn of_blob(head: &Head) -> Result<Self> {
        let of_body = Self::parse(head, true)?;
        let Some(of_blob) = head.header("x-ms-blob-content-md5") else { return Ok(of_body) };
        check_md5(of_blob)?;
        Ok(Self { claimed_md5: Some(of_blob.to_owned()), ..of_body })
    }

    /// Reads the client's checksums of the source of a copy.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse).
    pub(crate) fn of_source(head: &Head) -> Result<Self> {
        let claimed = |name: &str| head.header(name).map(str::to_owned);
        let claimed_md5 = claimed("x-ms-source-content-md5");
        let md5 = claimed_md5.as_ref().map(|_| Md5::new());
        let claimed_crc64 = claimed("x-ms-source-content-crc64");
        Ok(Self { md5, claimed_md5, claimed_crc64, ..Self::parse(head, false)? })
    }

    /// Returns whether the client sent a checksum.
    pub(crate) const fn is_claimed(&self) -> bool {
        self.claimed_md5.is_some() || self.claimed_crc64.is_some()
    }

    /// Adds bytes of the body.
    pub fn add(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if self.md5.is_none() || self.claimed_crc64.is_some() {
            self.crc64.write(bytes);
        }
    }

    /// Completes the checksums and compares them with the client's.
    ///
    /// # Errors
    ///
    /// [`Code::Md5Mismatch`], [`Code::Crc64Mismatch`].
    pub fn end(self) -> Result<Sums> {
        let md5 = self.md5.map(|md5| STANDARD.encode(md5.finalize()));
        let crc64 = STANDARD.encode(self.crc64.sum64().to_le_bytes());
        if let (Some(said), Some(own)) = (&self.claimed_md5, &md5)
            && said != own
        {
            return Err(Fault::from(Code::Md5Mismatch)
                .with("UserSpecifiedMd5", said.clone())
                .with("ServerCalculatedMd5", own.clone()));
        }
        if let Some(said) = &self.claimed_crc64
            && *said != crc64
        {
            return Err(Fault::from(Code::Crc64Mismatch)
                .with("UserSpecifiedCrc", said.clone())
                .with("ServerCalculatedCrc", crc64));
        }
        Ok(Sums { md5, crc64 })
    }
}

/// Checks that a text is an MD5 in Base64.
fn check_md5(text: &str) -> Result<()> {
    match STANDARD.decode(text) {
        Ok(bytes) if bytes.len() == 16 => Ok(()),
        _ => Err(Code::InvalidMd5.into()),
    }
}

/// Returns the MD5 of `bytes` in Base64.
#[must_use]
pub(crate) fn md5_base64(bytes: &[u8]) -> String {
    STANDARD.encode(Md5::digest(bytes))
}

/// Returns `bytes` in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &'static str, value: &str, expect: std::result::Result<(), Code>) {
        let mut head = crate::tests::head();
        head.headers.insert(header, value.parse().unwrap());
        let got = Check::parse(&head, false).and_then(|mut check| {
            check.add(b"1234");
            check.add(b"56789");
            check.end()
        });
        assert_eq!(got.map(drop).map_err(|fault| fault.code), expect, "{header}: {value}");
    }

    #[test]
    fn the_checksum_of_the_blob_takes_precedence() {
        let (right, wrong) = (md5_base64(b"1"), md5_base64(b"2"));
        let check = |of_body: &str, of_blob: &str| {
            let mut head = crate::tests::head();
            head.headers.insert("content-md5", of_body.parse().unwrap());
            head.headers.insert("x-ms-blob-content-md5", of_blob.parse().unwrap());
            let mut check = Check::of_blob(&head)?;
            check.add(b"1");
            check.end().map(drop)
        };
        assert_eq!(check(&wrong, &right), Ok(()));
        assert_eq!(check(&right, &wrong).map_err(|fault| fault.code), Err(Code::Md5Mismatch));
        assert_eq!(check(&right, "AAAA").map_err(|fault| fault.code), Err(Code::InvalidMd5));
    }

    /// Expected values are from the catalogue of CRC algorithms and RFC 1321.
    #[test]
    fn checksums_are_verified() {
        let crc = STANDARD.encode(0xAE8B_1486_0A79_9888_u64.to_le_bytes());
        check("x-ms-content-crc64", &crc, Ok(()));
        check("x-ms-content-crc64", &STANDARD.encode([0; 8]), Err(Code::Crc64Mismatch));
        check("x-ms-content-crc64", "xyz", Err(Code::InvalidHeaderValue));
        // 25f9e794323b453885f5181f1b624d0b
        check("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==", Ok(()));
        check("content-md5", &md5_base64(b"other"), Err(Code::Md5Mismatch));
        check("content-md5", "JfnnlDI7RTiF9Q==", Err(Code::InvalidMd5));
        check("x-ms-structured-body", "XSM/1.0", Err(Code::NotImplemented));
    }
}
