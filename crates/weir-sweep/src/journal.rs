//! Completed points of an unfinished sweep, beside its output.
//!
//! The first line names the sweep, and each other line is a point. A process that is killed leaves at
//! most one line unfinished, which the next one drops.

use crate::design::Shard;
use crate::error::SweepError;
use crate::results::Results;
use crate::sweep::Sweep;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
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
    path: PathBuf,
    file: File,
    rows: BTreeMap<u64, Vec<String>>,
}

impl Journal {
    /// Returns the path of the journal of an output.
    #[must_use]
    pub fn beside(output: &Path) -> PathBuf {
        let mut path = output.as_os_str().to_owned();
        path.push(".journal");
        path.into()
    }

    /// Opens the journal of a sweep, or begins one.
    ///
    /// # Errors
    ///
    /// [`SweepError::Journal`] if it belongs to another sweep, is damaged, or is in use.
    pub fn open(path: &Path, sweep: &Sweep, shard: Shard) -> Result<Self, SweepError> {
        let wrong = |reason: String| SweepError::Journal { path: path.to_owned(), reason };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(SweepError::io(path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let reason = "another weir sweep writes it; give this one another --out";
                return Err(wrong(reason.to_owned()));
            }
            Err(error) => return Err(SweepError::io(path)(error.into())),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(SweepError::io(path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let head = Head {
            journal: KIND.to_owned(),
            sweep: sweep.identity().to_owned(),
            points: sweep.points(),
            shard: shard.to_string(),
        };
        let rows = read(&bytes[..whole], &head, sweep).map_err(wrong)?;
        file.set_len(whole as u64).map_err(SweepError::io(path))?;
        file.seek(SeekFrom::End(0)).map_err(SweepError::io(path))?;
        let mut journal = Self { path: path.to_owned(), file, rows };
        if whole == 0 {
            journal.append(&head)?;
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
        self.append(&entry)?;
        self.rows.insert(point, entry.row);
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), SweepError> {
        let io = |source| SweepError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_string(line).map_err(|error| io(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(io)
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
        fs::remove_file(&self.path).map_err(SweepError::io(self.path))
    }
}

/// Reads the points of a journal.
fn read(bytes: &[u8], expect: &Head, sweep: &Sweep) -> Result<BTreeMap<u64, Vec<String>>, String> {
    let mut rows = BTreeMap::new();
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let Some(first) = lines.next() else { return Ok(rows) };
    let head: Option<Head> = serde_json::from_slice(first).ok();
    let Some(head) = head.filter(|head| head.journal == KIND) else {
        return Err("this is no journal of weir sweep; give another --out".to_owned());
    };
    if head != *expect {
        let difference = match head.sweep == expect.sweep {
            true => format!("shard {}, and this is shard {}", head.shard, expect.shard),
            false => format!(
                "another sweep ({}, and this is {}): the sweep file, the layout, the workload, the \
                 catalog or Weir's version is different",
                head.sweep, expect.sweep
            ),
        };
        return Err(format!(
            "this journal belongs to {difference}; give another --out, or remove the journal to \
             start again"
        ));
    }
    let tail = sweep.columns().metrics().count() + 2;
    for (at, line) in lines.enumerate() {
        let entry: Option<Entry> = serde_json::from_slice(line).ok();
        match entry.filter(|own| own.point < sweep.points() && own.row.len() == tail) {
            Some(entry) => rows.insert(entry.point, entry.row),
            None => {
                return Err(format!(
                    "line {} is damaged; remove the journal to start again",
                    at + 2
                ));
            }
        };
    }
    Ok(rows)
}
