//! Stripes and single disks on Windows, with Storage Spaces.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::quote::powershell;
use crate::script::Script;
use crate::site::{Disk, Space, unique};
use crate::space::{self, Difference};
use std::fmt::Write;
use weir_catalog::Interface;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    let spaces = space::remote(change);
    if !spaces.iter().any(|fate: &Fate<'_, Space>| fate.subject().unit.is_some()) {
        return Err(ExportError::Nothing {
            layout: change.new.layout.clone(),
            kind: "storage-spaces",
            reason: "it has no [[stripe]] of remote volumes".to_owned(),
        });
    }
    let wanted = spaces.iter().filter_map(|fate| fate.wanted());
    unique(wanted.map(|space| (&*space.own, &*space.name)), str::to_lowercase)?;
    if spaces.iter().all(Fate::is_same) {
        script.nothing(change);
        return Ok(());
    }
    script.header(
        "Windows Server, PowerShell as administrator; the disks are attached (--as az or another).",
        "creates a pool and a virtual disk for each stripe, with one column per disk and the \
         layout's unit, and formats with 64 KB, the unit of SQL Server's reads. Disks are found by \
         their LUN. A second run checks and leaves them.",
        "change a disk that holds data or has another size than in the layout.",
    );
    let is_nvme = change.new.interface() == Some(Interface::Nvme);
    script.blank();
    script.lines(&FUNCTIONS.replace("@FIND@", if is_nvme { FIND_NVME } else { FIND }));
    for fate in &spaces {
        match *fate {
            Fate::New(space) => make(script, change, options, space)?,
            Fate::Changed(old, space) => changed(script, old, space),
            Fate::Gone(space) => gone(script, space),
            Fate::Same(_) => {}
        }
    }
    Ok(())
}

const FUNCTIONS: &str = r#"
[CmdletBinding()]
param()

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

# Returns the disk with a LUN, which must exist once, have the size of the layout, and be empty.
function Get-LayoutDisk([int] $Lun, [uint64] $Size) {
    @FIND@
    if ($found.Count -ne 1) {
        throw "LUN ${Lun}: there are $($found.Count) empty disks instead of one"
    }
    if ($found[0].Size -ne $Size) {
        throw "LUN ${Lun}: has $($found[0].Size) bytes, the layout ${Size}; is it another disk?"
    }
    $found[0]
}

# Creates a volume on the whole of a disk that has none.
function New-LayoutVolume($Disk, [string] $Label, [string] $DriveLetter) {
    if ($Disk.PartitionStyle -ne 'RAW') {
        Write-Output "${Label}: its volume exists"
        return
    }
    Initialize-Disk -Number $Disk.Number -PartitionStyle GPT
    $where = if ($DriveLetter) { @{ DriveLetter = $DriveLetter } } else { @{ AssignDriveLetter = $true } }
    New-Partition -DiskNumber $Disk.Number -UseMaximumSize @where |
        Format-Volume -FileSystem NTFS -AllocationUnitSize 65536 -NewFileSystemLabel $Label -Confirm:$false
}
"#;

const FIND: &str = r#"$found = @(Get-PhysicalDisk -CanPool $true | Where-Object { $_.PhysicalLocation -match "LUN $Lun$" })"#;

/// Finds a disk of an NVMe controller, where Windows numbers logical units from 1.
const FIND_NVME: &str = r#"# On an NVMe disk controller, the disk with LUN n is logical unit n + 1.
    $numbers = @(Get-CimInstance -ClassName Win32_DiskDrive |
        Where-Object { $_.Model -match 'NVMe' -and $_.SCSILogicalUnit -eq $Lun + 1 } |
        ForEach-Object { "$($_.Index)" })
    $found = @(Get-PhysicalDisk -CanPool $true | Where-Object { $_.DeviceId -in $numbers })"#;

