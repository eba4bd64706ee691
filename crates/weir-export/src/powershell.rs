//! Disks and machines, or a managed instance, with the Az module of PowerShell.

use crate::azure::{self, AzureDisk, CACHE, DiskChange, Machine, Sql};
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::Options;
use crate::quote::powershell;
use crate::script::Script;
use crate::site::Disk;
use weir_layout::Instance;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    azure::write(script, change, options, of_machine, of_instance)
}

/// Returns a parameter, which is mandatory unless it has a value.
fn parameter(name: &str, value: Option<&String>) -> String {
    match value {
        Some(value) => format!("    [string] ${name} = {}", powershell(value)),
        None => format!("    [Parameter(Mandatory)] [string] ${name}"),
    }
}

fn parameters(script: &mut Script, lines: &[String]) {
    script.blank();
    script.lines(&format!(
        "[CmdletBinding()]\nparam(\n{}\n)\n\nSet-StrictMode -Version Latest\n$ErrorActionPreference = 'Stop'",
        lines.join(",\n")
    ));
}

fn of_machine(
    script: &mut Script,
    change: &Change,
    options: &Options,
    machine: &Machine<'_>,
) -> Result<(), ExportError> {
    let makes = azure::made(machine).next().is_some();
    azure::check_place(options, makes)?;
    script.header(
        "PowerShell with the modules Az.Compute and Az.Resources, after Connect-AzAccount; the \
         machine exists.",
        "creates missing disks, and attaches them with their LUN and cache mode. A second run \
         leaves everything as it is, and reports other sizes and cache modes.",
        "create the machine (--as az or bicep does), format disks (--as storage-spaces, mdadm or \
         lvm does, and finds them by their LUN), nor delete or shrink anything.",
    );
    let mut lines = vec![
        parameter("ResourceGroupName", options.resource_group.as_ref()),
        parameter("MachineName", options.machine.as_ref()),
    ];
    if makes {
        lines.push(parameter("Location", options.location.as_ref()));
    }
    let has_zone = makes && (machine.needs_zone || options.zone.is_some());
    if has_zone {
        lines.push(parameter("Zone", options.zone.as_ref()));
    }
    let stops = any(machine, |new, own| own.grows && azure::may_stop(new));
    let is_left_alone = change.interfaces().is_some() || change.refusal().is_some();
    let resizes = change.resize().is_some() && !is_left_alone;
    if resizes || stops {
        lines.push("    [switch] $AllowRestart".to_owned());
    }
    parameters(script, &lines);
    // This comes first: a later error must start a stopped machine again.
    functions(script, machine, stops);
    script.blank();
    script.line("$machine = Get-AzVM -ResourceGroupName $ResourceGroupName -Name $MachineName");
    if makes {
        let zone = if has_zone { " -Zone $Zone" } else { "" };
        script.blank();
        script.lines(&FUNCTIONS.replace(" @ZONE@", zone));
        script.blank();
        script.lines(FREE);
        for disk in azure::made(machine) {
            let (name, lun) = (powershell(&disk.name), change.lun(disk));
            script.line(&format!("Test-LayoutLun -Name {name} -Lun {lun}"));
        }
    }
    size(script, change, machine);
    for fate in &machine.disks {
        match *fate {
            Fate::New(disk) => make(script, change, disk),
            Fate::Changed(old, disk) => update(script, change, old, disk),
            Fate::Gone(disk) => gone(script, disk),
            Fate::Same(_) => {}
        }
    }
    disk::local(script, &change.new);
    if stops {
        script.blank();
        script.lines("Start-LayoutMachine\nif ($left) { exit 1 }");
    }
    Ok(())
}

/// Writes the functions that change disks in use.
fn functions(script: &mut Script, machine: &Machine<'_>, stops: bool) {
    if any(machine, |_, own| own.grows || own.rates || own.tier || own.burst) {
        script.blank();
        script.lines(&if stops {
            format!("{STOP}\n{UPDATE}{STOPPED}{SET}")
        } else {
            format!("{UPDATE}{SET}")
        });
    }
    if any(machine, |_, own| own.cache) {
        script.blank();
        script.lines(SET_CACHE);
    }
}

/// Returns whether any disk in use has such a change.
fn any(machine: &Machine<'_>, is: fn(&Disk, &DiskChange) -> bool) -> bool {
    machine.disks.iter().any(|fate| match *fate {
        Fate::Changed(old, new) => is(new, &DiskChange::steps(old, new)),
        _ => false,
    })
}

