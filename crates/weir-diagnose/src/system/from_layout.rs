//! A layout's hosts, disks, stripes and files, found again in an observation by their names.

use super::mapping::{Mapping, Unmatched};
use super::model::{
    Burst, Disk, File, Host, InstanceLimits, Limit, Medium, On, Pair, Stripe, System,
};
use super::observed::{is_storage, job_file, role_of};
use super::paths::{Names, join, path};
use crate::error::DiagnoseError;
use std::collections::{BTreeMap, BTreeSet};
use weir_core::{CacheMode, GateLimits, Place};
use weir_layout::Layout;
use weir_observe::{Contents, EntityId, EntityKind, attribute};
use weir_report::number::float;
use weir_units::nearest;

impl System {
    /// Builds the system of a layout with the entities of `contents`; `loads` are the entities with
    /// I/O.
    ///
    /// # Errors
    ///
    /// [`DiagnoseError::NoneMatches`] if no name of the observation is in the layout, and
    /// [`DiagnoseError::Mapping`] if a name of `mapping` is nowhere.
    pub fn from_layout(
        contents: &Contents,
        loads: &BTreeSet<EntityId>,
        layout: &Layout,
        mapping: &Mapping,
    ) -> Result<(Self, Vec<Unmatched>), DiagnoseError> {
        let matcher = Matcher::new(contents, layout, mapping)?;
        let (mut hosts, mut disks) = (Vec::new(), Vec::new());
        let (mut stripes, mut files) = (Vec::new(), Vec::new());
        for (index, host) in layout.hosts.iter().enumerate() {
            hosts.push(Host { entity: matcher.host(&host.name), ..of_host(host) });
            let first = disks.len();
            for (volume, spec) in host.volumes.iter().zip(&host.spec.volumes) {
                let entity = matcher.volume(&volume.name);
                let host_cache = host.spec.cache.as_ref();
                let own = of_volume(volume, spec, host_cache);
                disks.push(Disk { entity, host: Some(index), ..own });
            }
            for export in host.exports.iter().filter(|export| export.unit.is_some()) {
                let columns: Vec<usize> =
                    export.volumes.iter().map(|volume| first + volume.0).collect();
                for column in &columns {
                    disks[*column].stripe = Some(stripes.len());
                }
                let (entity, unit) =
                    (matcher.stripe(&export.name), export.unit.map(weir_units::Bytes::get));
                let name = export.name.clone();
                stripes.push(Stripe { name, entity, host: Some(index), columns, unit });
            }
            let on = |name: &str| {
                let stripe = stripes.iter().position(|stripe: &Stripe| stripe.name == name);
                let disk = disks.iter().position(|disk: &Disk| disk.name == name);
                stripe.map(On::Stripe).or(disk.map(On::Disk))
            };
            for file in &host.files {
                let lies = host.export_of(file).and_then(|export| on(&export.name));
                files.push(File {
                    name: file.name.clone(),
                    database: file.database.clone(),
                    entity: matcher.file(&file.name, file.database.as_deref()),
                    role: Some(file.role),
                    size: Some(file.size.get()),
                    on: lies,
                });
            }
        }
        matcher.files_of_runs(contents, &stripes, &disks, &mut files);
        matcher.jobs_on(contents, loads, (&stripes, &disks), &mut files);
        let is_instance = layout.hosts.iter().all(|host| host.instance.is_some());
        let system = join(hosts, disks, stripes, files, (loads, is_instance));
        let unmatched = matcher.unmatched(contents, loads, &system);
        // A backup is compared with the layout by its rate.
        let of_storage =
            |id: &EntityId| contents.entity(*id).is_some_and(|entity| is_storage(&entity.kind));
        if system.subjects.is_empty() && loads.iter().any(of_storage) {
            return Err(DiagnoseError::NoneMatches { unmatched, known: matcher.known });
        }
        Ok((system, unmatched))
    }
}

