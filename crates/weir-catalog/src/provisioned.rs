//! Disks whose limits are provisioned independently of their size, within rules.

use crate::error::CatalogError;
use crate::limits::Limits;
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

/// A family with provisioned limits. With `clamp(x, min, max)`:
///
/// ```text
/// highest IOPS        clamp(iops_per_gib x size,        minimum.iops,       maximum.iops)
/// lowest IOPS         clamp(iops_per_gib_min x size,    minimum.iops,       maximum.iops)
/// highest throughput  clamp(throughput_per_iops x IOPS, minimum.throughput, maximum.throughput)
/// lowest throughput   clamp(throughput_per_iops_min x IOPS, minimum.throughput, maximum.throughput)
/// ```
///
/// A rule that is not published does not restrict: any size permits the highest IOPS, and any IOPS
/// the highest throughput.
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
    /// An I/O counts once for each unit begun; `None` counts every request once.
    pub io_unit: Option<Bytes>,
    /// True if adjacent I/Os that wait count as one, up to the unit.
    pub merges: bool,
    /// The lowest limits that can be had.
    pub minimum: Limits,
    /// True if the minimum is included in the price of the size, and thus the default.
    pub minimum_included: bool,
    /// The highest limits that can be had at any size.
    pub maximum: Limits,
    /// IOPS that a GiB of size allows.
    pub iops_per_gib: Option<Iops>,
    /// IOPS that a GiB of size asks for.
    pub iops_per_gib_min: Option<Iops>,
    /// Bytes per second that one provisioned IOPS allows.
    pub throughput_per_iops: Option<BytesPerSec>,
    /// Bytes per second that one provisioned IOPS asks for.
    pub throughput_per_iops_min: Option<BytesPerSec>,
    /// The unit in which throughput is sold; `None` if none is published.
    pub throughput_step: Option<BytesPerSec>,
    /// True if the throughput follows from the IOPS and cannot be bought.
    pub throughput_follows: bool,
    /// The throughput from which an IOPS permits less.
    pub bend: Option<Bend>,
    /// Published maxima at some sizes; they agree with the rules.
    pub ladder: Vec<(Bytes, Limits)>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// The unit of throughput of families that publish none, in bytes per second.
const MB: u64 = 1_000_000;

/// A change of slope: up to a throughput, the family's `throughput_per_iops` applies; more needs
/// the IOPS of the lower ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bend {
    /// The throughput up to which the family's ratio applies.
    pub throughput: BytesPerSec,
    /// The ratio of all IOPS above it.
    pub throughput_per_iops: BytesPerSec,
}

impl Provisioned {
    /// Returns the limits of a disk of `size` with the given IOPS and throughput; `None` stands for
    /// the included amount.
    ///
    /// # Errors
    ///
    /// A size that is not offered, a rate out of the range in the message, or a missing rate if
    /// none is included.
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

    /// Returns the maximum IOPS of a disk of `size`, whether or not that size is offered.
    #[must_use]
    pub fn max_iops(&self, size: Bytes) -> Iops {
        self.iops_per_gib.map_or(self.maximum.iops, |each| self.by_size(each, size))
    }

    /// Returns the minimum IOPS of a disk of `size`.
    #[must_use]
    pub fn min_iops(&self, size: Bytes) -> Iops {
        self.iops_per_gib_min.map_or(self.minimum.iops, |each| self.by_size(each, size))
    }

    /// Returns the maximum throughput of a disk with `iops`.
    #[must_use]
    pub fn max_throughput(&self, iops: Iops) -> BytesPerSec {
        let Some(each) = self.throughput_per_iops else { return self.maximum.throughput };
        let by_iops = |each: BytesPerSec| each.get().saturating_mul(iops.get());
        let most = self
            .bend
            .map_or(u64::MAX, |bend| bend.throughput.get().max(by_iops(bend.throughput_per_iops)));
        self.within(by_iops(each).min(most))
    }

    /// Returns the minimum throughput of a disk with `iops`.
    #[must_use]
    pub fn min_throughput(&self, iops: Iops) -> BytesPerSec {
        let each = self.throughput_per_iops_min.map_or(0, BytesPerSec::get);
        self.within(each.saturating_mul(iops.get()))
    }

    /// Returns the unit in which throughput is bought, in bytes per second; 1 MB/s if none is published.
    #[must_use]
    pub fn throughput_unit(&self) -> u64 {
        self.throughput_step.map_or(MB, BytesPerSec::get)
    }

