//! Stripe files in a folder.
//!
//! A file has a temporary name until it is complete and durable. Then it is renamed, and the folder
//! is made durable too. A backup that ends early leaves at most files with temporary names.

use super::StripeSink;
use super::disk::{Disk, DiskFile, System, publish};
use crate::error::BackupError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stripe file that is written.
#[derive(Debug)]
pub struct StripeFile {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    folder: PathBuf,
    temporary: PathBuf,
    path: PathBuf,
    is_published: AtomicBool,
    is_cancelled: AtomicBool,
}

impl StripeFile {
    /// Makes the file of a stripe with its temporary name. `name` is the name that it gets.
    ///
    /// # Errors
    /// When a file of one of the two names is there, or the folder does not take it.
    pub fn create(folder: &Path, name: &str) -> Result<Self, BackupError> {
        Self::create_on(Arc::new(System), folder, name)
    }

    pub(crate) fn create_on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        name: &str,
    ) -> Result<Self, BackupError> {
        let path = folder.join(name);
        if disk.is_there(&path) {
            return Err(exists(&path));
        }
        let temporary = folder.join(format!("{name}.tmp"));
        let file = disk.create_new(&temporary).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&temporary),
            _ => failed("creating", &temporary)(error),
        })?;
        Ok(Self {
            disk,
            file,
            folder: folder.to_owned(),
            temporary,
            path,
            is_published: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Returns an error once another stripe has failed.
    fn check(&self) -> Result<(), BackupError> {
        match self.is_cancelled.load(Ordering::Relaxed) {
            true => Err(BackupError::Interrupted),
            false => Ok(()),
        }
    }
}

/// Puts a failure into a sentence; one for lack of room says what to do.
fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> BackupError + 'a {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BackupError::NoRoom(format!(
            "no room for {}: {source}; no backup was made, earlier ones are whole. Free some room, give \
             another target, or compress the backup",
            path.display()
        )),
        _ => BackupError::file(action, path)(source),
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
        self.check()?;
        self.file.write_at(offset, bytes).map_err(failed("writing", &self.temporary))
    }

    fn sync(&self, _length: u64, _is_closed: bool) -> Result<(), BackupError> {
        self.check()?;
        self.file.sync().map_err(failed("syncing", &self.temporary))
    }

    fn publish(&self) -> Result<(), BackupError> {
        publish(self.disk.as_ref(), &self.temporary, &self.path).map_err(|error| {
            match error.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.path),
                _ => failed("renaming", &self.temporary)(error),
            }
        })?;
        // From here on the name is this stripe's, and goes with it if another one fails.
        self.is_published.store(true, Ordering::Relaxed);
        self.disk.sync_folder(&self.folder).map_err(failed("syncing", &self.folder))
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn discard(&self) -> Result<(), BackupError> {
        let mut removed = self.disk.remove(&self.temporary);
        // The temporary name goes when the file gets its own.
        if self.is_published.load(Ordering::Relaxed) {
            removed = self.disk.remove(&self.path);
        }
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path =
                    if self.disk.is_there(&self.path) { &self.path } else { &self.temporary };
                Err(BackupError::Failed(format!("{} was not removed: {error}", path.display())))
            }
            // A name that comes back after a power loss is that of an incomplete backup, or of one that
            // is whole.
            _ => match self.disk.sync_folder(&self.folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(failed("syncing", &self.folder)(error))
                }
                _ => Ok(()),
            },
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