const STOP: &str = r#"
$stopped = $false
$left = $false

# The machine is deallocated once for all disks that need it, and started when the script ends.
function Stop-LayoutMachine {
    if ($script:stopped) { return }
    $script:stopped = $true
    Write-Output "${MachineName}: deallocating it"
    Stop-AzVM -ResourceGroupName $ResourceGroupName -Name $MachineName -Force | Out-Null
}

function Start-LayoutMachine {
    if (-not $script:stopped) { return }
    $script:stopped = $false
    Start-AzVM -ResourceGroupName $ResourceGroupName -Name $MachineName | Out-Null
}

trap {
    Start-LayoutMachine
    break
}
"#;

const UPDATE: &str = r#"
# Changes the settings of a disk that differ. A larger disk stays.
function Update-LayoutDisk([string] $Name, [hashtable] $Config) {
    $disk = Get-AzDisk -ResourceGroupName $ResourceGroupName -DiskName $Name
    $keys = @{}
    foreach ($key in $Config.Keys) {
        if ("$($disk.$key)" -ne "$($Config[$key])") { $keys[$key] = $Config[$key] }
    }
    if ($keys.ContainsKey('DiskSizeGB') -and $disk.DiskSizeGB -gt $keys['DiskSizeGB']) {
        Write-Warning "${Name}: already has $($disk.DiskSizeGB) GiB, the layout $($keys['DiskSizeGB']); not changed"
        $keys.Remove('DiskSizeGB')
    }
"#;

const STOPPED: &str = r#"    $standard = $disk.Sku.Name -notin 'PremiumV2_LRS', 'UltraSSD_LRS'
    if ($standard -and $keys.ContainsKey('DiskSizeGB') -and $disk.DiskSizeGB -le 4096 -and $keys['DiskSizeGB'] -gt 4096) {
        if ($AllowRestart) {
            Stop-LayoutMachine
        } else {
            Write-Warning "${Name}: NOT DONE: growing past 4 TiB deallocates the machine; allow it with -AllowRestart"
            $script:left = $true
            $keys.Remove('DiskSizeGB')
        }
    }
"#;

const SET: &str = r#"    if ($keys.Count -eq 0) { return }
    Write-Output "${Name}: changing $($keys.Keys -join ', ')"
    New-AzDiskUpdateConfig @keys |
        ForEach-Object { Update-AzDisk -ResourceGroupName $ResourceGroupName -DiskName $Name -DiskUpdate $_ } | Out-Null
}
"#;

const SET_CACHE: &str = r#"
# Changes the cache mode of an attached disk if it differs.
function Set-LayoutCache([string] $Name, [string] $Caching) {
    $machine = Get-AzVM -ResourceGroupName $ResourceGroupName -Name $MachineName
    $attached = $machine.StorageProfile.DataDisks | Where-Object { $_.Name -eq $Name }
    if (-not $attached) { throw "${Name}: is not attached" }
    if ("$($attached.Caching)" -eq $Caching) { return }
    Write-Output "${Name}: changing its cache from $($attached.Caching) to $Caching"
    $machine = Set-AzVMDataDisk -VM $machine -Name $Name -Caching $Caching
    Update-AzVM -ResourceGroupName $ResourceGroupName -VM $machine | Out-Null
}
"#;

const FUNCTIONS: &str = r#"
# Creates and attaches a missing disk, and reports how an existing one differs.
function Add-LayoutDisk([string] $Name, [int] $SizeGB, [int] $Lun, [string] $Caching, [hashtable] $Config) {
    $disk = Get-AzDisk -ResourceGroupName $ResourceGroupName | Where-Object { $_.Name -eq $Name }
    if (-not $disk) {
        Write-Output "${Name}: creating it"
        $made = New-AzDiskConfig -Location $Location @ZONE@ -CreateOption Empty -DiskSizeGB $SizeGB @Config
        $disk = New-AzDisk -ResourceGroupName $ResourceGroupName -DiskName $Name -Disk $made
    } elseif ($disk.DiskSizeGB -ne $SizeGB) {
        Write-Warning "${Name}: exists with $($disk.DiskSizeGB) GiB, the layout has $SizeGB; not changed"
    }
    $machine = Get-AzVM -ResourceGroupName $ResourceGroupName -Name $MachineName
    $attached = $machine.StorageProfile.DataDisks | Where-Object { $_.Name -eq $Name }
    if (-not $attached) {
        Write-Output "${Name}: attaching it as LUN $Lun, cache $Caching"
        $machine = Add-AzVMDataDisk -VM $machine -Name $Name -CreateOption Attach -ManagedDiskId $disk.Id -Lun $Lun -Caching $Caching
        Update-AzVM -ResourceGroupName $ResourceGroupName -VM $machine | Out-Null
    } elseif ("$($attached.Caching)" -ne $Caching) {
        Write-Warning "${Name}: has cache $($attached.Caching), the layout $Caching; not changed"
    }
}
"#;

