//! Disks of AWS and Google Cloud: a type, a size, and rates where these are bought.

use super::module;
use crate::change::{Change, Fate};
use crate::disk;
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::script::Script;
use crate::site::{Disk, Site, unique};
use weir_core::CacheMode;

/// The rules of a cloud, with the names of its Terraform provider.
pub(super) struct Market {
    /// The cloud.
    pub(super) cloud: &'static str,
    pub(super) types: &'static [DiskType],
    /// True if the type of a disk in use can change.
    pub(super) changes_type: bool,
    /// The named object.
    pub(super) what: &'static str,
    /// The rule for names.
    pub(super) rule: &'static str,
    pub(super) is_name: fn(&str) -> bool,
}

/// A type of disks.
pub(super) struct DiskType {
    /// The name, which equals the family.
    pub(super) name: &'static str,
    /// True if IOPS and throughput are bought.
    pub(super) iops: bool,
    pub(super) throughput: bool,
}

/// A disk in the units of the cloud.
pub(super) struct Attached<'a> {
    pub(super) family: &'a str,
    pub(super) gib: u64,
    /// IOPS and MiB/s, if they are bought.
    pub(super) iops: Option<u64>,
    pub(super) mib: Option<u64>,
}

/// Note about growing a disk in use.
const GROWS: &str = "It can grow while the machine runs. Afterwards grow the partition, if there \
                     is one, and the file system: xfs_growfs, resize2fs or Resize-Partition.";

impl Market {
    /// Returns the changes of the disks, or an error for a disk that the cloud does not sell.
    pub(super) fn disks<'a>(
        &self,
        script: &Script,
        change: &'a Change,
    ) -> Result<Vec<Fate<'a, Disk>>, ExportError> {
        let disks = change.disks();
        if disks.iter().all(|fate| fate.wanted().is_none()) {
            return Err(ExportError::Nothing {
                layout: change.new.layout.clone(),
                kind: script.kind().name(),
                reason: format!(
                    "the layout has no remote volume, and Terraform modules for {} have only disks",
                    self.cloud
                ),
            });
        }
        // Disks that go stay in the module.
        let (site, from) = (&change.new, change.old.as_ref().unwrap_or(&change.new));
        for fate in &disks {
            match *fate {
                Fate::New(disk) | Fate::Same(disk) => self.check(script, site, disk)?,
                Fate::Gone(disk) => self.check(script, from, disk)?,
                // Properties that cannot change keep their old value.
                Fate::Changed(old, disk) => {
                    self.check(script, site, disk)?;
                    self.check(script, from, old)?;
                }
            }
        }
        unique(
            disks.iter().map(|fate| (&*fate.subject().own, &*fate.subject().name)),
            str::to_owned,
        )?;
        Ok(disks)
    }

    fn type_of(&self, disk: &Disk) -> Option<&DiskType> {
        let family = disk.family.as_deref()?;
        self.types.iter().find(|own| own.name == family)
    }

    fn check(&self, script: &Script, site: &Site, disk: &Disk) -> Result<(), ExportError> {
        let cloud = self.cloud;
        let reason = if disk.has_own_limits {
            Some(format!(
                "its limits are stated in the layout, but {cloud} sells no disk by its limits \
                 alone; give it a family and a size"
            ))
        } else if disk.cache != CacheMode::None {
            Some(format!("machines of {cloud} have no host cache; set its cache to none"))
        } else if self.type_of(disk).is_none() {
            let family = disk.family.as_deref().unwrap_or("none");
            let known: Vec<&str> = self.types.iter().map(|own| own.name).collect();
            Some(format!(
                "{cloud} has no disks of the family {family}; use one of {}",
                known.join(", ")
            ))
        } else {
            None
        };
        match reason {
            Some(reason) => Err(ExportError::Cannot {
                layout: site.layout.clone(),
                what: format!("volume {:?}", disk.own),
                kind: script.kind().name(),
                reason,
            }),
            None if (self.is_name)(&disk.name) => Ok(()),
            None => Err(ExportError::BadName {
                what: self.what,
                name: disk.name.clone(),
                rule: self.rule,
                own: disk.own.clone(),
            }),
        }
    }

    /// Returns the row of a disk in the module's table: its new state, or the old one if it cannot
    /// change.
    pub(super) fn row(&self, script: &mut Script, fate: Fate<'_, Disk>) -> Disk {
        match fate {
            Fate::New(own) | Fate::Same(own) => own.clone(),
            Fate::Changed(old, own) => self.changed(script, old, own),
            Fate::Gone(own) => {
                disk::gone(script, own);
                script.comment(module::REMOVE);
                own.clone()
            }
        }
    }

    /// Returns the state that a disk in use can have, and reports other differences. Terraform
    /// would destroy and recreate the disk for those.
    fn changed(&self, script: &mut Script, old: &Disk, new: &Disk) -> Disk {
        let mut manual = Vec::new();
        if new.size < old.size {
            manual.push(format!("shrink from {} to {}", old.size, new.size));
        }
        if new.family != old.family && !self.changes_type {
            let family = |disk: &Disk| disk.family.clone().unwrap_or_default();
            manual.push(format!("go from {} to {}", family(old), family(new)));
        }
        if !manual.is_empty() {
            script.warn(&format!(
                "{} would {}. {} cannot do that to a disk with data: create another disk, copy, \
                 and change over.",
                new.own,
                manual.join(", and "),
                self.cloud
            ));
        }
        let kept = match self.changes_type {
            true => Disk { size: new.size.max(old.size), ..new.clone() },
            false => disk::possible(old, new),
        };
        if kept.size > old.size {
            script.comment(GROWS);
        }
        kept
    }

    /// Returns a disk in the units of the cloud, with notes about rounding.
    pub(super) fn attached<'a>(&self, script: &mut Script, disk: &'a Disk) -> Attached<'a> {
        let gib = disk::gib(script, disk);
        let own = self.type_of(disk);
        let has = |bought: fn(&DiskType) -> bool| own.is_some_and(bought);
        let mib = disk.bought.filter(|_| has(|own| own.throughput)).map(|(_, bytes)| {
            let mib = bytes.div_ceil(1 << 20);
            if mib << 20 != bytes {
                script.note(&format!(
                    "{}: {bytes} B/s is rounded to {mib} MiB/s, because {} sells whole MiB/s",
                    disk.own, self.cloud
                ));
            }
            mib
        });
        Attached {
            family: own.map(|own| own.name).unwrap_or_default(),
            gib,
            iops: disk.bought.filter(|_| has(|own| own.iops)).map(|(iops, _)| iops),
            mib,
        }
    }
}

