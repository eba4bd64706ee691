//! Places of database files, and checks of their sizes.

pub use crate::database_file::{File, FileUse, Growth};
use crate::error::{Fault, Kind};
use crate::file::{FileKeys, Role};
use crate::layout::{Export, Host, Layout};
use crate::volume::Volume;
use std::collections::BTreeMap;
use weir_core::DeviceId;
use weir_units::{Bytes, nearest};

/// The unit of growth of databases.
const EXTENT: u64 = 64 << 10;

/// Alignment of files on a volume.
const ALIGNMENT: u64 = 1 << 20;

/// A place for the data of a database: a file of the layout, or a volume or stripe without files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the file, volume or stripe.
    pub name: String,
    /// Size.
    pub size: Bytes,
    /// Index of the host in the layout.
    pub host: usize,
    /// The device of the host.
    pub device: DeviceId,
    /// Offset of its first byte on the device.
    pub base: Bytes,
    /// Role, if it is a file.
    pub role: Option<Role>,
    /// Database, if it is a file and the layout states it.
    pub database: Option<String>,
    /// Allocated bytes, if it is a file and the layout states them.
    pub used: Option<Bytes>,
    /// Growth, if it is a file that grows.
    pub growth: Option<Growth>,
}

impl Place {
    /// Returns the position of a byte on the device.
    #[must_use]
    pub fn address(&self, offset: u64) -> u64 {
        let room = self.growth.and_then(|growth| growth.room);
        match (room, offset.checked_sub(self.size.get())) {
            (Some(room), Some(behind)) => room.get() + behind,
            _ => self.base.get() + offset,
        }
    }
}

impl Layout {
    /// Returns the places for databases, host by host.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            let of_file = |file: &File| Place {
                name: file.name.clone(),
                size: file.size,
                host: at,
                device: file.device,
                base: file.base,
                role: Some(file.role),
                database: file.database.clone(),
                used: file.used,
                growth: file.grows(),
            };
            places.extend(host.files.iter().map(of_file));
            let is_bare = |export: &&Export| host.files.iter().all(|f| f.device != export.device);
            let of_export = |export: &Export| Place {
                name: export.name.clone(),
                size: export.size,
                host: at,
                device: export.device,
                base: Bytes::ZERO,
                role: None,
                database: None,
                used: None,
                growth: None,
            };
            places.extend(host.exports.iter().filter(is_bare).map(of_export));
        }
        places
    }
}

impl Host {
    /// Returns the export of a file.
    #[must_use]
    pub fn export_of(&self, file: &File) -> Option<&Export> {
        self.exports.iter().find(|export| export.device == file.device)
    }

    /// Returns the volume of a file on a managed instance.
    #[must_use]
    pub fn volume_of(&self, file: &File) -> Option<&Volume> {
        self.instance.as_ref()?;
        let export = self.export_of(file)?;
        self.volumes.get(export.volumes.first()?.0)
    }

    /// Returns the files of a managed instance with their volumes.
    #[must_use]
    pub fn file_uses(&self) -> Vec<FileUse<'_>> {
        // Files and volumes have the same order.
        match &self.instance {
            None => Vec::new(),
            Some(_) => self
                .files
                .iter()
                .zip(&self.volumes)
                .filter(|(_, volume)| !volume.is_gone())
                .map(|(file, volume)| FileUse { file, volume })
                .collect(),
        }
    }
}

/// Returns whether a size is not a positive number of whole extents.
fn is_odd(bytes: Bytes) -> bool {
    bytes == Bytes::ZERO || !bytes.get().is_multiple_of(EXTENT)
}

