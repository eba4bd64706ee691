//! The disks that a backup reads and writes: by the names of a run, by `--map`, by the names of
//! disks, or by the roles of files.

use crate::case::Case;
use crate::error::DiagnoseError;
use crate::system::{Mapping, On, System};
use weir_layout::backups::is_backup_name;
use weir_layout::{Layout, Role};
use weir_observe::{Contents, Entity, EntityKind, attribute};

/// Splits pairs of names: those that say where a target of backups is, and the others.
///
/// A name stands for a target of that name, and for all targets below it, like a drive.
///
/// # Errors
///
/// [`DiagnoseError::Mapping`] if the layout does not have the name.
pub(crate) fn of_mapping(
    contents: &Contents,
    layout: Option<&Layout>,
    mapping: &Mapping,
) -> Result<(Mapping, Mapping), DiagnoseError> {
    let targets: Vec<&str> = contents
        .entities
        .iter()
        .filter(|entity| entity.kind == EntityKind::BackupTarget)
        .map(|entity| entity.name.as_str())
        .collect();
    let is_other = |name: &str| {
        let mut others = contents.entities.iter();
        others
            .any(|own| own.kind != EntityKind::BackupTarget && own.name.eq_ignore_ascii_case(name))
    };
    let (mut own, mut rest) = (Mapping::new(), Mapping::new());
    for (observed, name) in mapping {
        let is_target = targets.iter().any(|target| is_below(target, observed));
        if !is_target || is_other(observed) {
            rest.push((observed.clone(), name.clone()));
            continue;
        }
        if let Some(layout) = layout {
            let known: Vec<&str> = layout
                .hosts
                .iter()
                .flat_map(|host| {
                    let volumes = host.volumes.iter().map(|volume| volume.name.as_str());
                    volumes
                        .chain(host.exports.iter().map(|export| export.name.as_str()))
                        .chain(host.files.iter().map(|file| file.name.as_str()))
                })
                .collect();
            if !known.contains(&name.as_str()) {
                let near = weir_units::nearest(name, known.iter().copied()).map(str::to_owned);
                return Err(DiagnoseError::Mapping { what: "layout", name: name.clone(), near });
            }
        }
        own.push((observed.clone(), name.clone()));
    }
    Ok((own, rest))
}

/// Tells whether a target is a place, or below it.
fn is_below(target: &str, place: &str) -> bool {
    let trim = |text: &str| text.trim_end_matches(['\\', '/']).to_ascii_lowercase();
    let (target, place) = (trim(target), trim(place));
    if place.is_empty() {
        return false;
    }
    target.strip_prefix(&place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['\\', '/']))
}

/// Returns what a name of the layout or observation is.
fn named(system: &System, name: &str) -> Option<On> {
    let is_it = |own: &str| own.eq_ignore_ascii_case(name);
    let stripe = system.stripes.iter().position(|own| is_it(&own.name)).map(On::Stripe);
    let disk = || system.disks.iter().position(|own| is_it(&own.name)).map(On::Disk);
    let file = || {
        let mut files = system.files.iter();
        files.find(|own| is_it(&own.name) || is_it(&own.qualified())).and_then(|own| own.on)
    };
    stripe.or_else(disk).or_else(file)
}

fn listed<'a>(entity: &'a Entity, attribute: &str) -> impl Iterator<Item = &'a str> {
    let all = entity.text(attribute).unwrap_or_default().split("; ");
    all.map(str::trim).filter(|name| !name.is_empty())
}

fn add(all: &mut Vec<On>, on: Option<On>) {
    all.extend(on.filter(|on| !all.contains(on)));
}

/// Returns what a backup writes to.
pub(super) fn targets(case: &Case<'_>, entity: &Entity) -> Vec<On> {
    let mut all = Vec::new();
    for name in listed(entity, attribute::TARGETS) {
        let mut pairs = case.system.backup_places.iter();
        let said = pairs.find(|(place, _)| is_below(name, place));
        let name = said.map_or(name, |(_, name)| name);
        add(&mut all, named(case.system, name));
    }
    if all.is_empty() {
        // Disks with backup files.
        for (index, _) in case.system.disks.iter().enumerate() {
            let on = case.system.disks[index].stripe.map_or(On::Disk(index), On::Stripe);
            let mut files = case.system.files_on(on).peekable();
            if files.peek().is_some() && files.all(|(_, file)| file.is(Role::Backup)) {
                add(&mut all, Some(on));
            }
        }
    }
    all
}

/// Returns the targets of a backup that are nowhere in the system: `--map` says where they are.
pub(super) fn unknown_targets(case: &Case<'_>, entity: &Entity) -> Vec<String> {
    let is_unknown = |name: &&str| {
        let mut pairs = case.system.backup_places.iter();
        let said = pairs.find(|(place, _)| is_below(name, place));
        named(case.system, said.map_or(name, |(_, name)| name)).is_none()
    };
    listed(entity, attribute::TARGETS).filter(is_unknown).map(str::to_owned).collect()
}

/// Returns what a backup reads: what it names, else the disks of data files, else all that are not
/// targets of backups, by what is known of them or by their names.
pub(super) fn sources(case: &Case<'_>, entity: &Entity) -> Vec<On> {
    let mut all = Vec::new();
    for name in listed(entity, attribute::SOURCES) {
        add(&mut all, named(case.system, name));
    }
    if !all.is_empty() {
        return all;
    }
    let targets = targets(case, entity);
    let places = |is_wanted: &dyn Fn(On) -> bool| {
        let mut all = Vec::new();
        for (index, disk) in case.system.disks.iter().enumerate() {
            let on = disk.stripe.map_or(On::Disk(index), On::Stripe);
            if !targets.contains(&on) && is_wanted(on) {
                add(&mut all, Some(on));
            }
        }
        all
    };
    let name = |on: On| match on {
        On::Disk(disk) => case.system.disks[disk].name.as_str(),
        On::Stripe(stripe) => case.system.stripes[stripe].name.as_str(),
    };
    let with_data = places(&|on| case.system.files_on(on).any(|(_, file)| file.is(Role::Data)));
    if !with_data.is_empty() {
        return with_data;
    }
    let is_source = |on: On| {
        let mut files = case.system.files_on(on).peekable();
        match files.peek() {
            Some(_) => files.any(|(_, file)| !file.is(Role::Backup)),
            None => !is_backup_name(name(on)),
        }
    };
    let others = places(&is_source);
    if others.is_empty() { places(&|_| true) } else { others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_stands_for_all_folders_on_it() {
        let check = |target: &str, place: &str, expect: bool| {
            assert_eq!(is_below(target, place), expect, "{target} {place}");
        };
        check("F:\\backup\\Sales", "f:", true);
        check("F:\\backup", "F:\\backup\\", true);
        check("F:\\backup2", "F:\\backup", false);
        check("/mnt/b/full", "/mnt/b", true);
        check("/mnt/b", "/mnt/b/full", false);
        check("/mnt/b", "/", false);
    }
}
