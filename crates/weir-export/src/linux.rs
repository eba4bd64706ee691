//! Common parts of shell scripts for a Linux machine: the device of a disk, the check that it is
//! empty, and a file system that knows the stripe.

use crate::change::Change;
use crate::ebs;
use crate::error::ExportError;
use crate::options::{Filesystem, Options, refused};
use crate::quote::shell;
use crate::script::Script;
use crate::site::{Cloud, Disk, Site, Space};
use std::collections::BTreeMap;
use weir_catalog::Interface;

/// The link to a disk by LUN on a SCSI controller of Azure. The Azure Linux agent and cloud-init bring
/// its udev rules.
const AZURE_SCSI: &str = "/dev/disk/azure/scsi1/lun{lun}";

/// The link to a disk by LUN on an NVMe controller of Azure. azure-vm-utils brings its udev rules.
const AZURE_NVME: &str = "/dev/disk/azure/data/by-lun/{lun}";

/// The link to a disk of Google Cloud by device name, for SCSI and NVMe. The guest environment brings
/// its udev rules.
const GOOGLE: &str = "/dev/disk/by-id/google-{name}";

/// The way in which a script finds disks without a device option.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finder {
    /// A path with `{lun}` or `{name}`.
    Pattern(String),
    /// The device name assigned by AWS, looked up when the script runs.
    Ebs,
}

/// The device of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A fixed path.
    Path(String),
    /// The device name assigned by AWS.
    Ebs(String),
}

/// A disk of a device.
pub(crate) struct Column {
    place: Place,
    /// The LUN, which names the variable of a device that is looked up.
    lun: u32,
    /// The size in bytes.
    pub(crate) size: u64,
}

impl Column {
    /// Returns the device as a word of the shell.
    pub(crate) fn word(&self) -> String {
        match &self.place {
            Place::Path(path) => shell(path),
            Place::Ebs(_) => format!("\"$volume_{}\"", self.lun),
        }
    }

    /// Returns the device for messages.
    pub(crate) fn name(&self) -> &str {
        match &self.place {
            Place::Path(name) | Place::Ebs(name) => name,
        }
    }
}

/// A device of the layout with its disks.
pub(crate) struct Device<'a> {
    pub(crate) space: &'a Space,
    pub(crate) columns: Vec<Column>,
}

impl Device<'_> {
    /// Writes the look-ups of devices that are known only when the script runs.
    pub(crate) fn find(&self, script: &mut Script) {
        for column in &self.columns {
            if let Place::Ebs(name) = &column.place {
                script.line(&format!("volume_{}=$(ebs {})", column.lun, shell(name)));
            }
        }
    }
}

/// Writes the start of a script, common to all kinds.
pub(crate) fn start(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    check_devices(script, change, options)?;
    let finder = finder(&change.new, options);
    tell_finder(script, &change.new, finder.as_ref());
    script.blank();
    script.line("set -euo pipefail");
    script.blank();
    script.lines(&CHECK.replace("@HINT@", hint(finder.as_ref())));
    if finder == Some(Finder::Ebs) {
        script.blank();
        script.lines(EBS);
    }
    Ok(())
}

