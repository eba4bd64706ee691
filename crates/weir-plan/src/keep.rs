//! The layout in use that a plan extends. A plan may add to it and grow it, but removes nothing.
//!
//! Disks and files grow in place. A plan adds no column to a stripe, and lowers no limit or size. Four
//! changes need downtime and are left out if that must be avoided: a machine of another size restarts,
//! an instance with other vCores fails over, a disk with another cache mode is detached, and a stripe with
//! another unit is rebuilt and its data copied.

use crate::error::PlanError;
use crate::filesystem::FileSystem;
use crate::need::{Need, NeedFile};
use std::collections::BTreeSet;
use weir_catalog::{CacheMode, Edition, Limits};
use weir_core::VolumeSpec;
use weir_layout::{Export, Host, Layout, ManagedInstance, Role};
use weir_units::{Bytes, BytesPerSec, Iops};

/// A layout in use that a plan extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The qualified name of the machine's size.
    pub host: Option<String>,
    /// True if its licence is owned instead of rented.
    pub has_licence: bool,
    /// The file system of its disks, if the layout states it.
    pub filesystem: FileSystem,
    /// Kind, vCores and billed storage of a managed instance.
    pub instance: Option<(ManagedInstance, u32, Bytes)>,
    /// The tier set of an instance's files.
    pub tiers: Option<String>,
    /// Total IOPS that a next-generation instance has bought.
    pub iops: Option<u64>,
    /// The billed storage and the step it was rounded to, if the layout does not state the storage.
    pub assumed_storage: Option<(Bytes, Bytes)>,
    /// Disks or stripes, by the roles on them.
    pub pools: Vec<KeptPool>,
    /// Files of an instance, by role.
    pub files: Vec<KeptFiles>,
    /// True if downtime must be avoided.
    pub is_up: bool,
    /// True if stripes keep their units even where downtime is allowed.
    pub keeps_units: bool,
}

/// Equal disks in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPool {
    /// The name of the disk or stripe.
    pub name: String,
    /// The names of the disks.
    pub volumes: Vec<String>,
    /// The LUNs of the disks; empty for the machine's local disk.
    pub luns: Vec<u32>,
    /// Names and roles of the files on the disks.
    pub files: Vec<(String, Role)>,
    /// The roles of the files on the disks.
    pub roles: Vec<Role>,
    /// The host cache mode.
    pub mode: CacheMode,
    /// The stripe unit, if there is one.
    pub unit: Option<Bytes>,
    /// True for the machine's local disk.
    pub is_local: bool,
    /// The disk family.
    pub family: String,
    /// The tier, unless limits are bought.
    pub tier: Option<String>,
    /// The number of disks.
    pub count: u64,
    /// The size of each disk.
    pub size: Bytes,
    /// True if each disk has performance plus. It is chosen when a disk is created and cannot
    /// change.
    pub is_plus: bool,
    /// The tier whose limits each disk has, if it is not the disk's own.
    pub performance_tier: Option<String>,
    /// True if each disk bursts on demand.
    pub on_demand_burst: bool,
    /// The limits of each disk, without bursts.
    pub limits: Option<Limits>,
}

impl KeptPool {
    /// Returns whether the limits of the disks are those of another tier or burst on demand.
    #[must_use]
    pub fn has_choices(&self) -> bool {
        self.performance_tier.is_some() || self.on_demand_burst
    }
}

/// The files of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFiles {
    /// The role.
    pub role: Role,
    /// The number of files.
    pub count: u64,
    /// The size of the largest file in GiB. Equal files all take this size.
    pub gib: u64,
    /// The size of all files in GiB.
    pub total: u64,
    /// Names and sizes in GiB.
    pub each: Vec<(String, u64)>,
    /// The database of the files, if it is named.
    pub database: Option<String>,
}

