//! What an application asks of its storage, in percentiles.

use crate::cells;
use crate::number::{mib, percent, rate, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// What was observed of somebody, as a list of requirements.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChecklistReport {
    /// Who was observed: files, or volumes, alone and together, and hosts.
    pub lists: Vec<Checklist>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What one of them asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checklist {
    /// Who.
    pub name: String,
    /// What.
    pub requirements: Vec<Requirement>,
}

/// A requirement over the samples. Percentiles are within 1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Requirement {
    /// What is required.
    pub name: &'static str,
    /// The unit of its figures.
    pub unit: Measured,
    /// Half of the samples are lower.
    pub p50: f64,
    /// 90 % are lower.
    pub p90: f64,
    /// 99 % are lower.
    pub p99: f64,
    /// The mean: of latencies and sizes that of the operations, else that over the time.
    pub mean: f64,
    /// The highest.
    pub max: f64,
    /// How many samples say it.
    pub samples: u64,
}

/// What figures are numbers of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// So many a second, or at a time.
    Count,
    /// Bytes, or bytes a second.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A part of one.
    Share,
}

impl Measured {
    /// Its name, as in JSON.
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
