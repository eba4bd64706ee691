//! New names for the blobs of earlier versions whose names have backslashes.

use super::{ContainerEntry, Names, State, base};
use crate::head::MAX_BLOB_NAME;
use crate::journal::Change;
use crate::record::Content;
use crate::time::Moment;
use std::collections::{BTreeSet, HashMap};

/// The result of [`State::rename_backslashes`].
#[derive(Debug, Default)]
pub(crate) struct Renames {
    /// For the journal, to be committed together.
    pub changes: Vec<Change>,
    /// The old and new names of blobs that have a suffix.
    pub suffixed: Vec<[[String; 3]; 2]>,
}

impl ContainerEntry {
    /// Returns whether no blob, snapshot or uncommitted block has the name.
    fn is_free(&self, name: &str) -> bool {
        let own = (name.to_owned(), Moment(0))..=base(name);
        self.blobs.range(own).next().is_none() && !self.uncommitted.contains_key(name)
    }

    /// Returns a free name for a blob whose name has backslashes, and whether it has no suffix.
    fn name_without_backslashes(&self, old: &str) -> (String, bool) {
        let plain = old.replace('\\', "/");
        if self.is_free(&plain) {
            return (plain, true);
        }
        let mut number = 1_u64;
        loop {
            let suffix = format!("~{number}");
            // A longer name could not be requested.
            let stem = plain.chars().take(MAX_BLOB_NAME - suffix.len());
            let name: String = stem.chain(suffix.chars()).collect();
            if self.is_free(&name) {
                return (name, false);
            }
            number += 1;
        }
    }

    /// Renames a blob with its snapshots and uncommitted blocks.
    fn rename(&mut self, [old, new]: [Names<'_>; 2], changes: &mut Vec<Change>) {
        let range = (old.blob.to_owned(), Moment(0))..=base(old.blob);
        let times: Vec<Moment> = self.blobs.range(range).map(|((_, at), _)| *at).collect();
        for at in times {
            let Some(blob) = self.blobs.remove(&(old.blob.to_owned(), at)) else { continue };
            let snapshot = Some(at).filter(|at| *at != Moment::FAR);
            changes.push(Change::remove(old.key(snapshot)));
            changes.push(Change::put(new.key(snapshot), &*blob));
            self.blobs.insert((new.blob.to_owned(), at), blob);
        }
        let Some(blocks) = self.uncommitted.remove(old.blob) else { return };
        for block in &blocks {
            changes.push(Change::remove(old.block_key(&block.id)));
            changes.push(Change::put(new.block_key(&block.id), block));
        }
        self.uncommitted.insert(new.blob.to_owned(), blocks);
    }
}

impl State {
    /// Renames blobs whose names have a backslash, which requests can no longer name: the new name has
    /// slashes, and if that is taken, the first of the suffixes `~1`, `~2` and so on that is free.
    /// Incremental copies follow their sources.
    pub(crate) fn rename_backslashes(&mut self) -> Renames {
        let mut renames = Renames::default();
        let mut sources = HashMap::new();
        for (account, own) in &mut self.containers {
            for (container, held) in own {
                let names = held.blobs.keys().map(|(name, _)| name).chain(held.uncommitted.keys());
                let names: BTreeSet<String> =
                    names.filter(|name| name.contains('\\')).cloned().collect();
                for old in names {
                    let (new, is_plain) = held.name_without_backslashes(&old);
                    let names = [&old, &new].map(|blob| Names { account, container, blob });
                    held.rename(names, &mut renames.changes);
                    let names = names.map(|names| names.owned());
                    if !is_plain {
                        renames.suffixed.push(names.clone());
                    }
                    let [old, new] = names;
                    sources.insert(old, new);
                }
            }
        }
        if !sources.is_empty() {
            self.rename_sources(&sources, &mut renames.changes);
        }
        renames
    }

