//! The families of managed services with one store for all files: RDS, and Azure Database for
//! PostgreSQL.
//!
//! A store is a disk with tiers, or one or more disks with bought limits that the service stripes
//! itself. Data and log share it. A layout is therefore a machine and a store. Stores depend on the
//! machine only through its limits, so the cheapest store of each kind is computed once.

use crate::answer::{CapUse, Line, Reason, Unpriced};
use crate::cost::{Cost, Prices, gib};
use crate::demand::{self, Flow, Limits, Peak};
use crate::disks::{Asked, Disk, bought, is_fast_enough, slower, smaller};
use crate::error::PlanError;
use crate::family::{Family, Searched};
use crate::need::{Need, Wishes, rate_words};
use crate::rank::Aim;
use weir_catalog::{
    self as catalog, CacheMode, Edition, HostSize, Per, Provisioned, RuleValue, Store, StoreStep,
    Tier,
};
use weir_layout::file::{AlikeKeys, Columns, FileKeys, HostKeys, StripeKeys, VolumeKeys};
use weir_layout::{LayoutText, Role};
use weir_units::{Bytes, BytesPerSec, Iops};

/// The rule with the size below which storage has a host cache.
const CACHED_BELOW: &str = "host-cache-below";

/// The name of the storage in layouts.
const STORAGE: &str = "storage";

/// A managed service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Amazon RDS.
    Rds,
    /// Azure Database for PostgreSQL flexible server.
    Postgres,
}

impl Service {
    /// Returns the name in plans and in the catalog.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rds => "rds",
            Self::Postgres => "postgres",
        }
    }
}

/// The default engine.
const ENGINE: &str = "postgresql";
/// The engine with a tempdb.
const WITH_TEMPDB: &str = "sqlserver";

/// The search among servers of one service.
#[derive(Debug)]
pub(crate) struct Services<'a> {
    /// The service.
    pub(crate) service: Service,
    /// The edition.
    pub(crate) edition: &'a Edition,
    /// The prices.
    pub(crate) prices: Prices<'a>,
    /// The disk families to use.
    pub(crate) families: Vec<&'a str>,
    /// The constraints.
    pub(crate) wishes: &'a Wishes,
}

/// The store of all files.
#[derive(Debug, Clone, Copy)]
struct Storage<'a> {
    disk: Disk<'a>,
    /// Number of equal disks.
    count: u64,
    /// The size of each disk.
    size: Bytes,
    /// The store's rules, if limits are bought.
    rules: Option<(&'a Store, &'a StoreStep)>,
}

/// A server and its store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    host: &'a HostSize,
    storage: Storage<'a>,
    cost: Cost,
}

impl<'a> Services<'a> {
    /// Finds the cheapest layout.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] for what the service does not have.
    pub(crate) fn search(&self, need: &Need, aim: Aim) -> Result<Searched, PlanError> {
        self.check(need)?;
        let storages = self.storages(need);
        let hosts = self.hosts(need).into_iter();
        let candidates = hosts
            .flat_map(|host| storages.iter().map(move |storage| self.candidate(host, *storage)));
        Ok(self.pick(need, candidates, aim))
    }

    /// Lists the servers without a price that carry the need, each with its cheapest store.
    pub(crate) fn unpriced(&self, need: &Need) -> Vec<Unpriced> {
        let storages = self.storages(need);
        let hosts = self.hosts(need).into_iter();
        hosts
            .filter(|host: &&HostSize| self.prices.host(&host.name).is_none())
            .filter_map(|host: &HostSize| {
                let own = storages.iter().map(|storage| self.candidate(host, *storage));
                own.filter(|own| self.is_buildable(own) && self.fails(need, own).is_empty())
                    .min_by_key(|own| own.cost)
            })
            .map(|own| self.without_price(need, &own))
            .collect()
    }

