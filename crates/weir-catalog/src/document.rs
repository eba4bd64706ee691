//! Access to downloaded JSON, with the file and the place in messages.

use crate::error::CatalogError;
use serde_json::{Deserializer, Value};

/// A JSON document of a file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// The file.
    pub(crate) origin: &'a str,
    pub(crate) value: Value,
}

impl<'a> Document<'a> {
    /// Parses all documents of a text: one, several pages one behind the other, or an array of pages.
    pub(crate) fn all(origin: &'a str, text: &str) -> Result<Vec<Self>, CatalogError> {
        let mut all = Vec::new();
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.map_err(|error| CatalogError::Syntax {
                origin: origin.to_owned(),
                at: Some((error.line(), error.column())),
                message: error.to_string(),
            })?;
            let is_page = |own: &Value| own.get("Items").is_some() || own.get("skus").is_some();
            match value {
                Value::Array(pages) if pages.first().is_some_and(is_page) => {
                    all.extend(pages.into_iter().map(|value| Self { origin, value }));
                }
                value => all.push(Self { origin, value }),
            }
        }
        Ok(all)
    }

    pub(crate) fn invalid(&self, place: &str, reason: &str) -> CatalogError {
        CatalogError::Invalid {
            origin: self.origin.to_owned(),
            place: place.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Returns the text of a key that an entry must have.
    pub(crate) fn text<'v>(&self, entry: &'v Value, key: &str) -> Result<&'v str, CatalogError> {
        let text = entry.get(key).and_then(Value::as_str);
        text.ok_or_else(|| self.invalid(&shortened(entry), &format!("has no {key:?}")))
    }

    /// Returns a whole number, also one in quotes; `None` if the entry does not have it.
    pub(crate) fn count(&self, entry: &Value, key: &str) -> Result<Option<u64>, CatalogError> {
        let Some(value) = entry.get(key) else { return Ok(None) };
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let broken =
            || self.invalid(&shortened(entry), &format!("{key:?} is no whole number: {value}"));
        number.map(Some).ok_or_else(broken)
    }

    /// Returns a count that fits an edition.
    pub(crate) fn small(&self, entry: &Value, key: &str) -> Result<Option<u32>, CatalogError> {
        let count = self.count(entry, key)?;
        let large = |_| self.invalid(&shortened(entry), &format!("{key:?} is too large"));
        count.map(|count| u32::try_from(count).map_err(large)).transpose()
    }
}

/// Returns the beginning of an entry, for messages.
fn shortened(entry: &Value) -> String {
    const MOST: usize = 60;
    let text = entry.to_string();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text,
    }
}
