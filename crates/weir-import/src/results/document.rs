//! Result sets in JSON.

use super::set::{Found, ResultSet};
use crate::error::ImportError;
use crate::kind::Bytes;
use crate::text::Lines;
use serde_json::Value;
use std::collections::VecDeque;

/// The length of the lines into which SQL Server breaks a JSON answer.
const BROKEN: usize = 2033;
/// SQL Server's column name of a JSON answer.
pub(super) const JSON_HEAD: &str = "JSON_F52E2B61";

/// Reads the result sets of a document.
pub(super) fn read(mut lines: Lines<Bytes>) -> Result<VecDeque<Found>, ImportError> {
    let mut text = String::new();
    let (mut is_split, mut is_broken) = (false, false);
    while let Some(line) = lines.next_line()? {
        if line.starts_with(JSON_HEAD) {
            // sqlcmd breaks an answer into lines at any character.
            is_split = true;
            continue;
        }
        if !text.is_empty() && !is_broken {
            text.push('\n');
        }
        if is_split && (line.starts_with("---") || is_trailer(&line)) {
            continue;
        }
        // It also breaks an answer without a head.
        is_broken = is_split || line.chars().count() == BROKEN;
        text.push_str(&line);
    }
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        let wrong = |error: serde_json::Error| {
            let line = u64::try_from(error.line()).ok().filter(|_| !is_split);
            ImportError::Malformed { line, reason: format!("incomplete JSON: {error}") }
        };
        values.push(value.map_err(wrong)?);
    }
    let value = match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    };
    let mut found = VecDeque::new();
    walk(None, &value, &mut found);
    Ok(found)
}

pub(super) fn is_trailer(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('(') && line.ends_with(')') && line.contains("row")
}

/// Finds the result sets in a document.
fn walk(name: Option<&str>, value: &Value, found: &mut VecDeque<Found>) {
    match value {
        Value::Array(items) if !items.is_empty() && items.iter().all(is_flat) => {
            found.push_back(of_objects(name, items));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(name, item, found)),
        Value::Object(fields) => {
            if let (Some(schema), Some(Value::Array(rows))) =
                (fields.get("schema"), fields.get("data"))
                && let Some(names) = schema_names(schema)
            {
                found.push_back(of_schema(name, names, rows));
            } else if is_flat(value) && name.is_none() {
                found.push_back(of_objects(name, std::slice::from_ref(value)));
            } else {
                fields.iter().for_each(|(name, value)| walk(Some(name), value, found));
            }
        }
        _ => {}
    }
}

/// Returns whether a value is an object without lists or objects in it.
fn is_flat(value: &Value) -> bool {
    let plain = |value: &Value| !value.is_array() && !value.is_object();
    value.as_object().is_some_and(|fields| !fields.is_empty() && fields.values().all(plain))
}

fn schema_names(schema: &Value) -> Option<Vec<String>> {
    let fields = schema.get("fields")?.as_array()?;
    fields.iter().map(|field| Some(field.get("name")?.as_str()?.to_owned())).collect()
}

/// Creates a result set whose fields are found by position or by name.
fn of_schema(title: Option<&str>, names: Vec<String>, rows: &[Value]) -> Found {
    let row = |row: &Value| {
        let field = |(at, name): (usize, &String)| {
            let by_place = || row.get(at.to_string()).or_else(|| row.get(at));
            scalar(row.get(name).or_else(by_place))
        };
        names.iter().enumerate().map(field).collect()
    };
    let rows = rows.iter().map(row).collect();
    Found { set: ResultSet::new(title.map(str::to_owned), names, None), rows }
}

fn of_objects(title: Option<&str>, items: &[Value]) -> Found {
    let mut names: Vec<String> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for item in items {
        for name in item.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if known.insert(name) {
                names.push(name.clone());
            }
        }
    }
    let row = |item: &Value| names.iter().map(|name| scalar(item.get(name))).collect();
    let rows = items.iter().map(row).collect();
    Found { set: ResultSet::new(title.map(str::to_owned), names, None), rows }
}

fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(value) => value.to_string(),
    }
}
