//! The family of machines with disks: the machine, its disks, which roles share them, and caching.
//!
//! ```text
//! arrangement   roles by disk, with cache mode and stripe
//! demand        load at each limit, by arrangement and by size of the host cache
//! frontier      disks that carry the demand: more disks only if they cost less
//! machine       its limits carry the demand -> the cheapest disks of the frontier that fit
//! ```
//!
//! A frontier depends on the machine only through its cache and the disk families that it takes, so
//! each is computed once. `Market::options` (`disks.rs`) picks the disks of each pool.

mod cheaper;
mod unpublished;
mod words;

use crate::answer::{CapUse, Cheaper, PassedOver, Plan};
use crate::cost::{Cost, Prices, gib};
use crate::demand::{self, Demand, Flow, Limits, Peak};
use crate::disks::{Asked, Disk, Disks, Market};
use crate::filesystem::FileSystem;
use crate::keep::{Kept, KeptPool};
use crate::need::{Need, RoleNeed, WHOLE, Wishes};
use crate::rank::{Aim, Order};
use std::collections::HashMap;
use std::rc::Rc;
use weir_catalog::{CacheMode, Edition, HostLimits, HostSize, Price};
use weir_layout::Role;
use weir_units::{Bytes, Span};
use words::names;
pub(crate) use words::{backup_apart, pool_name};

/// The names of limits, on operations and on bytes.
const OF_DISKS: [&str; 2] = ["disk operations", "disk bytes"];
const UNCACHED: [&str; 2] = ["uncached operations", "uncached bytes"];
const CACHED: [&str; 2] = ["cached operations", "cached bytes"];

/// Maximum number of disks, if nothing else limits it.
const MOST_DISKS: u64 = 1024;

/// Maximum number of disks for editions that publish no limit. The figure is Weir's own; every
/// machine of a useful size takes as many.
pub const UNPUBLISHED_DISKS: u64 = 16;

/// The search among machines with disks.
#[derive(Debug)]
pub struct Machines<'a> {
    /// The edition.
    pub edition: &'a Edition,
    /// The prices.
    pub prices: Prices<'a>,
    /// The stripe units to try.
    pub units: Vec<Bytes>,
    /// The disk families to use.
    pub families: Vec<&'a str>,
    /// The constraints.
    pub wishes: &'a Wishes,
}

/// Disks of some roles, with cache mode and stripe.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pool {
    /// Indices of the roles in the need.
    roles: Vec<usize>,
    mode: CacheMode,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// One disk.
    Single,
    /// A stripe with this unit.
    Striped(Bytes),
    /// The machine's local disk.
    Local,
}

type Arrangement = Vec<Pool>;

/// Disks for every pool of an arrangement.
#[derive(Debug, Clone)]
struct Choice<'a> {
    disks: Vec<Option<Disks<'a>>>,
    count: u64,
    cost: Cost,
    is_bought: bool,
}

/// A machine with disks.
#[derive(Debug, Clone)]
struct Candidate<'a> {
    host: &'a HostSize,
    arrangement: Arrangement,
    choice: Choice<'a>,
    demands: Vec<Demand>,
    hits: u64,
    cost: Cost,
}

/// The result of a search in one family.
#[derive(Debug, Default)]
pub struct Searched {
    /// The chosen layout, if the need is feasible.
    pub plan: Option<Plan>,
    /// The cheapest layout with disks, if there is one.
    pub(crate) cheapest: Option<PassedOver>,
    /// The next cheaper layout, and the limits that it exceeds.
    pub cheaper: Option<Cheaper>,
    /// Number of candidates compared.
    pub compared: u64,
}

