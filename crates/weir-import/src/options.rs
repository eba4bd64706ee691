//! Options of an import, which every importer gets.

use crate::kind::Kind;
use crate::sql::assessment;
use crate::trace::WITH_TIME_UNIT;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_observe::moment::Clock;
use weir_units::Span;

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Order and zone of dates in the inputs.
    pub clock: Clock,
    /// Sampling interval of inputs that do not state it.
    pub every: Option<Span>,
    /// Start of inputs without dates, in nanoseconds since 1970.
    pub start: Option<i64>,
    /// Unit of times in block traces that do not state it.
    pub time_unit: Option<TimeUnit>,
    /// Meaning of the counts of files in an assessment of SQL Server.
    pub file_counts: Option<FileCounts>,
    /// The importing program, with its version.
    pub by: String,
    /// Name of the input, which tells the contents of some kinds.
    pub name: String,
    /// Stripes of media sets, for histories of backups.
    pub media: BackupMedia,
}

impl Options {
    /// Returns the sampling interval for inputs that do not state it; one second by default.
    #[must_use]
    pub fn step(&self) -> Span {
        self.every.unwrap_or(Span::from_secs(1))
    }

    /// Returns a note for each option that does not apply to inputs of these kinds.
    pub(crate) fn ignored(&self, kinds: &[&str]) -> Vec<String> {
        let applies = |all: &[Kind]| all.iter().any(|kind| kinds.contains(&kind.name));
        let mut notes = Vec::new();
        if self.time_unit.is_some() && !applies(&WITH_TIME_UNIT) {
            notes.push(format!(
                "--time-unit is ignored: it is for {}",
                WITH_TIME_UNIT.map(|kind| kind.name).join(", ")
            ));
        }
        if self.file_counts.is_some() && !applies(&[assessment::KIND]) {
            notes.push(format!("--file-counts is ignored: it is for {}", assessment::KIND.name));
        }
        notes
    }
}

/// The meaning of the counts of files in an assessment of SQL Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCounts {
    /// A count per second.
    PerSecond,
    /// A count since the previous query.
    PerQuery,
}

impl FileCounts {
    /// The names, as [`Self::named`] takes them.
    pub const NAMES: [&str; 2] = ["per-second", "per-query"];

    /// Returns the meaning of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "per-second" => Self::PerSecond,
            "per-query" => Self::PerQuery,
            _ => return None,
        })
    }
}

/// The unit of times in a block trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of 100 ns, as Windows counts.
    Ticks,
}

impl TimeUnit {
    /// The names of the units, as [`Self::named`] takes them.
    pub const NAMES: [&str; 5] = ["s", "ms", "us", "ns", "100ns"];

    /// Returns the unit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Milliseconds,
            "us" => Self::Microseconds,
            "ns" => Self::Nanoseconds,
            "100ns" => Self::Ticks,
            _ => return None,
        })
    }

    /// Returns the length of the unit in nanoseconds.
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
            Self::Ticks => 100,
        }
    }
}

/// The stripes of media sets, by their numbers.
pub(crate) type Media = BTreeMap<String, Stripes>;

/// Tables of stripes read beside a history of backups.
#[derive(Debug, Clone, Default)]
pub struct BackupMedia(pub(crate) Arc<Media>);

/// The stripes of a media set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stripes {
    /// Numbers or devices of its stripes; mirrors do not count.
    pub(crate) families: BTreeSet<String>,
    pub(crate) devices: BTreeSet<String>,
    pub(crate) block: Option<u64>,
}
