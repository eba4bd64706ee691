//! Disks and machines, or a managed instance, with the Azure CLI.

use crate::azure::{self, AzureDisk, CACHE, DiskChange, Machine, Sql};
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::{OperatingSystem, Options};
use crate::quote::shell;
use crate::script::Script;
use crate::site::Disk;
use weir_catalog::Interface;
use weir_layout::Instance;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    azure::write(script, change, options, of_machine, of_instance)
}

/// Writes a variable for a name that the layout does not contain: the given value, or one from the
/// environment.
fn variable(script: &mut Script, name: &str, given: Option<&String>, what: &str) {
    match given {
        Some(value) => script.line(&format!("{name}={}", shell(value))),
        None => script.line(&format!("{name}=${{{name}:?set {name} to {what}}}")),
    }
}

/// Returns whether the script may create a resource, which needs a location.
fn makes(change: &Change, machine: &Machine<'_>) -> bool {
    !change.is_known() || azure::made(machine).next().is_some()
}

fn of_machine(
    script: &mut Script,
    change: &Change,
    options: &Options,
    machine: &Machine<'_>,
) -> Result<(), ExportError> {
    let makes = makes(change, machine);
    azure::check_place(options, makes)?;
    let os =
        azure::check_os(script, change, options, !change.is_known() && machine.size.is_some())?;
    script.header(
        if change.is_known() {
            "bash and the Azure CLI, after az login."
        } else {
            "bash and the Azure CLI, after az login; a resource group, and a subnet for the machine."
        },
        if change.is_known() {
            "creates and attaches new disks, and changes differences. It checks the present state \
             first, so a second run does nothing."
        } else {
            "creates the machine and missing disks, and attaches disks with their LUN and cache \
             mode. The machine has no public IP address and no open port. A second run leaves \
             everything as it is, and reports other sizes and cache modes."
        },
        "format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN), nor delete \
         or shrink anything.",
    );
    script.blank();
    script.line("set -euo pipefail");
    script.blank();
    variable(script, "RESOURCE_GROUP", options.resource_group.as_ref(), "the resource group");
    variable(script, "MACHINE", options.machine.as_ref(), "the name of the machine");
    if makes {
        variable(script, "LOCATION", options.location.as_ref(), "a location, like westeurope");
    }
    let has_zone = makes && (machine.needs_zone || options.zone.is_some());
    if has_zone {
        if machine.needs_zone {
            script.comment("Disks whose limits are bought can only be attached within one zone.");
        }
        variable(script, "ZONE", options.zone.as_ref(), "the zone of the machine and its disks");
    }
    if !change.is_known() && machine.size.is_some() {
        script.blank();
        script.comment("Needed only to create the machine:");
        script.lines(if os == OperatingSystem::Windows { WINDOWS } else { LINUX });
    }
    let zone = if has_zone { " --zone \"$ZONE\"" } else { "" };
    if makes {
        script.blank();
        script.lines(&FUNCTIONS.replace(" @ZONE@", zone));
    }
    functions(script, machine);
    // A machine that does not exist yet has no disks to query.
    if change.is_known() {
        free(script, change, machine);
    }
    vm(script, change, machine, (zone, os));
    if !change.is_known() {
        free(script, change, machine);
    }
    for fate in &machine.disks {
        match *fate {
            Fate::New(disk) => make(script, change, disk),
            Fate::Changed(old, disk) => update(script, change, old, disk),
            Fate::Gone(disk) => gone(script, disk),
            Fate::Same(_) => {}
        }
    }
    disk::local(script, &change.new);
    if steps(machine).any(|(new, steps)| steps.grows && azure::may_stop(new)) {
        script.blank();
        script.line("exit \"$left\"");
    }
    Ok(())
}

