//! Values that a layout does not contain. An option that a kind does not use is an error rather
//! than ignored.

use crate::error::ExportError;
use crate::kind::Kind;
use weir_units::Bytes;

/// A file system of Linux.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filesystem {
    /// XFS.
    #[default]
    Xfs,
    /// ext4.
    Ext4,
}

impl Filesystem {
    /// Returns the name that `mkfs` and /etc/fstab use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
        }
    }
}

/// The operating system of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux; the administrator logs in with an SSH key.
    #[default]
    Linux,
    /// Windows Server.
    Windows,
}

impl OperatingSystem {
    /// Returns the name that `--os` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }
}

/// Values that a layout does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The host, if the layout has several.
    pub host: Option<String>,
    /// Names in the target, for items whose name differs from the layout.
    pub names: Vec<(String, String)>,
    /// Mount points of volumes and stripes.
    pub mounts: Vec<(String, String)>,
    /// Devices of volumes, by name.
    pub devices: Vec<(String, String)>,
    /// The devices of all other volumes: a path with `{lun}` or `{name}`.
    pub device_pattern: Option<String>,
    /// The database of files whose layout states none.
    pub database: Option<String>,
    /// The name of the machine or instance in the cloud.
    pub machine: Option<String>,
    /// The resource group.
    pub resource_group: Option<String>,
    /// The location.
    pub location: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// The operating system of a machine that the script creates; Linux by default.
    pub os: Option<OperatingSystem>,
    /// The file system; XFS by default.
    pub filesystem: Option<Filesystem>,
    /// The backup, for kinds that write one.
    pub backup: Option<Backup>,
    /// Containers to back up to, instead of the targets' mounts.
    pub urls: Vec<String>,
    /// True if the backup is a copy that is no base for differential backups.
    pub copy_only: bool,
}

/// A backup, placed on its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file of the description.
    pub file: String,
    /// The sources, by their names in the layout.
    pub sources: Vec<String>,
    /// The target of each stripe: a file, a volume or a stripe of the layout.
    pub stripes: Vec<String>,
    /// The maximum transfer size.
    pub max_transfer: Bytes,
    /// The number of buffers, if it is stated.
    pub buffer_count: Option<u32>,
    /// True if it is compressed.
    pub is_compressed: bool,
    /// Number of processors that compress.
    pub encoders: u32,
    /// Maximum size of the backup in bytes.
    pub bytes: Bytes,
}

const CLOUD: &[Kind] = &[Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell];
const MACHINES: &[Kind] = &[Kind::Az, Kind::Bicep];
const LINUX: &[Kind] = &[Kind::Mdadm, Kind::Lvm, Kind::Fstab];
const DEVICES: &[Kind] = &[Kind::Mdadm, Kind::Lvm];
const BACKUPS: &[Kind] = &[Kind::TsqlBackup, Kind::Ola, Kind::Dbatools, Kind::Pgbackrest];
const COPIES: &[Kind] = &[Kind::TsqlBackup, Kind::Ola, Kind::Dbatools];
const DATABASES: &[Kind] =
    &[Kind::Tsql, Kind::TsqlBackup, Kind::Ola, Kind::Dbatools, Kind::Pgbackrest];
const MOUNTED: &[Kind] = &[
    Kind::Tsql,
    Kind::StorageSpaces,
    Kind::Fstab,
    Kind::TsqlBackup,
    Kind::Ola,
    Kind::Dbatools,
    Kind::Pgbackrest,
];