    /// Returns the rates on sale for a disk of `size` that are closest to `iops` and `throughput` (bytes per second):
    /// throughput in whole units, and the IOPS that it needs.
    #[must_use]
    pub fn closest(&self, size: Bytes, iops: u64, throughput: u64) -> Limits {
        // Throughput that follows from the IOPS is not bought in units.
        let unit = if self.throughput_follows { 1 } else { self.throughput_unit() };
        let throughput = throughput.checked_next_multiple_of(unit).unwrap_or(throughput);
        let each = self.throughput_per_iops.map_or(u64::MAX, BytesPerSec::get);
        let needed = Iops::new(iops.max(throughput.div_ceil(each)));
        let least = self.min_iops(size);
        let iops = needed.unwrap_or(least).max(least).min(self.max_iops(size));
        let (least, most) = (self.min_throughput(iops), self.max_throughput(iops));
        if self.throughput_follows {
            return Limits { iops, throughput: most };
        }
        let whole = BytesPerSec::new(most.get() / unit * unit).unwrap_or(most);
        let throughput = BytesPerSec::new(throughput).unwrap_or(least).min(whole).max(least);
        Limits { iops, throughput }
    }

    fn by_size(&self, each: Iops, size: Bytes) -> Iops {
        let by_size = (u128::from(each.get()) * u128::from(size.get())) >> 30;
        let by_size = Iops::new(u64::try_from(by_size).unwrap_or(u64::MAX));
        by_size.unwrap_or(self.minimum.iops).clamp(self.minimum.iops, self.maximum.iops)
    }

    fn within(&self, throughput: u64) -> BytesPerSec {
        let throughput = BytesPerSec::new(throughput).unwrap_or(self.minimum.throughput);
        throughput.clamp(self.minimum.throughput, self.maximum.throughput)
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
        let (min, max) = (self.min_iops(size), self.max_iops(size));
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
        let (min, max) = (self.min_throughput(iops), self.max_throughput(iops));
        let family = || self.family.clone();
        match want {
            Some(_) if self.throughput_follows => {
                Err(CatalogError::ThroughputFollows { family: family(), iops, throughput: max })
            }
            None if self.throughput_follows => Ok(max),
            Some(want) if want < min || want > max => {
                Err(CatalogError::ThroughputOutOfRange { family: family(), want, iops, min, max })
            }
            Some(want) => match self.throughput_step {
                Some(step) if !want.get().is_multiple_of(step.get()) => {
                    Err(CatalogError::ThroughputOffStep { family: family(), want, step })
                }
                _ => Ok(want),
            },
            None if self.minimum_included => Ok(min),
            None => Err(self.not_stated("throughput", min.to_string(), max.to_string())),
        }
    }

    fn not_stated(&self, what: &'static str, min: String, max: String) -> CatalogError {
        CatalogError::NotStated { family: self.family.clone(), what, min, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn the_closest_rates_are_on_sale() {
        let catalog = Catalog::builtin();
        let family = |edition, name| {
            catalog.edition(edition).and_then(|own| own.provisioned(name)).expect("a family")
        };
        let check = |family: &Provisioned, gib, (iops, bytes): (u64, u64), expect: (u64, u64)| {
            let size = Bytes::gib(gib);
            let Limits { iops, throughput } = family.closest(size, iops, bytes);
            assert_eq!((iops.get(), throughput.get()), expect);
            let stated = (!family.throughput_follows).then_some(throughput);
            family.limits(size, Some(iops), stated).expect("rates on sale");
        };
        // Premium SSD v2: 500 IOPS for each GiB, 0.25 MB/s for each IOPS.
        let v2 = family("azure-now", "premium-ssd-v2");
        check(v2, 100, (4_000, 150_000_001), (4_000, 151_000_000));
        check(v2, 100, (10, 10), (3_000, 125_000_000));
        check(v2, 100, (3_000, 1_000_000_000), (4_000, 1_000_000_000));
        check(v2, 8, (9_000, 125_000_000), (4_000, 125_000_000));
        // gp3 sells MiB/s, io1 follows from its operations: 50 for each GiB.
        let (gp3, io1) = (family("aws", "gp3"), family("aws", "io1"));
        check(gp3, 100, (3_001, 131_072_001), (3_001, 126 << 20));
        check(io1, 100, (6_000, 1 << 20), (5_000, 500 << 20));
    }
}
