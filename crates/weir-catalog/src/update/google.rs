//! Files of Google: `gcloud compute machine-types list` and the list of SKUs. A machine is sold by
//! its processors and its memory; types that share cores, or include accelerators or local disks, get no
//! price.

use super::machine::Machine;
use crate::document::Document;
use crate::edition::Edition;
use crate::error::CatalogError;
use crate::price::{Item, Per, Price, PriceList, Term};
use crate::provenance::{Citation, Provenance};
use crate::region::HOURS;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_units::Money;

/// Nanos in a unit of money.
const NANOS: u128 = 1_000_000_000;
const OS: &str = "linux";

/// Returns the machine types. A list has each of them once for a zone.
pub(super) fn machines(
    document: &Document<'_>,
    as_of: &str,
) -> Result<Vec<(String, Machine)>, CatalogError> {
    let mut all: BTreeMap<String, Machine> = BTreeMap::new();
    for own in document.value.as_array().into_iter().flatten() {
        let machine = Machine {
            vcpus: document.small(own, "guestCpus")?,
            memory_mib: document.count(own, "memoryMb")?,
            source: format!("{}: gcloud compute machine-types list", document.origin),
            as_of: as_of.to_owned(),
            ..Machine::default()
        };
        all.insert(document.text(own, "name")?.to_owned(), machine);
    }
    Ok(all.into_iter().collect())
}

/// A unit of a machine series or a disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Core(String),
    Memory(String),
    Disk(&'static str, &'static str),
}

/// A price: nanos of the usage unit, source and date.
type Rate = (u128, String, String);
/// The prices of a region.
type Units = BTreeMap<Unit, Rate>;

/// Prices of units in regions.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// By region and currency.
    all: BTreeMap<(String, String), Units>,
}

/// Meters of disks, with the family and the unit that they are sold by.
const DISKS: [(&str, &str, &str); 8] = [
    ("Storage PD Capacity", "pd-standard", "GiB"),
    ("SSD backed PD Capacity", "pd-ssd", "GiB"),
    ("Balanced PD Capacity", "pd-balanced", "GiB"),
    ("Hyperdisk Balanced Capacity", "hyperdisk-balanced", "GiB"),
    ("Hyperdisk Balanced IOPS", "hyperdisk-balanced", "IOPS"),
    ("Hyperdisk Balanced Throughput", "hyperdisk-balanced", "MiB/s"),
    ("Hyperdisk Extreme Capacity", "hyperdisk-extreme", "GiB"),
    ("Hyperdisk Extreme IOPS", "hyperdisk-extreme", "IOPS"),
];

impl Rates {
    /// Reads a page of SKUs, and returns the number of prices in use.
    pub(super) fn read(&mut self, document: &Document<'_>) -> Result<usize, CatalogError> {
        let listed = document.value.get("skus").unwrap_or(&document.value);
        let skus = listed.as_array().ok_or_else(|| document.invalid("skus", "is no list"))?;
        let mut read = 0;
        for sku in skus {
            let usage = sku.get("category").and_then(|own| own.get("usageType"));
            let Some(unit) = unit(document.text(sku, "description")?) else { continue };
            if usage.and_then(Value::as_str) != Some("OnDemand") {
                continue;
            }
            let name = document.text(sku, "skuId")?;
            let broken = || document.invalid(name, "has no price");
            let info = sku.get("pricingInfo").and_then(|own| own.get(0)).ok_or_else(broken)?;
            let tiers =
                info.get("pricingExpression").and_then(|own| own.get("tieredRates")?.as_array());
            // The first units of a meter may be free.
            let last = tiers.and_then(|tiers| tiers.last()?.get("unitPrice")).ok_or_else(broken)?;
            let nanos = u128::from(document.small(last, "units")?.unwrap_or(0)) * NANOS
                + u128::from(document.small(last, "nanos")?.unwrap_or(0));
            let currency = document.text(last, "currencyCode")?;
            let as_of =
                info.get("effectiveTime").and_then(Value::as_str).and_then(|own| own.get(..10));
            let source = format!("{}: Google SKU {name}", document.origin);
            let regions = sku.get("serviceRegions").and_then(Value::as_array);
            for region in regions.into_iter().flatten().filter_map(Value::as_str) {
                let place = (region.to_owned(), currency.to_owned());
                let rate = (nanos, source.clone(), as_of.unwrap_or("not stated").to_owned());
                self.all.entry(place).or_default().insert(unit.clone(), rate);
                read += 1;
            }
        }
        Ok(read)
    }

    /// Returns the number of machine types whose series has prices, but which are not sold by their
    /// processors and memory alone.
    pub(super) fn left_out(&self, base: &Edition, machines: &BTreeMap<String, Machine>) -> usize {
        let is_priced = |name: &&String| {
            let core = Unit::Core(series(name).to_owned());
            self.all.values().any(|rates| rates.contains_key(&core))
        };
        let all = sizes(base, machines);
        all.keys().filter(is_priced).filter(|name| !is_sold_by_parts(name)).count()
    }

