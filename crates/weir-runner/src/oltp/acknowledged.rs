//! The newest acknowledged transaction, in its own file.
//!
//! A database reports a transaction as done, and its client remembers it. Here, the client is in
//! the process that may be killed, so it writes the number to a file before it counts the
//! transaction: one write of one line in place, without a sync. This proves the effects of a killed
//! process, but not those of a loss of power. Then the line may be older, and its number is too low
//! but never too high.

use crate::error::RunnerError;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Acknowledged {
    path: PathBuf,
    /// The file, created with the first number: reading a database creates nothing.
    file: Option<File>,
    newest: Option<u64>,
}

impl Acknowledged {
    /// Opens the file, if it exists.
    pub(super) fn open(path: &Path) -> Result<Self, RunnerError> {
        let (failed, owned) =
            (failed("opening the file of acknowledged transactions", path), path.to_owned());
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && has_folder(path) => {
                return Ok(Self { path: owned, file: None, newest: None });
            }
            other => other.map_err(&failed)?,
        };
        let mut text = String::new();
        (&mut file).take(64).read_to_string(&mut text).map_err(failed)?;
        let newest = match text.trim() {
            "" => None,
            number => Some(number.parse().map_err(|_| RunnerError::Acknowledged {
                path: path.to_owned(),
                text: number.to_owned(),
            })?),
        };
        Ok(Self { path: owned, file: Some(file), newest })
    }

    /// Returns the newest acknowledged transaction, if there is a number.
    pub(super) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Returns the reason why there is no number, as a note about a database that has
    /// transactions.
    pub(super) fn no_number(&self) -> String {
        let why = if self.file.is_some() { "empty" } else { "missing" };
        format!(
            "no number of acknowledged transactions ({} is {why}): the end of the log is not proved",
            self.path.display()
        )
    }

    /// Records that all transactions up to `newest` are acknowledged.
    pub(super) fn advance(&mut self, newest: u64) -> Result<(), RunnerError> {
        if Some(newest) > self.newest {
            let failed = failed("recording an acknowledged transaction", &self.path);
            let file = match self.file.take() {
                Some(file) => file,
                None => File::create(&self.path).map_err(&failed)?,
            };
            let line = format!("{newest:>20}\n");
            self.file.insert(file).write_all_at(line.as_bytes(), 0).map_err(failed)?;
            self.newest = Some(newest);
        }
        Ok(())
    }
}

/// Returns whether a file can be created there.
fn has_folder(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).is_dir()
}

/// Adds the path to an error of the system.
fn failed(context: &'static str, path: &Path) -> impl Fn(io::Error) -> RunnerError {
    move |source| {
        let said = format!("{}: {source}", path.display());
        RunnerError::system(context)(io::Error::new(source.kind(), said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_newest_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acknowledged");
        let mut file = Acknowledged::open(&path).unwrap();
        let no_number = |why: &str| {
            let path = path.display();
            format!(
                "no number of acknowledged transactions ({path} is {why}): the end of the log is \
                 not proved"
            )
        };
        assert_eq!((file.newest(), file.no_number()), (None, no_number("missing")));
        // Reading creates nothing.
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        let empty = Acknowledged::open(&path).unwrap();
        assert_eq!((empty.newest(), empty.no_number()), (None, no_number("empty")));
        for newest in [9, 10, 10, 7] {
            file.advance(newest).unwrap();
        }
        assert_eq!(Acknowledged::open(&path).unwrap().newest(), Some(10));
        fs::write(&path, "ten\n").unwrap();
        let refused = Acknowledged::open(&path).map(|_| ()).unwrap_err();
        let said = format!(
            "{}: \"ten\" is not a transaction number; the file was not written by weir run",
            path.display()
        );
        assert_eq!(refused.to_string(), said);
    }

    #[test]
    fn a_file_that_cannot_be_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("acknowledged");
        let said = format!(
            "opening the file of acknowledged transactions: {}: No such file or directory (os \
             error 2)",
            path.display()
        );
        assert_eq!(Acknowledged::open(&path).unwrap_err().to_string(), said);
    }
}