/// Writes the check that LUNs of new disks are free, before anything changes.
fn free(script: &mut Script, change: &Change, machine: &Machine<'_>) {
    if azure::made(machine).next().is_none() {
        return;
    }
    script.blank();
    script.lines(FREE);
    script.blank();
    for disk in azure::made(machine) {
        script.line(&format!("free {} {}", shell(&disk.name), change.lun(disk)));
    }
}

const FREE: &str = r#"
attached=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
    --query 'storageProfile.dataDisks[].[name, caching, lun]' --output tsv)

# Stops before any change if an unknown disk has the LUN of a new one.
free() { # NAME LUN
    local name=$1 lun=$2 now other
    now=$(awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $3 }' <<<"$attached")
    other=$(awk -F '\t' -v lun="$lun" '$3 == lun { print $1 }' <<<"$attached")
    if [[ -z $now && -n $other ]]; then
        echo "$name: NOT DONE: $other is attached as LUN $lun; detach it once it is unused, or set another lun in the layout" >&2
        exit 1
    elif [[ ${now:-$lun} != "$lun" ]]; then
        echo "$name: has LUN $now, the layout $lun; not changed" >&2
    fi
}
"#;

/// Returns the changes of disks in use.
fn steps<'a>(machine: &Machine<'a>) -> impl Iterator<Item = (&'a Disk, DiskChange)> {
    machine.disks.iter().filter_map(|fate| match *fate {
        Fate::Changed(old, new) => Some((new, DiskChange::steps(old, new))),
        _ => None,
    })
}

/// Writes the functions for the changes in the script, and no others.
fn functions(script: &mut Script, machine: &Machine<'_>) {
    let any = |is: fn(&Disk, &DiskChange) -> bool| steps(machine).any(|(new, own)| is(new, &own));
    let stops = any(|new, own| own.grows && azure::may_stop(new));
    let stop = "\n    [[ -z ${3:-} || $size -gt 4096 ]] || stop \"$name\" || return 0";
    let grow = GROW
        .replace("@STOP@", if stops { stop } else { "" })
        .replace("@ARGUMENTS@", if stops { "NAME GIB [STOPS]" } else { "NAME GIB" });
    for (is_used, text) in [
        (stops, STOP),
        (any(|_, own| own.grows), &grow),
        (any(|_, own| own.rates || own.tier || own.burst), SET),
        (any(|_, own| own.cache), SET_CACHE),
    ] {
        if is_used {
            script.blank();
            script.lines(text);
        }
    }
}

const STOP: &str = r#"
left=0
stopped=no

# The machine is deallocated once for all disks that need it, and started when the script ends.
stop() { # NAME
    if [[ ${RESTART:-no} != yes ]]; then
        echo "$1: NOT DONE: growing past 4 TiB deallocates the machine; allow it with RESTART=yes" >&2
        left=1
        return 1
    fi
    [[ $stopped == no ]] || return 0
    stopped=yes
    echo "$MACHINE: deallocating it"
    trap 'az vm start --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --output none' EXIT
    az vm deallocate --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --output none || exit 1
}
"#;

const GROW: &str = r#"
# Grows a smaller disk, and leaves a larger one.
grow() { # @ARGUMENTS@
    local name=$1 gib=$2 size
    size=$(az disk show --resource-group "$RESOURCE_GROUP" --name "$name" \
        --query 'diskSizeGB || diskSizeGb' --output tsv)
    if ((size > gib)); then
        echo "$name: already has $size GiB, the layout $gib; not changed" >&2
        return
    elif ((size == gib)); then
        echo "$name: has $gib GiB"
        return
    fi@STOP@
    echo "$name: growing it from $size to $gib GiB"
    az disk update --resource-group "$RESOURCE_GROUP" --name "$name" --size-gb "$gib" --output none
}
"#;

