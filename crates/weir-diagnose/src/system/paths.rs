//! The caps of a system, and whose requests pass which.

use super::model::{
    Cap, Counts, Disk, File, Host, Medium, On, Owner, Pair, Reads, Stripe, Subject, SubjectId,
    System,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_core::{CacheMode, Cap as Kind};
use weir_observe::{Contents, EntityId};

/// Builds a system. `loads` are the entities with observed I/O. `is_instance` is set if the files
/// are those of a managed instance, whatever their host.
pub(super) fn join(
    hosts: Vec<Host>,
    disks: Vec<Disk>,
    stripes: Vec<Stripe>,
    files: Vec<File>,
    (loads, is_instance): (&BTreeSet<EntityId>, bool),
) -> System {
    let mut system = System { hosts, disks, stripes, files, ..System::default() };
    let caps = Caps::new(&mut system);
    let observed = |entity: Option<EntityId>| entity.filter(|entity| loads.contains(entity));
    let mut subjects = Vec::new();
    for (index, disk) in system.disks.iter().enumerate() {
        if let Some(entity) = observed(disk.entity) {
            subjects.push((entity, SubjectId::Disk(index)));
        }
    }
    for (index, stripe) in system.stripes.iter().enumerate() {
        if let Some(entity) = observed(stripe.entity) {
            subjects.push((entity, SubjectId::Stripe(index)));
        }
    }
    for (index, file) in system.files.iter().enumerate() {
        if let Some(entity) = observed(file.entity) {
            subjects.push((entity, SubjectId::File(index)));
        }
    }
    let ids: Vec<SubjectId> = subjects.iter().map(|(_, id)| *id).collect();
    let subject = |(entity, id): (EntityId, SubjectId)| Subject {
        entity,
        id,
        path: caps.path(&system, id),
        is_meter: is_meter(&system, &ids, id),
        is_named: is_named(&system, &ids, id),
        medium: medium(&system, id),
        counts_queues: counts_queues(&system, id, is_instance),
    };
    system.subjects = subjects.into_iter().map(subject).collect();
    system
}

/// Returns whether a queue time of zero is evidence. It is on a managed instance, whose governor
/// queues requests above the limits. On a machine the counters are always zero, since they count
/// the resource governor only.
fn counts_queues(system: &System, id: SubjectId, is_instance: bool) -> bool {
    match system.host_of(id).map(|host| &system.hosts[host]) {
        Some(host) if host.instance.is_some() => true,
        Some(host) => is_instance && host.size.is_none() && host.uncached == Pair::default(),
        None => {
            let all = !system.hosts.is_empty() && system.hosts.iter().all(|h| h.instance.is_some());
            is_instance || all
        }
    }
}

/// The caps of each host and disk, as indices.
struct Caps {
    uncached: Vec<Vec<usize>>,
    /// Of hosts whose writes to remote storage have limits of their own.
    writes: Vec<Option<Vec<usize>>>,
    cached: Vec<Vec<usize>>,
    log: Vec<Option<usize>>,
    disk: Vec<Vec<usize>>,
}

impl Caps {
    fn new(system: &mut System) -> Self {
        let caps = &mut system.caps;
        let mut pair = |owner, pair: &Pair, kinds: [Kind; 2]| -> Vec<usize> {
            let both = [(kinds[0], pair.iops), (kinds[1], pair.bytes)];
            let known = both.into_iter().filter_map(|(kind, limit)| Some((kind, limit?)));
            known
                .map(|(kind, limit)| {
                    caps.push(Cap { kind, owner, limit });
                    caps.len() - 1
                })
                .collect()
        };
        let (mut uncached, mut writes, mut cached) = (Vec::new(), Vec::new(), Vec::new());
        for (index, host) in system.hosts.iter().enumerate() {
            let owner = Owner::Host(index);
            let kinds = [Kind::HostUncachedIops, Kind::HostUncachedBytes];
            uncached.push(pair(owner, &host.uncached, kinds));
            let kinds = [Kind::HostWriteIops, Kind::HostWriteBytes];
            writes.push(host.uncached_writes.as_ref().map(|own| pair(owner, own, kinds)));
            let kinds = [Kind::HostCachedIops, Kind::HostCachedBytes];
            cached.push(pair(owner, &host.cached, kinds));
        }
        let kinds = [Kind::DiskIops, Kind::DiskBytes];
        let disks = system.disks.iter().enumerate();
        let disk =
            disks.map(|(index, disk)| pair(Owner::Disk(index), &disk.limits, kinds)).collect();
        let mut log = Vec::new();
        for (index, host) in system.hosts.iter().enumerate() {
            log.push(host.log.map(|limit| {
                caps.push(Cap { kind: Kind::LogRate, owner: Owner::Host(index), limit });
                caps.len() - 1
            }));
        }
        Self { uncached, writes, cached, log, disk }
    }

    /// Returns the caps that requests to a subject pass.
    fn path(&self, system: &System, id: SubjectId) -> Vec<Counts> {
        let disks = system.disks_of(id);
        #[expect(clippy::cast_precision_loss, reason = "a number of disks")]
        let share = 1.0 / disks.len().max(1) as f64;
        let unit = match id {
            SubjectId::Stripe(stripe) => system.stripes[stripe].unit,
            SubjectId::File(file) => match system.files[file].on {
                Some(On::Stripe(stripe)) => system.stripes[stripe].unit,
                _ => None,
            },
            SubjectId::Disk(_) => None,
        };
        #[expect(clippy::cast_precision_loss, reason = "a stripe's unit is small")]
        let piece = unit.map(|unit| unit as f64);
        let mut path: Vec<Counts> = Vec::new();
        for disk in disks {
            let one = &system.disks[disk];
            let host = one.host;
            let of = |caps: &Vec<Vec<usize>>| host.map(|host| caps[host].clone());
            let (own, to_disk) = (self.disk[disk].clone(), of(&self.uncached));
            let writes = host.and_then(|host| self.writes[host].clone());
            let is_separate = writes.is_some();
            let through_cache = of(&self.cached);
            let mut add = |caps: Option<Vec<usize>>, reads, writes| {
                for cap in caps.into_iter().flatten() {
                    // A cap of the host takes the parts of all columns.
                    match path.iter_mut().find(|counts| counts.cap == cap) {
                        Some(counts) => counts.share += share,
                        None => path.push(Counts {
                            cap,
                            share,
                            piece,
                            unit: one.io_unit,
                            reads,
                            writes,
                        }),
                    }
                }
            };
            // In the order in which requests pass them.
            if one.is_log {
                add(host.and_then(|host| self.log[host]).map(|cap| vec![cap]), Reads::None, true);
            }
            match (one.is_local, one.cache) {
                (true, _) => {
                    add(Some(own), Reads::All, true);
                    add(through_cache, Reads::All, true);
                }
                (false, CacheMode::None) => {
                    add(Some(own), Reads::All, true);
                    add(to_disk, Reads::All, !is_separate);
                    add(writes, Reads::None, true);
                }
                (false, CacheMode::ReadOnly | CacheMode::ReadWrite) => {
                    add(Some(own), Reads::Misses, true);
                    add(to_disk, Reads::Misses, !is_separate);
                    add(writes, Reads::None, true);
                    add(through_cache, Reads::All, true);
                }
            }
        }
        path
    }
}

/// Returns whether limits take their load from a subject: from a disk if it was observed, else from
/// its stripe, else from the files on it.
fn is_meter(system: &System, ids: &[SubjectId], id: SubjectId) -> bool {
    let disk_is_there = |disk: &usize| ids.contains(&SubjectId::Disk(*disk));
    match id {
        // If only some columns were observed, the stripe has more information.
        SubjectId::Disk(disk) => match system.disks[disk].stripe {
            Some(stripe) if ids.contains(&SubjectId::Stripe(stripe)) => {
                system.stripes[stripe].columns.iter().all(disk_is_there)
            }
            _ => true,
        },
        SubjectId::Stripe(stripe) => !system.stripes[stripe].columns.iter().all(disk_is_there),
        SubjectId::File(file) => match system.files[file].on {
            Some(On::Disk(disk)) => !disk_is_there(&disk),
            Some(On::Stripe(stripe)) => {
                !ids.contains(&SubjectId::Stripe(stripe))
                    && !system.stripes[stripe].columns.iter().all(disk_is_there)
            }
            None => false,
        },
    }
}

/// Chooses the subjects that findings name: the file if a disk has only one, otherwise the disk.
/// Columns of a stripe are named individually if they were observed.
fn is_named(system: &System, ids: &[SubjectId], id: SubjectId) -> bool {
    let alone = |on: On| {
        let mut files = system.files_on(on);
        match (files.next(), files.next()) {
            (Some((file, _)), None) => Some(SubjectId::File(file)),
            _ => None,
        }
    };
    match id {
        SubjectId::Disk(disk) => {
            let file = alone(On::Disk(disk));
            !file.is_some_and(|file| ids.contains(&file))
        }
        SubjectId::Stripe(_) => is_meter(system, ids, id),
        SubjectId::File(file) => match system.files[file].on {
            None => true,
            Some(on @ On::Disk(_)) => alone(on) == Some(id) || is_meter(system, ids, id),
            Some(On::Stripe(_)) => is_meter(system, ids, id),
        },
    }
}

/// Returns the unloaded latency of a subject, if that of all its disks is known: the slowest, since
/// a request on several disks waits for all parts.
fn medium(system: &System, id: SubjectId) -> Option<Medium> {
    let disks = system.disks_of(id);
    let all: Option<Vec<Medium>> = disks.iter().map(|disk| system.disks[*disk].medium).collect();
    let all = all.filter(|all| !all.is_empty())?;
    let most = |of: fn(&Medium) -> f64| all.iter().map(of).fold(0.0, f64::max);
    Some(Medium {
        read_ns: most(|medium| medium.read_ns),
        write_ns: most(|medium| medium.write_ns),
        read_byte_ns: most(|medium| medium.read_byte_ns),
        write_byte_ns: most(|medium| medium.write_byte_ns),
        hit: all
            .iter()
            .filter_map(|medium| medium.hit)
            .max_by(|one, other| one.0.total_cmp(&other.0)),
    })
}

/// Returns the name of an entity after those of its parents, such as `db1.tpcc.data`.
pub(super) fn path(contents: &Contents, id: EntityId) -> String {
    let Some(own) = contents.entity(id) else { return String::new() };
    match own.parent {
        Some(parent) => format!("{}.{}", path(contents, parent), own.name),
        None => own.name.clone(),
    }
}

/// Entities by what they are called, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Vec<EntityId>>);

impl Names {
    pub(super) fn add(&mut self, name: &str, id: EntityId) {
        let known = self.0.entry(name.to_lowercase()).or_default();
        if !known.contains(&id) {
            known.push(id);
        }
    }

    /// Adds it by its name, and by its name behind those of whom it is in.
    pub(super) fn add_with_owners(&mut self, contents: &Contents, id: EntityId) {
        let own = contents.entity(id).map_or("", |own| own.name.as_str());
        let mut owner = contents.entity(id).and_then(|own| own.parent);
        let mut name = own.to_owned();
        self.add(own, id);
        while let Some(above) = owner.and_then(|owner| contents.entity(owner)) {
            name = format!("{}.{name}", above.name);
            self.add(&name, id);
            owner = above.parent;
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<EntityId> {
        self.all(name).first().copied()
    }

    /// Returns all entities of a name.
    pub(super) fn all(&self, name: &str) -> &[EntityId] {
        self.0.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }
}
