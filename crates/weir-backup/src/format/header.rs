//! The first 512 bytes of each stripe: which backup, which stripe, how to read it.

use super::wire::{bytes, put, u16_at, u64_at};
use super::{BackupId, PAGE, VERSION};
use crate::error::BackupError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most stripes that a backup can have.
pub const MAX_STRIPES: u8 = 64;
/// The longest name of a backup, in bytes of UTF-8.
pub const MAX_NAME: usize = 128;
/// The length of a stripe's header.
pub(crate) const HEADER: usize = 512;

pub(crate) const MAGIC: &[u8; 8] = b"WEIRBAK1";
const ENCRYPTED: u16 = 1;
const NAME_AT: usize = 128;
const CHECKSUM_AT: usize = HEADER - 32;

/// The kind of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All that the sources held. Later differentials build on it.
    Full,
    /// The ranges that changed since a full backup.
    Differential,
    /// All that the sources held, outside of the sequence of fulls and differentials.
    CopyOnly,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Differential => "differential",
            Self::CopyOnly => "copy-only",
        })
    }
}

/// The public values of an encrypted backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encryption {
    /// The salt from which its key is derived.
    #[serde(with = "super::wire::hex")]
    pub salt: [u8; 16],
    /// The first bytes of each nonce; the stripe and the sequence follow.
    #[serde(with = "super::wire::hex")]
    pub nonce_prefix: [u8; 15],
    /// The value by which a wrong key is recognised.
    #[serde(with = "super::wire::hex")]
    pub check: [u8; 16],
}

/// The facts about a backup that are known before its first byte is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The backup's id.
    pub id: BackupId,
    /// Its name. Backups of the same things share it; retention goes by it.
    pub name: String,
    /// Full, differential or copy-only.
    pub kind: Kind,
    /// The full backup that a differential builds on.
    pub base: Option<BackupId>,
    /// The number of stripes, 1 to [`MAX_STRIPES`].
    pub stripes: u8,
    /// When it began, as Unix time in milliseconds.
    pub created_unix_ms: u64,
    /// How it is encrypted, if it is.
    pub encryption: Option<Encryption>,
}

/// A stripe's header, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeHeader {
    /// The backup.
    pub identity: Identity,
    /// The stripe, from 0.
    pub stripe: u8,
    /// The checksum, by which the footer names this header.
    pub checksum: [u8; 32],
}

impl Identity {
    /// Checks that a header can hold this identity.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for a name that is empty, too long, or not fit for a file name, a
    /// wrong number of stripes, or a base that does not go with the kind.
    pub fn check(&self) -> Result<(), BackupError> {
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(BackupError::Refused(format!(
                "the name {name:?} of the backup has {} bytes; 1 to {MAX_NAME} are allowed",
                name.len()
            )));
        }
        if name.contains(['/', '\\']) || name.starts_with('.') || name.contains(char::is_control) {
            return Err(BackupError::Refused(format!(
                "backup name {name:?} is not a file name: leave out /, \\, control \
                 characters, and a dot at the start"
            )));
        }
        if !(1..=MAX_STRIPES).contains(&self.stripes) {
            return Err(BackupError::Refused(format!(
                "{} stripes: a backup has 1 to {MAX_STRIPES}",
                self.stripes
            )));
        }
        if self.base.is_some() != (self.kind == Kind::Differential) {
            return Err(BackupError::Refused(format!(
                "a {} backup {} a base",
                self.kind,
                if self.base.is_some() { "cannot have" } else { "must have" }
            )));
        }
        Ok(())
    }

    /// Returns the header of a stripe. The identity must have passed [`Identity::check`].
    #[must_use]
    pub fn header(&self, stripe: u8) -> [u8; HEADER] {
        let mut block = [0; HEADER];
        put(&mut block, 0, MAGIC);
        put(&mut block, 8, &VERSION.to_le_bytes());
        let flags = if self.encryption.is_some() { ENCRYPTED } else { 0 };
        put(&mut block, 10, &flags.to_le_bytes());
        block[12] = stripe;
        block[13] = self.stripes;
        block[14] = match self.kind {
            Kind::Full => 0,
            Kind::Differential => 1,
            Kind::CopyOnly => 2,
        };
        let name = &self.name.as_bytes()[..self.name.len().min(MAX_NAME)];
        block[15] = u8::try_from(name.len()).unwrap_or(0);
        put(&mut block, 16, self.id.as_bytes());
        if let Some(base) = self.base {
            put(&mut block, 32, base.as_bytes());
        }
        put(&mut block, 48, &self.created_unix_ms.to_le_bytes());
        if let Some(encryption) = &self.encryption {
            put(&mut block, 56, &encryption.salt);
            put(&mut block, 72, &encryption.nonce_prefix);
            put(&mut block, 87, &encryption.check);
        }
        put(&mut block, NAME_AT, name);
        let checksum = blake3::hash(&block[..CHECKSUM_AT]);
        put(&mut block, CHECKSUM_AT, checksum.as_bytes());
        block
    }

    /// Returns the name of a stripe's file, for example `sales-01of04.weirbak`.
    #[must_use]
    pub fn file_name(&self, stripe: u8) -> String {
        let number = u16::from(stripe) + 1;
        let id = self.id.to_string();
        format!("{}-{}-{number:02}of{:02}.weirbak", self.name, &id[..13], self.stripes)
    }
}

