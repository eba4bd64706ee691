//! Replaying a write log onto an image.

use super::format::Flags;
use super::read::{Entry, LogReader};
use super::size_in;
use crate::{Result, StoreError};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The bytes of data that are copied at once.
const AT_ONCE: u64 = 1 << 20;

/// A replay: an image file, and the log whose entries it gets one after the other.
#[derive(Debug)]
pub struct Replay {
    log: LogReader,
    path: PathBuf,
    image: File,
    len: u64,
}

impl Replay {
    /// Begins a replay onto a file, which is made if needed. It has the content that the volume had
    /// when its log began.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a file cannot be opened, or is no log.
    pub fn open(log: &Path, image: &Path) -> Result<Self> {
        let log = LogReader::open(log)?;
        let failed = |source| StoreError::io("open the image", image, source);
        let options =
            File::options().read(true).write(true).create(true).truncate(false).open(image);
        let file = options.map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            let what = format!("{} is no regular file", image.display());
            return Err(StoreError::Damaged { what, hint: "give a file, or a path for a new one" });
        }
        Ok(Self { log, path: image.to_owned(), image: file, len: about.len() })
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &LogReader {
        &self.log
    }

    /// Applies the next entry, and returns it; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the log is damaged, or the image cannot be written.
    pub fn step(&mut self) -> Result<Option<Entry>> {
        let Some(entry) = self.log.next_entry()? else { return Ok(None) };
        if entry.flags.has(Flags::MARK) {
            if let Some(size) = size_in(&entry.text) {
                self.set_len(size)?;
            }
            return Ok(Some(entry));
        }
        let end = entry.offset + entry.len;
        if end > self.len {
            self.set_len(end)?;
        }
        if entry.flags.has(Flags::DISCARD) {
            self.zero(entry.offset, entry.len)?;
        }
        if let Some(from) = entry.data {
            let mut done = 0;
            let mut bytes = Vec::new();
            while done < entry.len {
                let part = AT_ONCE.min(entry.len - done);
                bytes.resize(usize::try_from(part).unwrap_or(0), 0);
                self.log.read_at(from + done, &mut bytes)?;
                let written = self.image.write_all_at(&bytes, entry.offset + done);
                written.map_err(|source| self.failed(source))?;
                done += part;
            }
        }
        Ok(Some(entry))
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.image.set_len(len).map_err(|source| self.failed(source))?;
        self.len = len;
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.image, punch, offset, len) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(self.failed(errno.into())),
        }
        self.write_zeros(offset, len)
    }

    /// Writes zeros, where the file system of the image makes no holes.
    pub(super) fn write_zeros(&self, offset: u64, len: u64) -> Result<()> {
        let zeros = vec![0; usize::try_from(AT_ONCE.min(len)).unwrap_or(0)];
        let mut at = offset;
        while at < offset + len {
            let part = AT_ONCE.min(offset + len - at);
            let written = self.image.write_all_at(&zeros[..usize::try_from(part).unwrap_or(0)], at);
            written.map_err(|source| self.failed(source))?;
            at += part;
        }
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> StoreError {
        StoreError::io("write the image", &self.path, source)
    }
}
