//! What a reader fills: who there is, what is measured of them, and the values of the sample
//! at hand.

use super::ImportError;
use super::presence::Reports;
use std::collections::{BTreeMap, HashMap};
use weir_observe::header::{Attribute, Contents, Entity, EntityId, EntityKind, Series, SeriesId};
use weir_observe::metric::Metric;

/// When a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// In nanoseconds since 1970.
    Wall(i64),
    /// In nanoseconds since the input's own beginning, of which nobody knows when it was.
    Since(u64),
}

/// A reader of an input of some kind.
pub trait ReadSamples {
    /// Reads as far as the next sample, puts its values into the sheet and says when it is;
    /// nothing at the end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot go on.
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError>;
}

/// See the module.
#[derive(Debug, Default)]
pub struct Sheet {
    pub(super) contents: Contents,
    entities: HashMap<(String, String, Option<EntityId>), EntityId>,
    series: HashMap<(EntityId, &'static str), SeriesId>,
    /// Readers ask for them in the same order again and again: what came after the last.
    next_entity: usize,
    next_series: usize,
    pub(crate) row: Vec<Option<i64>>,
    pub(crate) notes: Vec<String>,
    /// What was not used, and how often it was there.
    pub(super) unused: BTreeMap<String, u64>,
    /// Lines that were skipped.
    pub(super) skipped: Vec<Skipped>,
    /// What the input says of itself.
    pub(crate) about: BTreeMap<String, String>,
    /// For how many nanoseconds the rates of the first sample held, if the input says it.
    pub(crate) held: Option<i64>,
    /// Which entities the input reports in each sample.
    pub(super) reports: Reports,
    /// The sampling interval of the sample at hand, in nanoseconds, if the input says it.
    pub(super) interval_ns: Option<i64>,
}

/// Lines that follow each other and are not used.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    /// Whether nothing was read before them.
    pub(super) is_before: bool,
    /// The number of the first.
    pub(super) first: u64,
    /// That of the last.
    pub(super) last: u64,
    /// The first of them.
    pub(super) text: String,
}

impl Sheet {
    /// Who and what is in it.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The entity of that kind, name and parent, which is there from now on.
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

    /// Says something of an entity. It must be said before the sample in which the entity is
    /// first; the first to say it is right.
    pub fn attribute(&mut self, entity: EntityId, name: &str, value: impl Into<Attribute>) {
        if let Some(entity) = self.contents.entities.get_mut(entity.0 as usize) {
            entity.attributes.entry(name.to_owned()).or_insert_with(|| value.into());
        }
    }

    /// The series of a measure of an entity, which is there from now on.
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

    /// Puts a value of the sample at hand.
    pub fn put(&mut self, series: SeriesId, measure: &Metric, value: f64) {
        self.row[series.0 as usize] = measure.stored(value);
    }

    /// The same where the series has not been asked for.
    pub fn set(&mut self, entity: EntityId, measure: &Metric, value: f64) {
        let series = self.series(entity, measure);
        self.put(series, measure, value);
    }

    /// Something that a reader of the numbers should know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Something in the input that is not used here, by what it is called there.
    pub fn unused(&mut self, what: &str) {
        let is_kept = self.unused.contains_key(what) || self.unused.len() < MOST_UNUSED;
        let what = if is_kept { what } else { "more of this kind" };
        *self.unused.entry(what.to_owned()).or_default() += 1;
    }

    /// A line that is not used here, and may be one of another kind of input.
    pub(crate) fn skipped(&mut self, what: &str, number: u64, line: &str) {
        self.unused(what);
        // Lines without anything in them do not end a run.
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

    /// All that was not used, in a sentence.
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

    /// What the input says of itself.
    pub fn about(&mut self, name: &str, value: &str) {
        self.about.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// The place after another of so many, in a circle.
const fn after(place: usize, count: usize) -> usize {
    if place + 1 < count { place + 1 } else { 0 }
}

/// So many runs of skipped lines are looked at, and so many bytes of each.
const MOST_SKIPPED: usize = 16;
const MOST_TEXT: usize = 1 << 16;
/// Lines without anything in them that a run goes on over.
const MOST_BLANK: u64 = 4;

/// So many different unused things are kept by name.
const MOST_UNUSED: usize = 200;
