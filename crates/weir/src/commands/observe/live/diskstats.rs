//! The disks of this machine, as `/proc/diskstats` counts them.

use super::asker::{Ask, AskError, Greeting};
use std::fs;
use std::path::{Path, PathBuf};
use weir_observe::live::Answer;

pub(super) struct Diskstats {
    path: PathBuf,
}

impl Diskstats {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn read(&self) -> Result<String, AskError> {
        let wrong =
            |error| AskError::Refused(format!("cannot read {}: {error}", self.path.display()));
        fs::read_to_string(&self.path).map_err(wrong)
    }
}

impl Ask for Diskstats {
    fn begin(&mut self) -> Result<Greeting, AskError> {
        if self.read()?.trim().is_empty() {
            return Err(AskError::Refused(format!(
                "{} is empty: this machine shows no block device, as some containers do",
                self.path.display()
            )));
        }
        let about = vec![("file".to_owned(), self.path.display().to_string())];
        Ok(Greeting { about, notes: Vec::new() })
    }

    fn ask(&mut self) -> Result<Answer, AskError> {
        self.read().map(Answer::Diskstats)
    }
}
