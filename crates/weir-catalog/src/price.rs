//! Prices per month of disks, machines and units, by region.
//!
//! A price list is of one region and one currency. An edition may have several; a [`PriceBook`]
//! is those of one region and currency put together, with lists from elsewhere before its own.

use crate::error::CatalogError;
use crate::nearest::{nearest, plain};
use crate::provenance::Provenance;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use weir_units::Money;

/// Prices of one region and currency, as one source gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PriceList {
    /// The region, as its source writes it.
    pub region: String,
    /// The currency, like `USD`.
    pub currency: String,
    /// The operating system whose licence is in prices of machines, if the list has machines.
    pub os: Option<String>,
    /// The prices.
    pub rows: Vec<Price>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// The price of an item per month.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// The item.
    pub item: Item,
    /// The duration that is committed to.
    pub term: Term,
    /// Number of units that are free.
    pub free: u64,
    /// The price of each, a month, with the discount for use in a whole month where there is one.
    pub month: Money,
    /// The list price of each, an hour, if the source has one.
    pub hour: Option<Money>,
    /// Prices of units above a number, ascending.
    pub steps: Vec<(u64, Money)>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl Price {
    /// Returns the price of `units` per month.
    #[must_use]
    pub fn of(&self, units: u64) -> Money {
        self.parts(units).map(|part| part.month.times(part.units - part.free)).sum()
    }

    /// Splits `units` by their price.
    pub fn parts(&self, units: u64) -> impl Iterator<Item = Part> + use<'_> {
        let starts = std::iter::once((0, self.month)).chain(self.steps.iter().copied());
        let ends = self.steps.iter().map(|step| step.0).chain([u64::MAX]);
        starts.zip(ends).filter(move |((start, _), _)| *start == 0 || *start < units).map(
            move |((start, month), end)| {
                let free = self.free.saturating_sub(start);
                let units = units.min(end) - start;
                Part { units, free: free.min(units), month }
            },
        )
    }
}

/// Units with the same price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Number of units.
    pub units: u64,
    /// Number of free units among them.
    pub free: u64,
    /// Price of each other unit per month.
    pub month: Money,
}

/// The duration that a price is committed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Term {
    /// None: pay as you go.
    #[serde(rename = "on demand")]
    OnDemand,
    /// A reservation of a year.
    #[serde(rename = "1 year")]
    OneYear,
    /// A reservation of three years.
    #[serde(rename = "3 years")]
    ThreeYears,
}

impl Term {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on demand",
            Self::OneYear => "1 year",
            Self::ThreeYears => "3 years",
        }
    }
}

/// The item of a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A disk of a tier.
    Tier(String),
    /// A machine.
    Host(String),
    /// A unit of a family of disks whose limits are bought, or of a series of instances.
    Unit {
        /// The family or series.
        of: String,
        /// The unit.
        per: Per,
    },
}

/// The unit of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Per {
    /// 2^30 bytes of size.
    #[serde(rename = "GiB")]
    Gib,
    /// An operation per second.
    #[serde(rename = "IOPS")]
    Iops,
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    Mbps,
    /// 2^20 bytes per second.
    #[serde(rename = "MiB/s")]
    Mibps,
    /// A virtual processor.
    #[serde(rename = "vCore")]
    Vcore,
    /// The licence of the database for a virtual processor.
    #[serde(rename = "vCore licence")]
    Licence,
}

impl Per {
    /// Returns the unit with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Gib, Self::Iops, Self::Mbps, Self::Mibps, Self::Vcore, Self::Licence];
        all.into_iter().find(|per| per.name() == name)
    }

    /// Returns the name used in editions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gib => "GiB",
            Self::Iops => "IOPS",
            Self::Mbps => "MB/s",
            Self::Mibps => "MiB/s",
            Self::Vcore => "vCore",
            Self::Licence => "vCore licence",
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier(name) | Self::Host(name) => f.write_str(name),
            Self::Unit { of, per } => write!(f, "{of}, {}", per.name()),
        }
    }
}

/// Prices of one region and currency. The first list with a price applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceBook<'a> {
    region: String,
    currency: String,
    lists: Vec<&'a PriceList>,
    /// Lists of the same place with machines that run Linux, where `lists` are of another system.
    unlicensed: Vec<&'a PriceList>,
    /// The first price of each item of `lists`.
    prices: HashMap<Key, &'a Price>,
    /// The first price of each machine without a licence in it.
    unlicensed_hosts: HashMap<Key, &'a Price>,
}

/// An item as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Tier(String),
    Host(String),
    Unit(String, Per),
}

impl Key {
    fn from_item(item: &Item) -> Self {
        match item {
            Item::Tier(name) => Self::Tier(plain(name)),
            Item::Host(name) => Self::Host(plain(name)),
            Item::Unit { of, per } => Self::Unit(plain(of), *per),
        }
    }
}

