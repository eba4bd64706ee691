//! Percentiles over time: a row for each stretch of time, of each that was observed.

use crate::cells;
use crate::checklist::Requirement;
use crate::number::grouped;
use crate::table::{Report, Table};
use serde::Serialize;

/// Percentiles over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PercentilesReport {
    /// Each stretch of each.
    pub rows: Vec<PercentilesRow>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What somebody did in a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PercentilesRow {
    /// The beginning of the stretch: a date if it is known, else the time since the beginning.
    pub from: String,
    /// The same in seconds from the beginning of the observation.
    pub from_s: f64,
    /// Who.
    pub name: String,
    /// Of what, and the percentiles.
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
