//! Completed rows of an unfinished fleet, beside its output.
//!
//! The first line names the fleet, and each other line is a row. Rows stay in the file; the memory has
//! the place of each.

use crate::error::FleetError;
use crate::fleet::Fleet;
use crate::row::Row;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use weir_sweep::{Log, Shard};

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    journal: String,
    fleet: String,
    observations: u64,
    shard: String,
}

const KIND: &str = "weir diagnose --fleet 1";

/// A journal that is open, and locked against other processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    log: Log,
    /// The place of the row of each observation.
    places: Vec<Option<u64>>,
    completed: usize,
}

impl Journal {
    /// Returns the path of the journal of an output.
    #[must_use]
    pub fn beside(output: &Path) -> PathBuf {
        Log::beside(output)
    }

    /// Opens the journal of a fleet, or begins one.
    ///
    /// # Errors
    ///
    /// [`FleetError::Journal`] if it belongs to another fleet, is damaged, or is in use.
    pub fn open(path: &Path, fleet: &Fleet, shard: Shard) -> Result<Self, FleetError> {
        let head = Head {
            journal: KIND.to_owned(),
            fleet: fleet.identity().to_owned(),
            observations: fleet.count(),
            shard: shard.to_string(),
        };
        let mut places = vec![None; fleet.observations().len()];
        let (mut number, mut completed) = (0, 0);
        let log = Log::open(path, "weir diagnose --fleet", |offset, line| {
            number += 1;
            if number == 1 {
                return check_head(line, &head);
            }
            let row: Option<Row> = serde_json::from_slice(line).ok();
            let at = row.and_then(|row| usize::try_from(row.observation).ok());
            let place = at.and_then(|at| places.get_mut(at)).ok_or_else(|| {
                format!("line {number} is damaged; remove the journal to start again")
            })?;
            completed += usize::from(place.is_none());
            *place = Some(offset);
            Ok(())
        })?;
        let mut journal = Self { path: path.to_owned(), log, places, completed };
        if journal.log.is_empty() {
            journal.log.append(&head)?;
        }
        Ok(journal)
    }

    /// Returns the number of completed observations.
    #[must_use]
    pub const fn completed(&self) -> usize {
        self.completed
    }

    /// Returns whether an observation is complete.
    #[must_use]
    pub fn has(&self, observation: u64) -> bool {
        let at = usize::try_from(observation).ok();
        at.and_then(|at| self.places.get(at)).is_some_and(Option::is_some)
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if it cannot be written.
    pub fn add(&mut self, row: &Row) -> Result<(), FleetError> {
        let offset = self.log.append(row)?;
        let at = usize::try_from(row.observation).ok();
        if let Some(place) = at.and_then(|at| self.places.get_mut(at)) {
            self.completed += usize::from(place.is_none());
            *place = Some(offset);
        }
        Ok(())
    }

    /// Reads the rows in the order of the observations.
    pub fn rows(&self) -> impl Iterator<Item = Result<Row, FleetError>> + '_ {
        self.places.iter().flatten().map(|offset| {
            let line = self.log.line(*offset)?;
            let row = serde_json::from_slice(&line);
            row.map_err(|error| FleetError::io(&self.path)(error.into()))
        })
    }

    /// Removes the journal of a complete fleet.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if it cannot be removed.
    pub fn remove(self) -> Result<(), FleetError> {
        Ok(self.log.remove()?)
    }
}

/// Refuses the journal of another fleet or shard.
fn check_head(line: &[u8], expect: &Head) -> Result<(), String> {
    let head: Option<Head> = serde_json::from_slice(line).ok();
    let Some(head) = head.filter(|head| head.journal == KIND) else {
        return Err("this is no journal of weir diagnose --fleet; give another --out".to_owned());
    };
    if head == *expect {
        return Ok(());
    }
    let difference = match head.fleet == expect.fleet {
        true => format!("shard {}, and this is shard {}", head.shard, expect.shard),
        false => format!(
            "another fleet ({}, and this is {}): the names or sizes of its files, the options or \
             Weir's version are different",
            head.fleet, expect.fleet
        ),
    };
    Err(format!(
        "this journal belongs to {difference}; give another --out, or remove the journal to start \
         again"
    ))
}
