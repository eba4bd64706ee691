//! Values by sample: columns, chunks of them, and notes.

use crate::header::SeriesId;
use weir_units::Instant;

/// The representation of a missing value; no value can be this.
const MISSING: i64 = i64::MIN;

/// The values of a series, one per sample; any may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column(Vec<i64>);

impl Column {
    /// The number that stands for a missing value in [`Self::into_values`].
    pub const MISSING: i64 = MISSING;

    /// Returns the values without a copy; [`Self::MISSING`] stands for a missing one.
    #[must_use]
    pub fn into_values(self) -> Vec<i64> {
        self.0
    }

    /// Creates a column of missing values.
    #[must_use]
    pub fn missing(samples: usize) -> Self {
        Self(vec![MISSING; samples])
    }

    /// Appends a value. `i64::MIN` counts as missing.
    pub fn push(&mut self, value: Option<i64>) {
        self.0.push(value.unwrap_or(MISSING));
    }

    /// Returns the value of a sample.
    #[must_use]
    pub fn get(&self, sample: usize) -> Option<i64> {
        self.0.get(sample).copied().filter(|value| *value != MISSING)
    }

    /// Returns the values in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        self.0.iter().map(|value| Some(*value).filter(|value| *value != MISSING))
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Empties the column and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }
}

impl FromIterator<Option<i64>> for Column {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(values: I) -> Self {
        Self(values.into_iter().map(|value| value.unwrap_or(MISSING)).collect())
    }
}

/// Consecutive samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Time of each sample, ascending.
    pub times: Vec<Instant>,
    /// One column per series known so far, in their order.
    pub columns: Vec<Column>,
}

impl Chunk {
    /// Returns the column of a series; `None` if it is declared later.
    #[must_use]
    pub fn column(&self, series: SeriesId) -> Option<&Column> {
        self.columns.get(series.0 as usize)
    }

    /// Copies the values of a sample into `row`, in the order of the series.
    pub fn row(&self, sample: usize, row: &mut Vec<Option<i64>>) {
        row.clear();
        row.extend(self.columns.iter().map(|column| column.get(sample)));
    }
}

/// A remark on the numbers: a restart, a gap, skipped input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Note {
    /// Time in nanoseconds from the start.
    pub at_ns: u64,
    /// Text of the remark.
    pub text: String,
}
