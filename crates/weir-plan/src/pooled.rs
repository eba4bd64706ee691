//! Machines whose disks share their limits by type. Limits are bought by the total size, so neither
//! the number of disks nor stripes raise them.

use crate::answer::{CapUse, Line, PassedOver, Reason, Unpriced};
use crate::cost::{Cost, gib};
use crate::demand::{self, Flow, Limits, Peak};
use crate::disks::is_fast_enough;
use crate::family::{Family, Searched};
use crate::filesystem::FileSystem;
use crate::machine::{self, Machines, backup_apart, pool_name};
use crate::need::{Need, rate_words};
use crate::rank::Aim;
use crate::share::WHOLE;
use weir_catalog::{HostSize, Per, PoolLimits, Pooled};
use weir_layout::file::{FileKeys, HostKeys, VolumeKeys};
use weir_layout::{LayoutText, Role};
use weir_units::Bytes;

/// Maximum size of a disk in GiB, if none is published. Volumes of a layout have the same maximum.
const MOST_GIB: u64 = 1 << 20;

/// Finds the cheapest machine with disks that share their limits. All candidates have the same
/// number of disks.
pub(crate) fn search(machines: &Machines<'_>, need: &Need, aim: Aim) -> Searched {
    let pools = Pools::new(machines, need);
    // Disks in use are of another kind, and a machine has disks of one kind only.
    if machines.wishes.keep.is_some() {
        return Searched::default();
    }
    let mut compared = 0;
    let mut best: Option<Candidate<'_>> = None;
    for host in machines.hosts(need) {
        // Disks cost money, so a machine that alone costs as much as the best cannot win.
        if best.as_ref().is_some_and(|best| best.cost <= machines.host_cost(host)) {
            break;
        }
        for family in pools.families(host) {
            compared += 1;
            let Some(gib) = pools.fewest(host, family) else { continue };
            let candidate = pools.candidate(host, family, gib);
            if best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
                best = Some(candidate);
            }
        }
    }
    let searched = pools.searched(need, best, compared, aim);
    let cheapest = searched.plan.as_ref().map(|plan| PassedOver {
        title: plan.title.clone(),
        cost: plan.cost,
        disks: plan.disks,
    });
    Searched { cheapest, ..searched }
}

/// Lists the machines without a price that carry the need, each with its cheapest disks.
pub(crate) fn unpriced(machines: &Machines<'_>, need: &Need) -> Vec<Unpriced> {
    let pools = Pools::new(machines, need);
    if machines.wishes.keep.is_some() {
        return Vec::new();
    }
    let hosts = machines.hosts(need).into_iter();
    hosts
        .filter(|host| machines.host_price(host).is_none())
        .filter_map(|host| {
            let families = pools.families(host);
            let own = families.filter_map(|family| {
                Some(pools.candidate(host, family, pools.fewest(host, family)?))
            });
            own.min_by_key(|own| own.cost)
        })
        .map(|own| pools.without_price(need, &own))
        .collect()
}

/// Returns the smallest disk that is offered, in GiB.
fn smallest(family: &Pooled) -> u64 {
    family.min_size.map_or(1, gib)
}

struct Pools<'m, 'a> {
    machines: &'m Machines<'a>,
    need: &'m Need,
    /// The load at each peak of the need.
    peaks: Vec<Load>,
}

/// The load of all roles.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    all: Flow,
    reads: Flow,
    writes: Flow,
}

/// Limits that all disks share, and the load that passes them.
struct Shared {
    /// The names of the limits on operations and bytes.
    names: [&'static str; 2],
    /// The requests that pass them, in words: empty for all.
    kind: &'static str,
    of: fn(&Load) -> &Flow,
    limits: Limits,
}

/// A machine with disks of one type.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    host: &'a HostSize,
    family: &'a Pooled,
    /// The total size.
    gib: u64,
    cost: Cost,
}

impl<'m, 'a> Pools<'m, 'a> {
    fn new(machines: &'m Machines<'a>, need: &'m Need) -> Self {
        let io_unit = machines.edition.io_unit();
        let at = |peak: &Peak| {
            let mut load = Load::default();
            for own in &need.roles {
                let flow = demand::flow(own, *peak, io_unit, None);
                load.all += &flow;
                load.reads += &flow.part(own.reads);
                load.writes += &flow.part(WHOLE.saturating_sub(own.reads));
            }
            load
        };
        Self { machines, need, peaks: Peak::of_need(need).iter().map(at).collect() }
    }

