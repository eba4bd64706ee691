//! The kinds of disks, and how many of each carry a load.
//!
//! Of a tier the fewest disks that carry a load are the cheapest: each more costs more and gives
//! nothing that is asked for. Of disks whose limits are bought every number is tried, because what
//! comes with each for nothing comes again with every further one.

use crate::answer::Line;
use crate::cost::{Cost, Prices, gib};
use crate::demand::{Flow, Limits};
use crate::keep::KeptPool;
use weir_catalog::{
    self as catalog, BurstKind, CacheMode, Edition, HostCache, Per, Price, Provisioned, Tier,
};
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// The unit in which the throughput of a bought disk is sold.
const MB: u64 = 1_000_000;

/// A disk, one of so many alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk<'a> {
    /// Its limits come with its size.
    Tier(&'a Tier),
    /// The same with performance plus, which is chosen when a disk is made and costs nothing.
    Plus(&'a Tier),
    /// The same while its credits last.
    Burst(&'a Tier),
    /// A disk in use, with what is chosen of it and stays.
    Chosen(Chosen<'a>),
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

/// A tier with what is chosen beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// Its tier.
    pub tier: &'a Tier,
    /// The larger tier whose limits and price it has.
    pub performance_tier: Option<&'a Tier>,
    /// Whether it bursts on demand, which costs a fee and what is burst.
    pub on_demand_burst: bool,
    /// Whether it has performance plus.
    pub is_plus: bool,
}

impl<'a> Disk<'a> {
    /// Its family.
    #[must_use]
    pub fn family(&self) -> &'a str {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => &tier.family,
            Self::Chosen(own) => &own.tier.family,
            Self::Bought { family, .. } => &family.family,
        }
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Bytes {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => tier.size,
            Self::Chosen(own) => own.tier.size,
            Self::Bought { size, .. } => *size,
        }
    }

    /// Returns its tier and what is chosen beside it; `None` where limits are bought.
    #[must_use]
    pub fn chosen(&self) -> Option<Chosen<'a>> {
        let (tier, is_plus) = match *self {
            Self::Tier(tier) | Self::Burst(tier) => (tier, false),
            Self::Plus(tier) => (tier, true),
            Self::Chosen(own) => return Some(own),
            Self::Bought { .. } => return None,
        };
        Some(Chosen { tier, performance_tier: None, on_demand_burst: false, is_plus })
    }

    /// Returns its limits without credits.
    #[must_use]
    pub fn sustained(&self) -> catalog::Limits {
        let (iops, throughput) = match self {
            Self::Burst(tier) => (tier.iops, tier.throughput),
            _ => self.rates(),
        };
        catalog::Limits { iops, throughput }
    }

    /// What it lets through.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let (iops, throughput) = self.rates();
        Limits { operations: iops.get(), bytes: throughput.get() }
    }

    /// What `count` of them cost.
    #[must_use]
    pub fn cost(&self, count: u64, prices: Prices<'_>) -> Cost {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => {
                Cost::of(prices.tier(&tier.name), count, count)
            }
            Self::Chosen(own) => {
                let burst = Cost::of(None, u64::from(own.on_demand_burst), 0);
                Cost::of(prices.tier(own.billed()), count, count) + burst
            }
            Self::Bought { family, .. } => Rates::of(family, prices).cost(self.bought(), count),
        }
    }

    /// The lines of the bill for `count` of them called `name`.
    #[must_use]
    pub fn lines(&self, name: &str, count: u64, prices: Prices<'_>) -> Vec<Line> {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => {
                let what = format!("{name}: disk {}", tier.name);
                vec![Line::of(what, count, prices.tier(&tier.name))]
            }
            Self::Chosen(own) => {
                let tier = own.billed();
                let mut lines =
                    vec![Line::of(format!("{name}: disk {tier}"), count, prices.tier(tier))];
                if own.on_demand_burst {
                    let what = format!("{name}: on-demand bursting of {tier}");
                    lines.push(Line::of(what, count, None));
                }
                lines
            }
            Self::Bought { family, .. } => {
                let Bought { size, limits } = self.bought();
                weir_layout::bill::bought(name, family, (size, limits), count, prices.0)
            }
        }
    }

    /// The keys of a volume that it is, in a layout.
    #[must_use]
    pub fn keys(&self) -> String {
        match self {
            Self::Tier(tier) | Self::Burst(tier) => format!("tier = {:?}", tier.name),
            Self::Plus(tier) => format!("tier = {:?}, performance_plus = true", tier.name),
            Self::Chosen(own) => own.keys(),
            Self::Bought { family, size, iops, throughput } => {
                let (name, size, iops) = (&family.family, size.exact(), iops.get());
                let keys = format!("family = {name:?}, size = \"{size}\", iops = {iops}");
                match family.throughput_follows {
                    true => keys,
                    false => format!("{keys}, throughput = \"{throughput}\""),
                }
            }
        }
    }

    fn bought(&self) -> Bought {
        let (iops, throughput) = self.rates();
        Bought { size: self.size(), limits: catalog::Limits { iops, throughput } }
    }

    fn rates(&self) -> (Iops, BytesPerSec) {
        match self {
            Self::Tier(tier) => (tier.iops, tier.throughput),
            Self::Plus(tier) => {
                let limits = tier.plus.unwrap_or_else(|| tier.limits());
                (limits.iops, limits.throughput)
            }
            Self::Burst(tier) => match &tier.burst {
                Some(burst) => (burst.iops, burst.throughput),
                None => (tier.iops, tier.throughput),
            },
            Self::Chosen(own) => {
                let limits = own.performance_tier.unwrap_or(own.tier).limits();
                let limits = own.tier.plus.filter(|_| own.is_plus).unwrap_or(limits);
                (limits.iops, limits.throughput)
            }
            Self::Bought { iops, throughput, .. } => (*iops, *throughput),
        }
    }
}

