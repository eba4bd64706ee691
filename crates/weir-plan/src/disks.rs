//! Disk selection: how many disks of each kind carry a load.
//!
//! For a tier, the smallest number of disks that carries the load is the cheapest. For disks whose
//! limits are bought, every number is tried, because what each disk includes free of charge counts
//! again for each further disk.

use crate::answer::Line;
use crate::cost::{Cost, Prices, gib};
use crate::demand::{Flow, Limits};
use crate::error::PlanError;
use crate::keep::KeptPool;
use crate::need::{Need, RoleNeed};
use weir_catalog::{
    self as catalog, BurstKind, CacheMode, Catalog, Edition, HostCache, Per, Price, Provisioned,
    Tier,
};
use weir_layout::Layout;
use weir_layout::file::VolumeKeys;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// The unit in which the throughput of a bought disk is sold.
const MB: u64 = 1_000_000;

/// The request size at which the latency of families is compared.
const PAGE: u64 = 8 << 10;

/// A kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk<'a> {
    /// A tier, whose limits come with its size.
    Tier(&'a Tier),
    /// A tier with performance plus, which is free and can only be chosen when a disk is created.
    Plus(&'a Tier),
    /// A tier while its burst credits last.
    Burst(&'a Tier),
    /// A disk in use with settings that a plan keeps.
    Chosen(Chosen<'a>),
    /// A disk whose limits are bought.
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

/// A tier with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<'a> {
    /// The tier.
    pub(crate) tier: &'a Tier,
    /// The larger tier whose limits and price apply.
    pub(crate) performance_tier: Option<&'a Tier>,
    /// True if the disk bursts on demand, at a fee plus the burst usage.
    pub(crate) on_demand_burst: bool,
    /// True if it has performance plus.
    pub(crate) is_plus: bool,
}

impl<'a> Disk<'a> {
    /// Returns the family.
    #[must_use]
    pub(crate) fn family(&self) -> &'a str {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => &tier.family,
            Self::Chosen(own) => &own.tier.family,
            Self::Bought { family, .. } => &family.family,
        }
    }

    /// Returns the size.
    #[must_use]
    pub(crate) fn size(&self) -> Bytes {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => tier.size,
            Self::Chosen(own) => own.tier.size,
            Self::Bought { size, .. } => *size,
        }
    }

    /// Returns the tier and its settings; `None` if limits are bought.
    #[must_use]
    pub(crate) fn chosen(&self) -> Option<Chosen<'a>> {
        let (tier, is_plus) = match *self {
            Self::Tier(tier) | Self::Burst(tier) => (tier, false),
            Self::Plus(tier) => (tier, true),
            Self::Chosen(own) => return Some(own),
            Self::Bought { .. } => return None,
        };
        Some(Chosen { tier, performance_tier: None, on_demand_burst: false, is_plus })
    }

    /// Returns the limits without burst credits.
    #[must_use]
    pub(crate) fn sustained(&self) -> catalog::Limits {
        let (iops, throughput) = match self {
            Self::Burst(tier) => (tier.iops, tier.throughput),
            _ => self.rates(),
        };
        catalog::Limits { iops, throughput }
    }

    /// Returns the limits.
    #[must_use]
    pub(crate) fn limits(&self) -> Limits {
        let (iops, throughput) = self.rates();
        Limits { operations: iops.get(), bytes: throughput.get() }
    }

    /// Returns the cost of `count` disks.
    #[must_use]
    pub(crate) fn cost(&self, count: u64, prices: Prices<'_>) -> Cost {
        match self {
            Self::Tier(tier) | Self::Plus(tier) | Self::Burst(tier) => {
                Cost::of_units(prices.tier(&tier.name), count, count)
            }
            Self::Chosen(own) => {
                let burst = Cost::of_units(None, u64::from(own.on_demand_burst), 0);
                Cost::of_units(prices.tier(own.billed()), count, count) + burst
            }
            Self::Bought { family, .. } => Rates::new(family, prices).cost(self.bought(), count),
        }
    }

    /// Returns the lines of the bill for `count` disks called `name`.
    #[must_use]
    pub(crate) fn lines(&self, name: &str, count: u64, prices: Prices<'_>) -> Vec<Line> {
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

    /// Returns the keys of a layout's volume for this disk.
    #[must_use]
    pub(crate) fn keys(&self) -> VolumeKeys {
        match self {
            Self::Tier(tier) | Self::Burst(tier) => {
                VolumeKeys { tier: Some(tier.name.clone()), ..VolumeKeys::default() }
            }
            Self::Plus(tier) => VolumeKeys {
                tier: Some(tier.name.clone()),
                performance_plus: true,
                ..VolumeKeys::default()
            },
            Self::Chosen(own) => own.keys(),
            Self::Bought { family, size, iops, throughput } => VolumeKeys {
                family: Some(family.family.clone()),
                size: Some(*size),
                iops: Some(*iops),
                throughput: (!family.throughput_follows).then_some(*throughput),
                ..VolumeKeys::default()
            },
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
    /// Returns the tier whose price applies.
    fn billed(&self) -> &'a str {
        &self.performance_tier.unwrap_or(self.tier).name
    }

    fn keys(&self) -> VolumeKeys {
        VolumeKeys {
            tier: Some(self.tier.name.clone()),
            performance_tier: self.performance_tier.map(|own| own.name.clone()),
            on_demand_burst: self.on_demand_burst,
            performance_plus: self.is_plus,
            ..VolumeKeys::default()
        }
    }
}

/// Prices of a family whose limits are bought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates<'p> {
    gib: Option<&'p Price>,
    iops: Option<&'p Price>,
    /// The price and its unit; `None` if throughput comes with the operations.
    throughput: Option<(Option<&'p Price>, Per)>,
}

impl<'p> Rates<'p> {
    pub(crate) fn new(family: &Provisioned, prices: Prices<'p>) -> Self {
        let price = |per| prices.unit(&family.family, per);
        let per = match family.throughput_step {
            Some(step) if step.get() == 1 << 20 => Per::Mibps,
            _ => Per::Mbps,
        };
        let throughput = (!family.throughput_follows).then(|| (price(per), per));
        Self { gib: price(Per::Gib), iops: price(Per::Iops), throughput }
    }

    fn cost(&self, bought: Bought, count: u64) -> Cost {
        let mut one = Cost::of_units(self.gib, gib(bought.size), 0)
            + Cost::of_units(self.iops, bought.limits.iops.get(), 0);
        if let Some((price, per)) = self.throughput {
            one = one + Cost::of_units(price, units(bought.limits.throughput, per), 0);
        }
        let disks = u32::try_from(count).unwrap_or(u32::MAX);
        Cost {
            unpriced: one.unpriced.saturating_mul(disks),
            month: one.month.times(count),
            size: count,
        }
    }
}

/// Returns a throughput in the units of its price, rounded up.
fn units(throughput: BytesPerSec, per: Per) -> u64 {
    throughput.get().div_ceil(if per == Per::Mibps { 1 << 20 } else { MB })
}

/// Equal disks that carry a load together: a stripe, or a single disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disks<'a> {
    /// Each of the disks.
    pub(crate) disk: Disk<'a>,
    /// Number of disks.
    pub(crate) count: u64,
    /// The price of all disks.
    pub(crate) cost: Cost,
}

