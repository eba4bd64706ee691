//! The observation that a walk waits for.

use crate::error::CliError;
use crate::output;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::Path;
use std::time::SystemTime;
use weir_observe::format::{Ending, ReadError, Reader, SIGNATURE};

/// An observation that another process writes.
pub(super) struct Awaited<'a> {
    path: &'a Path,
    /// Length and time of the file when it was last read.
    seen: Option<(u64, SystemTime)>,
    /// The user knows that the file is incomplete.
    is_told: bool,
}

impl<'a> Awaited<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self { path, seen: None, is_told: false }
    }

    /// Returns whether the observation is there with its end. A file that has not changed since the
    /// last call is not read again.
    pub(super) fn is_complete(&mut self) -> Result<bool, CliError> {
        let state = fs::metadata(self.path).ok();
        let state = state.and_then(|meta| Some((meta.len(), meta.modified().ok()?)));
        let has_beginning = state.is_some_and(|(len, _)| len >= SIGNATURE.len() as u64);
        if state == std::mem::replace(&mut self.seen, state) || !has_beginning {
            return Ok(false);
        }
        self.has_end()
    }

    fn has_end(&mut self) -> Result<bool, CliError> {
        let path = self.path;
        let refuse = |error: ReadError| {
            let path = path.display();
            CliError::Refused(format!(
                "{path}: {error}; for files of other tools: weir observe import FILE --out {path}"
            ))
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(CliError::Read { path: path.to_owned(), source }),
        };
        let mut reader = match Reader::open(BufReader::new(file)) {
            Ok(reader) => reader,
            Err(error @ ReadError::Header { .. }) => {
                self.tell(&format!("{error}; waiting for the rest of the file"));
                return Ok(false);
            }
            Err(error) => return Err(refuse(error)),
        };
        while reader.next_chunk().map_err(refuse)?.is_some() {}
        let has_end = !matches!(reader.into_parts().2, Ending::Cut { .. });
        if !has_end {
            self.tell(
                "has no end yet; waiting for its recorder (if that was killed, record it again)",
            );
        }
        Ok(has_end)
    }

    /// Says once why the file does not count yet.
    fn tell(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            output::talk(&format!("{}: {why}", self.path.display()));
        }
    }
}
