//! Rows as CSV, one after the other.

use crate::error::FleetError;
use crate::row::Row;
use csv::{DeserializeRecordsIntoIter, ReaderBuilder, Terminator, Writer, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

/// Results that are being written.
#[derive(Debug)]
pub struct Results<W: Write>(Writer<W>);

impl<W: Write> Results<W> {
    /// Begins results; the header is written with the first row.
    pub fn new(out: W) -> Self {
        Self(WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(out))
    }

    /// Writes a row.
    ///
    /// # Errors
    ///
    /// The failure of the output.
    pub fn row(&mut self, row: &Row) -> std::io::Result<()> {
        self.0.serialize(row).map_err(Into::into)
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// The failure of the output.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Results that are being read.
pub struct Rows {
    name: String,
    rows: DeserializeRecordsIntoIter<BufReader<File>, Row>,
    last: Option<u64>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rows {
    /// Opens results.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if there is no such file.
    pub fn open(path: &Path) -> Result<Self, FleetError> {
        let file = File::open(path).map_err(FleetError::read(path))?;
        let rows = ReaderBuilder::new().from_reader(BufReader::new(file)).into_deserialize();
        Ok(Self { name: path.display().to_string(), rows, last: None })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> FleetError {
        let reason = format!("these are no results of weir diagnose --fleet: {reason}");
        FleetError::Results { file: self.name.clone(), reason }
    }
}

impl Iterator for Rows {
    type Item = Result<Row, FleetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match self.rows.next()? {
            Ok(row) => row,
            Err(error) => return Some(Err(self.wrong(error))),
        };
        if self.last.is_some_and(|last| last >= row.observation) {
            let words = format!(
                "the row of observation {} follows that of {}; rows have the order of the \
                 observations, each once",
                row.observation,
                self.last.unwrap_or(0)
            );
            return Some(Err(self.wrong(words)));
        }
        self.last = Some(row.observation);
        Some(Ok(row))
    }
}
