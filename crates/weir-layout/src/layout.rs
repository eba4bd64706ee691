//! A resolved layout: hosts, volumes and exports.

use crate::blob::Blob;
use crate::clients::Access;
use crate::database_file::File;
use crate::error::{self, Fault, Kind, LayoutError, Wrong};
use crate::file::FileSystem;
use crate::instance::Instance;
use crate::luns::lowest;
use crate::volume::Volume;
use std::collections::BTreeSet;
use weir_catalog::{Interface, MachineTraits};
use weir_core::{CacheMode, DeviceId, HostSpec, Place, VolumeId};
use weir_units::{Bytes, nearest};

/// The side of a machine that remote disks pass, in words.
pub(crate) const TO_REMOTE: &str = "to remote storage";

/// A layout, resolved against the catalog.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The name of the edition, if the layout has one.
    pub edition: Option<String>,
    /// The region of its prices, if the layout states it.
    pub region: Option<String>,
    /// The cloud provider of the edition ([`provider`](weir_catalog::Edition::provider)).
    pub provider: Option<String>,
    /// The hosts, at least one.
    pub hosts: Vec<Host>,
    /// Settings of page blobs, if they are served.
    pub blob: Option<Blob>,
    /// The clients of the exports.
    pub access: Access,
}

/// A host with its volumes, stripes and exports.
#[derive(Debug, Clone)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Machine size in the edition, if it has one.
    pub size: Option<String>,
    /// Series of the size. A size may be in several series with different limits.
    pub series: Option<String>,
    /// Traits of the machine that a resize cannot change, or only with preparation; `None` without a size.
    pub traits: Option<MachineTraits>,
    /// True if the licence is owned rather than rented with the machine.
    pub licence_owned: bool,
    /// File system of its disks, if the layout states it.
    pub filesystem: Option<FileSystem>,
    /// Input of the engine.
    pub spec: HostSpec,
    /// The volumes, in the order of [`HostSpec::volumes`].
    pub volumes: Vec<Volume>,
    /// Served devices: stripes, and volumes that are not columns.
    pub exports: Vec<Export>,
    /// The database files, in the layout's order.
    pub files: Vec<File>,
    /// Managed instance, if it is one. Each of its files is a volume.
    pub instance: Option<Instance>,
    /// Notes for the user, for example about a limit that is not published.
    pub notes: Vec<String>,
}

/// A device with its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Name.
    pub name: String,
    /// Device.
    pub device: DeviceId,
    /// Volumes: one, or the columns of a stripe.
    pub volumes: Vec<VolumeId>,
    /// Stripe unit; `None` for a volume.
    pub unit: Option<Bytes>,
    /// Size.
    pub size: Bytes,
}

impl Layout {
    /// Maximum size of a layout file.
    pub const MAX_SIZE: Bytes = Bytes::mib(4);
    /// Maximum number of volumes of a layout, and of its database files.
    pub const MAX_VOLUMES: usize = 10_000;
    /// Maximum number of hosts of a layout.
    pub const MAX_HOSTS: usize = 1_000;

    /// Returns the error for a file above [`MAX_SIZE`](Self::MAX_SIZE).
    #[must_use]
    pub fn too_large(file: &str) -> LayoutError {
        let place = error::Place { file: file.to_owned(), at: None };
        LayoutError { place, kind: Kind::TooLarge { most: Self::MAX_SIZE } }
    }

    /// Returns an export by name, with the index of its host.
    ///
    /// # Errors
    ///
    /// [`Kind::Missing`], with the nearest name. `who` is the subject of the message.
    pub fn export(&self, who: &str, name: &str) -> Result<(usize, &Export), Kind> {
        let all = || {
            let hosts = self.hosts.iter().enumerate();
            hosts.flat_map(|(index, host)| host.exports.iter().map(move |e| (index, e)))
        };
        all().find(|(_, export)| export.name == name).ok_or_else(|| Kind::Missing {
            what: who.to_owned(),
            name: name.to_owned(),
            near: nearest(name, all().map(|(_, export)| export.name.as_str())).map(str::to_owned),
        })
    }

    /// Returns a volume by name, with the index of its host.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<(usize, VolumeId)> {
        self.hosts.iter().enumerate().find_map(|(index, host)| {
            let at = host.volumes.iter().position(|v| v.name == name)?;
            Some((index, VolumeId(at)))
        })
    }
}

impl Host {
    /// Returns the interface of the machine's remote disks, if the edition states it for the size.
    #[must_use]
    pub fn interface(&self) -> Option<Interface> {
        self.traits.as_ref()?.interface
    }

    pub(crate) fn new(name: String, size: Option<String>, spec: HostSpec) -> Self {
        Self {
            name,
            size,
            series: None,
            traits: None,
            licence_owned: false,
            filesystem: None,
            spec,
            volumes: Vec::new(),
            exports: Vec::new(),
            files: Vec::new(),
            instance: None,
            notes: Vec::new(),
        }
    }

    /// Returns the size with its series, like `ebdsv5-nvme/Standard_E16bds_v5`, which an edition finds
    /// even if several series have the size.
    #[must_use]
    pub fn qualified_size(&self) -> Option<String> {
        let size = self.size.as_ref()?;
        Some(self.series.as_ref().map_or(size.clone(), |series| format!("{series}/{size}")))
    }

    /// Checks that the host has a cache if a volume needs one.
    pub(crate) fn check_cache(&self, volume: &Volume) -> Result<(), Kind> {
        if volume.spec.cache != CacheMode::None && self.spec.cache.is_none() {
            return Err(no_cache(&volume.name, &self.name, self.size.as_deref()));
        }
        Ok(())
    }

    /// Returns the number of each remote volume, in the order of the volumes: the stated one, or the
    /// lowest free one.
    #[must_use]
    pub fn luns(&self) -> Vec<Option<u32>> {
        let mut taken: BTreeSet<u32> = self.volumes.iter().filter_map(|own| own.lun).collect();
        let mut number = |volume: &Volume| match volume.lun {
            _ if volume.spec.place == Place::Local || volume.is_gone() => None,
            Some(lun) => Some(lun),
            None => Some(lowest(&mut taken)),
        };
        self.volumes.iter().map(&mut number).collect()
    }
}

/// Checks that the number of a volume is free on its host.
pub(crate) fn check_free(host: &Host, volume: &Volume) -> Result<(), Wrong> {
    let Some(lun) = volume.lun else { return Ok(()) };
    match host.volumes.iter().find(|other| other.lun == Some(lun)) {
        Some(other) => Err((
            "lun",
            format!("lun = {lun} is already the LUN of {:?}; choose another", other.name),
        )),
        None => Ok(()),
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), Fault> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(fine) {
        return Err(Kind::BadName { name: name.to_owned() }.at("name"));
    }
    Ok(())
}

fn no_cache(volume: &str, host: &str, size: Option<&str>) -> Kind {
    let reason = match size {
        Some(size) => format!(
            "no cache size is published for {size} (give the host cache = {{ size = \"..\" }} to \
             assume one)"
        ),
        None => format!("host {host:?} has no cache (give it cache = {{ size = \"..\" }})"),
    };
    Kind::NotCacheable { volume: volume.to_owned(), reason }
}
