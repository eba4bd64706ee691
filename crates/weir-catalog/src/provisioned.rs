//! Disks whose limits are bought apart from their size, within rules.

use crate::error::CatalogError;
use crate::limits::Limits;
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

/// A family with provisioned limits. With `clamp(x, min, max)`:
///
/// ```text
/// highest IOPS        clamp(iops_per_gib x size,       minimum.iops,       maximum.iops)
/// highest throughput  clamp(throughput_per_iops x IOPS, minimum.throughput, maximum.throughput)
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provisioned {
    /// The family's name.
    pub family: String,
    /// The smallest disk.
    pub min_size: Bytes,
    /// The largest disk.
    pub max_size: Bytes,
    /// Sizes are multiples of this; `None` if no step is published.
    pub size_step: Option<Bytes>,
    /// The lowest limits that can be had.
    pub minimum: Limits,
    /// Whether the minimum is part of the price of the size: who asks for nothing
    /// gets it.
    pub minimum_included: bool,
    /// The highest limits that can be had at any size.
    pub maximum: Limits,
    /// IOPS that a GiB of size allows.
    pub iops_per_gib: Iops,
    /// Bytes per second that one provisioned IOPS allows.
    pub throughput_per_iops: BytesPerSec,
    /// Published maxima at some sizes; they agree with the rules.
    pub ladder: Vec<(Bytes, Limits)>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Provisioned {
    /// The limits of a disk of `size` for which `want_iops` and `want_throughput`
    /// are bought; `None` asks for what is included.
    ///
    /// # Errors
    ///
    /// A size that is not offered, a rate outside of the allowed range (which the
    /// message states), or a rate left out where nothing is included.
    pub fn limits(
        &self,
        size: Bytes,
        want_iops: Option<Iops>,
        want_throughput: Option<BytesPerSec>,
    ) -> Result<Limits, CatalogError> {
        self.check_size(size)?;
        let iops = self.iops(size, want_iops)?;
        Ok(Limits { iops, throughput: self.throughput(iops, want_throughput)? })
    }

    /// The most IOPS that a disk of `size` can be given, whether or not such a
    /// disk is offered.
    #[must_use]
    pub fn max_iops(&self, size: Bytes) -> Iops {
        let by_size = (u128::from(self.iops_per_gib.get()) * u128::from(size.get())) >> 30;
        let by_size = Iops::new(u64::try_from(by_size).unwrap_or(u64::MAX));
        by_size.unwrap_or(self.minimum.iops).clamp(self.minimum.iops, self.maximum.iops)
    }

    /// The most bytes per second that a disk with `iops` can be given.
    #[must_use]
    pub fn max_throughput(&self, iops: Iops) -> BytesPerSec {
        let by_iops = self.throughput_per_iops.get().saturating_mul(iops.get());
        let by_iops = BytesPerSec::new(by_iops).unwrap_or(self.minimum.throughput);
        by_iops.clamp(self.minimum.throughput, self.maximum.throughput)
    }

    fn check_size(&self, size: Bytes) -> Result<(), CatalogError> {
        if size < self.min_size || size > self.max_size {
            return Err(CatalogError::SizeOutOfRange {
                family: self.family.clone(),
                size,
                min: self.min_size,
                max: self.max_size,
            });
        }
        match self.size_step {
            Some(step) if !size.get().is_multiple_of(step.get()) => {
                Err(CatalogError::SizeOffStep {
                    family: self.family.clone(),
                    size,
                    step,
                    next: Bytes::new(size.get().next_multiple_of(step.get())),
                })
            }
            _ => Ok(()),
        }
    }

    fn iops(&self, size: Bytes, want: Option<Iops>) -> Result<Iops, CatalogError> {
        let (min, max) = (self.minimum.iops, self.max_iops(size));
        match want {
            Some(want) if want < min || want > max => Err(CatalogError::IopsOutOfRange {
                family: self.family.clone(),
                want,
                size,
                min,
                max,
            }),
            Some(want) => Ok(want),
            None if self.minimum_included => Ok(min),
            None => Err(self.not_stated("iops", min.to_string(), max.to_string())),
        }
    }

    fn throughput(
        &self,
        iops: Iops,
        want: Option<BytesPerSec>,
    ) -> Result<BytesPerSec, CatalogError> {
        let (min, max) = (self.minimum.throughput, self.max_throughput(iops));
        match want {
            Some(want) if want < min || want > max => Err(CatalogError::ThroughputOutOfRange {
                family: self.family.clone(),
                want,
                iops,
                min,
                max,
            }),
            Some(want) => Ok(want),
            None if self.minimum_included => Ok(min),
            None => Err(self.not_stated("throughput", min.to_string(), max.to_string())),
        }
    }

    fn not_stated(&self, what: &'static str, min: String, max: String) -> CatalogError {
        CatalogError::NotStated { family: self.family.clone(), what, min, max }
    }
}