const SET: &str = r#"
# Changes a setting of a disk if it differs.
change() { # NAME QUERY VALUE ARGUMENT...
    local name=$1 query=$2 value=$3 now
    shift 3
    now=$(az disk show --resource-group "$RESOURCE_GROUP" --name "$name" --query "$query" --output tsv)
    if [[ $now == "$value" ]]; then
        echo "$name: has $value"
        return
    fi
    echo "$name: changing it from ${now:-none} to $value"
    az disk update --resource-group "$RESOURCE_GROUP" --name "$name" "$@" --output none
}
"#;

const SET_CACHE: &str = r#"
# Changes the cache mode of an attached disk if it differs.
cache() { # NAME CACHING
    local name=$1 caching=$2 attached now lun
    attached=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
        --query 'storageProfile.dataDisks[].[name, caching, lun]' --output tsv)
    read -r now lun < <(awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $2, $3 }' <<<"$attached") || true
    if [[ $now == "$caching" ]]; then
        echo "$name: has cache $caching"
        return
    fi
    echo "$name: changing its cache from ${now:-none} to $caching"
    az vm update --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
        --disk-caching "${lun:?$name is not attached}=$caching" --output none
}
"#;

const FUNCTIONS: &str = r#"
there=$(az disk list --resource-group "$RESOURCE_GROUP" --query '[].[name, diskSizeGB || diskSizeGb]' --output tsv)

# Creates a missing disk, and reports how an existing one differs.
disk() { # NAME GIB ARGUMENT...
    local name=$1 gib=$2 size
    shift 2
    size=$(awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $2 }' <<<"$there")
    if [[ -z $size ]]; then
        echo "$name: creating it"
        az disk create --resource-group "$RESOURCE_GROUP" --location "$LOCATION" @ZONE@ \
            --name "$name" --size-gb "$gib" "$@" --output none
    elif [[ $size != "$gib" ]]; then
        echo "$name: exists with $size GiB, the layout has $gib; not changed" >&2
    else
        echo "$name: exists"
    fi
}

# Attaches a disk. An attached one stays, and another cache mode is reported.
attach() { # NAME LUN CACHING
    local name=$1 lun=$2 caching=$3 now
    now=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
        --query 'storageProfile.dataDisks[].[name, caching]' --output tsv |
        awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $2 }')
    if [[ -z $now ]]; then
        echo "$name: attaching it as LUN $lun, cache $caching"
        az vm disk attach --resource-group "$RESOURCE_GROUP" --vm-name "$MACHINE" \
            --name "$name" --lun "$lun" --caching "$caching" --output none
    elif [[ $now != "$caching" ]]; then
        echo "$name: has cache $now, the layout $caching; not changed" >&2
    fi
}
"#;

const LINUX: &str = r#"
IMAGE=${IMAGE:-}     # image, for example Ubuntu2204
ADMIN=${ADMIN:-}     # name of the administrator
SSH_KEY=${SSH_KEY:-} # public SSH key of the administrator, or the path of its file
SUBNET=${SUBNET:-}   # id of the subnet
"#;

const WINDOWS: &str = r#"
IMAGE=${IMAGE:-}   # image, for example Win2022Datacenter
ADMIN=${ADMIN:-}   # name of the administrator; az prompts for the password
SUBNET=${SUBNET:-} # id of the subnet
"#;

