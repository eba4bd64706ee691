//! Volumes that are created, changed and deleted while their host runs.

use crate::database_file::File;
use crate::error::Kind;
use crate::file::{FileKeys, Role, VolumeKeys};
use crate::layout::{self, Export, Host};
pub use crate::new_volume::NewVolume;
use crate::pool;
use crate::volume::{self, Volume};
use weir_catalog::Edition;
use weir_core::{DeviceId, DeviceSpec, VolumeId};
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops};

impl NewVolume {
    /// Returns the volume with a size. On a managed instance it becomes a data file, or a log file if
    /// its name ends in `.ldf`.
    #[must_use]
    pub fn sized(&self, host: &Host, size: Bytes) -> Self {
        let mut new = Self { size: Some(size), ..self.clone() };
        if host.instance.is_some() && new.role.is_none() {
            let is_log = new.name.to_ascii_lowercase().ends_with(".ldf");
            new.role = Some(if is_log { Role::Log } else { Role::Data });
        }
        new
    }
}

/// A resolved volume that can be added to a host.
#[derive(Debug, Clone)]
pub struct Coming {
    /// The volume.
    pub volume: Volume,
    /// Keys of the file, on a managed instance.
    file: Option<FileKeys>,
}

impl Coming {
    /// Takes a volume of the layout that comes to its host when its backend is there.
    #[must_use]
    pub const fn on_backend(volume: Volume) -> Self {
        Self { volume, file: None }
    }
}

impl Host {
    /// Resolves a volume at another size, with the tier and limits of that size.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the edition has no such size or the keys exclude it.
    pub fn resized(
        &self,
        volume: VolumeId,
        size: Bytes,
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        let resized = self.at_size(volume, size, edition)?;
        if let Some(instance) = &self.instance {
            let mut files = self.file_uses();
            let name = &self.volumes[volume.0].name;
            if let Some(own) = files.iter_mut().find(|file| file.volume.name == *name) {
                own.volume = &resized;
            }
            instance.check(&self.name, &files).map_err(|(_, kind)| kind)?;
        }
        Ok(resized)
    }

    /// Resolves a volume at another size, whether or not an instance has room for it.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the edition has no such size or the keys exclude it.
    pub fn at_size(
        &self,
        volume: VolumeId,
        size: Bytes,
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        pool::check_alone(&self.volumes[volume.0])?;
        check_resizable(&self.volumes[volume.0])?;
        self.volumes[volume.0].at_size(size, edition).map_err(|fault| fault.kind)
    }

    /// Returns whether an instance has room for its files. Other hosts always have.
    #[must_use]
    pub fn has_room_for_files(&self) -> bool {
        let instance = self.instance.as_ref();
        instance.is_none_or(|own| own.check(&self.name, &self.file_uses()).is_ok())
    }

    /// Resolves a volume over a backend of `size`.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the backend is too small, or the edition has no such size.
    pub fn over_backend(
        &self,
        volume: VolumeId,
        size: Bytes,
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        self.volumes[volume.0].over(size, edition).map_err(|fault| fault.kind)
    }

    /// Resolves a volume with the limits of another tier; its size does not change.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the edition has no such tier, or the volume is too large for it.
    pub fn retiered(
        &self,
        volume: VolumeId,
        tier: &str,
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        self.volumes[volume.0].in_tier(tier, edition).map_err(|fault| fault.kind)
    }

    /// Resolves a volume with other provisioned rates, or other limits of its own; a rate that is not given stays.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the volume has neither provisioned rates nor limits of its own, or its family excludes the new ones.
    pub fn rerated(
        &self,
        volume: VolumeId,
        (iops, throughput): (Option<Iops>, Option<BytesPerSec>),
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        let own = &self.volumes[volume.0];
        pool::check_alone(own)?;
        own.with_rates(iops, throughput, edition).map_err(|fault| fault.kind)
    }

