//! Conversion of the parsed TOML to the public types, and checks beyond the format: unique names,
//! ascending tiers, bursts above their base, sources of all figures, latencies of all families,
//! complete cache accounting.

use crate::cache::{CacheRow, Counts, HostCache};
use crate::edition::{Edition, HOST_CACHE, Index, LOCAL_SSD};
use crate::error::CatalogError;
use crate::figures;
use crate::file::{self, Cited};
use crate::host::{HostLimits, HostNames, HostSize, LocalDisk, Series};
use crate::latency::{Latency, Quantiles};
use crate::limits::{Burst, BurstKind, Limits, PoolLimits};
use crate::nearest::{nearest, plain};
use crate::price::{Item, Price, PriceList, Term};
use crate::provenance::{Citation, Provenance};
use crate::retail;
use crate::rules::{BurstRule, Rule, RuleValue, Striping};
use crate::tier::{Tier, TierSet};
use weir_units::{Bytes, Money, Span, did_you_mean};

mod families;

impl Edition {
    /// Parses an edition in the format of the crate's documentation. `origin` is the text's name in
    /// messages, for example a file name.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Syntax`] with the line of a syntax error, [`CatalogError::Invalid`] for
    /// contradictions.
    pub fn from_toml(origin: &str, text: &str) -> Result<Self, CatalogError> {
        edition(origin, text)
    }
}

impl PriceList {
    /// Parses price lists: `[[price]]` tables in the format of an edition, or the vendor's retail
    /// price list in JSON as downloaded. `origin` is the text's name in messages.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Syntax`] with the line of a syntax error, [`CatalogError::Invalid`] for
    /// contradictions, or if there is no usable price.
    pub fn read(origin: &str, text: &str) -> Result<Vec<Self>, CatalogError> {
        let text = text.trim_start_matches('\u{feff}');
        match text.trim_start().starts_with(['{', '[']) && !text.trim_start().starts_with("[[") {
            true => retail::prices(origin, text),
            false => prices(origin, text),
        }
    }
}

/// Parses an edition; `origin` is the text's name in messages.
fn edition(origin: &str, text: &str) -> Result<Edition, CatalogError> {
    let file: file::File = toml::from_str(text).map_err(|error| CatalogError::Syntax {
        origin: origin.to_owned(),
        at: error.span().map(|span| place(&text[..span.start])),
        message: weir_units::parser_message(error.message()),
    })?;
    Reader { origin }.edition(file)
}

/// Parses price lists; `origin` is the text's name in messages.
fn prices(origin: &str, text: &str) -> Result<Vec<PriceList>, CatalogError> {
    let file: file::Prices = toml::from_str(text).map_err(|error| CatalogError::Syntax {
        origin: origin.to_owned(),
        at: error.span().map(|span| place(&text[..span.start])),
        message: weir_units::parser_message(error.message()),
    })?;
    let reader = Reader { origin };
    all(file.price, |list| reader.price_list(list))
}

/// Returns line and column of the text after `before`.
fn place(before: &str) -> (usize, usize) {
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

struct Reader<'a> {
    origin: &'a str,
}

