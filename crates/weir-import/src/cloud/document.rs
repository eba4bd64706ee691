//! JSON documents whose keys vary in case between programs.

use crate::error::ImportError;
use crate::kind::Bytes;
use serde_json::{Map, Value};
use std::io::Read;

/// Nanoseconds in a second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// The most bytes of a document, which is kept in memory.
const LONGEST: u64 = 128 << 20;

/// Reads an input as one document.
pub(super) fn read(input: Bytes) -> Result<Value, ImportError> {
    let mut bytes = Vec::new();
    if input.take(LONGEST + 1).read_to_end(&mut bytes)? as u64 > LONGEST {
        let reason = format!("a JSON document has more than {} MiB: split it", LONGEST >> 20);
        return Err(ImportError::whole(reason));
    }
    // A byte order mark defines the encoding.
    let (text, _, _) = encoding_rs::UTF_8.decode(&bytes);
    serde_json::from_str(&text).map_err(|error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        ImportError::at(line, format!("incomplete JSON document: {error}"))
    })
}

/// Returns whether a text may be the beginning of a JSON document.
pub(super) fn may_be(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Returns the value of a key, ignoring case.
pub(super) fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).or_else(|| {
        object.iter().find(|(own, _)| own.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    })
}

/// Returns the text of a key.
pub(super) fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    get(object, key)?.as_str()
}

/// Returns the list of a key.
pub(super) fn list<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a [Value]> {
    get(object, key)?.as_array().map(Vec::as_slice)
}
