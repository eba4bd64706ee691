//! The identity of a backup: a UUID of version 7, so that ids sort by time.

use crate::random::{self, RandomError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The identity of a backup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackupId([u8; 16]);

impl BackupId {
    /// Makes an id for a backup that begins at this Unix time in milliseconds.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new(unix_ms: u64) -> Result<Self, RandomError> {
        let mut bytes = [0; 16];
        random::fill(&mut bytes[6..])?;
        bytes[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Self(bytes))
    }

    /// Takes the bytes of an id.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackupId({self})")
    }
}

/// Text that is no id of a backup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a backup: it has 32 hexadecimal digits")]
pub struct ParseIdError(String);

impl FromStr for BackupId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let wrong = || ParseIdError(text.to_owned());
        let digits: Vec<u32> = text
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_digit(16))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        if digits.len() != 32 {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::try_from(pair[0] << 4 | pair[1]).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for BackupId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BackupId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