/// Requirements for the disks of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The load on all disks together, at each peak.
    pub(crate) peaks: &'a [&'a Flow],
    /// The room on all disks together.
    pub(crate) size: Bytes,
    /// The host cache mode.
    pub(crate) mode: CacheMode,
    /// True for several disks, in a stripe.
    pub(crate) is_striped: bool,
    /// Maximum median latencies, each with its request size.
    pub(crate) latencies: &'a [(Span, u64)],
    /// Maximum number of disks.
    pub(crate) most: u64,
    /// The disks in use, which the plan keeps.
    pub(crate) kept: Option<&'a KeptPool>,
    /// True if the disks must not be detached.
    pub(crate) stays_up: bool,
    /// The longest peak that burst credits may carry.
    pub(crate) peaks_last: Option<Span>,
}

/// Returns whether the burst credits of a tier last as long as peaks.
fn lasts(tier: &Tier, peaks: Option<Span>) -> bool {
    peaks.zip(credits(tier)).is_some_and(|(peaks, own)| own >= peaks)
}

/// Returns the time until full burst credits are spent, if the tier has credits.
#[must_use]
pub(crate) fn credits(tier: &Tier) -> Option<Span> {
    match tier.burst?.kind {
        BurstKind::Credit { duration } => Some(duration),
        _ => None,
    }
}

