//! Checksums of bodies.

use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use std::fmt::Write as _;

/// What is worked out of a body while it comes, and what the client says of it.
pub struct Check {
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
    said_md5: Option<String>,
    said_crc64: Option<String>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").field("said_md5", &self.said_md5).finish_non_exhaustive()
    }
}

/// What a body came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Its MD5 in Base64, if it was worked out.
    pub md5: Option<String>,
    /// Its CRC-64/NVME in Base64, the lowest byte first.
    pub crc64: String,
}

impl Check {
    /// Reads what the client says. `keeps` is whether the MD5 is kept with the blob, so
    /// that it is worked out in any case.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidMd5`], [`Code::InvalidHeaderValue`],
    /// [`Code::BothCrc64AndMd5HeaderPresent`].
    pub fn parse(head: &Head, keeps: bool) -> Result<Self> {
        let said_md5 = head.header("content-md5").map(str::to_owned);
        let said_crc64 = head.header("x-ms-content-crc64").map(str::to_owned);
        if let Some(text) = &said_md5
            && STANDARD.decode(text).map_or(0, |bytes| bytes.len()) != 16
        {
            return Err(Code::InvalidMd5.into());
        }
        if let Some(text) = &said_crc64
            && STANDARD.decode(text).map_or(0, |bytes| bytes.len()) != 8
        {
            return Err(Fault::header("x-ms-content-crc64", text));
        }
        if said_md5.is_some() && said_crc64.is_some() {
            return Err(Code::BothCrc64AndMd5HeaderPresent.into());
        }
        if head.header("x-ms-structured-body").is_some() {
            return Err(Fault::not_implemented("a structured body"));
        }
        let md5 = (keeps || said_md5.is_some()).then(Md5::new);
        Ok(Self { md5, crc64: crc64fast_nvme::Digest::new(), said_md5, said_crc64 })
    }

    /// Reads what the client says of a source that is copied from.
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse).
    pub fn of_source(head: &Head) -> Result<Self> {
        let said = |name: &str| head.header(name).map(str::to_owned);
        let said_md5 = said("x-ms-source-content-md5");
        let md5 = said_md5.as_ref().map(|_| Md5::new());
        let said_crc64 = said("x-ms-source-content-crc64");
        Ok(Self { md5, said_md5, said_crc64, ..Self::parse(head, false)? })
    }

    /// More of the body came.
    pub fn add(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if self.md5.is_none() || self.said_crc64.is_some() {
            self.crc64.write(bytes);
        }
    }

    /// All of it came.
    ///
    /// # Errors
    ///
    /// [`Code::Md5Mismatch`], [`Code::Crc64Mismatch`].
    pub fn end(self) -> Result<Sums> {
        let md5 = self.md5.map(|md5| STANDARD.encode(md5.finalize()));
        let crc64 = STANDARD.encode(self.crc64.sum64().to_le_bytes());
        if let (Some(said), Some(own)) = (&self.said_md5, &md5)
            && said != own
        {
            return Err(Fault::from(Code::Md5Mismatch)
                .with("UserSpecifiedMd5", said.clone())
                .with("ServerCalculatedMd5", own.clone()));
        }
        if let Some(said) = &self.said_crc64
            && *said != crc64
        {
            return Err(Fault::from(Code::Crc64Mismatch)
                .with("UserSpecifiedCrc", said.clone())
                .with("ServerCalculatedCrc", crc64));
        }
        Ok(Sums { md5, crc64 })
    }
}

/// The MD5 of some bytes in Base64.
#[must_use]
pub fn md5_of(bytes: &[u8]) -> String {
    STANDARD.encode(Md5::digest(bytes))
}

/// Bytes in hexadecimal.
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

    /// The check values of the catalogue of CRC algorithms, and of RFC 1321.
    #[test]
    fn bodies_are_checked() {
        let crc = STANDARD.encode(0xAE8B_1486_0A79_9888_u64.to_le_bytes());
        check("x-ms-content-crc64", &crc, Ok(()));
        check("x-ms-content-crc64", &STANDARD.encode([0; 8]), Err(Code::Crc64Mismatch));
        check("x-ms-content-crc64", "xyz", Err(Code::InvalidHeaderValue));
        // 25f9e794323b453885f5181f1b624d0b
        check("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==", Ok(()));
        check("content-md5", &md5_of(b"other"), Err(Code::Md5Mismatch));
        check("content-md5", "JfnnlDI7RTiF9Q==", Err(Code::InvalidMd5));
        check("x-ms-structured-body", "XSM/1.0", Err(Code::NotImplemented));
    }
}
