//! The arguments of `weir export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weir_export::{Filesystem, Kind, OperatingSystem, Options};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Kind of script.
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub(crate) kind: KindArg,
    /// Layout in use: write only the changes from it. Modules (bicep, terraform) always contain the
    /// whole layout.
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) script: ScriptArgs,
    /// Description of the backup (docs/BACKUP.md), for tsql-backup, ola, dbatools and pgbackrest.
    #[arg(long, value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
    /// Back up to this container instead of the targets' mounts, for example
    /// `https://ACCOUNT.blob.core.windows.net/CONTAINER`; may be repeated.
    #[arg(long = "url", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Make a backup on which no differential backup builds (COPY_ONLY).
    #[arg(long)]
    pub(crate) copy_only: bool,
    /// Write the script to a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Names, devices and settings for a script, which a layout does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct ScriptArgs {
    /// Host to export; required if the layout has several.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Rename a file, disk, volume or stripe of the layout in the script, for example
    /// data=sales_data. May be repeated.
    #[arg(long = "name", value_name = "LAYOUT=NAME", value_parser = pair)]
    pub(crate) names: Vec<(String, String)>,
    /// Mount point of a volume or stripe, for example pool=/var/opt/mssql/data or pool=F:\Data. May
    /// be repeated.
    #[arg(long = "mount", value_name = "NAME=PATH", value_parser = pair)]
    pub(crate) mounts: Vec<(String, String)>,
    /// Device of one volume (NAME=PATH), or of all others (a path with {lun} or {name}). May be
    /// repeated [default: the link by LUN on Azure (SCSI or NVMe, depending on the size of the
    /// machine), the link by name on Google Cloud, a lookup by device name on AWS].
    #[arg(long = "device", value_name = "PATH|NAME=PATH", value_parser = device)]
    pub(crate) devices: Vec<DeviceArg>,
    /// Database of the files for which the layout names none.
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Name of the machine or managed instance (on AWS, its id) [default: a variable of the
    /// script].
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Resource group [default: a variable of the script].
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_group: Option<String>,
    /// Location, for example westeurope [default: a variable of the script].
    #[arg(long, value_name = "LOCATION")]
    pub(crate) location: Option<String>,
    /// Zone, for example 1 [default: a variable of the script, if it needs one].
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// Operating system of a machine that the script creates (az, bicep) [default: linux].
    #[arg(long, value_name = "OS", value_enum)]
    pub(crate) os: Option<OsArg>,
    /// File system on Linux [default: xfs].
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) filesystem: Option<FilesystemArg>,
}

impl ExportArgs {
    /// Returns the options of the exporter, without a backup.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let options = self.script.options()?;
        Ok(Options { urls: self.urls.clone(), copy_only: self.copy_only, ..options })
    }
}

impl ScriptArgs {
    /// Returns the options of the exporter.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let mut device_pattern = None;
        let mut devices = Vec::new();
        for device in &self.devices {
            match device {
                DeviceArg::Of(name, path) => devices.push((name.clone(), path.clone())),
                DeviceArg::Pattern(path) if device_pattern.is_some() => {
                    return Err(format!(
                        "--device {path}: a pattern was already given, and only one can apply to \
                         the other volumes; remove one of the two"
                    ));
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
            os: self.os.map(OsArg::os),
            filesystem: self.filesystem.map(FilesystemArg::kind),
            ..Options::default()
        })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => {
            Err("write the name in the layout, = and the value, for example data=sales".to_owned())
        }
    }
}

/// A device of one volume, or a pattern for all others.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        _ => Err("write NAME=/dev/.., or a path like /dev/disk/azure/data/by-lun/{lun}".to_owned()),
    }
}

/// A kind of script.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KindArg {
    /// T-SQL that grows and adds database files.
    Tsql,
    /// Azure CLI commands for a machine with its disks, or a managed instance.
    Az,
    /// A Bicep module for a machine with its disks, or a managed instance.
    Bicep,
    /// A Terraform module for disks of an existing machine (Azure, AWS, Google Cloud), or a managed
    /// instance.
    Terraform,
    /// Az PowerShell commands for disks of an existing machine, or a managed instance.
    Powershell,
    /// Stripes and file systems on Linux, with mdadm.
    Mdadm,
    /// Stripes, single disks and file systems on Linux, with LVM.
    Lvm,
    /// Stripes and volumes on Windows, with Storage Spaces.
    StorageSpaces,
    /// Lines for /etc/fstab.
    Fstab,
    /// BACKUP DATABASE to the stripes of --backup, RESTORE VERIFYONLY and RESTORE, in T-SQL.
    TsqlBackup,
    /// A call of Ola Hallengren's DatabaseBackup for --backup.
    Ola,
    /// A call of Backup-DbaDatabase of dbatools for --backup.
    Dbatools,
    /// Settings of pgBackRest for --backup.
    Pgbackrest,
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
            Self::TsqlBackup => Kind::TsqlBackup,
            Self::Ola => Kind::Ola,
            Self::Dbatools => Kind::Dbatools,
            Self::Pgbackrest => Kind::Pgbackrest,
        }
    }
}

/// A file system of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

/// The operating system of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OsArg {
    /// Linux; the administrator logs in with an SSH key.
    Linux,
    /// Windows Server; the script asks for the administrator's password.
    Windows,
}

impl OsArg {
    fn os(self) -> OperatingSystem {
        match self {
            Self::Linux => OperatingSystem::Linux,
            Self::Windows => OperatingSystem::Windows,
        }
    }
}
