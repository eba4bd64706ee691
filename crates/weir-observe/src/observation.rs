//! A whole observation in memory.

use crate::columns::{Column, Note};
use crate::format::{Ending, ReadError, Reader, WriteError, Writer};
use crate::header::{Contents, Header, SeriesId};
use std::io::{Read, Write};
use weir_units::Instant;

/// A whole observation in memory, 8 bytes per value. For a long one use a [`Reader`], which reads
/// chunk by chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Entities and series, with those declared later in the file.
    pub header: Header,
    /// Time of each sample, ascending.
    pub times: Vec<Instant>,
    /// One column per series, each as long as `times`.
    pub columns: Vec<Column>,
    /// Remarks on the numbers.
    pub notes: Vec<Note>,
    /// The end of the file.
    pub ending: Ending,
}

impl Observation {
    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read. A file that is cut or damaged after its header is read
    /// up to there; [`Self::ending`] reports it.
    pub fn read(input: impl Read) -> Result<Self, ReadError> {
        let mut reader = Reader::open(input)?;
        let (mut times, mut columns) = (Vec::new(), Vec::<Column>::new());
        while let Some(chunk) = reader.next_chunk()? {
            // Series declared later are missing until then.
            columns.resize(chunk.columns.len(), Column::missing(times.len()));
            times.extend(&chunk.times);
            for (column, more) in columns.iter_mut().zip(&chunk.columns) {
                column.append(more);
            }
        }
        columns.resize(reader.contents().series.len(), Column::missing(times.len()));
        let (header, notes, ending) = reader.into_parts();
        Ok(Self { header, times, columns, notes, ending })
    }

    /// Writes the observation to a file, and returns the writer.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it is inconsistent or cannot be written.
    pub fn write<W: Write>(&self, out: W) -> Result<W, WriteError> {
        let mut writer = Writer::new(out, &self.header)?;
        for note in &self.notes {
            writer.note(note)?;
        }
        let mut row = Vec::new();
        for (sample, at) in self.times.iter().enumerate() {
            row.clear();
            row.extend(self.columns.iter().map(|column| column.get(sample)));
            writer.sample(*at, &row)?;
        }
        writer.finish(self.ending == Ending::Complete)
    }

    /// Returns the entities and series.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.header.contents
    }

    /// Returns the column of a series.
    #[must_use]
    pub fn column(&self, series: SeriesId) -> Option<&Column> {
        self.columns.get(series.0 as usize)
    }
}
