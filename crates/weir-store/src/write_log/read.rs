//! Reading a write log.

use super::format::{Flags, HEAD, Head, Super, damaged};
use crate::{Result, StoreError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub number: u64,
    /// The first byte of the volume.
    pub offset: u64,
    /// The bytes of the volume.
    pub len: u64,
    /// Its kind.
    pub flags: Flags,
    /// The text of a mark.
    pub text: String,
    /// The place of its data in the log, if it has data.
    pub(super) data: Option<u64>,
}

/// A log that is read from its first entry to its last, also of a server that still appends to it.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: File,
    about: Super,
    /// The place of the next entry.
    at: u64,
    /// The number of the next entry.
    next: u64,
    /// The bytes of the file.
    len: u64,
}

impl LogReader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be read, or is no log.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| StoreError::io("read the write log", path, source);
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        if len < HEAD as u64 {
            return Err(damaged(path, "is no write log: it is shorter than a super block"));
        }
        let mut bytes = [0; HEAD];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let about = Super::decode(&bytes, path)?;
        let at = u64::from(about.sector);
        Ok(Self { path: path.to_owned(), file, about, at, next: 0, len })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.about.entries
    }

    /// Returns the bytes of a sector.
    #[must_use]
    pub fn sector(&self) -> u32 {
        self.about.sector
    }

    /// Returns the next entry, or `None` behind the last one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be read, or is damaged there.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        if self.next == self.about.entries {
            return Ok(None);
        }
        let (sector, number) = (u64::from(self.about.sector), self.next);
        let wrong = |what: &str| damaged(&self.path, &format!("is damaged: entry {number} {what}"));
        let mut bytes = [0; HEAD];
        self.read_at(self.at, &mut bytes)?;
        let head = Head::decode(&bytes);
        let (offset, len) = (head.sector.checked_mul(sector), head.sectors.checked_mul(sector));
        let (Some(offset), Some(len)) = (offset, len) else {
            return Err(wrong("is of sectors beyond the largest volume"));
        };
        if offset.checked_add(len).is_none() {
            return Err(wrong("reaches beyond the largest volume"));
        }
        if head.flags == Flags::NONE && len == 0 {
            return Err(wrong("is empty"));
        }
        if head.text > sector - HEAD as u64 {
            return Err(wrong("has a text that is longer than a sector"));
        }
        let mut text = vec![0; usize::try_from(head.text).unwrap_or(0)];
        self.read_at(self.at + HEAD as u64, &mut text)?;
        let data = head.has_data().then_some(self.at + sector);
        let end = (self.at + sector).checked_add(if data.is_some() { len } else { 0 });
        let end = end.filter(|end| *end <= self.len);
        self.at = end.ok_or_else(|| wrong("is longer than the file"))?;
        self.next += 1;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Some(Entry { number, offset, len, flags: head.flags, text, data }))
    }

    /// Reads a part of an entry's data.
    pub(super) fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let failed = |source| StoreError::io("read the write log", &self.path, source);
        self.file.read_exact_at(bytes, at).map_err(failed)
    }
}
