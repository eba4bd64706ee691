//! The volumes of a layout or a server that backups are written to.

use crate::error::CliError;
use crate::input::read_layout;
use std::path::Path;
use weir_backup::{BackupError, Export};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_layout::backups::is_backup_name;

/// Returns whether a layout says that an export is for backups: by the roles of the files on it, or
/// by its name if there are none; `None` for an export that the layout does not have.
fn is_backup_volume(layout: &Layout, name: &str) -> Option<bool> {
    let mut hosts = layout.hosts.iter().enumerate();
    let (host, device) = hosts.find_map(|(at, host)| {
        let export = host.exports.iter().find(|export| export.name == name)?;
        Some((at, export.device))
    })?;
    let places = layout.places();
    let mut own = places.iter().filter(|place| (place.host, place.device) == (host, device));
    Some(own.all(|place| layout.is_backup_target(place)))
}

/// Returns whether a backup leaves an export out unless it is named: the layout or the name says that
/// it is for backups, or it holds some.
pub(super) fn is_left_out(export: &Export, layout: Option<&Layout>) -> Result<bool, BackupError> {
    Ok(is_for_backups(export.name(), layout) || export.is_for_backups()?)
}

/// Returns whether the layout, or else the name, says that a volume is for backups.
pub(super) fn is_for_backups(name: &str, layout: Option<&Layout>) -> bool {
    let stated = layout.and_then(|layout| is_backup_volume(layout, name));
    stated.unwrap_or_else(|| is_backup_name(name))
}

/// Returns whether a place is the file of a layout.
pub(super) fn is_layout(place: &str) -> bool {
    let path = Path::new(place);
    path.extension().is_some_and(|end| end == "toml") && path.is_file()
}

/// Puts the volumes for backups of a layout in the place of its file.
pub(crate) fn without_layouts(
    places: &[String],
    catalog: &Catalog,
) -> Result<Vec<String>, CliError> {
    let mut all = Vec::new();
    for place in places {
        if !is_layout(place) {
            all.push(place.clone());
            continue;
        }
        let layout = read_layout(Path::new(place), catalog)?;
        let exports = layout.hosts.iter().flat_map(|host| &host.exports);
        let names = exports.map(|export| export.name.as_str());
        let own: Vec<&str> =
            names.filter(|name| is_backup_volume(&layout, name) == Some(true)).collect();
        if own.is_empty() {
            return Err(CliError::Refused(format!(
                "{place} has no volume for backups: none has files of role backup only, or is called \
                 backup; name a folder, an export or a container"
            )));
        }
        all.extend(own.into_iter().map(str::to_owned));
    }
    Ok(all)
}
