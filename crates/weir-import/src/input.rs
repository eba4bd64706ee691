//! The inputs of an import.

use crate::error::ImportError;
use crate::kind::{Bytes, Kind};

/// An input.
pub struct Input {
    /// Name of the input.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its kind, if the user states it.
    pub kind: Option<Kind>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("name", &self.name).field("kind", &self.kind).finish()
    }
}

/// An input that could not be read, and the reason.
pub type Failure = (String, ImportError);