/// Writes how disks are found and what that depends on.
fn tell_finder(script: &mut Script, site: &Site, finder: Option<&Finder>) {
    let words = match finder {
        Some(Finder::Ebs) => {
            "Volumes are found by the device names under which they are attached (--as terraform). ebsnvme-id \
             reads these names from the NVMe controllers of a Nitro instance. It comes with Amazon Linux, and \
             elsewhere with the package amazon-ec2-utils. Other instances need --device."
        }
        Some(Finder::Pattern(path)) if path == AZURE_NVME => {
            "The machine has an NVMe disk controller, for which /dev/disk/azure/scsi1 does not exist. Disks are \
             found by the links of the package azure-vm-utils; install it if the image lacks it."
        }
        Some(Finder::Pattern(path)) if path == GOOGLE => {
            "Disks are found by the device names with which they are attached (--as terraform). The links are \
             those of Google's guest environment, which public images include."
        }
        Some(Finder::Pattern(path)) if path == AZURE_SCSI && site.interface().is_none() => {
            let reason = match &site.size {
                Some(size) => {
                    format!("the edition does not state the interface of remote disks for {size}")
                }
                None => "the layout has no machine size".to_owned(),
            };
            let words = format!(
                "{reason}, so the script expects a SCSI disk controller; for NVMe, export with --device \
                 '{AZURE_NVME}'"
            );
            script.note(&words);
            script.comment("");
            script.comment(&format!("{words}."));
            return;
        }
        Some(Finder::Pattern(_)) | None => return,
    };
    script.comment("");
    script.comment(words);
}

/// Returns a hint for a disk that is not found.
fn hint(finder: Option<&Finder>) -> &'static str {
    match finder {
        Some(Finder::Pattern(path)) if path == AZURE_NVME => {
            "; is it attached, and is azure-vm-utils installed?"
        }
        Some(Finder::Pattern(path)) if path == AZURE_SCSI => {
            "; is it attached, and is the disk controller SCSI?"
        }
        _ => "",
    }
}

/// Rejects two volumes on the same device.
fn check_devices(script: &Script, change: &Change, options: &Options) -> Result<(), ExportError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for disk in &change.new.disks {
        // An unknown device is an error where it is needed.
        let Ok(place) = place(script, change, options, disk) else { continue };
        let (Place::Path(path) | Place::Ebs(path)) = place;
        if let Some(first) = seen.insert(path.clone(), &disk.own) {
            return Err(refused(
                format!("--device {}={path}", disk.own),
                format!("it is the device of {first} already; each volume has one of its own"),
            ));
        }
    }
    Ok(())
}

const CHECK: &str = r#"
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Checks that a disk exists, has the size of the layout, and is empty.
check() { # DEVICE BYTES
    local size signatures
    size=$(lsblk --nodeps --bytes --noheadings --output SIZE "$1" | tr -d ' ') || die "$1: does not exist@HINT@"
    [[ $size == "$2" ]] || die "$1: has $size bytes, the layout $2; is it another disk?"
    signatures=$(wipefs --no-act --noheadings "$1") || die "$1: cannot be read"
    [[ -z $signatures ]] || die "$1: is not empty and is left alone: $signatures"
}
"#;

