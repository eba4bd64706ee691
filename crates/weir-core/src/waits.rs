//! The caps by name, and the time a request spent waiting at each.
//!
//! Every nanosecond between a request's arrival and its completion is charged
//! once: to the cap that held it, or to the medium. The sum of all parts is the
//! latency.

use core::fmt;
use core::ops::{AddAssign, Index};
use weir_units::Span;

/// A cap that can hold a request back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cap {
    /// Bytes per second that all log volumes of the host may write together.
    LogRate,
    /// Operations per second of the volume's tier.
    DiskIops,
    /// Bytes per second of the volume's tier.
    DiskBytes,
    /// Operations per second that the tier reaches at most while it bursts.
    DiskBurstIops,
    /// Bytes per second that the tier reaches at most while it bursts.
    DiskBurstBytes,
    /// Operations per second of the host to remote storage.
    HostUncachedIops,
    /// Bytes per second of the host to remote storage.
    HostUncachedBytes,
    /// The host's uncached operations per second at most while it bursts.
    HostUncachedBurstIops,
    /// The host's uncached bytes per second at most while it bursts.
    HostUncachedBurstBytes,
    /// Operations per second of the host's cache and local SSD.
    HostCachedIops,
    /// Bytes per second of the host's cache and local SSD.
    HostCachedBytes,
    /// The host's cached operations per second at most while it bursts.
    HostCachedBurstIops,
    /// The host's cached bytes per second at most while it bursts.
    HostCachedBurstBytes,
    /// A ReadWrite cache that must write back first: it is full of dirty
    /// blocks, or a flush asked for them. What holds the write-backs is in
    /// [`Totals::writeback_waits`](crate::Totals::writeback_waits).
    CacheWriteback,
    /// Write operations per second of the host to remote storage, where writes have separate limits.
    HostWriteIops,
    /// Bytes per second that the host writes to remote storage, where writes have separate limits.
    HostWriteBytes,
}

impl Cap {
    /// Every cap, in the order of their indices, on which the hash of a run depends.
    pub const ALL: [Self; 16] = [
        Self::LogRate,
        Self::DiskIops,
        Self::DiskBytes,
        Self::DiskBurstIops,
        Self::DiskBurstBytes,
        Self::HostUncachedIops,
        Self::HostUncachedBytes,
        Self::HostUncachedBurstIops,
        Self::HostUncachedBurstBytes,
        Self::HostCachedIops,
        Self::HostCachedBytes,
        Self::HostCachedBurstIops,
        Self::HostCachedBurstBytes,
        Self::CacheWriteback,
        Self::HostWriteIops,
        Self::HostWriteBytes,
    ];

    /// The name used in reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogRate => "log_rate",
            Self::DiskIops => "disk_iops",
            Self::DiskBytes => "disk_bytes",
            Self::DiskBurstIops => "disk_burst_iops",
            Self::DiskBurstBytes => "disk_burst_bytes",
            Self::HostUncachedIops => "host_uncached_iops",
            Self::HostUncachedBytes => "host_uncached_bytes",
            Self::HostUncachedBurstIops => "host_uncached_burst_iops",
            Self::HostUncachedBurstBytes => "host_uncached_burst_bytes",
            Self::HostCachedIops => "host_cached_iops",
            Self::HostCachedBytes => "host_cached_bytes",
            Self::HostCachedBurstIops => "host_cached_burst_iops",
            Self::HostCachedBurstBytes => "host_cached_burst_bytes",
            Self::CacheWriteback => "cache_writeback",
            Self::HostWriteIops => "host_write_iops",
            Self::HostWriteBytes => "host_write_bytes",
        }
    }

    /// Returns the unit of the cap. `None` for [`Self::CacheWriteback`], which has no rate.
    #[must_use]
    pub const fn unit(self) -> Option<CapUnit> {
        match self {
            Self::DiskIops
            | Self::DiskBurstIops
            | Self::HostUncachedIops
            | Self::HostUncachedBurstIops
            | Self::HostWriteIops
            | Self::HostCachedIops
            | Self::HostCachedBurstIops => Some(CapUnit::Operations),
            Self::LogRate
            | Self::DiskBytes
            | Self::DiskBurstBytes
            | Self::HostUncachedBytes
            | Self::HostUncachedBurstBytes
            | Self::HostWriteBytes
            | Self::HostCachedBytes
            | Self::HostCachedBurstBytes => Some(CapUnit::Bytes),
            Self::CacheWriteback => None,
        }
    }

    /// Returns whether the cap limits throughput.
    #[must_use]
    pub const fn counts_bytes(self) -> bool {
        matches!(self.unit(), Some(CapUnit::Bytes))
    }

    /// Returns whether the cap applies while a disk or host bursts.
    #[must_use]
    pub const fn is_burst(self) -> bool {
        matches!(
            self,
            Self::DiskBurstIops
                | Self::DiskBurstBytes
                | Self::HostUncachedBurstIops
                | Self::HostUncachedBurstBytes
                | Self::HostCachedBurstIops
                | Self::HostCachedBurstBytes
        )
    }

    /// Returns the cap that applies during bursts; a cap without bursts is returned as it is.
    #[must_use]
    pub const fn burst(self) -> Self {
        match self {
            Self::DiskIops => Self::DiskBurstIops,
            Self::DiskBytes => Self::DiskBurstBytes,
            Self::HostUncachedIops => Self::HostUncachedBurstIops,
            Self::HostUncachedBytes => Self::HostUncachedBurstBytes,
            Self::HostCachedIops => Self::HostCachedBurstIops,
            Self::HostCachedBytes => Self::HostCachedBurstBytes,
            other => other,
        }
    }
}