impl Searched {
    /// Merges two searches among machines. The cheaper plan is taken, or the one with fewer disks
    /// if both are close to the cheapest price.
    pub(crate) fn merged(self, other: Self, aim: Aim) -> Self {
        let compared = self.compared + other.compared;
        let cheapest =
            self.cheapest.iter().chain(&other.cheapest).min_by_key(|own| own.cost).cloned();
        let close = cheapest.as_ref().and_then(|own| aim.close_to(own.cost));
        let rank = |own: &Self| {
            let plan = own.plan.as_ref()?;
            let is_close = close.is_some_and(|close| close.holds(plan.cost));
            Some((!is_close, if is_close { plan.disks } else { 0 }, plan.cost))
        };
        let is_other = match (rank(&self), rank(&other)) {
            (Some(own), Some(other)) => other < own,
            (own, _) => own.is_none(),
        };
        let mut taken = if is_other { other } else { self };
        if let Some(plan) = &mut taken.plan {
            plan.passed_over = cheapest.clone().filter(|own: &PassedOver| {
                own.cost.unpriced == plan.cost.unpriced && own.cost.month < plan.cost.month
            });
        }
        Self { compared, cheapest, ..taken }
    }
}

/// Returns whether a machine's Windows Server licence is owned.
///
/// # Errors
///
/// A message if an owned licence does not apply to the machines of the edition.
pub(crate) fn licence_of_machine(edition: &Edition, wishes: &Wishes) -> Result<bool, String> {
    let is_linux = wishes.os.as_ref().is_some_and(|os| os.eq_ignore_ascii_case("linux"));
    let is_kept = wishes.keep.as_ref().is_some_and(|kept| kept.has_licence);
    match wishes.owns_licence() {
        false => Ok(false),
        true if is_linux && is_kept => Err(
            "the machine to keep has an owned Windows Server licence; use os = \"windows\", or \
             remove licence_owned from its layout"
                .to_owned(),
        ),
        true if is_linux => Err(
            "for machines it means the Windows Server licence; use os = \"windows\", or leave it out"
                .to_owned(),
        ),
        true if edition.licence_programme().is_some() => Ok(true),
        true => Err(format!(
            "for machines it means a programme such as Azure Hybrid Benefit, which {} does not have; \
             leave it out",
            edition.name()
        )),
    }
}

