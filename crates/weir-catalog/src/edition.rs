//! Editions: dated sets of facts.

use crate::architecture::{Architecture, is_burstable};
use crate::cache::HostCache;
use crate::error::{self, CatalogError, Kind};
use crate::host::{HostNames, HostSize, Series};
use crate::latency::Latency;
use crate::limits::Reserve;
use crate::nearest::{nearest, plain};
use crate::price::{Item, PriceBook, PriceList, first_of, is_place};
use crate::provenance::Provenance;
use crate::provisioned::Provisioned;
use crate::region::RegionPrices;
use crate::rules::{BurstRule, Rule, Striping};
use crate::similar;
use crate::sized::SizedFamily;
use crate::store::{Pooled, Store};
use crate::tier::{Tier, TierSet};
use std::collections::HashMap;
use weir_units::Bytes;

/// The family name of the host cache, in [`Edition::latency`].
pub const HOST_CACHE: &str = "host-cache";
/// The family name of local disks, in [`Edition::latency`].
pub const LOCAL_SSD: &str = "local-ssd";

/// A dated set of consistent facts, as published at that time.
///
/// Names are matched without regard to case. A name with several occurrences is qualified by its
/// set or series: `mi-2020/P60`, `ebdsv5-scsi/E8bds_v5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edition {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) as_of: String,
    pub(crate) scope: String,
    pub(crate) provider: Option<String>,
    pub(crate) numbered_disks: bool,
    pub(crate) root_disk_counts: bool,
    pub(crate) licence_programme: Option<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) io_unit: Option<(Bytes, Provenance)>,
    pub(crate) default_set: Option<usize>,
    pub(crate) tier_sets: Vec<TierSet>,
    pub(crate) provisioned: Vec<Provisioned>,
    pub(crate) sized: Vec<SizedFamily>,
    pub(crate) stores: Vec<Store>,
    pub(crate) pooled: Vec<Pooled>,
    pub(crate) series: Vec<Series>,
    pub(crate) host_cache: Option<HostCache>,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) bursting: Vec<BurstRule>,
    pub(crate) striping: Option<Striping>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) prices: Vec<PriceList>,
    pub(crate) host_names: Option<HostNames>,
    /// Prices in regions from a table, before those of the file.
    pub(crate) region_prices: Option<RegionPrices>,
    /// The edition that this one extends, until a catalog puts the two together.
    pub(crate) extends: Option<String>,
    /// Prices that come before all others: those that extend an edition.
    pub(crate) newer_prices: Vec<PriceList>,
    pub(crate) index: Index,
}

/// Places of machines and series by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    hosts: HashMap<String, Vec<(usize, usize)>>,
    series: HashMap<String, usize>,
}

impl Edition {
    /// Indexes the names of machines and series. To be called after each change of them.
    pub(crate) fn index(&mut self) {
        let mut index = Index::default();
        for (of, series) in self.series.iter().enumerate() {
            index.series.insert(series.name.clone(), of);
            for (at, host) in series.hosts.iter().enumerate() {
                index.hosts.entry(plain(&host.name)).or_default().push((of, at));
            }
        }
        self.index = index;
    }

    /// Returns the name, for example `azure-premium-2015`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the date or period of the documents.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Returns the scope: the services and limits that it covers.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the cloud provider, for example `azure`, whose scripts a layout is exported to; `None`
    /// for editions of no cloud.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Returns whether disks have a number at their machine (LUN), by which scripts find them.
    #[must_use]
    pub const fn has_numbered_disks(&self) -> bool {
        self.numbered_disks
    }

    /// Returns the maximum number of disks of a machine besides its root disk, which some clouds count
    /// among them; `None` if it is not published.
    #[must_use]
    pub fn most_data_disks(&self, host: &HostSize) -> Option<u32> {
        let root = u32::from(self.root_disk_counts);
        host.max_data_disks.map(|most| most.saturating_sub(root))
    }