/// Checks the variables that a new machine or instance needs.
const NEEDS: &str = r#"
# Stops the script if a variable that it needs now is not set.
needs() { # VARIABLE...
    local name missing=
    for name; do
        [[ -n ${!name} ]] || missing+=" $name"
    done
    if [[ -n $missing ]]; then
        echo "these variables are not set:$missing. The top of this script describes them; nothing has changed" >&2
        exit 1
    elif [[ $SUBNET != /subscriptions/*/subnets/* ]]; then
        echo "SUBNET=$SUBNET is not the id of a subnet, like /subscriptions/../virtualNetworks/NAME/subnets/NAME; nothing has changed" >&2
        exit 1
    fi
}
"#;

fn vm(
    script: &mut Script,
    change: &Change,
    machine: &Machine<'_>,
    (zone, os): (&str, OperatingSystem),
) {
    let Some(size) = &machine.size else {
        script.blank();
        script.comment("The layout has no machine size, so the machine must exist.");
        return;
    };
    if change.is_known() {
        change_vm(script, change, machine, size);
    } else {
        make_vm(script, machine, size, (zone, os));
    }
}

/// Creates the machine, or reports how the existing one differs.
fn make_vm(
    script: &mut Script,
    machine: &Machine<'_>,
    size: &str,
    (zone, os): (&str, OperatingSystem),
) {
    script.blank();
    script.lines(NEEDS);
    script.blank();
    script.comment(&format!("The machine: {size}."));
    let mut keys = String::new();
    let mut query = "name, hardwareProfile.vmSize".to_owned();
    let mut wanted = size.to_owned();
    if let Some(interface) = machine.interface {
        query += ", storageProfile.diskControllerType || `\"SCSI\"`";
        wanted += &format!(" {}", interface.name());
    }
    if machine.is_nvme() {
        script.comment(azure::NVME_IMAGE);
        keys += " --disk-controller-type NVMe";
    }
    if machine.licence_owned {
        keys += " --license-type Windows_Server";
        query += ", licenseType";
        wanted += " Windows_Server";
    }
    if machine.has_ultra {
        keys += " --ultra-ssd-enabled true";
    }
    let (needs, admin) = match os {
        OperatingSystem::Linux => (
            "IMAGE ADMIN SSH_KEY SUBNET",
            "--authentication-type ssh --admin-username \"$ADMIN\" --ssh-key-values \"$SSH_KEY\"",
        ),
        OperatingSystem::Windows => (
            "IMAGE ADMIN SUBNET",
            "--computer-name \"${MACHINE:0:15}\" --authentication-type password --admin-username \"$ADMIN\"",
        ),
    };
    script.lines(&format!(
        r#"machines=$(az vm list --resource-group "$RESOURCE_GROUP" --query '[].[{query}]' --output tsv)
now=$(awk -F '\t' -v name="$MACHINE" 'tolower($1) == tolower(name) {{ $1 = ""; print substr($0, 2) }}' <<<"$machines")
wanted={wanted}
if [[ -z $now ]]; then
    needs {needs}
    echo "$MACHINE: creating it"
    az vm create --resource-group "$RESOURCE_GROUP" --location "$LOCATION"{zone} --name "$MACHINE" \
        --size {quoted}{keys} --image "$IMAGE" \
        {admin} \
        --subnet "$SUBNET" --public-ip-address '' --nsg-rule NONE --output none
elif [[ $now != "$wanted" ]]; then
    echo "$MACHINE: is $now, the layout has $wanted; not changed" >&2
fi"#,
        quoted = shell(size),
        wanted = shell(&wanted)
    ));
}

/// Writes the changes of an existing machine, and reports those that are impossible in place.
fn change_vm(script: &mut Script, change: &Change, machine: &Machine<'_>, size: &str) {
    if change.interfaces().is_some() {
        script.blank();
        azure::tell_interfaces(script, change);
        let interface = machine.interface.map(Interface::name).unwrap_or_default();
        script.line(&format!("wanted={}", shell(&format!("{size} {interface}"))));
        script.lines(CONTROLLER);
    } else if let Some(sizes) = change.resize() {
        match change.refusal() {
            Some(_) => {
                azure::tell_refusal(script, change, sizes);
                script.line(&format!("wanted={}", shell(size)));
                script.lines(OTHER_MACHINE);
            }
            None => resize(script, change, sizes, size),
        }
    }
    if let Some(is_owned) = change.licence() {
        let licence = if is_owned { "Windows_Server" } else { "None" };
        script.blank();
        script.comment("The licence type changes without a restart.");
        script.lines(&LICENCE.replace("@LICENCE@", licence));
    }
}

const CONTROLLER: &str = r#"
size=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --query hardwareProfile.vmSize --output tsv)
controller=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --query storageProfile.diskControllerType --output tsv)
if [[ "$size ${controller:-SCSI}" != "$wanted" ]]; then
    echo "$MACHINE: NOT DONE: is $size ${controller:-SCSI}, the layout has $wanted; convert it, and run this again" >&2
    exit 1
fi
"#;

const LICENCE: &str = r#"
licence=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --query licenseType --output tsv)
if [[ ${licence:-None} != @LICENCE@ ]]; then
    echo "$MACHINE: changing its licence from ${licence:-None} to @LICENCE@"
    az vm update --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --license-type @LICENCE@ --output none
fi
"#;

/// The size of a machine that cannot become another one.
const OTHER_MACHINE: &str = r#"
size=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --query hardwareProfile.vmSize --output tsv)
if [[ $size != "$wanted" ]]; then
    echo "$MACHINE: NOT DONE: is $size, the layout has $wanted; create that machine, and run this again for it" >&2
    exit 1
fi
"#;

fn resize(script: &mut Script, change: &Change, sizes: (&str, &str), size: &str) {
    azure::tell_resize(script, change, sizes, "RESTART=yes");
    script.lines(&format!(
        r#"size=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --query hardwareProfile.vmSize --output tsv)
wanted={size}
if [[ $size != "$wanted" ]]; then
    if [[ ${{RESTART:-no}} != yes ]]; then
        echo "$MACHINE: a resize from $size to $wanted restarts it; set RESTART=yes to do it" >&2
        exit 1
    fi
    az vm resize --resource-group "$RESOURCE_GROUP" --name "$MACHINE" --size "$wanted" --output none
fi"#,
        size = shell(size)
    ));
}

fn make(script: &mut Script, change: &Change, disk: &Disk) {
    let own = AzureDisk::from_disk(script, change, disk);
    script.blank();
    script.comment(&own.words());
    let mut line = format!("disk {} {} --sku {}", shell(&disk.name), own.gib, own.sku);
    if let Some((iops, mb)) = own.bought {
        line += &format!(" --disk-iops-read-write {iops} --disk-mbps-read-write {mb}");
    }
    if let Some(tier) = &disk.performance_tier {
        line += &format!(" --tier {}", shell(tier));
    }
    if disk.on_demand_burst {
        line += " --enable-bursting true";
    }
    if disk.performance_plus {
        line += " --performance-plus true";
    }
    script.line(&line);
    script.line(&format!("attach {} {} {}", shell(&disk.name), own.lun, own.caching));
}

fn update(script: &mut Script, change: &Change, old: &Disk, disk: &Disk) {
    script.blank();
    let own = AzureDisk::from_disk(script, change, disk);
    script.comment(&own.words());
    let steps = DiskChange::between(script, old, disk);
    let name = shell(&disk.name);
    if steps.grows {
        azure::tell_growth(script, disk, steps, "RESTART=yes");
        let stop = if azure::may_stop(disk) { " stops" } else { "" };
        script.line(&format!("grow {name} {}{stop}", own.gib));
    }
    if let Some((iops, mb)) = own.bought.filter(|_| steps.rates) {
        script.lines(&format!(
            "change {name} {RATES} \\\n    '{iops} IOPS, {mb} MB/s' --disk-iops-read-write {iops} \
             --disk-mbps-read-write {mb}"
        ));
    }
    if steps.tier {
        // Without a performance tier, the disk gets its own tier again.
        if let Some(tier) = disk.performance_tier.as_ref().or(disk.tier.as_ref()) {
            let tier = shell(tier);
            script.line(&format!("change {name} tier {tier} --set tier={tier}"));
        }
    }
    if steps.burst {
        let bursts = disk.on_demand_burst;
        script.line(&format!(
            "change {name} 'burstingEnabled && `true` || `false`' {bursts} --enable-bursting {bursts}"
        ));
    }
    if steps.cache {
        script.comment(CACHE);
        script.line(&format!("cache {name} {}", own.caching));
    }
}

/// The limits of a disk in one line, by the names of older and newer versions of the CLI.
const RATES: &str = "\"join('', [to_string(diskIOPSReadWrite || diskIopsReadWrite), ' IOPS, ', \
                     to_string(diskMBpsReadWrite || diskMbpsReadWrite), ' MB/s'])\"";

fn gone(script: &mut Script, disk: &Disk) {
    disk::gone(script, disk);
    let name = shell(&disk.name);
    script.quiet(&format!(
        "az vm disk detach --resource-group \"$RESOURCE_GROUP\" --vm-name \"$MACHINE\" --name {name}"
    ));
    script
        .quiet(&format!("az disk delete --resource-group \"$RESOURCE_GROUP\" --name {name} --yes"));
}

fn of_instance(
    script: &mut Script,
    change: &Change,
    options: &Options,
    sql: &Sql<'_>,
) -> Result<(), ExportError> {
    azure::check_place(options, !change.is_known())?;
    let does_not = "create its network, databases or their files (--as tsql).";
    let does = if change.is_known() {
        "changes vCores, storage and tier of the instance. It checks the present state first, and \
         does nothing twice."
    } else {
        "creates the instance if it is missing, without a public endpoint and with Microsoft \
         Entra-only authentication (no password). A second run leaves it as it is, and reports differences."
    };
    let needs = match change.is_known() {
        true => "bash and the Azure CLI, after az login.",
        false => {
            "bash and the Azure CLI, after az login; a resource group, and a subnet for managed instances."
        }
    };
    script.header(needs, does, does_not);
    script.blank();
    script.line("set -euo pipefail");
    script.blank();
    variable(script, "RESOURCE_GROUP", options.resource_group.as_ref(), "the resource group");
    variable(script, "INSTANCE", options.machine.as_ref(), "the name of the instance");
    if sql.old.is_none() {
        variable(script, "LOCATION", options.location.as_ref(), "a location, like westeurope");
        script.blank();
        script.comment("Needed only to create the instance:");
        script.lines(INSTANCE);
    }
    match sql.old {
        Some(old) => update_instance(script, sql, old),
        None => make_instance(script, sql),
    }
    Ok(())
}

const INSTANCE: &str = r#"
SUBNET=${SUBNET:-}             # id of the subnet
ADMIN=${ADMIN:-}               # name of the administrator in Microsoft Entra ID
ADMIN_ID=${ADMIN_ID:-}         # object id of the administrator (client id of an application)
ADMIN_TYPE=${ADMIN_TYPE:-User} # User, Group or Application
FAMILY=${FAMILY:-Gen5}         # hardware
"#;

fn make_instance(script: &mut Script, sql: &Sql<'_>) {
    let mut keys = format!(
        "--edition {} --capacity {} --storage {} --license-type {}",
        sql.edition(),
        sql.new.vcores,
        sql.gb(),
        sql.licence()
    );
    if let Some(iops) = sql.iops {
        keys += &format!(" --gpv2 true --iops {iops}");
    }
    script.blank();
    script.lines(NEEDS);
    script.blank();
    script.comment(&sql.words());
    script.lines(&format!(
        r#"there=$(az sql mi list --resource-group "$RESOURCE_GROUP" --query '[].[name, vCores, storageSizeInGB || storageSizeInGb, licenseType]' --output tsv)
now=$(awk -F '\t' -v name="$INSTANCE" 'tolower($1) == tolower(name) {{ print $2 " vCores, " $3 " GB, " $4 }}' <<<"$there")
if [[ -z $now ]]; then
    needs SUBNET ADMIN ADMIN_ID
    echo "$INSTANCE: creating it; that takes hours"
    az sql mi create --resource-group "$RESOURCE_GROUP" --name "$INSTANCE" --location "$LOCATION" \
        {keys} --family "$FAMILY" \
        --subnet "$SUBNET" --public-data-endpoint-enabled false \
        --enable-ad-only-auth --external-admin-principal-type "$ADMIN_TYPE" \
        --external-admin-name "$ADMIN" --external-admin-sid "$ADMIN_ID" --output none
elif [[ $now != '{vcores} vCores, {gb} GB, {licence}' ]]; then
    echo "$INSTANCE: has $now, the layout {vcores} vCores, {gb} GB, {licence}; not changed" >&2
else
    echo "$INSTANCE: exists"
fi"#,
        vcores = sql.new.vcores,
        gb = sql.gb(),
        licence = sql.licence()
    ));
}

fn update_instance(script: &mut Script, sql: &Sql<'_>, old: &Instance) {
    let steps = sql.steps(old);
    script.blank();
    script.lines(DIFFERS);
    if steps.grows {
        script.blank();
        script.lines(GROWS_TO);
    }
    script.blank();
    script.comment(&sql.words());
    sql.warns(script);
    let (edition, vcores, gb) = (sql.edition(), sql.new.vcores, sql.gb());
    if steps.edition {
        script.line(&format!("differs edition sku.tier {edition} --edition {edition}"));
    }
    if steps.vcores {
        script.line(&format!("differs vCores vCores {vcores} --capacity {vcores}"));
    }
    if steps.grows {
        script.line(&format!("grows {gb}"));
    } else if steps.storage {
        script.line(&format!("differs GB '{STORAGE}' {gb} --storage {gb}"));
    }
    if steps.next_gen {
        let is = sql.is_next_gen();
        script.line(&format!(
            "differs 'next generation' 'isGeneralPurposeV2 && `true` || `false`' {is} --gpv2 {is}"
        ));
    }
    if let Some(iops) = steps.iops {
        script.line(&format!("differs IOPS 'storageIOps || storageIops' {iops} --iops {iops}"));
    }
    if steps.licence {
        let licence = sql.licence();
        script.line(&format!("differs licence licenseType {licence} --license-type {licence}"));
    }
    script.blank();
    script.lines(UPDATE_INSTANCE);
}

/// The storage of an instance, by the names of older and newer versions of the CLI.
const STORAGE: &str = "storageSizeInGB || storageSizeInGb";

const DIFFERS: &str = r#"
# Collects the settings that differ. All are changed at once, because each change ends with a failover.
keys=()
differs() { # WHAT QUERY VALUE ARGUMENT...
    local what=$1 query=$2 value=$3 now
    shift 3
    now=$(az sql mi show --resource-group "$RESOURCE_GROUP" --name "$INSTANCE" --query "$query" --output tsv)
    if [[ $now == "$value" ]]; then
        echo "$INSTANCE: $what: has $value"
    else
        echo "$INSTANCE: $what: ${now:-none} becomes $value"
        keys+=("$@")
    fi
}
"#;

const GROWS_TO: &str = r#"
# Grows smaller storage, and leaves larger storage.
grows() { # GB
    local gb=$1 now
    now=$(az sql mi show --resource-group "$RESOURCE_GROUP" --name "$INSTANCE" \
        --query 'storageSizeInGB || storageSizeInGb' --output tsv)
    if ((now > gb)); then
        echo "$INSTANCE: already has $now GB, the layout $gb; its storage stays" >&2
    else
        differs GB 'storageSizeInGB || storageSizeInGb' "$gb" --storage "$gb"
    fi
}
"#;

const UPDATE_INSTANCE: &str = r#"
if ((${#keys[@]} > 0)); then
    echo "$INSTANCE: changing it"
    az sql mi update --resource-group "$RESOURCE_GROUP" --name "$INSTANCE" "${keys[@]}" --output none
fi
"#;