impl<'a> Chosen<'a> {
    /// Returns the tier whose price it has.
    fn billed(&self) -> &'a str {
        &self.performance_tier.unwrap_or(self.tier).name
    }

    fn keys(&self) -> String {
        let mut keys = format!("tier = {:?}", self.tier.name);
        if let Some(own) = self.performance_tier {
            keys += &format!(", performance_tier = {:?}", own.name);
        }
        if self.on_demand_burst {
            keys += ", on_demand_burst = true";
        }
        if self.is_plus {
            keys += ", performance_plus = true";
        }
        keys
    }
}

/// What the limits of a family cost by the unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates<'p> {
    gib: Option<&'p Price>,
    iops: Option<&'p Price>,
    /// And the unit in which it is sold; `None` where it comes with the operations.
    throughput: Option<(Option<&'p Price>, Per)>,
}

impl<'p> Rates<'p> {
    pub(crate) fn of(family: &Provisioned, prices: Prices<'p>) -> Self {
        let price = |per| prices.unit(&family.family, per);
        let per = match family.throughput_step {
            Some(step) if step.get() == 1 << 20 => Per::Mibps,
            _ => Per::Mbps,
        };
        let throughput = (!family.throughput_follows).then(|| (price(per), per));
        Self { gib: price(Per::Gib), iops: price(Per::Iops), throughput }
    }

    fn cost(&self, bought: Bought, count: u64) -> Cost {
        let mut one = Cost::of(self.gib, gib(bought.size), 0)
            + Cost::of(self.iops, bought.limits.iops.get(), 0);
        if let Some((price, per)) = self.throughput {
            one = one + Cost::of(price, units(bought.limits.throughput, per), 0);
        }
        let disks = u32::try_from(count).unwrap_or(u32::MAX);
        Cost {
            unpriced: one.unpriced.saturating_mul(disks),
            month: one.month.times(count),
            size: count,
        }
    }
}

/// A throughput in the units that it is sold in, begun ones too.
fn units(throughput: BytesPerSec, per: Per) -> u64 {
    throughput.get().div_ceil(if per == Per::Mibps { 1 << 20 } else { MB })
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
    /// Those that are there and stay.
    pub kept: Option<&'a KeptPool>,
    /// Whether they must not be detached.
    pub stays_up: bool,
    /// How long peaks last, if credits may carry them.
    pub peaks_last: Option<Span>,
}

/// Whether credits carry peaks that last so long.
fn lasts(tier: &Tier, peaks: Option<Span>) -> bool {
    peaks.zip(credits(tier)).is_some_and(|(peaks, own)| own >= peaks)
}

