//! Volumes that are made while their host runs, and go.

use crate::error::Kind;
use crate::file::{CacheKey, FileKeys, Role, VolumeKeys};
use crate::files::File;
use crate::resolve::{Export, Host};
use crate::volume::{self, Volume};
use serde::{Deserialize, Serialize};
use weir_catalog::Edition;
use weir_core::{DeviceId, DeviceSpec, VolumeId};
use weir_units::Bytes;

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
    pub cache: CacheKey,
    /// What is in the file, on a managed instance.
    pub role: Option<Role>,
    /// The file's database.
    pub database: Option<String>,
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
            let keys = VolumeKeys {
                size: new.size,
                tier: new.tier.clone(),
                family: new.family.clone(),
                cache: new.cache,
                ..VolumeKeys::default()
            };
            let volume = volume::resolve(&new.name, &keys, edition).map_err(|fault| fault.kind)?;
            self.check_cache(&volume)?;
            return Ok(Coming { volume, file: None });
        };
        if new.tier.is_some() || new.family.is_some() || new.cache != CacheKey::None {
            return wrong("it is a file of a managed instance, which has a size and a role alone");
        }
        let (Some(size), Some(role)) = (new.size, new.role) else {
            return wrong("it is a file of a managed instance; give its size and its role");
        };
        let keys = FileKeys {
            name: new.name.clone(),
            host: None,
            database: new.database.clone(),
            role,
            size,
            used: None,
            growth: None,
            max_size: None,
            on: None,
        };
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
