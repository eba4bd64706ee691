//! Disks of Azure and their attachment to a machine, or a managed instance.

use super::module::{self, number, variable};
use crate::azure::{self, AzureDisk, Machine, Sql};
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::Options;
use crate::quote::terraform;
use crate::script::Script;
use crate::site::Disk;

pub(super) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    azure::write(script, change, options, of_machine, of_instance)
}

fn of_machine(
    script: &mut Script,
    change: &Change,
    options: &Options,
    machine: &Machine<'_>,
) -> Result<(), ExportError> {
    if machine.disks.iter().all(|fate| fate.wanted().is_none()) {
        return Err(ExportError::Nothing {
            layout: change.new.layout.clone(),
            kind: "terraform",
            reason:
                "the layout has no remote volume; export the machine itself with --as az, bicep or \
                 powershell"
                    .to_owned(),
        });
    }
    script.header(
        "Terraform 1.3, the provider azurerm 4, and an existing machine.",
        "creates the disks and attaches them, each with its LUN and cache mode; applied again it \
         changes what differs.",
        "format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN), nor \
         destroy a disk: prevent_destroy prevents that.",
    );
    if let Some((old, new)) = change.interfaces() {
        module::resize(script, &azure::interface_words(change, old, new));
    } else if let Some((old, new)) = change.resize() {
        module::resize(script, &azure::resize_words(change, old, new));
    }
    module::providers(script, "azurerm", "4.0", "");
    variable(script, "resource_group", "The resource group.", options.resource_group.as_ref());
    variable(script, "machine", "The name of the machine.", options.machine.as_ref());
    let zone = "The zone of the machine and its disks; null if it has none.";
    if machine.needs_zone {
        script.comment("Disks whose limits are bought can only be attached within one zone.");
        variable(script, "zone", zone, options.zone.as_ref());
    } else {
        let default =
            options.zone.as_ref().map_or_else(|| "null".to_owned(), |zone| terraform(zone));
        script.lines(&format!(
            "variable \"zone\" {{\n  description = {}\n  type        = string\n  default     = {default}\n}}",
            terraform(zone)
        ));
        script.blank();
    }
    let place = options.location.as_ref().map_or_else(
        || "data.azurerm_virtual_machine.machine.location".to_owned(),
        |location| terraform(location),
    );
    script.lines(
        "data \"azurerm_virtual_machine\" \"machine\" {\n  name                = var.machine\n  \
         resource_group_name = var.resource_group\n}",
    );
    script.blank();
    module::disks(script, change, &machine.disks, row);
    script.lines(&RESOURCES.replace("@PLACE@", &place));
    module::machine_size(script, machine.size.as_ref());
    if machine.is_nvme() {
        script.blank();
        script.comment(
            "The limits in the layout require this disk controller. Set it where the machine is \
             managed, as disk_controller_type of azurerm_linux_virtual_machine or azurerm_windows_virtual_machine, with an \
             image of generation 2 that supports NVMe.",
        );
        script.lines("output \"disk_controller_type\" {\n  value = \"NVMe\"\n}");
    }
    if machine.licence_owned {
        script.blank();
        script.comment(
            "The Windows Server licence is owned: set license_type of azurerm_windows_virtual_machine to this.",
        );
        script.lines("output \"license_type\" {\n  value = \"Windows_Server\"\n}");
    }
    disk::local(script, &change.new);
    Ok(())
}

const RESOURCES: &str = r#"
resource "azurerm_managed_disk" "disk" {
  for_each = local.disks

  name                       = each.key
  resource_group_name        = var.resource_group
  location                   = @PLACE@
  zone                       = var.zone
  create_option              = "Empty"
  storage_account_type       = each.value.sku
  disk_size_gb               = each.value.gib
  tier                       = each.value.tier
  disk_iops_read_write       = each.value.iops
  disk_mbps_read_write       = each.value.mbps
  on_demand_bursting_enabled = each.value.bursting
  performance_plus_enabled   = each.value.plus

  # A disk holds data: it goes only after this has been taken out by hand.
  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_virtual_machine_data_disk_attachment" "disk" {
  for_each = local.disks

  managed_disk_id    = azurerm_managed_disk.disk[each.key].id
  virtual_machine_id = data.azurerm_virtual_machine.machine.id
  lun                = each.value.lun
  caching            = each.value.caching
}
"#;

