//! The columns of a table.

use crate::error::FleetError;
use std::path::Path;
use weir_parquet::{Kind, Scan};

/// The columns in order.
pub const COLUMNS: [(&str, Kind); 15] = [
    ("time", Kind::Time),
    ("offset_ns", Kind::Whole),
    ("kind", Kind::Text),
    ("name", Kind::Text),
    ("parent", Kind::Text),
    ("metric", Kind::Text),
    ("unit", Kind::Text),
    ("counting", Kind::Text),
    ("row", Kind::Text),
    ("entity", Kind::Whole),
    ("series", Kind::Whole),
    ("key", Kind::Text),
    ("text", Kind::Text),
    ("raw", Kind::Whole),
    ("value", Kind::Number),
];

/// Where the columns are in a file, which may have them in another order.
#[derive(Debug, Clone, Copy)]
pub struct Places([usize; COLUMNS.len()]);

impl Places {
    /// Finds the columns of a table.
    ///
    /// # Errors
    ///
    /// [`FleetError::Table`] if a column is missing, has another type, or is not part of an
    /// observation.
    pub fn find(path: &Path, scan: &Scan) -> Result<Self, FleetError> {
        let wrong = |reason: String| FleetError::Table { path: path.to_owned(), reason };
        let found = scan.columns();
        let mut places = [0; COLUMNS.len()];
        for ((name, kind), place) in COLUMNS.iter().zip(&mut places) {
            let expect = type_name(*kind);
            // Times are not read: `offset_ns` has them. Spark writes INT96 unless it is told otherwise.
            let fits = |own: &str| match kind {
                Kind::Time => own == "INT64" || own == "INT96" || own.starts_with("TIMESTAMP"),
                _ => own == expect,
            };
            let at = found.iter().position(|own| own.name == *name);
            let Some(at) = at else {
                return Err(wrong(format!(
                    "the column {name:?} is missing, expected with the type {expect}; \
                     weir observe export writes the columns of an observation"
                )));
            };
            if !fits(&found[at].kind) {
                return Err(wrong(format!(
                    "the column {name:?} has the type {}, expected {expect}; cast it",
                    found[at].kind
                )));
            }
            *place = at;
        }
        let foreign = found.iter().find(|own| COLUMNS.iter().all(|(name, _)| *name != own.name));
        match foreign {
            Some(own) => Err(wrong(format!(
                "the column {:?} ({}) is not part of an observation; leave it out",
                own.name, own.kind
            ))),
            None => Ok(Self(places)),
        }
    }

    /// Returns the place of a column in the file.
    #[must_use]
    pub fn place(&self, name: &str) -> usize {
        let at = COLUMNS.iter().position(|(own, _)| *own == name);
        at.map_or(usize::MAX, |at| self.0[at])
    }
}

const fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Whole => "INT64",
        Kind::Time => "TIMESTAMP(MICROS, UTC)",
        Kind::Number => "DOUBLE",
        Kind::Text => "STRING",
    }
}
