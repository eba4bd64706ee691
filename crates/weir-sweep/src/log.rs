//! A file of lines that one process appends to.
//!
//! A process that is killed leaves at most one line unfinished, which the next one drops.

use crate::error::SweepError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The longest line, in bytes. Other files may have no lines at all.
const LONGEST: u64 = 16 << 20;

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
    /// `verb` is the command that writes it, for messages; the first line of its logs begins with
    /// `{"journal":"VERB `. An unfinished last line is dropped, if the file is a log of that command.
    ///
    /// # Errors
    ///
    /// [`SweepError::Journal`] if it is in use or no log of the command, or with the reason that
    /// `each` returns.
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
            let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut line);
            let bytes = read.map_err(SweepError::io(path))? as u64;
            if line.last() != Some(&b'\n') {
                let is_own = length > 0 || is_beginning(&line, verb);
                if bytes == LONGEST || !is_own {
                    let reason =
                        format!("it is not a journal of {verb}; give another --out, or remove it");
                    return Err(wrong(reason));
                }
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
        if text.len() as u64 > LONGEST {
            let reason = format!("a line of {} bytes is too long for a journal", text.len());
            return Err(SweepError::Journal { path: self.path.clone(), reason });
        }
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
            .and_then(|_| BufReader::new(file).take(LONGEST).read_until(b'\n', &mut line))
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

/// Returns whether an unfinished first line is that of a log of this command.
fn is_beginning(line: &[u8], verb: &str) -> bool {
    let own = format!("{{\"journal\":\"{verb} ");
    line.starts_with(own.as_bytes()) || own.as_bytes().starts_with(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_are_kept_and_own_beginnings_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.journal");
        let open = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("a file");
            let opened = Log::open(&path, "weir sweep", |_, _| Ok(()));
            (opened.map(|log| log.length), fs::read(&path).expect("bytes"))
        };
        for own in ["", "{\"jour", "{\"journal\":\"weir sweep 1\",\"sweep\":\"01"] {
            let (length, left) = open(own.as_bytes());
            assert_eq!((length.expect("a log"), left), (0, Vec::new()));
        }
        for foreign in ["hello", "{\"journal\":\"weir diagnose --fleet 1\"", "{\"x\":1}"] {
            let (length, left) = open(foreign.as_bytes());
            let told = length.expect_err("an error").to_string();
            assert!(told.contains("it is not a journal of weir sweep"), "{told}");
            assert_eq!(left, foreign.as_bytes());
        }
        let (length, left) = open(b"{}\n{\"unfinished");
        assert_eq!((length.expect("a log"), left), (3, b"{}\n".to_vec()));
        let long = vec![b'x'; 17 << 20];
        assert!(open(&long).0.is_err());
    }
}