    /// Returns the usable families that are fast enough and for which the machine has a limit.
    fn families(&self, host: &HostSize) -> impl Iterator<Item = &'a Pooled> {
        let edition = self.machines.edition;
        edition.pooled_families().iter().filter(move |own| {
            let is_wished = self.machines.families.contains(&own.family.as_str());
            let has_limit = host.pools.contains_key(&own.family);
            is_wished && has_limit && is_fast_enough(edition, &own.family, self.need)
        })
    }

    /// Returns the disks of a family with their sizes in GiB, each at least the minimum.
    fn disks(&self, family: &Pooled) -> Vec<(String, Vec<usize>, u64)> {
        let smallest = smallest(family);
        let names = |roles: &[usize]| {
            let names: Vec<&str> =
                roles.iter().map(|role| self.need.roles[*role].role.name()).collect();
            names.join("-")
        };
        self.groups()
            .into_iter()
            .map(|roles| (names(&roles), roles.clone(), self.room_for(&roles).max(smallest)))
            .collect()
    }

    /// Returns the room on a disk that the files of some roles need, in GiB.
    fn room_for(&self, roles: &[usize]) -> u64 {
        let sizes = roles.iter().map(|role| self.need.roles[*role].size.get());
        let size = Bytes::new(sizes.fold(0, u64::saturating_add));
        gib(self.machines.wishes.file_system().room_for(size))
    }

    fn least(&self, family: &Pooled) -> u64 {
        self.disks(family).iter().map(|(.., gib)| gib).sum()
    }

    /// Groups the roles that share a disk.
    fn groups(&self) -> Vec<Vec<usize>> {
        let all = 0..self.need.roles.len();
        match self.machines.wishes {
            wishes if wishes.is_apart => all.map(|role| vec![role]).collect(),
            wishes if wishes.shares_backup => vec![all.collect()],
            _ => {
                let (backup, rest): (Vec<usize>, Vec<usize>) =
                    all.partition(|at: &usize| self.need.roles[*at].role == Role::Backup);
                [rest, backup].into_iter().filter(|roles| !roles.is_empty()).collect()
            }
        }
    }

    /// Returns the number of disks.
    fn count(&self) -> u64 {
        self.groups().len() as u64
    }

    /// Returns the limits that disks of a total size share on a machine.
    fn limits(&self, host: &HostSize, family: &Pooled, gib: u64) -> Vec<Shared> {
        let most = host.pools.get(&family.family).copied();
        let PoolLimits { limits, writes } = family.limits(Bytes::gib(gib), most);
        let limits_of = |own: weir_catalog::Limits| Limits {
            operations: own.iops.get(),
            bytes: own.throughput.get(),
        };
        let shared = |names, kind, of: fn(&Load) -> &Flow, own| Shared {
            names,
            kind,
            of,
            limits: limits_of(own),
        };
        match writes {
            None => {
                vec![shared(["shared operations", "shared bytes"], "", |load| &load.all, limits)]
            }
            Some(writes) => vec![
                shared(
                    ["shared reads", "shared bytes read"],
                    " of reads",
                    |load| &load.reads,
                    limits,
                ),
                shared(
                    ["shared writes", "shared bytes written"],
                    " of writes",
                    |load| &load.writes,
                    writes,
                ),
            ],
        }
    }

    /// Returns the smallest total size that stores and carries the need.
    fn fewest(&self, host: &HostSize, family: &Pooled) -> Option<u64> {
        let fits = |gib: u64| {
            let all = self.limits(host, family, gib);
            let fits =
                |own: &Shared| self.peaks.iter().all(|load| (own.of)(load).fits(own.limits, 1));
            all.iter().all(fits)
        };
        let disks = self.disks(family);
        let largest = family.max_size.map_or(MOST_GIB, |most| most.get() >> 30);
        if disks.iter().any(|(.., gib)| *gib > largest) {
            return None;
        }
        // Extra size goes to the first disk.
        let low = self.least(family);
        let (mut low, mut high) = (low, low + largest - disks.first().map_or(0, |(.., gib)| *gib));
        let is_counted = self.machines.wishes.max_disks.is_none_or(|most| self.count() <= most);
        if !fits(high) || !is_counted {
            return None;
        }
        if fits(low) {
            return Some(low);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    fn candidate(&self, host: &'a HostSize, family: &'a Pooled, gib: u64) -> Candidate<'a> {
        let price = self.machines.prices.unit(&family.family, Per::Gib);
        // The machine decides first where prices are missing, then the size.
        let cost = self.machines.host_cost(host) + Cost::of_units(price, gib, self.count());
        Candidate { host, family, gib, cost }
    }

    /// Returns a reason if the plan needs operations above the published formula.
    fn beyond_documents(&self, candidate: &Candidate<'_>) -> Option<Reason> {
        let Candidate { host, family, gib, .. } = *candidate;
        let mut documented = family.clone();
        documented.iops_excess = 0;
        let published = self.limits(host, &documented, gib);
        let most = |own: &Shared| Flow::most(self.peaks.iter().map(own.of)).operations;
        let short = published.iter().find(|own| most(own) > own.limits.operations)?;
        Some(Reason::key(format!(
            "{} IOPS are documented for {gib} GiB of {}; the plan counts on up to {} % more, which a third party has \
             measured: a headroom of {} % does without them",
            short.limits.operations, family.family, family.iops_excess, family.iops_excess
        )))
    }

    /// Returns the reasons for the disks.
    fn all_reasons(&self, candidate: &Candidate<'_>) -> Vec<Reason> {
        let Candidate { host, family, gib, .. } = *candidate;
        let shared = self.limits(host, family, gib);
        let mut all: Vec<Reason> = shared
            .iter()
            .map(|own| {
                let most = Flow::most(self.peaks.iter().map(own.of));
                Reason::detail(format!(
                    "needs {} IOPS{} and {}; all {} disks together provide {} IOPS and {}, from \
                     their {gib} GiB and the limits of {}",
                    most.operations,
                    own.kind,
                    rate_words(most.bytes),
                    family.family,
                    own.limits.operations,
                    rate_words(own.limits.bytes),
                    host.name,
                ))
            })
            .collect();
        all.extend(self.beyond_documents(candidate));
        all.push(Reason::detail(
            "disks of a type share their limits, so more disks or stripes would not raise them",
        ));
        let (stored, room) = (self.stored(), Bytes::gib(gib));
        if gib > self.least(family) {
            all.push(Reason::detail(format!(
                "{room} for {stored} of data, because the limits depend on the size"
            )));
        }
        if let Some(smallest) = family.min_size.filter(|own| stored.get() < own.get()) {
            all.push(Reason::detail(format!(
                "a disk of {} has at least {smallest}",
                family.family
            )));
        }
        all.extend(self.assumptions().into_iter().map(Reason::detail));
        all
    }

    /// Returns the assumptions about the file system and a backup.
    fn assumptions(&self) -> Vec<String> {
        let mut all = Vec::new();
        let wishes = self.machines.wishes;
        if wishes.file_system() != FileSystem::None {
            let (name, words) = (wishes.file_system().name(), wishes.file_system().words());
            all.push(format!("disks have room for {name} (overhead {words})"));
        }
        let is_split = !wishes.is_apart && !wishes.shares_backup;
        let has = |role: Role| self.need.role(role).is_some();
        if is_split && has(Role::Backup) && (has(Role::Data) || has(Role::Log)) {
            all.push(backup_apart());
        }
        all
    }

    /// Describes a candidate in one line.
    fn describe(&self, candidate: &Candidate<'_>) -> String {
        let disks = self.sized(candidate).into_iter().map(|(name, _, gib)| {
            format!(
                "{} on {} of {}",
                name.replace('-', " and "),
                candidate.family.family,
                Bytes::gib(gib)
            )
        });
        format!("{}: {}", candidate.host.name, disks.collect::<Vec<_>>().join(", "))
    }

    /// Returns the stored size.
    fn stored(&self) -> Bytes {
        Bytes::new(self.need.roles.iter().map(|own| own.size.get()).fold(0, u64::saturating_add))
    }

    /// Returns the disks with their final sizes. Extra size goes to the first disk. A shortfall is
    /// taken from the first disks, down to the minimum size.
    fn sized(&self, candidate: &Candidate<'_>) -> Vec<(String, Vec<usize>, u64)> {
        let mut disks = self.disks(candidate.family);
        let least = self.least(candidate.family);
        if let Some(first) = disks.first_mut() {
            first.2 += candidate.gib.saturating_sub(least);
        }
        let mut less = least.saturating_sub(candidate.gib);
        for (.., gib) in &mut disks {
            let taken = less.min(gib.saturating_sub(smallest(candidate.family)));
            *gib -= taken;
            less -= taken;
        }
        disks
    }

    /// Returns the bill.
    fn bill(&self, candidate: &Candidate<'_>) -> Vec<Line> {
        let (prices, name) = (self.machines.prices, &candidate.host.name);
        let family = &candidate.family.family;
        vec![
            Line::of(format!("machine {name}"), 1, self.machines.host_price(candidate.host)),
            Line::of(format!("GiB of {family}"), candidate.gib, prices.unit(family, Per::Gib)),
        ]
    }

    /// Returns the use of every limit.
    fn cap_uses(&self, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let of = format!("{} of {}", candidate.family.family, candidate.host.name);
        let mut caps = Vec::new();
        for own in self.limits(candidate.host, candidate.family, candidate.gib) {
            let peaks: Vec<&Flow> = self.peaks.iter().map(own.of).collect();
            caps.extend(CapUse::rates(&of, &peaks, own.limits, 1, own.names));
        }
        let needed = self.groups().iter().map(|roles| self.room_for(roles)).sum();
        let (own, room) = (Bytes::gib(needed), Bytes::gib(candidate.gib));
        caps.push(CapUse::size(&of, "size", own, room));
        caps
    }

    /// Writes the layout file.
    fn layout_file(&self, candidate: &Candidate<'_>) -> String {
        let mut text = LayoutText::new(self.machines.edition.name())
            .in_region(self.machines.wishes.region.as_deref());
        text.host(&HostKeys {
            size: Some(candidate.host.name.clone()),
            licence_owned: self.machines.has_licence(),
            filesystem: self.machines.wishes.file_system().key(),
            ..HostKeys::default()
        });
        for (name, roles, gib) in self.sized(candidate) {
            let name = pool_name(&name);
            text.volume(&VolumeKeys {
                name: Some(name.clone()),
                family: Some(candidate.family.family.clone()),
                size: Some(Bytes::gib(gib)),
                ..VolumeKeys::default()
            });
            for role in roles {
                let own = &self.need.roles[role];
                let file = FileKeys::new(format!("{}-file", own.role.name()), own.role, own.size);
                text.file(&FileKeys { on: Some(name.clone()), ..file });
            }
        }
        text.finish()
    }

    /// Returns the most expensive layout that is one step cheaper than the best and fails. A step
    /// is a smaller machine, a slower type, or a tenth less size; if there is none, less size than
    /// is stored.
    fn one_step_cheaper(&self, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        let edition = self.machines.edition;
        let hosts = edition
            .hosts()
            .filter(|host| self.machines.is_named(host))
            .map(|host| self.candidate(host, best.family, best.gib));
        let families = self
            .families(best.host)
            .map(|family| self.candidate(best.host, family, self.least(family)));
        let tenth_less = best.gib - best.gib / 10;
        let least = self.least(best.family);
        let slower = self.candidate(best.host, best.family, tenth_less.max(least));
        // Disks below the minimum size are not sold.
        let smallest = smallest(best.family) * self.count();
        let smaller = self.candidate(best.host, best.family, tenth_less.max(smallest));
        let is_less = |candidate: &Candidate<'a>| {
            candidate.host.pools.contains_key(&candidate.family.family)
                && candidate.cost.unpriced == best.cost.unpriced
                && candidate.cost.month < best.cost.month
                && !self.fails(self.need, candidate).is_empty()
        };
        let all = hosts.chain(families).chain([slower]).filter(is_less);
        all.max_by_key(|own| own.cost).or(Some(smaller).filter(is_less))
    }
}

