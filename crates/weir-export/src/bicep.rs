//! Disks and a machine, or a managed instance, as a Bicep module.
//!
//! A module describes the whole state, so changes appear in comments. Disks that are no longer in
//! the layout stay in it: the disks of a machine are one list, and a disk missing from it is
//! detached.

use crate::azure::{self, AzureDisk, Machine, Sql};
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::{OperatingSystem, Options};
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

/// Rejects a resource group, which is the target of a deployment rather than a parameter.
fn refuse_group(options: &Options) -> Result<(), ExportError> {
    match &options.resource_group {
        Some(group) => Err(crate::options::refused(
            format!("--resource-group {group}"),
            "a Bicep module does not contain it; pass it to az deployment group create".to_owned(),
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
    let os = azure::check_os(script, change, options, true)?;
    header(script, change.is_known());
    tell_changes(script, change, machine);
    script.blank();
    parameter(script, "machineName", "The name of the machine.", options.machine.as_ref());
    location(script, options);
    zones(script, options, machine);
    script.lines(match change.is_known() {
        true => PRESENT_NETWORK,
        false => "@description('The id of its subnet.')\nparam subnetId string",
    });
    script.line("@description('The name of its administrator.')\nparam adminUsername string");
    script.lines(match os {
        OperatingSystem::Linux => {
            "@description('The public SSH key of its administrator.')\nparam sshPublicKey string"
        }
        OperatingSystem::Windows => {
            "@description('The password of its administrator.')\n@secure()\nparam adminPassword string"
        }
    });
    if machine.is_nvme() {
        script.comment(azure::NVME_IMAGE);
    }
    script.lines(
        "@description('Its image, for example { publisher: .., offer: .., sku: .., version: .. \
         }.')\n\
         param imageReference object",
    );
    if machine.size.is_none() {
        script.line("@description('Its size, which the layout does not have.')");
        script.line("param machineSize string");
    }
    let mut attached = Vec::new();
    for fate in &machine.disks {
        if let Some(entry) = entry(script, change, *fate) {
            attached.push(entry);
        }
    }
    if !change.is_known() {
        script.blank();
        script.lines(NETWORK);
    }
    let interfaces = if change.is_known() { "networkInterfaces" } else { NEW_INTERFACE };
    vm(script, machine, os, &attached, interfaces);
    disk::local(script, &change.new);
    Ok(())
}

/// Writes the head of a module that creates a machine, or changes the one in use.
fn header(script: &mut Script, is_present: bool) {
    const FORMATS: &str =
        "format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN)";
    const DETACHES: &str = "A disk that is attached to the machine and not in this module is detached: look first \
                            with az deployment group what-if.";
    match is_present {
        false => script.header(
            "a subnet; deploy with az deployment group create --template-file FILE.",
            &format!(
                "creates the machine and its disks, each with its LUN and cache mode, and a \
                 network interface without a public IP address or an open port; deployed again it changes what \
                 differs. {DETACHES}"
            ),
            &format!("{FORMATS}, nor delete a disk."),
        ),
        true => script.header(
            "the machine, and its network interfaces as a parameter; deploy with az deployment group create \
             --template-file FILE.",
            &format!(
                "creates new disks and changes the machine and the disks that differ. The machine \
                 keeps its network interfaces; tags that this file does not declare are removed. \
                 {DETACHES}"
            ),
            &format!("{FORMATS}, create or change anything in the network, nor delete a disk."),
        ),
    }
}

/// The network interfaces of a machine in use, in the resource's form, which `az` prints flattened.
/// A deployment replaces the whole list.
const PRESENT_NETWORK: &str = "@description('All of its network interfaces, as az vm show --query \
                               \"networkProfile.networkInterfaces[].{id: id, properties: {primary: \
                               primary, deleteOption: deleteOption}}\" prints them.')\n\
                               param networkInterfaces array";

/// The list of network interfaces of a new machine.
const NEW_INTERFACE: &str = "[\n        {\n          id: nic.id\n        }\n      ]";

fn zones(script: &mut Script, options: &Options, machine: &Machine<'_>) {
    if machine.needs_zone {
        script.comment("Disks whose limits are bought can only be attached within one zone.");
        parameter(script, "zone", "The zone of the machine and its disks.", options.zone.as_ref());
        script.line("var zones = [zone]");
    } else {
        let zone = options.zone.as_ref().map(|zone| bicep(zone)).unwrap_or_default();
        script.line("@description('The zone of the machine and its disks, if it has one.')");
        script.line(&format!("param zones array = [{zone}]"));
    }
}

/// Writes the changes as comments before the module.
fn tell_changes(script: &mut Script, change: &Change, machine: &Machine<'_>) {
    if !change.is_known() || machine.is_same(change) {
        return;
    }
    script.comment("");
    script.comment(
        "A module describes the whole state. Compared with the layout in use, it \
                    changes:",
    );
    let words = match (change.interfaces(), change.resize()) {
        (Some((old, new)), _) => Some(azure::interface_words(change, old, new)),
        (None, Some((old, new))) => Some(azure::resize_words(change, old, new)),
        (None, None) => None,
    };
    if let Some(words) = words {
        script.comment(&format!("- {words}"));
        script.note(&words);
    }
    if let Some(is_owned) = change.licence() {
        let words = if is_owned { "owned" } else { "included in the price" };
        script.comment(&format!("- the Windows Server licence becomes {words}"));
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
                script.comment(&format!("- {} is no longer in the layout", disk.own))
            }
            Fate::Same(_) => {}
        }
    }
}

/// Writes a disk, and its entry in the machine's list.
fn entry(
    script: &mut Script,
    change: &Change,
    fate: Fate<'_, crate::site::Disk>,
) -> Option<String> {
    script.blank();
    let remove = "remove it from the machine's list, deploy, and delete the disk.";
    let (kept, _) = azure::in_module(script, fate, remove);
    let disk = &kept;
    let own = AzureDisk::from_disk(script, change, disk);
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

/// The network interface, with the names that `az vm create` gives.
const NETWORK: &str = r#"
resource nsg 'Microsoft.Network/networkSecurityGroups@2023-11-01' = {
  name: '${machineName}NSG'
  location: location
  properties: {
    securityRules: []
  }
}

resource nic 'Microsoft.Network/networkInterfaces@2023-11-01' = {
  name: '${machineName}VMNic'
  location: location
  properties: {
    networkSecurityGroup: {
      id: nsg.id
    }
    ipConfigurations: [
      {
        name: 'ipconfig${machineName}'
        properties: {
          privateIPAllocationMethod: 'Dynamic'
          subnet: {
            id: subnetId
          }
        }
      }
    ]
  }
}
"#;

fn vm(
    script: &mut Script,
    machine: &Machine<'_>,
    os: OperatingSystem,
    attached: &[String],
    interfaces: &str,
) {
    let size = machine.size.as_ref().map_or_else(|| "machineSize".to_owned(), |size| bicep(size));
    let ultra = if machine.has_ultra {
        "    additionalCapabilities: {\n      ultraSSDEnabled: true\n    }\n"
    } else {
        ""
    };
    let controller = if machine.is_nvme() { "      diskControllerType: 'NVMe'\n" } else { "" };
    let licence = if machine.licence_owned { "    licenseType: 'Windows_Server'\n" } else { "" };
    let profile = match os {
        OperatingSystem::Linux => LINUX_PROFILE,
        OperatingSystem::Windows => WINDOWS_PROFILE,
    };
    script.blank();
    script.lines(&format!(
        "resource machine 'Microsoft.Compute/virtualMachines@2024-03-01' = {{\n  name: machineName\n  \
         location: location\n  zones: zones\n  properties: {{\n    hardwareProfile: {{\n      vmSize: {size}\n    \
         }}\n{ultra}{licence}    storageProfile: {{\n{controller}      imageReference: imageReference\n      osDisk: \
         {{\n        createOption: 'FromImage'\n      }}\n      dataDisks: [\n{}\n      ]\n    }}\n{}\n    \
         networkProfile: {{\n      networkInterfaces: {interfaces}\n    }}\n  }}\n}}",
        attached.join("\n"),
        profile.trim_matches('\n')
    ));
}

const LINUX_PROFILE: &str = r#"
    osProfile: {
      computerName: machineName
      adminUsername: adminUsername
      linuxConfiguration: {
        disablePasswordAuthentication: true
        ssh: {
          publicKeys: [
            {
              path: '/home/${adminUsername}/.ssh/authorized_keys'
              keyData: sshPublicKey
            }
          ]
        }
      }
    }
"#;

const WINDOWS_PROFILE: &str = r#"
    osProfile: {
      computerName: take(machineName, 15)
      adminUsername: adminUsername
      adminPassword: adminPassword
    }
"#;

fn of_instance(
    script: &mut Script,
    change: &Change,
    options: &Options,
    sql: &Sql<'_>,
) -> Result<(), ExportError> {
    refuse_group(options)?;
    script.header(
        "a subnet for managed instances; deploy with az deployment group create --template-file FILE.",
        "creates the instance, without a public endpoint and with Microsoft Entra-only \
         authentication (no password); deployed again it changes what differs.",
        "create its network, databases or their files (--as tsql).",
    );
    if change.is_known() {
        sql.warns(script);
    }
    script.blank();
    parameter(script, "instanceName", "The name of the instance.", options.machine.as_ref());
    location(script, options);
    script.lines(
        "@description('The id of its subnet.')\nparam subnetId string\n\
         @description('The name of its administrator in Microsoft Entra ID.')\nparam adminName string\n\
         @description('The object id of its administrator (the client id of an application).')\n\
         param adminId string\n\
         @description('The type of its administrator.')\n@allowed(['User', 'Group', 'Application'])\n\
         param adminType string = 'User'\n\
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
         subnetId: subnetId\n    publicDataEndpointEnabled: false\n    administrators: {{\n      \
         administratorType: 'ActiveDirectory'\n      azureADOnlyAuthentication: true\n      login: adminName\n      \
         sid: adminId\n      principalType: adminType\n      tenantId: tenant().tenantId\n    }}\n    \
         licenseType: '{}'\n    vCores: {}\n    storageSizeInGB: {}{next_gen}\n  }}\n}}",
        sql.sku(),
        sql.edition(),
        sql.licence(),
        sql.new.vcores,
        sql.gb()
    ));
    Ok(())
}