/// Writes a row of the table of disks.
fn row(script: &mut Script, change: &Change, fate: Fate<'_, Disk>) {
    let (kept, grows) = azure::in_module(script, fate, module::REMOVE);
    let disk = &kept;
    if grows {
        script.comment(azure::GROWS);
    }
    let own = AzureDisk::from_disk(script, change, disk);
    script.comment(&own.words());
    let tier =
        disk.performance_tier.as_ref().map_or_else(|| "null".to_owned(), |tier| terraform(tier));
    script.lines(&format!(
        "    {} = {{\n      sku      = \"{}\"\n      gib      = {}\n      lun      = {}\n      caching  = \
         \"{}\"\n      tier     = {tier}\n      iops     = {}\n      mbps     = {}\n      bursting = \
         {}\n      plus     = {}\n    }}",
        terraform(&disk.name),
        own.sku,
        own.gib,
        own.lun,
        own.caching,
        number(own.bought.map(|(iops, _)| iops)),
        number(own.bought.map(|(_, mb)| mb)),
        flag(disk.on_demand_burst),
        flag(disk.performance_plus)
    ));
}

/// Returns the value of a setting; the provider's default if it is not chosen.
fn flag(is_chosen: bool) -> &'static str {
    if is_chosen { "true" } else { "null" }
}

fn of_instance(
    script: &mut Script,
    change: &Change,
    options: &Options,
    sql: &Sql<'_>,
) -> Result<(), ExportError> {
    script.header(
        "Terraform 1.3, the provider azurerm 4.38 or newer, and a subnet for managed instances.",
        "creates the instance, without a public endpoint and with Microsoft Entra-only \
         authentication (no password); applied again it changes what differs.",
        "create its network, databases or their files (--as tsql).",
    );
    if change.is_known() {
        sql.warns(script);
    }
    let azapi =
        "\n    azapi = {\n      source  = \"Azure/azapi\"\n      version = \">= 2.0\"\n    }";
    module::providers(script, "azurerm", "4.38", if sql.is_next_gen() { azapi } else { "" });
    variable(script, "resource_group", "The resource group.", options.resource_group.as_ref());
    variable(script, "instance", "The name of the instance.", options.machine.as_ref());
    variable(script, "location", "The location.", options.location.as_ref());
    variable(script, "subnet_id", "The id of its subnet.", None);
    variable(script, "admin_name", "The name of its administrator in Microsoft Entra ID.", None);
    let id = "The object id of its administrator (the client id of an application).";
    variable(script, "admin_id", id, None);
    let user = "User".to_owned();
    variable(
        script,
        "admin_type",
        "The type of its administrator: User, Group or Application.",
        Some(&user),
    );
    let gen5 = "Gen5".to_owned();
    variable(script, "hardware", "The hardware.", Some(&gen5));
    script.comment(&sql.words());
    script.lines(&format!(
        "resource \"azurerm_mssql_managed_instance\" \"instance\" {{\n  name                         = \
         var.instance\n  resource_group_name          = var.resource_group\n  location                     = \
         var.location\n  subnet_id                    = var.subnet_id\n  public_data_endpoint_enabled = \
         false\n  license_type                 = \"{}\"\n  sku_name                     = \
         \"{}_${{var.hardware}}\"\n  vcores                       = {}\n  storage_size_in_gb           = \
         {}\n\n  azure_active_directory_administrator {{\n    azuread_authentication_only_enabled = true\n    \
         login_username                      = var.admin_name\n    object_id                           = \
         var.admin_id\n    principal_type                      = var.admin_type\n  }}\n\n  lifecycle {{\n    \
         prevent_destroy = true\n  }}\n}}",
        sql.licence(),
        sql.sku(),
        sql.new.vcores,
        sql.gb()
    ));
    if let Some(iops) = sql.iops {
        script.blank();
        script.comment(
            "azurerm does not support the next generation of General Purpose and its IOPS; azapi \
             sets them on the same instance.",
        );
        script.lines(&format!(
            "resource \"azapi_update_resource\" \"next_gen\" {{\n  type        = \
             \"Microsoft.Sql/managedInstances@2024-11-01-preview\"\n  resource_id = \
             azurerm_mssql_managed_instance.instance.id\n\n  body = {{\n    properties = {{\n      \
             isGeneralPurposeV2 = true\n      storageIOps        = {iops}\n    }}\n  }}\n}}"
        ));
    }
    Ok(())
}
