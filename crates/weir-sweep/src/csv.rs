//! Results as CSV.

use crate::error::SweepError;
use crate::results::Results;
use ::csv::{ReaderBuilder, Terminator, WriterBuilder};

/// Returns results as CSV with a header line.
#[must_use]
pub fn write(results: &Results) -> Vec<u8> {
    let mut writer =
        WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    let names = results.columns().all().iter().map(|column| column.name.as_str());
    // A vector takes every write, and all rows have the columns of the header.
    let _ = writer.write_record(names);
    for row in results.rows() {
        let _ = writer.write_record(row);
    }
    writer.into_inner().unwrap_or_default()
}

/// Reads results. `file` is their name in messages.
///
/// # Errors
///
/// [`SweepError::Results`] if the text is no CSV, or no results of a sweep.
pub fn read(file: &str, bytes: &[u8]) -> Result<Results, SweepError> {
    let wrong = |error: ::csv::Error| SweepError::Results {
        file: file.to_owned(),
        reason: format!("these are no results of weir sweep in CSV: {error}"),
    };
    let mut reader = ReaderBuilder::new().from_reader(bytes);
    let names = reader.headers().map_err(wrong)?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        rows.push(record.map_err(wrong)?.iter().map(str::to_owned).collect());
    }
    Results::read(file, names.iter(), rows)
}
