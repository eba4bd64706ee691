//! Disks and a machine, or a managed instance, as a module of Bicep.
//!
//! A module says all that is to be, whatever is there: what a diff changes is told in comments.
//! What the layout has no more stays in it, since the disks of a machine are one list, and what
//! is missing from that is detached.

use crate::azure::{self, AzureDisk, Machine, Sql};
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::Options;
use crate::quote::bicep;
use crate::script::Script;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    azure::write(script, change, options, of_machine, of_instance)
}

fn parameter(script: &mut Script, name: &str, what: &str, value: Option<&String>) {
    let default = value.map(|value| format!(" = {}", bicep(value))).unwrap_or_default();
    script.line(&format!("@description({})", bicep(what)));
    script.line(&format!("param {name} string{default}"));
}

fn location(script: &mut Script, options: &Options) {
    script.line("@description('The location.')");
    match &options.location {
        Some(location) => script.line(&format!("param location string = {}", bicep(location))),
        None => script.line("param location string = resourceGroup().location"),
    }
}

/// A resource group is where a module is deployed to, and no parameter of it.
fn refuse_group(options: &Options) -> Result<(), ExportError> {
    match &options.resource_group {
        Some(group) => Err(crate::options::refused(
            format!("--resource-group {group}"),
            "a module of Bicep does not say it; give it to az deployment group create".to_owned(),
        )),
        None => Ok(()),
    }
}

fn of_machine(
    script: &mut Script,
    change: &Change,
    options: &Options,
    machine: &Machine<'_>,
) -> Result<(), ExportError> {
    refuse_group(options)?;
    script.header(
        "a network interface; deploy with az deployment group create --template-file FILE.",
        "makes the disks and the machine with them, each with its LUN and cache mode; deployed again it \
         changes what differs. A disk that is attached to the machine and not in this module is detached: \
         look first with az deployment group what-if.",
        "format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN), nor delete \
         a disk.",
    );
    tell_changes(script, change, machine);
    script.blank();
    parameter(script, "machineName", "The name of the machine.", options.machine.as_ref());
    location(script, options);
    zones(script, options, machine);
    script.lines(
        "@description('The id of its network interface.')\nparam nicId string\n\
         @description('The name of its administrator.')\nparam adminUsername string\n\
         @description('The password of its administrator.')\n@secure()\nparam adminPassword string\n\
         @description('What it starts from, like { publisher: .., offer: .., sku: .., version: .. }.')\n\
         param imageReference object",
    );
    if machine.size.is_none() {
        script.line("@description('Its size, which the layout does not say.')");
        script.line("param machineSize string");
    }
    let mut attached = Vec::new();
    for fate in &machine.disks {
        if let Some(entry) = entry(script, change, *fate) {
            attached.push(entry);
        }
    }
    vm(script, machine, &attached);
    disk::local(script, &change.new);
    Ok(())
}

fn zones(script: &mut Script, options: &Options, machine: &Machine<'_>) {
    if machine.needs_zone {
        script.comment("Disks whose limits are bought are attached within one zone only.");
        parameter(script, "zone", "The zone of the machine and its disks.", options.zone.as_ref());
        script.line("var zones = [zone]");
    } else {
        let zone = options.zone.as_ref().map(|zone| bicep(zone)).unwrap_or_default();
        script.line("@description('The zone of the machine and its disks, if it has one.')");
        script.line(&format!("param zones array = [{zone}]"));
    }
}

/// What a diff changes, before the module that has all.
fn tell_changes(script: &mut Script, change: &Change, machine: &Machine<'_>) {
    if !change.is_known() || machine.is_same(change) {
        return;
    }
    script.comment("");
    script.comment("A module says all that is to be. Of what is there at present this changes:");
    if let Some((old, new)) = change.resize() {
        let words = azure::resize_words(old, new);
        script.comment(&format!("- {words}"));
        script.note(&words);
    }
    for fate in &machine.disks {
        match *fate {
            Fate::New(disk) => script.comment(&format!("- {} is new", disk.own)),
            Fate::Changed(old, disk) => {
                script.comment(&format!(
                    "- {}: {} becomes {}",
                    disk.own,
                    old.words(),
                    disk.words()
                ));
            }
            Fate::Gone(disk) => {
                script.comment(&format!("- {} is not in the layout any more", disk.own))
            }
            Fate::Same(_) => {}
        }
    }
}

