//! Passwords and tokens.

use crate::error::LiveError;
use std::fmt;
use std::fs;
use std::path::Path;

/// A password or a token, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, to be sent to the server only.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads the first line of a file.
    pub(crate) fn from_file(path: &Path) -> Result<Self, LiveError> {
        let text = fs::read_to_string(path)
            .map_err(|source| LiveError::Secret { path: path.to_owned(), source })?;
        let line = text.lines().next().unwrap_or_default().trim_end_matches('\r');
        if line.is_empty() {
            return Err(LiveError::EmptySecret { path: path.to_owned() });
        }
        Ok(Self(line.to_owned()))
    }

    /// Reads an environment variable; an empty one counts as unset.
    pub(crate) fn from_environment(name: &str) -> Option<Self> {
        std::env::var(name).ok().filter(|text| !text.is_empty()).map(Self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
