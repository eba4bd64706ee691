//! The head and the rows of a result set.

use crate::error::ImportError;
use crate::number::{Style, is_missing};
use crate::table::{Fields, Table, plain};
use std::collections::VecDeque;

/// The head of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultSet {
    /// The line of text before it.
    pub(crate) title: Option<String>,
    /// Column names.
    pub(crate) columns: Vec<String>,
    plain: Vec<String>,
    pub(super) style: Style,
    pub(super) table: Option<Table>,
}

impl ResultSet {
    pub(super) fn new(title: Option<String>, columns: Vec<String>, table: Option<Table>) -> Self {
        let plain = columns.iter().map(|name| plain_name(name)).collect();
        Self { title, columns, plain, style: Style::default(), table }
    }

    /// Creates a head without rows, to detect its kind.
    pub(crate) fn of_columns(columns: Vec<String>) -> Self {
        Self::new(None, columns, None)
    }

    /// Returns the column with the first of these names that exists; names are in lower case
    /// without spaces and underscores.
    pub(crate) fn column(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.plain.iter().position(|own| own == name))
    }

    /// Returns whether there is a column with one of these names.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.column(names).is_some()
    }

    /// Returns the normalized names of its columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.plain.iter().map(String::as_str).enumerate()
    }
}

/// Normalizes a name: lower case, without spaces, underscores, brackets, dots and slashes.
fn plain_name(name: &str) -> String {
    plain(name).chars().filter(|c| !matches!(c, '.' | '/' | '(' | ')' | '@')).collect()
}

/// A complete result set of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet {
    /// Column names.
    pub columns: Vec<String>,
    /// Rows with a field per column; a missing field is empty.
    pub rows: Vec<Vec<String>>,
}

/// A row of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(super) fields: Fields,
    /// Line number; `None` in a document.
    pub(crate) line: Option<u64>,
}

impl Row {
    /// Creates a row from the fields of a query result.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if it does not fit its head.
    pub(crate) fn of_fields(fields: &[String], set: &ResultSet) -> Result<Self, ImportError> {
        let row = Self { fields: fields.iter().collect(), line: None };
        let (there, expected) = (row.fields.len(), set.columns.len());
        if there == expected {
            return Ok(row);
        }
        Err(row.wrong(format!("a row has {there} fields, but its header has {expected}")))
    }

    /// Returns the text of a field, or `None` if it is missing.
    pub(crate) fn text(&self, at: Option<usize>) -> Option<&str> {
        let text = self.fields.get(at?)?;
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(text);
        }
        (!is_missing(text)).then_some(text)
    }

    /// Returns the number in a field, or `None` if it is missing.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if the field is not a number.
    pub(crate) fn number(
        &self,
        set: &ResultSet,
        at: Option<usize>,
    ) -> Result<Option<f64>, ImportError> {
        let Some(text) = self.text(at) else { return Ok(None) };
        if let Some(number) = set.style.parse(text) {
            return Ok(Some(number));
        }
        let name = at.and_then(|at| set.columns.get(at)).map_or("", String::as_str);
        Err(self.wrong(format!("{name} is {text:?}, which is not a number")))
    }

    /// Creates an error of this row.
    pub(crate) fn wrong(&self, reason: String) -> ImportError {
        ImportError::Malformed { line: self.line, reason }
    }
}

/// A result set in a document.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) set: ResultSet,
    pub(super) rows: VecDeque<Vec<String>>,
}
