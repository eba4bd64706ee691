//! Several observations as one, sample by sample.
//!
//! If iostat observed the disks while SQL Server counted its files, an entity with the same kind
//! and name in both is one entity. Samples are merged by time. An entity without a host belongs to
//! the only host that other observations name. If every observation has a start time, times are
//! those of the clock; otherwise all start together.

use crate::attribute;
use crate::columns::Chunk;
use crate::format::{ReadError, Reader};
use crate::header::{Attribute, Contents, Entity, EntityId, EntityKind, Header, SeriesId};
use crate::times::{Times, in_seconds};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::thread;
use weir_units::{Instant, Span};

/// A source of chunks that returns the next one at each call.
pub type Chunks = Box<dyn FnMut() -> Result<Option<Chunk>, ReadError>>;

/// Returns the chunks of a reader, decoded ahead by a thread of its own.
#[must_use]
pub fn ahead<R: Read + Send + 'static>(mut reader: Reader<R>) -> Chunks {
    let (send, receive) = sync_channel(AHEAD);
    thread::spawn(move || {
        loop {
            let next = reader.next_chunk();
            let is_last = !matches!(next, Ok(Some(_)));
            // The receiver was dropped.
            if send.send(next).is_err() || is_last {
                return;
            }
        }
    });
    Box::new(move || receive.recv().unwrap_or(Ok(None)))
}

/// The number of chunks decoded ahead.
const AHEAD: usize = 1;

/// Consecutive samples with a value for each series.
#[derive(Debug, Clone, Default)]
pub struct Block {
    times: Vec<Instant>,
    /// The values of all samples, one sample after the other.
    values: Vec<Option<i64>>,
    width: usize,
}

impl Block {
    /// The number of samples worth reading at a time.
    pub const MOST: usize = 64;

    /// Creates an empty block for `width` series.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Returns whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Removes all samples.
    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
    }

    /// Adds a sample. Values that `row` lacks are missing.
    pub fn push(&mut self, at: Instant, row: impl IntoIterator<Item = Option<i64>>) {
        self.times.push(at);
        self.values.extend(row.into_iter().take(self.width));
        self.values.resize(self.times.len() * self.width, None);
    }

    /// Returns the samples in order: the time, and the values of all series.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &[Option<i64>])> + Clone {
        let rows = self.values.chunks_exact(self.width.max(1));
        self.times.iter().copied().zip(rows.chain(std::iter::repeat(&[][..])))
    }

    fn row_mut(&mut self, sample: usize) -> &mut [Option<i64>] {
        &mut self.values[sample * self.width..(sample + 1) * self.width]
    }
}

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
    /// Its name in notes.
    name: String,
    /// The times of the samples read so far.
    times: Times,
    chunks: Chunks,
    chunk: Option<Chunk>,
    /// Index of the next sample in the chunk.
    at: usize,
    /// Its start relative to that of the first observation.
    offset_ns: u64,
    /// The column of each of its series in a row; `None` if an earlier observation has the series.
    places: Vec<Option<usize>>,
}

