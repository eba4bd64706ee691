//! Entities and series: the part of an observation that is declared once.
//!
//! Kinds, units and sources have standard names and accept others, so a reader passes on names
//! that a later writer adds.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use weir_units::Span;

/// Defines a set of standard names that also accepts others.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $type {
            $($(#[$about])* $variant,)*
            /// A name that is not standard.
            Other(String),
        }

        impl $type {
            /// Returns its name in files.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<String> for $type {
            fn from(name: String) -> Self {
                match name.as_str() {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name),
                }
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.name().to_owned()
            }
        }
    };
}

names! {
    /// The kind of source that was observed.
    SourceKind {
        /// A run of Weir in virtual time.
        VirtualRun = "virtual-run",
        /// A run of Weir in wall time.
        WallRun = "wall-run",
    }
}

names! {
    /// The kind of an entity.
    EntityKind {
        /// A machine or instance with caps of its own.
        Host = "host",
        /// Volumes joined column by column.
        Stripe = "stripe",
        /// A unit of storage with a tier.
        Volume = "volume",
        /// A database.
        Database = "database",
        /// A database file.
        File = "file",
        /// A type of waits of its parent.
        Wait = "wait",
        /// A job of a benchmark.
        Job = "job",
        /// Backups of a database with the same settings, or restores.
        Backup = "backup",
        /// A folder, container or device that backups are written to.
        BackupTarget = "backup-target",
    }
}

names! {
    /// The unit of a value.
    Unit {
        /// Operations, requests, pages and other things that are counted.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// Milliseconds.
        Milliseconds = "ms",
    }
}

/// Everything known about an observation before its first sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Origin of the observation.
    pub source: Source,
    /// The moment that times count from, in nanoseconds since 1970 UTC, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_unix_ns: Option<i64>,
    /// The intended sampling interval; samples have their actual times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// The layout of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutText>,
    /// Entities and series.
    #[serde(flatten)]
    pub contents: Contents,
}

impl Header {
    /// Creates the header of an observation of `source` without entities.
    #[must_use]
    pub fn new(source: Source) -> Self {
        let contents = Contents::default();
        Self { source, start_unix_ns: None, interval_ns: None, layout: None, contents }
    }

    /// Returns the intended sampling interval.
    #[must_use]
    pub fn interval(&self) -> Option<Span> {
        self.interval_ns.map(Span::from_nanos)
    }
}

/// The origin of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Kind of source.
    pub kind: SourceKind,
    /// Program and version that wrote the observation.
    pub by: String,
    /// Further facts: a seed, a server's version, a file's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
}

/// A layout file, unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutText {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Index of an entity in [`Contents::entities`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityId(pub u32);

/// Index of a series in [`Contents::series`] and in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeriesId(pub u32);

/// An observed thing with metrics of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Kind of the entity.
    pub kind: EntityKind,
    /// Its name, unique among entities of its kind and parent.
    pub name: String,
    /// The entity that it belongs to, which is declared before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<EntityId>,
    /// Tier, size, limits and other facts.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
}

/// Attributes by name; see [`metric`](crate::metric) for the standard ones.
pub type Attributes = BTreeMap<String, Attribute>;

/// A fact about an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Attribute {
    /// A number in the unit that the attribute's name says.
    Number(u64),
    /// Text.
    Text(String),
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Entity {
    /// Creates an entity without attributes.
    #[must_use]
    pub fn new(kind: EntityKind, name: &str, parent: Option<EntityId>) -> Self {
        Self { kind, name: name.to_owned(), parent, attributes: Attributes::new() }
    }

    /// Returns the number stored under `attribute`.
    #[must_use]
    pub fn number(&self, attribute: &str) -> Option<u64> {
        match self.attributes.get(attribute)? {
            Attribute::Number(number) => Some(*number),
            Attribute::Text(_) => None,
        }
    }

    /// Returns the text stored under `attribute`.
    #[must_use]
    pub fn text(&self, attribute: &str) -> Option<&str> {
        match self.attributes.get(attribute)? {
            Attribute::Text(text) => Some(text),
            Attribute::Number(_) => None,
        }
    }
}

