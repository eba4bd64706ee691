//! Changes of single keys in a TOML file. Everything else stays as it is, so that positions in
//! messages about the changed text are those of the file.

use crate::file::near;
use std::fmt::{self, Write as _};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Key, TableLike, Value};

/// The path to a key, for example `volume.data.tier`. An element of a list is given by its name, or
/// by its place from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPath {
    text: String,
    parts: Vec<String>,
}

impl KeyPath {
    /// Reads a path, whose parts may be quoted as in TOML.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let keys = Key::parse(text).map_err(|_| {
            format!("{text:?} is no path; write for example volume.data.tier, and quote a name with dots")
        })?;
        let parts = keys.iter().map(|key| key.get().to_owned()).collect();
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the parts.
    pub(crate) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns whether the key is the runtime of a job, or the measured time of a database.
    pub(crate) fn is_runtime(&self) -> bool {
        self.parts.last().is_some_and(|key| key == "runtime" || key == "duration")
    }

    /// Sets the key of a document. Tables that are missing are added; elements of lists are not.
    pub(crate) fn set(&self, document: &mut DocumentMut, value: &Value) -> Result<(), String> {
        self.in_table(document.as_table_mut(), 0, value)
    }

    fn in_table(&self, table: &mut dyn TableLike, at: usize, value: &Value) -> Result<(), String> {
        let part = &self.parts[at];
        if at + 1 == self.parts.len() {
            return self.replace(table, part, value);
        }
        let Some(item) = table.get_mut(part) else {
            let mut inner = toml_edit::InlineTable::new();
            self.in_table(&mut inner, at + 1, value)?;
            table.insert(part, Item::Value(inner.into()));
            return Ok(());
        };
        match item {
            Item::ArrayOfTables(list) => self.in_tables(list, at + 1, value),
            Item::Value(Value::Array(list)) => self.in_array(list, at + 1, value),
            other => match other.as_table_like_mut() {
                Some(inner) => self.in_table(inner, at + 1, value),
                None => Err(self.wrong(at, "is a value and has no keys")),
            },
        }
    }

    fn replace(&self, table: &mut dyn TableLike, key: &str, value: &Value) -> Result<(), String> {
        match table.get_mut(key) {
            Some(item) if item.is_array_of_tables() || item.is_table() => {
                Err(self.wrong(self.parts.len() - 1, "has keys of its own; name one of them"))
            }
            // The comment behind the old value stays.
            Some(Item::Value(old)) => {
                let decor = old.decor().clone();
                *old = value.clone();
                *old.decor_mut() = decor;
                Ok(())
            }
            _ => {
                table.insert(key, Item::Value(value.clone()));
                Ok(())
            }
        }
    }

    fn in_tables(&self, list: &mut ArrayOfTables, at: usize, value: &Value) -> Result<(), String> {
        let names: Vec<Option<String>> = list.iter().map(|table| name_of(table)).collect();
        let index = self.element(at, &names)?;
        match list.get_mut(index) {
            Some(_) if at + 1 == self.parts.len() => {
                Err(self.wrong(at, "has keys of its own; name one of them"))
            }
            Some(table) => self.in_table(table, at + 1, value),
            None => Err(self.wrong(at, "does not exist")),
        }
    }

    fn in_array(&self, list: &mut Array, at: usize, value: &Value) -> Result<(), String> {
        let name = |value: &Value| value.as_inline_table().and_then(|table| name_of(table));
        let names: Vec<Option<String>> = list.iter().map(name).collect();
        let index = self.element(at, &names)?;
        match list.get_mut(index) {
            Some(old) if at + 1 == self.parts.len() => {
                *old = value.clone();
                Ok(())
            }
            Some(Value::InlineTable(table)) => self.in_table(table, at + 1, value),
            Some(_) => Err(self.wrong(at, "is a value and has no keys")),
            None => Err(self.wrong(at, "does not exist")),
        }
    }

    /// Returns the index of the element that a part names.
    fn element(&self, at: usize, names: &[Option<String>]) -> Result<usize, String> {
        let part = &self.parts[at];
        if let Some(index) = names.iter().position(|name| name.as_deref() == Some(part)) {
            return Ok(index);
        }
        if let Some(index) = part.parse().ok().filter(|index| *index < names.len()) {
            return Ok(index);
        }
        let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        let mut reason = format!("there is no {part:?} in {}", self.parts[..at].join("."));
        if let Some(near) = near(part, known.iter().copied()) {
            let _ = write!(reason, "; did you mean {near:?}?");
        }
        let known = if known.is_empty() {
            format!("it has {} elements, from 0 on", names.len())
        } else {
            format!("it has: {}", known.join(", "))
        };
        Err(format!("{}: {reason} ({known})", self.text))
    }

    fn wrong(&self, at: usize, reason: &str) -> String {
        format!("{}: {} {reason}", self.text, self.parts[..=at].join("."))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn name_of(table: &dyn TableLike) -> Option<String> {
    Some(table.get("name")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = "# A layout.\nedition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n\n\
        [[volume]]\nname = \"data\"\ntier = \"P30\" # for now\n\n[[volume]]\nname = \"a.b\"\ntier = \"P20\"\n\n\
        [[stripe]]\nname = \"pool\"\nvolumes = { count = 4, tier = \"P30\" }\n";

    fn set(path: &str, value: impl Into<Value>) -> Result<String, String> {
        let mut document: DocumentMut = LAYOUT.parse().expect("TOML");
        KeyPath::parse(path)?.set(&mut document, &value.into())?;
        Ok(document.to_string())
    }

    #[test]
    fn one_key_changes_and_the_rest_stays() {
        let check = |path: &str, value: Value, from: &str, to: &str| {
            assert_eq!(set(path, value), Ok(LAYOUT.replacen(from, to, 1)), "{path}");
        };
        check("volume.data.tier", "P40".into(), "\"P30\" # for now", "\"P40\" # for now");
        check("volume.0.tier", "P40".into(), "\"P30\" # for now", "\"P40\" # for now");
        check("volume.\"a.b\".tier", "P40".into(), "\"P20\"", "\"P40\"");
        check("stripe.pool.volumes.count", 8.into(), "count = 4", "count = 8");
        check("host.size", "E8s_v5".into(), "D8s_v3", "E8s_v5");
        check("edition", "aws".into(), "azure-now", "aws");
    }

    #[test]
    fn missing_keys_and_tables_are_added() {
        let added = set("volume.data.cache", "read-only").expect("a layout");
        assert!(added.contains("# for now\ncache = \"read-only\"\n"), "{added}");
        let added = set("host.cache.size", "4 GiB").expect("a layout");
        assert!(added.contains("cache = { size = \"4 GiB\" }"), "{added}");
    }

    #[test]
    fn a_path_to_nothing_says_what_there_is() {
        let check = |path: &str, expect: &str| {
            assert_eq!(set(path, 1).expect_err(path), expect);
        };
        check(
            "volume.dta.tier",
            "volume.dta.tier: there is no \"dta\" in volume; did you mean \"data\"? (it has: data, a.b)",
        );
        check("volume.2.tier", "volume.2.tier: there is no \"2\" in volume (it has: data, a.b)");
        check("edition.name", "edition.name: edition is a value and has no keys");
        check("volume", "volume: volume has keys of its own; name one of them");
        check("volume.data", "volume.data: volume.data has keys of its own; name one of them");
        assert!(set("volume..tier", 1).expect_err("two dots").contains("is no path"));
    }
}