/// How long full credits of a tier last, if it has credits.
#[must_use]
pub fn credits(tier: &Tier) -> Option<Span> {
    match tier.burst?.kind {
        BurstKind::Credit { duration } => Some(duration),
        _ => None,
    }
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
        let bursts = self.tiers().filter(|tier| lasts(tier, asked.peaks_last)).map(Disk::Burst);
        // Of equal cost the first is taken: performance plus only where it is of use.
        let tiers = self.of_tiers(asked.kept).into_iter();
        for disk in tiers.chain(bursts) {
            if self.is_fit(&disk, asked) {
                let fewest = fewest(&disk, asked);
                let count = asked.kept.map_or(fewest, |kept| kept.count);
                let is_enough = count >= fewest && count <= asked.most;
                if is_enough && (count > 1) == asked.is_striped {
                    found.push(Disks { disk, count, cost: disk.cost(count, self.prices) });
                }
            }
        }
        for family in self.edition.provisioned_families() {
            if self.families.contains(&family.family.as_str()) {
                let rates = Rates::of(family, self.prices);
                let counts = match asked.kept {
                    Some(kept) => kept.count..=kept.count,
                    None if asked.is_striped => 2..=asked.most,
                    None => 1..=asked.most.min(1),
                };
                found.extend(counts.filter_map(|count| {
                    let own = bought(family, asked, count)?;
                    let disk = own.disk(family);
                    let is_fit = self.is_fit(&disk, asked);
                    is_fit.then(|| Disks { disk, count, cost: rates.cost(own, count) })
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

    /// Returns the disks of the tiers, with performance plus and without. Disks in use keep what is
    /// chosen of them.
    pub(crate) fn of_tiers(&self, kept: Option<&KeptPool>) -> Vec<Disk<'a>> {
        match kept.filter(|kept| kept.has_choices()) {
            Some(kept) => self.tiers().filter_map(|tier| self.keeping(tier, kept)).collect(),
            None => self.tiers().map(Disk::Tier).chain(self.with_plus()).collect(),
        }
    }

    /// Returns disks in use as disks of a tier, with what is chosen of them. A performance tier goes
    /// where their own tier is as large.
    fn keeping(&self, tier: &'a Tier, kept: &KeptPool) -> Option<Disk<'a>> {
        let named = kept.performance_tier.as_ref().and_then(|name| self.edition.tier(name).ok());
        let performance_tier = named.filter(|own| own.set == tier.set && own.holds > tier.holds);
        let can_burst = tier.burst.is_some_and(|burst| matches!(burst.kind, BurstKind::OnDemand));
        let (is_plus, on_demand_burst) = (kept.is_plus, kept.on_demand_burst);
        if (on_demand_burst && !can_burst) || (is_plus && tier.plus.is_none()) {
            return None;
        }
        Some(match (performance_tier, on_demand_burst, is_plus) {
            (None, false, false) => Disk::Tier(tier),
            (None, false, true) => Disk::Plus(tier),
            _ => Disk::Chosen(Chosen { tier, performance_tier, on_demand_burst, is_plus }),
        })
    }

    /// The tiers that can be had with performance plus, with it.
    fn with_plus(&self) -> impl Iterator<Item = Disk<'a>> + use<'a, '_> {
        self.tiers().filter(|tier| tier.plus.is_some()).map(Disk::Plus)
    }

    fn is_fit(&self, disk: &Disk<'_>, asked: &Asked<'_>) -> bool {
        let cache: Option<&HostCache> = self.edition.host_cache();
        let is_cacheable = asked.mode == CacheMode::None
            || cache.is_some_and(|cache| cache.can_cache(disk.family(), disk.size()));
        let is_fast = asked.latencies.iter().all(|(most, request)| {
            typical(self.edition, disk.family(), *request).is_some_and(|own| own <= *most)
        });
        let is_kept = asked.kept.is_none_or(|kept| kept.becomes(disk));
        // A disk that grows past what can be cached is detached for it.
        let bound = self.edition.host_cache().and_then(|cache| cache.max_disk_exclusive);
        let crosses = asked.stays_up
            && asked
                .kept
                .zip(bound)
                .is_some_and(|(kept, bound)| kept.size < bound && disk.size() >= bound);
        is_cacheable && is_fast && is_kept && !crosses
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

/// What is bought of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bought {
    pub(crate) size: Bytes,
    pub(crate) limits: catalog::Limits,
}

impl Bought {
    pub(crate) fn disk(self, family: &Provisioned) -> Disk<'_> {
        let catalog::Limits { iops, throughput } = self.limits;
        Disk::Bought { family, size: self.size, iops, throughput }
    }
}

/// Returns what disks in use have bought, which they keep.
fn kept_limits(asked: &Asked<'_>) -> Option<catalog::Limits> {
    asked.kept.and_then(|kept| kept.limits)
}

/// The least of `count` disks alike that carry what is asked, if such can be bought.
pub(crate) fn bought(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Bought> {
    if family.throughput_follows {
        return following(family, asked, count);
    }
    let least = fewest_iops(family, asked, count)?;
    // What the bytes ask for, and the least that there is a way to have with the operations.
    let bytes = Flow::most(asked.peaks.iter().copied()).bytes.div_ceil(count);
    let kept = kept_limits(asked).map_or(0, |kept| kept.throughput.get());
    let bytes = bytes.max(family.min_throughput(least).get()).max(kept);
    let bytes = bytes.next_multiple_of(step(family));
    let throughput = BytesPerSec::new(bytes)?.max(family.minimum.throughput);
    // So many operations allow the throughput.
    let of_throughput = match (family.throughput_per_iops, throughput > family.minimum.throughput) {
        (Some(each), true) => throughput.get().div_ceil(each.get()),
        _ => 0,
    };
    let iops = least.max(Iops::new(of_throughput.max(1))?);
    of_size(family, asked, count, iops, Some(throughput))
}

/// A disk like this one with a tenth less of what is bought of a rate, each way that `rules` allow.
pub(crate) fn slower<'a>(disk: &Disk<'a>, rules: &Provisioned) -> Vec<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return Vec::new() };
    let fewer = Iops::new(tenth_less(iops.get(), 1)).map(|own| own.max(rules.min_iops(size)));
    let slower = BytesPerSec::new(tenth_less(throughput.get(), step(rules)))
        .map(|own| own.max(rules.min_throughput(iops)));
    let ways = [
        fewer.and_then(|fewer| allowed(rules, size, fewer, throughput)),
        slower.and_then(|slower| allowed(rules, size, iops, slower)),
    ];
    ways.into_iter().flatten().map(|own| own.disk(family)).collect()
}

/// A disk like this one that is a tenth smaller, if its limits are bought and `rules` allow it.
pub(crate) fn smaller<'a>(disk: &Disk<'a>, rules: &Provisioned) -> Option<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return None };
    let size = tenth_less(size.get(), rules.size_step.map_or(1 << 30, Bytes::get));
    allowed(rules, Bytes::new(size), iops, throughput).map(|own| own.disk(family))
}

