//! The price of a layout: its machine or instance, its disks, and what is bought of their limits.
//!
//! A bill has the lines that the planner's bills have, so that a layout in use and its replacement
//! compare line by line. A price that is missing stays missing: it never counts as zero.

use crate::file::ManagedInstance;
use crate::layout::{Export, Host, Layout};
use crate::volume::Volume;
use weir_catalog::{Catalog, CatalogError, Edition, Limits, Per, Price, PriceBook, Provisioned};
use weir_core::{Limit, Place};
use weir_units::{Bytes, BytesPerSec, Iops, Money};

/// The unit of throughput where a family is not sold by the MiB/s.
const MB: u64 = 1_000_000;

/// A line of a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The item that is paid for.
    pub what: String,
    /// The number of units.
    pub units: u64,
    /// The units among them that cost nothing.
    pub free: u64,
    /// The price of a unit and month, if it is known.
    pub each: Option<Money>,
    /// Source and date of the price.
    pub source: Option<(String, String)>,
}

impl Line {
    /// Returns a line for `units` of an item, with its price if that is known.
    #[must_use]
    pub fn of(what: String, units: u64, price: Option<&Price>) -> Self {
        let source = price.map(|price| {
            (price.provenance.source().to_owned(), price.provenance.as_of().to_owned())
        });
        let (free, each) = (price.map_or(0, |price| price.free), price.map(|price| price.month));
        Self { what, units, free, each, source }
    }

    /// Returns the lines for `count` equal items of `units` each: one line, or one for each step of
    /// the price.
    #[must_use]
    pub fn all_of(what: String, units: u64, count: u64, price: Option<&Price>) -> Vec<Self> {
        let Some(stepped) = price.filter(|price| !price.steps.is_empty()) else {
            let mut line = Self::of(what, units * count, price);
            line.free *= count;
            return vec![line];
        };
        let part = |part: weir_catalog::Part| Self {
            units: part.units * count,
            free: part.free * count,
            each: Some(part.month),
            ..Self::of(what.clone(), 0, price)
        };
        stepped.parts(units).map(part).collect()
    }

    /// Returns the price of a month, if it is known.
    #[must_use]
    pub fn month(&self) -> Option<Money> {
        Some(self.each?.times(self.units.saturating_sub(self.free)))
    }

    /// Returns whether the price is unknown.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.units > 0 && self.each.is_none()
    }
}

/// The price of a layout, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bill {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Bill {
    /// Returns the sum of all prices that are known.
    #[must_use]
    pub fn month(&self) -> Money {
        self.lines.iter().filter_map(Line::month).sum()
    }

    /// Returns the items whose price is not known.
    pub fn unknown(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.is_unknown())
    }

    /// Returns whether the difference to another bill is known: both lack the same prices.
    #[must_use]
    pub fn is_comparable(&self, other: &Self) -> bool {
        unknown_items(&self.lines) == unknown_items(&other.lines)
    }
}

/// Returns the items without a price, with their units, in order.
fn unknown_items(lines: &[Line]) -> Vec<(&str, u64)> {
    let unknown = lines.iter().filter(|line| line.is_unknown());
    let mut all: Vec<(&str, u64)> = unknown.map(|line| (line.what.as_str(), line.units)).collect();
    all.sort_unstable();
    all
}

/// Returns whole GiB, rounded up, as storage is billed.
#[must_use]
pub fn gib(size: Bytes) -> u64 {
    size.get().div_ceil(1 << 30)
}

/// Returns the lines for `count` disks whose limits are bought.
#[must_use]
pub fn bought(
    name: &str,
    family: &Provisioned,
    (size, limits): (Bytes, Limits),
    count: u64,
    prices: Option<&PriceBook<'_>>,
) -> Vec<Line> {
    let price = |per| prices?.unit(&family.family, per);
    let what = |unit: &str| format!("{name}: {unit} of {count} {}", family.family);
    let mut lines = Line::all_of(what("GiB"), gib(size), count, price(Per::Gib));
    lines.extend(Line::all_of(what("IOPS"), limits.iops.get(), count, price(Per::Iops)));
    if !family.throughput_follows {
        let (per, unit) = match family.throughput_step {
            Some(step) if step.get() == 1 << 20 => (Per::Mibps, 1 << 20),
            _ => (Per::Mbps, MB),
        };
        let units = limits.throughput.get().div_ceil(unit);
        lines.extend(Line::all_of(what(per.name()), units, count, price(per)));
    }
    lines
}