/// The meaning of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// A total since some moment in the past, so only differences have a meaning. It goes back
    /// when the source restarts.
    Cumulative,
    /// The state at the time of the sample.
    Gauge,
}

/// A metric of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The entity that it belongs to.
    pub entity: EntityId,
    /// Its name; see [`metric`](crate::metric) for the standard ones.
    pub metric: String,
    /// Unit of a value.
    pub unit: Unit,
    /// Meaning of a value.
    pub counting: Counting,
    /// A value `v` means `v * 10^scale` units.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scale: i8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(scale: &i8) -> bool {
    *scale == 0
}

/// Entities and series. A file may declare more after its header, with the indices that follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The entities.
    pub entities: Vec<Entity>,
    /// The series.
    pub series: Vec<Series>,
}

/// The largest number of series accepted.
pub const MAX_SERIES: usize = 1_000_000;

/// An inconsistency in entities and series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// A parent that is declared after its child.
    #[error(
        "the {kind} {name:?} has entity {parent} as its parent, which does not come before it; declare parents first"
    )]
    Parent {
        /// Kind of the child.
        kind: String,
        /// The child.
        name: String,
        /// The index it names.
        parent: u32,
    },
    /// Two entities with the same kind, name and parent.
    #[error(
        "two entities of kind {kind} with the same parent are named {name:?}; give them different \
         names"
    )]
    SameEntity {
        /// Their kind.
        kind: String,
        /// Their name.
        name: String,
    },
    /// A series whose entity does not exist.
    #[error("the series {metric:?} belongs to entity {entity}, which does not exist")]
    NoEntity {
        /// The metric.
        metric: String,
        /// The index it names.
        entity: u32,
    },
    /// Two series with the same entity and metric.
    #[error("the series {metric:?} of {name:?} is declared twice; declare it once")]
    SameSeries {
        /// The metric.
        metric: String,
        /// The entity.
        name: String,
    },
    /// More than [`MAX_SERIES`] series.
    #[error("there are {count} entities or series, but an observation holds at most {MAX_SERIES}")]
    TooMany {
        /// Number of series.
        count: usize,
    },
}

impl Contents {
    /// Appends an entity, and returns its index.
    pub fn add_entity(&mut self, entity: Entity) -> EntityId {
        self.entities.push(entity);
        EntityId(index(self.entities.len() - 1))
    }

    /// Appends a series, and returns its index.
    pub fn add_series(&mut self, series: Series) -> SeriesId {
        self.series.push(series);
        SeriesId(index(self.series.len() - 1))
    }

    /// Returns an entity.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.get(id.0 as usize)
    }

    /// Returns for each series the path of its entity, outermost first, and its metric. These
    /// identify the series in other observations.
    pub fn paths_of_series(
        &self,
    ) -> impl Iterator<Item = (Vec<(EntityKind, String)>, String)> + '_ {
        self.series.iter().map(|series| {
            let mut path = Vec::new();
            let mut next = self.entity(series.entity);
            // A malformed file may contain a cycle, so the length is bounded.
            while let Some(entity) = next.filter(|_| path.len() < self.entities.len()) {
                path.push((entity.kind.clone(), entity.name.clone()));
                next = entity.parent.and_then(|parent| self.entity(parent));
            }
            path.reverse();
            (path, series.metric.clone())
        })
    }

    /// Returns the series of a metric of an entity.
    #[must_use]
    pub fn find(&self, entity: EntityId, metric: &str) -> Option<SeriesId> {
        let at = self.series.iter().position(|s| s.entity == entity && s.metric == metric);
        at.map(|at| SeriesId(index(at)))
    }

    /// Checks that all references exist and that nothing is declared twice.
    ///
    /// # Errors
    ///
    /// [`ContentsError`] for the first inconsistency.
    pub fn check(&self) -> Result<(), ContentsError> {
        Checked::default().extend(self)
    }
}

