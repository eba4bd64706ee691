//! The file of a write log, to which entries are appended.

use super::format::{Flags, Head, SECTOR, SECTORS, Super};
use super::pending::{Change, Content};
use crate::{Result, StoreError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// `replay-log` skips longer discards on media that cannot discard.
const DISCARDED: u64 = (128 << 20) / SECTOR;
/// Readers hold the data of an entry in memory.
const ZEROED: u64 = (16 << 20) / SECTOR;

/// A log with its end. The number of entries in its super block counts only those that are complete.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    end: u64,
    entries: u64,
    /// Why it has no more entries.
    broken: Option<String>,
}

impl LogFile {
    /// Makes a new file.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let failed = |source| StoreError::io("create the write log", path, source);
        let file = File::create_new(path).map_err(failed)?;
        let mut log = Self { path: path.to_owned(), file, end: SECTOR, entries: 0, broken: None };
        log.publish()?;
        Ok(log)
    }

    /// Refuses to go on after an entry is missing.
    pub(super) fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(reason) => Err(StoreError::Io {
                context: format!(
                    "the write log {} has ended: {reason}; stop the server, and start it with a new log",
                    self.path.display()
                ),
                source: io::Error::other("no more entries"),
            }),
        }
    }

    /// Ends the log, because a change of the volume cannot be in it.
    pub(super) fn break_off(&mut self, error: &StoreError) {
        self.broken.get_or_insert_with(|| error.to_string());
    }

    /// Appends a change, in parts if it is long; `flags` are those of the last part.
    pub(super) fn change(&mut self, change: &Change, flags: Flags) -> Result<()> {
        match &change.content {
            Content::Data(data) => self.append((change.sector, change.sectors), flags, b"", data),
            Content::Zeros => self.parts(change, ZEROED, (Flags::NONE, flags)),
            Content::Discard => self.parts(change, DISCARDED, (Flags::DISCARD, flags)),
        }
    }

    fn parts(&mut self, change: &Change, most: u64, (kind, last): (Flags, Flags)) -> Result<()> {
        let (mut sector, end) = (change.sector, change.sector + change.sectors);
        while sector < end {
            let sectors = most.min(end - sector);
            let is_last = sector + sectors == end;
            let flags = if is_last { kind.with(last) } else { kind };
            self.append((sector, sectors), flags, b"", &[])?;
            if !flags.has(Flags::DISCARD) {
                // A hole in the log is zeros, and takes no space.
                self.end += sectors * SECTOR;
            }
            sector += sectors;
        }
        Ok(())
    }

    /// Appends a flush.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.append((0, 0), Flags::FLUSH, b"", &[])
    }

    /// Appends a text.
    pub(super) fn mark(&mut self, text: &str) -> Result<()> {
        self.append((0, 0), Flags::MARK, text.as_bytes(), &[])
    }

    fn append(
        &mut self,
        (sector, sectors): (u64, u64),
        flags: Flags,
        text: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let head = Head::encode(sector, sectors, flags, text);
        self.write(self.end, &head)?;
        self.write(self.end + SECTOR, data)?;
        self.end += SECTOR + data.len() as u64;
        self.entries += 1;
        Ok(())
    }

    /// Makes the appended entries a part of the log.
    pub(super) fn publish(&mut self) -> Result<()> {
        // The last entry may end with a hole.
        let grown = self.file.set_len(self.end);
        grown.map_err(|source| self.failed(source))?;
        self.write(0, &Super { entries: self.entries, sector: SECTORS[0] }.encode())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|source| self.failed(source))
    }

    fn failed(&mut self, source: io::Error) -> StoreError {
        let error = StoreError::io("write the write log", &self.path, source);
        self.break_off(&error);
        error
    }
}
