//! Disks whose limits follow from their size alone, with credits that are a number.

use crate::error::CatalogError;
use crate::limits::Limits;
use crate::provenance::Provenance;
use weir_units::{Bytes, BytesPerSec, Iops};

const TIB: u128 = 1 << 40;

/// A family whose limits follow from the size. With `clamp(x, min, max)`:
///
/// ```text
/// IOPS              clamp(iops_per_gib x size,       minimum.iops,       maximum.iops)
/// throughput        clamp(throughput_per_tib x size, minimum.throughput, maximum.throughput)
/// burst throughput  min(burst.throughput_per_tib x size, burst.throughput)
/// ```
///
/// A rate without a rule has the minimum at any size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SizedFamily {
    /// The family's name.
    pub family: String,
    /// The smallest disk.
    pub min_size: Bytes,
    /// The largest disk.
    pub max_size: Bytes,
    /// An I/O counts once for each unit begun; `None` counts every request once.
    pub io_unit: Option<Bytes>,
    /// True if adjacent I/Os that wait count as one, up to the unit.
    pub merges: bool,
    /// True if an I/O is charged for its whole units: IOPS are then the throughput in units.
    pub whole_units: bool,
    /// The lowest limits.
    pub minimum: Limits,
    /// The highest limits.
    pub maximum: Limits,
    /// IOPS of a GiB of size.
    pub iops_per_gib: Option<Iops>,
    /// Throughput of a TiB of size.
    pub throughput_per_tib: Option<BytesPerSec>,
    /// The size above which a disk has the maximum throughput.
    pub full_throughput_above: Option<Bytes>,
    /// Burst of the operations.
    pub iops_burst: Option<IopsBurst>,
    /// Burst of the throughput.
    pub throughput_burst: Option<ThroughputBurst>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// Credits of operations, the same for all sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IopsBurst {
    /// Operations per second while credits last.
    pub iops: Iops,
    /// Operations that a full bucket holds. It is full at the start.
    pub credits: u64,
}

/// Credits of bytes: as many as the disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThroughputBurst {
    /// Burst throughput of a TiB of size ...
    pub per_tib: BytesPerSec,
    /// ... and at most.
    pub maximum: BytesPerSec,
}

/// The limits of a disk, each with its burst: the rate while credits last, and the credits of a
/// full bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedLimits {
    /// The limits that last.
    pub base: Limits,
    /// Burst of the operations.
    pub iops: Option<(Iops, u64)>,
    /// Burst of the bytes.
    pub throughput: Option<(BytesPerSec, u64)>,
}

impl SizedFamily {
    /// Returns the limits of a disk of `size`.
    ///
    /// # Errors
    ///
    /// [`CatalogError::SizeOutOfRange`] for a size that is not offered.
    pub fn limits(&self, size: Bytes) -> Result<SizedLimits, CatalogError> {
        if size < self.min_size || size > self.max_size {
            return Err(CatalogError::SizeOutOfRange {
                family: self.family.clone(),
                size,
                min: self.min_size,
                max: self.max_size,
            });
        }
        let base = self.throughput(size);
        let peak = self.throughput_burst.map(|burst| {
            let peak = BytesPerSec::new(scaled(burst.per_tib.get(), size, TIB));
            (peak.unwrap_or(base).clamp(base, burst.maximum.max(base)), size.get())
        });
        let throughput = peak.filter(|(peak, _)| *peak > base);
        let Some(unit) = self.io_unit.filter(|_| self.whole_units) else {
            let iops = self.iops(size);
            let burst = self.iops_burst.filter(|burst| burst.iops > iops);
            return Ok(SizedLimits {
                base: Limits { iops, throughput: base },
                iops: burst.map(|burst| (burst.iops, burst.credits)),
                throughput,
            });
        };
        let units =
            |rate: BytesPerSec| Iops::new(rate.get() / unit.get()).unwrap_or(self.minimum.iops);
        Ok(SizedLimits {
            base: Limits { iops: units(base), throughput: base },
            iops: throughput.map(|(peak, credits)| (units(peak), credits / unit.get())),
            throughput,
        })
    }

    fn iops(&self, size: Bytes) -> Iops {
        let Some(each) = self.iops_per_gib else { return self.minimum.iops };
        let by_size = Iops::new(scaled(each.get(), size, 1 << 30));
        by_size.unwrap_or(self.minimum.iops).clamp(self.minimum.iops, self.maximum.iops)
    }

    fn throughput(&self, size: Bytes) -> BytesPerSec {
        let (least, most) = (self.minimum.throughput, self.maximum.throughput);
        if self.full_throughput_above.is_some_and(|above| size > above) {
            return most;
        }
        let Some(each) = self.throughput_per_tib else { return least };
        BytesPerSec::new(scaled(each.get(), size, TIB)).unwrap_or(least).clamp(least, most)
    }
}

/// Returns `each` for every `unit` of a size, rounded down.
fn scaled(each: u64, size: Bytes, unit: u128) -> u64 {
    let all = u128::from(each) * u128::from(size.get()) / unit;
    u64::try_from(all).unwrap_or(u64::MAX)
}
