//! The host of a layout as scripts see it: disks, stripes and files.

use crate::error::ExportError;
use crate::options::Options;
use std::collections::BTreeMap;
use weir_catalog::{Interface, MachineTraits};
use weir_core::{CacheMode, Place};
use weir_layout::file::FileSystem;
use weir_layout::{Export, File, Host, Instance, Layout, Role, Volume};
use weir_units::Bytes;

/// A layout with its file name.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name, as the script states it.
    pub name: &'a str,
    /// The layout.
    pub layout: &'a Layout,
}

/// A host of a layout.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The name of the layout.
    pub(crate) layout: String,
    pub(crate) edition: Option<String>,
    /// The cloud of the edition.
    pub(crate) cloud: Option<Cloud>,
    /// The name of the host.
    pub(crate) host: String,
    /// The size of the machine, if there is one.
    pub(crate) size: Option<String>,
    /// Traits of the machine that a resize cannot change, or only with preparation; `None` without a size.
    pub(crate) traits: Option<MachineTraits>,
    /// True if the licence is owned: SQL Server for an instance, Windows Server for a machine.
    pub(crate) licence_owned: bool,
    /// The file system of the disks, if the layout states it.
    pub(crate) filesystem: Option<FileSystem>,
    pub(crate) instance: Option<Instance>,
    /// The IOPS of an instance with one quota for all files.
    pub(crate) quota: Option<u64>,
    /// The volumes of a machine.
    pub(crate) disks: Vec<Disk>,
    /// LUNs of attached disks by name, and whether the layout states them.
    pub(crate) luns: BTreeMap<String, (u32, bool)>,
    /// Devices with file systems: stripes, and volumes that are not part of one.
    pub(crate) spaces: Vec<Space>,
    pub(crate) files: Vec<DbFile>,
}

/// A cloud that sells disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cloud {
    Azure,
    Aws,
    Google,
}

impl Cloud {
    /// Returns the cloud of a provider, as editions name it; `None` if there are no scripts for it.
    fn of_provider(provider: &str) -> Option<Self> {
        match provider {
            "azure" => Some(Self::Azure),
            "aws" => Some(Self::Aws),
            "google" => Some(Self::Google),
            _ => None,
        }
    }
}

/// A volume of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The name in the layout.
    pub(crate) own: String,
    /// The name in the target.
    pub(crate) name: String,
    pub(crate) family: Option<String>,
    pub(crate) tier: Option<String>,
    pub(crate) size: Bytes,
    /// Operations and bytes per second, if they are bought separately.
    pub(crate) bought: Option<(u64, u64)>,
    pub(crate) cache: CacheMode,
    pub(crate) is_local: bool,
    /// True if the layout states limits explicitly.
    pub(crate) has_own_limits: bool,
    pub(crate) on_demand_burst: bool,
    pub(crate) performance_plus: bool,
    pub(crate) performance_tier: Option<String>,
}

/// A device with a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) own: String,
    pub(crate) name: String,
    /// The stripe unit.
    pub(crate) unit: Option<Bytes>,
    /// The disks, by their names in the layout.
    pub(crate) columns: Vec<String>,
    pub(crate) size: Bytes,
    /// True if the device is on the machine's local disk.
    pub(crate) is_local: bool,
}

/// A database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DbFile {
    pub(crate) own: String,
    /// The logical name.
    pub(crate) name: String,
    pub(crate) database: Option<String>,
    pub(crate) role: Role,
    pub(crate) size: Bytes,
    pub(crate) growth: Option<Bytes>,
    pub(crate) max_size: Option<Bytes>,
    /// The volume or stripe, by its name in the layout; `None` on a managed instance.
    pub(crate) on: Option<String>,
    /// The tier of the blob, on a managed instance.
    pub(crate) tier: Option<String>,
}

impl Site {
    /// Returns the interface of the machine's remote disks, if the edition states it for the size.
    pub(crate) fn interface(&self) -> Option<Interface> {
        self.traits.as_ref()?.interface
    }

    /// Returns the host called `host`, or the only one.
    pub(crate) fn for_host(
        source: Source<'_>,
        options: &Options,
        host: Option<&str>,
    ) -> Result<Self, ExportError> {
        let Source { name: layout, layout: all } = source;
        let own = host_of(source, host)?;
        let is_machine = own.instance.is_none();
        let volumes = || own.volumes.iter().filter(|volume| is_machine && !volume.is_gone());
        let exports = own.exports.iter().filter(|_| is_machine);
        let numbered = own.volumes.iter().zip(own.luns()).filter(|_| is_machine);
        let site = Self {
            layout: layout.to_owned(),
            edition: all.edition.clone(),
            cloud: all.provider.as_deref().and_then(Cloud::of_provider),
            host: own.name.clone(),
            size: own.size.clone().filter(|_| is_machine),
            traits: own.traits.clone(),
            licence_owned: own.licence_owned,
            filesystem: own.filesystem,
            instance: own.instance.clone(),
            quota: own.spec.uncached.iops.map(|limit| limit.rate.get()).filter(|_| !is_machine),
            disks: volumes().map(|volume| Disk::from_volume(volume, options)).collect(),
            luns: numbered
                .filter_map(|(own, lun)| Some((own.name.clone(), (lun?, own.lun.is_some()))))
                .collect(),
            spaces: exports.map(|export| Space::from_export(own, export, options)).collect(),
            files: own.files.iter().map(|file| DbFile::from_file(own, file, options)).collect(),
        };
        site.check_files()?;
        unique(site.spaces.iter().map(|space| (&*space.own, &*space.name)), str::to_owned)?;
        for file in &site.files {
            // SQL Server ignores the case of names.
            let beside = site.files.iter().filter(|own| own.database == file.database);
            unique(beside.map(|own| (&*own.own, &*own.name)), str::to_lowercase)?;
        }
        Ok(site)
    }