/// The checked part of contents that grow.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    entities: HashSet<(String, String, Option<EntityId>)>,
    series: HashSet<(EntityId, String)>,
}

impl Checked {
    /// Checks the part of `contents` that was added since the last check.
    ///
    /// # Errors
    ///
    /// [`ContentsError`] for the first inconsistency.
    pub(crate) fn extend(&mut self, contents: &Contents) -> Result<(), ContentsError> {
        let count = contents.entities.len().max(contents.series.len());
        if count > MAX_SERIES {
            return Err(ContentsError::TooMany { count });
        }
        for (at, entity) in contents.entities.iter().enumerate().skip(self.entities.len()) {
            let (kind, name) = (entity.kind.name().to_owned(), entity.name.clone());
            if let Some(parent) = entity.parent.filter(|parent| parent.0 as usize >= at) {
                return Err(ContentsError::Parent { kind, name, parent: parent.0 });
            }
            if !self.entities.insert((kind.clone(), name.clone(), entity.parent)) {
                return Err(ContentsError::SameEntity { kind, name });
            }
        }
        for series in contents.series.iter().skip(self.series.len()) {
            let metric = series.metric.clone();
            let Some(entity) = contents.entity(series.entity) else {
                return Err(ContentsError::NoEntity { metric, entity: series.entity.0 });
            };
            if !self.series.insert((series.entity, metric.clone())) {
                return Err(ContentsError::SameSeries { metric, name: entity.name.clone() });
            }
        }
        Ok(())
    }
}

/// Converts an index, which a check keeps below [`MAX_SERIES`].
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(kind: EntityKind, name: &str, parent: Option<u32>) -> Entity {
        let attributes = Attributes::new();
        Entity { kind, name: name.to_owned(), parent: parent.map(EntityId), attributes }
    }

    fn series(entity: u32, metric: &str) -> Series {
        let (unit, counting) = (Unit::Count, Counting::Cumulative);
        Series { entity: EntityId(entity), metric: metric.to_owned(), unit, counting, scale: 0 }
    }

    #[track_caller]
    fn check(entities: &[Entity], of: &[Series], expect: &str) {
        let contents = Contents { entities: entities.to_vec(), series: of.to_vec() };
        let said = contents.check().map_or_else(|error| error.to_string(), |()| String::new());
        assert_eq!(said, expect);
    }

    #[test]
    fn inconsistent_contents_are_rejected() {
        let host = entity(EntityKind::Host, "h", None);
        let file = |parent| entity(EntityKind::File, "f", Some(parent));
        check(&[host.clone(), file(0)], &[series(1, "reads"), series(1, "writes")], "");
        check(
            &[host.clone(), file(1)],
            &[],
            "the file \"f\" has entity 1 as its parent, which does not come before it; declare \
             parents first",
        );
        check(
            &[host.clone(), file(0), file(0)],
            &[],
            "two entities of kind file with the same parent are named \"f\"; give them different names",
        );
        check(
            std::slice::from_ref(&host),
            &[series(7, "reads")],
            "the series \"reads\" belongs to entity 7, which does not exist",
        );
        check(
            &[host],
            &[series(0, "reads"), series(0, "reads")],
            "the series \"reads\" of \"h\" is declared twice; declare it once",
        );
    }

    #[test]
    fn unknown_names_are_kept() {
        let kind: EntityKind = serde_json::from_str("\"replica\"").expect("text");
        assert_eq!(kind, EntityKind::Other("replica".to_owned()));
        assert_eq!(serde_json::to_string(&kind).expect("JSON"), "\"replica\"");
        let file: EntityKind = serde_json::from_str("\"file\"").expect("text");
        assert_eq!(file, EntityKind::File);
    }
}
