//! Consecutive JSON values, with or without line ends between them.

use crate::brackets::{Brackets, json_error};
use crate::error::ImportError;
use crate::kind::Bytes;
use serde_json::Value;
use std::io::BufRead;

/// The most bytes in a value.
const LONGEST: usize = 64 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader of objects and lists, one at a time.
pub(crate) struct Values {
    input: Bytes,
    scan: Scan,
}

#[derive(Debug, Default)]
struct Scan {
    value: Vec<u8>,
    line: u64,
    /// Line in which the current value begins.
    begins: u64,
    brackets: Brackets,
}

impl Values {
    pub(crate) fn new(input: Bytes) -> Self {
        Self { input, scan: Scan { line: 1, ..Scan::default() } }
    }

    /// Reads the next value and the line that it begins in; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it is not JSON, or too long.
    pub(crate) fn next(&mut self) -> Result<Option<(Value, u64)>, ImportError> {
        self.scan.value.clear();
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                // A value that was cut in the middle of the input absorbs all that follows.
                let is_broken = |error: serde_json::Error| !error.is_eof();
                let cut = &self.scan.value;
                if self.scan.brackets.is_inside()
                    && serde_json::from_slice::<Value>(cut).is_err_and(is_broken)
                {
                    parse(cut, self.scan.begins)?;
                }
                return Ok(None);
            }
            let (used, is_whole) = self.scan.take(bytes)?;
            self.input.consume(used);
            let begins = self.scan.begins;
            if is_whole {
                return Ok(Some((parse(&self.scan.value, begins)?, begins)));
            }
            if self.scan.value.len() > LONGEST {
                let reason = format!("a JSON value has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(begins, reason));
            }
        }
    }

    /// Returns whether the input ended within a value.
    pub(crate) const fn was_cut(&self) -> bool {
        self.scan.brackets.is_inside()
    }
}

fn parse(bytes: &[u8], begins: u64) -> Result<Value, ImportError> {
    serde_json::from_slice(bytes).map_err(|error| json_error(&error, begins, "invalid JSON"))
}

impl Scan {
    /// Takes bytes up to the end of a value; returns their number, and whether the value is
    /// complete.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), ImportError> {
        // Start of the value in these bytes.
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            self.line += u64::from(*byte == b'\n');
            if self.brackets.is_inside() {
                self.brackets.take(*byte);
                if !self.brackets.is_inside() {
                    self.value.extend_from_slice(&bytes[begin..=at]);
                    return Ok((at + 1, true));
                }
            } else if matches!(byte, b'{' | b'[') {
                (self.begins, begin) = (self.line, at);
                self.brackets.take(*byte);
            } else if !byte.is_ascii_whitespace()
                && *byte != b','
                && !BYTE_ORDER_MARK.contains(byte)
            {
                let reason = "a JSON object was expected here, one for each record";
                return Err(ImportError::at(self.line, reason));
            }
        }
        if self.brackets.is_inside() {
            self.value.extend_from_slice(&bytes[begin..]);
        }
        Ok((bytes.len(), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn values_one_by_one() {
        let text = "\u{feff}{\"a\": \"}\\\"{\"}{\"b\":\n[1]}\r\n\n[2],{}{\"cut";
        for size in [1, 8192] {
            let mut values = Values::new(Box::new(BufReader::with_capacity(size, text.as_bytes())));
            let all: Vec<_> = std::iter::from_fn(|| values.next().expect("JSON"))
                .map(|(value, line)| format!("{line} {value}"))
                .collect();
            assert_eq!(all, [r#"1 {"a":"}\"{"}"#, r#"1 {"b":[1]}"#, "4 [2]", "4 {}"]);
            assert!(values.was_cut());
        }
    }

    #[test]
    fn a_truncated_value_is_rejected_with_its_line() {
        let mut values = Values::new(Box::new("{}\n{\"a\": {\"b\": 1\n{}\n{}\n".as_bytes()));
        assert!(values.next().is_ok_and(|value| value.is_some()));
        let error = values.next().expect_err("it is refused").to_string();
        assert!(error.starts_with("line 3: invalid JSON"), "{error}");
    }

    #[test]
    fn a_text_between_values_is_rejected_with_its_line() {
        let mut values = Values::new(Box::new("{}\nhello {}".as_bytes()));
        assert!(values.next().is_ok_and(|value| value.is_some()));
        let error = values.next().expect_err("it is refused").to_string();
        assert_eq!(error, "line 2: a JSON object was expected here, one for each record");
    }
}
