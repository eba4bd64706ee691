//! The input of an engine: plain data, already resolved to numbers.
//!
//! Tiers and machine sizes have no names here; the reader of a layout looks them up in the
//! catalog and writes their limits.

use crate::medium::Latency;
use crate::stripe;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;
pub use weir_units::CacheMode;
use weir_units::time::NANOS_PER_SEC;
use weir_units::{Bytes, BytesPerSec, Iops, Share, Span};

/// An alarm's index has 30 bits, and there are a few gates more than volumes.
pub(crate) const MAX_VOLUMES: usize = 1 << 29;

/// One host with what is attached to it.
#[derive(Debug, Clone, Default)]
pub struct HostSpec {
    /// The host's limits to remote storage.
    pub uncached: GateLimits,
    /// Write limits to remote storage, if they are separate; `uncached` then limits reads only. They must not
    /// burst.
    pub uncached_writes: Option<GateLimits>,
    /// The host's limits of cache and local SSD together.
    pub cached: GateLimits,
    /// Bytes per second that writes to all of its log volumes together may have. It
    /// does not burst.
    pub log_rate: Option<Limit>,
    /// The part of its burst credits that the host has at the start.
    pub credits: Share,
    /// The host cache, if the host has one.
    pub cache: Option<CacheSpec>,
    /// The volumes; a [`VolumeId`](crate::VolumeId) is an index into this.
    pub volumes: Vec<VolumeSpec>,
    /// The addressable devices; a [`DeviceId`](crate::DeviceId) is an index into this.
    pub devices: Vec<DeviceSpec>,
    /// Seed of every random draw.
    pub seed: u64,
}

impl HostSpec {
    /// Returns the most that reads and writes together get of remote storage, without bursts.
    #[must_use]
    pub fn uncached_total(&self) -> GateLimits {
        let Some(writes) = self.uncached_writes else { return self.uncached };
        let sum = |reads: Option<Limit>, writes: Option<Limit>| {
            let (reads, writes) = (reads?.rate, writes?.rate);
            Some(Limit { rate: reads.saturating_add(writes.get()), burst: None, reserve: None })
        };
        GateLimits {
            iops: sum(self.uncached.iops, writes.iops),
            bytes: sum(self.uncached.bytes, writes.bytes),
        }
    }

    /// Checks the assumptions of an engine.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.volumes.len() >= MAX_VOLUMES {
            return Err(SpecError::TooMany);
        }
        let bursts = |limit: Option<Limit>| limit.is_some_and(|limit| limit.burst.is_some());
        if self.uncached_writes.is_some_and(|own| bursts(own.iops) || bursts(own.bytes)) {
            return Err(SpecError::BurstingWrites);
        }
        for (device, target) in self.devices.iter().enumerate() {
            let columns = match target {
                DeviceSpec::Volume(volume) => core::slice::from_ref(volume),
                DeviceSpec::Stripe { unit, columns } => {
                    let twice = columns.iter().enumerate().any(|(i, v)| columns[..i].contains(v));
                    if columns.len() < 2 || unit.get() == 0 || twice {
                        return Err(SpecError::BadStripe { device });
                    }
                    columns
                }
            };
            if let Some(volume) = columns.iter().find(|v| **v >= self.volumes.len()) {
                return Err(SpecError::NoSuchVolume { device, volume: *volume });
            }
        }
        let uncached = self.volumes.iter().position(|v| v.cache != CacheMode::None);
        match uncached {
            Some(volume) if self.cache.is_none() => Err(SpecError::NoCache { volume }),
            _ => Ok(()),
        }
    }
}

/// A rate and, where there is one, its credit burst. The unit is operations or
/// bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The rate that lasts.
    pub rate: NonZeroU64,
    /// The rate while credits last, and how long a full bucket lasts at it;
    /// [`Limit::ON_DEMAND`] for a burst that needs no credits.
    pub burst: Option<(NonZeroU64, Span)>,
    /// A reserve beside the rate, or beside the peak of a burst.
    pub reserve: Option<Reserve>,
}

/// Time of a limit that was not used and may be spent at once: a token bucket of the rate times
/// `holds`, full at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// The time at the rate that a full reserve holds.
    pub holds: Span,
    /// The idle time that fills it from empty. Zero is no reserve.
    pub refill: Span,
}

impl From<Iops> for Limit {
    fn from(iops: Iops) -> Self {
        Self { rate: iops.per_sec(), burst: None, reserve: None }
    }
}