/// The disks of an edition that a plan may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Market<'a, 'f> {
    /// The edition.
    pub(crate) edition: &'a Edition,
    /// The prices.
    pub(crate) prices: Prices<'a>,
    /// The families to use.
    pub(crate) families: &'f [&'a str],
}

impl<'a> Market<'a, '_> {
    /// Returns the disks of each kind that carry the load, as a frontier: more disks only if they
    /// cost less.
    #[must_use]
    pub(crate) fn options(&self, asked: &Asked<'_>) -> Vec<Disks<'a>> {
        let mut found = Vec::new();
        let bursts = self.tiers().filter(|tier| lasts(tier, asked.peaks_last)).map(Disk::Burst);
        // The first of equal cost is taken, so performance plus is used only where it helps.
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
                let rates = Rates::new(family, self.prices);
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
        // A larger number of disks is useful only if it costs less. Tiers and bought disks are
        // compared separately, because machines may have different limits for bought disks.
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

    /// Returns the tiers of the families, from the newest set of each.
    pub(crate) fn tiers(&self) -> impl Iterator<Item = &'a Tier> + use<'a, '_> {
        let families = self.families;
        let edition = self.edition;
        let sets = families.iter().filter_map(move |family| edition.tier_set(family).ok());
        sets.flat_map(|set| &set.tiers)
    }

    /// Returns the tiers as disks, with and without performance plus. Disks in use keep their
    /// settings.
    pub(crate) fn of_tiers(&self, kept: Option<&KeptPool>) -> Vec<Disk<'a>> {
        match kept.filter(|kept| kept.has_choices()) {
            Some(kept) => self.tiers().filter_map(|tier| self.keeping(tier, kept)).collect(),
            None => self.tiers().map(Disk::Tier).chain(self.with_plus()).collect(),
        }
    }

    /// Returns a tier with the settings of disks in use. A performance tier disappears once the
    /// disk's own tier is as large.
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

    /// Returns the tiers with performance plus.
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
        let is_kept = asked.kept.is_none_or(|kept| becomes(kept, disk));
        // A disk that grows past the size limit of the cache must be detached.
        let bound = self.edition.host_cache().and_then(|cache| cache.max_disk_exclusive);
        let crosses = asked.stays_up
            && asked
                .kept
                .zip(bound)
                .is_some_and(|(kept, bound)| kept.size < bound && disk.size() >= bound);
        is_cacheable && is_fast && is_kept && !crosses
    }
}

/// Returns the typical median latency of a family, the longer of reads and writes.
#[must_use]
pub(crate) fn typical(edition: &Edition, family: &str, request: u64) -> Option<Span> {
    let latency = edition.latency(family)?;
    let transfer = latency.transfer.map_or(0, |rate| {
        let nanos = u128::from(request) * 1_000_000_000 / u128::from(rate.get());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    });
    let median = latency.read.p50.nanos().max(latency.write.p50.nanos());
    Some(Span::from_nanos(median.saturating_add(transfer)))
}

