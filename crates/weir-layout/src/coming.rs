//! Volumes that are made while their host runs, and go.

use crate::error::Kind;
use crate::file::{FileKeys, LimitKeys, Role, VolumeKeys};
use crate::files::File;
use crate::pool;
use crate::resolve::{Export, Host};
use crate::volume::{self, Volume};
use serde::{Deserialize, Serialize};
use weir_catalog::Edition;
use weir_core::{DeviceId, DeviceSpec, VolumeId};
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops};

/// A volume that is to be made: on a managed instance a file, elsewhere a disk. Its keys
/// mean what they mean in a layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// Its size; that of its tier if left out.
    pub size: Option<Bytes>,
    /// Its tier.
    pub tier: Option<String>,
    /// The tier set or family of its tier or size.
    pub family: Option<String>,
    /// The host cache mode.
    #[serde(default)]
    pub cache: CacheMode,
    /// What is in the file, on a managed instance.
    pub role: Option<Role>,
    /// The file's database.
    pub database: Option<String>,
    /// No limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Operations per second of its own: provisioned ones where its family has such.
    pub iops: Option<Iops>,
    /// Bytes per second of its own, likewise.
    pub throughput: Option<BytesPerSec>,
    /// Whether it is a page blob: it knows which pages were written, and snapshots share
    /// them.
    #[serde(default)]
    pub blob: bool,
}

impl NewVolume {
    /// The same, of that size on that host: on a managed instance it is a file with data,
    /// or with a log where its name says so.
    #[must_use]
    pub fn sized(&self, host: &Host, size: Bytes) -> Self {
        let mut new = Self { size: Some(size), ..self.clone() };
        if host.instance.is_some() && new.role.is_none() {
            let is_log = new.name.to_ascii_lowercase().ends_with(".ldf");
            new.role = Some(if is_log { Role::Log } else { Role::Data });
        }
        new
    }

    /// Its limits, if it has some of its own that no family provisions.
    fn limits(&self) -> Option<LimitKeys> {
        let own = self.iops.is_some() || self.throughput.is_some();
        let keys = LimitKeys { iops: self.iops, throughput: self.throughput, burst: None };
        (own && self.family.is_none() && self.tier.is_none()).then_some(keys)
    }
}

/// A volume that a host can take in.
#[derive(Debug, Clone)]
pub struct Coming {
    /// The volume.
    pub volume: Volume,
    /// On a managed instance, what it is a file for.
    file: Option<FileKeys>,
}

impl Host {
    /// What a volume would be on this host.
    ///
    /// # Errors
    ///
    /// [`Kind`] where the edition has no such volume, or the host no cache for it.
    pub fn coming(&self, new: &NewVolume, edition: Option<&Edition>) -> Result<Coming, Kind> {
        let what = || format!("volume {:?}", new.name);
        let wrong =
            |reason: &str| Err(Kind::Contradiction { what: what(), reason: reason.to_owned() });
        crate::resolve::check_name(&new.name).map_err(|fault| fault.kind)?;
        let Some(instance) = &self.instance else {
            if new.role.is_some() || new.database.is_some() {
                return wrong("role and database are for files of a managed instance");
            }
            let limits = new.limits();
            let keys = VolumeKeys {
                size: new.size,
                tier: new.tier.clone(),
                family: new.family.clone(),
                cache: new.cache,
                unlimited: new.unlimited,
                iops: new.iops.filter(|_| limits.is_none()),
                throughput: new.throughput.filter(|_| limits.is_none()),
                limits,
                ..VolumeKeys::default()
            };
            let volume = volume::resolve(&new.name, &keys, edition).map_err(|fault| fault.kind)?;
            self.check_cache(&volume)?;
            pool::check_alone(&volume)?;
            return Ok(Coming { volume, file: None });
        };
        let own = new.unlimited || new.iops.is_some() || new.throughput.is_some();
        if new.tier.is_some() || new.family.is_some() || new.cache != CacheMode::None || own {
            return wrong("it is a file of a managed instance, which has a size and a role alone");
        }
        let (Some(size), Some(role)) = (new.size, new.role) else {
            return wrong("it is a file of a managed instance; give its size and its role");
        };
        let keys =
            FileKeys { database: new.database.clone(), ..FileKeys::new(&new.name, role, size) };
        let volume = instance.volume_of(&keys, edition);
        let volume = volume::resolve(&new.name, &volume, edition).map_err(|fault| fault.kind)?;
        Ok(Coming { volume, file: Some(keys) })
    }

    /// Whether a managed instance has room for one more file.
    ///
    /// # Errors
    ///
    /// [`Kind`], by how much it has not.
    pub fn check_room(&self, coming: &Coming) -> Result<(), Kind> {
        let Some(instance) = &self.instance else { return Ok(()) };
        let mut with = self.clone();
        with.take_in(coming, VolumeId(self.volumes.len()), DeviceId(usize::MAX));
        instance.check(&self.name, &with.file_uses()).map_err(|(_, kind)| kind)
    }

    /// Takes a volume in, as the engine numbered it.
    pub fn take_in(&mut self, coming: &Coming, id: VolumeId, device: DeviceId) {
        let Coming { volume, file } = coming;
        let name = volume.name.clone();
        let size = volume.spec.size;
        self.exports.push(Export { name, device, volumes: vec![id], unit: None, size });
        put(&mut self.spec.volumes, id.0, volume.spec.clone());
        put(&mut self.volumes, id.0, volume.clone());
        if let Some(keys) = file {
            put(&mut self.files, id.0, File::new(keys, device, Bytes::ZERO));
        }
        if device.0 == self.spec.devices.len() {
            self.spec.devices.push(DeviceSpec::Volume(id.0));
        }
    }

    /// A volume goes; its number is free. Not a column of a stripe.
    pub fn let_go(&mut self, id: VolumeId) {
        self.exports.retain(|export| export.volumes != [id]);
        self.volumes[id.0].name.clear();
        if let Some(file) = self.files.get_mut(id.0).filter(|_| self.instance.is_some()) {
            file.name.clear();
        }
    }
}

fn put<T>(all: &mut Vec<T>, at: usize, one: T) {
    match all.get_mut(at) {
        Some(place) => *place = one,
        None => all.push(one),
    }
}