/// Indexes the prices on demand of lists; the first of an item stays.
fn indexed<'a>(lists: impl Iterator<Item = &'a PriceList>) -> HashMap<Key, &'a Price> {
    let mut all = HashMap::new();
    let rows = lists.flat_map(|list| &list.rows).filter(|row| row.term == Term::OnDemand);
    for row in rows {
        all.entry(Key::from_item(&row.item)).or_insert(row);
    }
    all
}

/// The operating system without a licence in the price of its machines.
const LINUX: &str = "linux";

impl<'a> PriceBook<'a> {
    /// Combines the lists for a region and currency, by default those of the first list. `None` if
    /// there are no lists. A given operating system must have machine prices there.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoPrices`] with the available regions and currencies, if no list matches.
    pub fn of(
        lists: impl IntoIterator<Item = &'a PriceList>,
        region: Option<&str>,
        currency: Option<&str>,
        os: Option<&str>,
    ) -> Result<Option<Self>, CatalogError> {
        let all: Vec<&PriceList> = lists.into_iter().collect();
        let Some(first) = first_of(&all, region, currency, os)? else { return Ok(None) };
        // Without a given operating system, that of the first list applies.
        let wants = |list: &&&PriceList| is_wanted(list, region, currency, os);
        let own_os = os.or_else(|| all.iter().filter(wants).find_map(|list| list.os.as_deref()));
        let is_own = |list: &&&PriceList| {
            is_place(&list.region, &first.region)
                && plain(&list.currency) == plain(&first.currency)
                && list
                    .os
                    .as_deref()
                    .is_none_or(|os| own_os.is_none_or(|own| plain(os) == plain(own)))
        };
        let lists: Vec<&PriceList> = all.iter().filter(is_own).copied().collect();
        let is_linux = |list: &PriceList| list.os.as_deref().is_some_and(|os| plain(os) == LINUX);
        let is_here = |list: &PriceList| {
            is_place(&list.region, &first.region) && plain(&list.currency) == plain(&first.currency)
        };
        let is_unlicensed = |list: &&&PriceList| !is_own(list) && is_here(list) && is_linux(list);
        let unlicensed: Vec<&PriceList> = all.iter().filter(is_unlicensed).copied().collect();
        if os.is_some() && lists.iter().all(|list| list.os.is_none()) {
            return Err(no_prices(&all, region, currency, os));
        }
        let is_licensed = |list: &&&PriceList| list.os.is_some() && !is_linux(list);
        let free = lists.iter().filter(|list| !is_licensed(list)).chain(&unlicensed).copied();
        Ok(Some(Self {
            region: first.region.clone(),
            currency: first.currency.clone(),
            prices: indexed(lists.iter().copied()),
            unlicensed_hosts: indexed(free),
            lists,
            unlicensed,
        }))
    }

    /// Returns the region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Returns the currency.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// Returns the lists, in order of precedence.
    #[must_use]
    pub fn lists(&self) -> &[&'a PriceList] {
        &self.lists
    }

    /// Returns the price of a disk of a tier.
    #[must_use]
    pub fn tier(&self, name: &str) -> Option<&'a Price> {
        self.prices.get(&Key::Tier(plain(name))).copied()
    }

    /// Returns the price of a machine.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&'a Price> {
        self.prices.get(&Key::Host(plain(name))).copied()
    }

    /// Returns the price of a machine whose operating system's licence is owned: that of the machine
    /// with Linux. Azure Hybrid Benefit leaves this base price of the machine.
    #[must_use]
    pub fn unlicensed_host(&self, name: &str) -> Option<&'a Price> {
        self.unlicensed_hosts.get(&Key::Host(plain(name))).copied()
    }

    /// Returns the lists that only [`Self::unlicensed_host`] uses.
    #[must_use]
    pub fn unlicensed_lists(&self) -> &[&'a PriceList] {
        &self.unlicensed
    }

    /// Returns the price of a unit of a family or series.
    #[must_use]
    pub fn unit(&self, of: &str, per: Per) -> Option<&'a Price> {
        self.prices.get(&Key::Unit(plain(of), per)).copied()
    }

    /// Returns all prices of an item, of every source, operating system and term. The first on demand
    /// is the one in use.
    pub fn all(&self, name: &str) -> impl Iterator<Item = (&'a PriceList, &'a Price)> {
        let wanted = plain(name);
        let lists = self.lists.clone().into_iter().chain(self.unlicensed.clone());
        let rows = lists.flat_map(|list| list.rows.iter().map(move |row| (list, row)));
        rows.filter(move |(_, row)| match &row.item {
            Item::Tier(own) | Item::Host(own) | Item::Unit { of: own, .. } => plain(own) == wanted,
        })
    }
}