/// The unit that a cap counts in, per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CapUnit {
    /// Operations.
    Operations,
    /// Bytes.
    Bytes,
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Time waited per cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Waits([u64; Cap::ALL.len()]);

impl Waits {
    /// Charges `span` to `cap`.
    pub fn charge(&mut self, cap: Cap, span: Span) {
        let held = &mut self.0[cap as usize];
        *held = held.saturating_add(span.nanos());
    }

    /// Time charged to `cap`.
    #[must_use]
    pub fn get(&self, cap: Cap) -> Span {
        Span::from_nanos(self.0[cap as usize])
    }

    /// Time charged to all caps.
    #[must_use]
    pub fn total(&self) -> Span {
        Span::from_nanos(self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns)))
    }

    /// The caps that held something, with their time.
    pub fn iter(&self) -> impl Iterator<Item = (Cap, Span)> + '_ {
        Cap::ALL.into_iter().map(|cap| (cap, self.get(cap))).filter(|(_, span)| *span != Span::ZERO)
    }

    /// Returns the difference from `earlier`, an older reading of the same counter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }
}

impl Index<Cap> for Waits {
    type Output = u64;

    /// Nanoseconds charged to `cap`.
    fn index(&self, cap: Cap) -> &u64 {
        &self.0[cap as usize]
    }
}

impl AddAssign for Waits {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// The service time of a request, or of several: its waits at caps and its time in the medium.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceTime {
    /// Time waited per cap.
    pub waits: Waits,
    /// Time that the medium took.
    pub medium: Span,
}

impl ServiceTime {
    /// Returns the part since `earlier`, an older sum of the same requests.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            waits: self.waits.since(&earlier.waits),
            medium: self.medium.saturating_sub(earlier.medium),
        }
    }
}

impl AddAssign for ServiceTime {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.waits += other.waits;
        self.medium += other.medium;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_bursts_agree_with_the_names() {
        for cap in Cap::ALL {
            let name = cap.name();
            let is_bytes = name.ends_with("_bytes") || cap == Cap::LogRate;
            assert_eq!(cap.counts_bytes(), is_bytes, "{name}");
            assert_eq!(cap.unit().is_none(), cap == Cap::CacheWriteback, "{name}");
            assert_eq!(cap.is_burst(), name.contains("_burst_"), "{name}");
            let burst = cap.burst();
            assert_eq!(burst.unit(), cap.unit(), "{name}");
            assert!(burst == cap || burst.name().replace("_burst", "") == name, "{name}");
        }
    }

    #[test]
    fn service_times_are_added_and_subtracted_by_cap() {
        let time = |iops: u64, bytes: u64, medium: u64| {
            let mut waits = Waits::default();
            waits.charge(Cap::DiskIops, Span::from_nanos(iops));
            waits.charge(Cap::HostWriteBytes, Span::from_nanos(bytes));
            ServiceTime { waits, medium: Span::from_nanos(medium) }
        };
        let mut sum = time(1, 20, 300);
        sum += time(4, 50, 600);
        assert_eq!(sum, time(5, 70, 900));
        assert_eq!(sum.since(&time(1, 20, 300)), time(4, 50, 600));
        assert_eq!(sum.waits.since(&sum.waits), Waits::default());
    }
}