impl Kept {
    /// Reads a layout in use.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] for a layout that no plan can extend.
    pub fn from_layout(layout: &Layout, is_up: bool) -> Result<Self, PlanError> {
        let [host] = layout.hosts.as_slice() else {
            let reason = "has several machines; give a layout with only the one to extend";
            return Err(PlanError::need("the layout to keep", reason));
        };
        let storage = host.billed_storage().unwrap_or(Bytes::ZERO);
        let instance = host.instance.as_ref().map(|own| (own.kind, own.vcores, storage));
        let assumed_storage = host
            .instance
            .as_ref()
            .filter(|own| !own.is_storage_stated)
            .map(|own| (storage, own.storage_step));
        let mut databases: Vec<&Option<String>> = host
            .files
            .iter()
            .filter(|file| file.role != Role::Tempdb)
            .map(|file| &file.database)
            .collect();
        databases.sort();
        databases.dedup();
        if databases.len() > 1 {
            let reason = "has several databases; a plan extends one (weir plan --fleet plans many on new \
                 instances)";
            return Err(PlanError::need("the layout to keep", reason));
        }
        let pools = match instance {
            Some(_) => Vec::new(),
            None => pools(host)?,
        };
        let files = Role::ALL.into_iter().filter_map(|role| files(host, role));
        let files = if instance.is_some() { files.collect() } else { Vec::new() };
        Ok(Self {
            host: host.qualified_size(),
            has_licence: host.licence_owned,
            filesystem: host.filesystem.map(FileSystem::from_layout).unwrap_or_default(),
            instance,
            tiers: host.instance.as_ref().and_then(|own| own.tiers.clone()),
            iops: host.instance.as_ref().and_then(|own| own.iops).map(Iops::get),
            assumed_storage,
            pools,
            files,
            is_up,
            keeps_units: false,
        })
    }

    /// Returns whether a stripe may be rebuilt with another unit, for which its data is copied.
    #[must_use]
    pub fn may_rebuild(&self) -> bool {
        !self.is_up && !self.keeps_units
    }

    /// Returns the assumption about storage that the layout does not state.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let (storage, step) = self.assumed_storage?;
        Some(format!(
            "the layout to keep does not state the storage of its instance: {storage} is assumed, the \
             size of its files rounded up to steps of {step}; if more is reserved, add storage = \
             \"SIZE\" to its [host]"
        ))
    }

    /// Requires the processors and the memory of the machine or instance in use, unless `file` states its own; returns
    /// the note.
    pub fn no_smaller(
        &self,
        file: &NeedFile,
        need: &mut Need,
        edition: &Edition,
    ) -> Option<String> {
        let is_stated = file.host.is_some() || file.vcpus.is_some() || file.memory.is_some();
        if is_stated {
            return None;
        }
        if let Some((_, vcores, _)) = self.instance {
            need.vcpus = vcores;
            return (!self.is_up).then(|| {
                format!(
                    "the instance gets no fewer than {vcores} vCores; state vcpus to allow another number"
                )
            });
        }
        let size = edition.host(self.host.as_ref()?).ok()?;
        let (vcpus, memory) = (size.vcpus?, size.memory?);
        (need.vcpus, need.memory) = (vcpus, memory);
        // Without downtime, the machine stays: the bounds apply to what --no-downtime rules out.
        (!self.is_up).then(|| {
            format!(
                "the machine gets no smaller than {} ({vcpus} vCPUs, {memory}); state vcpus or memory to \
                 allow another size",
                size.name
            )
        })
    }

    /// Returns the files of a role that are in use.
    #[must_use]
    pub fn files(&self, role: Role) -> Option<&KeptFiles> {
        self.files.iter().find(|own| own.role == role)
    }

    /// Returns the LUNs in use.
    #[must_use]
    pub fn luns(&self) -> BTreeSet<u32> {
        self.pools.iter().flat_map(|pool| pool.luns.iter().copied()).collect()
    }

    /// Returns the disks of a role.
    #[must_use]
    pub fn pool(&self, role: Role) -> Option<&KeptPool> {
        self.pools.iter().find(|own| own.roles.contains(&role))
    }
}

