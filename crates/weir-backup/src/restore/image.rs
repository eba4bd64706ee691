//! Raw images in a folder: `NAME.raw`, sparse, written as `NAME.raw.tmp` and renamed at the end. Where
//! several images replace others, these are called `NAME.raw.old` in between.

use super::target::{Target, TargetIo};
use crate::error::BackupError;
use crate::target::disk::{self, Disk, DiskFile, System};
use crate::target::file::free;
use crate::verify::Watch;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_units::Bytes;

/// The unit in which zeros are written.
const ZEROS: usize = 1 << 20;

/// An image that a source is restored to.
#[derive(Debug)]
pub struct ImageTarget {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    folder: PathBuf,
    path: PathBuf,
    temporary: PathBuf,
    /// The name of the image that is replaced, in between.
    old: PathBuf,
    name: String,
    size: u64,
    is_replaced: bool,
    is_published: AtomicBool,
    is_aside: AtomicBool,
    /// Whether publishing it replaced an image that was not set aside.
    has_replaced: AtomicBool,
}

impl ImageTarget {
    /// Makes an empty image of `size` bytes for the source `name`. Links are not followed: an image,
    /// or a part of one, that is to be replaced is removed as what it is.
    ///
    /// # Errors
    /// When an image of this name is there and not to be replaced, or it cannot be made.
    pub fn create(
        folder: &Path,
        name: &str,
        size: u64,
        is_replaced: bool,
    ) -> Result<Self, BackupError> {
        Self::create_on(Arc::new(System), folder, (name, size), is_replaced)
    }

    pub(crate) fn create_on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        (name, size): (&str, u64),
        is_replaced: bool,
    ) -> Result<Self, BackupError> {
        // A source can be an export of any name.
        let file: String = name
            .chars()
            .map(|c| if c == '/' || c == '\\' || c == '\0' { '_' } else { c })
            .collect();
        let path = folder.join(format!("{file}.raw"));
        let temporary = folder.join(format!("{file}.raw.tmp"));
        let old = folder.join(format!("{file}.raw.old"));
        if disk.is_there(&path) && !is_replaced {
            return Err(exists(&path));
        }
        fs::create_dir_all(folder).map_err(BackupError::file("making", folder))?;
        if is_replaced {
            match disk.remove(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(BackupError::file("removing", &temporary)(error));
                }
                _ => {}
            }
        }
        let made = disk.create_new(&temporary);
        let file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Refused(format!(
                "{} is there already, of a restore that runs or was interrupted; --force replaces \
                 it",
                temporary.display()
            )),
            _ => BackupError::file("making", &temporary)(error),
        })?;
        let own = Self {
            disk,
            file: Arc::from(file),
            folder: if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.to_owned(),
            name: path.display().to_string(),
            path,
            temporary,
            old,
            size,
            is_replaced,
            is_published: false.into(),
            is_aside: false.into(),
            has_replaced: false.into(),
        };
        own.file.set_len(size).map_err(BackupError::file("growing", &own.temporary))?;
        Ok(own)
    }

    fn sync_folder(&self) -> Result<(), BackupError> {
        self.disk.sync_folder(&self.folder).map_err(BackupError::file("syncing", &self.folder))
    }

    /// Gives the image that was replaced its name again, or removes the new one.
    fn restore_old(&self) -> io::Result<()> {
        if self.is_aside.load(Ordering::Relaxed) {
            return self.disk.rename(&self.old, &self.path);
        }
        match (self.is_published.load(Ordering::Relaxed), self.has_replaced.load(Ordering::Relaxed))
        {
            (true, true) => Err(io::Error::other("it was replaced and is whole")),
            (true, false) => self.disk.remove(&self.path),
            (false, _) => Ok(()),
        }
    }
}

/// Checks that a folder has room for images that take `needed` bytes.
///
/// # Errors
/// [`BackupError::Refused`] if it has not.
pub fn check_room(folder: &Path, needed: u64) -> Result<(), BackupError> {
    // The folder may be made by the restore: its parent is on the same file system then.
    let there = folder.ancestors().find(|own| own.is_dir()).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let free = free(there)?;
    if free >= needed {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "no room in {}: the images need {}, and {} are available; give another folder, restore less \
         with --only, or try it with --force",
        folder.display(),
        rounded(needed),
        rounded(free)
    )))
}