    /// Checks that the service has the requested features.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] with a missing feature.
    pub(crate) fn check(&self, need: &Need) -> Result<(), PlanError> {
        let engine = self.engine();
        let engines = self.engines();
        if !engines.contains(&engine) {
            let reason =
                format!("{} has no {engine:?}; it has {}", self.name(), engines.join(", "));
            return Err(PlanError::need("engine", reason));
        }
        let mut steps = self.stores().flat_map(|store| &store.steps);
        let is_own =
            |step: &StoreStep| step.is_licensed && step.engines.iter().any(|own| own == engine);
        if self.wishes.has_licence && !steps.any(is_own) {
            let reason = format!(
                "{engine} of {} includes no licence that could be owned; leave it \
                                  out",
                self.name()
            );
            return Err(PlanError::need("licence_owned", reason));
        }
        if need.role(Role::Backup).is_some() {
            let reason = format!(
                "{} makes its own backups, on storage of its own; leave it \
                         out",
                self.name()
            );
            return Err(PlanError::need("backup", reason));
        }
        if need.role(Role::Tempdb).is_some() && engine != WITH_TEMPDB {
            let reason = format!(
                "{engine} has no tempdb; its temporary files are on the storage of the data: add them \
                 to [data]"
            );
            return Err(PlanError::need("tempdb", reason));
        }
        if need.memory > Bytes::ZERO && self.all_hosts().all(|host| host.memory.is_none()) {
            let reason = format!(
                "the catalog does not have the memory of {} servers; leave it out",
                self.name()
            );
            return Err(PlanError::need("memory", reason));
        }
        Ok(())
    }

