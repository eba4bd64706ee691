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
use weir_backup::run::{announce, discard};
use weir_backup::target::StripeSink;
use weir_backup::{BackupError, Library};

/// The base of the differential that is being made, in its places.
pub(super) struct Found<'a> {
    library: Library,
    base: Base,
    sources: Vec<String>,
    keys: Option<&'a Keys>,
    name: String,
}

/// Finds the full backup of a differential; `None` for other backups.
pub(super) fn find<'a>(
    args: &BackupRunArgs,
    identity: &Identity,
    (targets, keys): (&Targets, Option<&'a Keys>),
    served: Option<&Served>,
    sources: Vec<String>,
) -> Result<Option<Found<'a>>, CliError> {
    let Some(id) = identity.base else { return Ok(None) };
    let library = Library::open(targets.open(&args.from, served)?)?;
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
    ) -> Result<(), BackupError> {
        let held = announce(identity, sinks).and_then(|()| self.look_again());
        if held.is_err() {
            discard(sinks);
        }
        held
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
