//! The kinds of disks, and how many of each carry a load.
//!
//! Of a tier the fewest disks that carry a load are the cheapest: each more costs more and gives
//! nothing that is asked for. Of disks whose limits are bought every number is tried, because what
//! comes with each for nothing comes again with every further one.

use crate::cost::{Cost, Prices, gib};
use crate::demand::{Flow, Limits};
use weir_catalog::{CacheMode, Edition, HostCache, Per, Price, Provisioned, Tier};
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// The unit in which the throughput of a bought disk is sold.
const MB: u64 = 1_000_000;

/// A disk, one of so many alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk<'a> {
    /// Its limits come with its size.
    Tier(&'a Tier),
    /// Its limits are bought.
    Bought {
        /// The family.
        family: &'a Provisioned,
        /// The size.
        size: Bytes,
        /// Operations per second.
        iops: Iops,
        /// Bytes per second.
        throughput: BytesPerSec,
    },
}

impl<'a> Disk<'a> {
    /// Its family.
    #[must_use]
    pub fn family(&self) -> &'a str {
        match self {
            Self::Tier(tier) => &tier.family,
            Self::Bought { family, .. } => &family.family,
        }
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Bytes {
        match self {
            Self::Tier(tier) => tier.size,
            Self::Bought { size, .. } => *size,
        }
    }

    /// What it lets through.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let (iops, throughput) = match self {
            Self::Tier(tier) => (tier.iops, tier.throughput),
            Self::Bought { iops, throughput, .. } => (*iops, *throughput),
        };
        Limits { operations: iops.get(), bytes: throughput.get() }
    }

    /// What `count` of them cost.
    #[must_use]
    pub fn cost(&self, count: u64, prices: Prices<'_>) -> Cost {
        match self {
            Self::Tier(tier) => Cost::of(prices.tier(&tier.name), count, count),
            Self::Bought { family, .. } => Rates::of(family, prices).cost(self, count),
        }
    }
}

/// What the limits of a family cost by the unit.
#[derive(Debug, Clone, Copy)]
struct Rates<'p> {
    gib: Option<&'p Price>,
    iops: Option<&'p Price>,
    mbps: Option<&'p Price>,
}

impl<'p> Rates<'p> {
    fn of(family: &Provisioned, prices: Prices<'p>) -> Self {
        let price = |per| prices.unit(&family.family, per);
        Self { gib: price(Per::Gib), iops: price(Per::Iops), mbps: price(Per::Mbps) }
    }

    fn cost(&self, disk: &Disk<'_>, count: u64) -> Cost {
        let limits = disk.limits();
        let one = Cost::of(self.gib, gib(disk.size()), 0)
            + Cost::of(self.iops, limits.operations, 0)
            + Cost::of(self.mbps, limits.bytes.div_ceil(MB), 0);
        let disks = u32::try_from(count).unwrap_or(u32::MAX);
        Cost {
            unpriced: one.unpriced.saturating_mul(disks),
            month: one.month.times(count),
            size: count,
        }
    }
}

/// Disks alike that carry a load together: a stripe, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disks<'a> {
    /// Each of them.
    pub disk: Disk<'a>,
    /// How many.
    pub count: u64,
    /// What they cost.
    pub cost: Cost,
}

/// What a kind of disk must be.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What they carry together, at each peak.
    pub peaks: &'a [&'a Flow],
    /// What they store together.
    pub size: Bytes,
    /// How they are cached.
    pub mode: CacheMode,
    /// Whether there are several; else there is one.
    pub is_striped: bool,
    /// What half of the requests may take at most, each with the bytes of one.
    pub latencies: &'a [(Span, u64)],
    /// The most disks.
    pub most: u64,
}

/// The families to choose from.
#[derive(Debug, Clone, Copy)]
pub struct Market<'a, 'f> {
    /// What there is.
    pub edition: &'a Edition,
    /// What it costs.
    pub prices: Prices<'a>,
    /// The families that may be used.
    pub families: &'f [&'a str],
}

impl<'a> Market<'a, '_> {
    /// What carries the load, for each kind of disk: a frontier of more disks that cost less.
    #[must_use]
    pub fn options(&self, asked: &Asked<'_>) -> Vec<Disks<'a>> {
        let mut found = Vec::new();
        for tier in self.tiers() {
            let disk = Disk::Tier(tier);
            if self.is_fit(&disk, asked) {
                let count = fewest(&disk, asked);
                if count <= asked.most && (count > 1) == asked.is_striped {
                    found.push(Disks { disk, count, cost: disk.cost(count, self.prices) });
                }
            }
        }
        for family in self.edition.provisioned_families() {
            if self.families.contains(&family.family.as_str()) {
                let rates = Rates::of(family, self.prices);
                let counts = if asked.is_striped { 2..=asked.most } else { 1..=asked.most.min(1) };
                found.extend(counts.filter_map(|count| {
                    let disk = bought(family, asked, count, &rates)?;
                    let is_fit = self.is_fit(&disk, asked);
                    is_fit.then(|| Disks { disk, count, cost: rates.cost(&disk, count) })
                }));
            }
        }
        found.sort_by_key(|disks| (disks.count, disks.cost));
        // Disks of which more cost no less are never of use, within each way to pay: machines have
        // other limits for disks whose limits are bought.
        let mut least: [Option<Cost>; 2] = [None; 2];
        found.retain(|disks| {
            let own = &mut least[usize::from(matches!(disks.disk, Disk::Bought { .. }))];
            let is_less = own.is_none_or(|least| disks.cost < least);
            if is_less {
                *own = Some(disks.cost);
            }
            is_less
        });
        found
    }

    /// The tiers of the families, of the newest set of each.
    pub fn tiers(&self) -> impl Iterator<Item = &'a Tier> + use<'a, '_> {
        let families = self.families;
        let edition = self.edition;
        let sets = families.iter().filter_map(move |family| edition.tier_set(family).ok());
        sets.flat_map(|set| &set.tiers)
    }

    fn is_fit(&self, disk: &Disk<'_>, asked: &Asked<'_>) -> bool {
        let cache: Option<&HostCache> = self.edition.host_cache();
        let is_cacheable = asked.mode == CacheMode::None
            || cache.is_some_and(|cache| cache.can_cache(disk.family(), disk.size()));
        let is_fast = asked.latencies.iter().all(|(most, request)| {
            typical(self.edition, disk.family(), *request).is_some_and(|own| own <= *most)
        });
        is_cacheable && is_fast
    }
}

