//! The full backup that a differential builds on: found and checked before the differential is written.

use crate::error::BackupError;
use crate::format::{BackupId, Encryption, Kind};
use crate::key::Keys;
use crate::library::{Entry, Library, State};

/// A full backup that a differential can build on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its id.
    pub id: BackupId,
    /// Its name.
    pub name: String,
    /// The instant of its contents, or else its start, as Unix time in milliseconds.
    pub taken_unix_ms: u64,
}

/// A differential that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The full backup from which the server counts changes.
    pub base: BackupId,
    /// The names of the sources.
    pub sources: &'a [String],
    /// The keys with which it is encrypted, if it is.
    pub keys: Option<&'a Keys>,
}

/// Finds the full backup of a differential, and checks that both together can be restored.
///
/// # Errors
/// [`BackupError::Refused`] if it is not in the places, not whole, of other sources, or not encrypted
/// with the same key.
pub fn find(library: &Library, wanted: &Wanted<'_>) -> Result<Base, BackupError> {
    let id = wanted.base;
    let places = library.place_names();
    let Some(entry) = library.by_id(id) else {
        return Err(BackupError::Refused(format!(
            "the full backup {id}, from which the changes are counted, is not in {places}; name the \
             place that has it with --from, or take a full backup"
        )));
    };
    let Entry { identity, state, manifest, .. } = entry;
    let refused = |why: &str| {
        let name = &identity.name;
        let text = format!("a differential cannot build on the full backup {name} ({id}): {why}");
        Err(BackupError::Refused(text))
    };
    if identity.kind != Kind::Full {
        return refused(&format!("it is a {} backup; take a full backup", identity.kind));
    }
    let Some(manifest) = manifest.as_ref().filter(|_| *state == State::Complete) else {
        return refused(&format!(
            "it is not whole in {places}; name all places of its stripes with --from, or take a full \
             backup"
        ));
    };
    let has = |name: &String| manifest.sources.iter().any(|source| source.name == *name);
    if let Some(name) = wanted.sources.iter().find(|name| !has(name)) {
        return refused(&format!("it does not have {name}; take a full backup of it too"));
    }
    match check_key(id, identity.encryption.as_ref(), wanted.keys) {
        Ok(()) => {}
        Err(BackupError::Refused(why)) => return refused(&why),
        Err(error) => return Err(error),
    }
    Ok(Base {
        id,
        name: identity.name.clone(),
        taken_unix_ms: manifest.frozen_unix_ms.unwrap_or(identity.created_unix_ms),
    })
}

/// Checks that one key opens both: a restore takes one.
fn check_key(
    id: BackupId,
    base: Option<&Encryption>,
    keys: Option<&Keys>,
) -> Result<(), BackupError> {
    let refused = |why: &str| Err(BackupError::Refused(why.to_owned()));
    match (base, keys) {
        (None, None) => Ok(()),
        (Some(_), None) => refused("it is encrypted; give --encrypt and its key"),
        (None, Some(_)) => {
            refused("it is not encrypted; leave out --encrypt, or take a full backup with it")
        }
        (Some(encryption), Some(keys)) => match keys.key(id, encryption) {
            Ok(_) => Ok(()),
            Err(BackupError::WrongKey { .. }) => {
                refused("it is encrypted with another key; give that one, or take a full backup")
            }
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests;