/// Finds a layout's names in an observation.
struct Matcher {
    hosts: Names,
    volumes: Names,
    stripes: Names,
    files: Names,
    jobs: Names,
    /// Volumes of benchmark jobs, from the mapping.
    places: Vec<(EntityId, String)>,
    only_host: Option<EntityId>,
    /// Entities by their name in the layout, from the mapping.
    said: BTreeMap<String, (EntityId, EntityKind)>,
    /// Names that a file has and what it is on, too: there the kind decides.
    twice: BTreeSet<String>,
    /// The names of the layout.
    known: Vec<String>,
}

impl Matcher {
    fn new(contents: &Contents, layout: &Layout, mapping: &Mapping) -> Result<Self, DiagnoseError> {
        let mut known = Vec::new();
        let mut twice = BTreeSet::new();
        for host in &layout.hosts {
            known.push(host.name.clone());
            known.extend(host.volumes.iter().map(|volume| volume.name.clone()));
            known.extend(host.exports.iter().map(|export| export.name.clone()));
            let is_device = |name: &&String| known.contains(*name);
            twice.extend(host.files.iter().map(|file| &file.name).filter(is_device).cloned());
            known.extend(host.files.iter().map(|file| file.name.clone()));
        }
        known.sort();
        known.dedup();
        let (mut hosts, mut volumes) = (Names::default(), Names::default());
        let (mut stripes, mut files) = (Names::default(), Names::default());
        let mut jobs = Names::default();
        let mut host_ids = Vec::new();
        for (entity, id) in contents.entities.iter().zip(0..) {
            let id = EntityId(id);
            match entity.kind {
                EntityKind::Host => {
                    hosts.add(&entity.name, id);
                    host_ids.push(id);
                }
                EntityKind::Volume => volumes.add_with_owners(contents, id),
                EntityKind::Stripe => stripes.add_with_owners(contents, id),
                EntityKind::File => files.add_with_owners(contents, id),
                EntityKind::Job => jobs.add_with_owners(contents, id),
                _ => {}
            }
        }
        let single = layout.hosts.len() == 1 && host_ids.len() == 1;
        let only_host = host_ids.first().copied().filter(|_| single);
        let (said, places) = (BTreeMap::new(), Vec::new());
        let mut matcher =
            Self { hosts, volumes, stripes, files, jobs, places, only_host, said, twice, known };
        for (observed, name) in mapping {
            let entities =
                [&matcher.volumes, &matcher.files, &matcher.stripes, &matcher.hosts, &matcher.jobs];
            let all = entities.into_iter().map(|names| names.all(observed));
            let id = match all.into_iter().find(|all| !all.is_empty()) {
                Some([id]) => *id,
                Some(several) => {
                    return Err(DiagnoseError::Ambiguous {
                        name: observed.clone(),
                        candidates: several.iter().map(|id| path(contents, *id)).collect(),
                    });
                }
                None => {
                    return Err(DiagnoseError::Mapping {
                        what: "observation",
                        name: observed.clone(),
                        near: nearest(observed, contents.entities.iter().map(|e| e.name.as_str()))
                            .map(str::to_owned),
                    });
                }
            };
            if !matcher.known.contains(name) {
                return Err(DiagnoseError::Mapping {
                    what: "layout",
                    name: name.clone(),
                    near: nearest(name, matcher.known.iter().map(String::as_str))
                        .map(str::to_owned),
                });
            }
            if contents.entity(id).is_some_and(|entity| entity.kind == EntityKind::Job) {
                matcher.places.push((id, name.clone()));
            } else if let Some(entity) = contents.entity(id) {
                matcher.said.insert(name.clone(), (id, entity.kind.clone()));
            }
        }
        matcher.check_taken(contents)?;
        Ok(matcher)
    }

    /// A mapped entity no longer matches its own name, and no entity has two names.
    fn check_taken(&self, contents: &Contents) -> Result<(), DiagnoseError> {
        for (name, (id, kind)) in &self.said {
            let own = match kind {
                EntityKind::Host => &self.hosts,
                EntityKind::Stripe => &self.stripes,
                EntityKind::File => &self.files,
                _ => &self.volumes,
            };
            let is_other = |other: &EntityId| *other != *id && !self.is_said(*other);
            if own.get(name).is_some_and(|other| is_other(&other)) {
                let observed = contents.entity(*id).map(|entity| entity.name.clone());
                let observed = observed.unwrap_or_default();
                return Err(DiagnoseError::Taken { observed, name: name.clone() });
            }
        }
        Ok(())
    }