    fn engine(&self) -> &'a str {
        self.wishes.engine.as_deref().unwrap_or(ENGINE)
    }

    /// Returns the engines that the stores support.
    fn engines(&self) -> Vec<&'a str> {
        let mut all: Vec<&str> = Vec::new();
        let steps = self.stores().flat_map(|store| &store.steps);
        for engine in steps.flat_map(|step| &step.engines) {
            if !all.contains(&engine.as_str()) {
                all.push(engine);
            }
        }
        if all.is_empty() { vec![ENGINE] } else { all }
    }

    fn stores(&self) -> impl Iterator<Item = &'a Store> {
        let name = self.name();
        self.edition.stores().iter().filter(move |store| store.service == name)
    }

    fn all_hosts(&self) -> impl Iterator<Item = &'a HostSize> {
        let name = self.name();
        self.edition
            .series()
            .iter()
            .filter(move |series: &&catalog::Series| series.service.as_deref() == Some(name))
            .flat_map(|series| &series.hosts)
    }

    fn hosts(&self, need: &Need) -> Vec<&'a HostSize> {
        // An unpublished limit cannot be counted on.
        let has_rates = need.roles.iter().any(|own| own.iops > 0 || own.throughput > 0);
        let is_named = self.wishes.host.is_some() && !self.wishes.needs_limits;
        let is_known = |host: &&HostSize| host.uncached.is_some() || is_named || !has_rates;
        self.all_hosts()
            .filter(|host: &&HostSize| match &self.wishes.host {
                Some(name) => self.edition.host(name).is_ok_and(|own| own == *host),
                None => true,
            })
            .filter(is_known)
            .filter(|host: &&HostSize| {
                let wanted = self.wishes.architecture;
                wanted.is_none_or(|wanted| self.edition.architecture(host) == wanted)
            })
            .filter(|host: &&HostSize| {
                host.vcpus.is_some_and(|own| own >= need.vcpus)
                    && (need.memory == Bytes::ZERO
                        || host.memory.is_some_and(|own| own >= need.memory))
            })
            .collect()
    }

    /// Returns the cheapest store of each kind that carries the need.
    fn storages(&self, need: &Need) -> Vec<Storage<'a>> {
        let is_used = |family: &str| {
            self.families.contains(&family) && is_fast_enough(self.edition, family, need)
        };
        let tiers = self.tiers().filter(|tier| is_used(&tier.family));
        let mut all: Vec<Storage<'_>> =
            tiers.map(|tier| self.of_tier(tier, size_of(need))).collect();
        all.retain(|storage| self.carries(need, storage));
        for store in self.stores().filter(|store| is_used(&store.family)) {
            let steps = store.steps_of(self.engine());
            all.extend(steps.filter_map(|step| self.of_step(need, store, step)));
        }
        all
    }

    /// Returns the tiers that the service offers: all tiers of its own edition.
    fn tiers(&self) -> impl Iterator<Item = &'a Tier> {
        self.edition.tiers().filter(|_| self.service == Service::Postgres)
    }

    /// Returns a disk of a tier. If a size one GiB below the limit of the host cache is enough,
    /// that size is used.
    fn of_tier(&self, tier: &'a Tier, needed: Bytes) -> Storage<'a> {
        let below = match self.edition.rule(CACHED_BELOW).and_then(|rule| rule.value) {
            Some(RuleValue::Size(below)) => Bytes::new(below.get().saturating_sub(1 << 30)),
            _ => Bytes::ZERO,
        };
        let keeps_cache = below >= needed && below < tier.size && self.holds_more(tier, below);
        let size = if keeps_cache { below } else { tier.size };
        Storage { disk: Disk::Tier(tier), count: 1, size, rules: None }
    }

    /// Returns whether a size belongs to this tier rather than to the one below.
    fn holds_more(&self, tier: &Tier, size: Bytes) -> bool {
        self.edition.snap(&tier.set, size).is_ok_and(|own| own == tier)
    }

    /// Returns the store of a step with the limits to buy. Each disk follows the rules of its
    /// family and has its share of the step's bounds.
    fn of_step(&self, need: &Need, store: &'a Store, step: &'a StoreStep) -> Option<Storage<'a>> {
        let family = self.edition.provisioned(&store.family).ok()?;
        let needed = size_of(need).max(step.min_size);
        let within = within(family, step, needed)?;
        let unit = self.unit(step.volumes, family);
        let peaks = self.peaks(need, unit, self.edition.io_unit_of(&store.family));
        let peaks: Vec<&Flow> = peaks.iter().collect();
        let asked = Asked {
            peaks: &peaks,
            size: needed,
            mode: CacheMode::None,
            is_striped: step.volumes > 1,
            latencies: &[],
            most: step.volumes,
            kept: None,
            stays_up: false,
            peaks_last: None,
        };
        let own = bought(&within, &asked, step.volumes)?;
        let (disk, size) = (own.disk(family), own.size);
        Some(Storage { disk, count: step.volumes, size, rules: Some((store, step)) })
    }

    /// Returns the stripe unit. None is published; with the I/O unit, requests count on several
    /// disks as on one.
    fn unit(&self, volumes: u64, family: &Provisioned) -> Option<Bytes> {
        let unit = family.io_unit.or(self.edition.io_unit()).unwrap_or(demand::LARGEST);
        (volumes > 1).then_some(unit)
    }

    fn unit_of(&self, storage: &Storage<'_>) -> Option<Bytes> {
        match storage.disk {
            Disk::Bought { family, .. } => self.unit(storage.count, family),
            Disk::Tier(_) | Disk::Plus(_) | Disk::Burst(_) | Disk::Chosen(_) => None,
        }
    }

    /// Returns the load on the store, and so on the server, at each peak of the need.
    fn peaks(&self, need: &Need, stripe: Option<Bytes>, io_unit: Option<Bytes>) -> Vec<Flow> {
        Peak::of_need(need)
            .iter()
            .map(|peak: &Peak| {
                let mut all = Flow::default();
                for own in &need.roles {
                    all += &demand::flow(own, *peak, io_unit, stripe);
                }
                all
            })
            .collect()
    }

    fn peaks_of(&self, need: &Need, storage: &Storage<'_>) -> Vec<Flow> {
        let io_unit = self.edition.io_unit_of(storage.disk.family());
        self.peaks(need, self.unit_of(storage), io_unit)
    }

    fn carries(&self, need: &Need, storage: &Storage<'_>) -> bool {
        size_of(need) <= room(storage)
            && self
                .peaks_of(need, storage)
                .iter()
                .all(|flow: &Flow| flow.fits(storage.disk.limits(), storage.count))
    }

    fn candidate(&self, host: &'a HostSize, storage: Storage<'a>) -> Candidate<'a> {
        let vcpus = host.vcpus.map_or(0, u64::from);
        let mut cost = Cost::of_units(self.prices.host(&host.name), 1, 0) + self.cost_of(&storage);
        if let Some(licence) = self.licence(host, &storage) {
            cost.month += licence.month().unwrap_or_default();
            cost.unpriced += u32::from(licence.each.is_none());
        }
        // Missing prices leave the order to the size: first that of the server, then that of the
        // store.
        cost.size = vcpus.min(1 << 10) << 52
            | host.memory.map_or(0, gib).min((1 << 13) - 1) << 38
            | gib(room(&storage)).min((1 << 18) - 1) << 20
            | (storage.disk.limits().operations * storage.count).min((1 << 20) - 1);
        Candidate { host, storage, cost }
    }

    /// Returns the licence of the database, if it is paid for.
    fn licence(&self, host: &HostSize, storage: &Storage<'_>) -> Option<Line> {
        let (_, step) = storage.rules?;
        let vcpus = host.vcpus.map_or(0, u64::from);
        let price = self.prices.unit(self.name(), Per::Licence);
        (step.is_licensed && !self.wishes.has_licence)
            .then(|| Line::of(format!("vCPUs, licence of {}", self.engine()), vcpus, price))
    }

    fn cost_of(&self, storage: &Storage<'_>) -> Cost {
        let lines = self.lines_of(storage);
        let unpriced = lines.iter().filter(|line| line.units > 0 && line.each.is_none()).count();
        Cost {
            unpriced: u32::try_from(unpriced).unwrap_or(u32::MAX),
            month: lines.iter().filter_map(Line::month).sum(),
            size: gib(room(storage)),
        }
    }

    /// Returns the bill of the store: its size, and the limits bought beyond those included.
    fn lines_of(&self, storage: &Storage<'_>) -> Vec<Line> {
        let Some((store, step)) = storage.rules else {
            let price = self.prices.unit(storage.disk.family(), Per::Gib);
            return vec![Line::of("GiB of storage".to_owned(), gib(storage.size), price)];
        };
        let Disk::Bought { family, iops, throughput, .. } = storage.disk else { return Vec::new() };
        let count = storage.count;
        let price = |per| self.prices.unit(&store.name, per);
        let included = |n: u64| if family.minimum_included { n } else { 0 };
        let operations = iops.get() * count;
        let more = operations.saturating_sub(included(step.minimum.iops.get()));
        let size = gib(storage.size) * count;
        let mut lines = vec![
            Line::of("GiB of storage".to_owned(), size, price(Per::Gib)),
            Line::of("IOPS bought".to_owned(), more, price(Per::Iops)),
        ];
        if let Some(least) = step.minimum.throughput.filter(|_| !family.throughput_follows) {
            let (per, unit) = match family.throughput_step {
                Some(step) if step.get() == 1 << 20 => (Per::Mibps, 1 << 20),
                _ => (Per::Mbps, 1_000_000),
            };
            let more = (throughput.get() * count).saturating_sub(included(least.get()));
            let what = format!("{} bought", per.name());
            lines.push(Line::of(what, more.div_ceil(unit), price(per)));
        }
        lines
    }

    /// Returns the use of every limit.
    fn cap_uses(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let Candidate { host, storage, .. } = candidate;
        let peaks = self.peaks_of(need, storage);
        let peaks: Vec<&Flow> = peaks.iter().collect();
        let names = ["disk operations", "disk bytes"];
        let limits = storage.disk.limits();
        let mut caps = CapUse::rates("storage", &peaks, limits, storage.count, names);
        caps.push(CapUse::size("storage", "size", size_of(need), room(storage)));
        if let Some(most) = self.wishes.storage {
            caps.push(CapUse::size("storage", "what may be used", room(storage), most));
        }
        if let Some(most) = host.uncached {
            let most = Limits { operations: most.iops.get(), bytes: most.throughput.get() };
            let names = ["uncached operations", "uncached bytes"];
            caps.extend(CapUse::rates(&host.name, &peaks, most, 1, names));
        }
        caps
    }

    /// Returns the bill: the server, the licence, and the store.
    fn bill(&self, candidate: &Candidate<'_>) -> Vec<Line> {
        let host = self.prices.host(&candidate.host.name);
        let mut lines = vec![Line::of(format!("machine {}", candidate.host.name), 1, host)];
        lines.extend(self.licence(candidate.host, &candidate.storage));
        lines.extend(self.lines_of(&candidate.storage));
        lines
    }

    /// Describes a candidate in one line.
    fn describe(&self, candidate: &Candidate<'_>) -> String {
        let Storage { disk, count, size, .. } = candidate.storage;
        let storage = match disk {
            Disk::Tier(tier) | Disk::Plus(tier) | Disk::Burst(tier) => {
                format!("{} of {size}", tier.name)
            }
            Disk::Chosen(own) => format!("{} of {size}", own.tier.name),
            Disk::Bought { family, iops, throughput, .. } => {
                format!("{count} x {} of {size}, {iops} and {throughput}", family.family)
            }
        };
        format!("{}: {} on {storage}", candidate.host.name, self.engine())
    }

    /// Returns the reasons for the store.
    fn all_reasons(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<Reason> {
        let Storage { disk, count, size, rules } = candidate.storage;
        let peaks = self.peaks_of(need, &candidate.storage);
        let most = Flow::most(&peaks);
        let each = disk.limits();
        let mut all = vec![Reason::detail(format!(
            "all files share one store: needs {} IOPS and {}; it provides {} IOPS and {}",
            most.operations,
            rate_words(most.bytes),
            each.operations * count,
            rate_words(each.bytes * count),
        ))];
        if self.wishes.engine.is_none() && self.service == Service::Rds {
            all.push(Reason::key(format!(
                "the engine is {ENGINE} by default (change it with --engine)"
            )));
        }
        if let (Some(unit), Some((store, _))) = (self.unit_of(&candidate.storage), rules) {
            all.push(Reason::detail(format!(
                "the service stripes {count} volumes at this size ({}); the unit is not published \
                 and assumed to be {unit}, so that splitting requests gains nothing",
                store.name
            )));
        }
        if room(&candidate.storage) > size_of(need) && rules.is_some() {
            let (own, room) = (size_of(need), room(&candidate.storage));
            all.push(Reason::detail(format!(
                "{room} for {own} of data, because the limits depend on the size"
            )));
        }
        all.extend(self.cache_words(disk, size).map(Reason::detail));
        all
    }

    /// Returns on which side of the host cache's size limit the store is.
    fn cache_words(&self, disk: Disk<'_>, size: Bytes) -> Option<String> {
        let Some(RuleValue::Size(below)) = self.edition.rule(CACHED_BELOW)?.value else {
            return None;
        };
        let Disk::Tier(tier) = disk else { return None };
        match size < below {
            true if size < tier.size => Some(format!(
                "{size} instead of {}: storage below {below} has a host cache; its size is not \
                 published, so the plan does not count on hits",
                tier.size
            )),
            true => None,
            false => Some(format!(
                "storage of {below} and more has no host cache; one GiB less than {below} would \
                 have one"
            )),
        }
    }

    /// Writes the layout file.
    fn layout_file(&self, need: &Need, candidate: &Candidate<'_>) -> String {
        let is_single = self.edition.host(&candidate.host.name).is_ok();
        let host = if is_single { candidate.host.name.clone() } else { candidate.host.qualified() };
        let Storage { disk, count, size, .. } = candidate.storage;
        let mut each = disk.keys();
        if size != disk.size() {
            each.size = Some(size);
        }
        let mut text =
            LayoutText::new(self.edition.name()).in_region(self.wishes.region.as_deref());
        text.host(&HostKeys { size: Some(host), ..HostKeys::default() });
        match self.unit_of(&candidate.storage) {
            Some(unit) => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                let alike = AlikeKeys { count, luns: None, each };
                let volumes = Columns::Alike(Box::new(alike));
                text.stripe(&StripeKeys {
                    name: STORAGE.to_owned(),
                    host: None,
                    unit,
                    volumes,
                    clients: None,
                });
            }
            None => text.volume(&VolumeKeys { name: Some(STORAGE.to_owned()), ..each }),
        }
        for own in &need.roles {
            let file = FileKeys::new(format!("{}-file", own.role.name()), own.role, own.size);
            text.file(&FileKeys { on: Some(STORAGE.to_owned()), ..file });
        }
        text.finish()
    }

    /// Returns the most expensive candidate that costs less than the best and fails.
    fn dearest(
        &self,
        need: &Need,
        best: &Candidate<'a>,
        all: impl Iterator<Item = Candidate<'a>>,
    ) -> Option<Candidate<'a>> {
        all.filter(|candidate| {
            candidate.cost.unpriced == best.cost.unpriced && candidate.cost.month < best.cost.month
        })
        .filter(|candidate| !self.fails(need, candidate).is_empty())
        .max_by_key(|candidate| candidate.cost)
    }

    /// Returns the most expensive layout that is one step cheaper than the best and fails. A step
    /// is a smaller server, a smaller tier or less of a bought limit; if there is none, less size.
    fn one_step_cheaper(&self, need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        let hosts = self.all_hosts().map(|host| self.candidate(host, best.storage));
        let tiers = self
            .tiers()
            .filter(|tier| self.families.contains(&tier.family.as_str()))
            .map(|tier| self.candidate(best.host, self.of_tier(tier, Bytes::ZERO)));
        let own = best.storage;
        let with =
            |disk: Disk<'a>| self.candidate(best.host, Storage { disk, size: disk.size(), ..own });
        // The store may sell less than its disks could have.
        let rules = own.rules.and_then(|(store, step)| {
            let family = self.edition.provisioned(&store.family).ok()?;
            within(family, step, room(&own))
        });
        let less = rules.iter().flat_map(|rules| slower(&own.disk, rules));
        let all = hosts.chain(tiers).chain(less.map(with));
        let smaller = rules.as_ref().and_then(|rules| smaller(&own.disk, rules)).map(with);
        self.dearest(need, best, all).or_else(|| self.dearest(need, best, smaller.into_iter()))
    }
}

