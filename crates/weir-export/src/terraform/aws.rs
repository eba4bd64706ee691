//! Volumes of EBS and their attachment to an instance of AWS.

use super::attached::{self, DiskType, Market, Module};
use super::module;
use crate::change::{Change, Fate};
use crate::ebs;
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::quote::terraform;
use crate::script::Script;
use crate::site::Disk;

const MARKET: Market = Market {
    cloud: "AWS",
    types: &[
        DiskType { name: "gp3", iops: true, throughput: true },
        DiskType { name: "gp2", iops: false, throughput: false },
        DiskType { name: "io2", iops: true, throughput: false },
        DiskType { name: "io1", iops: true, throughput: false },
        DiskType { name: "st1", iops: false, throughput: false },
        DiskType { name: "sc1", iops: false, throughput: false },
    ],
    changes_type: true,
    what: "a volume of EBS",
    rule: "1 to 255 letters, digits, spaces and + - = . _ : / @, and not aws: first",
    is_name,
};

/// Returns whether AWS allows a tag.
fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.chars().count())
        && name.chars().all(|c: char| {
            c.is_alphanumeric() || matches!(c, ' ' | '+' | '-' | '=' | '.' | '_' | ':' | '/' | '@')
        })
        && !name.starts_with("aws:")
}

pub(super) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    check_options(options)?;
    let disks = MARKET.disks(script, change)?;
    let names = disks.iter().map(|fate| device_name(script, change, fate.subject()));
    names.collect::<Result<Vec<_>, _>>()?;
    MODULE.write(script, change, options, &disks);
    Ok(())
}

fn check_options(options: &Options) -> Result<(), ExportError> {
    attached::refuse_place(
        options,
        "the region is the provider's (AWS_REGION, or its block); leave it out",
    )?;
    let zone = "volumes are created in the zone of the instance; leave it out";
    attached::refuse(&[("--zone", options.zone.as_ref(), zone)])?;
    match &options.machine {
        Some(id)
            if !id.strip_prefix("i-").is_some_and(|id: &str| {
                !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit())
            }) =>
        {
            Err(refused(
                format!("--machine {id}"),
                "an AWS instance needs its id: i- and hexadecimal digits".to_owned(),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the device name under which a volume is attached.
fn device_name(script: &Script, change: &Change, disk: &Disk) -> Result<String, ExportError> {
    let number = change.lun(disk);
    ebs::device_name(number).ok_or_else(|| ExportError::Cannot {
        layout: change.new.layout.clone(),
        what: format!("volume {:?}", disk.own),
        kind: script.kind().name(),
        reason: format!(
            "AWS has no device name for disk {number}; they end at /dev/xvdcx, so use fewer disks, \
             or a lower lun"
        ),
    })
}

const MODULE: Module = Module {
    header: [
        "Terraform 1.3, the provider aws 5 with a region, and an existing instance. If that is an \
         aws_instance, it must have no ebs_block_device: with such blocks the provider manages all \
         volumes of the instance, and treats those attached here as drift.",
        "creates the volumes in the zone of the instance and attaches them, each under its device \
         name; applied again it changes what differs. A volume can be used while it changes; AWS \
         accepts another change only some hours later.",
        "format disks (--as mdadm or lvm does, and finds them by these device names), nor destroy \
         a volume: prevent_destroy prevents that.",
    ],
    provider: ("aws", "5.0"),
    inputs,
    row,
    resources: RESOURCES,
    machine_size: module::machine_size,
};

/// Writes the variable with the id of the instance, and the look-ups by it.
fn inputs(script: &mut Script, options: &Options) {
    let machine = "The id of the instance, like i-0123456789abcdef0.";
    module::variable(script, "machine", machine, options.machine.as_ref());
    script.lines("data \"aws_instance\" \"machine\" {\n  instance_id = var.machine\n}");
}

const RESOURCES: &str = r#"
resource "aws_ebs_volume" "disk" {
  for_each = local.disks

  availability_zone = data.aws_instance.machine.availability_zone
  type              = each.value.type
  size              = each.value.gib
  iops              = each.value.iops
  throughput        = each.value.mibps

  tags = {
    Name = each.key
  }

  # A volume holds data: it goes only after this has been taken out by hand.
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_volume_attachment" "disk" {
  for_each = local.disks

  device_name = each.value.device
  volume_id   = aws_ebs_volume.disk[each.key].id
  instance_id = data.aws_instance.machine.id
}

output "volumes" {
  value = { for name, volume in aws_ebs_volume.disk : name => volume.id }
}

# The links of udev on instances of Nitro.
output "devices" {
  value = {
    for name, volume in aws_ebs_volume.disk :
    name => "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${replace(volume.id, "-", "")}"
  }
}
"#;

/// Writes a row of the table of disks.
fn row(script: &mut Script, change: &Change, fate: Fate<'_, Disk>) {
    let disk = MARKET.row(script, fate);
    let own = MARKET.attached(script, &disk);
    let device = device_name(script, change, &disk).unwrap_or_default();
    script.comment(&format!("{}: {}, {device}.", disk.own, disk.words()));
    script.lines(&format!(
        "    {} = {{\n      type   = \"{}\"\n      gib    = {}\n      iops   = {}\n      mibps  = {}\n      \
         device = \"{device}\"\n    }}",
        terraform(&disk.name),
        own.family,
        own.gib,
        module::number(own.iops),
        module::number(own.mib)
    ));
}
