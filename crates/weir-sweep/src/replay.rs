//! Traces as the workload of a sweep: where they come from, and the options of their replay.

use crate::value::Value;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;
use std::sync::Arc;
use toml_edit::DocumentMut;
use weir_sim::checks::MOST_DEPTH;
use weir_trace::{Sample, Window};
use weir_units::{Span, parser_message};
use weir_workload::replay::{Pace, Recording, ReplayOptions};

/// Options of a replay, as `[replay]` of a sweep file has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayKeys {
    /// Times of issue.
    #[serde(deserialize_with = "pace")]
    pub pace: Option<Pace>,
    /// Requests of each trace in flight, for the pace `closed`.
    pub depth: Option<u32>,
    /// Whether requests beyond the end of a volume are moved into it.
    pub wrap: bool,
    /// Start of the window.
    #[serde(deserialize_with = "from_text")]
    pub from: Option<Span>,
    /// End of the window.
    #[serde(deserialize_with = "from_text")]
    pub to: Option<Span>,
    /// Share of the requests.
    #[serde(deserialize_with = "from_text")]
    pub sample: Option<Sample>,
    /// Devices of the traces that are replayed; all if empty.
    pub devices: Vec<String>,
}

/// A pace, or its factor as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected recorded, closed, or a factor such as \"2x\" or 2")]
enum PaceValue {
    Text(String),
    Factor(f64),
}

fn pace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Pace>, D::Error> {
    let text = match PaceValue::deserialize(deserializer)? {
        PaceValue::Text(text) => text,
        PaceValue::Factor(factor) => format!("{factor:.3}x"),
    };
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("pace = {text:?}: {error}")))
}

fn from_text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
}

/// The part of traces that is replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// The window.
    pub window: Window,
    /// The share of the requests.
    pub sample: Option<Sample>,
    /// The devices; all if empty.
    pub devices: Vec<String>,
}

impl ReplayKeys {
    /// Sets a key to the value of a parameter.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let mut document = DocumentMut::new();
        document.insert(key, toml_edit::Item::Value(value.toml()));
        let one: Self = toml::from_str(&document.to_string())
            .map_err(|error| format!("[replay]: {}", parser_message(error.message())))?;
        match key {
            "pace" => self.pace = one.pace,
            "depth" => self.depth = one.depth,
            "wrap" => self.wrap = one.wrap,
            "from" => self.from = one.from,
            "to" => self.to = one.to,
            "sample" => self.sample = one.sample,
            // Values of parameters are no lists, so the file has rejected `devices`.
            _ => {}
        }
        Ok(())
    }

    /// Returns the part of the traces and the options of their replay.
    ///
    /// # Errors
    ///
    /// A message for keys that exclude each other.
    pub fn options(&self, map: &[(String, String)]) -> Result<(Part, ReplayOptions), String> {
        let pace = match (self.pace.unwrap_or_default(), self.depth) {
            (_, Some(depth)) if !(1..=MOST_DEPTH).contains(&depth) => {
                return Err(format!("[replay]: depth = {depth}: give 1 to {MOST_DEPTH}"));
            }
            (Pace::Closed { .. }, depth) => Pace::Closed { depth },
            (pace, None) => pace,
            (pace, Some(depth)) => {
                return Err(format!(
                    "[replay]: depth = {depth} needs pace = \"closed\"; with the pace {pace}, requests \
                     are issued at their times"
                ));
            }
        };
        let is_empty = self.to.is_some_and(|to| self.from.unwrap_or_default() >= to);
        if let Some(to) = self.to.filter(|_| is_empty) {
            let from = self.from.unwrap_or_default();
            return Err(format!(
                "[replay]: the window from {from} to {to} is empty; give an end after its start"
            ));
        }
        let window = Window { from: self.from, to: self.to };
        let part = Part { window, sample: self.sample, devices: self.devices.clone() };
        Ok((part, ReplayOptions { pace, map: map.to_vec(), wrap: self.wrap }))
    }
}

/// Opens the traces of a sweep, once for each point.
pub trait Traces: Send + Sync {
    /// Opens a part of all traces, at its first request.
    ///
    /// # Errors
    ///
    /// A message if a trace cannot be read, or is not the one whose hash the sweep has.
    fn open(&self, part: &Part) -> Result<Vec<Recording>, String>;

    /// Checks that the traces are still those whose hashes the sweep has.
    ///
    /// # Errors
    ///
    /// A message that names the trace that was changed.
    fn check(&self) -> Result<(), String>;
}

/// The traces of a sweep.
#[derive(Clone)]
pub struct TraceInputs {
    /// A hash of the contents of each trace, see [`content_hash`].
    pub hashes: Vec<String>,
    /// Opens them.
    pub traces: Arc<dyn Traces>,
}

impl fmt::Debug for TraceInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceInputs").field("hashes", &self.hashes).finish_non_exhaustive()
    }
}

/// Returns a hash of the bytes of a trace.
///
/// # Errors
///
/// Those of `read`.
pub fn content_hash(read: impl Read) -> io::Result<String> {
    let mut hash = blake3::Hasher::new();
    hash.update_reader(read)?;
    Ok(hash.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Result<ReplayKeys, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_parameter_sets_one_key() {
        let check = |key: &str, value: Value, expect: &str| {
            let mut own = keys("from = \"1s\"").expect("keys");
            own.set(key, &value).expect(key);
            assert_eq!(Ok(own), keys(&format!("from = \"1s\"\n{expect}")), "{key}");
        };
        check("pace", Value::read("2x"), "pace = \"2x\"");
        check("pace", Value::Whole(2), "pace = \"2x\"");
        check("pace", Value::Float(1.5), "pace = \"1.5x\"");
        check("pace", Value::read("closed"), "pace = \"closed\"");
        check("depth", Value::Whole(16), "depth = 16");
        check("to", Value::read("10 min"), "to = \"600s\"");
        check("sample", Value::read("1/10"), "sample = \"1/10\"");
        check("wrap", Value::Flag(true), "wrap = true");
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        let check = |key: &str, value: Value, expect: &str| {
            let error = ReplayKeys::default().set(key, &value).expect_err(key);
            assert!(error.starts_with("[replay]: ") && error.contains(expect), "{error}");
        };
        check("speed", Value::Whole(2), "unknown field `speed`");
        check("pace", Value::Whole(0), "a factor from 0.001x");
        check("pace", Value::read("fast"), "pace = \"fast\"");
        check("depth", Value::Whole(-1), "-1");
        check("from", Value::read("soon"), "soon");
        check("devices", Value::read("sda"), "sda");
    }

    #[test]
    fn keys_that_exclude_each_other_are_rejected() {
        let check = |text: &str, expect: &str| {
            let error = keys(text).expect(text).options(&[]).expect_err(text);
            assert!(error.contains(expect), "{error}");
        };
        check("depth = 4", "depth = 4 needs pace = \"closed\"");
        check("pace = \"closed\"\ndepth = 0", "give 1 to 65536");
        check("from = \"2s\"\nto = \"1s\"", "the window from 2 s to 1 s is empty");
        check("to = \"0s\"", "is empty");
    }
}