const EBS: &str = r#"
# Prints the device of the EBS volume that is attached under a device name.
ebs() { # DEVICE_NAME
    local device serial name
    command -v ebsnvme-id >/dev/null || die "ebsnvme-id is missing; install the package amazon-ec2-utils"
    while read -r device serial; do
        [[ $serial == vol* ]] || continue
        name=$(ebsnvme-id --block-dev "/dev/$device") || die "/dev/$device: ebsnvme-id cannot read it"
        if [[ ${name#/dev/} == "${1#/dev/}" ]]; then
            echo "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_$serial"
            return
        fi
    done < <(lsblk --nodeps --noheadings --output NAME,SERIAL)
    die "$1: no volume is attached under this device name"
}
"#;

/// Returns a device with its disks.
pub(crate) fn device<'a>(
    script: &Script,
    change: &'a Change,
    options: &Options,
    space: &'a Space,
) -> Result<Device<'a>, ExportError> {
    let site = &change.new;
    let mut columns = Vec::new();
    for disk in site.disks_of(space) {
        let place = place(script, change, options, disk)?;
        columns.push(Column { place, lun: change.lun(disk), size: disk.size.get() });
    }
    Ok(Device { space, columns })
}

/// Returns how to find disks without a device option, if it is known.
fn finder(site: &Site, options: &Options) -> Option<Finder> {
    let pattern = |path: &str| Some(Finder::Pattern(path.to_owned()));
    if let Some(path) = &options.device_pattern {
        return pattern(path);
    }
    match (site.cloud?, site.interface()) {
        (Cloud::Azure, Some(Interface::Nvme)) => pattern(AZURE_NVME),
        (Cloud::Azure, _) => pattern(AZURE_SCSI),
        (Cloud::Google, _) => pattern(GOOGLE),
        (Cloud::Aws, _) => Some(Finder::Ebs),
    }
}

fn place(
    script: &Script,
    change: &Change,
    options: &Options,
    disk: &Disk,
) -> Result<Place, ExportError> {
    if let Some((_, path)) = options.devices.iter().find(|(name, _)| *name == disk.own) {
        return Ok(Place::Path(path.clone()));
    }
    let cannot = |reason: String| ExportError::Cannot {
        layout: change.new.layout.clone(),
        what: format!("volume {:?}", disk.own),
        kind: script.kind().name(),
        reason,
    };
    if disk.is_local {
        return Err(cannot(format!(
            "it is the machine's local disk, whose device is unknown; give it with --device {}=PATH",
            disk.own
        )));
    }
    let lun = change.lun(disk);
    match finder(&change.new, options) {
        Some(Finder::Pattern(path)) => {
            let name = attached_name(&change.new, disk);
            Ok(Place::Path(path.replace("{lun}", &lun.to_string()).replace("{name}", name)))
        }
        Some(Finder::Ebs) => ebs::device_name(lun).map(Place::Ebs).ok_or_else(|| {
            cannot(format!(
                "AWS has no device name for disk {lun}; give its device with --device {}=PATH",
                disk.own
            ))
        }),
        None => Err(ExportError::Option {
            option: "--device".to_owned(),
            reason: format!(
                "the device of {} is unknown without an edition of a cloud; give it with --device \
                 {}=PATH, or for all with a path like /dev/disk/by-id/{{name}}",
                disk.own, disk.own
            ),
        }),
    }
}

/// Returns the device name of an attached disk. `--name` renames the file system of a volume, not
/// the attached disk.
fn attached_name<'a>(site: &Site, disk: &'a Disk) -> &'a str {
    let is_space = site.spaces.iter().any(|space| space.own == disk.own);
    if is_space { &disk.own } else { &disk.name }
}

/// Checks that the label of a file system is not too long.
pub(crate) fn check_label(space: &Space, filesystem: Filesystem) -> Result<(), ExportError> {
    let (most, rule) = match filesystem {
        Filesystem::Xfs => {
            (12, "the label of an XFS has at most 12 letters, digits, '_', '.' and '-'")
        }
        Filesystem::Ext4 => {
            (16, "the label of an ext4 has at most 16 letters, digits, '_', '.' and '-'")
        }
    };
    let is_fine = !space.name.is_empty()
        && space.name.len() <= most
        && !space.name.starts_with('-')
        && space
            .name
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
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

/// Writes the commands that make a file system if there is none; `path` is a word of the shell.
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
        // The unit is 4 KiB.
        (Filesystem::Ext4, Some((unit, columns))) => format!(
            "mkfs.ext4 -q -b 4096 -E stride={},stripe-width={}",
            unit / 4,
            unit / 4 * columns
        ),
    };
    if space.unit.is_some() {
        script.comment("The file system aligns files to the unit and the columns.");
    }
    let kind = filesystem.name();
    script.lines(&format!(
        r#"now=$(blkid --probe --output value --match-tag TYPE {path}) || now=
if [[ -z $now ]]; then
    [[ -z $(wipefs --no-act --noheadings {path}) ]] || die {what}': is not empty and is left alone'
    {make} -L {label} {path}
elif [[ $now != {kind} ]]; then
    die {what}": has $now instead of {kind} and is left alone"
fi"#,
        label = shell(&space.name),
        what = shell(&space.own),
    ));
    Ok(())
}
