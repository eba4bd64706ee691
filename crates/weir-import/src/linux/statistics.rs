//! The JSON format of sysstat: `{"sysstat": {"hosts": [{"nodename": .., "statistics": [{..},
//! {..}]}]}}`.
//!
//! It is read sample by sample, which also works for truncated input: sysstat closes its brackets
//! only at a normal end.

use crate::brackets::{Brackets, json_error};
use crate::error::ImportError;
use crate::kind::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::io::BufRead;

/// The most bytes in a sample.
const LONGEST: usize = 16 << 20;
/// The most bytes examined before the samples.
const MOST_BEFORE: usize = 1 << 20;

/// The samples of an input.
pub(super) struct Statistics {
    input: Bytes,
    scan: Scan,
}

/// The state of the scan.
#[derive(Debug, Default)]
struct Scan {
    /// Text since the last sample, before those of the next host.
    before: Vec<u8>,
    /// Text before the current samples.
    host: String,
    /// The current sample.
    sample: Vec<u8>,
    line: u64,
    /// Line in which the current sample begins.
    begins: u64,
    brackets: Brackets,
    /// True if the scan is among samples.
    inside: bool,
    /// Number of hosts whose samples began.
    begun: u64,
}

impl Statistics {
    pub(super) fn new(input: Bytes) -> Self {
        Self { input, scan: Scan { line: 1, ..Scan::default() } }
    }

    /// Reads up to the end of the next sample; returns whether there is one.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if there are no samples at all, or one is too long.
    pub(super) fn advance(&mut self) -> Result<bool, ImportError> {
        self.scan.sample.clear();
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                if self.scan.begun == 0 {
                    return Err(ImportError::whole("it has no \"statistics\""));
                }
                return Ok(false);
            }
            let (used, is_whole) = self.scan.take(bytes);
            self.input.consume(used);
            if is_whole {
                return Ok(true);
            }
            if self.scan.sample.len() > LONGEST {
                let reason = format!("a sample has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(self.scan.begins, reason));
            }
        }
    }

    /// Parses the current sample.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it is not JSON, or has another structure.
    pub(super) fn sample<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ImportError> {
        self.scan.parse()
    }

    /// Returns the line in which the sample begins.
    pub(super) const fn begins(&self) -> u64 {
        self.scan.begins
    }

    /// Returns the number of documents, or hosts in one, begun so far.
    pub(super) const fn documents(&self) -> u64 {
        self.scan.begun
    }

    /// Returns whether the input ended among its samples.
    pub(super) const fn was_cut(&self) -> bool {
        self.scan.inside
    }

    /// Returns a fact about the host of the current samples.
    pub(super) fn host(&self, name: &str) -> Option<String> {
        let quoted = format!("\"{name}\"");
        let at = self.scan.host.rfind(&quoted)? + quoted.len();
        let rest = self.scan.host.get(at..)?.trim_start().strip_prefix(':')?;
        let value = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
        value.as_str().map(str::to_owned)
    }
}

impl Scan {
    /// Takes bytes up to the end of a sample; returns their number, and whether the sample is
    /// complete.
    fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        // Start of the sample in these bytes.
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            self.line += u64::from(*byte == b'\n');
            if self.brackets.is_inside() {
                self.brackets.take(*byte);
                if !self.brackets.is_inside() {
                    self.sample.extend_from_slice(&bytes[begin..=at]);
                    return (at + 1, true);
                }
            } else if !self.inside {
                self.seek(*byte);
            } else {
                match byte {
                    b'{' => {
                        self.begins = self.line;
                        self.brackets.take(*byte);
                        begin = at;
                    }
                    b']' => self.inside = false,
                    _ => {}
                }
            }
        }
        if self.brackets.is_inside() {
            self.sample.extend_from_slice(&bytes[begin..]);
        }
        (bytes.len(), false)
    }

    /// Searches for the beginning of a host's samples.
    fn seek(&mut self, byte: u8) {
        if byte == b'[' && self.before.trim_ascii_end().ends_with(b":") {
            let named = self.before.trim_ascii_end();
            let name = named.get(..named.len() - 1).unwrap_or_default().trim_ascii_end();
            if name.ends_with(b"\"statistics\"") {
                self.host = String::from_utf8_lossy(name).into_owned();
                self.before.clear();
                self.inside = true;
                self.begun += 1;
                return;
            }
        }
        if self.before.len() >= MOST_BEFORE {
            self.before.clear();
        }
        self.before.push(byte);
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ImportError> {
        serde_json::from_slice(&self.sample)
            .map_err(|error| json_error(&error, self.begins, "a sample is not JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn samples(text: &'static str) -> (Vec<String>, bool) {
        for size in [1, 8192] {
            let input = BufReader::with_capacity(size, text.as_bytes());
            let mut all = Statistics::new(Box::new(input));
            let mut told = Vec::new();
            while all.advance().expect("samples") {
                let value: Value = all.sample().expect("JSON");
                let host = all.host("nodename").unwrap_or_default();
                told.push(format!("{} {host:?} {value}", all.begins()));
            }
            if size > 1 {
                return (told, all.was_cut());
            }
        }
        unreachable!("it returns in the loop")
    }

    #[test]
    fn samples_one_by_one() {
        let text = r#"{"sysstat": {"hosts": [
            {"nodename": "a", "statistics": [
                {"x": "]}\"{"},
                {"y": [1, {}]}
            ], "restarts": [{"boot": 1}]},
            {"nodename": "b", "statistics":[{"z": 2}]}
        ]}}"#;
        let expect = [r#"3 "a" {"x":"]}\"{"}"#, r#"4 "a" {"y":[1,{}]}"#, r#"6 "b" {"z":2}"#];
        assert_eq!(samples(text), (expect.map(str::to_owned).to_vec(), false));
        let cut = r#"{"statistics": [{"x": 1}, {"y": "#;
        assert_eq!(samples(cut), (vec![r#"1 "" {"x":1}"#.to_owned()], true));
    }
}