impl StripeHeader {
    /// Reads a header. `name` is the file, export or blob, for messages.
    ///
    /// # Errors
    /// [`BackupError::NotAStripe`], [`BackupError::Version`] or [`BackupError::Header`].
    pub fn parse(name: &str, block: &[u8; HEADER]) -> Result<Self, BackupError> {
        let damaged = || BackupError::Header { name: name.to_owned() };
        let sum = blake3::hash(&block[..CHECKSUM_AT]);
        let is_sound = block[CHECKSUM_AT..] == *sum.as_bytes();
        if &block[..8] != MAGIC {
            // Sound otherwise, or as the format has it behind: the magic itself is damaged.
            let stripes = block[13];
            let similar = block[..8].iter().zip(MAGIC).filter(|(own, magic)| own == magic).count();
            if similar >= 6 && block[12] < stripes && stripes <= MAX_STRIPES {
                return Err(damaged());
            }
            return Err(BackupError::NotAStripe { name: name.to_owned() });
        }
        let version = u16_at(block, 8);
        if version != VERSION && is_sound {
            let known = VERSION;
            return Err(BackupError::Version { name: name.to_owned(), version, known });
        }
        if !is_sound {
            return Err(damaged());
        }
        let mut checksum = [0; 32];
        checksum.copy_from_slice(sum.as_bytes());
        let identity = Self::identity(block).ok_or_else(damaged)?;
        if block[12] >= identity.stripes || identity.check().is_err() {
            return Err(damaged());
        }
        Ok(Self { identity, stripe: block[12], checksum })
    }

    fn identity(block: &[u8; HEADER]) -> Option<Identity> {
        let length = usize::from(block[15]);
        let name = block.get(NAME_AT..NAME_AT + length).filter(|_| length <= MAX_NAME)?;
        let kind = match block[14] {
            0 => Kind::Full,
            1 => Kind::Differential,
            2 => Kind::CopyOnly,
            _ => return None,
        };
        let base: [u8; 16] = bytes(block, 32);
        let encryption = match u16_at(block, 10) {
            0 => None,
            ENCRYPTED => Some(Encryption {
                salt: bytes(block, 56),
                nonce_prefix: bytes(block, 72),
                check: bytes(block, 87),
            }),
            _ => return None,
        };
        Some(Identity {
            id: BackupId::from_bytes(bytes(block, 16)),
            name: String::from_utf8(name.to_vec()).ok()?,
            kind,
            base: (base != [0; 16]).then(|| BackupId::from_bytes(base)),
            stripes: block[13],
            created_unix_ms: u64_at(block, 48),
            encryption,
        })
    }

    /// Returns the position of the first frame.
    #[must_use]
    pub const fn first_frame() -> u64 {
        PAGE
    }
}