impl<'a> Family for Services<'a> {
    type Candidate = Candidate<'a>;

    fn name(&self) -> &'static str {
        self.service.name()
    }

    fn host<'c>(&self, candidate: &'c Candidate<'a>) -> &'c HostSize {
        candidate.host
    }

    fn cost(&self, candidate: &Candidate<'a>) -> Cost {
        candidate.cost
    }

    fn title(&self, _need: &Need, candidate: &Candidate<'a>) -> String {
        self.describe(candidate)
    }

    fn layout(&self, need: &Need, candidate: &Candidate<'a>) -> String {
        self.layout_file(need, candidate)
    }

    fn lines(&self, _need: &Need, candidate: &Candidate<'a>) -> Vec<Line> {
        self.bill(candidate)
    }

    fn caps(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<CapUse> {
        self.cap_uses(need, candidate)
    }

    fn reasons(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<Reason> {
        self.all_reasons(need, candidate)
    }

    fn next_cheaper(&self, need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        self.one_step_cheaper(need, best)
    }
}

fn size_of(need: &Need) -> Bytes {
    Bytes::new(need.roles.iter().fold(0, |sum, own| sum.saturating_add(own.size.get())))
}

fn room(storage: &Storage<'_>) -> Bytes {
    Bytes::new(storage.size.get().saturating_mul(storage.count))
}

/// Returns the rules of a family within the bounds of a store's step, for each disk; `None` if the
/// step is too small.
fn within(family: &Provisioned, step: &StoreStep, needed: Bytes) -> Option<Provisioned> {
    let count = step.volumes;
    if needed > step.max_size {
        return None;
    }
    let part = |own: Iops| Iops::new(own.get().div_ceil(count));
    let part_of_bytes = |own: BytesPerSec| BytesPerSec::new(own.get().div_ceil(count));
    let of = |own: catalog::StoreLimits, family: BytesPerSec| {
        let throughput = own.throughput.map_or(Some(family), part_of_bytes)?;
        Some(catalog::Limits { iops: part(own.iops)?, throughput })
    };
    let mut minimum = of(step.minimum, family.minimum.throughput)?;
    let maximum = step.maximum.map_or(Some(minimum), |most| of(most, family.maximum.throughput))?;
    // The operations that the size requires. A disk that is larger because of its operations has
    // more.
    if let Some(per) = step.gib_per_iops {
        let least = Iops::new(gib(needed).div_ceil(per).div_ceil(count))?;
        minimum.iops = minimum.iops.max(least);
    }
    if minimum.iops > maximum.iops {
        return None;
    }
    let mut within = family.clone();
    (within.minimum, within.maximum) = (minimum, maximum);
    within.min_size = family.min_size.max(Bytes::new(step.min_size.get().div_ceil(count)));
    within.max_size = family.max_size.min(Bytes::new(step.max_size.get() / count));
    Some(within)
}
