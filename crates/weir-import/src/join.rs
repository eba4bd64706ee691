//! Several sheets side by side in one observation. Entities with the same kind, name and parent
//! are one.

use crate::sheet::Sheet;
use std::collections::HashMap;
use std::io::Write;
use weir_observe::columns::Note;
use weir_observe::format::{WriteError, Writer};
use weir_observe::header::{Contents, EntityId, SeriesId};
use weir_units::Instant;

/// The entities and columns of a sheet in the observation.
#[derive(Debug, Default)]
pub(crate) struct Places {
    series: Vec<SeriesId>,
    entities: Vec<EntityId>,
}

/// A writer of several sheets into one observation.
#[derive(Debug)]
pub(crate) struct Join<W: Write> {
    writer: Writer<W>,
    contents: Contents,
    entities: HashMap<(String, String, Option<EntityId>), EntityId>,
    series: HashMap<(EntityId, String), SeriesId>,
    row: Vec<Option<i64>>,
    samples: u64,
}

impl<W: Write> Join<W> {
    /// Creates a join into `writer`, whose header has no entities yet.
    pub(crate) fn new(writer: Writer<W>) -> Self {
        Self {
            writer,
            contents: Contents::default(),
            entities: HashMap::new(),
            series: HashMap::new(),
            row: Vec::new(),
            samples: 0,
        }
    }

    /// Declares the new entities and series of a sheet.
    pub(crate) fn declare(&mut self, sheet: &Sheet, places: &mut Places) -> Result<(), WriteError> {
        let own = sheet.contents();
        if places.entities.len() == own.entities.len() && places.series.len() == own.series.len() {
            return Ok(());
        }
        let (entities, series) = (self.contents.entities.len(), self.contents.series.len());
        for entity in &own.entities[places.entities.len()..] {
            let mut entity = entity.clone();
            entity.parent = entity.parent.map(|parent| places.entities[parent.0 as usize]);
            let key = (entity.kind.name().to_owned(), entity.name.clone(), entity.parent);
            let contents = &mut self.contents;
            let id = *self.entities.entry(key).or_insert_with(|| contents.add_entity(entity));
            places.entities.push(id);
        }
        for series in &own.series[places.series.len()..] {
            let mut series = series.clone();
            series.entity = places.entities[series.entity.0 as usize];
            let key = (series.entity, series.metric.clone());
            let (contents, row) = (&mut self.contents, &mut self.row);
            let id = *self.series.entry(key).or_insert_with(|| {
                row.push(None);
                contents.add_series(series)
            });
            places.series.push(id);
        }
        let more = Contents {
            entities: self.contents.entities[entities..].to_vec(),
            series: self.contents.series[series..].to_vec(),
        };
        if more.entities.is_empty() && more.series.is_empty() {
            return Ok(());
        }
        self.writer.declare(&more)
    }

    /// Takes the values of a sheet, except for series that already have one in this sample.
    pub(crate) fn take(&mut self, row: &[Option<i64>], places: &Places) {
        for (value, id) in row.iter().zip(&places.series) {
            if let Some(value) = value {
                self.row[id.0 as usize].get_or_insert(*value);
            }
        }
    }

    /// Returns the values taken for the next sample, with their contents.
    pub(crate) fn present(&self) -> (&Contents, &[Option<i64>]) {
        (&self.contents, &self.row)
    }

    /// Writes the values taken as the sample of this time.
    pub(crate) fn write(&mut self, at: Instant) -> Result<(), WriteError> {
        self.samples += 1;
        self.writer.sample(at, &self.row)?;
        self.row.iter_mut().for_each(|value| *value = None);
        Ok(())
    }

    /// Writes a row without values. It is no sample: it starts the interval of the rates that
    /// follow.
    pub(crate) fn write_nothing(&mut self, at: Instant) -> Result<(), WriteError> {
        self.writer.sample(at, &vec![None; self.row.len()])
    }

    /// Returns the numbers of samples, entities and series.
    pub(crate) fn counts(&self) -> (u64, usize, usize) {
        (self.samples, self.contents.entities.len(), self.contents.series.len())
    }

    /// Appends a note.
    pub(crate) fn note(&mut self, note: &Note) -> Result<(), WriteError> {
        self.writer.note(note)
    }

    /// Flushes the file; see [`Writer::flush`].
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Finishes the file; see [`Writer::finish`].
    pub(crate) fn finish(self, complete: bool) -> Result<W, WriteError> {
        self.writer.finish(complete)
    }
}