const FREE: &str = r#"
# Stops before any change if an unknown disk has the LUN of a new one.
function Test-LayoutLun([string] $Name, [int] $Lun) {
    $disks = $machine.StorageProfile.DataDisks
    $own = $disks | Where-Object { $_.Name -eq $Name }
    $other = $disks | Where-Object { $_.Lun -eq $Lun }
    if ($own) {
        if ($own.Lun -ne $Lun) { Write-Warning "${Name}: has LUN $($own.Lun), the layout $Lun; not changed" }
    } elseif ($other) {
        throw "${Name}: NOT DONE: $($other.Name) is attached as LUN $Lun; detach it once it is unused, or set another lun in the layout"
    }
}

"#;

/// Writes the comparison of the machine with the layout, and its change if both layouts are known.
fn size(script: &mut Script, change: &Change, machine: &Machine<'_>) {
    let Some(size) = machine.size.as_deref().map(powershell) else { return };
    script.blank();
    if change.is_known() {
        change_size(script, change, machine, &size);
        return;
    }
    script.lines(&format!(
        "if ($machine.HardwareProfile.VmSize -ne {size}) {{\n    Write-Warning (\"${{MachineName}}: \
         is $($machine.HardwareProfile.VmSize), the layout has \" + {size} + '; not changed')\n}}"
    ));
    if let Some(interface) = machine.interface {
        if machine.is_nvme() {
            script.comment(azure::NVME_IMAGE);
            script.comment("To create a machine with it: New-AzVMConfig -DiskControllerType NVMe.");
        }
        script.line(FIND_CONTROLLER);
        script.lines(&format!(
            "if ($controller -ne '{}') {{\n    Write-Warning \"${{MachineName}}: its disk controller is \
             $controller, the layout has {}; not changed\"\n}}",
            interface.name(),
            interface.name()
        ));
    }
    if machine.licence_owned {
        script.lines(
            "if ($machine.LicenseType -ne 'Windows_Server') {\n    Write-Warning \"${MachineName}: its licence \
             type is not Windows_Server, and the licence is owned; nothing is changed\"\n}",
        );
    }
}

/// An empty property means SCSI.
const FIND_CONTROLLER: &str = "$controller = if ($machine.StorageProfile.DiskControllerType) { \
                               \"$($machine.StorageProfile.DiskControllerType)\" } else { 'SCSI' }";

/// Changes the existing machine.
fn change_size(script: &mut Script, change: &Change, machine: &Machine<'_>, size: &str) {
    if let Some((_, new)) = change.interfaces() {
        azure::tell_interfaces(script, change);
        script.line(FIND_CONTROLLER);
        script.lines(&format!(
            "if ($controller -ne '{}' -or $machine.HardwareProfile.VmSize -ne {size}) {{\n    throw \
             \"${{MachineName}}: NOT DONE: is $($machine.HardwareProfile.VmSize) with $controller; convert it, \
             and run this again\"\n}}",
            new.name()
        ));
    } else if let Some(sizes) = change.resize() {
        match change.refusal() {
            Some(_) => {
                azure::tell_refusal(script, change, sizes);
                script.lines(&format!(
                    "if ($machine.HardwareProfile.VmSize -ne {size}) {{\n    throw \"${{MachineName}}: NOT DONE: is \
                     $($machine.HardwareProfile.VmSize); create the other machine, and run this again for it\"\n}}"
                ));
            }
            None => resize(script, change, sizes, size),
        }
    }
    if change.licence().is_some() {
        let licence = if machine.licence_owned { "Windows_Server" } else { "None" };
        script.comment("The licence type changes without a restart.");
        script.lines(&format!(
            "$licence = if ($machine.LicenseType) {{ $machine.LicenseType }} else {{ 'None' }}\nif ($licence -ne \
             '{licence}') {{\n    $machine.LicenseType = '{licence}'\n    Update-AzVM -ResourceGroupName \
             $ResourceGroupName -VM $machine | Out-Null\n}}"
        ));
    }
}

