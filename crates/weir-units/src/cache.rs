//! The mode of a host cache.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// The host cache mode of a volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CacheMode {
    /// Reads and writes go to the disk.
    #[default]
    None,
    /// The cache serves reads; writes go to the cache and the disk.
    ReadOnly,
    /// The cache serves reads and completes writes, which reach the disk later.
    ReadWrite,
}

impl CacheMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::None, Self::ReadOnly, Self::ReadWrite];

    /// Returns the name in layouts, editions and observations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }

    /// Returns a description for help and schemas.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::None => "Reads and writes go to the disk",
            Self::ReadOnly => "The cache serves reads; writes go to the cache and the disk",
            Self::ReadWrite => {
                "The cache serves reads and completes writes, which reach the disk later"
            }
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for CacheMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a cache mode; use none, read-only or read-write");
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_parse_to_their_mode() {
        for mode in CacheMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "readonly".parse::<CacheMode>().unwrap_err();
        assert_eq!(error, "\"readonly\" is not a cache mode; use none, read-only or read-write");
    }
}