    /// Gives incremental copies the new names of their sources.
    fn rename_sources(
        &mut self,
        sources: &HashMap<[String; 3], [String; 3]>,
        changes: &mut Vec<Change>,
    ) {
        for (names, snapshot, blob) in self.all_mut() {
            if let Content::Page(page) = &mut blob.content
                && let Some(increment) = &mut page.incremental
                && let Some(new) = sources.get(&increment.source)
            {
                increment.source.clone_from(new);
                changes.push(Change::put(names.key(snapshot), blob));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Key;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn container() -> (Key, Value) {
        let key = Key::Container("a".to_owned(), "c".to_owned());
        (key, json!({ "etag": 1, "modified": 1 }))
    }

    fn names_of(state: &State) -> Vec<&str> {
        let held = state.container("a", "c").unwrap();
        held.blobs.keys().map(|(name, _)| &**name).collect()
    }

    fn record(name: &str, at: Option<Moment>) -> (Key, Value) {
        let names = Names { account: "a", container: "c", blob: name };
        let blob = json!({ "created": 1, "modified": 1, "etag": 1, "content": { "block": { "blocks": [] } } });
        (names.key(at), blob)
    }

    /// The records have only what the first version wrote.
    #[test]
    fn names_with_a_backslash_are_those_with_a_slash() {
        let block = Names { account: "a", container: "c", blob: "u\\v" }.block_key("QQ==");
        let records = vec![
            container(),
            record("x\\y", None),
            record("x\\y", Some(Moment(700))),
            record("taken\\1", None),
            record("taken/1", None),
            (block, json!({ "id": "QQ==", "piece": { "id": 1, "len": 1 } })),
        ];
        let mut state = State::load(records).unwrap();
        let renames = state.rename_backslashes();
        assert_eq!(renames.changes.len(), 8);
        let full = |name: &str| ["a", "c", name].map(str::to_owned);
        assert_eq!(renames.suffixed, [[full("taken\\1"), full("taken/1~1")]]);
        assert_eq!(names_of(&state), ["taken/1", "taken/1~1", "x/y", "x/y"]);
        assert!(state.container("a", "c").unwrap().uncommitted.contains_key("u/v"));
        let again = state.rename_backslashes();
        assert!(again.changes.is_empty() && again.suffixed.is_empty());
    }

    #[test]
    fn records_of_earlier_versions_keep_names_of_metadata_that_are_no_identifiers() {
        let (key, mut blob) = record("x", None);
        blob["metadata"] = json!({ "a-b": "v" });
        let state = State::load(vec![container(), (key, blob)]).unwrap();
        let names = Names { account: "a", container: "c", blob: "x" };
        let metadata = &state.blob(names, None).unwrap().metadata;
        assert_eq!(metadata.get("a-b").map(String::as_str), Some("v"));
    }

    #[test]
    fn a_blob_whose_new_name_is_taken_has_a_suffix() {
        let long = "n".repeat(1000);
        // The order of the old names: `/` sorts before `\`.
        let names = ["p/q/r", "p/q/r~1", "p/q\\r", "p\\q/r", "p\\q\\r"];
        let longest = [format!("{long}/{}", "n".repeat(23)), format!("{long}\\{}", "n".repeat(23))];
        let records = names.into_iter().chain(longest.iter().map(|name| &**name));
        let records = std::iter::once(container()).chain(records.map(|name| record(name, None)));
        let mut state = State::load(records.collect()).unwrap();
        assert_eq!(state.rename_backslashes().suffixed.len(), 4);
        let shortened = format!("{long}/{}~1", "n".repeat(21));
        let expect =
            [&longest[0], &*shortened, "p/q/r", "p/q/r~1", "p/q/r~2", "p/q/r~3", "p/q/r~4"];
        assert_eq!(names_of(&state), expect);
        for name in names_of(&state) {
            assert_eq!(crate::head::check_blob_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn incremental_copies_follow_a_source_that_is_renamed() {
        let copy = |name: &str, source: &str| {
            let names = Names { account: "a", container: "c", blob: name };
            let increment =
                json!({ "source": ["a", "c", source], "volume": "v", "last": [1, 1], "made": 1 });
            let page = json!({ "volume": name, "size": 512, "incremental": increment });
            let blob =
                json!({ "created": 1, "modified": 1, "etag": 1, "content": { "page": page } });
            (names.key(None), blob)
        };
        let records = vec![
            container(),
            record("s\\1", None),
            record("s\\2", None),
            record("s/2", None),
            copy("to", "s\\1"),
            copy("to\\2", "s\\2"),
            copy("other", "s/2"),
        ];
        let stored: BTreeMap<Key, Value> = records.iter().cloned().collect();
        let mut state = State::load(records).unwrap();
        let changes = state.rename_backslashes().changes;
        // The next start loads the journal as the commit left it.
        let stored = changes.into_iter().fold(stored, |stored, change| change.applied(stored));
        let loaded = State::load(stored.into_iter().collect()).unwrap();
        for state in [&state, &loaded] {
            let source = |blob: &str| {
                let names = Names { account: "a", container: "c", blob };
                let page = state.blob(names, None).unwrap().page().unwrap();
                let increment = page.incremental.as_ref().unwrap();
                increment.source[2].clone()
            };
            assert_eq!(["to", "to/2", "other"].map(source), ["s/1", "s/2~1", "s/2"]);
            assert_eq!(names_of(state), ["other", "s/1", "s/2", "s/2~1", "to", "to/2"]);
        }
    }
}
