//! The backups in one or more places, put together from the stripes that are there.

use crate::assemble::StripeInput;
use crate::error::BackupError;
use crate::format::{BackupId, Identity, Manifest};
use crate::place::{FoundStripe, Place};
use crate::probe::read_manifest;
use crate::target::spec::shown;
use std::collections::{BTreeMap, BTreeSet};
use weir_report::backups::short_id;

/// The fewest characters of an id that select a backup.
const SHORTEST_PREFIX: usize = 4;
/// The most backups that a message names.
const MAX_NAMED: usize = 8;

/// Whether a backup is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Each stripe is there, with its footer.
    Complete,
    /// Each stripe that is there is complete, and these are missing, from 0.
    Missing(Vec<u8>),
    /// A stripe was not finished: the backup was interrupted, or is being written.
    Incomplete,
    /// A stripe was published complete, and has no valid footer any more.
    Damaged,
}

/// The stripes of a backup that are not there as they should be, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    /// No place has anything of them.
    pub missing: Vec<u8>,
    /// They have a temporary name, or were not finished.
    pub unfinished: Vec<u8>,
    /// They were published complete, and have no valid footer any more.
    pub truncated: Vec<u8>,
}

/// A backup in the library.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The backup's identity.
    pub identity: Identity,
    /// Its description, if it is complete and a sound one was found.
    pub manifest: Option<Manifest>,
    /// Whether it is whole.
    pub state: State,
    /// The stripes that it lacks.
    pub gaps: Gaps,
    /// When it was written to last, as Unix time in milliseconds; `None` if a stripe of it is
    /// incomplete and its place does not tell when it was written.
    pub modified_unix_ms: Option<u64>,
    /// The bytes of its stripes.
    pub stored_bytes: u64,
    /// Its stripes, as indices into [`Library::stripes`].
    members: Vec<usize>,
}

impl Entry {
    /// Returns whether each stripe is there, with its footer.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }
}