fn resize(script: &mut Script, change: &Change, sizes: (&str, &str), size: &str) {
    azure::tell_resize(script, change, sizes, "-AllowRestart");
    script.lines(&format!(
        "if ($machine.HardwareProfile.VmSize -ne {size}) {{\n    if (-not $AllowRestart) {{\n        throw \
         'the resize restarts the machine; give -AllowRestart to do it'\n    }}\n    \
         $machine.HardwareProfile.VmSize = {size}\n    \
         Update-AzVM -ResourceGroupName $ResourceGroupName -VM $machine | Out-Null\n}}"
    ));
}

fn make(script: &mut Script, change: &Change, disk: &Disk) {
    let own = AzureDisk::from_disk(script, change, disk);
    script.blank();
    script.comment(&own.words());
    let mut config = format!("SkuName = '{}'", own.sku);
    if let Some((iops, mb)) = own.bought {
        config += &format!("; DiskIOPSReadWrite = {iops}; DiskMBpsReadWrite = {mb}");
    }
    if let Some(tier) = &disk.performance_tier {
        config += &format!("; Tier = {}", powershell(tier));
    }
    if disk.on_demand_burst {
        config += "; BurstingEnabled = $true";
    }
    if disk.performance_plus {
        config += "; PerformancePlus = $true";
    }
    script.line(&format!(
        "Add-LayoutDisk -Name {} -SizeGB {} -Lun {} -Caching '{}' -Config @{{ {config} }}",
        powershell(&disk.name),
        own.gib,
        own.lun,
        own.caching
    ));
}

fn update(script: &mut Script, change: &Change, old: &Disk, disk: &Disk) {
    script.blank();
    let own = AzureDisk::from_disk(script, change, disk);
    script.comment(&own.words());
    let steps = DiskChange::between(script, old, disk);
    let mut keys = Vec::new();
    if steps.grows {
        azure::tell_growth(script, disk, steps, "-AllowRestart");
        keys.push(format!("DiskSizeGB = {}", own.gib));
    }
    if let Some((iops, mb)) = own.bought.filter(|_| steps.rates) {
        keys.push(format!("DiskIOPSReadWrite = {iops}; DiskMBpsReadWrite = {mb}"));
    }
    if let Some(tier) = disk.performance_tier.as_ref().or(disk.tier.as_ref()).filter(|_| steps.tier)
    {
        keys.push(format!("Tier = {}", powershell(tier)));
    }
    if steps.burst {
        keys.push(format!("BurstingEnabled = ${}", disk.on_demand_burst));
    }
    let name = powershell(&disk.name);
    if !keys.is_empty() {
        script.line(&format!("Update-LayoutDisk -Name {name} -Config @{{ {} }}", keys.join("; ")));
    }
    if steps.cache {
        script.comment(CACHE);
        script.line(&format!("Set-LayoutCache -Name {name} -Caching '{}'", own.caching));
    }
}

fn gone(script: &mut Script, disk: &Disk) {
    disk::gone(script, disk);
    let name = powershell(&disk.name);
    script.quiet(&format!("$machine = Remove-AzVMDataDisk -VM $machine -DataDiskNames {name}"));
    script.quiet("Update-AzVM -ResourceGroupName $ResourceGroupName -VM $machine");
    script.quiet(&format!("Remove-AzDisk -ResourceGroupName $ResourceGroupName -DiskName {name}"));
}