impl From<BytesPerSec> for Limit {
    fn from(rate: BytesPerSec) -> Self {
        Self { rate: rate.per_sec(), burst: None, reserve: None }
    }
}

impl Limit {
    /// The duration of a burst that needs no credits and has no end. What passes
    /// above the rate is counted, for it is billed.
    pub const ON_DEMAND: Span = Span::from_nanos(u64::MAX);

    /// Replaces the reserve.
    #[must_use]
    pub fn with_reserve(self, reserve: Option<Reserve>) -> Self {
        Self { reserve, ..self }
    }

    /// Adds a burst to `peak` from a full bucket of `credits`, exact to the unit for a surplus of
    /// less than 10^9 a second. A peak that is not above the rate is no burst.
    #[must_use]
    pub fn with_credits(self, peak: NonZeroU64, credits: u64) -> Self {
        let surplus = u128::from(peak.get().saturating_sub(self.rate.get())).max(1);
        let lasts = (u128::from(credits) * u128::from(NANOS_PER_SEC)).div_ceil(surplus);
        // The longest is that of a burst on demand.
        let lasts = u64::try_from(lasts).unwrap_or(u64::MAX).min(u64::MAX - 1);
        self.with_burst(peak, Span::from_nanos(lasts))
    }

    /// Adds an on-demand burst to `peak`. A peak that is not above the rate is no burst.
    #[must_use]
    pub fn with_on_demand(self, peak: NonZeroU64) -> Self {
        self.with_burst(peak, Self::ON_DEMAND)
    }

    /// Returns whether it bursts on demand.
    #[must_use]
    pub fn is_on_demand(&self) -> bool {
        self.burst.is_some_and(|(_, duration)| duration == Self::ON_DEMAND)
    }

    /// Adds a burst to `peak` that lasts `duration` from a full bucket. A peak that is not
    /// above the rate is no burst.
    #[must_use]
    pub fn with_burst(mut self, peak: NonZeroU64, duration: Span) -> Self {
        self.burst = (peak > self.rate).then_some((peak, duration));
        self
    }
}

/// The limits of one gate; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GateLimits {
    /// Operations per second.
    pub iops: Option<Limit>,
    /// Bytes per second.
    pub bytes: Option<Limit>,
}

impl GateLimits {
    /// Returns whether a side bursts on credits.
    #[must_use]
    pub fn has_credits(&self) -> bool {
        let on_credits = |limit: &Limit| limit.burst.is_some() && !limit.is_on_demand();
        [&self.iops, &self.bytes].into_iter().flatten().any(on_credits)
    }
}

/// A disk's limits and how it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskLimits {
    /// The limits.
    pub gate: GateLimits,
    /// An I/O of n bytes counts `ceil(n / io_unit)` operations; `None` counts one.
    pub io_unit: Option<NonZeroU64>,
    /// Adjacent I/Os are counted as one, up to the unit, while they wait at the disk's limits. Not
    /// for volumes with a host cache or a log.
    pub merges: bool,
}

/// The location of a volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Across the network: passes the host's uncached gate.
    #[default]
    Remote,
    /// On the host's own SSD: passes the gate that it shares with the cache.
    Local,
}

/// A volume.
#[derive(Debug, Clone)]
pub struct VolumeSpec {
    /// Its size.
    pub size: Bytes,
    /// Its limits.
    pub limits: DiskLimits,
    /// Its cache mode.
    pub cache: CacheMode,
    /// Remote or local.
    pub place: Place,
    /// Latencies of its medium.
    pub medium: Medium,
    /// It holds a log: its writes pass [`HostSpec::log_rate`].
    pub log: bool,
    /// The part of its burst credits that it has at the start.
    pub credits: Share,
}

impl VolumeSpec {
    /// Returns whether adjacent I/Os can count as one.
    pub(crate) fn merges(&self) -> bool {
        self.limits.merges && self.cache == CacheMode::None && !self.log
    }
}

/// Latencies of a volume's medium.
#[derive(Debug, Clone)]
pub struct Medium {
    /// Latency of a read.
    pub read: Latency,
    /// Latency of a write, a trim or a zeroing.
    pub write: Latency,
    /// Time of a flush, and additional time of a write that must not stay in a volatile cache.
    pub sync: Option<Latency>,
}

impl Medium {
    /// Creates a medium whose flushes take no time.
    #[must_use]
    pub const fn new(read: Latency, write: Latency) -> Self {
        Self { read, write, sync: None }
    }

    /// Draws the time of a flush.
    #[inline]
    pub(crate) fn sync_time(&self, seed: u64, serial: u64) -> Span {
        // A write has drawn from this seed for its own time.
        self.sync.as_ref().map_or(Span::ZERO, |sync| sync.draw(seed.rotate_left(32), serial, 0))
    }
}