impl<'a> Family for Pools<'_, 'a> {
    type Candidate = Candidate<'a>;

    fn name(&self) -> &'static str {
        machine::NAME
    }

    fn host<'c>(&self, candidate: &'c Candidate<'a>) -> &'c HostSize {
        candidate.host
    }

    fn cost(&self, candidate: &Candidate<'a>) -> Cost {
        candidate.cost
    }

    fn disks(&self, _candidate: &Candidate<'a>) -> u64 {
        self.count()
    }

    /// Returns whether the disks are as large as the data.
    fn is_buildable(&self, candidate: &Candidate<'a>) -> bool {
        candidate.gib >= self.least(candidate.family)
    }

    fn title(&self, _need: &Need, candidate: &Candidate<'a>) -> String {
        self.describe(candidate)
    }

    fn layout(&self, _need: &Need, candidate: &Candidate<'a>) -> String {
        self.layout_file(candidate)
    }

    fn lines(&self, _need: &Need, candidate: &Candidate<'a>) -> Vec<Line> {
        self.bill(candidate)
    }

    fn caps(&self, _need: &Need, candidate: &Candidate<'a>) -> Vec<CapUse> {
        self.cap_uses(candidate)
    }

    fn reasons(&self, _need: &Need, candidate: &Candidate<'a>) -> Vec<Reason> {
        self.all_reasons(candidate)
    }

    fn next_cheaper(&self, _need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        self.one_step_cheaper(best)
    }
}
