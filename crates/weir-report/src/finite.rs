//! Finds floats in a report that are not finite.
//!
//! JSON writes NaN and infinity as `null`, so a report with one of them looks like a report that
//! leaves a figure out. CBOR keeps both.

use ciborium::Value;
use serde::Serialize;

/// Returns the paths of all floats in `report` that are NaN or infinite.
///
/// # Errors
///
/// The reason why `report` cannot be serialized.
pub fn non_finite(report: &impl Serialize) -> Result<Vec<String>, String> {
    let value = Value::serialized(report).map_err(|error| error.to_string())?;
    let mut paths = Vec::new();
    collect(&value, "", &mut paths);
    Ok(paths)
}

fn collect(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Float(number) if !number.is_finite() => paths.push(format!("{path}: {number}")),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{index}]"), paths);
            }
        }
        Value::Map(entries) => {
            for (key, item) in entries {
                let key = key.as_text().unwrap_or("?");
                collect(item, &format!("{path}.{key}"), paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_each_float_that_is_not_finite() {
        let report = BTreeMap::from([
            ("mean", vec![Some(1.0), None, Some(f64::NAN)]),
            ("share", vec![Some(f64::NEG_INFINITY)]),
        ]);
        assert_eq!(non_finite(&report), Ok(vec![".mean[2]: NaN".into(), ".share[0]: -inf".into()]));
    }
}