/// A disk, and its entry in the list of the machine.
fn entry(
    script: &mut Script,
    change: &Change,
    fate: Fate<'_, crate::site::Disk>,
) -> Option<String> {
    script.blank();
    let remove = "take it out of the list of the machine, deploy, and delete the disk.";
    let (kept, _) = azure::in_module(script, fate, remove);
    let disk = &kept;
    let own = AzureDisk::of(script, change, disk);
    script.comment(&own.words());
    let symbol = format!("disk{}", own.lun);
    let mut properties = format!(
        "    creationData: {{\n      createOption: 'Empty'{}\n    }}\n    diskSizeGB: {}",
        if disk.performance_plus { "\n      performancePlus: true" } else { "" },
        own.gib
    );
    if let Some((iops, mb)) = own.bought {
        properties += &format!("\n    diskIOPSReadWrite: {iops}\n    diskMBpsReadWrite: {mb}");
    }
    if let Some(tier) = &disk.performance_tier {
        properties += &format!("\n    tier: {}", bicep(tier));
    }
    if disk.on_demand_burst {
        properties += "\n    burstingEnabled: true";
    }
    script.lines(&format!(
        "resource {symbol} 'Microsoft.Compute/disks@2023-10-02' = {{\n  name: {}\n  location: location\n  \
         zones: zones\n  sku: {{\n    name: '{}'\n  }}\n  properties: {{\n{properties}\n  }}\n}}",
        bicep(&disk.name),
        own.sku
    ));
    Some(format!(
        "        {{\n          lun: {}\n          createOption: 'Attach'\n          caching: '{}'\n          \
         managedDisk: {{\n            id: {symbol}.id\n          }}\n        }}",
        own.lun, own.caching
    ))
}

fn vm(script: &mut Script, machine: &Machine<'_>, attached: &[String]) {
    let size = machine.size.as_ref().map_or_else(|| "machineSize".to_owned(), |size| bicep(size));
    let ultra = if machine.has_ultra {
        "    additionalCapabilities: {\n      ultraSSDEnabled: true\n    }\n"
    } else {
        ""
    };
    script.blank();
    script.lines(&format!(
        "resource machine 'Microsoft.Compute/virtualMachines@2024-03-01' = {{\n  name: machineName\n  \
         location: location\n  zones: zones\n  properties: {{\n    hardwareProfile: {{\n      vmSize: {size}\n    \
         }}\n{ultra}    storageProfile: {{\n      imageReference: imageReference\n      osDisk: {{\n        \
         createOption: 'FromImage'\n      }}\n      dataDisks: [\n{}\n      ]\n    }}\n    osProfile: {{\n      \
         computerName: machineName\n      adminUsername: adminUsername\n      adminPassword: adminPassword\n    \
         }}\n    networkProfile: {{\n      networkInterfaces: [\n        {{\n          id: nicId\n        }}\n      \
         ]\n    }}\n  }}\n}}",
        attached.join("\n")
    ));
}

fn of_instance(
    script: &mut Script,
    change: &Change,
    options: &Options,
    sql: &Sql<'_>,
) -> Result<(), ExportError> {
    refuse_group(options)?;
    script.header(
        "a subnet for managed instances; deploy with az deployment group create --template-file FILE.",
        "makes the instance; deployed again it changes what differs.",
        "make the network that it is in, nor databases or their files (--as tsql).",
    );
    if change.is_known() {
        sql.warns(script);
    }
    script.blank();
    parameter(script, "instanceName", "The name of the instance.", options.machine.as_ref());
    location(script, options);
    script.lines(
        "@description('The id of its subnet.')\nparam subnetId string\n\
         @description('The login of its administrator.')\nparam adminLogin string\n\
         @description('The password of its administrator.')\n@secure()\nparam adminPassword string\n\
         @description('The hardware.')\nparam hardware string = 'Gen5'",
    );
    let next_gen = sql
        .iops
        .map(|iops| format!("\n    isGeneralPurposeV2: true\n    storageIOps: {iops}"))
        .unwrap_or_default();
    let version = if sql.is_next_gen() { "2024-11-01-preview" } else { "2023-08-01" };
    script.blank();
    script.comment(&sql.words());
    script.lines(&format!(
        "resource instance 'Microsoft.Sql/managedInstances@{version}' = {{\n  name: instanceName\n  \
         location: location\n  sku: {{\n    name: '{}_${{hardware}}'\n    tier: '{}'\n  }}\n  properties: {{\n    \
         subnetId: subnetId\n    administratorLogin: adminLogin\n    administratorLoginPassword: adminPassword\n    \
         vCores: {}\n    storageSizeInGB: {}{next_gen}\n  }}\n}}",
        sql.sku(),
        sql.edition(),
        sql.new.vcores,
        sql.gb()
    ));
    Ok(())
}
