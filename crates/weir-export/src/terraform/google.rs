//! Disks of Google Cloud and their attachment to an instance.

use super::attached::{self, DiskType, Market, Module};
use super::module;
use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::quote::terraform;
use crate::script::Script;
use crate::site::Disk;

/// The market, without `pd-extreme`: the provider changes IOPS in place only for Hyperdisk, and
/// would destroy and recreate other disks.
const MARKET: Market = Market {
    cloud: "Google Cloud",
    types: &[
        DiskType { name: "pd-ssd", iops: false, throughput: false },
        DiskType { name: "pd-balanced", iops: false, throughput: false },
        DiskType { name: "pd-standard", iops: false, throughput: false },
        DiskType { name: "hyperdisk-balanced", iops: true, throughput: true },
        DiskType { name: "hyperdisk-extreme", iops: true, throughput: false },
        DiskType { name: "hyperdisk-throughput", iops: false, throughput: true },
    ],
    changes_type: false,
    what: "a disk of Google Cloud",
    rule: RULE,
    is_name,
};

const RULE: &str = "1 to 63 lower-case letters, digits and '-', starting with a letter and not \
                    ending with '-'";

fn is_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

pub(super) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    attached::refuse_place(options, "the zone determines the location of a disk; give --zone")?;
    if let Some(name) = options.machine.as_ref().filter(|name| !is_name(name)) {
        return Err(refused(
            format!("--machine {name}"),
            format!("the name of an instance of Google Cloud has {RULE}"),
        ));
    }
    let disks = MARKET.disks(script, change)?;
    MODULE.write(script, change, options, &disks);
    Ok(())
}

const MODULE: Module = Module {
    header: [
        "Terraform 1.3, the provider google 6 with a project, and an existing instance. If that is \
         a google_compute_instance, it needs ignore_changes = [attached_disk], or it detaches what is \
         attached here.",
        "creates the disks in the zone of the instance and attaches them, each under its name; \
         applied again it changes what differs.",
        "format disks (--as mdadm or lvm does, and finds them by these names), nor destroy a disk: \
         prevent_destroy prevents that.",
    ],
    provider: ("google", "6.0"),
    inputs,
    row,
    resources: RESOURCES,
    machine_size,
};

/// Writes the variables with the name of the instance and its zone.
fn inputs(script: &mut Script, options: &Options) {
    module::variable(script, "machine", "The name of the instance.", options.machine.as_ref());
    let zone = "The zone of the instance and its disks.";
    module::variable(script, "zone", zone, options.zone.as_ref());
    script.lines(
        "data \"google_compute_instance\" \"machine\" {\n  name = var.machine\n  zone = var.zone\n}",
    );
}

/// Writes the comment about the size of the machine. The catalog names some machines by their
/// vCPUs, as the documentation does; those names are no machine types.
fn machine_size(script: &mut Script, size: Option<&String>) {
    let Some(words) = size.and_then(|size: &String| {
        let (series, count) = size.strip_suffix("vcpu")?.rsplit_once('-')?;
        let count: u32 = count.parse().ok()?;
        Some(format!("{size} is not a machine type: any of {series} with {count} vCPUs"))
    }) else {
        return module::machine_size(script, size);
    };
    script.blank();
    script.comment(&format!(
        "The machine size of the layout, which is managed elsewhere: {words}, or with more vCPUs, \
         up to the next number in weir catalog."
    ));
}

const RESOURCES: &str = r#"
resource "google_compute_disk" "disk" {
  for_each = local.disks

  name                   = each.key
  zone                   = data.google_compute_instance.machine.zone
  type                   = each.value.type
  size                   = each.value.gib
  provisioned_iops       = each.value.iops
  provisioned_throughput = each.value.mibps

  # A disk holds data: it goes only after this has been taken out by hand.
  lifecycle {
    prevent_destroy = true
  }
}

resource "google_compute_attached_disk" "disk" {
  for_each = local.disks

  disk        = google_compute_disk.disk[each.key].id
  instance    = data.google_compute_instance.machine.id
  device_name = each.key
}
"#;

/// Writes a row of the table of disks.
fn row(script: &mut Script, _: &Change, fate: Fate<'_, Disk>) {
    let disk = MARKET.row(script, fate);
    let own = MARKET.attached(script, &disk);
    script.comment(&format!("{}: {}.", disk.own, disk.words()));
    script.lines(&format!(
        "    {} = {{\n      type  = \"{}\"\n      gib   = {}\n      iops  = {}\n      mibps = {}\n    }}",
        terraform(&disk.name),
        own.family,
        own.gib,
        module::number(own.iops),
        module::number(own.mib)
    ));
}
