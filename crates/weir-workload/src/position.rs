//! Positions in job files.

use std::fmt;
use std::sync::Arc;

/// A position in a job file. Printed as `fiowrite.ini:7`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// The name under which the file was opened.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
