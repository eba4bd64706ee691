//! The nesting of brackets in JSON, by which one value of a stream is found without parsing it.

use crate::error::ImportError;

/// A counter of open brackets.
#[derive(Debug, Default)]
pub(crate) struct Brackets {
    depth: u32,
    in_text: bool,
    escaped: bool,
}

impl Brackets {
    /// Returns whether a bracket is open.
    pub(crate) const fn is_inside(&self) -> bool {
        self.depth > 0
    }

    /// Takes the next byte; brackets in strings do not count.
    pub(crate) const fn take(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.in_text,
            b'"' => self.in_text = !self.in_text,
            b'{' | b'[' if !self.in_text => self.depth = self.depth.saturating_add(1),
            b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Creates the error of a value that begins in the line `begins` and cannot be parsed; `reason`
/// describes it.
pub(crate) fn json_error(error: &serde_json::Error, begins: u64, reason: &str) -> ImportError {
    let line = begins + u64::try_from(error.line()).unwrap_or(1).max(1) - 1;
    let text = error.to_string();
    let cause = text.split(" at line ").next().unwrap_or_default();
    ImportError::at(line, format!("{reason}: {cause}"))
}
