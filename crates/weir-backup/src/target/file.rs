//! Stripe files in a folder.
//!
//! A file has a temporary name until it is complete and durable. Then it is renamed, and the folder
//! is made durable too. A backup that ends early leaves at most files with temporary names.

use super::StripeSink;
use crate::error::BackupError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A stripe file that is written.
#[derive(Debug)]
pub struct StripeFile {
    file: File,
    folder: PathBuf,
    temporary: PathBuf,
    path: PathBuf,
    is_published: AtomicBool,
}

impl StripeFile {
    /// Makes the file of a stripe with its temporary name. `name` is the name that it gets.
    ///
    /// # Errors
    /// When a file of one of the two names is there, or the folder does not take it.
    pub fn create(folder: &Path, name: &str) -> Result<Self, BackupError> {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(exists(&path));
        }
        let temporary = folder.join(format!("{name}.tmp"));
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&temporary),
            _ => BackupError::file("creating", &temporary)(error),
        })?;
        let is_published = AtomicBool::new(false);
        Ok(Self { file, folder: folder.to_owned(), temporary, path, is_published })
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> BackupError {
        BackupError::file(action, &self.temporary)
    }
}

fn exists(path: &Path) -> BackupError {
    BackupError::Refused(format!(
        "{} is there already; give the backup another name or another folder",
        path.display()
    ))
}

impl StripeSink for StripeFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        self.file.write_all_at(bytes, offset).map_err(self.failed("writing"))
    }

    fn sync(&self, _length: u64, _is_closed: bool) -> Result<(), BackupError> {
        self.file.sync_all().map_err(self.failed("syncing"))
    }

    fn publish(&self) -> Result<(), BackupError> {
        // A rename would replace a file; the link refuses to.
        match fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => fs::remove_file(&self.temporary).map_err(self.failed("removing"))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.path));
            }
            // Not all file systems have links.
            Err(_) if fs::symlink_metadata(&self.path).is_ok() => return Err(exists(&self.path)),
            Err(_) => {
                fs::rename(&self.temporary, &self.path).map_err(self.failed("renaming"))?;
            }
        }
        self.is_published.store(true, Ordering::Relaxed);
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(BackupError::file("syncing", &self.folder))
    }

    fn discard(&self) {
        // A file that stays is no stripe, or one of an incomplete backup.
        let _ = fs::remove_file(&self.temporary);
        if self.is_published.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the bytes that are free for files in a folder.
///
/// # Errors
/// When there is no such folder.
pub fn free(folder: &Path) -> Result<u64, BackupError> {
    let about = rustix::fs::statvfs(folder).map_err(io::Error::from);
    let about = about.map_err(BackupError::file("looking for room in", folder))?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}
