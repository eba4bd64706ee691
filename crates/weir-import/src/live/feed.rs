//! From what a system said to values.

use crate::linux::Snapshots;
use crate::{AskedRows, ImportError, RowSet, Sheet};
use crate::{postgres, sql};
use std::collections::HashSet;

/// What a system said when it was asked.
#[derive(Debug)]
pub enum Answer {
    /// `/proc/diskstats`, as it is.
    Diskstats(String),
    /// Result sets of a database server.
    Sets(Vec<RowSet>),
}

enum Reading {
    Diskstats(Box<Snapshots>),
    Sets(Box<AskedRows>),
}

/// Somebody who is asked again and again, and what was said so far.
pub struct Feed {
    name: String,
    reading: Reading,
    pub(super) sheet: Sheet,
    pub(super) places: crate::join::Places,
    /// What was said of it already.
    pub(super) told: HashSet<String>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Feed {
    fn new(name: &str, reading: Reading) -> Self {
        let (sheet, places) = (Sheet::default(), crate::join::Places::default());
        Self { name: name.to_owned(), reading, sheet, places, told: HashSet::new() }
    }

    /// Disks of this machine.
    #[must_use]
    pub fn diskstats(name: &str) -> Self {
        Self::new(name, Reading::Diskstats(Box::default()))
    }

    /// A SQL Server on `host`.
    #[must_use]
    pub fn sqlserver(name: &str, host: &str) -> Self {
        Self::new(name, Reading::Sets(Box::new(AskedRows::new(sql::plan, host))))
    }

    /// A PostgreSQL on `host`.
    #[must_use]
    pub fn postgres(name: &str, host: &str) -> Self {
        Self::new(name, Reading::Sets(Box::new(AskedRows::new(postgres::stat::plan, host))))
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was not used of what it said, in a sentence.
    pub(super) fn unused(&mut self) -> Option<String> {
        let told = self.sheet.told_unused()?;
        Some(format!("{}: {told}", self.name))
    }

    /// Takes an answer of `at`, in nanoseconds since 1970.
    pub(super) fn take(&mut self, at: i64, answer: Answer) -> Result<(), ImportError> {
        self.sheet.clear();
        match (&mut self.reading, answer) {
            (Reading::Diskstats(reader), Answer::Diskstats(text)) => {
                reader.take(&mut self.sheet, at, text)
            }
            (Reading::Sets(reader), Answer::Sets(sets)) => reader.take(&mut self.sheet, at, sets),
            (_, answer) => {
                let what = match answer {
                    Answer::Diskstats(_) => "/proc/diskstats",
                    Answer::Sets(_) => "result sets",
                };
                Err(ImportError::whole(format!("{} was not asked for {what}", self.name)))
            }
        }
    }
}