    /// Resolves a volume with another cache mode.
    ///
    /// # Errors
    ///
    /// [`Kind::NotCacheable`] if the volume or its host does not allow the mode.
    pub fn recached(
        &self,
        volume: VolumeId,
        mode: CacheMode,
        edition: Option<&Edition>,
    ) -> Result<Volume, Kind> {
        let changed =
            self.volumes[volume.0].with_cache(mode, edition).map_err(|fault| fault.kind)?;
        self.check_cache(&changed)?;
        Ok(changed)
    }

    /// Resolves a new volume on this host.
    ///
    /// # Errors
    ///
    /// [`Kind`] if the edition has no such volume, or the host has no cache for it.
    pub fn coming(&self, new: &NewVolume, edition: Option<&Edition>) -> Result<Coming, Kind> {
        let what = || format!("volume {:?}", new.name);
        let wrong =
            |reason: &str| Err(Kind::Contradiction { what: what(), reason: reason.to_owned() });
        layout::check_name(&new.name).map_err(|fault| fault.kind)?;
        if new.blob && new.checksums {
            return wrong("it is a page blob, which has no checksums; leave them out");
        }
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
                checksums: new.checksums,
                ..VolumeKeys::default()
            };
            let resolved = volume::resolve(&new.name, &keys, edition).map_err(|fault| fault.kind);
            let volume = match resolved {
                Err(Kind::NoEdition { .. }) => {
                    return wrong(
                        "the layout names no edition in which to look up its limits; give it IOPS or \
                         throughput of its own, or make it unlimited",
                    );
                }
                other => other?,
            };
            self.check_cache(&volume)?;
            pool::check_alone(&volume)?;
            return Ok(Coming { volume, file: None });
        };
        let own = new.unlimited || new.iops.is_some() || new.throughput.is_some();
        if new.tier.is_some() || new.family.is_some() || new.cache != CacheMode::None || own {
            return wrong("it is a file of a managed instance, which has only a size and a role");
        }
        let (Some(size), Some(role)) = (new.size, new.role) else {
            return wrong("it is a file of a managed instance; give its size and its role");
        };
        let keys =
            FileKeys { database: new.database.clone(), ..FileKeys::new(&new.name, role, size) };
        let own = instance.volume_of(&keys, edition);
        let own = VolumeKeys { checksums: new.checksums, ..own };
        let volume = volume::resolve(&new.name, &own, edition).map_err(|fault| fault.kind)?;
        Ok(Coming { volume, file: Some(keys) })
    }

    /// Checks that a managed instance has room for another file.
    ///
    /// # Errors
    ///
    /// [`Kind::BeyondLimit`] with the excess.
    pub fn check_room(&self, coming: &Coming) -> Result<(), Kind> {
        let Some(instance) = &self.instance else { return Ok(()) };
        let mut with = self.clone();
        with.take_in(coming, VolumeId(self.volumes.len()), DeviceId(usize::MAX));
        instance.check(&self.name, &with.file_uses()).map_err(|(_, kind)| kind)
    }

    /// Adds a volume under the ids that the engine assigned.
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

    /// Removes a volume that is not a column of a stripe. Its id becomes free.
    pub fn let_go(&mut self, id: VolumeId) {
        self.exports.retain(|export| export.volumes != [id]);
        self.volumes[id.0].name.clear();
        if let Some(file) = self.files.get_mut(id.0).filter(|_| self.instance.is_some()) {
            file.name.clear();
        }
    }
}

/// Checks that the size of a volume is not that of a backend.
fn check_resizable(volume: &Volume) -> Result<(), Kind> {
    let Some(backend) = &volume.backend else { return Ok(()) };
    let reason = format!(
        "its bytes are on its backend {backend}, which Weir does not resize; stop Weir, resize the \
         backend, change the layout and start again"
    );
    Err(Kind::Contradiction { what: format!("volume {:?}", volume.name), reason })
}

fn put<T>(all: &mut Vec<T>, at: usize, one: T) {
    match all.get_mut(at) {
        Some(place) => *place = one,
        None => all.push(one),
    }
}