fn files(host: &Host, role: Role) -> Option<KeptFiles> {
    let own = || host.files.iter().filter(move |file| file.role == role);
    let sizes = || own().map(|file| file.size.get().div_ceil(1 << 30));
    Some(KeptFiles {
        role,
        count: own().count() as u64,
        gib: sizes().max()?,
        total: sizes().sum(),
        each: own().map(|file| file.name.clone()).zip(sizes()).collect(),
        database: own().find_map(|file| file.database.clone()),
    })
}

fn pools(host: &Host) -> Result<Vec<KeptPool>, PlanError> {
    let mut all = Vec::new();
    for export in &host.exports {
        let on = host.files.iter().filter(|file| file.device == export.device);
        let mut roles: Vec<Role> = on.map(|file| file.role).collect();
        roles.dedup();
        if roles.is_empty() {
            let reason = "has no [[file]], so its role is unknown; add one, or remove it";
            let what = format!("{} of the layout to keep", export.name);
            return Err(PlanError::need(what, reason));
        }
        all.push(pool(host, export, roles)?);
    }
    let twice = Role::ALL
        .into_iter()
        .find(|role| all.iter().filter(|pool: &&KeptPool| pool.roles.contains(role)).count() > 1);
    if let Some(role) = twice {
        let reason = "is on several disks or stripes; a plan extends one per role";
        return Err(PlanError::need(format!("{} of the layout to keep", role.name()), reason));
    }
    if all.is_empty() {
        let reason = "has no [[file]] that gives its disks a role; add one with role and on for \
                      each";
        return Err(PlanError::need("the layout to keep", reason));
    }
    Ok(all)
}

/// Returns the limits of a disk that has both, without bursts.
fn limits(spec: &VolumeSpec) -> Option<Limits> {
    let gate = &spec.limits.gate;
    let (iops, throughput) = (gate.iops?.rate.get(), gate.bytes?.rate.get());
    Some(Limits { iops: Iops::new(iops)?, throughput: BytesPerSec::new(throughput)? })
}

fn pool(host: &Host, export: &Export, mut roles: Vec<Role>) -> Result<KeptPool, PlanError> {
    roles.sort_by_key(|role| Role::ALL.iter().position(|own| own == role));
    roles.dedup();
    let numbers = host.luns();
    let volumes = export.volumes.iter().filter_map(|id| {
        let spec = host.spec.volumes.get(id.0)?;
        Some((host.volumes.get(id.0)?, spec))
    });
    let mut kept: Option<KeptPool> = None;
    for (volume, spec) in volumes {
        let choices = volume.choices();
        let own = KeptPool {
            name: export.name.clone(),
            volumes: export
                .volumes
                .iter()
                .filter_map(|id| Some(host.volumes.get(id.0)?.name.clone()))
                .collect(),
            luns: export.volumes.iter().filter_map(|id| *numbers.get(id.0)?).collect(),
            files: host
                .files
                .iter()
                .filter(|file| file.device == export.device)
                .map(|file| (file.name.clone(), file.role))
                .collect(),
            roles: roles.clone(),
            mode: spec.cache,
            unit: export.unit,
            is_local: spec.place == weir_core::Place::Local,
            family: volume.family.clone().unwrap_or_default(),
            tier: volume.tier.clone(),
            count: export.volumes.len() as u64,
            size: spec.size,
            is_plus: choices.performance_plus,
            performance_tier: choices.performance_tier.map(str::to_owned),
            on_demand_burst: choices.on_demand_burst,
            limits: limits(spec),
        };
        if kept.as_ref().is_some_and(|kept| *kept != own) {
            let what = format!("{} of the layout to keep", export.name);
            return Err(PlanError::need(what, "has unequal disks; make them equal first"));
        }
        kept = Some(own);
    }
    kept.ok_or_else(|| PlanError::need(export.name.clone(), "has no disks"))
}
