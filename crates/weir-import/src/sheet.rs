//! The target of a reader: entities, series, and the values of the current sample.

use crate::error::ImportError;
use std::collections::{BTreeMap, HashMap};
use weir_observe::header::{Attribute, Contents, Entity, EntityId, EntityKind, Series, SeriesId};
use weir_observe::metric::Metric;

/// The time of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Nanoseconds since 1970.
    Wall(i64),
    /// Nanoseconds since the input's own start, whose moment is unknown.
    Since(u64),
}

/// The set of entities that an input reports in each sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reports {
    /// A varying set.
    #[default]
    Some,
    /// All entities.
    All,
    /// All entities, or all that were not idle.
    AllButIdle,
}

/// A reader of an input.
pub trait ReadSamples {
    /// Reads to the next sample, writes its values into the sheet and returns its time; `None` at
    /// the end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot continue.
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError>;
}

/// Entities, series and values of an input.
#[derive(Debug, Default)]
pub struct Sheet {
    pub(crate) contents: Contents,
    entities: HashMap<(String, String, Option<EntityId>), EntityId>,
    series: HashMap<(EntityId, &'static str), SeriesId>,
    /// The successor of the last entity: readers repeat the same order.
    next_entity: usize,
    next_series: usize,
    pub(crate) row: Vec<Option<i64>>,
    pub(crate) notes: Vec<String>,
    /// Unused parts of the input, with their number.
    pub(crate) unused: BTreeMap<String, u64>,
    /// Skipped lines.
    pub(crate) skipped: Vec<Skipped>,
    /// Facts that the input states about itself.
    pub(crate) about: BTreeMap<String, String>,
    /// Interval of the rates of the first sample in nanoseconds, if the input states it.
    pub(crate) held: Option<i64>,
    /// The set of entities in each sample.
    pub(crate) reports: Reports,
    /// Interval of the current sample in nanoseconds, if the input states it.
    pub(crate) interval_ns: Option<i64>,
}

/// A run of consecutive unused lines.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    /// True if nothing was read before them.
    pub(crate) is_before: bool,
    /// Number of the first line.
    pub(crate) first: u64,
    /// Number of the last line.
    pub(crate) last: u64,
    /// Text of the first lines.
    pub(crate) text: String,
}

impl Sheet {
    /// Returns the entities and series.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns the entity of a kind, name and parent, and creates it if it is new.
    pub fn entity(&mut self, kind: EntityKind, name: &str, parent: Option<EntityId>) -> EntityId {
        let is_it = |own: &Entity| own.name == name && own.parent == parent && own.kind == kind;
        let next = self.contents.entities.get(self.next_entity).is_some_and(is_it);
        if let Some(id) = u32::try_from(self.next_entity).ok().filter(|_| next).map(EntityId) {
            self.next_entity = after(self.next_entity, self.contents.entities.len());
            return id;
        }
        let id = self.find_entity(kind, name, parent);
        self.next_entity = after(id.0 as usize, self.contents.entities.len());
        id
    }

    fn find_entity(&mut self, kind: EntityKind, name: &str, parent: Option<EntityId>) -> EntityId {
        let key = (kind.name().to_owned(), name.to_owned(), parent);
        if let Some(id) = self.entities.get(&key) {
            return *id;
        }
        let id = self.contents.add_entity(Entity::new(kind, name, parent));
        self.entities.insert(key, id);
        id
    }

    /// Sets an attribute of an entity, unless it is set already. It must be set before the first
    /// sample with the entity.
    pub fn attribute(&mut self, entity: EntityId, name: &str, value: impl Into<Attribute>) {
        if let Some(entity) = self.contents.entities.get_mut(entity.0 as usize) {
            entity.attributes.entry(name.to_owned()).or_insert_with(|| value.into());
        }
    }

    /// Returns the series of a metric of an entity, and creates it if it is new.
    pub fn series(&mut self, entity: EntityId, measure: &Metric) -> SeriesId {
        let is_it = |own: &Series| own.entity == entity && own.metric == measure.name;
        let next = self.contents.series.get(self.next_series).is_some_and(is_it);
        if let Some(id) = u32::try_from(self.next_series).ok().filter(|_| next).map(SeriesId) {
            self.next_series = after(self.next_series, self.contents.series.len());
            return id;
        }
        let id = self.find_series(entity, measure);
        self.next_series = after(id.0 as usize, self.contents.series.len());
        id
    }

    fn find_series(&mut self, entity: EntityId, measure: &Metric) -> SeriesId {
        if let Some(id) = self.series.get(&(entity, measure.name)) {
            return *id;
        }
        let id = self.contents.add_series(measure.series(entity));
        self.series.insert((entity, measure.name), id);
        self.row.push(None);
        id
    }

    /// Sets a value of the current sample.
    pub fn put(&mut self, series: SeriesId, measure: &Metric, value: f64) {
        self.row[series.0 as usize] = measure.stored(value);
    }

    /// Sets a value of the current sample, and creates the series if it is new.
    pub fn set(&mut self, entity: EntityId, measure: &Metric, value: f64) {
        let series = self.series(entity, measure);
        self.put(series, measure, value);
    }

    /// Adds a note.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Counts an unused part of the input, by its name there.
    pub fn unused(&mut self, what: &str) {
        let is_kept = self.unused.contains_key(what) || self.unused.len() < MOST_UNUSED;
        let what = if is_kept { what } else { "more of this kind" };
        *self.unused.entry(what.to_owned()).or_default() += 1;
    }

    /// Counts an unused line, which may belong to another kind of input.
    pub(crate) fn skipped(&mut self, what: &str, number: u64, line: &str) {
        self.unused(what);
        // Blank lines do not end a run.
        let goes_on = self.skipped.last().is_some_and(|run| number <= run.last + MOST_BLANK);
        if !goes_on && self.skipped.len() < MOST_SKIPPED {
            let is_before = self.contents.series.is_empty();
            self.skipped.push(Skipped {
                is_before,
                first: number,
                last: number,
                ..Skipped::default()
            });
        }
        let Some(run) = self.skipped.last_mut().filter(|run| number <= run.last + MOST_BLANK)
        else {
            return;
        };
        run.last = number;
        if run.text.len() + line.len() < MOST_TEXT {
            run.text.push_str(line);
            run.text.push('\n');
        }
    }

    /// Describes all unused parts.
    pub(crate) fn told_unused(&self) -> Option<String> {
        let all = self.unused.iter().map(|(what, count)| match count {
            1 => what.clone(),
            count => format!("{what} ({count} times)"),
        });
        let all: Vec<_> = all.collect();
        (!all.is_empty()).then(|| format!("not used: {}", all.join(", ")))
    }

    /// Begins another sample.
    pub(crate) fn clear(&mut self) {
        self.row.iter_mut().for_each(|value| *value = None);
    }

    /// Records a fact that the input states about itself.
    pub fn about(&mut self, name: &str, value: &str) {
        self.about.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// Returns the next index in a circle.
const fn after(place: usize, count: usize) -> usize {
    if place + 1 < count { place + 1 } else { 0 }
}

/// The most runs of skipped lines kept, and the most bytes of each.
const MOST_SKIPPED: usize = 16;
const MOST_TEXT: usize = 1 << 16;
/// Blank lines that do not end a run.
const MOST_BLANK: u64 = 4;

/// The most unused parts kept by name.
const MOST_UNUSED: usize = 200;