/// A disk like this one, one fewer of which than `count` hold as much, if `rules` allow it.
pub(crate) fn larger<'a>(disk: &Disk<'a>, rules: &Provisioned, count: u64) -> Option<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return None };
    let size = (size.get().checked_mul(count)?).div_ceil(count.checked_sub(1).filter(|n| *n > 0)?);
    let size = size.next_multiple_of(rules.size_step.map_or(1 << 30, Bytes::get));
    allowed(rules, Bytes::new(size), iops, throughput).map(|own| own.disk(family))
}

fn tenth_less(own: u64, step: u64) -> u64 {
    (own - own / 10).next_multiple_of(step)
}

fn allowed(
    rules: &Provisioned,
    size: Bytes,
    iops: Iops,
    throughput: BytesPerSec,
) -> Option<Bought> {
    let throughput = (!rules.throughput_follows).then_some(throughput);
    let limits = rules.limits(size, Some(iops), throughput).ok()?;
    Some(Bought { size, limits })
}

/// The unit in which throughput is bought.
fn step(family: &Provisioned) -> u64 {
    family.throughput_step.map_or(MB, BytesPerSec::get)
}

/// The fewest operations of each disk that do not fall short of those that come.
fn fewest_iops(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Iops> {
    let operations = Flow::most(asked.peaks.iter().copied()).operations;
    let least = Iops::new(operations.div_ceil(count).max(1))?.max(family.minimum.iops);
    Some(kept_limits(asked).map_or(least, |kept| least.max(kept.iops)))
}

/// A disk whose throughput comes with its operations: the fewest of these that do.
fn following(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Bought> {
    let bytes = Flow::most(asked.peaks.iter().copied()).bytes.div_ceil(count);
    let brings = |iops: u64| Iops::new(iops).map_or(0, |own| family.max_throughput(own).get());
    let (mut low, mut high) = (fewest_iops(family, asked, count)?.get(), family.maximum.iops.get());
    if low > high || brings(high) < bytes {
        return None;
    }
    // More operations bring no less.
    while low < high {
        let middle = low + (high - low) / 2;
        if brings(middle) < bytes { low = middle + 1 } else { high = middle }
    }
    of_size(family, asked, count, Iops::new(low)?, None)
}

/// A disk with so many operations and the least size that allows them and has the room.
fn of_size(
    family: &Provisioned,
    asked: &Asked<'_>,
    count: u64,
    iops: Iops,
    throughput: Option<BytesPerSec>,
) -> Option<Bought> {
    let of_iops = match (family.iops_per_gib, iops > family.minimum.iops) {
        (Some(each), true) => iops.get().div_ceil(each.get()) << 30,
        _ => 0,
    };
    let kept = asked.kept.map_or(0, |kept| kept.size.get());
    let size = asked.size.get().div_ceil(count).max(of_iops).max(kept).max(family.min_size.get());
    let step = family.size_step.map_or(1 << 30, Bytes::get);
    let size = Bytes::new(size.next_multiple_of(step));
    let iops = iops.max(family.min_iops(size));
    let limits = family.limits(size, Some(iops), throughput).ok()?;
    Some(Bought { size, limits })
}
