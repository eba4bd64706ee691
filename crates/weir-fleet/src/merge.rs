//! Results of shards, put together row by row.

use crate::error::FleetError;
use crate::results::Rows;
use crate::row::Row;
use std::path::PathBuf;

/// The file, the fleet and the number of observations of the first row.
type Known = (String, String, u64);

/// The rows of several results, in the order of the observations. Every result has that order, so one
/// row of each is in memory.
#[derive(Debug)]
pub struct Merged {
    parts: Vec<Part>,
    fleet: Option<Known>,
    /// The next observation, and the file of the one before.
    next: u64,
    before: Option<String>,
    has_failed: bool,
}

#[derive(Debug)]
struct Part {
    rows: Rows,
    head: Option<Row>,
}

impl Merged {
    /// Opens results.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if one cannot be read or has no rows.
    pub fn open(paths: &[PathBuf]) -> Result<Self, FleetError> {
        let mut parts = Vec::new();
        for path in paths {
            let mut rows = Rows::open(path)?;
            let Some(head) = rows.next().transpose()? else {
                let reason = "there are no rows; give results of weir diagnose --fleet".to_owned();
                return Err(FleetError::Results { file: rows.name().to_owned(), reason });
            };
            parts.push(Part { rows, head: Some(head) });
        }
        let mut merged = Self { parts, fleet: None, next: 0, before: None, has_failed: false };
        // Results of another fleet are named before a row that they do not have.
        for at in 0..merged.parts.len() {
            if let Some(head) = &merged.parts[at].head {
                merged.fleet =
                    Some(same_fleet(merged.fleet.take(), merged.parts[at].rows.name(), head)?);
            }
        }
        Ok(merged)
    }

    /// Returns the fleet and its number of observations; `None` without results.
    #[must_use]
    pub fn fleet(&self) -> Option<(&str, u64)> {
        self.fleet.as_ref().map(|(_, fleet, all)| (fleet.as_str(), *all))
    }

    fn step(&mut self) -> Result<Option<Row>, FleetError> {
        let heads = self.parts.iter().enumerate();
        let heads = heads.filter_map(|(at, part)| Some((part.head.as_ref()?.observation, at)));
        let Some((_, at)) = heads.min() else {
            return match &self.fleet {
                Some((_, _, all)) if self.next < *all => Err(missing(self.next, *all, *all)),
                _ => Ok(None),
            };
        };
        let part = &mut self.parts[at];
        let name = part.rows.name().to_owned();
        let following = part.rows.next().transpose()?;
        let Some(row) = std::mem::replace(&mut part.head, following) else { return Ok(None) };
        let fleet = same_fleet(self.fleet.take(), &name, &row)?;
        let all = fleet.2;
        self.fleet = Some(fleet);
        let own = row.observation;
        if own >= all {
            let words = format!("{name}: observation {own} is beyond the {all} of the fleet");
            return Err(FleetError::Merge(words));
        }
        if own < self.next {
            let before = self.before.as_deref().unwrap_or_default();
            return Err(FleetError::Merge(format!(
                "observation {own} is in both {before} and {name}; give each shard once"
            )));
        }
        if own > self.next {
            return Err(missing(self.next, own, all));
        }
        self.next += 1;
        self.before = Some(name);
        Ok(Some(row))
    }
}

/// Refuses the row of another fleet.
fn same_fleet(known: Option<Known>, name: &str, row: &Row) -> Result<Known, FleetError> {
    match known {
        None => Ok((name.to_owned(), row.fleet.clone(), row.observations)),
        Some(own) if (&own.1, own.2) == (&row.fleet, row.observations) => Ok(own),
        Some((first, fleet, _)) => Err(FleetError::Merge(format!(
            "{first} is of the fleet {fleet}, and {name} of {}: the names or sizes of the files, the \
             options or Weir's version were different",
            row.fleet
        ))),
    }
}

/// Names observations without rows, from the first up to one that has.
fn missing(from: u64, to: u64, all: u64) -> FleetError {
    let words = match to - from {
        1 => format!("observation {from}"),
        _ => format!("observations {from} to {}", to - 1),
    };
    let words = format!("{words} of {all} missing; add the shards that have them");
    FleetError::Merge(words)
}

impl Iterator for Merged {
    type Item = Result<Row, FleetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let step = self.step();
        self.has_failed = step.is_err();
        step.transpose()
    }
}
