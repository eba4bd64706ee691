//! Limits and relations from the observation itself: attributes, parents, and, with an edition, the
//! tier for a file's size.

use super::model::{
    Burst, Disk, File, Host, InstanceLimits, Limit, Medium, On, Pair, Stripe, System,
};
use super::observed::{job_file, role_of};
use super::paths::join;
use std::collections::{BTreeMap, BTreeSet};
use weir_catalog::{Edition, Latency};
use weir_layout::Role;
use weir_observe::{Contents, Entity, EntityId, EntityKind, attribute, metric};
use weir_report::number::float;
use weir_units::Bytes;

impl System {
    /// Builds the system that `contents` describes; `loads` are the entities with I/O. With an
    /// edition, files and volumes that state a size and no limits have those of their tier.
    #[must_use]
    pub(crate) fn from_observation(
        contents: &Contents,
        loads: &BTreeSet<EntityId>,
        edition: Option<&Edition>,
    ) -> Self {
        let mut own = Entities { contents, edition, ..Entities::default_for(contents) };
        for (entity, id) in contents.entities.iter().zip(0..).map(|(own, id)| (own, EntityId(id))) {
            match entity.kind {
                EntityKind::Job if loads.contains(&id) => {
                    own.files.push(job_file(entity, id, None));
                }
                _ => own.take(entity, id),
            }
        }
        own.tell_apart();
        let Entities { hosts, disks, stripes, files, .. } = own;
        let is_instance = edition.is_some_and(|edition| edition.rule("min-blob").is_some());
        join(hosts, disks, stripes, files, (loads, is_instance))
    }
}

struct Entities<'a> {
    contents: &'a Contents,
    edition: Option<&'a Edition>,
    hosts: Vec<Host>,
    disks: Vec<Disk>,
    stripes: Vec<Stripe>,
    files: Vec<File>,
    host_of: BTreeMap<EntityId, usize>,
    stripe_of: BTreeMap<EntityId, usize>,
}

impl<'a> Entities<'a> {
    fn default_for(contents: &'a Contents) -> Self {
        Self {
            contents,
            edition: None,
            hosts: Vec::new(),
            disks: Vec::new(),
            stripes: Vec::new(),
            files: Vec::new(),
            host_of: BTreeMap::new(),
            stripe_of: BTreeMap::new(),
        }
    }

    fn take(&mut self, entity: &Entity, id: EntityId) {
        let parent = entity.parent;
        match entity.kind {
            EntityKind::Host => {
                self.host_of.insert(id, self.hosts.len());
                self.hosts.push(of_host(entity, id));
            }
            EntityKind::Stripe => {
                let host = parent.and_then(|parent| self.host_of.get(&parent)).copied();
                self.stripe_of.insert(id, self.stripes.len());
                let unit = entity.number("unit_bytes").filter(|unit| *unit > 0);
                let name = entity.name.clone();
                let columns = Vec::new();
                self.stripes.push(Stripe { name, entity: Some(id), host, columns, unit });
            }
            EntityKind::Volume => {
                let stripe = parent.and_then(|parent| self.stripe_of.get(&parent)).copied();
                let host = match stripe {
                    Some(stripe) => self.stripes[stripe].host,
                    None => parent.and_then(|parent| self.host_of.get(&parent)).copied(),
                };
                if let Some(stripe) = stripe {
                    self.stripes[stripe].columns.push(self.disks.len());
                }
                let disk = Disk { host, stripe, entity: Some(id), ..of_volume(entity) };
                self.disks.push(self.with_edition(disk));
            }
            EntityKind::File => self.take_file(entity, id),
            _ => {}
        }
    }

    fn take_file(&mut self, entity: &Entity, id: EntityId) {
        let database = entity.parent.and_then(|parent| self.contents.entity(parent));
        let role = role_of(entity, database);
        let size = entity
            .number(attribute::SIZE_BYTES)
            .or(entity.number(metric::name::SIZE_ON_DISK_BYTES));
        let place = entity.text(attribute::VOLUME);
        let on = place.and_then(|place| self.place(place));
        let on = on.or_else(|| self.own_disk(entity, database, role, size));
        self.files.push(File {
            name: entity.name.clone(),
            database: database
                .filter(|parent| parent.kind == EntityKind::Database)
                .map(|parent| parent.name.clone()),
            entity: Some(id),
            role,
            size,
            on,
        });
    }

    /// Disks that are files are called as these are; where several databases have files of that
    /// name, with the database in front.
    fn tell_apart(&mut self) {
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for disk in &self.disks {
            *count.entry(disk.name.clone()).or_default() += 1;
        }
        for file in &self.files {
            let Some(On::Disk(disk)) = file.on else { continue };
            let own = &mut self.disks[disk];
            if own.entity.is_none() && count.get(&own.name).is_some_and(|count| *count > 1) {
                own.name = file.qualified();
            }
        }
    }

    fn place(&self, name: &str) -> Option<On> {
        let stripe = self.stripes.iter().position(|stripe| stripe.name == name);
        let disk = || self.disks.iter().position(|disk| disk.name == name);
        stripe.map(On::Stripe).or_else(|| disk().map(On::Disk))
    }