    /// Returns the programme under which a machine with an owned operating system licence is billed
    /// without it; `None` if there is none.
    #[must_use]
    pub fn licence_programme(&self) -> Option<&str> {
        self.licence_programme.as_deref()
    }

    /// Returns the cloud's default machine names, if they are known.
    #[must_use]
    pub const fn host_names(&self) -> Option<&HostNames> {
        self.host_names.as_ref()
    }

    /// Returns notes on the whole edition.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns conflicts that concern the whole edition.
    #[must_use]
    pub fn conflicts(&self) -> &[String] {
        &self.conflicts
    }

    /// Returns the unit in which operations are counted: an I/O of n bytes counts `ceil(n /
    /// io_unit)`. Never zero; `None` if every I/O counts once.
    #[must_use]
    pub fn io_unit(&self) -> Option<Bytes> {
        self.io_unit.as_ref().map(|(unit, _)| *unit)
    }

    /// Returns source and date of the I/O unit.
    #[must_use]
    pub fn io_unit_provenance(&self) -> Option<&Provenance> {
        self.io_unit.as_ref().map(|(_, provenance)| provenance)
    }

    /// Returns the I/O unit of a family; `None` if every I/O counts once.
    #[must_use]
    pub fn io_unit_of(&self, family: &str) -> Option<Bytes> {
        match (self.provisioned(family), self.sized(family)) {
            (Ok(family), _) => family.io_unit,
            (_, Some(family)) => family.io_unit,
            (Err(_), None) => self.io_unit(),
        }
    }

    /// Returns the tier sets in the file's order.
    #[must_use]
    pub fn tier_sets(&self) -> &[TierSet] {
        &self.tier_sets
    }

    /// Returns the tier set of volumes with a size but no family; `None` if the edition has no
    /// tiers.
    #[must_use]
    pub fn default_set(&self) -> Option<&TierSet> {
        self.default_set.and_then(|index| self.tier_sets.get(index))
    }

    /// Iterates over the tiers of all sets.
    pub fn tiers(&self) -> impl Iterator<Item = &Tier> {
        self.tier_sets.iter().flat_map(|set| &set.tiers)
    }

