//! The latency of disks for requests that do not wait at a limit.
//!
//! A need without a latency target still expects that requests do not queue. They do if their median
//! latency exceeds the 99th percentile of an idle disk. Requests of a backup may queue: its time follows
//! from its rate.

use crate::need::{Need, RoleNeed};
use crate::share::WHOLE;
use weir_core::{CacheMode, Latency};
use weir_layout::{Layout, Role};
use weir_units::Span;

/// Draws of a medium's latency, for its 99th percentile.
const DRAWS: u64 = 2_000;

/// Returns the need with a latency target for each role: its own, or else the 99th percentile of an idle disk. A
/// backup has only its own.
#[must_use]
pub fn with_promises(need: &Need, layout: &Layout) -> Need {
    let mut need = need.clone();
    for own in need.roles.iter_mut().filter(|own| own.role != Role::Backup) {
        own.latency = own.latency.or_else(|| promise(layout, own.role, own.request, own.reads));
    }
    need
}

/// Returns the 99th percentile of the unloaded latency of a role's slowest disk, for requests of
/// `request` bytes of which `reads` millionths are reads; `None` if no disk of the role has a latency.
fn promise(layout: &Layout, role: Role, request: u64, reads: u64) -> Option<Span> {
    let mut longest: Option<Span> = None;
    for host in &layout.hosts {
        let files = host.files.iter().filter(|file| file.role == role);
        let exports = files.filter_map(|file| host.export_of(file));
        for id in exports.flat_map(|export| &export.volumes) {
            let medium = &host.spec.volumes[id.0].medium;
            let used = [(&medium.read, reads > 0), (&medium.write, reads < WHOLE)];
            for (latency, _) in used.into_iter().filter(|(own, is_used)| *is_used && !own.is_zero())
            {
                longest = longest.max(quantile(latency, request, 99));
            }
        }
    }
    longest
}

/// Returns the shortest median of the unloaded latency of any disk of the layout, of reads or else of writes. It is that of
/// the smallest request, since a stripe splits large ones, and has the error of 2,000 draws.
#[must_use]
pub fn shortest(layout: &Layout, of_reads: bool) -> Option<Span> {
    let volumes = layout.hosts.iter().flat_map(|host| &host.spec.volumes);
    let medians = volumes.filter_map(|volume| {
        let medium = &volume.medium;
        quantile(if of_reads { &medium.read } else { &medium.write }, 0, 50)
    });
    medians.min()
}

/// Returns the longest median of the unloaded latency of a role's disks, for those of its requests that no host cache may
/// serve; `None` if there are none. It has the error of 2,000 draws.
#[must_use]
pub fn idle_median(layout: &Layout, own: &RoleNeed) -> Option<Span> {
    let mut longest: Option<Span> = None;
    for host in &layout.hosts {
        let files = host.files.iter().filter(|file| file.role == own.role);
        for export in files.filter_map(|file| host.export_of(file)) {
            // A stripe splits larger requests.
            let request = export.unit.map_or(own.request, |unit| own.request.min(unit.get()));
            for volume in export.volumes.iter().map(|id| &host.spec.volumes[id.0]) {
                let reads = own.reads > 0 && volume.cache == CacheMode::None;
                let writes = own.reads < WHOLE && volume.cache != CacheMode::ReadWrite;
                let used = [(&volume.medium.read, reads), (&volume.medium.write, writes)];
                for (latency, _) in used.into_iter().filter(|(_, is_used)| *is_used) {
                    longest = longest.max(quantile(latency, request, 50));
                }
            }
        }
    }
    longest
}

/// Returns a quantile of a latency for requests of `request` bytes.
fn quantile(latency: &Latency, request: u64, per_cent: usize) -> Option<Span> {
    let mut drawn: Vec<Span> = (0..DRAWS).map(|serial| latency.draw(1, serial, request)).collect();
    drawn.sort_unstable();
    drawn.get(drawn.len() * per_cent / 100).copied()
}