/// Rounds a size for a message, to two digits at least.
fn rounded(bytes: u64) -> Bytes {
    let units = [1_u64 << 40, 1 << 30, 1 << 20, 1 << 10];
    let unit = units.into_iter().find(|unit| bytes / unit >= 10).unwrap_or(1);
    Bytes::new(bytes.saturating_add(unit / 2) / unit * unit)
}

fn exists(path: &Path) -> BackupError {
    BackupError::Refused(format!("{} is there already; --force replaces it", path.display()))
}

impl Drop for ImageTarget {
    fn drop(&mut self) {
        if !*self.is_published.get_mut() {
            // It is incomplete, and its name says so if it cannot be removed.
            drop(self.disk.remove(&self.temporary));
        }
    }
}

impl Target for ImageTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn is_empty(&self, _: &Watch) -> Result<bool, BackupError> {
        Ok(true)
    }

    fn clear(&self, _: &Watch) -> Result<(), BackupError> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<Box<dyn TargetIo>, BackupError> {
        Ok(Box::new(ImageWay { file: Arc::clone(&self.file), path: self.temporary.clone() }))
    }

    fn is_hidden(&self) -> bool {
        true
    }

    fn check_aside(&self) -> Result<(), BackupError> {
        if !self.is_replaced || !self.disk.is_there(&self.old) {
            return Ok(());
        }
        Err(BackupError::Refused(format!(
            "{} is there already, maybe of a restore that was interrupted: it may have the contents of {} \
             before; give it that name again, or move it away",
            self.old.display(),
            self.path.display()
        )))
    }

    fn set_aside(&self) -> Result<(), BackupError> {
        if !self.is_replaced || !self.disk.is_there(&self.path) {
            return Ok(());
        }
        self.check_aside()?;
        let moved = self.disk.rename(&self.path, &self.old);
        moved.map_err(BackupError::file("renaming", &self.path))?;
        self.is_aside.store(true, Ordering::Relaxed);
        self.sync_folder()
    }

    fn publish(&self) -> Result<(), BackupError> {
        self.file.sync().map_err(BackupError::file("syncing", &self.temporary))?;
        self.has_replaced.store(self.disk.is_there(&self.path), Ordering::Relaxed);
        let renamed = match self.is_replaced {
            true => self.disk.rename(&self.temporary, &self.path),
            false => disk::publish(self.disk.as_ref(), &self.temporary, &self.path),
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => BackupError::file("renaming", &self.temporary)(error),
        })?;
        self.is_published.store(true, Ordering::Relaxed);
        self.sync_folder()
    }

    fn settle(&self) {
        if self.is_aside.load(Ordering::Relaxed) {
            // One that stays is no image by its name.
            let _ = self.disk.remove(&self.old).and_then(|()| self.disk.sync_folder(&self.folder));
        }
    }

    fn take_back(&self) -> Result<(), BackupError> {
        self.restore_old().and_then(|()| self.disk.sync_folder(&self.folder)).map_err(|error| {
            BackupError::Failed(match self.is_aside.load(Ordering::Relaxed) {
                true => format!(
                    "{} is not as it was before: {error}; {} has its old contents",
                    self.path.display(),
                    self.old.display()
                ),
                false => format!("{} was not removed: {error}", self.path.display()),
            })
        })
    }
}

struct ImageWay {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

impl ImageWay {
    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> BackupError {
        BackupError::file(action, &self.path)
    }
}

impl TargetIo for ImageWay {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError> {
        self.file.write_at(offset, data).map_err(self.failed("writing"))
    }

    fn write_zeros(&mut self, offset: u64, length: u64) -> Result<(), BackupError> {
        let zeros = vec![0; usize::try_from(length).unwrap_or(ZEROS).min(ZEROS)];
        let (mut at, end) = (offset, offset.saturating_add(length));
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(ZEROS).min(zeros.len());
            self.write(at, &zeros[..part])?;
            at += part as u64;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackupError> {
        self.file.sync().map_err(self.failed("syncing"))
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), BackupError> {
        self.file.read_at(offset, data).map_err(self.failed("reading"))
    }
}