/// Returns whether two region names are equal, such as `eastus` and `East US`.
pub(crate) fn is_place(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// Number of places that a message lists.
const LISTED: usize = 8;

fn is_wanted(
    list: &PriceList,
    region: Option<&str>,
    currency: Option<&str>,
    os: Option<&str>,
) -> bool {
    region.is_none_or(|region| is_place(&list.region, region))
        && currency.is_none_or(|currency| plain(&list.currency) == plain(currency))
        && os.is_none_or(|os| list.os.as_ref().is_none_or(|own| plain(own) == plain(os)))
}

/// Returns the first list of a region, a currency and an operating system; `None` if there are no
/// lists and nothing is asked for.
///
/// # Errors
///
/// [`CatalogError::NoPrices`] if no list is wanted.
pub(crate) fn first_of<'a>(
    all: &[&'a PriceList],
    region: Option<&str>,
    currency: Option<&str>,
    os: Option<&str>,
) -> Result<Option<&'a PriceList>, CatalogError> {
    match all.iter().find(|list| is_wanted(list, region, currency, os)) {
        Some(first) => Ok(Some(first)),
        None if all.is_empty() && region.is_none() && currency.is_none() && os.is_none() => {
            Ok(None)
        }
        None => Err(no_prices(all, region, currency, os)),
    }
}

fn no_prices(
    all: &[&PriceList],
    region: Option<&str>,
    currency: Option<&str>,
    os: Option<&str>,
) -> CatalogError {
    let asked = [("region", region), ("currency", currency), ("os", os)];
    let asked = asked.into_iter().filter_map(|(key, name)| Some(format!("{key} {:?}", name?)));
    let asked: Vec<String> = asked.collect();
    let mut known: Vec<String> = Vec::new();
    for list in all {
        // Machine prices of an operating system matter only if one is asked for.
        let own = list.os.as_ref().filter(|_| os.is_some());
        let os = own.map(|os| format!(" ({os})")).unwrap_or_default();
        let name = format!("{} in {}{os}", list.region, list.currency);
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let regions = all.iter().map(|list| list.region.as_str());
    let near = region.and_then(|region| nearest(region, regions)).map(str::to_owned);
    if known.len() > LISTED {
        let more = known.len() - LISTED;
        known.truncate(LISTED);
        known.push(format!("and {more} more, which weir prices --regions lists"));
    }
    CatalogError::NoPrices { asked: asked.join(", "), known: known.join(", "), near }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn a_book_has_one_region_and_one_operating_system() {
        let catalog = Catalog::builtin();
        let edition = catalog.edition("azure-now").unwrap();
        let book = |region, os| PriceBook::of(edition.prices(), region, None, os);
        let linux = book(None, None).unwrap().unwrap();
        assert_eq!((linux.region(), linux.currency()), ("East US", "USD"));
        let host = |book: &PriceBook<'_>| book.host("D8s_v3").map(|price| price.month.to_string());
        assert_eq!(host(&linux).as_deref(), Some("280.32"));
        let windows = book(Some("eastus"), Some("windows")).unwrap().unwrap();
        assert_eq!(host(&windows).as_deref(), Some("548.96"));
        let iops = linux.unit("premium-ssd-v2", Per::Iops).unwrap();
        // 3,000 are free.
        assert_eq!((iops.of(3_000), iops.of(4_000).to_string()), (Money::ZERO, "5.11".to_owned()));
        let error = book(Some("Mars"), None).unwrap_err().to_string();
        assert!(
            error.starts_with("there are no prices of region \"Mars\"; there are: East US in USD"),
            "{error}"
        );
        let none: [PriceList; 0] = [];
        assert_eq!(PriceBook::of(&none, None, None, None).unwrap(), None);
    }

    #[test]
    fn priced_items_exist_in_the_edition() {
        let text = include_str!("../../../catalog/example.toml");
        let list = "[[price]]\nregion = \"here\"\ncurrency = \"EUR\"\nsource = \"contract\"\nas_of = \
                    \"2026\"\nrows = [";
        let read =
            |row: &str| crate::Edition::from_toml("own.toml", &format!("{text}\n{list}{row}]\n"));
        assert!(read("{ tier = \"F1\", month = \"9.99\" }").is_ok());
        let error = read("{ tier = \"F9\", month = \"9.99\" }").unwrap_err().to_string();
        assert_eq!(error, "own.toml: prices of \"here\": F9 is not in the edition");
        let error = read("{ tier = \"F1\", host = \"m8\", month = \"9.99\" }").unwrap_err();
        assert!(
            error.to_string().ends_with("a row has either `tier`, or `host`, or `of` and `per`")
        );
    }
}