impl Layout {
    /// Returns the price of the layout. Items of no edition, and items that the price book does not
    /// have, are lines without a price.
    #[must_use]
    pub fn bill(&self, edition: Option<&Edition>, prices: Option<&PriceBook<'_>>) -> Bill {
        let mut lines = Vec::new();
        for host in &self.hosts {
            let of = HostBill { host, edition, prices };
            match &host.instance {
                Some(_) => lines.extend(of.instance()),
                None => lines.extend(of.machine()),
            }
        }
        Bill { lines }
    }

    /// Returns the price of the layout in its edition and region, with the prices used; `None` if it
    /// has no edition, or the edition has no prices.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] for an unknown edition, or a region without prices.
    pub fn priced<'a>(
        &self,
        catalog: &'a Catalog,
    ) -> Result<Option<(Bill, PriceBook<'a>)>, CatalogError> {
        let Some(name) = &self.edition else { return Ok(None) };
        let edition = catalog.edition(name)?;
        let book = edition.price_book(self.region.as_deref(), None, None)?;
        Ok(book.map(|book| (self.bill(Some(edition), Some(&book)), book)))
    }
}

impl Host {
    /// Returns the storage that a managed instance is billed for: as stated, or else the size of its
    /// files, rounded up to the step in which storage is reserved.
    #[must_use]
    pub fn billed_storage(&self) -> Option<Bytes> {
        let instance = self.instance.as_ref()?;
        if instance.is_storage_stated {
            return Some(instance.storage);
        }
        let files = self.files.iter().map(|file| gib(file.size));
        let step = gib(instance.storage_step).max(1);
        let gib = files.fold(0, u64::saturating_add).max(1).next_multiple_of(step);
        Some(Bytes::gib(gib).min(instance.storage))
    }
}

/// A host to price.
struct HostBill<'a> {
    host: &'a Host,
    edition: Option<&'a Edition>,
    prices: Option<&'a PriceBook<'a>>,
}

