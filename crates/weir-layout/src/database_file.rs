//! Database files, as data.

use crate::file::{FileKeys, Role};
use crate::volume::Volume;
use weir_core::DeviceId;
use weir_units::Bytes;

/// The growth of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Growth increment.
    pub by: Bytes,
    /// Maximum size. Files on one volume or stripe share its free room equally. A file of a managed
    /// instance may have to stop earlier.
    pub most: Bytes,
    /// Position of the grown part on the device, if it does not follow the file. Growth is behind
    /// all files.
    pub room: Option<Bytes>,
}

/// A database file of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Name.
    pub name: String,
    /// Database, if the layout states it.
    pub database: Option<String>,
    /// Role.
    pub role: Role,
    /// Size in the layout.
    pub size: Bytes,
    /// Allocated bytes, if the layout states them.
    pub used: Option<Bytes>,
    /// Growth when the file is full; `None` if it does not grow.
    pub growth: Option<Growth>,
    /// Maximum size in the layout.
    pub max_size: Option<Bytes>,
    /// Device of its export.
    pub device: DeviceId,
    /// Offset of its first byte on the device.
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

    /// Returns the growth. Only data files grow: a checkpoint makes room in a log, tempdb reuses its
    /// pages, and a backup does not change.
    pub(crate) fn grows(&self) -> Option<Growth> {
        self.growth.filter(|_| self.role == Role::Data)
    }
}

/// A file of a managed instance with its volume.
#[derive(Debug, Clone, Copy)]
pub struct FileUse<'a> {
    /// The file.
    pub file: &'a File,
    /// The volume.
    pub volume: &'a Volume,
}
