//! The end of a restore: the first bytes of the targets, then their names.
//!
//! ```text
//! volumes: the mark of one after the other becomes its first bytes
//! images:  all of them durable -> old ones aside -> new ones get their names -> old ones removed
//! ```
//! Whenever it ends in between, a volume is whole or begins with its mark, and no image of the new set
//! stands beside one of the old set.

use super::heads::Heads;
use super::target::{Target, Targets};
use crate::error::BackupError;
use crate::verify::{Reached, Watch};

/// Completes all targets, of which everything but the first bytes is durable.
pub(super) fn publish(
    targets: &Targets<'_>,
    heads: &Heads,
    is_proved: bool,
    watch: &Watch,
) -> Result<(), BackupError> {
    let own = (0..).zip(targets).filter_map(|(source, target)| Some((source, (*target)?)));
    let all: Vec<(u16, &dyn Target)> = own.collect();
    for (source, target) in all.iter().filter(|(_, target)| target.is_hidden()) {
        heads.write(*source, *target, is_proved)?;
    }
    let named = name(&all, heads, is_proved, watch);
    if let Err(cause) = named {
        return Err(take_back(cause, &all));
    }
    all.iter().for_each(|(_, target)| target.settle());
    Ok(())
}

fn name(
    all: &[(u16, &dyn Target)],
    heads: &Heads,
    is_proved: bool,
    watch: &Watch,
) -> Result<(), BackupError> {
    // One alone is replaced at once.
    if all.len() > 1 {
        all.iter().try_for_each(|(_, target)| target.set_aside())?;
    }
    for (source, target) in all {
        watch.reach(target.name(), Reached::Unknown);
        if !target.is_hidden() {
            heads.write(*source, *target, is_proved)?;
        }
        target.publish()?;
        watch.reach(target.name(), Reached::Whole);
    }
    Ok(())
}

/// Gives images back their old contents. Returns the failure, with what could not be given back.
fn take_back(cause: BackupError, all: &[(u16, &dyn Target)]) -> BackupError {
    let failed = all.iter().filter_map(|(_, target)| target.take_back().err());
    let left: Vec<String> = failed.map(|error| error.to_string()).collect();
    match left.is_empty() {
        true => cause,
        false => BackupError::Untidy { cause: Box::new(cause), left: left.join("; ") },
    }
}
