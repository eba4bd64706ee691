//! The storage of managed database services: a single store for all files on disks chosen by the
//! service, with limits that depend on the size.

use crate::error::CatalogError;
use crate::limits::{Limits, PoolLimits};
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

/// The storage of a managed service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Store {
    /// Name, also used by prices.
    pub name: String,
    /// The service, as named by its machine series.
    pub service: String,
    /// The provisioned family of its disks.
    pub family: String,
    /// Steps by size, ascending for each engine.
    pub steps: Vec<StoreStep>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Store {
    /// Returns the steps of an engine: its own, or those without an engine.
    pub fn steps_of<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = &'a StoreStep> {
        let is_own = move |step: &&StoreStep| {
            step.engines.is_empty() || step.engines.iter().any(|own| own == engine)
        };
        self.steps.iter().filter(is_own)
    }
}

/// A range of sizes of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStep {
    /// Database engines; all if empty.
    pub engines: Vec<String>,
    /// Minimum size.
    pub min_size: Bytes,
    /// Maximum size.
    pub max_size: Bytes,
    /// Number of disks that it is striped across.
    pub volumes: u64,
    /// Included limits.
    pub minimum: StoreLimits,
    /// Maximum limits; `None` if nothing can be added to the included ones.
    pub maximum: Option<StoreLimits>,
    /// Maximum number of GiB per IOPS.
    pub gib_per_iops: Option<u64>,
    /// True if the machine's price includes a database licence.
    pub is_licensed: bool,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// Limits of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Operations per second.
    pub iops: Iops,
    /// Bytes per second; `None` if they follow from the IOPS.
    pub throughput: Option<BytesPerSec>,
}

/// A family whose disks share their limits: all of one type on a machine together have
/// `base + per_100_gib x size / 100 GiB`, of operations `iops_excess` percent more, and no more than the machine lets through of it
/// ([`crate::HostSize::pools`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pooled {
    /// The family's name.
    pub family: String,
    /// The smallest disk; `None` if it is not published.
    pub min_size: Option<Bytes>,
    /// The largest disk; `None` if it is not published.
    pub max_size: Option<Bytes>,
    /// Limits independent of the size; for reads and for writes each, if these are separate.
    pub base: Option<Limits>,
    /// Limits per 100 GiB.
    pub per_100_gib: PoolLimits,
    /// Percent of operations that disks were measured to do above the published formula.
    pub iops_excess: u32,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Pooled {
    /// Checks that a disk of `size` is offered.
    ///
    /// # Errors
    ///
    /// [`CatalogError::SizeOutOfRange`] with the sizes that are.
    pub fn check_size(&self, size: Bytes) -> Result<(), CatalogError> {
        let min = self.min_size.unwrap_or(Bytes::ZERO);
        let max = self.max_size.unwrap_or(Bytes::new(u64::MAX));
        if (min..=max).contains(&size) {
            return Ok(());
        }
        Err(CatalogError::SizeOutOfRange { family: self.family.clone(), size, min, max })
    }

    /// Returns the total limits of disks of `size`, at most `most` (the machine's limit), and at
    /// least one operation and one byte per second.
    #[must_use]
    pub fn limits(&self, size: Bytes, most: Option<PoolLimits>) -> PoolLimits {
        let writes = self.per_100_gib.writes.map(|per_100_gib| {
            let most = most.map(|own| own.writes.unwrap_or(own.limits));
            self.by_size(size, per_100_gib, most)
        });
        let most = most.map(|own| own.limits);
        PoolLimits { limits: self.by_size(size, self.per_100_gib.limits, most), writes }
    }

    fn by_size(&self, size: Bytes, per_100_gib: Limits, most: Option<Limits>) -> Limits {
        let by_size = |of: fn(&Limits) -> u64, excess: u32| {
            let own = u128::from(of(&per_100_gib)) * u128::from(size.get()) / (100 << 30);
            let base = self.base.as_ref().map_or(0, of);
            let own = (own + u128::from(base)) * (100 + u128::from(excess)) / 100;
            let own = u64::try_from(own).unwrap_or(u64::MAX);
            own.min(most.as_ref().map_or(u64::MAX, of)).max(1)
        };
        let least = per_100_gib;
        Limits {
            iops: Iops::new(by_size(|own| own.iops.get(), self.iops_excess)).unwrap_or(least.iops),
            throughput: BytesPerSec::new(by_size(|own| own.throughput.get(), 0))
                .unwrap_or(least.throughput),
        }
    }
}
