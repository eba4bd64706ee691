//! Keys: from a secret in a file or in the environment to the subkeys of one backup.
//!
//! A secret becomes a master key through Argon2id with the backup's own salt, so that a
//! passphrase cannot be tried quickly and two backups never share a key. BLAKE3 derives a
//! subkey from it for each purpose: encryption, hashes of contents, the footer's MAC, and the
//! check that names a wrong key.

use crate::error::BackupError;
use crate::format::{BackupId, Encryption};
use argon2::{Algorithm, Argon2, Params, Version};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of Argon2id in KiB, its passes and its lanes: part of the format's version.
const ARGON2: (u32, u32, u32) = (64 << 10, 3, 1);
/// The shortest secret that is accepted, in bytes.
pub const SHORTEST_SECRET: usize = 16;
/// The longest secret that is read from a file, in bytes.
const LONGEST_SECRET: usize = 64 << 10;

/// A secret as the user has it: a random key in hexadecimal, or a long passphrase.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Takes a secret from text. White space around it does not count.
    ///
    /// # Errors
    /// [`BackupError::ShortKey`].
    pub fn new(text: &[u8]) -> Result<Self, BackupError> {
        let text = text.trim_ascii();
        if text.len() < SHORTEST_SECRET {
            return Err(BackupError::ShortKey { length: text.len(), least: SHORTEST_SECRET });
        }
        Ok(Self(text.to_vec()))
    }

    /// Reads a secret from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no key.
    pub fn read(path: &Path) -> Result<Self, BackupError> {
        let text = std::fs::read(path).map_err(|source| {
            BackupError::Refused(format!("cannot read the key file {}: {source}", path.display()))
        })?;
        if text.len() > LONGEST_SECRET {
            return Err(BackupError::Refused(format!(
                "{} is no key file: it has {} bytes, a key has {LONGEST_SECRET} at most",
                path.display(),
                text.len()
            )));
        }
        Self::new(&text)
    }
}

/// The subkeys of one backup.
pub struct Key {
    encryption: [u8; 32],
    contents: [u8; 32],
    footer: [u8; 32],
    check: [u8; 16],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Derives the subkeys for the backup that has this salt. Takes a tenth of a second.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn derive(secret: &Secret, salt: &[u8; 16]) -> Result<Self, BackupError> {
        let failed = |error: argon2::Error| BackupError::Codec {
            action: "deriving a key",
            reason: error.to_string(),
        };
        let (memory, passes, lanes) = ARGON2;
        let params = Params::new(memory, passes, lanes, Some(32)).map_err(failed)?;
        let mut master = [0; 32];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(&secret.0, salt, &mut master).map_err(failed)?;
        Ok(Self::from_master(&master))
    }

    /// Derives the subkeys from a master key.
    #[must_use]
    pub fn from_master(master: &[u8; 32]) -> Self {
        let subkey = |purpose| blake3::derive_key(purpose, master);
        let mut check = [0; 16];
        check.copy_from_slice(&subkey("weir backup 1 check")[..16]);
        Self {
            encryption: subkey("weir backup 1 encryption"),
            contents: subkey("weir backup 1 contents"),
            footer: subkey("weir backup 1 footer"),
            check,
        }
    }

    pub(crate) const fn encryption(&self) -> &[u8; 32] {
        &self.encryption
    }

    /// Returns the keyed hash of contents before compression.
    pub(crate) fn hash(&self, raw: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.contents, raw).as_bytes()
    }

    /// Returns the MAC of a footer's fields.
    pub(crate) fn mac(&self, footer: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.footer, footer).as_bytes()
    }

    /// Returns the value in a stripe's header by which a wrong key is recognised.
    #[must_use]
    pub const fn check(&self) -> &[u8; 16] {
        &self.check
    }
}

/// A secret with the keys that were derived from it, one for each salt.
#[derive(Debug)]
pub struct Keys {
    secret: Secret,
    derived: Mutex<BTreeMap<[u8; 16], Arc<Key>>>,
}

impl Keys {
    /// Makes an empty set of keys.
    #[must_use]
    pub const fn new(secret: Secret) -> Self {
        Self { secret, derived: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the key of a backup.
    ///
    /// # Errors
    /// [`BackupError::WrongKey`], or when it cannot be derived.
    pub fn key(&self, id: BackupId, encryption: &Encryption) -> Result<Arc<Key>, BackupError> {
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let key = match derived.get(&encryption.salt) {
            Some(key) => Arc::clone(key),
            None => {
                let key = Arc::new(Key::derive(&self.secret, &encryption.salt)?);
                derived.insert(encryption.salt, Arc::clone(&key));
                key
            }
        };
        if *key.check() == encryption.check {
            Ok(key)
        } else {
            Err(BackupError::WrongKey { backup: id })
        }
    }

    /// Makes the encryption of a new backup, and its key.
    ///
    /// # Errors
    /// When the system has no random bytes, or the key cannot be derived.
    pub fn fresh(&self) -> Result<(Encryption, Arc<Key>), BackupError> {
        let (mut salt, mut nonce_prefix) = ([0; 16], [0; 15]);
        crate::random::fill(&mut salt)?;
        crate::random::fill(&mut nonce_prefix)?;
        let key = Arc::new(Key::derive(&self.secret, &salt)?);
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        derived.insert(salt, Arc::clone(&key));
        Ok((Encryption { salt, nonce_prefix, check: *key.check() }, key))
    }
}
