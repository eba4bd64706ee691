//! The full backup that a differential builds on.

use super::super::kept::moment;
use super::served::Served;
use super::targets::Targets;
use crate::cli::BackupRunArgs;
use crate::error::CliError;
use std::sync::Arc;
use weir_backup::base::{self, Base, Wanted};
use weir_backup::format::{BackupId, Identity};
use weir_backup::key::Keys;
use weir_backup::run::{announce, undo};
use weir_backup::target::{BackupLock, StripeSink};
use weir_backup::{BackupError, Cancel, Library};

/// The base of the differential that is being made, in its places.
pub(super) struct Found<'a> {
    library: Library,
    base: Base,
    sources: Vec<String>,
    keys: Option<&'a Keys>,
    name: String,
}

/// Opens the places of the full backup of a differential; `None` for other backups.
pub(super) fn open(
    args: &BackupRunArgs,
    targets: &Targets,
    served: Option<&Served>,
) -> Result<Option<Library>, CliError> {
    if !args.differential {
        return Ok(None);
    }
    Ok(Some(Library::open(targets.open(&args.from, served)?)?))
}

/// Finds the full backup of a differential in its places; `None` for other backups.
pub(super) fn find<'a>(
    library: Option<Library>,
    identity: &Identity,
    keys: Option<&'a Keys>,
    sources: Vec<String>,
) -> Result<Option<Found<'a>>, CliError> {
    let Some((id, library)) = identity.base.zip(library) else { return Ok(None) };
    let base = base::find(&library, &Wanted { base: id, sources: &sources, keys })?;
    let name = identity.name.clone();
    Ok(Some(Found { library, base, sources, keys, name }))
}

impl Found<'_> {
    pub(super) const fn id(&self) -> BackupId {
        self.base.id
    }

    /// Shows the stripes of the differential to others, and looks again: a prune that has not seen
    /// them may have removed the full backup before.
    pub(super) fn hold(
        &mut self,
        identity: &Identity,
        sinks: &[Arc<dyn StripeSink>],
        cancel: &Cancel,
    ) -> Result<(), BackupError> {
        let held = BackupLock::take(self.base.id, cancel).and_then(|_lock| {
            announce(identity, sinks)?;
            self.look_again()
        });
        held.map_err(|error| undo(error, sinks))
    }

    /// Checks that the full backup is still there.
    pub(super) fn look_again(&mut self) -> Result<(), BackupError> {
        self.library.refresh()?;
        let wanted = Wanted { base: self.base.id, sources: &self.sources, keys: self.keys };
        base::find(&self.library, &wanted).map(drop)
    }

    /// Says what the differential builds on.
    pub(super) fn note(&self) -> String {
        let Base { id, name, taken_unix_ms } = &self.base;
        let other = match *name == self.name {
            true => "",
            false => ", which has another name",
        };
        format!("it builds on the full backup {name} ({id}) of {}{other}", moment(*taken_unix_ms))
    }
}