    /// Checks names of databases, which layouts do not restrict.
    fn check_files(&self) -> Result<(), ExportError> {
        for file in &self.files {
            let name = file.database.as_deref().unwrap_or("database");
            let is_fine = !name.is_empty()
                && name.encode_utf16().count() <= 128
                && !name.chars().any(char::is_control);
            if !is_fine {
                return Err(ExportError::Cannot {
                    layout: self.layout.clone(),
                    what: format!("file {:?}", file.own),
                    kind: "a script",
                    reason: format!(
                        "its database {name:?} is not a valid name: use 1 to 128 characters, and no line \
                         break or other control character"
                    ),
                });
            }
        }
        Ok(())
    }

    /// Returns the disks of a device in the order of its columns.
    pub(crate) fn disks_of(&self, space: &Space) -> Vec<&Disk> {
        space
            .columns
            .iter()
            .filter_map(|own: &String| self.disks.iter().find(|disk| disk.own == *own))
            .collect()
    }

    /// Returns the attached disks, without the machine's local disk.
    pub(crate) fn remote(&self) -> impl Iterator<Item = &Disk> {
        self.disks.iter().filter(|disk| !disk.is_local)
    }
}

/// Checks that names are unique. A script would take the second of two equal names for the first.
pub(crate) fn unique<'a>(
    all: impl Iterator<Item = (&'a str, &'a str)>,
    fold: fn(&str) -> String,
) -> Result<(), ExportError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (own, name) in all {
        if let Some(first) = seen.insert(fold(name), own) {
            return Err(ExportError::SameName {
                name: name.to_owned(),
                first: first.to_owned(),
                second: own.to_owned(),
            });
        }
    }
    Ok(())
}

fn host_of<'a>(source: Source<'a>, host: Option<&str>) -> Result<&'a Host, ExportError> {
    let hosts = &source.layout.hosts;
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let names = names.join(", ");
    let refused = |option: String, reason: String| ExportError::Option { option, reason };
    match (host, &hosts[..]) {
        (None, [only]) => Ok(only),
        (None, _) => Err(refused(
            "--host".to_owned(),
            format!(
                "{} has several hosts, but a script is for one; choose it with --host: {names}",
                source.name
            ),
        )),
        (Some(name), _) => hosts.iter().find(|host| host.name == name).ok_or_else(|| {
            refused(
                format!("--host {name}"),
                format!("{} has no such host; there are: {names}", source.name),
            )
        }),
    }
}

impl Disk {
    fn from_volume(volume: &Volume, options: &Options) -> Self {
        let choices = volume.choices();
        let gate = &volume.spec.limits.gate;
        let rates =
            gate.iops.zip(gate.bytes).map(|(iops, bytes)| (iops.rate.get(), bytes.rate.get()));
        let is_bought = volume.tier.is_none() && volume.family.is_some() && !choices.has_own_limits;
        Self {
            own: volume.name.clone(),
            name: options.name_of(&volume.name),
            family: volume.family.clone(),
            tier: volume.tier.clone(),
            size: volume.spec.size,
            bought: rates.filter(|_| is_bought),
            cache: volume.spec.cache,
            is_local: volume.spec.place == Place::Local,
            has_own_limits: choices.has_own_limits,
            on_demand_burst: choices.on_demand_burst,
            performance_plus: choices.performance_plus,
            performance_tier: choices.performance_tier.map(str::to_owned),
        }
    }

    /// Returns a description for comments.
    pub(crate) fn words(&self) -> String {
        let kind = match (&self.tier, &self.family) {
            (Some(tier), _) => tier.clone(),
            (None, Some(family)) => family.clone(),
            (None, None) => "disk".to_owned(),
        };
        format!("{kind}, {}", self.size)
    }
}

impl Space {
    fn from_export(host: &Host, export: &Export, options: &Options) -> Self {
        let columns = || export.volumes.iter().filter_map(|id| host.volumes.get(id.0));
        Self {
            own: export.name.clone(),
            name: options.name_of(&export.name),
            unit: export.unit,
            columns: columns().map(|volume| volume.name.clone()).collect(),
            size: export.size,
            is_local: columns().all(|volume| volume.spec.place == Place::Local),
        }
    }
}

impl DbFile {
    fn from_file(host: &Host, file: &File, options: &Options) -> Self {
        let on = host.export_of(file).filter(|_| host.instance.is_none());
        Self {
            own: file.name.clone(),
            name: options.name_of(&file.name),
            database: file.database.clone(),
            role: file.role,
            size: file.size,
            growth: file.growth.map(|growth| growth.by),
            max_size: file.max_size,
            on: on.map(|export| export.name.clone()),
            tier: host.volume_of(file).and_then(|volume| volume.tier.clone()),
        }
    }
}