    /// Returns the page blob of a file that states limits, or for which the edition has tiers.
    fn own_disk(
        &mut self,
        entity: &Entity,
        database: Option<&Entity>,
        role: Option<Role>,
        size: Option<u64>,
    ) -> Option<On> {
        let host = database.and_then(|database| database.parent.or(entity.parent));
        let host = host.and_then(|host| self.host_of.get(&host)).copied();
        let said = of_volume(entity);
        let has_tiers = self.edition.is_some_and(|edition| edition.rule("min-blob").is_some());
        let has_own = said.limits != Pair::default();
        // tempdb of an instance is on its local SSD, whose limits are unknown.
        if !has_own && (!has_tiers || role == Some(Role::Tempdb)) {
            return None;
        }
        let disk = Disk { host, size, is_log: role == Some(Role::Log), entity: None, ..said };
        let disk = self.with_edition(disk);
        (disk.limits != Pair::default()).then(|| {
            self.disks.push(disk);
            On::Disk(self.disks.len() - 1)
        })
    }

    /// Returns the limits of the edition for a disk with a tier or size.
    fn with_edition(&self, mut disk: Disk) -> Disk {
        let Some(edition) = self.edition else { return disk };
        let tier = disk.tier.as_deref().and_then(|name| edition.tier(name).ok());
        let family = disk.family.as_deref().or(edition.default_set().map(|set| set.name.as_str()));
        let by_size = || edition.snap(family?, Bytes::new(disk.size?)).ok();
        if let Some(tier) = tier.or_else(by_size) {
            if disk.limits == Pair::default() {
                let limits = tier.limits();
                disk.limits = Pair {
                    iops: Some(Limit::flat(float(limits.iops.per_sec().get()))),
                    bytes: Some(Limit::flat(float(limits.throughput.per_sec().get()))),
                };
            }
            disk.tier.get_or_insert_with(|| tier.name.clone());
            disk.family.get_or_insert_with(|| tier.family.clone());
            disk.io_unit = disk.io_unit.or_else(|| Some(float(edition.io_unit()?.get())));
        }
        let latency = disk.family.as_deref().and_then(|family| edition.latency(family));
        disk.medium = disk.medium.or(latency.map(Medium::from_latency));
        disk
    }
}

impl Medium {
    /// Takes the means of a latency model.
    pub(crate) fn from_latency(latency: &Latency) -> Self {
        let byte = latency.transfer.map_or(0.0, |rate| 1e9 / float(rate.per_sec().get()));
        Self {
            read_ns: float(latency.read.mean().nanos()),
            write_ns: float(latency.write.mean().nanos()),
            read_byte_ns: byte,
            write_byte_ns: byte,
            hit: None,
        }
    }
}

fn limit(entity: &Entity, prefix: &str, name: &str) -> Option<Limit> {
    let number = |name: String| entity.number(&name).filter(|rate| *rate > 0).map(float);
    let rate = number(format!("{prefix}{name}"))?;
    let peak = number(format!("{prefix}burst_{name}"));
    // The duration of bursts is unknown, and taken as unlimited.
    let burst = peak.filter(|peak| *peak > rate).map(|peak| Burst { peak, seconds: None });
    Some(Limit { rate, burst })
}

fn pair(entity: &Entity, prefix: &str) -> Pair {
    Pair {
        iops: limit(entity, prefix, attribute::IOPS_LIMIT),
        bytes: limit(entity, prefix, attribute::BYTES_PER_S_LIMIT),
    }
}

fn of_host(entity: &Entity, id: EntityId) -> Host {
    let log = limit(entity, "log_", attribute::BYTES_PER_S_LIMIT);
    let instance = entity.text("managed_instance").map(|_| InstanceLimits {
        storage: entity.number("storage_bytes").unwrap_or(0),
        vcores: entity.number(attribute::VCORES).unwrap_or(0),
    });
    Host {
        name: entity.name.clone(),
        entity: Some(id),
        size: entity.text("size").map(str::to_owned),
        qualified_size: entity.text("size").map(str::to_owned),
        uncached: pair(entity, "uncached_"),
        uncached_writes: Some(pair(entity, "write_")).filter(|own| *own != Pair::default()),
        cached: pair(entity, "cached_"),
        log,
        instance,
    }
}

fn of_volume(entity: &Entity) -> Disk {
    // Observations of other systems may lack the mode or have another name for it.
    let cache = entity.text("cache").and_then(|mode| mode.parse().ok()).unwrap_or_default();
    Disk {
        name: entity.name.clone(),
        tier: entity.text(attribute::TIER).map(str::to_owned),
        family: entity.text("family").map(str::to_owned),
        size: entity.number(attribute::SIZE_BYTES),
        limits: pair(entity, ""),
        io_unit: entity.number("io_unit_bytes").filter(|unit| *unit > 0).map(float),
        cache,
        is_local: entity.text("place") == Some("local"),
        is_log: false,
        ..Disk::default()
    }
}
