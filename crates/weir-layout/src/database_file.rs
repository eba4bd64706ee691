//! Database files, as data.

use crate::file::{FileKeys, Role};
use crate::volume::Volume;
use weir_core::DeviceId;
use weir_units::Bytes;

/// How a file grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// By how much at a time.
    pub by: Bytes,
    /// Up to which size. Files on one volume or stripe have what it has free in equal
    /// parts; a file of a managed instance may have to stop before.
    pub most: Bytes,
    /// Where on its device the bytes behind its [size](File::size) are, if they do not
    /// follow it: files lie one behind the other, and what grows is behind all of them.
    pub room: Option<Bytes>,
}

/// A database file of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its database, where the layout says one.
    pub database: Option<String>,
    /// What is in it.
    pub role: Role,
    /// Its size, as the layout has it.
    pub size: Bytes,
    /// What of it is allocated, where the layout says so.
    pub used: Option<Bytes>,
    /// How it grows when it is full; `None` if it does not.
    pub growth: Option<Growth>,
    /// Up to where it grows, as the layout has it.
    pub max_size: Option<Bytes>,
    /// The device of the export that it is on.
    pub device: DeviceId,
    /// Its first byte on that.
    pub base: Bytes,
}

impl File {
    pub(crate) fn new(keys: &FileKeys, device: DeviceId, base: Bytes) -> Self {
        Self {
            name: keys.name.clone(),
            database: keys.database.clone(),
            role: keys.role,
            size: keys.size,
            used: keys.used,
            growth: keys.growth.map(|by| Growth {
                by,
                most: keys.max_size.unwrap_or(Bytes::new(u64::MAX)),
                room: None,
            }),
            max_size: keys.max_size,
            device,
            base,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.base.get().saturating_add(self.size.get())
    }

    /// How it grows; only data files do. A log is written round and round and a checkpoint
    /// makes room in it, tempdb uses its pages again, and nothing is added to a backup.
    pub(crate) fn grows(&self) -> Option<Growth> {
        self.growth.filter(|_| self.role == Role::Data)
    }
}

/// A file of a managed instance, and the volume that it is.
#[derive(Debug, Clone, Copy)]
pub struct FileUse<'a> {
    /// The file.
    pub file: &'a File,
    /// The volume.
    pub volume: &'a Volume,
}