impl Reader<'_> {
    fn edition(&self, mut file: file::File) -> Result<Edition, CatalogError> {
        self.check_head(&file)?;
        let io_unit = file.io_unit.take().map(|mut unit| {
            let provenance = self.provenance("[io_unit]", unit.cited(), None)?;
            Ok::<_, CatalogError>((unit.size, provenance))
        });
        let mut edition = Edition {
            default_set: self.default_set(&file)?,
            name: file.name,
            title: file.title,
            as_of: file.as_of,
            scope: file.scope,
            provider: file.provider,
            numbered_disks: file.numbered_disks,
            root_disk_counts: file.root_disk_counts,
            licence_programme: file.licence_programme,
            notes: file.notes,
            conflicts: file.conflicts,
            io_unit: io_unit.transpose()?,
            tier_sets: all(file.tier_set, |set| self.tier_set(set))?,
            provisioned: all(file.provisioned, |family| self.provisioned(family))?,
            sized: all(file.sized, |family| self.sized(family))?,
            stores: all(file.store, |store| self.store(store))?,
            pooled: all(file.pooled, |family| self.pooled(family))?,
            series: all(file.series, |series| self.series(series))?,
            host_cache: file.host_cache.map(|cache| self.host_cache(cache)).transpose()?,
            latencies: all(file.latency, |latency| self.latency(latency))?,
            bursting: all(file.bursting, |rule| self.bursting(rule))?,
            striping: file.striping.map(|striping| self.striping(striping)).transpose()?,
            rules: all(file.rule, |rule| self.rule(rule))?,
            prices: all(file.price, |list| self.price_list(list))?,
            host_names: file.host_names.map(|names| self.host_names(names)).transpose()?,
            region_prices: None,
            extends: file.extends,
            newer_prices: Vec::new(),
            index: Index::default(),
        };
        edition.index();
        self.check_names(&edition)?;
        // An edition that extends another one has the rest there.
        if edition.extends.is_none() {
            self.check_latencies(&edition)?;
            self.check_prices(&edition)?;
        }
        Ok(edition)
    }

    fn host_names(&self, mut names: file::HostNames) -> Result<HostNames, CatalogError> {
        let provenance = self.provenance("[host_names]", names.cited(), None)?;
        let lower = |all: Vec<String>| all.iter().map(|name| name.to_ascii_lowercase()).collect();
        let (prefixes, suffixes): (Vec<String>, Vec<String>) =
            (lower(names.prefixes), lower(names.suffixes));
        if prefixes.iter().chain(&suffixes).any(String::is_empty) {
            let reason = "an empty prefix or suffix matches every name; remove it";
            return Err(self.invalid("[host_names]", reason));
        }
        Ok(HostNames { prefixes, suffixes, provenance })
    }

    fn check_head(&self, file: &file::File) -> Result<(), CatalogError> {
        let spaced = |c: char| c.is_whitespace() || c == '/';
        if file.name.is_empty() || file.name.contains(spaced) {
            let reason = format!("{:?} is no name; use letters, digits and hyphens", file.name);
            return Err(self.invalid("`name`", reason));
        }
        if file.io_unit.as_ref().is_some_and(|unit| unit.size == Bytes::ZERO) {
            return Err(self.invalid("[io_unit]", "`size` must be more than zero"));
        }
        Ok(())
    }

    /// Returns the tier set of volumes without a family: the named one, or the only one.
    fn default_set(&self, file: &file::File) -> Result<Option<usize>, CatalogError> {
        let Some(wanted) = &file.default_set else {
            return match file.tier_set.len() {
                0 => Ok(None),
                1 => Ok(Some(0)),
                n => Err(self.invalid("`default_set`", format!("name one of the {n} tier sets"))),
            };
        };
        let index = file.tier_set.iter().position(|set| set.name == *wanted);
        index.map(Some).ok_or_else(|| {
            let near = nearest(wanted, file.tier_set.iter().map(|set| &*set.name));
            self.invalid(
                "`default_set`",
                format!("there is no tier set {wanted:?}{}", did_you_mean(&near)),
            )
        })
    }

    fn tier_set(&self, mut set: file::TierSet) -> Result<TierSet, CatalogError> {
        let place = format!("tier set {:?}", set.name);
        let provenance = self.provenance(&place, set.cited(), None)?;
        if set.rows.is_empty() {
            return Err(self.invalid(&place, "has no rows"));
        }
        let tiers = all(set.rows, |row| self.tier(row, &set.name, &set.family, &provenance))?;
        for pair in tiers.windows(2) {
            if pair[0].holds >= pair[1].holds {
                let reason = format!("{} must hold more than {}", pair[1].name, pair[0].name);
                return Err(self.invalid(&place, reason + "; rows ascend by size"));
            }
        }
        let file::TierSet { name, family, performance_tiers, .. } = set;
        Ok(TierSet { name, family, tiers, performance_tiers, provenance })
    }

    fn tier(
        &self,
        mut row: file::Tier,
        set: &str,
        family: &str,
        parent: &Provenance,
    ) -> Result<Tier, CatalogError> {
        let place = format!("tier {set}/{}", row.name);
        let provenance = self.provenance(&place, row.cited(), Some(parent))?;
        let base = Limits { iops: row.iops, throughput: row.throughput };
        let plus = row.plus.map(|plus| Limits { iops: plus.iops, throughput: plus.throughput });
        if let Some(plus) = plus {
            self.check_above(&place, "plus", plus, base)?;
        }
        Ok(Tier {
            burst: row.burst.map(|burst| self.burst(&place, burst, base)).transpose()?,
            name: row.name,
            set: set.to_owned(),
            family: family.to_owned(),
            size: row.size,
            holds: row.holds.unwrap_or(row.size),
            iops: row.iops,
            throughput: row.throughput,
            plus,
            provenance,
        })
    }

    fn burst(&self, place: &str, burst: file::Burst, base: Limits) -> Result<Burst, CatalogError> {
        let limits = Limits { iops: burst.iops, throughput: burst.throughput };
        self.check_above(place, "burst", limits, base)?;
        let kind = match (burst.kind, burst.duration) {
            (file::BurstKind::Credit, Some(duration)) => BurstKind::Credit { duration },
            (file::BurstKind::OnDemand, None) => BurstKind::OnDemand,
            (file::BurstKind::Credit, None) => {
                let reason = "a `credit` burst needs the `duration` of a full bucket";
                return Err(self.invalid(place, reason));
            }
            (file::BurstKind::OnDemand, Some(_)) => {
                return Err(self.invalid(place, "an `on-demand` burst has no `duration`"));
            }
        };
        Ok(Burst { kind, iops: burst.iops, throughput: burst.throughput })
    }

    fn check_above(
        &self,
        place: &str,
        what: &str,
        limits: Limits,
        base: Limits,
    ) -> Result<(), CatalogError> {
        let below = |limit: String, base: String| {
            Err(self.invalid(place, format!("`{what}` is {limit}, below the base of {base}")))
        };
        if limits.iops < base.iops {
            return below(limits.iops.to_string(), base.iops.to_string());
        }
        if limits.throughput < base.throughput {
            return below(limits.throughput.to_string(), base.throughput.to_string());
        }
        Ok(())
    }

    fn series(&self, mut series: file::Series) -> Result<Series, CatalogError> {
        let place = format!("series {:?}", series.name);
        let provenance = self.provenance(&place, series.cited(), None)?;
        let (name, caching) = (&series.name, series.premium_caching);
        let interface = series.interface;
        let hosts = all(series.rows, |row| {
            Ok(HostSize { interface, ..self.host(row, name, caching, &provenance)? })
        })?;
        Ok(Series {
            name: series.name,
            interface: series.interface,
            preview: series.preview,
            service: series.service,
            takes: series.takes,
            hosts,
            provenance,
        })
    }

    fn host(
        &self,
        mut row: file::Host,
        series: &str,
        premium_caching: Option<bool>,
        parent: &Provenance,
    ) -> Result<HostSize, CatalogError> {
        let place = format!("host {series}/{}", row.name);
        let provenance = self.provenance(&place, row.cited(), Some(parent))?;
        let limits = |l: Option<file::HostLimits>| {
            let Some(l) = l else { return Ok(None) };
            let base = Limits { iops: l.iops, throughput: l.throughput };
            let burst = l.burst.map(|burst| self.burst(&place, burst, base)).transpose()?;
            Ok(Some(HostLimits { iops: l.iops, throughput: l.throughput, burst }))
        };
        let local_disk = |disk: Option<file::LocalDisk>| {
            disk.map(|disk| self.local_disk(&place, disk)).transpose()
        };
        let cacheable = (row.cache.is_some() || row.cached.is_some()).then_some(true);
        Ok(HostSize {
            temp: local_disk(row.temp)?,
            nvme: local_disk(row.nvme)?,
            uncached: limits(row.uncached)?,
            cached: limits(row.cached)?,
            v2: limits(row.v2)?,
            name: row.name,
            series: series.to_owned(),
            vcpus: row.vcpus,
            memory: row.memory,
            max_data_disks: row.max_data_disks,
            interface: None,
            storage: row.storage,
            cache: row.cache,
            takes: row.takes,
            pools: row
                .pools
                .into_iter()
                .map(|(family, limits)| (family, families::pool_limits(limits)))
                .collect(),
            premium_caching: premium_caching.or(cacheable),
            stands_for_others: false,
            provenance,
        })
    }

    fn local_disk(&self, place: &str, disk: file::LocalDisk) -> Result<LocalDisk, CatalogError> {
        let disks = disk.disks.unwrap_or(1);
        if disks == 0 {
            return Err(self.invalid(place, "`disks` must be more than zero"));
        }
        if disk.throughput.is_some() && (disk.read.is_some() || disk.write.is_some()) {
            let reason = "a local disk has either `throughput` or `read` and `write`";
            return Err(self.invalid(place, reason));
        }
        let (read, write) = (disk.read.or(disk.throughput), disk.write.or(disk.throughput));
        Ok(LocalDisk { disks, size: disk.size, iops: disk.iops, read, write })
    }

    fn host_cache(&self, mut cache: file::HostCache) -> Result<HostCache, CatalogError> {
        let place = "[host_cache]";
        let provenance = self.provenance(place, cache.cited(), None)?;
        let rows = all(cache.rows, |mut row| {
            let place = format!("host cache row {} {}", row.mode, row.op);
            Ok(CacheRow {
                provenance: self.provenance(&place, row.cited(), Some(&provenance))?,
                mode: row.mode,
                op: row.op,
                counts: Counts { disk: row.disk, uncached: row.uncached, cached: row.cached },
            })
        })?;
        for (mode, op) in HostCache::CASES {
            let matching = rows.iter().filter(|row| (row.mode, row.op) == (mode, op)).count();
            if matching != 1 {
                let reason = format!("has {matching} rows for mode {mode}, op {op}; it needs one");
                return Err(self.invalid(place, reason));
            }
        }
        let impossible = rows.iter().find(|row| !HostCache::CASES.contains(&(row.mode, row.op)));
        if let Some(row) = impossible {
            let reason = format!("op {} cannot happen in mode {}", row.op, row.mode);
            return Err(self.invalid(place, reason));
        }
        Ok(HostCache {
            max_disk_exclusive: cache.max_disk_exclusive,
            os_disk_default: cache.os_disk_default,
            data_disk_default: cache.data_disk_default,
            uncacheable: cache.uncacheable,
            recommended: cache.recommended,
            rows,
            provenance,
        })
    }

    fn latency(&self, mut latency: file::Latency) -> Result<Latency, CatalogError> {
        let place = format!("latency {:?}", latency.name);
        let provenance = self.provenance(&place, latency.cited(), None)?;
        let ascends = |q: &Quantiles| q.points().collect::<Vec<_>>().is_sorted_by_key(|p| p.1);
        let all = [
            ("read", Some(latency.read)),
            ("write", Some(latency.write)),
            ("sync", latency.sync),
            ("write_through", latency.write_through),
        ];
        for (what, quantiles) in all {
            if !quantiles.as_ref().is_none_or(ascends) {
                let reason = format!("the quantiles of `{what}` do not ascend from p0 to p100");
                return Err(self.invalid(&place, reason));
            }
        }
        if latency.write_through.is_some() && !latency.families.iter().any(|own| own == HOST_CACHE)
        {
            let reason = format!("`write_through` is for the family {HOST_CACHE:?} only");
            return Err(self.invalid(&place, reason));
        }
        Ok(Latency {
            name: latency.name,
            families: latency.families,
            read: latency.read,
            write: latency.write,
            transfer: latency.transfer,
            sync: latency.sync,
            write_through: latency.write_through,
            basis: latency.basis,
            reason: latency.reason,
            provenance,
        })
    }

    fn bursting(&self, mut rule: file::Bursting) -> Result<BurstRule, CatalogError> {
        let place = format!("bursting {:?}", rule.name);
        match (rule.duration, rule.refill) {
            (None, Some(_)) => {
                let reason = "a `refill` needs the `duration` of the limit that the reserve holds";
                return Err(self.invalid(&place, reason));
            }
            (Some(holds), Some(refill)) if holds > refill || refill == Span::ZERO => {
                let reason = format!("`refill` {refill} must be at least the `duration`, {holds}");
                return Err(self.invalid(&place, reason));
            }
            _ => {}
        }
        Ok(BurstRule {
            provenance: self.provenance(&place, rule.cited(), None)?,
            name: rule.name,
            applies_to: rule.applies_to,
            starts_full: rule.starts_full,
            duration: rule.duration,
            refill: rule.refill,
            text: rule.text,
        })
    }

    fn striping(&self, mut striping: file::Striping) -> Result<Striping, CatalogError> {
        Ok(Striping {
            provenance: self.provenance("[striping]", striping.cited(), None)?,
            units: striping.units,
            max_columns: striping.max_columns,
        })
    }

    fn rule(&self, mut rule: file::Rule) -> Result<Rule, CatalogError> {
        let place = format!("rule {:?}", rule.name);
        let provenance = self.provenance(&place, rule.cited(), None)?;
        let mut values = [
            rule.count.map(RuleValue::Count),
            rule.size.map(RuleValue::Size),
            rule.iops.map(RuleValue::Iops),
            rule.throughput.map(RuleValue::Throughput),
            rule.time.map(RuleValue::Time),
        ]
        .into_iter()
        .flatten();
        let value = values.next();
        if values.next().is_some() {
            let reason = "has more than one of `count`, `size`, `iops`, `throughput`, `time`";
            return Err(self.invalid(&place, reason));
        }
        Ok(Rule { name: rule.name, text: rule.text, value, per: rule.per, provenance })
    }

    /// Returns source and date of a row, by default those of its table.
    fn provenance(
        &self,
        place: &str,
        cited: Cited,
        parent: Option<&Provenance>,
    ) -> Result<Provenance, CatalogError> {
        let own_source = cited.source.is_some();
        let citation = match (cited.source, cited.as_of, parent) {
            (Some(source), Some(as_of), _) => Citation::new(&source, &as_of),
            (None, None, Some(parent)) => parent.citation.clone(),
            _ => return Err(self.invalid(place, "state both `source` and `as_of`")),
        };
        if citation.source.trim().is_empty() || citation.as_of.trim().is_empty() {
            return Err(self.invalid(place, "`source` and `as_of` must not be empty"));
        }
        let mut figures = Vec::new();
        for by in cited.figures {
            if let Some(name) = by.of.iter().find(|of| !figures::NAMES.contains(&of.as_str())) {
                let near = nearest(name, figures::NAMES);
                let reason =
                    format!("`figures` names an unknown figure {name:?}{}", did_you_mean(&near));
                return Err(self.invalid(place, reason));
            }
            let citation = Citation::new(&by.source, &by.as_of);
            figures.extend(by.of.into_iter().map(|of| (of, citation.clone())));
        }
        let mut provenance = Provenance {
            citation,
            figures,
            notes: cited.notes,
            conflicts: cited.conflicts,
            history: cited.history,
        };
        if let Some(parent) = parent {
            if !own_source {
                provenance.figures.extend_from_slice(&parent.figures);
            }
            provenance.notes.extend_from_slice(&parent.notes);
            provenance.conflicts.extend_from_slice(&parent.conflicts);
            provenance.history.extend_from_slice(&parent.history);
        }
        Ok(provenance)
    }

    fn price_list(&self, mut list: file::PriceList) -> Result<PriceList, CatalogError> {
        let place = format!("prices of {:?}", list.region);
        let provenance = self.provenance(&place, list.cited(), None)?;
        if list.region.trim().is_empty() || list.currency.trim().is_empty() {
            return Err(self.invalid(&place, "`region` and `currency` must not be empty"));
        }
        let rows = all(std::mem::take(&mut list.rows), |row| self.price(row, &place, &provenance))?;
        let file::PriceList { region, currency, os, .. } = list;
        Ok(PriceList { region, currency, os, rows, provenance })
    }

    fn price(
        &self,
        mut row: file::Price,
        place: &str,
        parent: &Provenance,
    ) -> Result<Price, CatalogError> {
        let provenance = self.provenance(place, row.cited(), Some(parent))?;
        let item = match (row.tier, row.host, row.of, row.per) {
            (Some(tier), None, None, None) => Item::Tier(tier),
            (None, Some(host), None, None) => Item::Host(host),
            (None, None, Some(of), Some(per)) => Item::Unit { of, per },
            _ => {
                let reason = "a row has either `tier`, or `host`, or `of` and `per`";
                return Err(self.invalid(place, reason));
            }
        };
        let steps: Vec<(u64, Money)> = row.steps.iter().map(|own| (own.above, own.month)).collect();
        let free = row.free.unwrap_or(0);
        let is_ascending = steps.first().is_none_or(|first| first.0 > 0)
            && steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_ascending {
            return Err(self.invalid(place, "the `steps` of a price ascend by `above`"));
        }
        Ok(Price {
            item,
            term: row.term.unwrap_or(Term::OnDemand),
            free,
            month: row.month,
            hour: row.hour,
            steps,
            provenance,
        })
    }

    /// Checks that all priced items exist in the edition, because a misspelled one would never be
    /// used.
    fn check_prices(&self, edition: &Edition) -> Result<(), CatalogError> {
        for list in &edition.prices {
            let place = format!("prices of {:?}", list.region);
            for Price { item, .. } in &list.rows {
                let is_known = match item {
                    Item::Tier(name) => {
                        edition.tiers().any(|tier| plain(&tier.name) == plain(name))
                    }
                    Item::Host(name) => {
                        edition.hosts().any(|host| plain(&host.name) == plain(name))
                    }
                    Item::Unit { of, .. } => {
                        let series = edition.series.iter().map(|series| series.name.as_str());
                        let services =
                            edition.series.iter().filter_map(|series| series.service.as_deref());
                        let stores = edition.stores.iter().map(|store| store.name.as_str());
                        let mut names = edition.families().chain(series).chain(services);
                        names.any(|name| plain(name) == plain(of))
                            || stores.into_iter().any(|name| plain(name) == plain(of))
                    }
                };
                if !is_known {
                    let reason = format!("{item} is not in the edition");
                    return Err(self.invalid(&place, reason));
                }
            }
        }
        Ok(())
    }

    fn check_names(&self, edition: &Edition) -> Result<(), CatalogError> {
        self.check_unique("tier set", edition.tier_sets.iter().map(|set| &*set.name))?;
        self.check_unique("series", edition.series.iter().map(|series| &*series.name))?;
        self.check_unique("latency", edition.latencies.iter().map(|latency| &*latency.name))?;
        self.check_unique("rule", edition.rules.iter().map(|rule| &*rule.name))?;
        for set in &edition.tier_sets {
            let place = format!("tier set {:?}, tier", set.name);
            self.check_unique(&place, set.tiers.iter().map(|tier| &*tier.name))?;
        }
        for series in &edition.series {
            let place = format!("series {:?}, host", series.name);
            self.check_unique(&place, series.hosts.iter().map(|host| &*host.name))?;
        }
        // The family's name decides between tiers and provisioning, so it must have only one of
        // them.
        let mut families: Vec<&str> = Vec::new();
        for set in &edition.tier_sets {
            if !families.contains(&&*set.family) {
                families.push(&set.family);
            }
        }
        families.extend(edition.provisioned.iter().map(|p| &*p.family));
        families.extend(edition.sized.iter().map(|own| &*own.family));
        families.extend(edition.pooled.iter().map(|p| &*p.family));
        self.check_unique("store", edition.stores.iter().map(|store| &*store.name))?;
        self.check_unique("family", families.into_iter())?;
        self.check_references(edition)
    }

    /// Checks that references to families are valid.
    fn check_references(&self, edition: &Edition) -> Result<(), CatalogError> {
        for store in &edition.stores {
            edition.provisioned(&store.family)?;
            let mut services = edition.series.iter().filter_map(|own| own.service.as_ref());
            if !services.any(|service| *service == store.service) {
                let reason = format!("there is no series of the service {:?}", store.service);
                return Err(self.invalid(&format!("store {:?}", store.name), reason));
            }
        }
        for host in edition.hosts() {
            let names = host.pools.keys().chain(&host.takes);
            if let Some(name) = names.into_iter().find(|name| !edition.has_family(name)) {
                let reason = format!("there is no family {name:?}");
                return Err(self.invalid(&format!("host {}", host.qualified()), reason));
            }
            let is_separate =
                |family: &str| Some(edition.pooled(family)?.per_100_gib.writes.is_some());
            let differs = |(family, own): &(&String, &PoolLimits)| {
                is_separate(family).is_some_and(|separate| separate != own.writes.is_some())
            };
            if let Some((family, _)) = host.pools.iter().find(differs) {
                let reason = format!(
                    "`pools.{family}` and `per_100_gib` of the family must both have `writes`, or neither"
                );
                return Err(self.invalid(&format!("host {}", host.qualified()), reason));
            }
        }
        Ok(())
    }

    fn check_unique<'n>(
        &self,
        place: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), CatalogError> {
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if !seen.insert(plain(name)) {
                return Err(self.invalid(&format!("{place} {name:?}"), "is there twice"));
            }
        }
        Ok(())
    }

    /// Checks that every family of volumes has exactly one latency model.
    fn check_latencies(&self, edition: &Edition) -> Result<(), CatalogError> {
        let modelled = edition.latencies.iter().flat_map(|latency| &latency.families);
        self.check_unique("latency of family", modelled.map(String::as_str))?;
        let families = edition.families();
        let cache = edition.host_cache.as_ref().map(|_| HOST_CACHE);
        let local = (!edition.series.is_empty()).then_some(LOCAL_SSD);
        match families.chain(cache).chain(local).find(|f| edition.latency(f).is_none()) {
            None => Ok(()),
            Some(family) => Err(self.invalid(
                &format!("family {family:?}"),
                "has no latency; add it to the `families` of a [[latency]]",
            )),
        }
    }

    fn invalid(&self, place: &str, reason: impl Into<String>) -> CatalogError {
        CatalogError::Invalid {
            origin: self.origin.to_owned(),
            place: place.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Converts all rows, or returns the first error.
fn all<A, B>(
    rows: Vec<A>,
    convert: impl FnMut(A) -> Result<B, CatalogError>,
) -> Result<Vec<B>, CatalogError> {
    rows.into_iter().map(convert).collect()
}
