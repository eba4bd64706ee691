//! The operations on files that a stripe needs, so that a test can lose power between them.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file that is written.
pub(crate) trait DiskFile: fmt::Debug + Send + Sync {
    /// Writes bytes at an offset.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads bytes at an offset.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Gives the file a length. What is new reads as zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes the contents durable. The name is durable only with its folder.
    fn sync(&self) -> io::Result<()>;
}

/// Files and their names.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Makes a file of a name that is free.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Returns whether anything has that name.
    fn is_there(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
    }

    /// Gives a file a second name, which is free.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, and replaces what has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct System;

impl DiskFile for File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()?;
        // Later reads then come from the medium. Some file systems keep the pages in memory; the bytes are
        // durable all the same.
        let _ = rustix::fs::fadvise(self, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }
}

impl Disk for System {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(file))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// Gives a complete file its name, if that is free: a rename would replace what has it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name is taken, and what the system refuses.
pub(crate) fn publish(disk: &dyn Disk, temporary: &Path, path: &Path) -> io::Result<()> {
    match disk.link(temporary, path) {
        // The file has its name. A temporary name that stays beside it does no harm.
        Ok(()) => {
            let _ = disk.remove(temporary);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Not all file systems have links.
        Err(_) if disk.is_there(path) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => disk.rename(temporary, path),
    }
}
