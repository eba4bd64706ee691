//! A backup with its options, its sources and its targets.

use crate::case::Case;
use crate::follow::BackupFacts;
use crate::system::{On, SubjectId};
use weir_observe::{Entity, attribute};
use weir_pipeline::Buffers;
use weir_report::number::float;
use weir_units::Bytes;

/// Shorter backups, in seconds, and smaller ones are over before anything limits them.
const SHORT_S: f64 = 10.0;
const SMALL: f64 = 256.0 * 1_048_576.0;

/// A backup, and the disks that it reads and writes.
#[derive(Debug, Clone)]
pub(crate) struct Backup<'a> {
    pub(crate) facts: &'a BackupFacts,
    pub(crate) entity: &'a Entity,
    /// Sources; empty if unknown.
    pub(crate) sources: Vec<On>,
    /// Targets; empty if unknown.
    pub(crate) targets: Vec<On>,
    /// The targets that it names and that are nowhere in the system.
    pub(crate) unknown_targets: Vec<String>,
}

impl<'a> Backup<'a> {
    /// Returns its name.
    pub(crate) fn name(&self) -> &'a str {
        &self.entity.name
    }

    /// Tells whether it took long enough, and was large enough, to be limited by anything.
    pub(crate) fn is_long(&self) -> bool {
        let is_long = self.facts.seconds().is_none_or(|seconds| seconds >= SHORT_S);
        is_long && self.facts.bytes.is_none_or(|bytes| bytes >= SMALL)
    }

    /// Returns the files, blobs or devices that it is striped over.
    pub(crate) fn stripes(&self) -> Option<u64> {
        self.entity.number(attribute::STRIPES).filter(|count| *count > 0)
    }

    /// Returns its largest transfer: what was stated, or the default of SQL Server to disks.
    pub(crate) fn max_transfer(&self) -> u64 {
        let own = self.entity.number(attribute::MAX_TRANSFER_BYTES).filter(|bytes| *bytes > 0);
        own.unwrap_or(weir_pipeline::buffers::MAX_TRANSFER.get())
    }

    /// Returns its buffers, as they were printed or set, or as SQL Server computes them.
    pub(crate) fn buffers(&self) -> Option<u64> {
        let own = self.entity.number(attribute::BUFFER_COUNT);
        let set = self.entity.number(attribute::BUFFER_COUNT_SET);
        own.or(set).or_else(|| self.computed_buffers())
    }

    /// Returns the buffers that SQL Server computes for its stripes and readers.
    pub(crate) fn computed_buffers(&self) -> Option<u64> {
        let devices = u32::try_from(self.stripes()?).ok()?;
        let readers = self.entity.number(attribute::READERS).map(u32::try_from);
        let sources = u32::try_from(self.sources.len()).unwrap_or(1).max(1);
        let readers = readers.and_then(Result::ok).unwrap_or(sources);
        let own = Buffers::new((readers, devices), false, Bytes::mib(1), None);
        Some(own.count.into())
    }

    /// Tells whether it was compressed: as was stated, or as fewer bytes were written than read.
    pub(crate) fn is_compressed(&self) -> bool {
        self.entity.text(attribute::COMPRESSION).is_some()
            || self.ratio().is_some_and(|own| own < 0.98)
    }

    /// Returns the bytes written for each byte read, if both are known, or if they are the same.
    pub(crate) fn ratio(&self) -> Option<f64> {
        match (self.facts.bytes, self.facts.written) {
            (Some(bytes), Some(written)) if bytes > 0.0 => Some(written / bytes),
            _ => self.entity.text(attribute::COMPRESSION).is_none().then_some(1.0),
        }
    }

    /// Returns the disks of places.
    pub(crate) fn disks(case: &Case<'_>, places: &[On]) -> Vec<usize> {
        let id = |on: &On| match on {
            On::Disk(disk) => SubjectId::Disk(*disk),
            On::Stripe(stripe) => SubjectId::Stripe(*stripe),
        };
        let mut disks: Vec<usize> =
            places.iter().flat_map(|on| case.system.disks_of(id(on))).collect();
        disks.sort_unstable();
        disks.dedup();
        disks
    }

    /// Returns the names of places.
    pub(crate) fn names(case: &Case<'_>, places: &[On]) -> Vec<String> {
        let name = |on: &On| match on {
            On::Disk(disk) => case.system.disks[*disk].name.clone(),
            On::Stripe(stripe) => case.system.stripes[*stripe].name.clone(),
        };
        places.iter().map(name).collect()
    }

    /// Tells whether all its targets are on the machine.
    pub(crate) fn is_to_local_ssd(&self, case: &Case<'_>) -> bool {
        let disks = Self::disks(case, &self.targets);
        !disks.is_empty() && disks.iter().all(|disk| case.system.disks[*disk].is_local)
    }

    /// Returns the stripes that are best for its targets: four for each disk, and up to eight.
    pub(crate) fn best_stripes(&self, case: &Case<'_>) -> u64 {
        let disks = Self::disks(case, &self.targets).len().max(1) as u64;
        if self.is_to_local_ssd(case) { LOCAL_FILES } else { (disks * PER_DISK).min(FILES) }
    }
}

/// Files for each disk, and in all, as article 004 measured them; on a local SSD fewer.
pub(crate) const PER_DISK: u64 = 4;
pub(crate) const FILES: u64 = 8;
pub(crate) const LOCAL_FILES: u64 = 2;

/// The transfer size that the article recommends.
pub(crate) const TRANSFER: u64 = 4 << 20;

/// Returns a count for arithmetic.
pub(crate) fn count(n: usize) -> f64 {
    float(n as u64)
}
