//! Accounts and their keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// The account of `UseDevelopmentStorage=true`.
pub(crate) const WELL_KNOWN: &str = "devstoreaccount1";

/// The published key of that account. It is known to every client, so it protects nothing. Source:
/// "Use the Azurite emulator for local Azure Storage development", Microsoft.
const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A storage account with its keys.
#[derive(Clone)]
pub struct Account {
    /// The account's name, which is part of its URLs.
    pub name: String,
    keys: Vec<Vec<u8>>,
    /// True for the account with the published key if it is restricted to this machine.
    loopback_only: bool,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys are left out.
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Account {
    /// Builds the development account that every SDK knows. `from_anywhere` permits other machines.
    #[must_use]
    pub fn well_known(from_anywhere: bool) -> Self {
        let key = STANDARD.decode(WELL_KNOWN_KEY).unwrap_or_default();
        Self { name: WELL_KNOWN.to_owned(), keys: vec![key], loopback_only: !from_anywhere }
    }

    /// Builds an account with a key in Base64.
    ///
    /// # Errors
    ///
    /// A message that describes the invalid name or key.
    pub fn new(name: &str, key: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !(3..=24).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(format!(
                "account name {name:?} is invalid: use 3 to 24 lower-case letters and digits"
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

    /// Returns whether a client at `from` may use this account.
    #[must_use]
    pub(crate) fn is_for(&self, from: IpAddr) -> bool {
        !self.loopback_only || from.to_canonical().is_loopback()
    }

    /// Returns whether `signature` is the signature of `text` by one of the keys, in constant time.
    pub(super) fn signed(&self, text: &str, signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        self.keys.iter().any(|key| {
            let mac = Hmac::<Sha256>::new_from_slice(key);
            mac.is_ok_and(|mac| mac.chain_update(text).verify_slice(&signature).is_ok())
        })
    }

    /// Signs `text` with the first key.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let key = self.keys.first().map_or(&[][..], |key| key);
        let mac = Hmac::<Sha256>::new_from_slice(key);
        mac.map(|mac| STANDARD.encode(mac.chain_update(text).finalize().into_bytes()))
            .unwrap_or_default()
    }
}

/// The accounts of a server, by name.
#[derive(Debug, Clone, Default)]
pub struct Accounts(BTreeMap<String, Account>);

impl Accounts {
    /// Adds an account. If the name exists, its keys are added to the existing account, and it is for this
    /// machine alone if either is.
    pub fn add(&mut self, account: Account) {
        match self.0.get_mut(&account.name) {
            Some(own) => {
                own.keys.extend(account.keys);
                own.loopback_only |= account.loopback_only;
            }
            None => drop(self.0.insert(account.name.clone(), account)),
        }
    }

    /// Returns the account with that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// Iterates over the accounts in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_may_have_several_keys() {
        let key = |byte: u8| STANDARD.encode([byte; 64]);
        let [first, second, other] = [1, 2, 3].map(|byte| Account::new("acc", &key(byte)).unwrap());
        let mut accounts = Accounts::default();
        accounts.add(first.clone());
        accounts.add(second.clone());
        let has_signed =
            |by: &Account| accounts.get("acc").unwrap().signed("text", &by.sign("text"));
        assert_eq!([&first, &second, &other].map(has_signed), [true, true, false]);
    }

    #[test]
    fn accounts_have_the_order_of_their_names_and_keep_their_restriction() {
        let key = STANDARD.encode([1; 16]);
        let mut accounts = Accounts::default();
        for name in ["own", WELL_KNOWN, "another"] {
            accounts.add(Account::new(name, &key).unwrap());
        }
        let names: Vec<&str> = accounts.iter().map(|account| &*account.name).collect();
        assert_eq!(names, ["another", WELL_KNOWN, "own"]);
        let other = IpAddr::from([10, 0, 0, 1]);
        let is_for_others = |accounts: &Accounts| accounts.get(WELL_KNOWN).unwrap().is_for(other);
        assert!(is_for_others(&accounts));
        accounts.add(Account::well_known(false));
        assert!(!is_for_others(&accounts));
        accounts.add(Account::new(WELL_KNOWN, &key).unwrap());
        assert!(!is_for_others(&accounts));
    }

    /// `Mac::verify_slice` compares in constant time; nothing else is looked at.
    #[test]
    fn signatures_are_compared_as_a_whole() {
        let account = Account::new("own", "c2l4dGVlbiBieXRlcyBvciBtb3Jl").expect("an account");
        let right = account.sign("text");
        assert!(account.signed("text", &right) && !account.signed("texT", &right));
        let bytes = STANDARD.decode(&right).expect("Base64");
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!account.signed("text", &STANDARD.encode(wrong)), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(!account.signed("text", &STANDARD.encode(&bytes[..len])), "{len} bytes");
        }
        assert!(!account.signed("text", "") && !account.signed("text", "no Base64"));
        let longer = [&bytes[..], &[0]].concat();
        assert!(!account.signed("text", &STANDARD.encode(longer)));
    }
}
