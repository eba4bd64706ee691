//! Answers of a system to values.

use crate::error::ImportError;
use crate::join::Places;
use crate::linux::diskstats::Snapshots;
use crate::results::RowSet;
use crate::rows::AskedRows;
use crate::sheet::Sheet;
use crate::{postgres, sql};
use std::collections::HashSet;

/// The answer of a system.
#[derive(Debug)]
pub enum Answer {
    /// The text of `/proc/diskstats`.
    Diskstats(String),
    /// Result sets of a database server.
    Sets(Vec<RowSet>),
}

enum Reading {
    Diskstats(Box<Snapshots>),
    Sets(Box<AskedRows>),
}

/// A system that is polled, and the state of its readers.
pub struct Feed {
    name: String,
    reading: Reading,
    pub(super) sheet: Sheet,
    pub(super) places: Places,
    /// Notes given already.
    pub(super) told: HashSet<String>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Feed {
    fn new(name: &str, reading: Reading) -> Self {
        let (sheet, places) = (Sheet::default(), Places::default());
        Self { name: name.to_owned(), reading, sheet, places, told: HashSet::new() }
    }

    /// Creates a feed of the disks of this machine.
    #[must_use]
    pub fn diskstats(name: &str) -> Self {
        Self::new(name, Reading::Diskstats(Box::default()))
    }

    /// Creates a feed of a SQL Server on `host`.
    #[must_use]
    pub fn sqlserver(name: &str, host: &str) -> Self {
        Self::new(name, Reading::Sets(Box::new(AskedRows::new(sql::plan, host))))
    }

    /// Creates a feed of a PostgreSQL server on `host`.
    #[must_use]
    pub fn postgres(name: &str, host: &str) -> Self {
        Self::new(name, Reading::Sets(Box::new(AskedRows::new(postgres::stat::plan, host))))
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes the unused parts of its answers.
    pub(super) fn unused(&mut self) -> Option<String> {
        let told = self.sheet.told_unused()?;
        Some(format!("{}: {told}", self.name))
    }

    /// Takes an answer with its time, in nanoseconds since 1970.
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