/// The backups in some places.
pub struct Library {
    places: Vec<Box<dyn Place>>,
    /// Each stripe, with the index of its place.
    stripes: Vec<(usize, FoundStripe)>,
    entries: Vec<Entry>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Library {
    /// Looks at whatever is in the places.
    ///
    /// # Errors
    /// When a place cannot be read.
    pub fn open(places: Vec<Box<dyn Place>>) -> Result<Self, BackupError> {
        let mut library = Self { places, stripes: Vec::new(), entries: Vec::new() };
        library.refresh()?;
        Ok(library)
    }

    /// Looks at the places again.
    ///
    /// # Errors
    /// When a place cannot be read.
    pub fn refresh(&mut self) -> Result<(), BackupError> {
        let mut stripes: Vec<(usize, FoundStripe)> = Vec::new();
        for (index, place) in self.places.iter_mut().enumerate() {
            for found in place.list()? {
                // Two places that overlap, like a folder and a folder in it, are one.
                let is_known =
                    |own: &FoundStripe| own.locator == found.locator && own.name == found.name;
                if !stripes.iter().any(|(_, own)| is_known(own)) {
                    stripes.push((index, found));
                }
            }
        }
        (self.stripes, self.entries) = (stripes, Vec::new());
        self.group()
    }

    fn group(&mut self) -> Result<(), BackupError> {
        let mut groups: BTreeMap<BackupId, Vec<usize>> = BTreeMap::new();
        for (index, (_, stripe)) in self.stripes.iter().enumerate() {
            if let Some(id) = stripe.id() {
                groups.entry(id).or_default().push(index);
            }
        }
        for (id, members) in groups {
            let manifest = self.manifest(id, &members)?;
            let header = members.iter().find_map(|own| self.stripes[*own].1.header.as_ref());
            let identity = header.map(|header| header.identity.clone());
            let identity = identity.or_else(|| manifest.as_ref().and_then(Manifest::identity));
            let Some(identity) = identity else { continue };
            let own = || members.iter().map(|index| &self.stripes[*index].1);
            let complete = |stripe: u8| {
                own().any(|found| found.is_complete() && found.stripe() == Some(stripe))
            };
            let mut gaps = Gaps::default();
            for stripe in (0..identity.stripes).filter(|stripe| !complete(*stripe)) {
                let mut begun = own().filter(|found| found.stripe() == Some(stripe)).peekable();
                let is_begun = begun.peek().is_some();
                let list = match (is_begun, begun.any(FoundStripe::is_truncated)) {
                    (false, _) => &mut gaps.missing,
                    (true, false) => &mut gaps.unfinished,
                    (true, true) => &mut gaps.truncated,
                };
                list.push(stripe);
            }
            let state = if !gaps.truncated.is_empty() {
                State::Damaged
            } else if !gaps.unfinished.is_empty() {
                State::Incomplete
            } else if !gaps.missing.is_empty() {
                State::Missing(gaps.missing.clone())
            } else {
                State::Complete
            };
            let modified = own().filter_map(|found| found.modified_unix_ms).max();
            let is_undated = state == State::Incomplete
                && own().any(|own| !own.is_complete() && own.modified_unix_ms.is_none());
            let modified = Some(modified.unwrap_or(identity.created_unix_ms));
            self.entries.push(Entry {
                stored_bytes: own().map(|found| found.length).fold(0, u64::saturating_add),
                modified_unix_ms: modified.filter(|_| !is_undated),
                manifest: manifest.filter(|_| state == State::Complete),
                identity,
                state,
                gaps,
                members,
            });
        }
        self.entries.sort_by_key(|entry| (entry.identity.created_unix_ms, entry.identity.id));
        Ok(())
    }

    /// Reads the manifest of the first stripe that has a sound one.
    fn manifest(
        &mut self,
        id: BackupId,
        members: &[usize],
    ) -> Result<Option<Manifest>, BackupError> {
        for index in members {
            let (place, found) = &self.stripes[*index];
            let Some(footer) = found.footer.clone().filter(|_| found.is_complete()) else {
                continue;
            };
            let mut bytes = self.places[*place].open(found)?;
            match read_manifest(bytes.as_mut(), &footer) {
                Ok(Some(manifest)) if manifest.id == id => return Ok(Some(manifest)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the backups, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the files that look like stripes and belong to no backup.
    pub fn strangers(&self) -> impl Iterator<Item = &FoundStripe> {
        self.stripes.iter().map(|(_, found)| found).filter(|found| {
            found.id().is_none_or(|id| !self.entries.iter().any(|own| own.identity.id == id))
        })
    }

    /// Returns the stripes of a backup.
    pub fn stripes(&self, entry: &Entry) -> impl Iterator<Item = &FoundStripe> {
        entry.members.iter().map(|index| &self.stripes[*index].1)
    }

    /// Finds a backup by its id, the beginning of its id, its name, or the path of a stripe. Of
    /// several with one name it is the newest complete one.
    ///
    /// # Errors
    /// When there is none, or the beginning of an id fits several.
    pub fn find(&self, text: &str) -> Result<&Entry, BackupError> {
        if let Ok(id) = text.parse::<BackupId>()
            && let Some(entry) = self.by_id(id)
        {
            return Ok(entry);
        }
        let mut named = self.entries.iter().filter(|entry| entry.identity.name == text);
        let newest = named.clone().rfind(|entry| entry.is_complete()).or_else(|| named.next_back());
        if let Some(entry) = newest {
            return Ok(entry);
        }
        let is_path = |found: &FoundStripe| found.locator == text || found.name == text;
        let at = self.stripes.iter().find(|(_, found)| is_path(found));
        if let Some(entry) = at.and_then(|(_, found)| self.by_id(found.id()?)) {
            return Ok(entry);
        }
        let is_prefix = text.len() >= SHORTEST_PREFIX;
        let fits = |entry: &&Entry| entry.identity.id.to_string().starts_with(text);
        let fitting: Vec<&Entry> = self.entries.iter().filter(fits).collect();
        match fitting.as_slice() {
            [entry] if is_prefix => Ok(entry),
            [] => Err(BackupError::NotFound {
                name: shown(text).to_owned(),
                places: self.place_names(),
                there: match self.entries.as_slice() {
                    [] => "; there is none at all".to_owned(),
                    all => format!("; there are {}", list(all.iter())),
                },
            }),
            all if is_prefix => Err(BackupError::Refused(format!(
                "{text} is the beginning of several ids: {}; give more of it",
                list(all.iter().copied())
            ))),
            all => Err(BackupError::NotFound {
                name: text.to_owned(),
                places: self.place_names(),
                there: format!(
                    "; {SHORTEST_PREFIX} characters of an id are the least, and it is the beginning of {}",
                    list(all.iter().copied())
                ),
            }),
        }
    }

    /// Returns the backup with this id.
    #[must_use]
    pub fn by_id(&self, id: BackupId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.identity.id == id)
    }

    /// Returns the full backup that a differential builds on.
    ///
    /// # Errors
    /// When it is not in these places.
    pub fn base(&self, entry: &Entry) -> Result<Option<&Entry>, BackupError> {
        let Some(base) = entry.identity.base else { return Ok(None) };
        self.by_id(base).map(Some).ok_or_else(|| {
            BackupError::Unusable(format!(
                "the differential backup {} builds on the full backup {base}, which is not in {}; \
                 name the place that has it with --from",
                entry.identity.id,
                self.place_names()
            ))
        })
    }

    /// Returns the names of the places, for messages.
    #[must_use]
    pub fn place_names(&self) -> String {
        let names: Vec<&str> = self.places.iter().map(|place| place.name()).collect();
        names.join(", ")
    }

    /// Opens the published stripes of a backup, and files that are named as stripes of it and hold
    /// something else.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn inputs(&mut self, id: BackupId) -> Result<Vec<StripeInput>, BackupError> {
        let members = self.by_id(id).map(|entry| entry.members.clone()).unwrap_or_default();
        let sets: Vec<&str> =
            members.iter().filter_map(|index| set(&self.stripes[*index].1.locator)).collect();
        let is_wanted = |index: usize, found: &FoundStripe| {
            members.contains(&index) || set(&found.locator).is_some_and(|own| sets.contains(&own))
        };
        let mut inputs = Vec::new();
        for (index, (place, found)) in self.stripes.iter().enumerate() {
            if !found.is_temporary && is_wanted(index, found) {
                inputs.push(StripeInput {
                    name: found.name.clone(),
                    named: found.named,
                    bytes: self.places[*place].open(found)?,
                });
            }
        }
        Ok(inputs)
    }

    /// Removes all stripes of a backup, durably, one after the other: whatever is left after an
    /// interruption is incomplete.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove(&mut self, id: BackupId) -> Result<(), BackupError> {
        let members = self.by_id(id).map(|entry| entry.members.clone()).unwrap_or_default();
        for index in members {
            let (place, found) = &self.stripes[index];
            self.places[*place].remove(found)?;
        }
        Ok(())
    }
}

/// Names backups in a message, the newest first.
fn list<'a>(all: impl DoubleEndedIterator<Item = &'a Entry> + ExactSizeIterator) -> String {
    let more = all.len().saturating_sub(MAX_NAMED);
    let all: Vec<(&str, String)> = all
        .rev()
        .take(MAX_NAMED)
        .map(|own| (own.identity.name.as_str(), own.identity.id.to_string()))
        .collect();
    let short: BTreeSet<&str> = all.iter().map(|(_, id)| short_id(id)).collect();
    let named = all.iter().map(|(name, id)| match short.len() == all.len() {
        true => format!("{name} {}", short_id(id)),
        false => format!("{name} {id}"),
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    text
}

/// Returns the part of a file's name that all stripes of its backup share.
fn set(locator: &str) -> Option<&str> {
    let (set, end) = locator.rsplit_once('-')?;
    end.contains("of").then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Folder;
    use crate::testing::{identity, source, store};

    #[test]
    fn a_name_that_fits_none_or_several_is_told_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let place =
            || -> Vec<Box<dyn Place>> { vec![Box::new(Folder::new(folder.path()).unwrap())] };
        let find = |text: &str| match Library::open(place()).unwrap().find(text) {
            Ok(entry) => entry.identity.id.to_string(),
            Err(error) => error.to_string().replace(&folder.path().display().to_string(), "b"),
        };
        assert_eq!(find("x"), "no backup \"x\" in b; there is none at all");
        for (id, name) in [(1, "s"), (2, "t")] {
            let bytes = [9, 9, 9, 9, 9, 9, id, 9, 9, 9, 9, 9, 9, 9, 9, 9];
            let (id, name) = (BackupId::from_bytes(bytes), name.to_owned());
            let own = Identity { id, name, ..identity(1, 1, None) };
            store(folder.path(), &own, &[source("data", 4096, 1)], None);
        }
        // Both have the same short id.
        let both = "t 09090909-0909-0209-0909-090909090909, s 09090909-0909-0109-0909-090909090909";
        assert_eq!(find("x"), format!("no backup \"x\" in b; there are {both}"));
        let several = format!("0909 is the beginning of several ids: {both}; give more of it");
        assert_eq!(find("0909"), several);
        assert!(find("09").ends_with(&format!("and it is the beginning of {both}")));
        assert!(find("09090909-0909-01").starts_with("09090909-0909-01"));
    }
}