/// Returns the median latency that the catalog states for the slowest disks of a role in the text of a layout, the longer
/// of reads and writes.
pub(crate) fn stated_latency(
    (edition, catalog): (&Edition, &Catalog),
    layout: &str,
    own: &RoleNeed,
) -> Option<Span> {
    let layout = Layout::parse("the plan", layout, catalog).ok()?;
    let mut longest = None;
    for host in &layout.hosts {
        let files = host.files.iter().filter(|file| file.role == own.role);
        let exports = files.filter_map(|file| host.export_of(file));
        for id in exports.flat_map(|export| &export.volumes) {
            let family = host.volumes.get(id.0).and_then(|volume| volume.family.as_deref());
            longest = longest.max(family.and_then(|name| typical(edition, name, own.request)));
        }
    }
    longest
}

/// Returns whether disks in use can become disks like this one and lose nothing.
pub(crate) fn becomes(kept: &KeptPool, disk: &Disk<'_>) -> bool {
    let chosen = disk.chosen();
    let is_plus = chosen.is_some_and(|own| own.is_plus);
    let on_demand_burst = chosen.is_some_and(|own| own.on_demand_burst);
    let own = disk.sustained();
    let is_no_slower = kept
        .limits
        .is_none_or(|limits| own.iops >= limits.iops && own.throughput >= limits.throughput);
    // A disk with the limits of another tier has no credits.
    let has_credits = matches!(disk, Disk::Burst(_)) && kept.has_choices();
    disk.family() == kept.family
        && disk.size() >= kept.size
        && is_plus == kept.is_plus
        && on_demand_burst == kept.on_demand_burst
        && is_no_slower
        && !has_credits
}

/// Returns the requested disk families of an edition; by default, those that are no slower than the
/// edition's default family.
///
/// # Errors
///
/// [`PlanError::Nothing`] for a family that the edition does not have.
pub(crate) fn usable_families<'a>(
    edition: &'a Edition,
    wished: &[String],
) -> Result<Vec<&'a str>, PlanError> {
    let mut all: Vec<&str> = Vec::new();
    for family in edition.families() {
        // Disks with credits by size are not planned: newer families have replaced them.
        if !all.contains(&family) && edition.sized(family).is_none() {
            all.push(family);
        }
    }
    if wished.is_empty() {
        // Slower families are used only on request.
        let usual = edition.default_set().and_then(|set| typical(edition, &set.family, PAGE));
        all.retain(|family| {
            usual.is_none_or(|usual| typical(edition, family, PAGE).is_some_and(|own| own <= usual))
        });
        return Ok(all);
    }
    wished
        .iter()
        .map(|name: &String| match all.iter().find(|family| family.eq_ignore_ascii_case(name)) {
            Some(family) => Ok(*family),
            None => Err(PlanError::Nothing {
                edition: edition.name().to_owned(),
                what: format!("no disks {name:?} to plan with; it has {}", all.join(", ")),
            }),
        })
        .collect()
}

/// Returns whether a family's typical latency is within the target of every role.
pub(crate) fn is_fast_enough(edition: &Edition, family: &str, need: &Need) -> bool {
    let mut targets = need.roles.iter().filter_map(|own| Some((own.latency?, own.request)));
    targets.all(|(most, request)| typical(edition, family, request).is_some_and(|own| own <= most))
}

/// Returns the smallest number of disks that carries the load, at least two for a stripe.
fn fewest(disk: &Disk<'_>, asked: &Asked<'_>) -> u64 {
    let limits = disk.limits();
    let by_rates = asked.peaks.iter().map(|flow| flow.fewest(limits)).max().unwrap_or(0);
    let by_size = asked.size.get().div_ceil(disk.size().get());
    let least = if asked.is_striped { 2 } else { 1 };
    by_rates.max(by_size).max(least)
}

/// Size and limits of a bought disk.
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

/// Returns the limits that disks in use have bought, which they keep.
fn kept_limits(asked: &Asked<'_>) -> Option<catalog::Limits> {
    asked.kept.and_then(|kept| kept.limits)
}