/// The parts of a cloud's module besides its disks.
pub(super) struct Module {
    /// The requirements, actions and limits.
    pub(super) header: [&'static str; 3],
    /// The provider and its version.
    pub(super) provider: (&'static str, &'static str),
    /// Writes the variables and the look-up of the machine.
    pub(super) inputs: fn(&mut Script, &Options),
    /// Writes a row of the table of disks.
    pub(super) row: fn(&mut Script, &Change, Fate<'_, Disk>),
    /// The resources, one per row.
    pub(super) resources: &'static str,
    /// Writes the comment about the size of the machine.
    pub(super) machine_size: fn(&mut Script, Option<&String>),
}

impl Module {
    /// Writes the module.
    pub(super) fn write(
        &self,
        script: &mut Script,
        change: &Change,
        options: &Options,
        disks: &[Fate<'_, Disk>],
    ) {
        let [needs, does, does_not] = self.header;
        same(script, change, disks);
        script.header(needs, does, does_not);
        resize(script, change);
        let (provider, version) = self.provider;
        module::providers(script, provider, version, "");
        (self.inputs)(script, options);
        script.blank();
        module::disks(script, change, disks, self.row);
        script.lines(self.resources);
        (self.machine_size)(script, change.new.size.as_ref());
        disk::local(script, &change.new);
    }
}

/// Notes that nothing changes.
fn same(script: &mut Script, change: &Change, disks: &[Fate<'_, Disk>]) {
    if change.is_known() && disks.iter().all(Fate::is_same) && change.resize().is_none() {
        script.same(change);
    }
}

/// Writes a note about a resize of the machine.
fn resize(script: &mut Script, change: &Change) {
    if let Some((old, new)) = change.resize() {
        let effect = change.refusal().unwrap_or_else(|| {
            "that restarts the machine, and its local disk loses its data".to_owned()
        });
        module::resize(script, &format!("{old} becomes {new}: {effect}"));
    }
}

/// Rejects options that a module of this cloud does not use.
pub(super) fn refuse(options: &[(&str, Option<&String>, &str)]) -> Result<(), ExportError> {
    for (option, value, reason) in options {
        if let Some(value) = value {
            return Err(refused(format!("{option} {value}"), (*reason).to_owned()));
        }
    }
    Ok(())
}

/// Rejects resource group and location: the former is Azure's, and the provider sets the latter.
pub(super) fn refuse_place(options: &Options, region: &str) -> Result<(), ExportError> {
    refuse(&[
        (
            "--resource-group",
            options.resource_group.as_ref(),
            "only Azure has resource groups; leave it out",
        ),
        ("--location", options.location.as_ref(), region),
    ])
}
