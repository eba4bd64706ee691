//! Files that are written under a temporary name and renamed when they are whole.

use crate::error::CliError;
use crate::signals;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// The temporary files and new folders of a command, which are removed if a signal ends it.
#[derive(Debug, Clone, Default)]
pub(super) struct CleanUp(Arc<Mutex<Vec<PathBuf>>>);

impl CleanUp {
    /// Makes a signal end the process after it removed what was added.
    pub(super) fn at_end() -> Result<Self, CliError> {
        let own = Self::default();
        let all = own.clone();
        signals::clean_at_end(move || all.run())?;
        Ok(own)
    }

    /// Adds a temporary file, or a folder that this command made.
    pub(super) fn add(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// Removes the files, and the folders that are empty then. Files that have got their names are
    /// left.
    pub(super) fn run(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in all.iter().rev() {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}

/// Creates a temporary file in a folder, with the default permissions of new files. It is removed
/// unless it is kept.
pub(super) fn part_in(folder: &Path) -> io::Result<NamedTempFile> {
    let all = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".").suffix(".part").permissions(all).tempfile_in(folder)
}

/// Creates a temporary file for `path`.
pub(super) fn part_of(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
    part_in(folder.unwrap_or(Path::new(".")))
}

/// Gives a temporary file its name, in place of another file.
pub(super) fn keep(part: NamedTempFile, path: &Path) -> io::Result<()> {
    part.as_file().sync_all()?;
    part.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes a file as a whole.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = part_of(path)?;
    part.write_all(bytes)?;
    keep(part, path)
}
