//! Counters to series: selects the counters that are used, and their entities.
//!
//! A total is left out if its parts are present, and so is the sum of reads and writes. If there
//! are physical disks, a drive letter is a part of one and not a volume.

use super::counter::{Meaning, Number, Of, meaning};
use super::path::Path;
use crate::error::ImportError;
use crate::sheet::Sheet;
use std::collections::{HashMap, HashSet};
use weir_observe::header::{EntityId, EntityKind, SeriesId};
use weir_observe::metric::{self as m, Metric};

/// A counter that is used.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    series: SeriesId,
    measure: &'static Metric,
    number: Number,
}

/// The counters of an input.
#[derive(Debug, Default)]
pub(super) struct Board {
    places: HashMap<String, Place>,
    /// Counters with a meaning.
    counters: Vec<Counter>,
    slots: Vec<Option<Slot>>,
    /// Examples of other counters.
    unknown: Vec<String>,
    has_negative: bool,
    has_totals: bool,
}

/// Index of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// The most counters named as examples.
const EXAMPLES: usize = 3;

#[derive(Debug)]
struct Counter {
    path: Path,
    meaning: Meaning,
}

impl Counter {
    fn host(&self) -> String {
        self.path.host.to_lowercase()
    }

    fn is_of(&self, other: &Self) -> bool {
        self.path.object == other.path.object
            && self.path.instance.eq_ignore_ascii_case(&other.path.instance)
            && self.path.host.eq_ignore_ascii_case(&other.path.host)
    }

    fn measures(&self, measure: &Metric) -> bool {
        self.meaning.measure == measure
    }
}

impl Board {
    /// Returns the index of a counter that was added.
    pub(super) fn place(&self, text: &str) -> Option<Place> {
        self.places.get(text).copied()
    }

    /// Adds a counter; it has no series before [`Board::settle`].
    pub(super) fn add(&mut self, sheet: &mut Sheet, text: &str, path: Path) -> Place {
        let place = match meaning(&path) {
            Some(meaning) => {
                self.counters.push(Counter { path, meaning });
                Place(self.counters.len() - 1)
            }
            None => {
                sheet.unused(&path.told);
                if self.unknown.len() < EXAMPLES && !self.unknown.contains(&path.told) {
                    self.unknown.push(path.told);
                }
                Place(usize::MAX)
            }
        };
        self.places.insert(text.to_owned(), place);
        place
    }

    /// Returns the number of counters.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no counters.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns an error if there are counters, but none that is used.
    pub(super) fn check(&self, line: u64) -> Result<(), ImportError> {
        if !self.counters.is_empty() || self.places.is_empty() {
            return Ok(());
        }
        let (count, names) = (self.places.len(), self.unknown.join(", "));
        let reason = format!("none of its {count} counters is used: {names}");
        Err(ImportError::at(line, reason))
    }

    /// Writes a value of the current sample.
    pub(super) fn put(&mut self, sheet: &mut Sheet, place: Place, value: f64) {
        let Some(Some(slot)) = self.slots.get(place.0) else { return };
        // typeperf writes -1 for a failed counter; no value here can be negative.
        if value < 0.0 {
            if !self.has_negative {
                sheet.note("negative values mark failed readings and are left out");
            }
            self.has_negative = true;
            return;
        }
        if let Some(value) = slot.number.convert(value) {
            sheet.put(slot.series, slot.measure, value);
        }
    }

    /// Returns whether a counter is used.
    pub(super) fn has(&self, place: Place) -> bool {
        matches!(self.slots.get(place.0), Some(Some(_)))
    }

    /// Declares the series of counters added since the last call.
    pub(super) fn settle(&mut self, sheet: &mut Sheet) {
        if self.slots.len() == self.counters.len() {
            return;
        }
        let used = self.used();
        for place in self.slots.len()..self.counters.len() {
            let counter = &self.counters[place];
            if !used.contains(&place) {
                sheet.unused(&counter.path.told_if_unused());
                self.slots.push(None);
                continue;
            }
            if counter.path.is_total() && counter.meaning.of.is_disk() && !self.has_totals {
                sheet.note("counters are not per disk: the volume _Total stands for all disks");
                self.has_totals = true;
            }
            let slot = self.slot(counter, sheet);
            self.slots.push(Some(slot));
        }
    }