    fn is_said(&self, id: EntityId) -> bool {
        self.said.values().any(|(said, _)| *said == id)
    }

    /// Returns the mapped entity, if its kind matches or the name is unique.
    fn said(&self, name: &str, kinds: &[EntityKind]) -> Option<EntityId> {
        let (id, kind) = self.said.get(name)?;
        (kinds.contains(kind) || !self.twice.contains(name)).then_some(*id)
    }

    /// Returns the entity with this name, unless it is mapped to another.
    fn named(&self, names: &Names, name: &str) -> Option<EntityId> {
        names.get(name).filter(|id| !self.is_said(*id))
    }

    fn host(&self, name: &str) -> Option<EntityId> {
        self.said(name, &[EntityKind::Host]).or(self.named(&self.hosts, name)).or(self.only_host)
    }

    fn volume(&self, name: &str) -> Option<EntityId> {
        self.said(name, &[EntityKind::Volume, EntityKind::Stripe])
            .or_else(|| self.named(&self.volumes, name))
    }

    /// Software above a stripe sees one device.
    fn stripe(&self, name: &str) -> Option<EntityId> {
        self.said(name, &[EntityKind::Volume, EntityKind::Stripe])
            .or_else(|| self.named(&self.stripes, name))
            .or_else(|| self.named(&self.volumes, name))
    }

    fn file(&self, name: &str, database: Option<&str>) -> Option<EntityId> {
        let qualified = database.map(|database| format!("{database}.{name}"));
        let by_both = qualified.and_then(|qualified| self.named(&self.files, &qualified));
        self.said(name, &[EntityKind::File]).or(by_both).or_else(|| self.named(&self.files, name))
    }

    /// Adds the files of a run of Weir whose layout has none. They state what they are on.
    fn files_of_runs(
        &self,
        contents: &Contents,
        stripes: &[Stripe],
        disks: &[Disk],
        files: &mut Vec<File>,
    ) {
        for (entity, id) in contents.entities.iter().zip(0..) {
            let id = EntityId(id);
            let is_new = !files.iter().any(|file| file.entity == Some(id));
            if entity.kind != EntityKind::File || !is_new {
                continue;
            }
            let place = entity.text(attribute::VOLUME).or(Some(entity.name.as_str()));
            let stripe = |name: &str| stripes.iter().position(|stripe| stripe.name == name);
            let disk = |name: &str| disks.iter().position(|disk| disk.name == name);
            let said = self.said.iter().find(|(_, (entity, _))| *entity == id);
            let place = said.map(|(name, _)| name.as_str()).or(place);
            let on =
                place.and_then(|name| stripe(name).map(On::Stripe).or(disk(name).map(On::Disk)));
            let Some(on) = on else { continue };
            let parent = entity.parent.and_then(|parent| contents.entity(parent));
            files.push(File {
                name: entity.name.clone(),
                database: parent
                    .filter(|parent| parent.kind == EntityKind::Database)
                    .map(|parent| parent.name.clone()),
                entity: Some(id),
                role: role_of(entity, parent),
                size: entity.number(attribute::SIZE_BYTES),
                on: Some(on),
            });
        }
    }

    /// Adds jobs of a benchmark as files on their volumes: several may share a disk. A clone of a job is
    /// where the job is.
    fn jobs_on(
        &self,
        contents: &Contents,
        loads: &BTreeSet<EntityId>,
        (stripes, disks): (&[Stripe], &[Disk]),
        files: &mut Vec<File>,
    ) {
        let name_of = |id: EntityId| contents.entity(id).map_or("", |entity| entity.name.as_str());
        for (entity, id) in contents.entities.iter().zip(0..).map(|(own, id)| (own, EntityId(id))) {
            if entity.kind != EntityKind::Job || !loads.contains(&id) {
                continue;
            }
            let first = entity.name.split(" #").next().unwrap_or_default();
            let is_clone_of = |other: EntityId| {
                let is_near = contents.entity(other).is_some_and(|own| own.parent == entity.parent);
                is_near && name_of(other) == first
            };
            let said = || self.places.iter().find(|(own, _)| *own == id);
            let said = said().or_else(|| self.places.iter().find(|(own, _)| is_clone_of(*own)));
            let place = said.map_or(entity.name.as_str(), |(_, place)| place.as_str());
            let is_it = |name: &str| name.eq_ignore_ascii_case(place);
            let stripe = stripes.iter().position(|stripe| is_it(&stripe.name)).map(On::Stripe);
            let disk = || disks.iter().position(|disk| is_it(&disk.name)).map(On::Disk);
            let file = || files.iter().find(|file| is_it(&file.name) || is_it(&file.qualified()));
            let on = stripe.or_else(disk).or_else(|| file().and_then(|file| file.on));
            if let Some(on) = on {
                files.push(job_file(entity, id, Some(on)));
            }
        }
    }