/// An addressable device.
#[derive(Debug, Clone)]
pub enum DeviceSpec {
    /// One volume, by its index.
    Volume(usize),
    /// Volumes joined column by column.
    Stripe {
        /// Bytes on one column before the next.
        unit: Bytes,
        /// The volumes, by index.
        columns: Vec<usize>,
    },
}

impl DeviceSpec {
    /// The volumes that it is made of.
    pub(crate) fn columns(&self) -> &[usize] {
        match self {
            Self::Volume(volume) => core::slice::from_ref(volume),
            Self::Stripe { columns, .. } => columns,
        }
    }

    /// Returns the part of `offset..offset + len` on a column: (first byte there, bytes).
    pub(crate) fn column_range(&self, column: usize, offset: u64, len: u64) -> Option<(u64, u64)> {
        match self {
            Self::Volume(_) => (len > 0).then_some((offset, len)),
            Self::Stripe { unit, columns } => {
                stripe::column_range(unit.get(), columns.len(), column, offset, len)
            }
        }
    }
}

/// The host cache.
#[derive(Debug, Clone)]
pub struct CacheSpec {
    /// RAM and SSD together.
    pub capacity: Bytes,
    /// Latency of what it serves or takes.
    pub latency: Latency,
    /// Additional time of a write to a ReadOnly volume, which the cache and the disk both take.
    pub write_through: Option<Latency>,
    /// Dirty bytes that a ReadWrite cache holds at most.
    pub dirty_limit: Bytes,
    /// Age at which dirty blocks are written back.
    pub writeback_after: Span,
}

/// An error in a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// A device names a volume that is not there.
    NoSuchVolume {
        /// The device's index.
        device: usize,
        /// The volume's index.
        volume: usize,
    },
    /// A stripe with fewer than two columns, a unit of zero, or a column in it twice.
    BadStripe {
        /// The device's index.
        device: usize,
    },
    /// A volume asks for a cache and the host has none.
    NoCache {
        /// The volume's index.
        volume: usize,
    },
    /// Separate write limits that burst.
    BurstingWrites,
    /// More volumes than an engine counts (2^29).
    TooMany,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchVolume { device, volume } => {
                write!(f, "device {device} refers to volume {volume}, which is not there")
            }
            Self::BadStripe { device } => write!(
                f,
                "device {device} is not a stripe: it needs two or more different volumes and a unit above zero"
            ),
            Self::NoCache { volume } => {
                write!(f, "volume {volume} asks for a host cache and the host has none")
            }
            Self::BurstingWrites => f.write_str("separate write limits of a host must not burst"),
            Self::TooMany => f.write_str("more volumes than an engine can hold"),
        }
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: u64) -> Limit {
        Limit { rate: per_sec(rate), burst: None, reserve: None }
    }

    fn per_sec(n: u64) -> NonZeroU64 {
        NonZeroU64::new(n).expect("a rate above zero")
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credits_and_never_on_demand() {
        let lasts = |rate, peak, credits| {
            let limit = limit(rate).with_credits(per_sec(peak), credits);
            assert!(!limit.is_on_demand(), "{limit:?}");
            limit.burst.map(|(of, lasts)| {
                assert_eq!(of.get(), peak);
                lasts.nanos()
            })
        };
        assert_eq!(lasts(500, 3_500, 5_400_000), Some(1_800 * NANOS_PER_SEC));
        // Rounded up, so that the bucket holds all of them.
        assert_eq!(lasts(500, 503, 1), Some(333_333_334));
        assert_eq!(lasts(1, 2, u64::MAX), Some(u64::MAX - 1));
        assert_eq!([lasts(500, 500, 1_000), lasts(500, 400, 1_000)], [None, None]);
        assert_eq!(limit(500).with_on_demand(per_sec(500)).burst, None);
    }

    #[test]
    fn only_a_burst_that_ends_has_credits() {
        let on_credits = limit(1).with_credits(per_sec(2), 1);
        for (iops, bytes, expect) in [
            (None, None, false),
            (Some(limit(1)), Some(limit(1)), false),
            (Some(limit(1).with_on_demand(per_sec(2))), Some(limit(1)), false),
            (Some(on_credits), None, true),
            (Some(limit(1)), Some(on_credits), true),
        ] {
            assert_eq!(GateLimits { iops, bytes }.has_credits(), expect, "{iops:?} {bytes:?}");
        }
    }
}