/// What half of the requests of a family take at most, reads and writes.
#[must_use]
pub fn typical(edition: &Edition, family: &str, request: u64) -> Option<Span> {
    let latency = edition.latency(family)?;
    let transfer = latency.transfer.map_or(0, |rate| {
        let nanos = u128::from(request) * 1_000_000_000 / u128::from(rate.get());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    });
    let median = latency.read.p50.nanos().max(latency.write.p50.nanos());
    Some(Span::from_nanos(median.saturating_add(transfer)))
}

/// The fewest disks that carry what is asked; two at least for a stripe.
fn fewest(disk: &Disk<'_>, asked: &Asked<'_>) -> u64 {
    let limits = disk.limits();
    let by_rates = asked.peaks.iter().map(|flow| flow.fewest(limits)).max().unwrap_or(0);
    let by_size = asked.size.get().div_ceil(disk.size().get());
    let least = if asked.is_striped { 2 } else { 1 };
    by_rates.max(by_size).max(least)
}

/// The cheapest of `count` disks that carry what is asked, if such can be bought.
fn bought<'a>(
    family: &'a Provisioned,
    asked: &Asked<'_>,
    count: u64,
    rates: &Rates<'_>,
) -> Option<Disk<'a>> {
    let least = family.minimum.throughput.get().div_ceil(MB);
    let most = family.maximum.throughput.get() / MB;
    let of = |mbps: u64| with_throughput(family, asked, count, mbps);
    let cost = |mbps: u64| of(mbps).map(|disk| rates.cost(&disk, count));
    // The throughput that the bytes alone ask for is the least there is a way with.
    let bytes = asked.peaks.iter().map(|flow| flow.bytes()).max().unwrap_or(0);
    let least = least.max(bytes.div_ceil(count).div_ceil(MB));
    if asked.peaks.iter().all(|flow| flow.is_alike()) {
        return of(least);
    }
    // Where requests are mixed, more throughput may save operations. What all costs has one lowest
    // place, for what carries a load is convex in both rates.
    let first = (least..=most).find(|mbps| cost(*mbps).is_some())?;
    let (mut low, mut high) = (first, most);
    while high - low > 8 {
        let (one, other) = (low + (high - low) / 3, high - (high - low) / 3);
        match cost(one) <= cost(other) && cost(one).is_some() {
            true => high = other,
            false => low = one,
        }
    }
    let best = (low.saturating_sub(8).max(first)..=high)
        .filter_map(|mbps| Some((cost(mbps)?, mbps)))
        .min();
    of(best?.1)
}

/// A disk of so many MB/s with the fewest operations and the least size that do.
fn with_throughput<'a>(
    family: &'a Provisioned,
    asked: &Asked<'_>,
    count: u64,
    mbps: u64,
) -> Option<Disk<'a>> {
    let step = family.size_step.map_or(1 << 30, Bytes::get);
    let throughput = BytesPerSec::new(mbps * MB)?.max(family.minimum.throughput);
    let fits = |iops: u64| {
        let limits = Limits { operations: iops, bytes: throughput.get() };
        asked.peaks.iter().all(|flow| flow.fits(limits, count))
    };
    // Fewer than come on average do not do.
    let operations = asked.peaks.iter().map(|flow| flow.operations()).max().unwrap_or(0);
    let (mut low, mut high) = (operations.div_ceil(count).max(1), family.maximum.iops.get());
    if low > high || !fits(high) {
        return None;
    }
    if fits(low) {
        high = low;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    // So many operations allow the throughput.
    let of_throughput = match throughput > family.minimum.throughput {
        true => throughput.get().div_ceil(family.throughput_per_iops.get().max(1)),
        false => 0,
    };
    let iops = Iops::new(high.max(of_throughput).max(family.minimum.iops.get()))?;
    // And so much size the operations.
    let of_iops = match iops > family.minimum.iops {
        true => iops.get().div_ceil(family.iops_per_gib.get().max(1)) << 30,
        false => 0,
    };
    let size = asked.size.get().div_ceil(count).max(of_iops).max(family.min_size.get());
    let size = Bytes::new(size.next_multiple_of(step));
    let limits = family.limits(size, Some(iops), Some(throughput)).ok()?;
    Some(Disk::Bought { family, size, iops: limits.iops, throughput: limits.throughput })
}