impl Joined {
    /// Joins observations with their headers, which have all declarations of the file.
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
        let mut names = Names { only_host: only_host(&parts), ..Names::default() };
        for (place, (header, chunks)) in parts.into_iter().enumerate() {
            let offset = first.zip(header.start_unix_ns).map_or(0, |(first, own)| own - first);
            let offset_ns = u64::try_from(offset).unwrap_or(0);
            let own = later(header.contents, offset_ns);
            let (places, doubled) = names.add(&mut joined.contents, &own);
            let said = header.source.about.get("inputs").cloned();
            let name = said.unwrap_or_else(|| format!("observation {}", place + 1));
            if let Some(shared) = names.told_shared() {
                joined.notes.push(shared);
            }
            if doubled > 0 {
                joined.notes.push(format!(
                    "{doubled} series are in several of the observations; those of the first are \
                     used"
                ));
            }
            let times = Times::default();
            joined.parts.push(Part { name, times, chunks, chunk: None, at: 0, offset_ns, places });
        }
        if starts.is_none() && joined.parts.len() > 1 {
            joined.notes.push(
                "not all of the observations state their start: they are assumed to have started \
                 together"
                    .to_owned(),
            );
        }
        joined
    }

    /// Returns the joined entities and series.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns the moment that times count from, if every observation has it.
    #[must_use]
    pub const fn start_unix_ns(&self) -> Option<i64> {
        self.start_unix_ns
    }

    /// Returns what a reader should know. Notes on times cover the samples read so far.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.start_unix_ns.is_some() {
            notes.extend(self.apart());
        }
        let gaps = |part: &Part| Some(format!("{}: {}", part.name, part.times.gaps()?));
        notes.extend(self.parts.iter().filter_map(gaps));
        notes
    }

    /// Lists observations that start long after the earlier ones have ended.
    fn apart(&self) -> Vec<String> {
        let extent = |part: &Part| {
            let (first, last) = part.times.extent()?;
            let offset = Span::from_nanos(part.offset_ns);
            Some((first + offset, last + offset, part.name.clone()))
        };
        let mut all: Vec<_> = self.parts.iter().filter_map(extent).collect();
        all.sort();
        let mut notes = Vec::new();
        let mut latest: Option<(Instant, String)> = None;
        for (first, last, name) in all {
            if let Some((end, before)) = &latest
                && first.since(*end) > Times::LONG
            {
                let apart = in_seconds(first.since(*end));
                notes.push(format!(
                    "{name} begins {apart} after the end of {before}: they were not observed at \
                     the same time and cannot be compared"
                ));
            }
            if latest.as_ref().is_none_or(|(end, _)| *end < last) {
                latest = Some((last, name));
            }
        }
        notes
    }

    /// Replaces `block` by the next samples: at most `most`, and none at the end.
    ///
    /// # Errors
    ///
    /// The index of the observation and [`ReadError`] if it cannot be read.
    pub fn next_block(&mut self, most: usize, block: &mut Block) -> Result<(), (usize, ReadError)> {
        block.clear();
        block.width = self.contents.series.len();
        if let [only] = &mut self.parts[..] {
            return only.take_all(most, block).map_err(|source| (0, source));
        }
        while block.len() < most && self.take_next(block)? {}
        Ok(())
    }

    /// Appends the next sample; returns false at the end.
    fn take_next(&mut self, block: &mut Block) -> Result<bool, (usize, ReadError)> {
        let mut first: Option<Instant> = None;
        for (index, part) in self.parts.iter_mut().enumerate() {
            let next = part.next().map_err(|source| (index, source))?;
            first = match (first, next) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        let Some(first) = first else { return Ok(false) };
        block.push(first, []);
        let sample = block.len() - 1;
        for part in &mut self.parts {
            if part.time() == Some(first) {
                part.take(1, sample, block);
            }
        }
        Ok(true)
    }
}

impl Part {
    /// Returns the time of the next sample, and loads its chunk.
    fn next(&mut self) -> Result<Option<Instant>, ReadError> {
        while self.chunk.as_ref().is_none_or(|chunk| self.at >= chunk.times.len()) {
            self.at = 0;
            self.chunk = (self.chunks)()?;
            let Some(chunk) = &self.chunk else { return Ok(None) };
            self.times.take(&chunk.times);
        }
        Ok(self.time())
    }

    fn time(&self) -> Option<Instant> {
        let at = self.chunk.as_ref()?.times.get(self.at)?;
        Some(Instant::from_nanos(at.nanos().saturating_add(self.offset_ns)))
    }

    /// Appends samples until the end of the chunk.
    fn take_all(&mut self, most: usize, block: &mut Block) -> Result<(), ReadError> {
        if self.next()?.is_none() {
            return Ok(());
        }
        let times = self.chunk.iter().flat_map(|chunk| &chunk.times[self.at..]);
        for at in times.take(most) {
            block.push(Instant::from_nanos(at.nanos().saturating_add(self.offset_ns)), []);
        }
        let count = block.len();
        self.take(count, 0, block);
        Ok(())
    }

    /// Copies its next samples into those of a block from `first` on.
    fn take(&mut self, count: usize, first: usize, block: &mut Block) {
        let Some(chunk) = &self.chunk else { return };
        for (column, place) in chunk.columns.iter().zip(&self.places) {
            let Some(place) = place else { continue };
            for sample in 0..count {
                block.row_mut(first + sample)[*place] = column.get(self.at + sample);
            }
        }
        self.at += count;
    }
}

/// Shifts the times in attributes by the offset to the first observation.
fn later(mut contents: Contents, offset_ns: u64) -> Contents {
    for entity in &mut contents.entities {
        if let Some(Attribute::Number(since)) = entity.attributes.get_mut(attribute::IDLE_SINCE_NS)
        {
            *since = since.saturating_add(offset_ns);
        }
    }
    contents
}

/// Entities by kind, name and parent; series by entity and metric.
#[derive(Debug, Default)]
struct Names {
    /// The host of entities that name none.
    only_host: Option<String>,
    /// Entities with I/O that an earlier observation has too.
    shared: BTreeSet<String>,
    entities: HashMap<(String, String, Option<EntityId>), EntityId>,
    series: HashMap<(EntityId, String), SeriesId>,
}

