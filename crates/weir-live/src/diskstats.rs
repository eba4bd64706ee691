//! The disks of this machine, from `/proc/diskstats`.

use crate::poll::{Greeting, Poll, PollError};
use std::fs;
use std::path::{Path, PathBuf};
use weir_import::live::Answer;

/// The block devices of this machine.
#[derive(Debug)]
pub struct Diskstats {
    path: PathBuf,
}

impl Diskstats {
    /// Reads `/proc/diskstats`, or another file of its format.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn read(&self) -> Result<String, PollError> {
        fs::read_to_string(&self.path).map_err(|error| {
            PollError::Refused(format!("cannot read {}: {error}", self.path.display()))
        })
    }
}

impl Poll for Diskstats {
    fn begin(&mut self) -> Result<Greeting, PollError> {
        if self.read()?.trim().is_empty() {
            return Err(PollError::Refused(format!(
                "{} is empty: this machine shows no block device, as in some containers",
                self.path.display()
            )));
        }
        let about = vec![("file".to_owned(), self.path.display().to_string())];
        Ok(Greeting { about, notes: Vec::new() })
    }

    fn poll(&mut self) -> Result<Answer, PollError> {
        self.read().map(Answer::Diskstats)
    }
}
