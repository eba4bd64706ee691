//! A file of lines that one process appends to.
//!
//! A process that is killed leaves at most one line unfinished, which the next one drops.

use crate::error::SweepError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log that is open, and locked against other processes.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    /// Returns the path of the log that belongs to an output.
    #[must_use]
    pub fn beside(output: &Path) -> PathBuf {
        let mut path = output.as_os_str().to_owned();
        path.push(".journal");
        path.into()
    }

    /// Opens a log, or creates an empty one, and passes each whole line with its offset to `each`.
    /// `verb` is the command that writes it, for messages.
    ///
    /// # Errors
    ///
    /// [`SweepError::Journal`] if it is in use, or with the reason that `each` returns.
    pub fn open(
        path: &Path,
        verb: &str,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), String>,
    ) -> Result<Self, SweepError> {
        let wrong = |reason: String| SweepError::Journal { path: path.to_owned(), reason };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(SweepError::io(path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let reason = format!("another {verb} writes it; give this one another --out");
                return Err(wrong(reason));
            }
            Err(error) => return Err(SweepError::io(path)(error.into())),
        }
        let (mut length, mut line) = (0, Vec::new());
        let mut reader = BufReader::new(&file);
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(SweepError::io(path))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            each(length, &line).map_err(wrong)?;
            length += line.len() as u64;
        }
        file.set_len(length).map_err(SweepError::io(path))?;
        file.seek(SeekFrom::End(0)).map_err(SweepError::io(path))?;
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a line, and returns its offset.
    ///
    /// # Errors
    ///
    /// [`SweepError::Io`].
    pub fn append(&mut self, line: &impl Serialize) -> Result<u64, SweepError> {
        let io = |source| SweepError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_string(line).map_err(|error| io(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(io)?;
        let offset = self.length;
        self.length += text.len() as u64;
        Ok(offset)
    }

    /// Reads the line at an offset.
    ///
    /// # Errors
    ///
    /// [`SweepError::Io`].
    pub fn line(&self, offset: u64) -> Result<Vec<u8>, SweepError> {
        let mut file = &self.file;
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| BufReader::new(file).read_until(b'\n', &mut line))
            .map_err(SweepError::io(&self.path))?;
        Ok(line)
    }

    /// Removes the log.
    ///
    /// # Errors
    ///
    /// [`SweepError::Io`].
    pub fn remove(self) -> Result<(), SweepError> {
        fs::remove_file(&self.path).map_err(SweepError::io(self.path))
    }
}
