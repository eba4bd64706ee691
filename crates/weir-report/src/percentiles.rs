//! Percentiles over time: one row per entity and time span.

use crate::cells;
use crate::checklist::Requirement;
use crate::number::grouped;
use crate::table::{Report, Table};
use serde::Serialize;

/// Percentiles over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PercentilesReport {
    /// One row per entity and time span.
    pub rows: Vec<PercentilesRow>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The percentiles of an entity in a time span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PercentilesRow {
    /// Start of the span: a date if known, otherwise the time since the start.
    pub from: String,
    /// Start in seconds from the start of the observation.
    pub from_s: f64,
    /// Name.
    pub name: String,
    /// The quantity and its percentiles.
    #[serde(flatten)]
    pub of: Requirement,
}

impl Report for PercentilesReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "from", "|from_s", "name", "of", "|unit", ">p50", ">p90", ">p99", ">max", ">mean",
            ">samples",
        ];
        let mut table = Table::new("", &heads);
        for row in &self.rows {
            let own = &row.of;
            let cell = |value| own.unit.cell(value);
            table.row(cells![
                row.from.as_str(),
                crate::number::rate(row.from_s),
                row.name.as_str(),
                own.name,
                own.unit.name(),
                cell(own.p50),
                cell(own.p90),
                cell(own.p99),
                cell(own.max),
                cell(own.mean),
                grouped(own.samples),
            ]);
        }
        table.notes.clone_from(&self.notes);
        vec![table]
    }
}