/// Checks that the keys of a file do not contradict each other.
pub(crate) fn check_keys(keys: &FileKeys) -> Result<(), (&'static str, String)> {
    let (size, used, max) = (keys.size, keys.used, keys.max_size);
    match keys.growth {
        Some(growth) if is_odd(growth) => {
            let reason = "it must be a positive multiple of 64 KiB; leave it out if the file does \
                          not grow";
            Err(("growth", format!("growth is {growth}; {reason}")))
        }
        Some(_) if keys.role == Role::Data && is_odd(size) => {
            let size = size.exact();
            Err((
                "size",
                format!(
                    "{size}: the size of a file that grows must be a multiple of 64 \
                                  KiB"
                ),
            ))
        }
        None if max.is_some() => {
            Err(("max_size", "max_size needs growth, the amount by which the file grows".into()))
        }
        _ if max.is_some_and(|max| max < size || is_odd(max)) => {
            let (max, size) = (max.unwrap_or_default(), size.exact());
            let reason = format!(
                "it must be a multiple of 64 KiB and at least the size of the \
                                  file, {size}"
            );
            Err(("max_size", format!("max_size is {max}; {reason}")))
        }
        _ if used.is_some_and(|used| used > size) => {
            let used = used.unwrap_or_default();
            Err((
                "used",
                format!(
                    "used is {used}, more than the size of the file, {size}; change one of \
                         them"
                ),
            ))
        }
        _ if used.is_some() && keys.role != Role::Data => {
            Err(("used", "used is for data files only".into()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_size(size: Bytes) -> Result<(), &'static str> {
    if size == Bytes::ZERO || !size.get().is_multiple_of(512) {
        return Err("a size must be a positive multiple of 512 bytes");
    }
    Ok(())
}

/// Returns the position of the next file on the export called `on`.
pub(crate) fn place(host: &Host, what: &str, on: &str) -> Result<(DeviceId, Bytes), Fault> {
    let Some(export) = host.exports.iter().find(|export| export.name == on) else {
        let what = what.to_owned();
        let kind = if host.volumes.iter().any(|volume| volume.name == on) {
            let reason =
                format!("volume {on:?} is a column of a stripe; put the file on the stripe");
            Kind::Contradiction { what, reason }
        } else {
            let near = nearest(on, host.exports.iter().map(|export| export.name.as_str()))
                .map(str::to_owned);
            Kind::Missing { what, name: on.to_owned(), near }
        };
        return Err(kind.at("on"));
    };
    let last = host.files.iter().rev().find(|file| file.device == export.device);
    let base = last.map_or(0, File::end).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
    Ok((export.device, Bytes::new(base)))
}

/// Divides the free room of volumes and stripes, behind all files, into equal parts for the data
/// files that grow.
pub(crate) fn make_room(host: &mut Host) {
    if host.instance.is_some() {
        return;
    }
    for export in &host.exports {
        let own = |file: &&File| file.device == export.device;
        let count = host.files.iter().filter(|file| own(file) && file.grows().is_some()).count();
        let end = host.files.iter().filter(own).map(File::end).max().unwrap_or(0);
        let mut at = end.next_multiple_of(ALIGNMENT);
        let free = export.size.get().saturating_sub(at);
        let part = free / (count as u64).max(1) / ALIGNMENT * ALIGNMENT;
        let files = host.files.iter_mut().filter(|file| file.device == export.device);
        for file in files.filter(|file| file.role == Role::Data) {
            let Some(growth) = &mut file.growth else { continue };
            let room = part.min(growth.most.get().saturating_sub(file.size.get()));
            growth.most = Bytes::new(file.size.get() + room);
            growth.room = Some(Bytes::new(at));
            at += part;
        }
    }
}

/// Returns a note about growth of files that has no effect.
pub(crate) fn idle_growth(host: &Host) -> Option<String> {
    let idle = host.files.iter().filter(|file| file.growth.is_some() && file.grows().is_none());
    let names: Vec<&str> = idle.map(|file| file.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "growth of {} has no effect: only data files grow; checkpoints free space in a log, \
             and tempdb reuses its pages",
            names.join(", ")
        )
    })
}

/// Returns an error for a data file without `used` if another file of its database has it.
fn unsaid(host: &Host) -> Option<(usize, Kind)> {
    let data = host.files.iter().filter(|file| file.role == Role::Data);
    let at = host.files.iter().position(|file| {
        let is_unsaid = file.role == Role::Data && file.used.is_none();
        is_unsaid
            && data.clone().any(|other| other.used.is_some() && other.database == file.database)
    })?;
    let what = format!("file {:?}", host.files[at].name);
    let reason = "another data file of its database has used; give used for all of them or for \
                  none";
    Some((at, Kind::Contradiction { what, reason: reason.to_owned() }))
}

/// Checks that the files of a host fit. An error has the index of the file.
pub(crate) fn check(host: &Host) -> Result<(), (usize, Kind)> {
    if let Some(unsaid) = unsaid(host) {
        return Err(unsaid);
    }
    if let Some(instance) = &host.instance {
        return instance.check(&host.name, &host.file_uses());
    }
    let mut on: BTreeMap<DeviceId, (u64, u64)> = BTreeMap::new();
    for file in &host.files {
        let (count, end) = on.entry(file.device).or_default();
        *count += 1;
        *end = (*end).max(file.end());
    }
    for (at, file) in host.files.iter().enumerate() {
        let (Some(export), Some((count, end))) = (host.export_of(file), on.get(&file.device))
        else {
            continue;
        };
        if file.end() > export.size.get() {
            let kind = Kind::DoesNotFit {
                export: export.name.clone(),
                files: if *count == 1 { "1 file".to_owned() } else { format!("{count} files") },
                total: Bytes::new(*end),
                size: export.size,
            };
            return Err((at, kind));
        }
    }
    Ok(())
}