impl<'a> Machines<'a> {
    /// Finds the cheapest layout, or the layout with the fewest disks at about the same price.
    /// `rival` is the cost of the cheapest layout found elsewhere.
    #[must_use]
    pub fn search(&self, need: &Need, aim: Aim, rival: Option<Cost>) -> Searched {
        let mut search = Search {
            machines: self,
            need,
            arrangements: self.arrangements(need),
            options: HashMap::new(),
            frontiers: HashMap::new(),
            compared: 0,
        };
        let hosts = self.hosts(need);
        let cheapest = search.best(&hosts, Order::Price);
        let compared = search.compared;
        let least = cheapest.iter().map(|candidate| candidate.cost).chain(rival).min();
        // Prices can only be close to each other where they are known. Otherwise the machine stays
        // that of the cheapest layout.
        let hosts = match &cheapest {
            Some(cheapest) if cheapest.cost.unpriced > 0 => vec![cheapest.host],
            _ => hosts,
        };
        let close = least.and_then(|least| aim.close_to(least));
        let fewest = close.and_then(|close| search.best(&hosts, Order::Disks(close)));
        let passed = cheapest.as_ref().map(|candidate: &Candidate<'a>| PassedOver {
            title: self.title(need, candidate),
            cost: candidate.cost,
            disks: candidate.choice.count,
        });
        let best = fewest.or(cheapest);
        let plan = best.as_ref().map(|best| self.plan(need, best));
        let cheaper =
            best.as_ref().filter(|_| aim.explains).and_then(|best| self.cheaper(need, best));
        Searched { plan, cheapest: passed, cheaper, compared }
    }

    /// Returns the machines to consider, the cheapest first.
    pub(crate) fn hosts(&self, need: &Need) -> Vec<&'a HostSize> {
        let mut hosts: Vec<&HostSize> =
            self.edition.hosts().filter(|host| self.is_fit(need, host)).collect();
        hosts.sort_by_cached_key(|host| self.host_cost(host));
        hosts
    }

    fn is_fit(&self, need: &Need, host: &HostSize) -> bool {
        // Disks can only be attached to machines with a known number of them.
        let is_counted = self.wishes.host.is_some() || self.is_counted(host);
        is_counted && self.is_large_enough(need, host)
    }

    /// Returns whether a machine may be used and has the processors and the memory, whatever limits
    /// are published.
    fn is_large_enough(&self, need: &Need, host: &HostSize) -> bool {
        let is_wished = match &self.wishes.host {
            Some(name) => self.edition.host(name).is_ok_and(|own| own == host),
            None => self.edition.series_of(host).is_none_or(|series| !series.preview),
        };
        let vcpus = need.vcpus == 0 || host.vcpus.is_some_and(|vcpus| vcpus >= need.vcpus);
        let memory =
            need.memory == Bytes::ZERO || host.memory.is_some_and(|own| own >= need.memory);
        is_wished && self.stays(host) && self.is_own(host) && self.has_kept(host) && vcpus && memory
    }

    /// Returns whether the machine takes the disks in use.
    fn has_kept(&self, host: &HostSize) -> bool {
        let takes = self.edition.takes(host);
        let mut kept = self.wishes.keep.iter().flat_map(|kept| &kept.pools);
        takes.is_empty() || kept.all(|pool| pool.is_local || takes.contains(&pool.family))
    }

    /// Returns whether the machine may change, or is the one in use.
    fn stays(&self, host: &HostSize) -> bool {
        self.wishes.keep.as_ref().filter(|kept| kept.is_up).is_none_or(|kept| {
            kept.host
                .as_ref()
                .is_some_and(|name| self.edition.host(name).is_ok_and(|own| own == host))
        })
    }

    /// Returns whether the machine is rented as such, and not as part of a service.
    fn is_own(&self, host: &HostSize) -> bool {
        self.edition.series_of(host).is_none_or(|series| series.service.is_none())
    }

    /// Returns whether the machine's number of disks is published, or that of no machine is.
    fn is_counted(&self, host: &HostSize) -> bool {
        host.max_data_disks.is_some() || !self.publishes_disks()
    }

    fn publishes_disks(&self) -> bool {
        self.edition.hosts().any(|host| host.max_data_disks.is_some())
    }

    /// Returns the maximum number of disks of any machine.
    fn most_disks(&self) -> u64 {
        let wished = self.wishes.max_disks;
        let most = if self.publishes_disks() { MOST_DISKS } else { UNPUBLISHED_DISKS };
        wished.unwrap_or(most).min(MOST_DISKS)
    }

    pub(crate) fn host_cost(&self, host: &HostSize) -> Cost {
        let size = host.vcpus.map_or(0, u64::from) << 32 | host.memory.map_or(0, gib);
        Cost::of(self.host_price(host), 1, size << 8)
    }

    /// Returns the price of a machine, without the licence of its operating system if that is
    /// owned.
    pub(crate) fn host_price(&self, host: &HostSize) -> Option<&'a Price> {
        match self.has_licence() {
            true => self.prices.unlicensed_host(&host.name),
            false => self.prices.host(&host.name),
        }
    }

    /// Returns whether the licence of Windows Server is owned.
    pub(crate) fn has_licence(&self) -> bool {
        licence_of_machine(self.edition, self.wishes).unwrap_or(false)
    }

    /// Lists all ways to share, cache and stripe disks.
    fn arrangements(&self, need: &Need) -> Vec<Arrangement> {
        let mut all = Vec::new();
        for partition in partitions(need.roles.len()) {
            let may_share = partition.iter().all(|roles| self.may_share(need, roles));
            if !may_share || !self.is_kept(need, &partition) {
                continue;
            }
            let ways = partition.iter().map(|roles| self.ways(need, roles));
            let mut made: Vec<Arrangement> = vec![Vec::new()];
            for ways in ways {
                made = made
                    .iter()
                    .flat_map(|pools: &Arrangement| {
                        let pools = pools.clone();
                        ways.iter()
                            .map(move |way| {
                                let mut pools = pools.clone();
                                pools.push(way.clone());
                                pools
                            })
                            .collect::<Vec<_>>()
                    })
                    .collect();
            }
            all.extend(made);
        }
        all
    }

    /// Returns whether roles may share disks. A backup beside data or log would be lost with them,
    /// and its writes would compete with theirs (article 004).
    fn may_share(&self, need: &Need, roles: &[usize]) -> bool {
        let has = |role: Role| roles.iter().any(|own| need.roles[*own].role == role);
        let is_exposed = has(Role::Backup) && (has(Role::Data) || has(Role::Log));
        let is_kept = self.kept(need, roles).is_some();
        match roles.len() {
            0 | 1 => true,
            _ if self.wishes.is_apart => false,
            _ => !is_exposed || self.wishes.shares_backup || is_kept,
        }
    }

    /// Returns whether exactly the roles that share disks in use still share them.
    fn is_kept(&self, need: &Need, partition: &[Vec<usize>]) -> bool {
        let pool = |role: &usize| self.wishes.keep.as_ref()?.pool(need.roles[*role].role);
        let needed = |pool: &KeptPool| {
            need.roles.iter().filter(|own| pool.roles.contains(&own.role)).count()
        };
        partition.iter().all(|roles| match roles.first().and_then(pool) {
            Some(first) => {
                roles.iter().all(|role| pool(role) == Some(first)) && roles.len() == needed(first)
            }
            None => roles.iter().all(|role| pool(role).is_none()),
        })
    }

    /// Returns the disks in use of some roles.
    fn kept(&self, need: &Need, roles: &[usize]) -> Option<&'a KeptPool> {
        self.wishes.keep.as_ref()?.pool(need.roles[*roles.first()?].role)
    }

    /// Lists the possible disks of some roles.
    fn ways(&self, need: &Need, roles: &[usize]) -> Vec<Pool> {
        let of = |mode, place| Pool { roles: roles.to_vec(), mode, place };
        let own = || roles.iter().map(|role| &need.roles[*role]);
        if let Some(kept) = self.kept(need, roles) {
            let place = match kept.unit {
                _ if kept.is_local => Place::Local,
                Some(unit) => Place::Striped(unit),
                None => Place::Single,
            };
            let mut ways = vec![of(kept.mode, place)];
            // Another unit costs a copy of the data but no money, so the present stripe comes first
            // among equal prices.
            let rebuilt = Place::Striped(self.unit(own()));
            if matches!(place, Place::Striped(_)) && rebuilt != place && self.may_rebuild() {
                ways.push(of(kept.mode, rebuilt));
            }
            return ways;
        }
        let is_kept = |role: Role| matches!(role, Role::Data | Role::Tempdb);
        let is_cacheable = own().all(|own| is_kept(own.role) && own.working_set.is_some());
        let unit = self.unit(own());
        let mut ways =
            vec![of(CacheMode::None, Place::Single), of(CacheMode::None, Place::Striped(unit))];
        if is_cacheable && self.edition.host_cache().is_some() {
            ways.push(of(CacheMode::ReadOnly, Place::Single));
            ways.push(of(CacheMode::ReadOnly, Place::Striped(unit)));
        }
        if own().all(|own| own.role == Role::Tempdb) {
            ways.push(of(CacheMode::None, Place::Local));
        }
        ways
    }

    /// Returns whether a stripe in use may be rebuilt with another unit.
    fn may_rebuild(&self) -> bool {
        self.wishes.keep.as_ref().is_some_and(Kept::may_rebuild)
    }

    /// Returns the room on disks that the files of some roles need.
    fn room_for(&self, need: &Need, roles: &[usize]) -> Bytes {
        let sizes = roles.iter().map(|role| need.roles[*role].size.get());
        self.wishes.file_system().room_for(Bytes::new(sizes.fold(0, u64::saturating_add)))
    }

    /// Returns the stripe unit with the fewest operations, the smaller one of two equals.
    fn unit<'n>(&self, roles: impl Iterator<Item = &'n RoleNeed> + Clone) -> Bytes {
        let io_unit = self.edition.io_unit();
        if io_unit.is_none() {
            // Without an I/O unit, requests are best not split at all.
            return self.units.iter().copied().max().unwrap_or(Bytes::kib(64));
        }
        let counted = |unit: &Bytes| -> u64 {
            roles
                .clone()
                .map(|need: &RoleNeed| -> u64 {
                    let peaks = [Peak::Operations, Peak::Throughput];
                    let at = |peak| demand::flow(need, peak, io_unit, Some(*unit));
                    peaks.map(|peak| at(peak).operations).into_iter().fold(0, u64::saturating_add)
                })
                .fold(0, u64::saturating_add)
        };
        let units = self.units.iter().copied();
        units.min_by_key(|unit| (counted(unit), *unit)).unwrap_or(Bytes::kib(64))
    }

    /// Returns the hit ratio of the machine's warm cache, in millionths; `None` if it cannot be
    /// predicted.
    fn hits(&self, need: &Need, arrangement: &Arrangement, host: &HostSize) -> Option<u64> {
        let cached = arrangement.iter().filter(|pool| pool.mode != CacheMode::None);
        let roles: Vec<usize> = cached.flat_map(|pool| pool.roles.iter().copied()).collect();
        // Cached disks in use stay cached even without a known working set. Without cached disks
        // there are no hits.
        if roles.iter().any(|role| need.roles[*role].working_set.is_none()) || roles.is_empty() {
            return Some(0);
        }
        // Limits that are not published cannot be counted on.
        if host.premium_caching != Some(true) || host.cached.is_none() {
            return None;
        }
        let cache = host.cache?;
        let set = |role: &usize| need.roles[*role].working_set.unwrap_or(need.roles[*role].size);
        let sets: u128 = roles.iter().map(|role| u128::from(set(role).get())).sum();
        // The split of a cache that is too small for all roles cannot be predicted.
        if roles.len() > 1 && u128::from(cache.get()) < sets {
            return None;
        }
        let part = u128::from(cache.get()) * u128::from(WHOLE) / sets.max(1);
        u64::try_from(part.min(u128::from(WHOLE))).ok()
    }

    /// Returns the load of a pool on disks and machine, at each peak of the need.
    fn demands(&self, need: &Need, pool: &Pool, hits: u64) -> Vec<Demand> {
        let stripe = match pool.place {
            Place::Striped(unit) => Some(unit),
            Place::Single | Place::Local => None,
        };
        let cache = self.edition.host_cache();
        Peak::of(need)
            .iter()
            .map(|peak: &Peak| {
                let mut all = Demand::default();
                for role in &pool.roles {
                    let own = &need.roles[*role];
                    let asked = demand::flow(own, *peak, self.edition.io_unit(), stripe);
                    all += &match pool.place {
                        Place::Local => Demand { cached: asked, ..Demand::default() },
                        _ => demand::by_cap(asked, own.reads.min(WHOLE), pool.mode, hits, cache),
                    };
                }
                all
            })
            .collect()
    }

    fn asked<'l>(
        &self,
        need: &Need,
        pool: &Pool,
        peaks: &'l [&'l Flow],
        latencies: &'l mut Vec<(Span, u64)>,
    ) -> Asked<'l>
    where
        'a: 'l,
    {
        let own = || pool.roles.iter().map(|role| &need.roles[*role]);
        latencies.extend(own().filter_map(|own| Some((own.latency?, own.request))));
        Asked {
            peaks,
            size: self.room_for(need, &pool.roles),
            mode: pool.mode,
            is_striped: pool.place != Place::Single,
            latencies,
            most: self.most_disks(),
            kept: self.kept(need, &pool.roles),
            stays_up: self.wishes.keep.as_ref().is_some_and(|kept| kept.is_up),
            peaks_last: self.wishes.peaks,
        }
    }

    /// Returns the disk families to use that a machine takes.
    fn taken(&self, host: &HostSize) -> Vec<&'a str> {
        let takes = self.edition.takes(host);
        self.families
            .iter()
            .filter(|family: &&&str| takes.is_empty() || takes.iter().any(|own| own == *family))
            .copied()
            .collect()
    }
}

