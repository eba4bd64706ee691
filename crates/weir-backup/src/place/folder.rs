//! A folder of stripe files: `*.weirbak` in it, and in the folders of it.

use super::{FoundStripe, Place};
use crate::error::BackupError;
use crate::read_at::{FileBytes, ReadAt};
use crate::target::disk::{Disk, System};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The end of a stripe file's name.
pub const EXTENSION: &str = ".weirbak";
/// The end of its name while it is written.
pub const TEMPORARY: &str = ".weirbak.tmp";

/// A folder that holds stripes, or one stripe file.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    name: String,
    disk: Arc<dyn Disk>,
}

impl Folder {
    /// Takes a folder, or a stripe file, whose folder it stands for then.
    ///
    /// # Errors
    /// When there is neither.
    pub fn new(path: &Path) -> Result<Self, BackupError> {
        let refused = |reason: &str| {
            BackupError::Refused(format!("cannot look for backups in {}: {reason}", path.display()))
        };
        let about = fs::metadata(path).map_err(|source| refused(&source.to_string()))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let own = match about.is_dir() {
            true => path,
            false if is_stripe_name(&file) => path.parent().unwrap_or(path),
            false => {
                return Err(refused("it is no stripe of a backup (*.weirbak); give a folder"));
            }
        };
        let own = if own.as_os_str().is_empty() { Path::new(".") } else { own };
        let (path, name) = (own.to_owned(), own.display().to_string());
        Ok(Self { path, name, disk: Arc::new(System) })
    }

    /// Removes files on another disk.
    #[cfg(test)]
    pub(crate) fn on(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// Lists the stripe files of a folder, and the folders in it.
    fn read(path: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), BackupError> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let listing = fs::read_dir(path).map_err(BackupError::file("listing", path))?;
        for entry in listing {
            let entry = entry.map_err(BackupError::file("listing", path))?;
            let own = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if own.is_dir() {
                folders.push(own);
            } else if is_stripe_name(&name) {
                files.push(own);
            }
        }
        files.sort();
        folders.sort();
        Ok((files, folders))
    }
}

impl Place for Folder {
    fn name(&self) -> &str {
        &self.name
    }

    fn list(&mut self) -> Result<Vec<FoundStripe>, BackupError> {
        let (mut files, folders) = Self::read(&self.path)?;
        for folder in folders {
            // A folder of somebody else says nothing about backups.
            match Self::read(&folder) {
                Ok((own, _)) => files.extend(own),
                Err(BackupError::File { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        let mut found = Vec::new();
        for path in files {
            match inspect(&path) {
                Ok(stripe) => found.push(stripe),
                // It was published or removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(BackupError::file("reading", path)(source)),
            }
        }
        Ok(found)
    }

    fn open(&mut self, stripe: &FoundStripe) -> Result<Box<dyn ReadAt>, BackupError> {
        let path = Path::new(&stripe.locator);
        let bytes = File::open(path).and_then(FileBytes::new);
        Ok(Box::new(bytes.map_err(BackupError::file("opening", path))?))
    }

    fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError> {
        let path = Path::new(&stripe.locator);
        self.disk.remove(path).map_err(BackupError::file("removing", path))?;
        let folder = path.parent().unwrap_or(&self.path);
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.disk.sync_folder(folder).map_err(BackupError::file("syncing", folder))
    }
}

fn inspect(path: &Path) -> io::Result<FoundStripe> {
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    let modified = file.metadata()?.modified()?;
    let mut bytes = FileBytes::new(file)?;
    let name = path.display().to_string();
    let since = modified.duration_since(UNIX_EPOCH).ok();
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    // A path that is not text is opened as it was listed, or not at all.
    let locator = path.to_str().map_or_else(|| name.clone(), str::to_owned);
    Ok(FoundStripe {
        modified_unix_ms: since.and_then(|since| u64::try_from(since.as_millis()).ok()),
        is_temporary: own.ends_with(TEMPORARY),
        is_published: own.ends_with(EXTENSION),
        named: named(&own),
        ..FoundStripe::inspect(name, locator, &mut bytes)
    })
}

/// Returns whether a file has the name of a stripe, or of one that is being written.
pub(crate) fn is_stripe_name(file: &str) -> bool {
    file.ends_with(EXTENSION) || file.ends_with(TEMPORARY)
}

/// Returns the stripe, from 0, that a file's name says: `sales-02of04.weirbak` is the second.
#[must_use]
pub fn named(file: &str) -> Option<u8> {
    let stem = file.strip_suffix(EXTENSION).or_else(|| file.strip_suffix(TEMPORARY))?;
    let (number, _) = stem.rsplit_once('-')?.1.split_once("of")?;
    number.parse::<u8>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_name_of_a_file_says_its_stripe() {
        assert_eq!(named("sales-02of04.weirbak"), Some(1));
        assert_eq!(named("a-b-64of64.weirbak.tmp"), Some(63));
        assert_eq!(named("sales.weirbak"), None);
        assert_eq!(named("sales-00of04.weirbak"), None);
        assert_eq!(named("sales-02of04.bak"), None);
    }
}
