//! The reasons why an input cannot be read.

use std::{fmt, io};
use thiserror::Error;

/// The reason why an input cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The input is of no known kind.
    #[error("unknown kind of input: {found}; {}", nearest_words(.nearest))]
    UnknownKind {
        /// Description of the input.
        found: String,
        /// The nearest kinds, the nearest first.
        nearest: Vec<Nearest>,
    },
    /// The input does not fit its kind.
    #[error("{}{reason}", place(*.line))]
    Malformed {
        /// The line at fault, if it is known.
        line: Option<u64>,
        /// Expected and actual content.
        reason: String,
    },
    /// Another kind of input begins here; one of the two would be lost.
    #[error(
        "line {line}: from here on this looks like {begins}; the part before was read as {before}: split the file{}",
        because(.reason)
    )]
    TwoKinds {
        /// The first line of the second kind.
        line: u64,
        /// Kind of the second part.
        begins: String,
        /// Kind of the first part.
        before: String,
        /// The reason why the line cannot be read, if there is one.
        reason: Option<String>,
    },
    /// The input has no samples.
    #[error("it has no samples: {reason}")]
    Empty {
        /// Expected content.
        reason: String,
    },
    /// Inputs without a common time.
    #[error("{0}")]
    Times(String),
    /// The observation cannot be written.
    #[error("{0}")]
    Write(#[from] weir_observe::WriteError),
}

fn nearest_words(nearest: &[Nearest]) -> String {
    let all = "`weir observe kinds` lists what is read";
    if nearest.is_empty() {
        return format!("it resembles no kind; {all}");
    }
    let named: Vec<_> = nearest.iter().map(Nearest::to_string).collect();
    format!(
        "the nearest kinds are {}; {all}, and --as KIND reads it as one of them",
        named.join(", ")
    )
}

fn place(line: Option<u64>) -> String {
    line.map_or_else(String::new, |number| format!("line {number}: "))
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"))
}

impl ImportError {
    /// Creates an error in a line.
    pub(crate) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self::Malformed { line: Some(line), reason: reason.into() }
    }

    /// Returns whether the input is at fault, and not the system.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Write(_) => false,
            _ => true,
        }
    }

    /// Creates an error in the whole input.
    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Self::Malformed { line: None, reason: reason.into() }
    }
}

/// A kind that an input is near to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The name of the kind.
    pub kind: &'static str,
    /// Its signs that the input shows.
    pub has: Vec<String>,
    /// Its signs that the input lacks; none if only its values do not fit.
    pub lacks: Vec<String>,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (it has {}", self.kind, self.has.join(", "))?;
        match self.lacks.is_empty() {
            true => write!(f, ", but neither in a header nor in rows that are read)"),
            false => write!(f, ", but lacks {})", self.lacks.join(" and ")),
        }
    }
}