    /// Returns the prices of the base's machines, of those read beside it and of disks.
    pub(super) fn prices(
        &self,
        base: &Edition,
        machines: &BTreeMap<String, Machine>,
    ) -> Vec<PriceList> {
        let mut all = sizes(base, machines);
        all.retain(|name, _| is_sold_by_parts(name));
        let mut lists = Vec::new();
        for ((region, currency), rates) in &self.all {
            let hosts = all.iter().filter_map(|(name, own)| host(base, rates, region, name, *own));
            let disks = rates.iter().filter_map(|(unit, rate)| disk(unit, rate));
            for (os, rows) in [(Some(OS), hosts.collect()), (None, disks.collect::<Vec<Price>>())] {
                let Some(first) = rows.first() else { continue };
                lists.push(PriceList {
                    region: region.clone(),
                    currency: currency.clone(),
                    os: os.map(str::to_owned),
                    provenance: first.provenance.clone(),
                    rows,
                });
            }
        }
        lists
    }
}

/// Returns the processors and the memory in MiB of the base's machines and of those read beside it.
fn sizes(base: &Edition, machines: &BTreeMap<String, Machine>) -> BTreeMap<String, (u32, u64)> {
    let mut all: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for host in base.hosts().filter(|host| !host.stands_for_others) {
        let memory = host.memory.map(|memory| memory.get() >> 20);
        all.extend(host.vcpus.zip(memory).map(|own| (host.name.clone(), own)));
    }
    for (name, own) in machines {
        all.extend(own.vcpus.zip(own.memory_mib).map(|own| (name.clone(), own)));
    }
    all
}

fn series(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

/// Returns whether a machine costs as much as its processors and its memory. Other types share cores, or
/// include accelerators or local disks.
fn is_sold_by_parts(name: &str) -> bool {
    const SHARED_CORE: [&str; 5] = ["e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"];
    const MORE_THAN_PARTS: [&str; 6] = ["a2", "a3", "a4", "g2", "g4", "z3"];
    !SHARED_CORE.contains(&name)
        && !MORE_THAN_PARTS.contains(&series(name))
        && !name.ends_with("lssd")
}

/// Returns the unit that a meter sells; `None` for those that nothing here needs.
fn unit(description: &str) -> Option<Unit> {
    let (what, _) = description.split_once(" in ").unwrap_or((description, ""));
    if let Some((_, family, per)) = DISKS.iter().find(|own| own.0 == what) {
        return Some(Unit::Disk(family, per));
    }
    let what = what.strip_suffix(" running")?;
    let (series, is_core) = match (what.strip_suffix(" Core"), what.strip_suffix(" Ram")) {
        (Some(series), _) => (series, true),
        (_, Some(series)) => (series, false),
        _ => return None,
    };
    let series = match series {
        "Compute optimized" => "c2".to_owned(),
        "N1 Predefined Instance" => "n1".to_owned(),
        // `N2 Instance`, `N2D AMD Instance`, `C4A Arm Instance`.
        own => {
            let mut words = own.split(' ');
            let series = words.next()?.to_lowercase();
            let is_known = matches!(
                (words.next(), words.next(), words.next()),
                (Some("Instance"), None, None) | (Some("AMD" | "Arm"), Some("Instance"), None)
            );
            is_known.then_some(series)?
        }
    };
    Some(if is_core { Unit::Core(series) } else { Unit::Memory(series) })
}

/// Returns the price of a machine. A month has the discount for its whole use that the base has.
fn host(
    base: &Edition,
    rates: &Units,
    region: &str,
    name: &str,
    (vcpus, mib): (u32, u64),
) -> Option<Price> {
    let core = rates.get(&Unit::Core(series(name).to_owned()))?;
    let memory = rates.get(&Unit::Memory(series(name).to_owned()))?;
    let nanos = u128::from(vcpus) * core.0 + u128::from(mib) * memory.0 / 1024;
    let book =
        base.price_book(Some(region), None, None).or_else(|_| base.price_book(None, None, None));
    let known = book.ok().flatten().and_then(|book| book.host(name).cloned());
    let known = known.and_then(|own| Some((u128::from(own.month.micros()), own.hour?.micros())));
    let (paid, whole) = known.map_or((1, 1), |(month, hour)| (month, u128::from(hour) * HOURS));
    // The discount is a whole percentage.
    let percent = (paid * 100 + whole / 2).checked_div(whole).unwrap_or(100);
    let month = (nanos.checked_mul(HOURS.checked_mul(percent)?)? + 50_000) / 100_000;
    let source = format!("{} and {}", core.1, memory.1.rsplit(' ').next().unwrap_or_default());
    Some(Price {
        item: Item::Host(name.to_owned()),
        term: Term::OnDemand,
        free: 0,
        month: Money::from_micros(u64::try_from(month).ok()?),
        hour: Some(Money::from_micros(u64::try_from((nanos + 500) / 1000).ok()?)),
        steps: Vec::new(),
        provenance: Provenance::cited(Citation::new(&source, (&core.2).min(&memory.2))),
    })
}

fn disk(unit: &Unit, (nanos, source, as_of): &Rate) -> Option<Price> {
    let Unit::Disk(family, per) = unit else { return None };
    Some(Price {
        item: Item::Unit { of: (*family).to_owned(), per: Per::named(per)? },
        term: Term::OnDemand,
        free: 0,
        month: Money::from_micros(u64::try_from((nanos + 500) / 1000).ok()?),
        hour: None,
        steps: Vec::new(),
        provenance: Provenance::cited(Citation::new(source, as_of)),
    })
}
