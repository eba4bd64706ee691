//! Rows as CSV, one after the other.

use crate::error::FleetError;
use crate::row::Row;
use csv::{
    DeserializeRecordsIntoIter, ReaderBuilder, StringRecord, Terminator, Writer, WriterBuilder,
};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

/// The columns in order: the fields of [`Row`].
pub const COLUMNS: [&str; 28] = [
    "fleet",
    "observations",
    "observation",
    "server",
    "day",
    "file",
    "status",
    "reason",
    "verdict",
    "summary",
    "subject",
    "cap",
    "limit",
    "limit_is_bytes",
    "throttled_s",
    "wait_s",
    "waits",
    "samples",
    "span_s",
    "operations",
    "iops",
    "throughput_bytes_per_s",
    "latency_mean_ns",
    "latency_histogram",
    "fix",
    "fix_price_before",
    "fix_price_after",
    "currency",
];

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
    /// [`FleetError`] if there is no such file, or it has other columns.
    pub fn open(path: &Path) -> Result<Self, FleetError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(FleetError::read(path))?;
        let mut reader = ReaderBuilder::new().from_reader(BufReader::new(file));
        let header = reader.headers().map_err(|error| wrong(&name, error))?;
        // An empty file has no rows.
        if !header.is_empty() {
            check_header(header).map_err(|reason| wrong(&name, reason))?;
        }
        Ok(Self { name, rows: reader.into_deserialize(), last: None })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn wrong(&self, reason: impl Display) -> FleetError {
        wrong(&self.name, reason)
    }
}

fn wrong(file: &str, reason: impl Display) -> FleetError {
    let reason = format!("these are no results of weir diagnose --fleet: {reason}");
    FleetError::Results { file: file.to_owned(), reason }
}

/// Refuses a header that has not exactly the columns of a row.
fn check_header(header: &StringRecord) -> Result<(), String> {
    if header.iter().eq(COLUMNS) {
        return Ok(());
    }
    if let Some(own) = COLUMNS.iter().find(|own| !header.iter().any(|found| found == **own)) {
        return Err(format!("the column {own:?} is missing"));
    }
    if let Some(found) = header.iter().find(|found| !COLUMNS.contains(found)) {
        return Err(format!("the column {found:?} is not part of them"));
    }
    Err("the columns are in another order, or one is there twice".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_fields_of_a_row() {
        let mut bytes = Vec::new();
        let mut results = Results::new(&mut bytes);
        results.row(&Row::default()).expect("a row");
        results.finish().expect("results");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.lines().next(), Some(&*COLUMNS.join(",")));
        let check = |columns: &[&str], expect: Result<(), String>| {
            assert_eq!(check_header(&StringRecord::from(columns)), expect);
        };
        check(&COLUMNS, Ok(()));
        check(&COLUMNS[1..], Err("the column \"fleet\" is missing".to_owned()));
        let more = [&COLUMNS[..], &["x"]].concat();
        check(&more, Err("the column \"x\" is not part of them".to_owned()));
        let twice = [&COLUMNS[..], &["fleet"]].concat();
        check(&twice, Err("the columns are in another order, or one is there twice".to_owned()));
    }
}
