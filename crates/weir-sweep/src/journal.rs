//! Completed points of an unfinished sweep, beside its output.
//!
//! The first line names the sweep, and each other line is a point.

use crate::design::Shard;
use crate::error::SweepError;
use crate::log::Log;
use crate::results::Results;
use crate::sweep::Sweep;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    journal: String,
    sweep: String,
    points: u64,
    shard: String,
}

/// Another line: a point and its row from the status on.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    point: u64,
    row: Vec<String>,
}

const KIND: &str = "weir sweep 1";

/// A journal that is open, and locked against other processes.
#[derive(Debug)]
pub struct Journal {
    log: Log,
    rows: BTreeMap<u64, Vec<String>>,
}

impl Journal {
    /// Returns the path of the journal of an output.
    #[must_use]
    pub fn beside(output: &Path) -> PathBuf {
        Log::beside(output)
    }

    /// Opens the journal of a sweep, or begins one.
    ///
    /// # Errors
    ///
    /// [`SweepError::Journal`] if it belongs to another sweep, is damaged, or is in use.
    pub fn open(path: &Path, sweep: &Sweep, shard: Shard) -> Result<Self, SweepError> {
        let head = Head {
            journal: KIND.to_owned(),
            sweep: sweep.identity().to_owned(),
            points: sweep.points(),
            shard: shard.to_string(),
        };
        let mut rows = BTreeMap::new();
        let mut number = 0;
        let log = Log::open(path, "weir sweep", |_, line| {
            number += 1;
            if number == 1 {
                return check_head(line, &head);
            }
            let entry = entry(line, sweep).ok_or_else(|| {
                format!("line {number} is damaged; remove the journal to start again")
            })?;
            rows.insert(entry.point, entry.row);
            Ok(())
        })?;
        let mut journal = Self { log, rows };
        if journal.log.is_empty() {
            journal.log.append(&head)?;
        }
        Ok(journal)
    }

    /// Returns the number of completed points.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether a point is complete.
    #[must_use]
    pub fn has(&self, point: u64) -> bool {
        self.rows.contains_key(&point)
    }

    /// Adds a point with its row from the status on.
    ///
    /// # Errors
    ///
    /// [`SweepError::Io`].
    pub fn add(&mut self, point: u64, row: Vec<String>) -> Result<(), SweepError> {
        let entry = Entry { point, row };
        self.log.append(&entry)?;
        self.rows.insert(point, entry.row);
        Ok(())
    }

    /// Returns the results so far, in the order of the points.
    #[must_use]
    pub fn results(&self, sweep: &Sweep) -> Results {
        let rows = self.rows.iter().map(|(point, tail)| {
            sweep.head(*point).into_iter().chain(tail.iter().cloned()).collect()
        });
        Results::new(sweep.columns().clone(), rows.collect())
    }

    /// Removes the journal of a complete sweep.
    ///
    /// # Errors
    ///
    /// [`SweepError::Io`].
    pub fn remove(self) -> Result<(), SweepError> {
        self.log.remove()
    }
}

/// Refuses the journal of another sweep or shard.
fn check_head(line: &[u8], expect: &Head) -> Result<(), String> {
    let head: Option<Head> = serde_json::from_slice(line).ok();
    let Some(head) = head.filter(|head| head.journal == KIND) else {
        return Err("this is no journal of weir sweep; give another --out".to_owned());
    };
    if head == *expect {
        return Ok(());
    }
    let difference = match head.sweep == expect.sweep {
        true => format!("shard {}, and this is shard {}", head.shard, expect.shard),
        false => format!(
            "another sweep ({}, and this is {}): the sweep file, the layout, the workload, the \
             catalog or Weir's version is different",
            head.sweep, expect.sweep
        ),
    };
    Err(format!(
        "this journal belongs to {difference}; give another --out, or remove the journal to start \
         again"
    ))
}

/// Reads a point; `None` if it is damaged.
fn entry(line: &[u8], sweep: &Sweep) -> Option<Entry> {
    let entry: Entry = serde_json::from_slice(line).ok()?;
    let tail = sweep.columns().metrics().count() + 2;
    (entry.point < sweep.points() && entry.row.len() == tail).then_some(entry)
}