impl Options {
    /// Checks that the kind uses every option given.
    pub(crate) fn check(&self, kind: Kind) -> Result<(), ExportError> {
        let pair = |pairs: &[(String, String)]| {
            pairs.first().map(|(name, value)| format!("{name}={value}"))
        };
        let filesystem = self.filesystem.map(|own| own.name().to_owned());
        let os = self.os.map(|own| own.name().to_owned());
        let given: [(&str, Option<String>, &[Kind]); 13] = [
            ("--mount", pair(&self.mounts), MOUNTED),
            ("--device", pair(&self.devices), DEVICES),
            ("--device", self.device_pattern.clone(), DEVICES),
            ("--database", self.database.clone(), DATABASES),
            ("--machine", self.machine.clone(), CLOUD),
            ("--resource-group", self.resource_group.clone(), CLOUD),
            ("--location", self.location.clone(), CLOUD),
            ("--zone", self.zone.clone(), CLOUD),
            ("--os", os, MACHINES),
            ("--filesystem", filesystem, LINUX),
            ("--backup", self.backup.as_ref().map(|own| own.file.clone()), BACKUPS),
            ("--url", self.urls.first().cloned(), BACKUPS),
            ("--copy-only", self.copy_only.then(String::new), COPIES),
        ];
        for (option, value, kinds) in &given {
            let Some(value) = value else { continue };
            if !kinds.contains(&kind) {
                let others: Vec<&str> = kinds.iter().map(|own| own.name()).collect();
                let reason = format!(
                    "{kind} scripts do not use it; leave it out, or use --as {}",
                    others.join(", ")
                );
                return Err(refused(format!("{option} {value}"), reason));
            }
            check_printable(option, value)?;
        }
        for (option, pairs) in
            [("--name", &self.names), ("--mount", &self.mounts), ("--device", &self.devices)]
        {
            check_pairs(option, pairs)?;
        }
        check_word("--location", self.location.as_deref(), false)?;
        check_word("--zone", self.zone.as_deref(), true)?;
        check_mounts(kind, &self.mounts)?;
        check_database(self.database.as_deref())?;
        match &self.device_pattern {
            Some(path) if !path.contains("{lun}") && !path.contains("{name}") => Err(refused(
                format!("--device {path}"),
                "this path would be the device of every disk; put {lun} or {name} into it, or \
                 write NAME=PATH"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the options of one kind, of those given for several. An option that only others use is
    /// left out; one that none uses stays, and is refused.
    #[must_use]
    pub fn for_one_of(&self, kind: Kind, kinds: &[Kind]) -> Self {
        let mut own = self.clone();
        let is_of_others = |users: &[Kind]| {
            !users.contains(&kind) && kinds.iter().any(|other| users.contains(other))
        };
        if is_of_others(MOUNTED) {
            own.mounts.clear();
        }
        if is_of_others(DEVICES) {
            own.devices.clear();
            own.device_pattern = None;
        }
        if is_of_others(DATABASES) {
            own.database = None;
        }
        if is_of_others(CLOUD) {
            (own.machine, own.resource_group, own.location, own.zone) = (None, None, None, None);
        }
        if is_of_others(MACHINES) {
            own.os = None;
        }
        if is_of_others(LINUX) {
            own.filesystem = None;
        }
        own
    }

    /// Returns the mount point of a volume or stripe, if it is given.
    pub(crate) fn mount_of(&self, own: &str) -> Option<&str> {
        self.mounts.iter().find(|(name, _)| name == own).map(|(_, path)| path.as_str())
    }

    /// Returns the name of an item in the target.
    pub(crate) fn name_of(&self, own: &str) -> String {
        let given = self.names.iter().find(|(name, _)| name == own);
        given.map_or_else(|| own.to_owned(), |(_, name)| name.clone())
    }
}

pub(crate) fn refused(option: String, reason: String) -> ExportError {
    ExportError::Option { option, reason }
}

fn check_pairs(option: &str, pairs: &[(String, String)]) -> Result<(), ExportError> {
    for (at, (name, value)) in pairs.iter().enumerate() {
        check_printable(&format!("{option} {name}"), value)?;
        if pairs[..at].iter().any(|(before, _)| before == name) {
            let reason = format!("{name} is given twice; keep one");
            return Err(refused(format!("{option} {name}={value}"), reason));
        }
    }
    Ok(())
}

/// Folders of Linux that a mount would hide.
const SYSTEM: [&str; 11] =
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys"];

/// Folders below system folders where mounts are usual.
const OPEN: [(&str, &str); 2] = [("usr", "local"), ("run", "media")];

/// Returns whether a path is a folder of the system, or below one that allows no mounts.
fn is_system(parts: &[&str]) -> bool {
    match parts {
        [first, second, _, ..] if OPEN.contains(&(first, second)) => false,
        [first, ..] => *first == "usr" || SYSTEM.contains(first),
        [] => false,
    }
}

/// Checks that a mount point is absolute, is where its path says, and hides no folder of the
/// system.
fn check_mounts(kind: Kind, mounts: &[(String, String)]) -> Result<(), ExportError> {
    for (name, path) in mounts {
        let refuse =
            |reason: &str| Err(refused(format!("--mount {name}={path}"), reason.to_owned()));
        let parts: Vec<&str> =
            path.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).collect();
        if path.split(['/', '\\']).any(|part| part == "..") {
            return refuse("a mount point cannot contain ..; write the resulting path");
        }
        if path.starts_with('/') && parts.is_empty() {
            return refuse("this is the root, which contains the system; give a folder below it");
        }
        if path.starts_with('/') && is_system(&parts) {
            return refuse(
                "this is a folder of the system, which a mount would hide; give another one, like \
                 /mnt/data or /var/opt/mssql/data",
            );
        }
        // A folder can carry a volume, but Storage Spaces assigns letters only.
        let is_drive = parts.first().is_some_and(|part| part.eq_ignore_ascii_case("C:"));
        if is_drive && (parts.len() == 1 || kind == Kind::StorageSpaces) {
            return refuse("C: is the drive of Windows; give another letter, like F:");
        }
    }
    Ok(())
}

/// Rejects system databases, whose files are not laid out. Files of tempdb have a role of their
/// own.
fn check_database(name: Option<&str>) -> Result<(), ExportError> {
    const SYSTEM: [&str; 4] = ["master", "model", "msdb", "tempdb"];
    match name.filter(|name| SYSTEM.iter().any(|own| own.eq_ignore_ascii_case(name))) {
        Some(name) => Err(refused(
            format!("--database {name}"),
            "this is a system database of SQL Server; give another one (files of tempdb have role \
             = \"tempdb\" in the layout)"
                .to_owned(),
        )),
        None => Ok(()),
    }
}

/// Checks a zone or a location. Azure also writes locations with spaces, like West Europe.
fn check_word(option: &str, place: Option<&str>, is_word: bool) -> Result<(), ExportError> {
    const MOST: usize = 64;
    let Some(place) = place else { return Ok(()) };
    let count = place.chars().count();
    let reason = if place.trim() != place {
        "it starts or ends with a space; remove the space".to_owned()
    } else if is_word && place.contains(char::is_whitespace) {
        "it contains a space, which no zone does; write it like 1 or europe-west1-b".to_owned()
    } else if count > MOST {
        format!("it has {count} characters, more than the {MOST} of any cloud's location or zone")
    } else {
        return Ok(());
    };
    Err(refused(format!("{option} {place}"), reason))
}

fn check_printable(option: &str, value: &str) -> Result<(), ExportError> {
    if value.is_empty() {
        return Err(refused(option.to_owned(), "it is empty; give it a value".to_owned()));
    }
    if value.chars().any(char::is_control) {
        let reason = "it contains a line break or another control character, which a script cannot \
                      contain";
        return Err(refused(format!("{option} {value:?}"), reason.to_owned()));
    }
    Ok(())
}