    /// Returns the tier set with that name, or the first one of the family with that name.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn tier_set(&self, family_or_set: &str) -> Result<&TierSet, CatalogError> {
        let wanted = plain(family_or_set);
        let by_name = self.tier_sets.iter().find(|set| plain(&set.name) == wanted);
        let by_family = || self.tier_sets.iter().find(|set| plain(&set.family) == wanted);
        by_name.or_else(by_family).ok_or_else(|| {
            let names: Vec<&str> =
                self.tier_sets.iter().flat_map(|set| [&*set.name, &*set.family]).collect();
            let near = nearest(family_or_set, names.iter().copied());
            self.unknown(Kind::TierSet, family_or_set, near, &names)
        })
    }

    /// Checks that there is a tier set or a family with that name.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn check_family(&self, family_or_set: &str) -> Result<(), CatalogError> {
        let sets = self.tier_sets.iter().map(|set| set.name.as_str());
        let names: Vec<&str> = sets.chain(self.families()).collect();
        let wanted = plain(family_or_set);
        if names.iter().any(|name| plain(name) == wanted) {
            return Ok(());
        }
        let near = nearest(family_or_set, names.iter().copied());
        Err(self.unknown(Kind::TierSet, family_or_set, near, &names))
    }

    /// Returns a tier by name: `P30`, or qualified `mi-2020/P60`. Unqualified names are searched in
    /// the first set of each family.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn tier(&self, name: &str) -> Result<&Tier, CatalogError> {
        let wanted = plain(name);
        if name.contains('/') {
            let found = self.tiers().find(|tier| plain(&tier.qualified()) == wanted);
            return found.ok_or_else(|| {
                let names: Vec<String> = self.tiers().map(Tier::qualified).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.unknown(Kind::Tier, name, nearest(name, names.iter().copied()), &names)
            });
        }
        let found = self.first_sets().flat_map(|set| &set.tiers).find(|t| plain(&t.name) == wanted);
        found.ok_or_else(|| {
            let elsewhere =
                self.tiers().find(|tier| plain(&tier.name) == wanted).map(Tier::qualified);
            let tiers = self.first_sets().flat_map(|set| &set.tiers);
            let names: Vec<&str> = tiers.map(|tier| &*tier.name).collect();
            let near = elsewhere.as_deref().or_else(|| nearest(name, names.iter().copied()));
            self.unknown(Kind::Tier, name, near, &names)
        })
    }

    /// Returns the smallest tier of a set that holds `size`, which is the tier that a disk of this
    /// size gets.
    ///
    /// # Errors
    ///
    /// [`CatalogError::TooLarge`] if no tier holds it, [`CatalogError::Unknown`] if the set does
    /// not exist.
    pub fn snap(&self, family_or_set: &str, size: Bytes) -> Result<&Tier, CatalogError> {
        let set = self.tier_set(family_or_set)?;
        set.snap(size).ok_or_else(|| {
            let largest = set.tiers.last();
            CatalogError::TooLarge {
                size,
                set: set.name.clone(),
                largest: largest.map(|tier| tier.name.clone()).unwrap_or_default(),
                holds: largest.map_or(Bytes::ZERO, |tier| tier.holds),
            }
        })
    }

    /// Returns the families with provisioned limits.
    #[must_use]
    pub fn provisioned_families(&self) -> &[Provisioned] {
        &self.provisioned
    }

    /// Returns the instruction set of a machine's processors.
    #[must_use]
    pub fn architecture(&self, host: &HostSize) -> Architecture {
        Architecture::of_machine(self.provider(), &host.name)
    }

    /// Returns whether a machine is a Mac, which no plan proposes.
    #[must_use]
    pub fn is_mac(&self, host: &HostSize) -> bool {
        self.provider() == Some("aws") && host.name.starts_with("mac")
    }

    /// Returns whether a machine's processors are burstable or shared, by its name: Azure's B, AWS's T, Google's `f1`,
    /// `g1` and small `e2`.
    #[must_use]
    pub fn is_burstable(&self, host: &HostSize) -> bool {
        is_burstable(self.provider(), &host.name)
    }

    /// Returns whether a machine is for confidential computing, by its name: Azure's DC and EC. It is created as such, and
    /// no other machine becomes one.
    #[must_use]
    pub fn is_confidential(&self, host: &HostSize) -> bool {
        let name = host.name.trim_start_matches("Standard_");
        self.provider() == Some("azure")
            && ["DC", "EC", "NCC"].iter().any(|series| {
                let number = name.strip_prefix(series);
                number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            })
    }

    /// Returns whether a machine may be proposed to replace `in_use`, apart from its architecture: it is burstable only if
    /// `in_use` is, for confidential computing if and only if `in_use` is, and no Mac. Without a machine in use, only Macs
    /// are excluded.
    #[must_use]
    pub fn may_replace(&self, in_use: Option<&HostSize>, host: &HostSize) -> bool {
        let may_burst = in_use.is_none_or(|own| self.is_burstable(own));
        let is_as_confidential =
            in_use.is_none_or(|own| self.is_confidential(own) == self.is_confidential(host));
        (may_burst || !self.is_burstable(host)) && is_as_confidential && !self.is_mac(host)
    }

    /// Returns a family with provisioned limits.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn provisioned(&self, family: &str) -> Result<&Provisioned, CatalogError> {
        let wanted = plain(family);
        self.provisioned.iter().find(|p| plain(&p.family) == wanted).ok_or_else(|| {
            let names: Vec<&str> = self.provisioned.iter().map(|p| &*p.family).collect();
            let near = nearest(family, names.iter().copied());
            self.unknown(Kind::Provisioned, family, near, &names)
        })
    }

    /// Returns the families whose limits follow from the size.
    #[must_use]
    pub fn sized_families(&self) -> &[SizedFamily] {
        &self.sized
    }

    /// Returns a family whose limits follow from the size; `None` if it does not exist.
    #[must_use]
    pub fn sized(&self, family: &str) -> Option<&SizedFamily> {
        let wanted = plain(family);
        self.sized.iter().find(|own| plain(&own.family) == wanted)
    }

    /// Returns the storage of managed services.
    #[must_use]
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    /// Returns the families whose disks share limits.
    #[must_use]
    pub fn pooled_families(&self) -> &[Pooled] {
        &self.pooled
    }

    /// Returns a family whose disks share limits; `None` if it does not exist.
    #[must_use]
    pub fn pooled(&self, family: &str) -> Option<&Pooled> {
        let wanted = plain(family);
        self.pooled.iter().find(|own| plain(&own.family) == wanted)
    }

    /// Iterates over the names of all families, one per tier set.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        let sets = self.tier_sets.iter().map(|set| set.family.as_str());
        let provisioned = self.provisioned.iter().map(|own| own.family.as_str());
        let sized = self.sized.iter().map(|own| own.family.as_str());
        sets.chain(provisioned)
            .chain(sized)
            .chain(self.pooled.iter().map(|own| own.family.as_str()))
    }

    pub(crate) fn has_family(&self, name: &str) -> bool {
        let wanted = plain(name);
        self.families().any(|family| plain(family) == wanted)
    }

    /// Returns whether the edition contains the object of a price.
    #[must_use]
    pub fn has(&self, item: &Item) -> bool {
        match item {
            Item::Tier(name) => self.tier(name).is_ok(),
            Item::Host(name) => self.host(name).is_ok(),
            Item::Unit { of, per } => {
                let series = self.series.iter();
                let mut names = self
                    .families()
                    .chain(self.stores.iter().map(|store| store.name.as_str()))
                    .chain(series.clone().map(|series| series.name.as_str()))
                    .chain(series.filter_map(|series| series.service.as_deref()));
                let wanted = plain(of);
                let rows = self.prices.iter().flat_map(|list| &list.rows);
                let is_same = |own: &Item| match own {
                    Item::Unit { of, per: unit } => plain(of) == wanted && unit == per,
                    Item::Tier(_) | Item::Host(_) => false,
                };
                names.any(|name| plain(name) == wanted) || rows.map(|row| &row.item).any(is_same)
            }
        }
    }

    /// Returns the machine series in the file's order.
    #[must_use]
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Iterates over the machines of all series.
    pub fn hosts(&self) -> impl Iterator<Item = &HostSize> + Clone {
        self.series.iter().flat_map(|series| &series.hosts)
    }

    /// Returns a machine by name, with or without `Standard_`. A size in several series must be
    /// qualified: `ebdsv5-scsi/E8bds_v5`.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name, [`CatalogError::Ambiguous`] for an
    /// unqualified size in several series.
    pub fn host(&self, name: &str) -> Result<&HostSize, CatalogError> {
        let (series, size) = match name.split_once('/') {
            Some((series, size)) => (Some(plain(series)), plain(size)),
            None => (None, plain(name)),
        };
        let in_series =
            |host: &&HostSize| series.as_ref().is_none_or(|s| plain(&host.series) == *s);
        let places = self.index.hosts.get(&size).into_iter().flatten();
        let named = places.map(|(of, at)| &self.series[*of].hosts[*at]);
        let found: Vec<&HostSize> = named.filter(in_series).collect();
        match found.as_slice() {
            [host] => Ok(host),
            [] => {
                let hosts = self.hosts().filter(in_series);
                let names: Vec<&str> = hosts.clone().map(|host| &*host.name).collect();
                let Some(near) = similar::machine(&size, hosts) else {
                    let near = nearest(&size, names.iter().copied());
                    return Err(self.unknown(Kind::Host, name, near, &names));
                };
                let mut error = self.unknown(Kind::Host, name, Some(&near.name), &names);
                if let CatalogError::Unknown { known, .. } = &mut error {
                    *known = format!("{}; {known}", similar::described(&size, near));
                }
                Err(error)
            }
            several => Err(CatalogError::Ambiguous {
                kind: Kind::Host,
                name: name.to_owned(),
                edition: self.name.clone(),
                choices: several.iter().map(|host| host.qualified()).collect(),
            }),
        }
    }

    /// Returns the series of a machine.
    #[must_use]
    pub fn series_of(&self, host: &HostSize) -> Option<&Series> {
        self.index.series.get(&host.series).and_then(|of| self.series.get(*of))
    }

    /// Returns the families that can be attached to a machine; all if empty.
    #[must_use]
    pub fn takes<'a>(&'a self, host: &'a HostSize) -> &'a [String] {
        match host.takes.is_empty() {
            true => self.series_of(host).map_or(&[], |series| &series.takes),
            false => &host.takes,
        }
    }

    /// Returns the host cache, if machines of this edition have one.
    #[must_use]
    pub fn host_cache(&self) -> Option<&HostCache> {
        self.host_cache.as_ref()
    }

    /// Returns all latency models.
    #[must_use]
    pub fn latencies(&self) -> &[Latency] {
        &self.latencies
    }

    /// Returns the latency model of a family. `Some` for every family with tiers or provisioned
    /// limits.
    #[must_use]
    pub fn latency(&self, family: &str) -> Option<&Latency> {
        let wanted = plain(family);
        self.latencies.iter().find(|l| l.families.iter().any(|f| plain(f) == wanted))
    }

    /// Returns the latency model of the host cache. `Some` if the edition has one.
    #[must_use]
    pub fn cache_latency(&self) -> Option<&Latency> {
        self.latency(HOST_CACHE)
    }

    /// Returns the latency model of local disks. `Some` if the edition has machines.
    #[must_use]
    pub fn local_latency(&self) -> Option<&Latency> {
        self.latency(LOCAL_SSD)
    }

    /// Iterates over the price lists of the default region and over those that the edition's file
    /// has for other regions. [`Self::price_book`] has those of any region.
    pub fn prices(&self) -> impl Iterator<Item = &PriceList> + Clone {
        self.prices_in(None)
    }

    /// Iterates over the price lists in order of precedence: those of a region, by default of the
    /// file's first one, then those of the file.
    fn prices_in(&self, region: Option<&str>) -> impl Iterator<Item = &PriceList> + Clone {
        let region = region.or_else(|| self.default_region()).map(str::to_owned);
        let table = self.region_prices.as_ref().zip(region.as_deref());
        let lists = table.map_or(&[][..], |(table, region)| table.lists(region));
        // Newer prices of other regions do not make one of those the default.
        let is_here = move |list: &&PriceList| {
            region.as_ref().is_none_or(|region| is_place(&list.region, region))
        };
        let (here, newer) = (is_here.clone(), self.newer_prices.iter());
        let elsewhere = newer.clone().filter(move |list| !is_here(list));
        newer.filter(here).chain(lists).chain(&self.prices).chain(elsewhere)
    }

    /// Returns the region of the file's first price list.
    fn default_region(&self) -> Option<&str> {
        let mut lists = self.prices.iter().chain(&self.newer_prices);
        lists.next().map(|list| list.region.as_str())
    }

    /// Returns the names of all regions with prices.
    #[must_use]
    pub fn regions(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        let own = self.prices.iter().chain(&self.newer_prices);
        let own = own.map(|list| list.region.as_str());
        let of_table = self.region_prices.iter().flat_map(RegionPrices::names);
        for name in own.chain(of_table) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// Returns the prices of a region and currency, by default those of the file's first list; `None`
    /// if the edition has no prices. A given operating system must have machine prices there.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoPrices`] with the available regions and currencies, if there are none.
    pub fn price_book(
        &self,
        region: Option<&str>,
        currency: Option<&str>,
        os: Option<&str>,
    ) -> Result<Option<PriceBook<'_>>, CatalogError> {
        self.price_book_with(&[], region, currency, os)
    }

    /// As [`Self::price_book`], with lists of the user's own before the edition's.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoPrices`] as there.
    pub fn price_book_with<'a>(
        &'a self,
        own: &'a [PriceList],
        region: Option<&str>,
        currency: Option<&str>,
        os: Option<&str>,
    ) -> Result<Option<PriceBook<'a>>, CatalogError> {
        let is_same =
            |own: &str, wanted: Option<&str>| wanted.is_none_or(|w| plain(own) == plain(w));
        let is_wanted = |list: &&PriceList| {
            let has_os = list.os.as_deref().is_none_or(|own| is_same(own, os));
            has_os && is_same(&list.currency, currency)
        };
        let first = own.iter().find(is_wanted);
        let place = region.or_else(|| first.map(|list| list.region.as_str()));
        let book = PriceBook::of(own.iter().chain(self.prices_in(place)), region, currency, os);
        book.map_err(|error| self.with_places(error, region))
    }

    /// Returns the edition's spelling of a region; `None` if the edition has no prices.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoPrices`] as [`Self::price_book`].
    pub fn region_named(&self, name: &str) -> Result<Option<&str>, CatalogError> {
        let all: Vec<&PriceList> = self.prices_in(Some(name)).collect();
        let first = first_of(&all, Some(name), None, None);
        let first = first.map_err(|error| self.with_places(error, Some(name)))?;
        Ok(first.map(|list| list.region.as_str()))
    }

    /// Adds the edition's regions to an error.
    fn with_places(&self, error: CatalogError, region: Option<&str>) -> CatalogError {
        match error {
            CatalogError::NoPrices { asked, known, near } => {
                let nearest = || nearest(region?, self.regions()).map(str::to_owned);
                let near = near.or_else(nearest);
                CatalogError::NoPrices { asked, known: self.known_places(known), near }
            }
            error => error,
        }
    }

    /// Adds the number of regions that a table has to a list of places.
    fn known_places(&self, known: String) -> String {
        match self.region_prices.as_ref().map_or(0, |table| table.names().count()) {
            0 => known,
            n => format!("{known}; {n} regions in USD: weir prices --regions {}", self.name),
        }
    }

    /// Returns the rules of bursting.
    #[must_use]
    pub fn bursting(&self) -> &[BurstRule] {
        &self.bursting
    }

    /// Returns the reserve of all limits of disks and machines: that of the kind of bursting with a
    /// `refill`.
    #[must_use]
    pub fn reserve(&self) -> Option<Reserve> {
        self.bursting.iter().find_map(|rule| {
            let (holds, refill) = rule.duration.zip(rule.refill)?;
            Some(Reserve { holds, refill })
        })
    }

    /// Returns the rules of striping.
    #[must_use]
    pub fn striping(&self) -> Option<&Striping> {
        self.striping.as_ref()
    }

    /// Returns all other rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns a rule by name.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// Returns the default set, and the first set of each other family.
    fn first_sets(&self) -> impl Iterator<Item = &TierSet> {
        let default = self.default_set();
        let others = self.tier_sets.iter().enumerate().filter_map(move |(index, set)| {
            let mut earlier = self.tier_sets[..index].iter().chain(default);
            (!earlier.any(|other| other.family == set.family)).then_some(set)
        });
        default.into_iter().chain(others)
    }

    fn unknown(&self, kind: Kind, name: &str, near: Option<&str>, known: &[&str]) -> CatalogError {
        let verb = if kind == Kind::Host { "hosts" } else { "tiers" };
        let all = format!("weir catalog {verb} {}", self.name);
        CatalogError::Unknown {
            kind,
            name: name.to_owned(),
            edition: Some(self.name.clone()),
            near: near.map(str::to_owned),
            known: error::known(known.iter().copied(), &all),
        }
    }
}
