//! Several observations as one, sample by sample.
//!
//! iostat watched the disks and SQL Server counted its files, at the same time: whoever is in
//! both, of one kind and name, is one entity, and samples come in the order of their times. Where
//! all say when they began, times are those of the clock; else all begin together.

use crate::format::{ReadError, Reader};
use crate::header::{Contents, EntityId, Header, SeriesId};
use crate::observation::Chunk;
use std::collections::HashMap;
use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::thread;
use weir_units::Instant;

/// The chunks of an observation, one by one.
pub type Chunks = Box<dyn FnMut() -> Result<Option<Chunk>, ReadError>>;

/// The chunks of a reader, which a thread of its own decodes ahead.
#[must_use]
pub fn ahead<R: Read + Send + 'static>(mut reader: Reader<R>) -> Chunks {
    let (send, receive) = sync_channel(AHEAD);
    thread::spawn(move || {
        loop {
            let next = reader.next_chunk();
            let is_last = !matches!(next, Ok(Some(_)));
            // Who wants no more chunks has gone.
            if send.send(next).is_err() || is_last {
                return;
            }
        }
    });
    Box::new(move || receive.recv().unwrap_or(Ok(None)))
}

/// So many chunks are decoded ahead.
const AHEAD: usize = 1;

/// Observations that are read side by side.
pub struct Joined {
    contents: Contents,
    start_unix_ns: Option<i64>,
    parts: Vec<Part>,
    notes: Vec<String>,
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joined").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

struct Part {
    chunks: Chunks,
    chunk: Option<Chunk>,
    /// The next sample of the chunk.
    at: usize,
    /// How much later than the first it begins.
    offset_ns: u64,
    /// The place of each of its series in a row; nothing if another says the same.
    places: Vec<Option<usize>>,
}

impl Joined {
    /// Joins observations whose headers are known, with all that is declared on the way.
    #[must_use]
    pub fn new(parts: Vec<(Header, Chunks)>) -> Self {
        let starts: Option<Vec<i64>> =
            parts.iter().map(|(header, _)| header.start_unix_ns).collect();
        let first = starts.as_ref().and_then(|starts| starts.iter().min().copied());
        let mut joined = Self {
            contents: Contents::default(),
            start_unix_ns: first,
            parts: Vec::new(),
            notes: Vec::new(),
        };
        let mut names = Names::default();
        for (header, chunks) in parts {
            let offset = first.zip(header.start_unix_ns).map_or(0, |(first, own)| own - first);
            let (places, doubled) = names.add(&mut joined.contents, &header.contents);
            if doubled > 0 {
                joined.notes.push(format!(
                    "{doubled} series are in several of the observations; those of the first are \
                     taken"
                ));
            }
            let offset_ns = u64::try_from(offset).unwrap_or(0);
            joined.parts.push(Part { chunks, chunk: None, at: 0, offset_ns, places });
        }
        if starts.is_none() && joined.parts.len() > 1 {
            joined.notes.push(
                "not all of the observations say when they began: they are taken to have begun \
                 together"
                    .to_owned(),
            );
        }
        joined
    }

    /// Who and what is in them.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The moment that times count from, if all say it.
    #[must_use]
    pub const fn start_unix_ns(&self) -> Option<i64> {
        self.start_unix_ns
    }

    /// What a reader should know.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The next sample: its values are put into `row`, in the order of the series.
    ///
    /// # Errors
    ///
    /// The index of the observation and [`ReadError`] if it cannot be read.
    pub fn next_sample(
        &mut self,
        row: &mut Vec<Option<i64>>,
    ) -> Result<Option<Instant>, (usize, ReadError)> {
        let mut first: Option<Instant> = None;
        for (index, part) in self.parts.iter_mut().enumerate() {
            let next = part.next().map_err(|source| (index, source))?;
            first = match (first, next) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        let Some(first) = first else { return Ok(None) };
        row.clear();
        row.resize(self.contents.series.len(), None);
        for part in &mut self.parts {
            if part.time() == Some(first) {
                part.take(row);
            }
        }
        Ok(Some(first))
    }
}

impl Part {
    /// When its next sample is, which is in the chunk then.
    fn next(&mut self) -> Result<Option<Instant>, ReadError> {
        while self.chunk.as_ref().is_none_or(|chunk| self.at >= chunk.times.len()) {
            self.at = 0;
            self.chunk = (self.chunks)()?;
            if self.chunk.is_none() {
                return Ok(None);
            }
        }
        Ok(self.time())
    }

