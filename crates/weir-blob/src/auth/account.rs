//! Accounts and their keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// The account of `UseDevelopmentStorage=true`.
pub const WELL_KNOWN: &str = "devstoreaccount1";

/// Its key, which is published: every client of the service knows it, so it protects nothing.
/// Source: "Use the Azurite emulator for local Azure Storage development", Microsoft.
const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// An account.
#[derive(Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    keys: Vec<Vec<u8>>,
    /// Its key is the published one, and it is not to be had from other machines.
    loopback_only: bool,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the keys.
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Account {
    /// The account that every SDK knows. `from_anywhere` gives it to other machines too.
    #[must_use]
    pub fn well_known(from_anywhere: bool) -> Self {
        let key = STANDARD.decode(WELL_KNOWN_KEY).unwrap_or_default();
        Self { name: WELL_KNOWN.to_owned(), keys: vec![key], loopback_only: !from_anywhere }
    }

    /// An account with a key in Base64.
    ///
    /// # Errors
    ///
    /// What is wrong with the name or the key.
    pub fn new(name: &str, key: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !(3..=24).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(format!(
                "{name:?} is not an account: 3 to 24 lower-case letters and digits"
            ));
        }
        match STANDARD.decode(key.trim()) {
            Ok(key) if key.len() >= 16 => {
                Ok(Self { name: name.to_owned(), keys: vec![key], loopback_only: false })
            }
            Ok(key) => {
                Err(format!("the key of account {name:?} has {} bytes, fewer than 16", key.len()))
            }
            Err(_) => Err(format!("the key of account {name:?} is not Base64")),
        }
    }

    /// Whether whoever is there may use it.
    #[must_use]
    pub fn is_for(&self, from: IpAddr) -> bool {
        !self.loopback_only || from.to_canonical().is_loopback()
    }

    /// Whether `signature` is that of `text` by one of its keys. Takes the same time
    /// wherever they differ.
    pub(super) fn signed(&self, text: &str, signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        self.keys.iter().any(|key| {
            let mac = Hmac::<Sha256>::new_from_slice(key);
            mac.is_ok_and(|mac| mac.chain_update(text).verify_slice(&signature).is_ok())
        })
    }

    /// The signature of `text`.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let key = self.keys.first().map_or(&[][..], |key| key);
        let mac = Hmac::<Sha256>::new_from_slice(key);
        mac.map(|mac| STANDARD.encode(mac.chain_update(text).finalize().into_bytes()))
            .unwrap_or_default()
    }
}

/// All accounts.
#[derive(Debug, Clone, Default)]
pub struct Accounts(BTreeMap<String, Account>);

impl Accounts {
    /// Takes an account in; one of that name gets its keys as well.
    pub fn add(&mut self, account: Account) {
        match self.0.get_mut(&account.name) {
            Some(own) => {
                own.keys.extend(account.keys);
                own.loopback_only &= account.loopback_only;
            }
            None => drop(self.0.insert(account.name.clone(), account)),
        }
    }

    /// The account of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.values()
    }
}
