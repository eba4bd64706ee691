//! The storage of a managed database service: one store for all files, of disks that it chooses
//! itself, with limits that change at some sizes.

use crate::error::CatalogError;
use crate::limits::Limits;
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

/// What a service keeps everything on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Store {
    /// Its name, which prices have too.
    pub name: String,
    /// The service, as its series of machines name it.
    pub service: String,
    /// The family of disks whose limits are bought that it is made of.
    pub family: String,
    /// What it is at which size, ascending for each engine.
    pub steps: Vec<StoreStep>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Store {
    /// What there is for an engine; for all where steps name none.
    pub fn steps_of<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = &'a StoreStep> {
        let is_own = move |step: &&StoreStep| {
            step.engines.is_empty() || step.engines.iter().any(|own| own == engine)
        };
        self.steps.iter().filter(is_own)
    }
}

/// A store between two sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStep {
    /// The database engines that it is for; all if empty.
    pub engines: Vec<String>,
    /// The smallest.
    pub min_size: Bytes,
    /// The largest.
    pub max_size: Bytes,
    /// Across so many disks it is striped.
    pub volumes: u64,
    /// What it has at least.
    pub minimum: StoreLimits,
    /// What it can be given; `None` if nothing can be bought beyond what it has.
    pub maximum: Option<StoreLimits>,
    /// So many GiB at most for each IOPS.
    pub gib_per_iops: Option<u64>,
    /// Whether the price of the machine holds a licence of the database.
    pub is_licensed: bool,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// Limits of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Operations per second.
    pub iops: Iops,
    /// Bytes per second; `None` where they come with the operations.
    pub throughput: Option<BytesPerSec>,
}

/// A family whose disks share their limits: all of one type on a machine together have
/// `base + per_100_gib x size / 100 GiB`, and no more than the machine lets through of it
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
    /// What there is once, whatever the size.
    pub base: Option<Limits>,
    /// What 100 GiB bring.
    pub per_100_gib: Limits,
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

    /// The limits of disks of `size` in all, on a machine that lets `most` of them through if it has
    /// a limit; at least one operation and one byte per second.
    #[must_use]
    pub fn limits(&self, size: Bytes, most: Option<Limits>) -> Limits {
        let by_size = |of: fn(&Limits) -> u64| {
            let own = u128::from(of(&self.per_100_gib)) * u128::from(size.get()) / (100 << 30);
            let base = self.base.as_ref().map_or(0, of);
            let own = u64::try_from(own).unwrap_or(u64::MAX).saturating_add(base);
            own.min(most.as_ref().map_or(u64::MAX, of)).max(1)
        };
        let least = self.per_100_gib;
        Limits {
            iops: Iops::new(by_size(|own| own.iops.get())).unwrap_or(least.iops),
            throughput: BytesPerSec::new(by_size(|own| own.throughput.get()))
                .unwrap_or(least.throughput),
        }
    }
}