fn make(
    script: &mut Script,
    change: &Change,
    options: &Options,
    space: &Space,
) -> Result<(), ExportError> {
    check_name(space)?;
    let site = &change.new;
    let disks = site.disks_of(space);
    if let Some(local) = disks.iter().find(|disk| disk.is_local) {
        let reason =
            format!("its column {} is the machine's local disk, which has no LUN", local.own);
        return Err(space::cannot(script, site, space, reason));
    }
    let letter = letter(options, space)?;
    let name = powershell(&space.name);
    script.blank();
    let Some(unit) = space.unit else {
        let (lun, size) = (change.lun(disks[0]), disks[0].size.get());
        script.comment(&format!("{}: a single disk.", space.own));
        script.lines(&format!(
            "$volume = Get-Volume | Where-Object {{ $_.FileSystemLabel -eq {name} }}\nif (-not $volume) {{\n    \
             $disk = Get-LayoutDisk -Lun {lun} -Size {size} | Get-Disk\n    \
             New-LayoutVolume -Disk $disk -Label {name} -DriveLetter {letter}\n}}"
        ));
        return Ok(());
    };
    if !unit.get().is_power_of_two() || unit.get() < 16 << 10 {
        let reason = format!(
            "Storage Spaces needs a unit that is a power of two from 16 KiB up, not {unit}"
        );
        return Err(space::cannot(script, site, space, reason));
    }
    let count = disks.len();
    script.comment(&format!(
        "{}: {count} columns, one per disk, so that their limits add up (the default of \
         Windows is fewer); {unit} on one column before the next.",
        space.own
    ));
    script.lines(&format!(
        "$pool = Get-StoragePool | Where-Object {{ $_.FriendlyName -eq {name} }}\nif (-not $pool) {{\n    $disks = \
         @(\n{}    )\n    $pool = New-StoragePool -FriendlyName {name} -PhysicalDisks $disks `\n        \
         -StorageSubSystemUniqueId (Get-StorageSubSystem | Select-Object -First 1).UniqueId\n}}\n\
         $virtual = Get-VirtualDisk | Where-Object {{ $_.FriendlyName -eq {name} }}\nif (-not $virtual) {{\n    \
         $virtual = $pool | New-VirtualDisk -FriendlyName {name} -ResiliencySettingName Simple `\n        \
         -ProvisioningType Fixed -NumberOfColumns {count} -Interleave {} -UseMaximumSize\n}} elseif \
         ($virtual.NumberOfColumns -ne {count} -or $virtual.Interleave -ne {}) {{\n    throw ({name} + \": has \
         $($virtual.NumberOfColumns) columns of $($virtual.Interleave) bytes; they cannot be changed in place\")\n\
         }}\nNew-LayoutVolume -Disk ($virtual | Get-Disk) -Label {name} -DriveLetter {letter}",
        members(change, &disks),
        unit.get(),
        unit.get()
    ));
    Ok(())
}

fn members(change: &Change, disks: &[&Disk]) -> String {
    let mut lines = String::new();
    for disk in disks {
        let line = writeln!(
            lines,
            "        Get-LayoutDisk -Lun {} -Size {} # {}",
            change.lun(disk),
            disk.size.get(),
            disk.own
        );
        // Writing to a string does not fail.
        debug_assert!(line.is_ok());
    }
    lines
}

/// Returns the drive letter of a mount like `F:` or `F:\Data`; by default, the next free one.
fn letter(options: &Options, space: &Space) -> Result<String, ExportError> {
    let Some(mount) = options.mount_of(&space.own) else { return Ok("''".to_owned()) };
    let mut signs = mount.chars();
    match (signs.next(), signs.next(), signs.next()) {
        (Some(letter), Some(':'), None | Some('\\')) if letter.is_ascii_alphabetic() => {
            Ok(powershell(&letter.to_ascii_uppercase().to_string()))
        }
        _ => Err(refused(
            format!("--mount {}={mount}", space.own),
            "a Windows volume needs a drive letter, like F: or F:\\Data".to_owned(),
        )),
    }
}

fn check_name(space: &Space) -> Result<(), ExportError> {
    let count = space.name.encode_utf16().count();
    let fine = |c: char| {
        !matches!(
            c,
            '*' | '?'
                | '/'
                | '\\'
                | '|'
                | ','
                | ';'
                | ':'
                | '+'
                | '='
                | '<'
                | '>'
                | '['
                | ']'
                | '"'
                | '.'
        )
    };
    if count == 0 || count > 32 || !space.name.chars().all(fine) {
        return Err(ExportError::BadName {
            what: "a volume of Windows",
            name: space.name.clone(),
            rule: "1 to 32 characters without * ? / \\ | , ; : + = < > [ ] \" and .",
            own: space.own.clone(),
        });
    }
    Ok(())
}

fn changed(script: &mut Script, old: &Space, space: &Space) {
    let Some(difference) = Difference::between(script, old, space) else { return };
    if difference == Difference::Disk {
        script.comment(&format!(
            "{}: the disk has grown from {} to {}; now its partition.",
            space.own, old.size, space.size
        ));
        let name = powershell(&space.name);
        script.lines(&format!(
            "$partition = Get-Volume -FriendlyName {name} | Get-Partition\nUpdate-Disk -Number \
             $partition.DiskNumber\n$most = (Get-PartitionSupportedSize -DiskNumber $partition.DiskNumber \
             -PartitionNumber $partition.PartitionNumber).SizeMax\nif ($partition.Size -lt $most) {{\n    \
             Resize-Partition -DiskNumber $partition.DiskNumber -PartitionNumber $partition.PartitionNumber \
             -Size $most\n}}"
        ));
        return;
    }
    script.warn(&format!(
        "{}: it has {} columns and {} in all, and becomes {} columns and {}, or gets another unit. \
         Disks can be added to a pool, but a virtual disk keeps its columns and does not \
         redistribute its data: create another one over all disks, copy, and switch over.",
        space.own,
        old.columns.len(),
        old.size,
        space.columns.len(),
        space.size
    ));
}

fn gone(script: &mut Script, space: &Space) {
    let name = powershell(&space.name);
    space::gone(
        script,
        space,
        &[
            format!("Remove-VirtualDisk -FriendlyName {name}"),
            format!("Remove-StoragePool -FriendlyName {name}"),
        ],
    );
}
