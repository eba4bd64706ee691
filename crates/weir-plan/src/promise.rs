//! The latency of disks for requests that do not wait at a limit.
//!
//! A need without a latency target still expects that requests do not queue. They do if their median
//! latency exceeds the 99th percentile of an idle disk. Requests of a backup may queue: its time follows
//! from its rate.

use crate::need::{Need, RoleNeed};
use crate::share::WHOLE;
use weir_core::{CacheMode, Latency, VolumeSpec};
use weir_layout::{Export, Layout, Role};
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
    longest(layout, role, 99, |_| request, |_| [reads > 0, reads < WHOLE])
}

/// Returns the longest quantile of the unloaded latency of a role's disks; `None` if none has a latency. `size` states the
/// bytes of a request to an export, and `reaches` whether reads and writes reach the medium of a volume.
fn longest(
    layout: &Layout,
    role: Role,
    per_cent: usize,
    size: impl Fn(&Export) -> u64,
    reaches: impl Fn(&VolumeSpec) -> [bool; 2],
) -> Option<Span> {
    let mut longest: Option<Span> = None;
    for host in &layout.hosts {
        let files = host.files.iter().filter(|file| file.role == role);
        for export in files.filter_map(|file| host.export_of(file)) {
            for volume in export.volumes.iter().map(|id| &host.spec.volumes[id.0]) {
                let media = [&volume.medium.read, &volume.medium.write];
                let used = media.into_iter().zip(reaches(volume));
                for (latency, _) in used.filter(|(own, is_used)| *is_used && !own.is_zero()) {
                    longest = longest.max(quantile(latency, size(export), per_cent));
                }
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
    // A stripe splits larger requests.
    let size =
        |export: &Export| export.unit.map_or(own.request, |unit| own.request.min(unit.get()));
    let reaches = |volume: &VolumeSpec| {
        let is_read = own.reads > 0 && volume.cache == CacheMode::None;
        let is_written = own.reads < WHOLE && volume.cache != CacheMode::ReadWrite;
        [is_read, is_written]
    };
    longest(layout, own.role, 50, size, reaches)
}

/// Returns a quantile of a latency for requests of `request` bytes.
fn quantile(latency: &Latency, request: u64, per_cent: usize) -> Option<Span> {
    let mut drawn: Vec<Span> = (0..DRAWS).map(|serial| latency.draw(1, serial, request)).collect();
    drawn.sort_unstable();
    drawn.get(drawn.len() * per_cent / 100).copied()
}
