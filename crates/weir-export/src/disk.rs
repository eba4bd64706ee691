//! Changes of disks, for all clouds.

use crate::script::Script;
use crate::site::{Disk, Site};
use weir_units::Bytes;

/// Returns what a disk can become in place: the new state, without a change of family and without
/// shrinking.
pub(crate) fn possible(old: &Disk, new: &Disk) -> Disk {
    let mut disk = new.clone();
    disk.performance_plus = old.performance_plus;
    if new.family != old.family || new.size < old.size {
        disk.size = old.size;
        disk.tier.clone_from(&old.tier);
        disk.performance_tier.clone_from(&old.performance_tier);
    }
    if new.family != old.family {
        disk.family.clone_from(&old.family);
        disk.bought = old.bought;
        disk.on_demand_burst = old.on_demand_burst;
    }
    disk
}

/// Returns the size in GiB, with a note if it was rounded.
pub(crate) fn gib(script: &mut Script, disk: &Disk) -> u64 {
    let gib = disk.size.get().div_ceil(1 << 30);
    if Bytes::gib(gib) != disk.size {
        script.note(&format!(
            "{}: {} is rounded to {gib} GiB, because disks have whole GiB",
            disk.own,
            disk.size.exact()
        ));
    }
    gib
}

/// Writes a note about a disk that is no longer in the layout.
pub(crate) fn gone(script: &mut Script, disk: &Disk) {
    script.blank();
    let text = format!("{} is no longer in the layout; it is kept with its data", disk.own);
    script.warn_with_steps(&text, "To remove it once it is empty and unmounted:");
}

/// Writes a note about local disks, which come with the machine.
pub(crate) fn local(script: &mut Script, site: &Site) {
    for disk in site.disks.iter().filter(|disk| disk.is_local) {
        script.blank();
        script.comment(&format!(
            "{}: the machine's local disk. It comes with the size, and loses its data when the \
             machine moves.",
            disk.own
        ));
    }
}
