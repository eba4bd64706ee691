//! The places of a need's roles on a layout, and the room that they have there.

use crate::error::TuneError;
use std::collections::BTreeMap;
use weir_catalog::Catalog;
use weir_layout::file::FileKeys;
use weir_layout::{Export, Host, Layout, LayoutText, Role};
use weir_plan::share::pro_rata;
use weir_plan::{Need, RoleNeed};
use weir_units::Bytes;

/// Sizes and offsets of files are multiples of this.
const EXTENT: u64 = 1 << 20;

/// A role that needs more room than its disks or files have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack {
    /// The role.
    pub role: Role,
    /// The size that the need states.
    pub size: Bytes,
    /// The room.
    pub room: Bytes,
}

/// Returns the size of a role in a layout: that of its files; without files, that of the volume or
/// stripe on which [`with_files`] places it, in equal parts if several of `roles` come there.
#[must_use]
pub fn size_of(layout: &Layout, role: Role, roles: &[Role]) -> Option<Bytes> {
    if has_file(layout, role) {
        return Some(size_of_files(layout, role));
    }
    let (host, export) = target(layout, role)?;
    let is_here = |other: &&Role| {
        !has_file(layout, **other)
            && target(layout, **other).is_some_and(|(_, own)| own.device == export.device)
    };
    let sharing = roles.iter().filter(is_here).count().max(1) as u64;
    let part = free(host, export) / sharing / EXTENT * EXTENT;
    (part > 0).then_some(Bytes::new(part))
}

/// Returns the size of a role's files.
pub(crate) fn size_of_files(layout: &Layout, role: Role) -> Bytes {
    let files = layout.hosts.iter().flat_map(|host| &host.files);
    let own = files.filter(|file| file.role == role).map(|file| file.size.get());
    Bytes::new(own.fold(0, u64::saturating_add))
}

/// Adds a file to the layout in `text` for each role of the need that has none: on the volume or
/// stripe with the role's name, or on the only one.
///
/// # Errors
///
/// [`TuneError::NoPlace`] and [`TuneError::NoRoom`].
pub fn with_files(
    name: &str,
    text: &str,
    need: &Need,
    catalog: &Catalog,
) -> Result<String, TuneError> {
    let mut text = text.to_owned();
    for own in &need.roles {
        let layout = Layout::parse(name, &text, catalog)?;
        if has_file(&layout, own.role) {
            continue;
        }
        let role = own.role.name();
        let Some((host, export)) = target(&layout, own.role) else {
            let all = layout.hosts.iter().flat_map(|host| &host.exports);
            return Err(TuneError::NoPlace {
                layout: name.to_owned(),
                role,
                exports: all.map(|export| export.name.clone()).collect::<Vec<_>>().join(", "),
                is_instance: layout.hosts.iter().any(|host| host.instance.is_some()),
            });
        };
        // A file that is too large for its volume gets the room there; `lacks` tells the rest.
        let size = own.size.get().next_multiple_of(EXTENT).min(free(host, export));
        if size == 0 {
            return Err(TuneError::NoRoom {
                layout: name.to_owned(),
                role,
                export: export.name.clone(),
            });
        }
        let mut keys = FileKeys::new(free_name(&layout, role), own.role, Bytes::new(size));
        keys.host = (layout.hosts.len() > 1).then(|| host.name.clone());
        keys.on = Some(export.name.clone());
        let mut longer = LayoutText::after(&text);
        longer.file(&keys);
        text = longer.finish();
    }
    Ok(text)
}

