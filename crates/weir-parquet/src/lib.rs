//! Tables of numbers and texts as Apache Parquet.
//!
//! This crate knows nothing of Weir: its tables are columns with names, and callers decide what they
//! mean. Every column is optional, so a value may be missing. A file does not depend on the time or the
//! machine: equal tables are equal files.
//!
//! | module | holds |
//! |---|---|
//! | [`write`](mod@write) | [`Writer`] |
//! | [`read`](mod@read) | [`read()`], for tables that fit into memory |
//! | [`scan`] | [`Scan`], column by column, for larger ones |

#![forbid(unsafe_code)]

pub mod read;
pub mod scan;
pub mod write;

pub use parquet::data_type::{DoubleType, Int64Type};
pub use read::read;
pub use scan::Scan;
pub use write::Writer;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers (`INT64`).
    Whole,
    /// Numbers (`DOUBLE`).
    Number,
    /// Texts (`STRING`).
    Text,
    /// Microseconds since 1970 in UTC (`TIMESTAMP(MICROS)`). Spark reads no nanoseconds.
    Time,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Of [`Kind::Whole`] or [`Kind::Time`].
    Whole(Vec<Option<i64>>),
    /// Of [`Kind::Number`].
    Number(Vec<Option<f64>>),
    /// Of [`Kind::Text`].
    Text(Vec<Option<String>>),
    /// Of [`Kind::Text`], for few texts that many rows repeat.
    Labels(Vec<Option<Label>>),
}

/// A text that is cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Label(pub(crate) parquet::data_type::ByteArray);

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Label {
    /// Returns the text; `None` if it is not UTF-8, as in a damaged file.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_utf8().ok()
    }
}

impl Values {
    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(all) => all.len(),
            Self::Number(all) => all.len(),
            Self::Text(all) => all.len(),
            Self::Labels(all) => all.len(),
        }
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A failure of the format or of the file.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A file that cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A column of a type that Weir does not write.
    #[error("column {column:?} has the type {kind}; expected whole numbers, doubles or texts")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// Values that are no rows of the table.
    #[error("a row group has {found} columns of values that fit, and the table has {expected}")]
    Shape {
        /// The columns whose type and length fit.
        found: usize,
        /// The columns of the table.
        expected: usize,
    },
}
