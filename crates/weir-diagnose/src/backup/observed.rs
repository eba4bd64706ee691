//! The backups of an observation.

use super::one::Backup;
use super::places;
use crate::case::Case;
use crate::follow::BackupFacts;
use weir_observe::{EntityKind, attribute};

/// Returns the backups that were observed; restores are none.
pub(crate) fn all<'a>(case: &Case<'a>) -> Vec<Backup<'a>> {
    let of = |facts: &'a BackupFacts| {
        let entity = case.contents.entity(facts.entity)?;
        let is_restore = entity.text(attribute::OPERATION) == Some("restore");
        (!is_restore).then(|| Backup {
            sources: places::sources(case, entity),
            targets: places::targets(case, entity),
            unknown_targets: places::unknown_targets(case, entity),
            facts,
            entity,
        })
    };
    case.facts.backups.iter().filter_map(of).collect()
}

/// Returns whether a system has backups that can be diagnosed.
pub(crate) fn has_any(contents: &weir_observe::Contents) -> bool {
    contents.entities.iter().any(|entity| entity.kind == EntityKind::Backup)
}
