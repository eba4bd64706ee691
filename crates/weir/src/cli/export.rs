//! The arguments of `weir export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weir_export::{Filesystem, Kind, Options};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// The kind of script.
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub(crate) kind: KindArg,
    /// A layout that is there at present: only what changes is exported; a module (bicep,
    /// terraform) has all.
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) from: Option<PathBuf>,
    /// The host, where the layout has several.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// What a file, volume or stripe is called there, if not as in the layout: data=sales_data;
    /// may be repeated.
    #[arg(long = "name", value_name = "LAYOUT=NAME", value_parser = pair)]
    pub(crate) names: Vec<(String, String)>,
    /// Where a volume or stripe is mounted: pool=/var/opt/mssql/data or pool=F:\Data; may be
    /// repeated.
    #[arg(long = "mount", value_name = "NAME=PATH", value_parser = pair)]
    pub(crate) mounts: Vec<(String, String)>,
    /// The device of a volume, NAME=PATH, or of all others a path with {lun} or {name} in it; may
    /// be repeated [default: /dev/disk/azure/scsi1/lun{lun}].
    #[arg(long = "device", value_name = "PATH|NAME=PATH", value_parser = device)]
    pub(crate) devices: Vec<DeviceArg>,
    /// The database of files whose layout says none.
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// The machine or managed instance, as the cloud calls it; else a variable of the script.
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// The resource group; else a variable of the script.
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_group: Option<String>,
    /// The location; else a variable of the script.
    #[arg(long, value_name = "LOCATION")]
    pub(crate) location: Option<String>,
    /// The zone; else a variable of the script, where one is needed.
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// The file system on Linux [default: xfs].
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) filesystem: Option<FilesystemArg>,
    /// Write the script to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

impl ExportArgs {
    /// What the layout does not say.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let mut device_pattern = None;
        let mut devices = Vec::new();
        for device in &self.devices {
            match device {
                DeviceArg::Of(name, path) => devices.push((name.clone(), path.clone())),
                DeviceArg::Pattern(path) if device_pattern.is_some() => {
                    return Err(format!("--device {path}: one path is for all others; keep one"));
                }
                DeviceArg::Pattern(path) => device_pattern = Some(path.clone()),
            }
        }
        Ok(Options {
            host: self.host.clone(),
            names: self.names.clone(),
            mounts: self.mounts.clone(),
            devices,
            device_pattern,
            database: self.database.clone(),
            machine: self.machine.clone(),
            resource_group: self.resource_group.clone(),
            location: self.location.clone(),
            zone: self.zone.clone(),
            filesystem: self.filesystem.map(FilesystemArg::kind),
        })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write what the layout calls it, =, and the rest, like data=sales".to_owned()),
    }
}

/// One device, or a pattern of all.
#[derive(Debug, Clone)]
pub(crate) enum DeviceArg {
    Of(String, String),
    Pattern(String),
}

fn device(text: &str) -> Result<DeviceArg, String> {
    if text.starts_with('/') {
        return Ok(DeviceArg::Pattern(text.to_owned()));
    }
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && path.starts_with('/') => {
            Ok(DeviceArg::Of(name.to_owned(), path.to_owned()))
        }
        _ => Err("write NAME=/dev/.., or a path like /dev/disk/azure/scsi1/lun{lun}".to_owned()),
    }
}

/// A kind of script.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KindArg {
    /// Database files, in T-SQL.
    Tsql,
    /// Disks and a machine, or a managed instance, by the Azure CLI.
    Az,
    /// The same in Bicep.
    Bicep,
    /// The same in Terraform, and disks of AWS and Google Cloud.
    Terraform,
    /// The same by the Az module of PowerShell.
    Powershell,
    /// Stripes and file systems on Linux, by mdadm.
    Mdadm,
    /// Stripes, disks and file systems on Linux, by LVM.
    Lvm,
    /// Stripes and volumes on Windows.
    StorageSpaces,
    /// What Linux mounts.
    Fstab,
}

impl KindArg {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Tsql => Kind::Tsql,
            Self::Az => Kind::Az,
            Self::Bicep => Kind::Bicep,
            Self::Terraform => Kind::Terraform,
            Self::Powershell => Kind::Powershell,
            Self::Mdadm => Kind::Mdadm,
            Self::Lvm => Kind::Lvm,
            Self::StorageSpaces => Kind::StorageSpaces,
            Self::Fstab => Kind::Fstab,
        }
    }
}

/// A file system of Linux.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FilesystemArg {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

impl FilesystemArg {
    fn kind(self) -> Filesystem {
        match self {
            Self::Xfs => Filesystem::Xfs,
            Self::Ext4 => Filesystem::Ext4,
        }
    }
}