    /// Returns the counters that no other counter supersedes.
    fn used(&self) -> HashSet<usize> {
        let parts = Parts::new(&self.counters);
        let mut best: HashMap<(String, String, &str, &str), (u8, usize)> = HashMap::new();
        for (place, counter) in self.counters.iter().enumerate() {
            if parts.make_up(counter) {
                continue;
            }
            let (path, known) = (&counter.path, &counter.meaning);
            // Two objects may count the same: processors, and all disks together.
            let is_same = known.of == Of::Host || (known.of.is_disk() && path.is_total());
            let (object, instance) = if is_same {
                ("", String::new())
            } else {
                (&*path.object, path.instance.to_lowercase())
            };
            let key = (counter.host(), instance, object, known.measure.name);
            let own = best.entry(key).or_insert((known.rank, place));
            if known.rank < own.0 {
                *own = (known.rank, place);
            }
        }
        best.into_values().map(|(_, place)| place).collect()
    }

    fn slot(&self, counter: &Counter, sheet: &mut Sheet) -> Slot {
        let known = &counter.meaning;
        let entity = self.entity(counter, sheet);
        let series = sheet.series(entity, known.measure);
        Slot { series, measure: known.measure, number: known.number }
    }

    fn entity(&self, counter: &Counter, sheet: &mut Sheet) -> EntityId {
        let name = counter.path.host.as_str();
        let host = if name.is_empty() { "host" } else { name };
        let host = sheet.entity(EntityKind::Host, host, None);
        let instance = counter.path.instance.as_str();
        let server = |name: &Option<String>, sheet: &mut Sheet| match name {
            Some(name) => sheet.entity(EntityKind::Other("instance".to_owned()), name, Some(host)),
            None => host,
        };
        match &counter.meaning.of {
            Of::Host => host,
            Of::Physical => sheet.entity(EntityKind::Volume, instance, Some(host)),
            Of::Logical => self.logical(counter, host, sheet),
            Of::Server(name) => server(name, sheet),
            Of::Database(name) => {
                let server = server(name, sheet);
                sheet.entity(EntityKind::Database, instance, Some(server))
            }
            Of::Pool(name) => {
                let server = server(name, sheet);
                sheet.entity(EntityKind::Other("pool".to_owned()), instance, Some(server))
            }
        }
    }

    /// Returns the entity of a drive: a volume, or part of a physical disk if there are any.
    fn logical(&self, counter: &Counter, host: EntityId, sheet: &mut Sheet) -> EntityId {
        let drive = counter.path.instance.as_str();
        let mut disks = self.counters.iter().filter(|other| {
            other.meaning.of == Of::Physical
                && other.host() == counter.host()
                && !other.path.is_total()
        });
        let Some(first) = disks.next() else {
            return sheet.entity(EntityKind::Volume, drive, Some(host));
        };
        let has_it = |disk: &&Counter| {
            disk.path.instance.split(' ').skip(1).any(|own| own.eq_ignore_ascii_case(drive))
        };
        let disk = Some(first).into_iter().chain(disks).find(has_it);
        let parent = disk
            .map_or(host, |disk| sheet.entity(EntityKind::Volume, &disk.path.instance, Some(host)));
        sheet.entity(EntityKind::Other("drive".to_owned()), drive, Some(parent))
    }
}

/// The counters that add up to totals.
struct Parts<'a> {
    counters: &'a [Counter],
    /// Hosts with counters per disk.
    disks: HashSet<String>,
    /// Databases with counters of their own, by object.
    databases: HashSet<(String, &'a str)>,
}

impl<'a> Parts<'a> {
    fn new(counters: &'a [Counter]) -> Self {
        let mut parts = Self { counters, disks: HashSet::new(), databases: HashSet::new() };
        for counter in counters.iter().filter(|counter| !counter.path.is_total()) {
            let host = counter.host();
            match &counter.meaning.of {
                of if of.is_disk() => {
                    parts.disks.insert(host);
                }
                Of::Database(_) => {
                    parts.databases.insert((host, counter.path.object.as_str()));
                }
                _ => {}
            }
        }
        parts
    }

    /// Returns whether a counter is the total of counters that are present.
    fn make_up(&self, counter: &'a Counter) -> bool {
        let known = &counter.meaning;
        if known.of.is_disk() && counter.path.is_total() && self.disks.contains(&counter.host()) {
            return true;
        }
        let database = (counter.host(), counter.path.object.as_str());
        if counter.path.is_total() && self.databases.contains(&database) {
            return true;
        }
        let both = |one: &Metric, other: &Metric| {
            let has = |measure| {
                self.counters.iter().any(|own| own.measures(measure) && own.is_of(counter))
            };
            has(one) && has(other)
        };
        (known.measure == &m::OPERATIONS_PER_S && both(&m::READS_PER_S, &m::WRITES_PER_S))
            || (known.measure == &m::BYTES_PER_S
                && both(&m::READ_BYTES_PER_S, &m::WRITE_BYTES_PER_S))
    }
}
