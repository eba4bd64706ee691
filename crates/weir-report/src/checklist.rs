//! The storage requirements of an application, in percentiles.

use crate::cells;
use crate::number::{mib, percent, rate, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The observed load as a list of requirements.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChecklistReport {
    /// Lists of files or volumes, of all of them, and of hosts.
    pub lists: Vec<Checklist>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The requirements of one entity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checklist {
    /// Name.
    pub name: String,
    /// Requirements.
    pub requirements: Vec<Requirement>,
}

/// A requirement over the samples. Percentiles are accurate to 1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Requirement {
    /// The quantity.
    pub name: &'static str,
    /// Unit of the figures.
    pub unit: Measured,
    /// Median of the samples.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Mean: over operations for latencies and sizes, otherwise over time.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
    /// Number of samples.
    pub samples: u64,
}

/// The unit of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// A count, or a count per second.
    Count,
    /// Bytes, or bytes per second.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A share of one.
    Share,
}

impl Measured {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "nanoseconds",
            Self::Share => "share",
        }
    }

    pub(crate) fn cell(self, value: f64) -> Cell {
        match self {
            Self::Count => rate(value),
            Self::Bytes if value < f64::from(1 << 20) => {
                Cell::number(format!("{:.1} KiB", value / 1024.0), value)
            }
            Self::Bytes => Cell::number(format!("{} MiB", mib(value)), value),
            Self::Nanoseconds => time(value),
            Self::Share => percent(value),
        }
    }
}

impl Report for ChecklistReport {
    fn tables(&self) -> Vec<Table> {
        let heads = ["name", "requirement", ">p50", ">p90", ">p99", ">mean", ">max", ">samples"];
        let mut table = Table::new("", &heads);
        for list in &self.lists {
            for own in &list.requirements {
                let cell = |value| own.unit.cell(value);
                table.row(cells![
                    list.name.clone(),
                    own.name,
                    cell(own.p50),
                    cell(own.p90),
                    cell(own.p99),
                    cell(own.mean),
                    cell(own.max),
                    crate::number::grouped(own.samples)
                ]);
            }
        }
        table.notes.clone_from(&self.notes);
        vec![table]
    }
}
