//! The kinds of scripts.

use std::fmt;

/// A kind of script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Database files, in T-SQL.
    Tsql,
    /// Disks and machines, or instances, with the Azure CLI.
    Az,
    /// The same as a Bicep module.
    Bicep,
    /// The same as a Terraform module, also for disks of AWS and Google Cloud.
    Terraform,
    /// The same with the Az module of PowerShell.
    Powershell,
    /// Stripes and file systems on Linux, with mdadm.
    Mdadm,
    /// The same with LVM.
    Lvm,
    /// Stripes and file systems on Windows.
    StorageSpaces,
    /// Mounts of a Linux machine.
    Fstab,
    /// A backup, in T-SQL.
    TsqlBackup,
    /// The same with Ola Hallengren's DatabaseBackup.
    Ola,
    /// The same with dbatools.
    Dbatools,
    /// The same as settings of pgBackRest.
    Pgbackrest,
}

impl Kind {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Tsql,
        Self::Az,
        Self::Bicep,
        Self::Terraform,
        Self::Powershell,
        Self::Mdadm,
        Self::Lvm,
        Self::StorageSpaces,
        Self::Fstab,
        Self::TsqlBackup,
        Self::Ola,
        Self::Dbatools,
        Self::Pgbackrest,
    ];

    /// Returns the name that `--as` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsql => "tsql",
            Self::Az => "az",
            Self::Bicep => "bicep",
            Self::Terraform => "terraform",
            Self::Powershell => "powershell",
            Self::Mdadm => "mdadm",
            Self::Lvm => "lvm",
            Self::StorageSpaces => "storage-spaces",
            Self::Fstab => "fstab",
            Self::TsqlBackup => "tsql-backup",
            Self::Ola => "ola",
            Self::Dbatools => "dbatools",
            Self::Pgbackrest => "pgbackrest",
        }
    }

    /// Returns the usual ending of a file of this kind.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Tsql | Self::TsqlBackup | Self::Ola => "sql",
            Self::Az | Self::Mdadm | Self::Lvm => "sh",
            Self::Bicep => "bicep",
            Self::Terraform => "tf",
            Self::Powershell | Self::StorageSpaces | Self::Dbatools => "ps1",
            Self::Fstab => "fstab",
            Self::Pgbackrest => "conf",
        }
    }

    /// Returns whether the kind creates resources of a cloud.
    pub(crate) fn is_cloud(self) -> bool {
        matches!(self, Self::Az | Self::Bicep | Self::Terraform | Self::Powershell)
    }

    /// Returns whether the kind writes a backup.
    #[must_use]
    pub fn is_backup(self) -> bool {
        matches!(self, Self::TsqlBackup | Self::Ola | Self::Dbatools | Self::Pgbackrest)
    }

    /// Returns whether the kind finds attached disks by LUN.
    pub(crate) fn finds_disks(self) -> bool {
        matches!(self, Self::Mdadm | Self::Lvm | Self::StorageSpaces)
    }

    /// Returns whether the kind describes the whole state, so that anything missing from it is
    /// detached or destroyed.
    pub(crate) fn is_module(self) -> bool {
        matches!(self, Self::Bicep | Self::Terraform)
    }

    /// Returns the sign of a comment.
    pub(crate) fn comment(self) -> &'static str {
        match self {
            Self::Tsql | Self::TsqlBackup | Self::Ola => "-- ",
            Self::Bicep => "// ",
            _ => "# ",
        }
    }

    /// Returns the first line of a shell script.
    pub(crate) fn interpreter(self) -> Option<&'static str> {
        matches!(self, Self::Az | Self::Mdadm | Self::Lvm).then_some("#!/usr/bin/env bash")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