/// Returns the least `count` equal disks that carry the load, if they can be bought.
pub(crate) fn bought(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Bought> {
    if family.throughput_follows {
        return following(family, asked, count);
    }
    let least = fewest_iops(family, asked, count)?;
    // The throughput, and the least that can be bought with the operations.
    let bytes = Flow::most(asked.peaks.iter().copied()).bytes.div_ceil(count);
    let kept = kept_limits(asked).map_or(0, |kept| kept.throughput.get());
    let bytes = bytes
        .max(family.min_throughput(least).get())
        .max(kept)
        .next_multiple_of(family.throughput_unit());
    let throughput = BytesPerSec::new(bytes)?.max(family.minimum.throughput);
    // The operations that the throughput requires.
    let of_throughput = match (family.throughput_per_iops, throughput > family.minimum.throughput) {
        (Some(each), true) => throughput.get().div_ceil(each.get()),
        _ => 0,
    };
    let iops = least.max(Iops::new(of_throughput.max(1))?);
    of_size(family, asked, count, iops, Some(throughput))
}

/// Returns this disk with a tenth less of one bought limit, for each limit where `rules` allow it.
pub(crate) fn slower<'a>(disk: &Disk<'a>, rules: &Provisioned) -> Vec<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return Vec::new() };
    let fewer = Iops::new(tenth_less(iops.get(), 1)).map(|own| own.max(rules.min_iops(size)));
    let slower = BytesPerSec::new(tenth_less(throughput.get(), rules.throughput_unit()))
        .map(|own| own.max(rules.min_throughput(iops)));
    let ways = [
        fewer.and_then(|fewer| allowed(rules, size, fewer, throughput)),
        slower.and_then(|slower| allowed(rules, size, iops, slower)),
    ];
    ways.into_iter().flatten().map(|own| own.disk(family)).collect()
}

/// Returns this disk with a tenth less size, if its limits are bought and `rules` allow it.
pub(crate) fn smaller<'a>(disk: &Disk<'a>, rules: &Provisioned) -> Option<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return None };
    let size = tenth_less(size.get(), rules.size_step.map_or(1 << 30, Bytes::get));
    allowed(rules, Bytes::new(size), iops, throughput).map(|own| own.disk(family))
}

/// Returns this disk with the size at which one disk fewer than `count` has the same room, if
/// `rules` allow it.
pub(crate) fn larger<'a>(disk: &Disk<'a>, rules: &Provisioned, count: u64) -> Option<Disk<'a>> {
    let Disk::Bought { family, size, iops, throughput } = *disk else { return None };
    let size = (size.get().checked_mul(count)?)
        .div_ceil(count.checked_sub(1).filter(|n| *n > 0)?)
        .next_multiple_of(rules.size_step.map_or(1 << 30, Bytes::get));
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

/// Returns the smallest number of operations per disk that carries the load.
fn fewest_iops(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Iops> {
    let operations = Flow::most(asked.peaks.iter().copied()).operations;
    let least = Iops::new(operations.div_ceil(count).max(1))?.max(family.minimum.iops);
    Some(kept_limits(asked).map_or(least, |kept| least.max(kept.iops)))
}

/// Returns the smallest disk whose throughput, which comes with its operations, carries the load.
fn following(family: &Provisioned, asked: &Asked<'_>, count: u64) -> Option<Bought> {
    let bytes = Flow::most(asked.peaks.iter().copied()).bytes.div_ceil(count);
    let brings = |iops: u64| Iops::new(iops).map_or(0, |own| family.max_throughput(own).get());
    let (mut low, mut high) = (fewest_iops(family, asked, count)?.get(), family.maximum.iops.get());
    if low > high || brings(high) < bytes {
        return None;
    }
    // Throughput never falls as operations grow.
    while low < high {
        let middle = low + (high - low) / 2;
        if brings(middle) < bytes { low = middle + 1 } else { high = middle }
    }
    of_size(family, asked, count, Iops::new(low)?, None)
}

/// Returns a disk with these operations, and the smallest size that allows them and has the room.
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