impl HostBill<'_> {
    fn instance(&self) -> Vec<Line> {
        let Some(instance) = &self.host.instance else { return Vec::new() };
        let series = instance.kind.name();
        let vcores = u64::from(instance.vcores);
        let line = |what: &str, units: u64, per: Per| {
            Line::of(what.to_owned(), units, self.prices.and_then(|own| own.unit(series, per)))
        };
        let storage = self.host.billed_storage().map_or(0, gib);
        let mut lines = vec![line("vCores", vcores, Per::Vcore)];
        if !self.host.licence_owned {
            lines.push(line("vCores, licence of SQL Server", vcores, Per::Licence));
        }
        lines.push(line("GiB of storage", storage, Per::Gib));
        if instance.kind == ManagedInstance::NextGenGp {
            let included = self.included(storage);
            let bought = instance.iops.map_or(0, |own| own.get().saturating_sub(included));
            lines.push(line("IOPS bought", bought, Per::Iops));
        }
        lines
    }

    /// Returns the IOPS included with a storage size in GiB of a next-generation instance.
    fn included(&self, storage: u64) -> u64 {
        let number = |rule: &str| {
            let value = self.edition.and_then(|own| own.rule(rule)).and_then(|rule| rule.value);
            value.map_or(0, |value| value.number())
        };
        storage.saturating_mul(number("quota-iops-per-gb")).max(number("quota-iops-min"))
    }

    fn machine(&self) -> Vec<Line> {
        let (host, prices) = (self.host, self.prices);
        let machine = match &host.size {
            Some(size) => {
                let price = prices.and_then(|own| match host.licence_owned {
                    true => own.unlicensed_host(size).filter(|_| {
                        self.edition.is_some_and(|own| own.licence_programme().is_some())
                    }),
                    false => own.host(size),
                });
                Line::of(format!("machine {size}"), 1, price)
            }
            None => Line::of(format!("machine {}, which has no size", host.name), 1, None),
        };
        let mut lines = vec![machine];
        if let Some(service) = self.service() {
            lines.extend(host.exports.iter().flat_map(|own| self.store(service, own)));
        } else {
            lines.extend(host.exports.iter().flat_map(|own| self.disks(own)));
        }
        lines
    }

    /// Returns the service that the machine is a server of.
    fn service(&self) -> Option<&str> {
        let (edition, size) = (self.edition?, self.host.qualified_size()?);
        edition.series_of(edition.host(&size).ok()?)?.service.as_deref()
    }

    /// Returns the lines for the storage of a service.
    fn store(&self, service: &str, export: &Export) -> Vec<Line> {
        let volumes = self.alike(export);
        let line = |(volume, count): (&Volume, u64)| match (&volume.tier, &volume.family) {
            (Some(_), Some(family)) => {
                let price = self.prices.and_then(|own| own.unit(family, Per::Gib));
                Line::of("GiB of storage".to_owned(), gib(volume.spec.size) * count, price)
            }
            // The price goes by the database engine, which a layout does not state.
            _ => Line::of(format!("{}: storage of {service}", export.name), 1, None),
        };
        volumes.into_iter().map(line).collect()
    }

    /// Returns the volumes of an export that the engine keeps outside of the machine, equal ones
    /// together.
    fn alike(&self, export: &Export) -> Vec<(&Volume, u64)> {
        let mut all: Vec<(&Volume, u64)> = Vec::new();
        let own = export.volumes.iter().filter_map(|id| self.host.volumes.get(id.0));
        for volume in own.filter(|volume| volume.spec.place != Place::Local) {
            match all.iter_mut().find(|(first, _)| is_alike(first, volume)) {
                Some((_, count)) => *count += 1,
                None => all.push((volume, 1)),
            }
        }
        all
    }

    fn disks(&self, export: &Export) -> Vec<Line> {
        let volumes = self.alike(export);
        volumes.into_iter().flat_map(|(own, count)| self.disk(&export.name, own, count)).collect()
    }

    /// Returns the lines for `count` equal disks.
    fn disk(&self, name: &str, volume: &Volume, count: u64) -> Vec<Line> {
        let choices = volume.choices();
        let family = volume.family.as_deref();
        if choices.has_own_limits || (volume.tier.is_none() && family.is_none()) {
            let what = format!("{name}: disk with limits of its own");
            return vec![Line::of(what, count, None)];
        }
        if let Some(tier) = choices.performance_tier.or(volume.tier.as_deref()) {
            let price = self.prices.and_then(|own| own.tier(tier));
            let mut lines = vec![Line::of(format!("{name}: disk {tier}"), count, price)];
            if choices.on_demand_burst {
                // A fee for the disk and one for what it bursts: neither is in price lists.
                let what = format!("{name}: on-demand bursting of {tier}");
                lines.push(Line::of(what, count, None));
            }
            return lines;
        }
        let family = family.unwrap_or_default();
        if volume.is_pooled {
            let price = self.prices.and_then(|own| own.unit(family, Per::Gib));
            let units = gib(volume.spec.size) * count;
            return vec![Line::of(format!("GiB of {family}"), units, price)];
        }
        let provisioned = self.edition.and_then(|own| own.provisioned(family).ok());
        match provisioned.zip(limits(volume)) {
            Some((family, limits)) => {
                bought(name, family, (volume.spec.size, limits), count, self.prices)
            }
            // A disk whose limits follow from its size is paid by its size alone.
            None => {
                let price = self.prices.and_then(|own| own.unit(family, Per::Gib));
                let what = format!("{name}: GiB of {family}");
                vec![Line::of(what, gib(volume.spec.size) * count, price)]
            }
        }
    }
}

/// Returns whether two volumes cost the same.
fn is_alike(one: &Volume, other: &Volume) -> bool {
    let key = |volume: &Volume| (volume.tier.clone(), volume.family.clone(), volume.spec.size);
    key(one) == key(other)
        && one.choices() == other.choices()
        && one.is_pooled == other.is_pooled
        && limits(one) == limits(other)
}

/// Returns the limits of a volume that has both.
fn limits(volume: &Volume) -> Option<Limits> {
    let gate = &volume.spec.limits.gate;
    let rate = |limit: Option<Limit>| Some(limit?.rate.get());
    let (iops, throughput) = (Iops::new(rate(gate.iops)?)?, BytesPerSec::new(rate(gate.bytes)?)?);
    Some(Limits { iops, throughput })
}
