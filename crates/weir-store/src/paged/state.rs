//! The state of a page, as a mark in maps and files.

use super::map::{Mark, NONE};

/// The state of a page in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing: look below.
    Absent,
    /// Its bytes are here.
    Data,
    /// It reads as zeros, whatever is below.
    Zero,
}

impl State {
    /// Returns the state as a mark and in the files.
    pub(crate) const fn mark(self) -> Mark {
        match self {
            Self::Absent => NONE,
            Self::Data => 1,
            Self::Zero => 2,
        }
    }

    /// Returns the state of a mark; an unknown one counts as absent.
    pub(crate) fn from_mark(mark: Mark) -> Self {
        match mark {
            1 => Self::Data,
            2 => Self::Zero,
            _ => Self::Absent,
        }
    }
}