/// Returns notes on the places that [`with_files`] chose, except volumes with the role's name.
#[must_use]
pub fn assumed_places(before: &Layout, after: &Layout) -> Vec<String> {
    let mut notes = Vec::new();
    for host in &after.hosts {
        for file in host.files.iter().filter(|file| !has_file(before, file.role)) {
            let Some(export) = host.export_of(file) else { continue };
            let (role, on) = (file.role.name(), &export.name);
            if on.eq_ignore_ascii_case(role) {
                continue;
            }
            let is_exposed = file.role == Role::Backup
                && host.files.iter().any(|other| {
                    other.device == file.device && matches!(other.role, Role::Data | Role::Log)
                });
            let advice = match is_exposed {
                true => "if the disk is lost, so is the backup; add a volume for it",
                false => "add a [[file]] with its role to place it elsewhere",
            };
            notes.push(format!(
                "{role}: the layout has no file for it, so it is placed on {on}; {advice}"
            ));
        }
    }
    notes
}

/// Returns the roles that need more room than they have.
#[must_use]
pub fn lacks(layout: &Layout, need: &Need) -> Vec<Lack> {
    let lack = |own: &RoleNeed| {
        let (role, size) = (own.role, own.size);
        let room = room(layout, role, need);
        (size > room).then_some(Lack { role, size, room })
    };
    need.roles.iter().filter_map(lack).collect()
}

/// Returns the room of a role: that of its files on an instance, else that of its disks without what
/// other roles have or need there, whichever is more.
fn room(layout: &Layout, role: Role, need: &Need) -> Bytes {
    // Returns the part of a role's need that falls on a disk with `size` bytes of its files.
    let needed = |role: Role, size: u64| {
        let all = size_of_files(layout, role).get();
        let own = need.role(role).map_or(0, |own| own.size.get());
        pro_rata(own, size, all)
    };
    let mut room: u64 = 0;
    for host in &layout.hosts {
        for export in &host.exports {
            let files = || host.files.iter().filter(|file| file.device == export.device);
            if !files().any(|file| file.role == role) {
                continue;
            }
            let mut others: BTreeMap<Role, u64> = BTreeMap::new();
            for file in files().filter(|file| file.role != role) {
                let sum = others.entry(file.role).or_default();
                *sum = sum.saturating_add(file.size.get());
            }
            let taken = others.into_iter().map(|(other, size)| size.max(needed(other, size)));
            let taken = taken.fold(0_u64, u64::saturating_add);
            room = room.saturating_add(export.size.get().saturating_sub(taken));
        }
    }
    Bytes::new(room)
}

fn has_file(layout: &Layout, role: Role) -> bool {
    layout.hosts.iter().flat_map(|host| &host.files).any(|file| file.role == role)
}

/// Returns the volume or stripe with the role's name, or the only one.
fn target(layout: &Layout, role: Role) -> Option<(&Host, &Export)> {
    let hosts = layout.hosts.iter().filter(|host| host.instance.is_none());
    let all: Vec<(&Host, &Export)> =
        hosts.flat_map(|host| host.exports.iter().map(move |export| (host, export))).collect();
    let named = all.iter().find(|(_, export)| export.name.eq_ignore_ascii_case(role.name()));
    match (named, all.as_slice()) {
        (Some(found), _) => Some(*found),
        (None, [only]) => Some(*only),
        _ => None,
    }
}

/// Returns the bytes behind the last file of an export.
fn free(host: &Host, export: &Export) -> u64 {
    let files = host.files.iter().filter(|file| file.device == export.device);
    let end = files.map(|file| file.base.get().saturating_add(file.size.get())).max().unwrap_or(0);
    export.size.get().saturating_sub(end.next_multiple_of(EXTENT)) / EXTENT * EXTENT
}

/// Returns a name that no file or export has: the role, with a number behind it if needed.
fn free_name(layout: &Layout, role: &str) -> String {
    let is_taken = |name: &str| {
        layout.hosts.iter().any(|host| {
            host.files.iter().any(|own| own.name == name)
                || host.exports.iter().any(|own| own.name == name)
                || host.volumes.iter().any(|own| own.name == name)
        })
    };
    let mut name = format!("{role}-file");
    let mut count = 1;
    while is_taken(&name) {
        count += 1;
        name = format!("{role}-file-{count}");
    }
    name
}
