//! Disks whose limits come with their size.

use crate::limits::{Burst, Limits};
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

/// A size step with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tier {
    /// Name, for example `P30`.
    pub name: String,
    /// The set it belongs to, like `mi-2018`.
    pub set: String,
    /// The family, like `premium-ssd`: decides medium and cacheability.
    pub family: String,
    /// The size that one gets and pays.
    pub size: Bytes,
    /// The largest size that snaps to this tier; commonly `size`.
    pub holds: Bytes,
    /// Operations per second, in the edition's I/O unit.
    pub iops: Iops,
    /// Bytes per second.
    pub throughput: BytesPerSec,
    /// Limits above these for a while.
    pub burst: Option<Burst>,
    /// Higher limits that can be chosen when the disk is made.
    pub plus: Option<Limits>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Tier {
    /// Returns the name qualified by the set, which is unique in the edition.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}/{}", self.set, self.name)
    }

    /// Returns the base limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { iops: self.iops, throughput: self.throughput }
    }
}

/// The tiers of a family as one source gives them, ascending by size. A family
/// whose tiers changed over time has a set for each date.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierSet {
    /// The set's name.
    pub name: String,
    /// The family.
    pub family: String,
    /// The tiers, ascending by what they hold; at least one.
    pub tiers: Vec<Tier>,
    /// True if a disk can have the limits of a higher tier at its own size.
    pub performance_tiers: bool,
    /// Source, date, conflicts of the set.
    pub provenance: Provenance,
}

impl TierSet {
    /// Returns the smallest tier that holds `size`.
    #[must_use]
    pub fn snap(&self, size: Bytes) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.holds >= size)
    }
}
