//! Machines whose disks share their limits by type. Limits are bought by the total size, so neither
//! the number of disks nor stripes raise them.

use crate::answer::{CapUse, Cheaper, Line, PassedOver, Plan};
use crate::cost::{Cost, gib};
use crate::demand::{self, Flow, Limits, Peak};
use crate::disks::typical;
use crate::filesystem::FileSystem;
use crate::machine::{Machines, Searched, backup_apart, pool_name};
use crate::need::{Need, rate_words};
use crate::rank::Aim;
use weir_catalog::{HostSize, Per, Pooled};
use weir_layout::Role;
use weir_units::Bytes;

/// Maximum size of a disk in GiB, if none is published. Volumes of a layout have the same maximum.
const MOST_GIB: u64 = 1 << 20;

/// Finds the cheapest machine with disks that share their limits. All candidates have the same
/// number of disks.
#[must_use]
pub fn search(machines: &Machines<'_>, need: &Need, aim: Aim) -> Searched {
    let of = Pools { of: machines, need };
    let mut searched = Searched::default();
    // Disks in use are of another kind, and a machine has disks of one kind only.
    if machines.wishes.keep.is_some() {
        return searched;
    }
    let mut best: Option<Found<'_>> = None;
    for host in machines.hosts(need) {
        for family in of.families(host) {
            searched.compared += 1;
            let Some(gib) = of.fewest(host, family) else { continue };
            let found = of.found(host, family, gib);
            if best.as_ref().is_none_or(|best| found.cost < best.cost) {
                best = Some(found);
            }
        }
    }
    searched.plan = best.as_ref().map(|best| of.plan(best));
    searched.cheapest = searched.plan.as_ref().map(|plan| PassedOver {
        title: plan.title.clone(),
        cost: plan.cost,
        disks: plan.disks,
    });
    let best = best.filter(|_| aim.explains);
    searched.cheaper = best.and_then(|best| of.cheaper(&best));
    searched
}

/// Returns the smallest disk that is offered, in GiB.
fn smallest(family: &Pooled) -> u64 {
    family.min_size.map_or(1, gib)
}

struct Pools<'m, 'a> {
    of: &'m Machines<'a>,
    need: &'m Need,
}

/// A machine with disks of one type.
#[derive(Debug, Clone, Copy)]
struct Found<'a> {
    host: &'a HostSize,
    family: &'a Pooled,
    /// The total size.
    gib: u64,
    cost: Cost,
}