fn of_instance(
    script: &mut Script,
    change: &Change,
    options: &Options,
    sql: &Sql<'_>,
) -> Result<(), ExportError> {
    azure::check_place(options, !change.is_known())?;
    script.header(
        "PowerShell with the module Az.Sql, after Connect-AzAccount.",
        "creates the instance if it is missing, without a public endpoint and with Microsoft \
         Entra-only authentication (no password); or changes it. It checks the present state first, \
         and a second run changes nothing more.",
        "create its network, databases or their files (--as tsql).",
    );
    let mut lines = vec![
        parameter("ResourceGroupName", options.resource_group.as_ref()),
        parameter("InstanceName", options.machine.as_ref()),
    ];
    if let Some(old) = sql.old {
        parameters(script, &lines);
        update_instance(script, sql, old);
        return Ok(());
    }
    let mut keys = format!(
        "-Edition {} -VCore {} -StorageSizeInGB {} -LicenseType {}",
        sql.edition(),
        sql.new.vcores,
        sql.gb(),
        sql.licence()
    );
    if let Some(iops) = sql.iops {
        keys += &format!(" -IsGeneralPurposeV2 $true -StorageIOps {iops}");
    }
    lines.push(parameter("Location", options.location.as_ref()));
    lines.push(parameter("SubnetId", None));
    lines.push(parameter("AdministratorName", None));
    lines.push("    [string] $ComputeGeneration = 'Gen5'".to_owned());
    parameters(script, &lines);
    script.blank();
    script.comment(&sql.words());
    script.lines(&format!(
        "$instance = Get-AzSqlInstance -ResourceGroupName $ResourceGroupName | Where-Object {{ \
         $_.ManagedInstanceName -eq $InstanceName }}\nif (-not $instance) {{\n    Write-Output \"${{InstanceName}}: \
         creating it, which takes hours\"\n    New-AzSqlInstance -ResourceGroupName $ResourceGroupName -Name \
         $InstanceName -Location $Location `\n        {keys} -ComputeGeneration $ComputeGeneration `\n        \
         -SubnetId $SubnetId -EnableActiveDirectoryOnlyAuthentication -ExternalAdminName \
         $AdministratorName\n}} elseif ($instance.VCores -ne {} -or $instance.StorageSizeInGB -ne {} -or \
         $instance.LicenseType -ne '{}') {{\n    Write-Warning \"${{InstanceName}}: has $($instance.VCores) vCores, \
         $($instance.StorageSizeInGB) GB and $($instance.LicenseType); nothing is changed\"\n}}",
        sql.new.vcores,
        sql.gb(),
        sql.licence()
    ));
    Ok(())
}

/// Writes all changes at once, because each change ends with a failover.
fn update_instance(script: &mut Script, sql: &Sql<'_>, old: &Instance) {
    let steps = sql.steps(old);
    script.blank();
    script.comment(&sql.words());
    sql.warns(script);
    script.lines(
        "$instance = Get-AzSqlInstance -ResourceGroupName $ResourceGroupName -Name $InstanceName\n$keys = @{}",
    );
    let mut differs = |now: &str, key: &str, value: &str| {
        script.line(&format!("if ({now} -ne {value}) {{ $keys['{key}'] = {value} }}"));
    };
    if steps.edition {
        differs("$instance.Sku.Tier", "Edition", &powershell(sql.edition()));
    }
    if steps.vcores {
        differs("$instance.VCores", "VCore", &sql.new.vcores.to_string());
    }
    if steps.storage {
        differs("$instance.StorageSizeInGB", "StorageSizeInGB", &sql.gb().to_string());
    }
    if steps.next_gen {
        let is = format!("${}", sql.is_next_gen());
        differs("[bool] $instance.IsGeneralPurposeV2", "IsGeneralPurposeV2", &is);
    }
    if let Some(iops) = steps.iops {
        differs("$instance.StorageIOps", "StorageIOps", &iops.to_string());
    }
    if steps.licence {
        differs("$instance.LicenseType", "LicenseType", &powershell(sql.licence()));
    }
    if steps.edition {
        script.comment("With an edition, the command does not send the vCores by itself.");
        script.line(
            "if ($keys.ContainsKey('Edition') -and -not $keys.ContainsKey('VCore')) { $keys['VCore'] = \
             $instance.VCores }",
        );
    }
    if steps.grows {
        script.lines(LARGER);
    }
    script.lines(UPDATE_INSTANCE);
}

const LARGER: &str = r#"
if ($keys.ContainsKey('StorageSizeInGB') -and $instance.StorageSizeInGB -gt $keys['StorageSizeInGB']) {
    Write-Warning "${InstanceName}: already has $($instance.StorageSizeInGB) GB, the layout $($keys['StorageSizeInGB']); its storage stays"
    $keys.Remove('StorageSizeInGB')
}
"#;

const UPDATE_INSTANCE: &str = r#"
if ($keys.Count -gt 0) {
    Write-Output "${InstanceName}: changing $($keys.Keys -join ', ')"
    Set-AzSqlInstance -ResourceGroupName $ResourceGroupName -Name $InstanceName @keys -Force | Out-Null
}
"#;
