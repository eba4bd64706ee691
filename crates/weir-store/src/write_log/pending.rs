//! Changes that no flush covers yet.

use super::file::LogFile;
use super::format::{Flags, SECTOR};
use crate::Result;
use std::collections::VecDeque;

/// A change of whole sectors.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) sector: u64,
    pub(super) sectors: u64,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Data(Vec<u8>),
    Zeros,
    Discard,
}

impl Change {
    pub(super) fn new(from: u64, to: u64, content: Content) -> Self {
        Self { sector: from / SECTOR, sectors: (to - from) / SECTOR, content }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.sector < other.sector + other.sectors && other.sector < self.sector + self.sectors
    }

    /// Returns the bytes that it keeps in memory.
    fn held(&self) -> usize {
        match &self.content {
            Content::Data(data) => data.len(),
            Content::Zeros | Content::Discard => 0,
        }
    }
}

/// A log, and changes that are not in it yet.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) file: LogFile,
    /// In the order in which the store took them.
    changes: VecDeque<Change>,
    /// The number of the first of them, since the start.
    first: u64,
    /// The bytes that they keep in memory.
    held: usize,
    /// The most bytes that they may keep.
    most: usize,
}

impl Log {
    pub(super) fn new(file: LogFile, most: usize) -> Self {
        Self { file, changes: VecDeque::new(), first: 0, held: 0, most }
    }

    /// Returns the number of the next change: a flush that begins now covers all changes before it.
    pub(super) fn next(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    /// Takes changes, which wait for a flush. The oldest go into the log if there are too many: a
    /// medium may also write before it is told to.
    pub(super) fn add(&mut self, changes: Vec<Change>) -> Result<()> {
        for change in changes {
            self.held += change.held();
            self.changes.push_back(change);
        }
        if self.held <= self.most {
            return Ok(());
        }
        while self.held > self.most / 2 {
            self.pass()?;
        }
        self.file.publish()
    }

    /// Takes changes that are durable, before those that are not. Older changes of the same sectors go
    /// first, so that the newest content stays; with them everything older, to keep their order.
    pub(super) fn add_durable(&mut self, changes: &[Change]) -> Result<()> {
        let is_under = |own: &Change| changes.iter().any(|change| change.overlaps(own));
        let older = self.changes.iter().rposition(is_under).map_or(0, |last| last + 1);
        for _ in 0..older {
            self.pass()?;
        }
        let last = changes.len().saturating_sub(1);
        for (at, change) in changes.iter().enumerate() {
            self.file.change(change, if at == last { Flags::FUA } else { Flags::NONE })?;
        }
        self.file.publish()
    }

    /// Takes in that a flush has ended that covers the changes before a number.
    pub(super) fn flush(&mut self, end: u64) -> Result<()> {
        while self.first < end && self.pass()? {}
        self.file.flush()?;
        self.file.publish()
    }

    /// Takes in that the volume has another size, from `old` on down to `new` without its bytes.
    pub(super) fn resized(&mut self, cut: Option<Change>, mark: &str) -> Result<()> {
        while self.pass()? {}
        if let Some(cut) = cut {
            self.file.change(&cut, Flags::NONE)?;
        }
        self.file.mark(mark)?;
        self.file.publish()
    }

    /// Appends the oldest change to the file; whether there was one.
    fn pass(&mut self) -> Result<bool> {
        let Some(change) = self.changes.pop_front() else { return Ok(false) };
        self.first += 1;
        self.held -= change.held();
        self.file.change(&change, Flags::NONE)?;
        Ok(true)
    }
}
