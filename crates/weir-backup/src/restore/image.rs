//! Raw images in a folder: `NAME.raw`, sparse, written as `NAME.raw.tmp` and renamed at the end.

use super::{Target, TargetIo};
use crate::error::BackupError;
use crate::verify::Watch;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The unit in which zeros are written.
const ZEROS: usize = 1 << 20;

/// An image that a source is restored to.
#[derive(Debug)]
pub struct ImageTarget {
    path: PathBuf,
    temporary: PathBuf,
    name: String,
    size: u64,
    is_published: std::sync::atomic::AtomicBool,
}

impl ImageTarget {
    /// Makes an empty image of `size` bytes for the source `name`.
    ///
    /// # Errors
    /// When an image of this name is there and not to be replaced, or it cannot be made.
    pub fn create(
        folder: &Path,
        name: &str,
        size: u64,
        is_replaced: bool,
    ) -> Result<Self, BackupError> {
        // A source can be an export of any name.
        let file: String = name
            .chars()
            .map(|c| if c == '/' || c == '\\' || c == '\0' { '_' } else { c })
            .collect();
        let path = folder.join(format!("{file}.raw"));
        let temporary = folder.join(format!("{file}.raw.tmp"));
        if path.exists() && !is_replaced {
            return Err(BackupError::Refused(format!(
                "{} is there already; --force replaces it",
                path.display()
            )));
        }
        fs::create_dir_all(folder).map_err(BackupError::file("making", folder))?;
        let file = File::create(&temporary).map_err(BackupError::file("making", &temporary))?;
        file.set_len(size).map_err(BackupError::file("growing", &temporary))?;
        let name = path.display().to_string();
        Ok(Self { path, temporary, name, size, is_published: false.into() })
    }
}

impl Drop for ImageTarget {
    fn drop(&mut self) {
        if !*self.is_published.get_mut() {
            // It is incomplete, and its name says so if it cannot be removed.
            drop(fs::remove_file(&self.temporary));
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

    fn open(&self) -> Result<Box<dyn TargetIo>, BackupError> {
        let file = File::options().read(true).write(true).open(&self.temporary);
        let file = file.map_err(BackupError::file("opening", &self.temporary))?;
        Ok(Box::new(ImageWay { file, path: self.temporary.clone() }))
    }

    fn publish(&self) -> Result<(), BackupError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let synced = File::open(&self.temporary).and_then(|file| file.sync_all());
        synced.map_err(BackupError::file("syncing", &self.temporary))?;
        fs::rename(&self.temporary, &self.path)
            .map_err(BackupError::file("renaming", &self.temporary))?;
        self.is_published.store(true, std::sync::atomic::Ordering::Relaxed);
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(BackupError::file("syncing", folder))
    }
}

struct ImageWay {
    file: File,
    path: PathBuf,
}

impl ImageWay {
    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> BackupError {
        BackupError::file(action, &self.path)
    }
}

impl TargetIo for ImageWay {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError> {
        self.file.write_all_at(data, offset).map_err(self.failed("writing"))
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
        self.file.sync_data().map_err(self.failed("syncing"))
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), BackupError> {
        self.file.read_exact_at(data, offset).map_err(self.failed("reading"))
    }
}
