//! The format of a write log on disk, which is that of Linux' `dm-log-writes`, version 1.
//!
//! All numbers are little-endian. The file is a sequence of sectors:
//!
//! ```text
//! super block   magic, version, number of entries (u64 each), bytes of a sector (u32), zeros
//! entry         first sector, number of sectors, flags, length of the text (u64 each), text, zeros
//! data          the sectors of a write; nothing for a discard, a mark or a flush
//! entry ..
//! ```

use crate::{Result, StoreError};
use std::path::Path;

/// The bytes of a sector in logs that Weir writes.
pub const SECTOR: u64 = 512;
/// [`SECTOR`] as a length.
pub(super) const SECTOR_LEN: usize = 512;
/// The bytes of a sector in logs that are read; Weir writes the first of them.
pub(super) const SECTORS: [u32; 4] = [512, 1024, 2048, 4096];

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
/// The bytes of an entry before its text.
pub(super) const HEAD: usize = 32;

/// The kind of an entry, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u64);

impl Flags {
    /// Everything before it is durable.
    pub const FLUSH: Self = Self(1);
    /// The write itself is durable.
    pub const FUA: Self = Self(2);
    /// The sectors have no content any more.
    pub const DISCARD: Self = Self(4);
    /// A text, not a change.
    pub const MARK: Self = Self(8);
    /// A write of a file system's metadata. Weir does not know which these are.
    pub const METADATA: Self = Self(16);

    /// No flag: a write.
    pub const NONE: Self = Self(0);

    /// Returns both.
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether it has a flag.
    #[must_use]
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// Returns whether a loss of power may not take away this entry: it is a flush or FUA.
    #[must_use]
    pub const fn is_point(self) -> bool {
        self.has(Self::FLUSH) || self.has(Self::FUA)
    }
}

/// The super block of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Super {
    pub(super) entries: u64,
    pub(super) sector: u32,
}

impl Super {
    pub(super) fn encode(self) -> [u8; SECTOR_LEN] {
        let mut bytes = [0; SECTOR_LEN];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, VERSION);
        put(&mut bytes, 16, self.entries);
        put(&mut bytes, 24, u64::from(self.sector));
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEAD], path: &Path) -> Result<Self> {
        if get(bytes, 0) != MAGIC {
            return Err(damaged(path, "is no write log: it does not begin with the magic number"));
        }
        if get(bytes, 8) != VERSION {
            let what = format!("has version {}, and only version 1 is known", get(bytes, 8));
            return Err(damaged(path, &what));
        }
        // The upper half is padding.
        let sector = u32::try_from(get(bytes, 24) & u64::from(u32::MAX)).unwrap_or_default();
        if !SECTORS.contains(&sector) {
            let what = format!("has sectors of {sector} bytes, and only {SECTORS:?} are known");
            return Err(damaged(path, &what));
        }
        Ok(Self { entries: get(bytes, 16), sector })
    }
}

/// An entry without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) sector: u64,
    pub(super) sectors: u64,
    pub(super) flags: Flags,
    pub(super) text: u64,
}

impl Head {
    /// Returns the entry's first sector, with the part of a text that has room.
    pub(super) fn encode(sector: u64, sectors: u64, flags: Flags, text: &[u8]) -> [u8; SECTOR_LEN] {
        // A zero ends the text.
        let text = &text[..text.len().min(SECTOR_LEN - HEAD - 1)];
        let mut bytes = [0; SECTOR_LEN];
        for (at, number) in (0..).step_by(8).zip([sector, sectors, flags.0, text.len() as u64]) {
            put(&mut bytes, at, number);
        }
        bytes[HEAD..HEAD + text.len()].copy_from_slice(text);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEAD]) -> Self {
        Self {
            sector: get(bytes, 0),
            sectors: get(bytes, 8),
            flags: Flags(get(bytes, 16)),
            text: get(bytes, 24),
        }
    }

    /// Returns whether the content of its sectors follows it.
    pub(super) fn has_data(&self) -> bool {
        !self.flags.has(Flags::DISCARD) && !self.flags.has(Flags::MARK) && self.sectors > 0
    }
}

pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    let what = format!("{} {what}", path.display());
    StoreError::Damaged {
        what,
        hint: "give the log of weir serve --write-log, or of dm-log-writes",
    }
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn get(bytes: &[u8; HEAD], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}