impl Names {
    /// Adds the entities and series of `own` that are new. Returns the columns of its series, and
    /// the number that existed already.
    fn add(&mut self, all: &mut Contents, own: &Contents) -> (Vec<Option<usize>>, usize) {
        let mut ids: Vec<EntityId> = Vec::new();
        for entity in &own.entities {
            let parent = entity.parent.and_then(|parent| ids.get(parent.0 as usize)).copied();
            let parent = parent.or_else(|| self.host_of(all, entity));
            let name = self.only_host.as_ref().filter(|_| is_nameless(entity));
            let name = name.unwrap_or(&entity.name).clone();
            let id = self.entity(all, Entity { name, parent, ..entity.clone() });
            let known = &mut all.entities[id.0 as usize].attributes;
            for (name, value) in &entity.attributes {
                known.entry(name.clone()).or_insert_with(|| value.clone());
            }
            ids.push(id);
        }
        let mut doubled = 0;
        let mut places = Vec::new();
        let of_others: BTreeSet<EntityId> = all.series.iter().map(|series| series.entity).collect();
        for series in &own.series {
            let entity = ids[series.entity.0 as usize];
            let known = all.entity(entity).filter(|_| of_others.contains(&entity));
            self.shared.extend(known.filter(|own| does_io(own)).map(|own| own.name.clone()));
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

    fn entity(&mut self, all: &mut Contents, entity: Entity) -> EntityId {
        let key = (entity.kind.name().to_owned(), entity.name.clone(), entity.parent);
        *self.entities.entry(key).or_insert_with(|| all.add_entity(entity))
    }

    /// Describes the entities found in more than one observation since the last call.
    fn told_shared(&mut self) -> Option<String> {
        let shared = std::mem::take(&mut self.shared);
        let names: Vec<_> = shared.iter().take(MOST_NAMES).cloned().collect();
        let more = match shared.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!shared.is_empty()).then(|| {
            format!(
                "in several of the observations: {}{more}; if one of them has counters, the rates \
                 of the others are not used",
                names.join(", ")
            )
        })
    }

    /// Returns the only host, for an entity on an unnamed one.
    fn host_of(&mut self, all: &mut Contents, entity: &Entity) -> Option<EntityId> {
        let is_on_host = does_io(entity) || entity.kind == EntityKind::Database;
        let name = self.only_host.clone().filter(|_| is_on_host)?;
        let (kind, parent, attributes) = (EntityKind::Host, None, BTreeMap::new());
        Some(self.entity(all, Entity { kind, name, parent, attributes }))
    }
}

/// The most names listed in a note.
const MOST_NAMES: usize = 8;

fn does_io(entity: &Entity) -> bool {
    matches!(entity.kind, EntityKind::Stripe | EntityKind::Volume | EntityKind::File)
}

/// The name of a host whose name is unknown.
const NAMELESS: &str = "host";

fn is_nameless(entity: &Entity) -> bool {
    entity.kind == EntityKind::Host && (entity.name.is_empty() || entity.name == NAMELESS)
}

/// Returns the only host name in several observations.
fn only_host(parts: &[(Header, Chunks)]) -> Option<String> {
    let entities = || parts.iter().flat_map(|(header, _)| &header.contents.entities);
    let mut hosts: Vec<&Entity> = entities().filter(|own| own.kind == EntityKind::Host).collect();
    if hosts.iter().any(|host| !is_nameless(host)) {
        hosts.retain(|host| !is_nameless(host));
    }
    let only = hosts.first().filter(|_| parts.len() > 1)?;
    hosts.iter().all(|host| host.name == only.name).then(|| only.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Writer;
    use crate::header::{Source, SourceKind};
    use crate::metric::{self as m, Metric};

    /// Returns an observation of one disk of a host, starting at a second of the clock.
    fn observation(start_s: Option<i64>, disk: &str, reads: &[(u64, i64)]) -> (Header, Chunks) {
        on_host(Some("host"), start_s, disk, &m::READS, reads)
    }

    fn on_host(
        host: Option<&str>,
        start_s: Option<i64>,
        disk: &str,
        measure: &Metric,
        reads: &[(u64, i64)],
    ) -> (Header, Chunks) {
        let mut contents = Contents::default();
        let host = host.map(|host| contents.add_entity(Entity::new(EntityKind::Host, host, None)));
        let entity = contents.add_entity(Entity::new(EntityKind::Volume, disk, host));
        contents.add_series(measure.series(entity));
        let about = BTreeMap::new();
        let kind = SourceKind::Other("test".to_owned());
        let mut header = Header::new(Source { kind, by: "test".to_owned(), about });
        header.start_unix_ns = start_s.map(|second| second * 1_000_000_000);
        header.contents = contents;
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        for (second, value) in reads {
            let at = Instant::ZERO + Span::from_secs(*second);
            writer.sample(at, &[Some(*value)]).unwrap();
        }
        let bytes = writer.finish(true).unwrap();
        (header, ahead(Reader::open(std::io::Cursor::new(bytes)).unwrap()))
    }

    fn rows(parts: Vec<(Header, Chunks)>) -> Vec<(u64, Vec<Option<i64>>)> {
        read(&mut Joined::new(parts))
    }

    fn read(joined: &mut Joined) -> Vec<(u64, Vec<Option<i64>>)> {
        let (mut block, mut all) = (Block::default(), Vec::new());
        loop {
            joined.next_block(Block::MOST, &mut block).unwrap();
            if block.is_empty() {
                return all;
            }
            let rows = block.iter().map(|(at, row)| (at.nanos() / 1_000_000_000, row.to_vec()));
            all.extend(rows);
        }
    }

    #[test]
    fn samples_are_in_order_of_time() {
        let one = observation(Some(100), "a", &[(0, 1), (10, 2)]);
        let other = observation(Some(105), "b", &[(0, 7), (5, 8)]);
        let expect =
            vec![(0, vec![Some(1), None]), (5, vec![None, Some(7)]), (10, vec![Some(2), Some(8)])];
        assert_eq!(rows(vec![one, other]), expect);
    }

    #[test]
    fn an_entity_in_both_observations_counts_once() {
        let one = || observation(None, "a", &[(0, 1), (1, 2)]);
        assert_eq!(rows(vec![one(), one()]), [(0, vec![Some(1)]), (1, vec![Some(2)])]);
        assert_eq!(Joined::new(vec![one(), one()]).notes().len(), 3);
    }

    /// Returns the paths of all entities.
    fn who(hosts: &[Option<&str>]) -> Vec<String> {
        let mut parts = Vec::new();
        for (host, measure) in hosts.iter().zip([&m::READS, &m::WRITES, &m::BUSY_MS]) {
            parts.push(on_host(*host, None, "sdc", measure, &[(0, 1)]));
        }
        let joined = Joined::new(parts);
        let contents = joined.contents();
        let path = |entity: &Entity| {
            let parent = entity.parent.and_then(|parent| contents.entity(parent));
            parent.map_or(entity.name.clone(), |parent| format!("{}.{}", parent.name, entity.name))
        };
        let mut all: Vec<_> = contents.entities.iter().map(path).collect();
        all.sort();
        all
    }

    #[test]
    fn an_entity_without_a_host_is_on_the_only_host() {
        for nameless in [None, Some("host"), Some("")] {
            assert_eq!(who(&[Some("db1"), nameless]), ["db1", "db1.sdc"], "{nameless:?}");
            assert_eq!(who(&[nameless, Some("db1")]), ["db1", "db1.sdc"], "{nameless:?}");
        }
        assert_eq!(who(&[None, Some("host")]), ["host", "host.sdc"]);
        assert_eq!(who(&[None, None]), ["sdc"]);
        // With two hosts, an entity without one stays apart.
        let all = ["db1", "db1.sdc", "db2", "db2.sdc", "sdc"];
        assert_eq!(who(&[Some("db1"), Some("db2"), None]), all);
        assert_eq!(who(&[Some("db1"), Some("db2"), Some("host")]).len(), 6);
        // A single observation is unchanged.
        assert_eq!(who(&[None]), ["sdc"]);
    }

    #[track_caller]
    fn check_notes(starts: &[i64], seconds: &[u64], expect: &[&str]) {
        let samples: Vec<_> = seconds.iter().map(|second| (*second, 1)).collect();
        let names = ["a", "b", "c"].iter();
        let parts =
            starts.iter().zip(names).map(|(at, name)| observation(Some(*at), name, &samples));
        let mut joined = Joined::new(parts.collect());
        read(&mut joined);
        assert_eq!(joined.notes(), expect);
    }

    #[test]
    fn observations_of_different_times_are_reported() {
        let minute = [0, 20, 40, 60];
        check_notes(&[0, 30], &minute, &[]);
        check_notes(&[0, 120], &minute, &[]);
        let apart = "observation 2 begins 61 s after the end of observation 1: they were not \
            observed at the same time and cannot be compared";
        check_notes(&[0, 121], &minute, &[apart]);
        check_notes(&[0, 121, 60], &minute, &[]);
    }

    #[test]
    fn gaps_are_reported() {
        let gap = "observation 1: samples are usually 1 s apart; unobserved gaps of more than \
            60 s: 1, the longest 97 s";
        check_notes(&[0], &[0, 1, 2, 3, 100, 101], &[gap]);
        check_notes(&[0], &[0, 1, 2, 3, 60, 61], &[]);
        check_notes(&[0], &[0, 60, 120, 200, 260], &[]);
    }
}