    fn unmatched(
        &self,
        contents: &Contents,
        loads: &BTreeSet<EntityId>,
        system: &System,
    ) -> Vec<Unmatched> {
        let found: BTreeSet<EntityId> =
            system.subjects.iter().map(|subject| subject.entity).collect();
        let missing = loads.difference(&found).filter_map(|id| contents.entity(*id));
        let missing = missing.filter(|entity| is_storage(&entity.kind));
        let near =
            |name: &str| nearest(name, self.known.iter().map(String::as_str)).map(str::to_owned);
        missing
            .map(|entity| Unmatched { name: entity.name.clone(), near: near(&entity.name) })
            .collect()
    }
}

pub(super) fn limit_of(limit: weir_core::Limit) -> Limit {
    let burst = limit.burst.map(|(peak, span)| Burst {
        peak: float(peak.get()),
        seconds: (!limit.is_on_demand()).then(|| float(span.nanos()) / 1e9),
    });
    Limit { rate: float(limit.rate.get()), burst }
}

fn pair_of(gate: &GateLimits) -> Pair {
    Pair { iops: gate.iops.map(limit_of), bytes: gate.bytes.map(limit_of) }
}

fn of_host(host: &weir_layout::Host) -> Host {
    Host {
        name: host.name.clone(),
        entity: None,
        size: host.size.clone(),
        qualified_size: host.qualified_size(),
        uncached: pair_of(&host.spec.uncached),
        uncached_writes: host.spec.uncached_writes.as_ref().map(pair_of),
        cached: pair_of(&host.spec.cached),
        log: host.spec.log_rate.map(limit_of),
        instance: host.instance.as_ref().map(|instance| InstanceLimits {
            storage: instance.storage.get(),
            vcores: u64::from(instance.vcores),
        }),
    }
}

fn mean_ns(latency: &weir_core::Latency) -> f64 {
    float(latency.mean().nanos())
}

/// Returns the transfer time of a byte in nanoseconds.
fn byte_ns(latency: &weir_core::Latency) -> f64 {
    latency.transfer().map_or(0.0, |rate| 1e9 / float(rate.per_sec().get()))
}

fn of_volume(
    volume: &weir_layout::Volume,
    spec: &weir_core::VolumeSpec,
    host_cache: Option<&weir_core::CacheSpec>,
) -> Disk {
    let cache = if host_cache.is_some() { spec.cache } else { CacheMode::None };
    let medium = Medium {
        read_ns: mean_ns(&spec.medium.read),
        write_ns: mean_ns(&spec.medium.write),
        read_byte_ns: byte_ns(&spec.medium.read),
        write_byte_ns: byte_ns(&spec.medium.write),
        hit: None,
    };
    let of_cache = host_cache.filter(|_| cache != CacheMode::None).map(|cache| &cache.latency);
    let hit = of_cache.map(|latency| (mean_ns(latency), byte_ns(latency)));
    Disk {
        name: volume.name.clone(),
        tier: volume.tier.clone(),
        family: volume.family.clone(),
        size: Some(spec.size.get()),
        limits: pair_of(&spec.limits.gate),
        io_unit: spec.limits.io_unit.map(|unit| float(unit.get())),
        cache,
        is_local: spec.place == Place::Local,
        is_log: spec.log,
        medium: (medium != Medium::default()).then_some(Medium { hit, ..medium }),
        ..Disk::default()
    }
}
