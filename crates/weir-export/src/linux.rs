//! What shell scripts for a Linux machine have in common: which device a disk is, that it is
//! empty, and the file system that knows of the stripe.

use crate::change::Change;
use crate::error::ExportError;
use crate::options::{Filesystem, Options, refused};
use crate::quote::shell;
use crate::script::Script;
use crate::site::{Cloud, Disk, Space};
use std::collections::BTreeMap;

/// Where the disks of a machine of Azure are found by their LUN.
const DEVICES: &str = "/dev/disk/azure/scsi1/lun{lun}";

/// A device of the layout with its columns.
pub(crate) struct Device<'a> {
    pub(crate) space: &'a Space,
    /// The paths and sizes of its disks.
    pub(crate) columns: Vec<(String, u64)>,
}

/// The start of a script: what every one of them needs.
pub(crate) fn start(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    check_devices(script, change, options)?;
    script.blank();
    script.line("set -euo pipefail");
    script.blank();
    script.lines(FUNCTIONS);
    Ok(())
}

/// Two volumes on one device would write over each other.
fn check_devices(script: &Script, change: &Change, options: &Options) -> Result<(), ExportError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for disk in &change.new.disks {
        // Whose device is not known is asked for where it is needed.
        let Ok(path) = path(script, change, options, disk) else { continue };
        if let Some(first) = seen.insert(path.clone(), &disk.own) {
            return Err(refused(
                format!("--device {}={path}", disk.own),
                format!("it is the device of {first} already; each volume has one of its own"),
            ));
        }
    }
    Ok(())
}

const FUNCTIONS: &str = r#"
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# A disk has to be there, of the size that the layout has, and empty.
check() { # DEVICE BYTES
    local size signatures
    size=$(lsblk --nodeps --bytes --noheadings --output SIZE "$1" | tr -d ' ') || die "$1: is not there"
    [[ $size == "$2" ]] || die "$1: has $size bytes, and the layout $2; is it another disk?"
    signatures=$(wipefs --no-act --noheadings "$1") || die "$1: cannot be read"
    [[ -z $signatures ]] || die "$1: is not empty, nothing is done to it: $signatures"
}
"#;

/// The paths and sizes of a device's disks.
pub(crate) fn device<'a>(
    script: &Script,
    change: &'a Change,
    options: &Options,
    space: &'a Space,
) -> Result<Device<'a>, ExportError> {
    let site = &change.new;
    let mut columns = Vec::new();
    for disk in site.disks_of(space) {
        columns.push((path(script, change, options, disk)?, disk.size.get()));
    }
    Ok(Device { space, columns })
}

fn path(
    script: &Script,
    change: &Change,
    options: &Options,
    disk: &Disk,
) -> Result<String, ExportError> {
    if let Some((_, path)) = options.devices.iter().find(|(name, _)| *name == disk.own) {
        return Ok(path.clone());
    }
    if disk.is_local {
        return Err(ExportError::Cannot {
            layout: change.new.layout.clone(),
            what: format!("volume {:?}", disk.own),
            kind: script.kind().name(),
            reason: format!(
                "it is the machine's own disk, whose device is not known; say it with --device {}=PATH",
                disk.own
            ),
        });
    }
    let is_azure = change.new.cloud() == Some(Cloud::Azure);
    let pattern = match &options.device_pattern {
        Some(pattern) => pattern,
        None if is_azure => DEVICES,
        None => {
            return Err(ExportError::Option {
                option: "--device".to_owned(),
                reason: format!(
                    "which device {} is is not known without an edition of Azure; say it with --device \
                     {}=PATH, or for all with a path like /dev/disk/by-id/{{name}}",
                    disk.own, disk.own
                ),
            });
        }
    };
    let lun = change.lun(disk).to_string();
    Ok(pattern.replace("{lun}", &lun).replace("{name}", &disk.name))
}

/// File systems are found by a label, which has to fit.
pub(crate) fn check_label(space: &Space, filesystem: Filesystem) -> Result<(), ExportError> {
    let (most, rule) = match filesystem {
        Filesystem::Xfs => {
            (12, "the label of an XFS has at most 12 letters, digits, '_', '.' and '-'")
        }
        Filesystem::Ext4 => {
            (16, "the label of an ext4 has at most 16 letters, digits, '_', '.' and '-'")
        }
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_fine = !space.name.is_empty()
        && space.name.len() <= most
        && !space.name.starts_with('-')
        && space.name.chars().all(fine);
    if is_fine {
        return Ok(());
    }
    Err(ExportError::BadName {
        what: "a file system",
        name: space.name.clone(),
        rule,
        own: space.own.clone(),
    })
}

/// Makes the file system, where there is none.
pub(crate) fn filesystem(
    script: &mut Script,
    space: &Space,
    path: &str,
    filesystem: Filesystem,
) -> Result<(), ExportError> {
    check_label(space, filesystem)?;
    let kib = space.unit.map(|unit| (unit.get() >> 10, space.columns.len() as u64));
    let make = match (filesystem, kib) {
        (Filesystem::Xfs, None) => "mkfs.xfs -q".to_owned(),
        (Filesystem::Xfs, Some((unit, columns))) => {
            format!("mkfs.xfs -q -d su={unit}k,sw={columns}")
        }
        (Filesystem::Ext4, None) => "mkfs.ext4 -q".to_owned(),
        // In blocks of 4 KiB.
        (Filesystem::Ext4, Some((unit, columns))) => format!(
            "mkfs.ext4 -q -b 4096 -E stride={},stripe-width={}",
            unit / 4,
            unit / 4 * columns
        ),
    };
    if space.unit.is_some() {
        script.comment("The file system lays its files out by the unit and the columns.");
    }
    let kind = filesystem.name();
    script.lines(&format!(
        r#"now=$(blkid --probe --output value --match-tag TYPE {path}) || now=
if [[ -z $now ]]; then
    [[ -z $(wipefs --no-act --noheadings {path}) ]] || die {what}': is not empty; nothing is done to it'
    {make} -L {label} {path}
elif [[ $now != {kind} ]]; then
    die {what}": has $now, and not {kind}; nothing is done to it"
fi"#,
        path = shell(path),
        label = shell(&space.name),
        what = shell(&space.own),
    ));
    Ok(())
}