    fn time(&self) -> Option<Instant> {
        let at = self.chunk.as_ref()?.times.get(self.at)?;
        Some(Instant::from_nanos(at.nanos().saturating_add(self.offset_ns)))
    }

    fn take(&mut self, row: &mut [Option<i64>]) {
        let Some(chunk) = &self.chunk else { return };
        for (column, place) in chunk.columns.iter().zip(&self.places) {
            if let Some(place) = place {
                row[*place] = column.get(self.at);
            }
        }
        self.at += 1;
    }
}

/// Entities by kind, name and parent; series by entity and metric.
#[derive(Debug, Default)]
struct Names {
    entities: HashMap<(String, String, Option<EntityId>), EntityId>,
    series: HashMap<(EntityId, String), SeriesId>,
}

impl Names {
    /// Adds those of `own` that are not there yet; returns the places of its series, and how
    /// many were there already.
    fn add(&mut self, all: &mut Contents, own: &Contents) -> (Vec<Option<usize>>, usize) {
        let mut ids: Vec<EntityId> = Vec::new();
        for entity in &own.entities {
            let parent = entity.parent.and_then(|parent| ids.get(parent.0 as usize)).copied();
            let key = (entity.kind.name().to_owned(), entity.name.clone(), parent);
            let id = *self.entities.entry(key).or_insert_with(|| {
                all.add_entity(crate::header::Entity { parent, ..entity.clone() })
            });
            let known = &mut all.entities[id.0 as usize].attributes;
            for (name, value) in &entity.attributes {
                known.entry(name.clone()).or_insert_with(|| value.clone());
            }
            ids.push(id);
        }
        let mut doubled = 0;
        let mut places = Vec::new();
        for series in &own.series {
            let entity = ids[series.entity.0 as usize];
            let key = (entity, series.metric.clone());
            if self.series.contains_key(&key) {
                doubled += 1;
                places.push(None);
                continue;
            }
            let id = all.add_series(crate::header::Series { entity, ..series.clone() });
            self.series.insert(key, id);
            places.push(Some(id.0 as usize));
        }
        (places, doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Writer;
    use crate::header::{EntityKind, Source, SourceKind};
    use crate::import::{Sheet, measure as m};
    use std::collections::BTreeMap;
    use weir_units::Span;

    /// An observation of one disk of a host, from a second of the clock on.
    fn observation(start_s: Option<i64>, disk: &str, reads: &[(u64, i64)]) -> (Header, Chunks) {
        let mut sheet = Sheet::default();
        let host = sheet.entity(EntityKind::Host, "host", None);
        let entity = sheet.entity(EntityKind::Volume, disk, Some(host));
        sheet.series(entity, &m::READS);
        let about = BTreeMap::new();
        let kind = SourceKind::Other("test".to_owned());
        let mut header = Header::new(Source { kind, by: "test".to_owned(), about });
        header.start_unix_ns = start_s.map(|second| second * 1_000_000_000);
        header.contents = sheet.contents().clone();
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        for (second, value) in reads {
            let at = Instant::ZERO + Span::from_secs(*second);
            writer.sample(at, &[Some(*value)]).unwrap();
        }
        let bytes = writer.finish(true).unwrap();
        (header, ahead(Reader::open(std::io::Cursor::new(bytes)).unwrap()))
    }

    fn rows(parts: Vec<(Header, Chunks)>) -> Vec<(u64, Vec<Option<i64>>)> {
        let mut joined = Joined::new(parts);
        let (mut row, mut all) = (Vec::new(), Vec::new());
        while let Some(at) = joined.next_sample(&mut row).unwrap() {
            all.push((at.nanos() / 1_000_000_000, row.clone()));
        }
        all
    }

    #[test]
    fn samples_come_in_the_order_of_the_clock() {
        let one = observation(Some(100), "a", &[(0, 1), (10, 2)]);
        let other = observation(Some(105), "b", &[(0, 7), (5, 8)]);
        let expect =
            vec![(0, vec![Some(1), None]), (5, vec![None, Some(7)]), (10, vec![Some(2), Some(8)])];
        assert_eq!(rows(vec![one, other]), expect);
    }

    #[test]
    fn who_is_in_both_is_one_and_counts_once() {
        let one = || observation(None, "a", &[(0, 1), (1, 2)]);
        assert_eq!(rows(vec![one(), one()]), [(0, vec![Some(1)]), (1, vec![Some(2)])]);
        assert_eq!(Joined::new(vec![one(), one()]).notes().len(), 2);
    }
}
