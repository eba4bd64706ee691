//! What becomes of disks, whatever cloud they are of.

use crate::script::Script;
use crate::site::{Disk, Site};
use weir_units::Bytes;

/// What a disk can become in place: as it is to be, but of the kind that it is, and not smaller.
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

/// Its whole GiB, with a note where the layout's size is none.
pub(crate) fn gib(script: &mut Script, disk: &Disk) -> u64 {
    let gib = disk.size.get().div_ceil(1 << 30);
    if Bytes::gib(gib) != disk.size {
        script.note(&format!(
            "{}: {} are made {gib} GiB; disks have whole ones",
            disk.own,
            disk.size.exact()
        ));
    }
    gib
}

/// What is to be known of disks that the layout has no more.
pub(crate) fn gone(script: &mut Script, disk: &Disk) {
    script.blank();
    let text = format!("{} is not in the layout any more, and is kept with its data", disk.own);
    script.warn_with_steps(&text, "When it is empty and unmounted, to remove it:");
}

/// Local disks come with the machine.
pub(crate) fn local(script: &mut Script, site: &Site) {
    for disk in site.disks.iter().filter(|disk| disk.is_local) {
        script.blank();
        script.comment(&format!(
            "{}: the machine's own disk; it comes with the size, and is empty after each move.",
            disk.own
        ));
    }
}