impl<'a> Pools<'_, 'a> {
    /// Returns the usable families that are fast enough and for which the machine has a limit.
    fn families(&self, host: &HostSize) -> impl Iterator<Item = &'a Pooled> {
        let edition = self.of.edition;
        let is_fast = |family: &str| {
            let mut limited =
                self.need.roles.iter().filter_map(|own| Some((own.latency?, own.request)));
            limited.all(|(most, request)| {
                typical(edition, family, request).is_some_and(|own| own <= most)
            })
        };
        edition.pooled_families().iter().filter(move |own| {
            let is_wished = self.of.families.contains(&own.family.as_str());
            is_wished && host.pools.contains_key(&own.family) && is_fast(&own.family)
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
        gib(self.of.wishes.file_system().room_for(size))
    }

    fn least(&self, family: &Pooled) -> u64 {
        self.disks(family).iter().map(|(.., gib)| gib).sum()
    }

    /// Groups the roles that share a disk.
    fn groups(&self) -> Vec<Vec<usize>> {
        let all = 0..self.need.roles.len();
        let is_backup = |at: &usize| self.need.roles[*at].role == Role::Backup;
        match self.of.wishes {
            wishes if wishes.is_apart => all.map(|role| vec![role]).collect(),
            wishes if wishes.shares_backup => vec![all.collect()],
            _ => {
                let (backup, rest): (Vec<usize>, Vec<usize>) = all.partition(is_backup);
                [rest, backup].into_iter().filter(|roles| !roles.is_empty()).collect()
            }
        }
    }

    /// Returns the number of disks.
    fn count(&self) -> u64 {
        self.groups().len() as u64
    }

    fn limits(&self, host: &HostSize, family: &Pooled, gib: u64) -> Limits {
        let most = host.pools.get(&family.family).copied();
        let limits = family.limits(Bytes::gib(gib), most);
        Limits { operations: limits.iops.get(), bytes: limits.throughput.get() }
    }

    fn peaks(&self) -> Vec<Flow> {
        let io_unit = self.of.edition.io_unit();
        let of = |peak: &Peak| {
            let mut all = Flow::default();
            for own in &self.need.roles {
                all += &demand::flow(own, *peak, io_unit, None);
            }
            all
        };
        Peak::of(self.need).iter().map(of).collect()
    }

    /// Returns the smallest total size that stores and carries the need.
    fn fewest(&self, host: &HostSize, family: &Pooled) -> Option<u64> {
        let peaks = self.peaks();
        let fits = |gib: u64| {
            let limits = self.limits(host, family, gib);
            peaks.iter().all(|flow| flow.fits(limits, 1))
        };
        let disks = self.disks(family);
        let largest = family.max_size.map_or(MOST_GIB, |most| most.get() >> 30);
        if disks.iter().any(|(.., gib)| *gib > largest) {
            return None;
        }
        // Extra size goes to the first disk.
        let low = self.least(family);
        let (mut low, mut high) = (low, low + largest - disks.first().map_or(0, |(.., gib)| *gib));
        let is_counted = self.of.wishes.max_disks.is_none_or(|most| self.count() <= most);
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

    fn found(&self, host: &'a HostSize, family: &'a Pooled, gib: u64) -> Found<'a> {
        let price = self.of.prices.unit(&family.family, Per::Gib);
        // The machine decides first where prices are missing, then the size.
        let cost = self.of.host_cost(host) + Cost::of(price, gib, self.count());
        Found { host, family, gib, cost }
    }

    fn plan(&self, found: &Found<'_>) -> Plan {
        let Found { host, family, gib, cost } = *found;
        let limits = self.limits(host, family, gib);
        let peaks = self.peaks();
        let most = Flow::most(&peaks);
        let mut reasons = vec![
            format!(
                "{} operations and {} a second; all disks of {} together carry {} and {}, by their \
                 {gib} GiB and what {} lets through",
                most.operations,
                rate_words(most.bytes),
                family.family,
                limits.operations,
                rate_words(limits.bytes),
                host.name,
            ),
            "limits are shared by all disks of a type: more disks and stripes bring nothing"
                .to_owned(),
        ];
        let (stored, room) = (self.stored(), Bytes::gib(gib));
        if gib > self.least(family) {
            reasons.push(format!("{stored} are stored in {room}: the size buys the limits"));
        }
        if let Some(smallest) = family.min_size.filter(|own| stored.get() < own.get()) {
            reasons.push(format!("no disk of {} is smaller than {smallest}", family.family));
        }
        reasons.extend(self.of_wishes());
        Plan {
            family: "vm".to_owned(),
            title: self.title(found),
            layout: self.layout(found),
            lines: self.lines(found),
            cost,
            caps: self.caps(found),
            reasons,
            disks: self.count(),
            passed_over: None,
        }
    }

    /// Returns the assumptions about the file system and a backup.
    fn of_wishes(&self) -> Vec<String> {
        let mut all = Vec::new();
        let wishes = self.of.wishes;
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

    fn title(&self, found: &Found<'_>) -> String {
        let disks = self.sized(found).into_iter().map(|(name, _, gib)| {
            format!(
                "{} on {} of {}",
                name.replace('-', " and "),
                found.family.family,
                Bytes::gib(gib)
            )
        });
        format!("{}: {}", found.host.name, disks.collect::<Vec<_>>().join(", "))
    }

    /// Returns the stored size.
    fn stored(&self) -> Bytes {
        Bytes::new(self.need.roles.iter().map(|own| own.size.get()).fold(0, u64::saturating_add))
    }

    /// Returns the disks with their final sizes. Extra size goes to the first disk. A shortfall is
    /// taken from the first disks, down to the minimum size.
    fn sized(&self, found: &Found<'_>) -> Vec<(String, Vec<usize>, u64)> {
        let mut disks = self.disks(found.family);
        let least = self.least(found.family);
        if let Some(first) = disks.first_mut() {
            first.2 += found.gib.saturating_sub(least);
        }
        let mut less = least.saturating_sub(found.gib);
        for (.., gib) in &mut disks {
            let taken = less.min(gib.saturating_sub(smallest(found.family)));
            *gib -= taken;
            less -= taken;
        }
        disks
    }

    fn lines(&self, found: &Found<'_>) -> Vec<Line> {
        let (prices, name) = (self.of.prices, &found.host.name);
        let family = &found.family.family;
        vec![
            Line::of(format!("machine {name}"), 1, self.of.host_price(found.host)),
            Line::of(format!("GiB of {family}"), found.gib, prices.unit(family, Per::Gib)),
        ]
    }

    fn caps(&self, found: &Found<'_>) -> Vec<CapUse> {
        let peaks = self.peaks();
        let peaks: Vec<&Flow> = peaks.iter().collect();
        let limits = self.limits(found.host, found.family, found.gib);
        let of = format!("{} of {}", found.family.family, found.host.name);
        let names = ["shared operations", "shared bytes"];
        let mut caps = CapUse::rates(&of, &peaks, limits, 1, names);
        let needed = self.groups().iter().map(|roles| self.room_for(roles)).sum();
        let (own, room) = (Bytes::gib(needed), Bytes::gib(found.gib));
        caps.push(CapUse::size(&of, "size", own, room));
        caps
    }

    fn fails(&self, found: &Found<'_>) -> Vec<CapUse> {
        let mut fails = self.caps(found);
        fails.retain(|cap| cap.used > cap.most);
        let vcpus = found.host.vcpus.map_or(0, u64::from);
        let of = &found.host.name;
        fails.extend(CapUse::number(of, "vCPUs", u64::from(self.need.vcpus), vcpus).lacking());
        fails
    }

    fn layout(&self, found: &Found<'_>) -> String {
        let (edition, size) = (self.of.edition.name(), &found.host.name);
        let mut text = format!("edition = {edition:?}\n\n[host]\nsize = {size:?}\n");
        if self.of.has_licence() {
            text += "licence_owned = true\n";
        }
        text += &self.of.wishes.file_system().layout_line();
        for (name, roles, gib) in self.sized(found) {
            let (family, size) = (&found.family.family, Bytes::gib(gib).exact());
            let name = pool_name(&name);
            text +=
                &format!("\n[[volume]]\nname = {name:?}\nfamily = {family:?}\nsize = \"{size}\"\n");
            for role in roles {
                let own = &self.need.roles[role];
                let (role, size) = (own.role.name(), own.size.exact());
                text += &format!(
                    "\n[[file]]\nname = \"{role}-file\"\nrole = {role:?}\nsize = \"{size}\"\non = {name:?}\n"
                );
            }
        }
        text
    }

    /// Returns the most expensive layout that is one step cheaper than the best and fails. A step
    /// is a smaller machine, a slower type, or a tenth less size; if there is none, less size than
    /// is stored.
    fn cheaper(&self, best: &Found<'a>) -> Option<Cheaper> {
        let edition = self.of.edition;
        let hosts = edition.hosts().filter(|host| self.of.is_named(host));
        let hosts = hosts.map(|host| self.found(host, best.family, best.gib));
        let families = self.families(best.host);
        let families = families.map(|family| self.found(best.host, family, self.least(family)));
        let tenth_less = best.gib - best.gib / 10;
        let least = self.least(best.family);
        let slower = self.found(best.host, best.family, tenth_less.max(least));
        // Disks below the minimum size are not sold.
        let smallest = smallest(best.family) * self.count();
        let smaller = self.found(best.host, best.family, tenth_less.max(smallest));
        let is_less = |found: &Found<'_>| {
            found.host.pools.contains_key(&found.family.family)
                && found.cost.unpriced == best.cost.unpriced
                && found.cost.month < best.cost.month
                && !self.fails(found).is_empty()
        };
        let all = hosts.chain(families).chain([slower]).filter(is_less);
        let next = all.max_by_key(|own| own.cost).or(Some(smaller).filter(is_less))?;
        Some(Cheaper {
            what: self.title(&next),
            cost: next.cost,
            fails: self.fails(&next),
            // Disks smaller than the data cannot be built.
            layout: (next.gib >= self.least(next.family)).then(|| self.layout(&next)),
        })
    }
}