/// The demand of an arrangement and the disks that carry it, for all machines with the same hit
/// ratio.
#[derive(Debug)]
struct Frontier<'a> {
    demands: Vec<Demand>,
    /// Disks in order of their number, more disks only if they cost less: once with tiers, once
    /// without.
    choices: Vec<Choice<'a>>,
}

/// The demand of a pool, and the disks that carry it.
type Options<'a> = Rc<(Vec<Demand>, Vec<Disks<'a>>)>;

struct Search<'a, 'm> {
    machines: &'m Machines<'a>,
    need: &'m Need,
    arrangements: Vec<Arrangement>,
    options: HashMap<(Pool, u64, Vec<&'a str>), Options<'a>>,
    frontiers: HashMap<(usize, u64, Vec<&'a str>), Frontier<'a>>,
    compared: u64,
}

impl<'a> Search<'a, '_> {
    /// Returns the first layout in order, on any of the machines.
    fn best(&mut self, hosts: &[&'a HostSize], order: Order) -> Option<Candidate<'a>> {
        let mut best = None;
        for host in hosts {
            self.host(host, order, &mut best);
        }
        best
    }

    /// Compares all arrangements on a machine with the best candidate so far.
    fn host(&mut self, host: &'a HostSize, order: Order, best: &mut Option<Candidate<'a>>) {
        let host_cost = self.machines.host_cost(host);
        // Disks cost money, so a machine that alone costs as much as the best candidate cannot win.
        if order.ends(host_cost, best.as_ref().map(|best| best.cost)) {
            return;
        }
        let is_named = self.machines.is_chosen(host);
        let most =
            host.max_data_disks.map_or(MOST_DISKS, u64::from).min(self.machines.most_disks());
        let taken = self.machines.taken(host);
        for index in 0..self.arrangements.len() {
            let Some(hits) = self.machines.hits(self.need, &self.arrangements[index], host) else {
                continue;
            };
            let io_unit = self.machines.edition.io_unit();
            let filesystem = self.machines.wishes.file_system();
            if !has_room(self.need, &self.arrangements[index], host, io_unit, filesystem) {
                continue;
            }
            let key = (index, hits, taken.clone());
            if !self.frontiers.contains_key(&key) {
                let arrangement = self.arrangements[index].clone();
                let frontier = self.frontier(&arrangement, hits, &taken);
                self.frontiers.insert(key.clone(), frontier);
            }
            let Some(frontier) = self.frontiers.get(&key) else { continue };
            self.compared += 1;
            for choice in &frontier.choices {
                let cost = host_cost + choice.cost;
                let before = best.as_ref().map(|best| (best.choice.count, best.cost));
                let is_first = order.prefers((choice.count, cost), before);
                let carries = || caps(host, choice).carry(&frontier.demands, is_named);
                if is_first && choice.count <= most && carries() {
                    *best = Some(Candidate {
                        host,
                        arrangement: self.arrangements[index].clone(),
                        choice: choice.clone(),
                        demands: frontier.demands.clone(),
                        hits,
                        cost,
                    });
                }
            }
        }
    }

    /// Returns the demand of a pool, and the disks that carry it (none for the local disk).
    fn options(&mut self, pool: &Pool, hits: u64, taken: &[&'a str]) -> Options<'a> {
        let hits = if pool.mode == CacheMode::None { 0 } else { hits };
        let key = (pool.clone(), hits, taken.to_vec());
        if let Some(options) = self.options.get(&key) {
            return Rc::clone(options);
        }
        let demands = self.machines.demands(self.need, pool, hits);
        let mut options = Vec::new();
        if pool.place != Place::Local {
            let (edition, prices) = (self.machines.edition, self.machines.prices);
            let kept =
                self.machines.kept(self.need, &pool.roles).map(|kept| [kept.family.as_str()]);
            let families = kept.as_ref().map_or(taken, |kept| kept.as_slice());
            let market = Market { edition, prices, families };
            let peaks: Vec<&Flow> = demands.iter().map(|own| &own.disk).collect();
            let mut latencies = Vec::new();
            options = market.options(&self.machines.asked(self.need, pool, &peaks, &mut latencies));
        }
        let options = Rc::new((demands, options));
        self.options.insert(key, Rc::clone(&options));
        options
    }

    fn frontier(
        &mut self,
        arrangement: &Arrangement,
        hits: u64,
        taken: &[&'a str],
    ) -> Frontier<'a> {
        let mut all = vec![Demand::default(); Peak::of(self.need).len()];
        let none = Choice { disks: Vec::new(), count: 0, cost: Cost::default(), is_bought: true };
        let mut choices = vec![none];
        for pool in arrangement {
            let options = self.options(pool, hits, taken);
            let (own, options) = (&options.0, &options.1);
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
            if pool.place == Place::Local {
                choices.iter_mut().for_each(|choice| choice.disks.push(None));
                continue;
            }
            let with = |choice: &Choice<'a>| {
                let choice = choice.clone();
                options
                    .iter()
                    .map(move |disks| {
                        let mut more = choice.clone();
                        more.disks.push(Some(*disks));
                        more.count += disks.count;
                        more.cost = more.cost + disks.cost;
                        more.is_bought &= matches!(disks.disk, Disk::Bought { .. });
                        more
                    })
                    .collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(with).collect();
            only_useful(&mut choices);
        }
        Frontier { demands: all, choices }
    }
}

/// Keeps the choices that no other beats in both number of disks and price, separately for bought
/// disks and for others, because machines may have different limits for the two.
fn only_useful(choices: &mut Vec<Choice<'_>>) {
    choices.sort_by_key(|choice| (choice.count, choice.cost));
    let mut least: [Option<Cost>; 2] = [None; 2];
    choices.retain(|choice| {
        let own = &mut least[usize::from(choice.is_bought)];
        let is_less = own.is_none_or(|least| choice.cost < least);
        if is_less {
            *own = Some(choice.cost);
        }
        is_less
    });
}

/// Returns whether the machine's local disk carries the pools on it, in size and in rates.
fn has_room(
    need: &Need,
    arrangement: &Arrangement,
    host: &HostSize,
    io_unit: Option<Bytes>,
    filesystem: FileSystem,
) -> bool {
    let local = || {
        let own = arrangement.iter().filter(|pool| pool.place == Place::Local);
        own.flat_map(|pool| &pool.roles).map(|role| &need.roles[*role])
    };
    if local().next().is_none() {
        return true;
    }
    let size: u64 = local().map(|own| own.size.get()).sum();
    let size = filesystem.room_for(Bytes::new(size));
    let mut flow = Flow::default();
    for own in local() {
        flow += &demand::flow(own, Peak::Operations, io_unit, None);
    }
    // Limits that are not published cannot be counted on.
    let (Some(disk), Some(_)) = (host.temp, host.cached) else { return false };
    // Reads and writes share the disk's limits. If they have limits of their own, the lower one is
    // used.
    let bytes = [disk.read, disk.write].into_iter().flatten().map(|own| own.get()).min();
    let limits = Limits {
        operations: disk.iops.map_or(u64::MAX, |own| own.get()),
        bytes: bytes.unwrap_or(u64::MAX),
    };
    let peak = |own: &RoleNeed| demand::flow(own, Peak::Throughput, io_unit, None);
    let rates = flow.fits(limits, 1) && local().all(|own| peak(own).fits(limits, 1));
    rates && disk.size.is_some_and(|own| own >= size)
}

/// The published limits of a machine.
#[derive(Debug, Clone, Copy)]
struct Caps {
    uncached: Option<Limits>,
    cached: Option<Limits>,
}

impl Caps {
    /// Returns whether the limits carry all of `demands`. An unpublished limit carries nothing,
    /// except on a machine that the user names.
    fn carry(&self, demands: &[Demand], is_named: bool) -> bool {
        let carries = |most: Option<Limits>, asked: &Flow| match most {
            Some(most) => asked.fits(most, 1),
            None => is_named || asked.is_empty(),
        };
        demands
            .iter()
            .all(|own| carries(self.uncached, &own.uncached) && carries(self.cached, &own.cached))
    }
}

fn caps(host: &HostSize, choice: &Choice<'_>) -> Caps {
    let load = |limits: &HostLimits| Limits {
        operations: limits.iops.get(),
        bytes: limits.throughput.get(),
    };
    let uncached = match choice.is_bought && choice.count > 0 {
        true => host.v2_or_uncached(),
        false => host.uncached.as_ref(),
    };
    Caps { uncached: uncached.map(load), cached: host.cached.as_ref().map(load) }
}

impl Caps {
    /// Returns whether all limits that the demands reach are published.
    fn is_known(&self, demands: &[Demand]) -> bool {
        let is_known = |most: Option<Limits>, asked: &Flow| most.is_some() || asked.is_empty();
        demands
            .iter()
            .all(|own| is_known(self.uncached, &own.uncached) && is_known(self.cached, &own.cached))
    }
}

/// Lists all partitions of `n` items into groups.
fn partitions(n: usize) -> Vec<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
    for thing in 0..n {
        all = all
            .iter()
            .flat_map(|groups: &Vec<Vec<usize>>| {
                let mut made = Vec::new();
                for at in 0..=groups.len() {
                    let mut groups = groups.clone();
                    match groups.get_mut(at) {
                        Some(group) => group.push(thing),
                        None => groups.push(vec![thing]),
                    }
                    made.push(groups);
                }
                made
            })
            .collect();
    }
    all
}

// Limits of a candidate, and those that it exceeds.
impl<'a> Machines<'a> {
    fn caps(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let mut all = Vec::new();
        for (pool, disks) in candidate.arrangement.iter().zip(&candidate.choice.disks) {
            let own = self.demands(need, pool, candidate.hits);
            let own: Vec<&Flow> = own.iter().map(|own| &own.disk).collect();
            let name = names(need, pool, "-");
            let size = self.room_for(need, &pool.roles);
            match disks {
                Some(Disks { disk, count, .. }) => {
                    all.extend(CapUse::rates(&name, &own, disk.limits(), *count, OF_DISKS));
                    let room = Bytes::new(disk.size().get().saturating_mul(*count));
                    all.push(CapUse::size(&name, "size", size, room));
                }
                None => {
                    let disk = candidate.host.temp.and_then(|temp| temp.size).unwrap_or(size);
                    all.push(CapUse::size(&name, "local disk", size, disk));
                }
            }
        }
        let own = caps(candidate.host, &candidate.choice);
        let of = &candidate.host.name;
        let uncached: Vec<&Flow> = candidate.demands.iter().map(|own| &own.uncached).collect();
        let cached: Vec<&Flow> = candidate.demands.iter().map(|own| &own.cached).collect();
        for (most, peaks, names) in
            [(own.uncached, uncached, UNCACHED), (own.cached, cached, CACHED)]
        {
            if let Some(most) = most.filter(|_| peaks.iter().any(|flow| !flow.is_empty())) {
                all.extend(CapUse::rates(of, &peaks, most, 1, names));
            }
        }
        if let Some(most) = candidate.host.max_data_disks {
            all.push(CapUse::number(of, "data disks", candidate.choice.count, u64::from(most)));
        }
        all
    }

    pub(crate) fn is_named(&self, host: &HostSize) -> bool {
        let is_named = match &self.wishes.host {
            Some(name) => self.edition.host(name).is_ok_and(|own| own == host),
            None => self.is_counted(host) && self.is_own(host),
        };
        is_named && self.stays(host)
    }

    /// Returns the limits that the need exceeds.
    fn fails(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let mut all = self.caps(need, candidate);
        let of = &candidate.host.name;
        all.retain(|cap| cap.used > cap.most);
        let vcpus = candidate.host.vcpus.map_or(0, u64::from);
        let memory = candidate.host.memory.unwrap_or(Bytes::ZERO);
        all.extend(CapUse::number(of, "vCPUs", u64::from(need.vcpus), vcpus).lacking());
        all.extend(CapUse::size(of, "memory", need.memory, memory).lacking());
        all
    }
}
